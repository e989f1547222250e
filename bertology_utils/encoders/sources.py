"""What the parameter ``model`` can name, checked before anything heavy is imported."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..common.cache import file_sha256
from ..common.profiles import BERT_BASE, HUB_REVISIONS, HUB_SHAPES
from ..common.safetensors_header import tensor_shapes
from .embedded import embedded_folder
from .multiberts import default_revision


@dataclass(frozen=True)
class ModelSource:
    """A parsed ``model`` parameter.

    Attributes:
        name: as the person wrote it.
        location: what transformers loads: a folder or a Hub name.
        revision: pinned commit for a Hub name, None for a folder.
    """

    name: str
    location: str
    revision: str | None = None

    @property
    def is_local(self) -> bool:
        """True for a folder, the embedded model's included."""
        return self.revision is None

    @cached_property
    def fingerprint(self) -> str:
        """What identifies the weights: the commit, or a hash of the folder's files."""
        if not self.is_local:
            return f"{self.location}@{self.revision}"
        folder = Path(self.location)
        names = sorted(p.name for p in folder.iterdir() if p.suffix in {".safetensors", ".json", ".txt", ".model"})
        listing = json.dumps({name: file_sha256(folder / name) for name in names})
        return hashlib.sha256(listing.encode()).hexdigest()

    @cached_property
    def config(self) -> dict[str, Any]:
        """A folder's ``config.json``.

        Raises:
            ValueError: it cannot be read, or is no model's; the message names the file.
        """
        path = Path(self.location) / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"model {self.name!r}: {path} cannot be read: {error}") from None
        if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
            raise ValueError(f"model {self.name!r}: {path} describes no model; wanted is a JSON object with model_type")
        return config

    def shape(self) -> tuple[int, int] | None:
        """(layers, heads) as far as they are known without the Hub, else None."""
        if not self.is_local:
            return HUB_SHAPES.get(self.location)
        layers, heads = (self.config.get(name) for name in ("num_hidden_layers", "num_attention_heads"))
        if not (isinstance(layers, int) and isinstance(heads, int)):
            return None
        return (layers, heads) if min(layers, heads) > 0 else None


def parse_model(name: str) -> ModelSource:
    """Read the ``model`` parameter: "embedded", a folder, or a Hub name, "OWNER/NAME[@REVISION]".

    Raises:
        ValueError: the name is none of these, or its folder has no weights in SafeTensors or a damaged file.
        FileNotFoundError: the embedded model is not installed.
    """
    if name == "embedded":
        return ModelSource(name, str(embedded_folder()))
    folder = Path(name).expanduser()
    if folder.is_dir():
        missing = [] if (folder / "config.json").is_file() else ["config.json"]
        missing += [] if list(folder.glob("*.safetensors")) else ["model.safetensors"]
        if missing:
            raise ValueError(f"model folder {folder} lacks {' and '.join(missing)}; pickled weights are not loaded")
        source = ModelSource(name, str(folder.resolve()))
        _ = source.config, tensor_shapes(folder)  # opened here, so that what is damaged is refused at once
        return source
    location, _, revision = name.partition("@")
    parts = location.split("/")
    if len(parts) != 2 or not all(parts) or name[0] in "./~":
        raise ValueError(
            f"unknown model {name!r}; choose 'embedded', the path of an existing folder, or a Hub name OWNER/NAME"
            f" such as {BERT_BASE!r}"
        )
    return ModelSource(name, location, revision or HUB_REVISIONS.get(location) or default_revision(location) or "main")
