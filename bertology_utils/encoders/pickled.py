"""Pickled weights turned into SafeTensors, only where a person gives their SHA-256; nothing else here reads a pickle."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from ..common.cache import entry, file_sha256
from ..common.hub import hub_errors
from ..common.retries import with_retries

KIND = "converted"
PICKLED = "pytorch_model.bin"
_OTHERS = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def read_hashes(text: str) -> dict[str, str]:
    """Read "NAME=SHA256,NAME=SHA256": by name of a model the hash of its pickled weights.

    Raises:
        ValueError: not of that form, or a model twice.
    """
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.rpartition("=")
        if not name or not re.fullmatch(r"[0-9a-fA-F]{64}", value):
            raise ValueError(f"{part!r} is not NAME=SHA256 with 64 hexadecimal digits; several have commas between")
        if name in found:
            raise ValueError(f"the weights of {name} have two hashes; give one")
        found[name] = value.lower()
    return found


def converted(name: str, location: str, revision: str, sha256: str) -> Path:
    """A folder of the cache with the model's weights as SafeTensors, from pickled ones of the given hash.

    The hash is compared before the file is opened as what it is, and then only
    tensors are taken from it (``torch.load(weights_only=True)``).

    Args:
        name: the model, for messages.
        location: a folder, or a Hub name.
        revision: on the Hub.
        sha256: of ``pytorch_model.bin``, 64 hexadecimal digits in lower case.

    Raises:
        ValueError: another hash; something else in the file than tensors; a torch too old to read it safely (before 2.6).
        FileNotFoundError, ConnectionError: it cannot be had.
    """
    folder = Path(location).expanduser()
    if not folder.is_dir():
        folder = _fetched(name, location, revision)
    if not (folder / PICKLED).is_file():
        raise FileNotFoundError(f"model {name!r} has no {PICKLED} either")
    found = file_sha256(folder / PICKLED)
    if found != sha256:
        raise ValueError(f"the pickled weights of model {name!r} have the SHA-256 {found}, not {sha256}; they are not read")
    others = {other: file_sha256(folder / other) for other in _OTHERS if (folder / other).is_file()}
    return entry(KIND, {"pickled": sha256, "others": others}, lambda target, _: _convert(name, folder, list(others), target))


def _fetched(name: str, location: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download

    with hub_errors("model", name, revision):
        wanted = [PICKLED, *_OTHERS]
        fetch = partial(snapshot_download, location, revision=revision, allow_patterns=wanted)
        return Path(with_retries(fetch, f"model {name}"))


def _convert(name: str, folder: Path, others: list[str], target: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers.utils.import_utils import check_torch_load_is_safe

    check_torch_load_is_safe()
    try:
        tensors = torch.load(folder / PICKLED, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle's many kinds; its own words advise to load without care
        raise ValueError(f"the pickled weights of model {name!r} cannot be read as tensors alone") from error
    if not isinstance(tensors, dict) or not all(isinstance(one, torch.Tensor) for one in tensors.values()):
        raise ValueError(f"the pickled weights of model {name!r} are not a table of tensors")
    # Copies: tensors that share memory, as tied weights do, are refused otherwise.
    apart = {key: tensor.contiguous().clone() for key, tensor in tensors.items()}
    save_file(apart, target / "model.safetensors", metadata={"format": "pt"})
    for other in others:
        (target / other).write_bytes((folder / other).read_bytes())
