"""Encoders that can be had and fit, and those that are left out, as far as it can be known before any long work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING

from ...common.cache import digest
from ...common.hub import hub_errors
from ...common.retries import with_retries
from ...encoders import multiberts, pickled
from ...encoders.sources import ModelSource, parse_model
from ..check import Checked, check_call
from ..notebooks import Notebook

if TYPE_CHECKING:
    from ..experiment import Experiment

_SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True)
class Candidate:
    """An encoder that will be measured.

    Attributes:
        title: short and unique.
        pretraining: what it is a checkpoint of; of its own for all but the MultiBERTs' steps.
        checked: the notebook's parameters, its model included.
        lab: what the notebook will have.
    """

    title: str
    pretraining: str
    checked: Checked
    lab: Experiment

    @property
    def fingerprint(self) -> str:
        """Of its weights and tokenizer: a commit on the Hub, or a hash of files."""
        return self.lab.settings.model.fingerprint

    @property
    def shape(self) -> tuple[int, int]:
        """(layers, heads)."""
        return self.lab.config.num_hidden_layers, self.lab.config.num_attention_heads


def key(notebook: Notebook, candidate: Candidate) -> dict[str, object]:
    """What a finished run is recognised by: weights, parameters, version of the package, code of the notebook.

    What lies in a folder of data is not looked into, nor the package's code under one version.
    """
    values = {name: str(value) for name, value in candidate.checked.values.items() if name != "model"}
    cells = json.loads(notebook.path.read_text(encoding="utf-8"))["cells"]
    code = digest({"cells": [cell["source"] for cell in cells if cell["cell_type"] == "code"]})
    version = metadata.version("bertology-utils")
    return {"encoder": candidate.fingerprint, "parameters": values, "version": version, "notebook": code}


def look(
    notebook: Notebook, texts: Mapping[str, str], names: Mapping[str, str], hashes: Mapping[str, str]
) -> tuple[list[Candidate], dict[str, str]]:
    """Ask for every encoder's configuration, tokenizer and kind of weights; folders are read whole.

    Args:
        notebook: number 8.
        texts: its parameters but for the model, as on the command line.
        names: title by name of the encoders.
        hashes: SHA-256 of pickled weights by name.

    Returns:
        Those that can be had, in their order, and by title why others are left out.
    """
    found: list[Candidate] = []
    without: dict[str, str] = {}
    for name, title in names.items():
        try:
            candidate = _candidate(notebook, texts, name, title, hashes.get(name, ""))
        except (ValueError, TypeError, OSError) as error:
            without[title] = str(error)
            continue
        same = next((one.title for one in found if one.fingerprint == candidate.fingerprint), "")
        if same:
            without[title] = f"it is the same as {same}, file by file; a pre-training counts once"
        else:
            found.append(candidate)
    return found, without


def _candidate(notebook: Notebook, texts: Mapping[str, str], name: str, title: str, sha256: str) -> Candidate:
    from ..experiment import Experiment

    checked = replace(check_call([notebook], {**texts, "model": had(name, sha256)}), remarks=())  # all is asked for here
    lab = Experiment(notebook.name, **(notebook.parameters | notebook.declared(checked.values)))
    _ = lab.tokenizer
    if lab.settings.model.is_local:
        lab.encoder()  # every tensor there
    return Candidate(title, multiberts.pretraining(name.split("@")[0]), checked, lab)


def had(name: str, sha256: str = "") -> str:
    """The parameter ``model`` under which an encoder's weights come as SafeTensors: NAME@COMMIT, or a folder.

    Args:
        name: a folder, or a Hub name.
        sha256: of its pickled weights, if these may be read where there are no others.

    Raises:
        ValueError: unknown, damaged, or pickled weights with another hash.
        FileNotFoundError: nothing of this name, or no SafeTensors.
        ConnectionError, PermissionError, TimeoutError: it cannot be had.
    """
    from ...encoders import models

    try:
        source = parse_model(name)
        if source.is_local:
            return name
        source = models.pinned(source)[0]
        _refuse_without_safetensors(source)
    except (ValueError, FileNotFoundError):
        if not sha256:
            raise
        location, _, revision = name.partition("@")
        return str(pickled.converted(name, location, revision or "main", sha256))
    return f"{source.location}@{source.revision}"


def _refuse_without_safetensors(source: ModelSource) -> None:
    """Before transformers would look for pickled weights, or ask the Hub to convert them."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    cached = (try_to_load_from_cache(source.location, name, revision=source.revision) for name in _SAFETENSORS)
    if any(isinstance(path, str) for path in cached):
        return
    with hub_errors("model", source.name, source.revision):
        there = with_retries(
            lambda: any(HfApi().file_exists(source.location, name, revision=source.revision) for name in _SAFETENSORS),
            f"model {source.name}",
        )
    if not there:
        raise FileNotFoundError(
            f"model {source.name!r} has no SafeTensors at revision {source.revision}; its pickled weights are read only if"
            f" their hash is given: --weights-sha256 {source.name}=SHA256"
        )
