"""One encoder measured: notebook 8 and its heads' behaviours, in a folder of its own that is not made twice."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...common.cache import digest, write_atomically
from .. import looking
from ..notebooks import Notebook
from ..results import RESULTS, without_nan
from .candidates import Candidate, key

FOLDER = "runs/pretrainings"
HEADS = "heads.json"


@dataclass(frozen=True)
class Measured:
    """A finished run.

    Attributes:
        candidate: of which encoder.
        results: notebook 8's, parsed.
        heads: behaviours, shape (2, layers, heads, kinds); see :mod:`bertology_utils.pretrained.behaviour`.
    """

    candidate: Candidate
    results: dict
    heads: np.ndarray


def folder_of(root: Path, notebook: Notebook, candidate: Candidate) -> Path:
    """Where a run goes: named by the encoder, and by all that the run is recognised by."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", candidate.title)
    return root / FOLDER / f"{name}+{digest(key(notebook, candidate))[:8]}"


def is_finished(folder: Path, notebook: Notebook) -> bool:
    """True if all was measured; both files are written whole or not at all, the heads last."""
    return (folder / HEADS).is_file() and (folder / looking.FIGURES / notebook.name / RESULTS).is_file()


def measure(folder: Path, notebook: Notebook, candidate: Candidate) -> str | None:
    """Run the notebook and measure the heads, each unless that is done; returns what went wrong, in a line, or None.

    Raises:
        ValueError, OSError: the encoder does not fit, or cannot be had, or nothing can be written.
    """
    candidate.lab.encoder()  # fetched, and every tensor there, before a kernel starts; not kept beside the kernel's own
    if not (folder / looking.FIGURES / notebook.name / RESULTS).is_file():
        outcome = looking.run(notebook, candidate.checked, folder)
        if outcome.error:
            return f"{outcome.error}; see {outcome.executed}"
    if not (folder / HEADS).is_file():
        content = {"key": key(notebook, candidate), **_heads(candidate)}
        write_atomically(folder / HEADS, json.dumps(without_nan(content), ensure_ascii=False).encode())
    return None


def _heads(candidate: Candidate) -> dict[str, object]:
    from ...pretrained import behaviour

    lab = candidate.lab
    encoder = lab.encoder()
    tasks = [behaviour.of_examples(encoder, lab.measured_batches(task), lab.annotated_inputs(task)) for task in lab.tasks]
    return {"kinds": behaviour.KINDS, "halves": behaviour.in_halves(tasks, lab.settings.seed)}


def read(folder: Path, notebook: Notebook, candidate: Candidate) -> Measured:
    """A finished run.

    Raises:
        ValueError: a damaged file; says what to do.
    """
    try:
        results = json.loads((folder / looking.FIGURES / notebook.name / RESULTS).read_text(encoding="utf-8"))
        heads = np.array(json.loads((folder / HEADS).read_text(encoding="utf-8"))["halves"], dtype=float)
        _ = results["verdicts"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder} is damaged ({error}); delete it, and run again") from error
    return Measured(candidate, results, heads)
