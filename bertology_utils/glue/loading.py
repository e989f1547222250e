"""Rows of the Hub, of a GLUE folder, or of the project's own corpora, in one shape.

Every loader returns a ``datasets.Dataset`` with the Hub's columns for the task:
its text fields, ``label`` (a ``ClassLabel``, or float32 for STS-B) and ``idx``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..common import one_of
from ..common.hub import hub_errors
from ..common.profiles import GLUE, HUB_REVISIONS
from ..common.retries import with_retries
from ..corpora import GLUE as EMBEDDED
from . import tsv
from .sources import DataSource
from .tasks import Task

if TYPE_CHECKING:
    import datasets
    from datasets import Dataset


def schema(task: Task) -> datasets.Features:
    """Columns and types of a task's rows, as the Hub has them."""
    import datasets

    text, number = datasets.Value("string"), datasets.Value("int32")
    label = datasets.Value("float32") if task.is_regression else datasets.ClassLabel(names=list(task.labels))
    return datasets.Features({**dict.fromkeys(task.fields, text), "label": label, "idx": number})


def load_rows(task: Task, split: str, source: DataSource) -> Dataset:
    """Rows of one split of one task.

    Args:
        task: the task.
        split: "train" or "dev".
        source: where from.

    Returns:
        A Dataset with the columns of :func:`schema`.

    Raises:
        FileNotFoundError, ValueError: a file is missing or malformed; the
            message names file and line.
        ConnectionError: the Hub cannot be reached or has no such revision.
    """
    one_of("split", split, ("train", "dev"))
    return {"embedded": _embedded, "hub": _hub, "folder": _folder}[source.kind](task, split, source)


def _folder(task: Task, split: str, source: DataSource) -> Dataset:
    from datasets import Dataset

    assert source.path is not None  # of the kind "folder"
    rows = tsv.read_split(task, split, source.path, dict(source.train_files))
    return Dataset.from_dict(rows, features=schema(task))


def _embedded(task: Task, split: str, source: DataSource) -> Dataset:
    return _folder(task, split, DataSource("folder", EMBEDDED))


def _hub(task: Task, split: str, source: DataSource) -> Dataset:
    from datasets import load_dataset

    revision, part = HUB_REVISIONS[GLUE], "train" if split == "train" else task.dev_split
    with hub_errors("data set", GLUE, revision):
        return with_retries(lambda: load_dataset(GLUE, task.name, split=part, revision=revision), f"the data set {GLUE}")


def sample(rows: Dataset, count: int, seed: int) -> Dataset:
    """``count`` rows drawn without replacement by ``seed``, in their old order; all if there are no more.

    Args:
        rows: any Dataset.
        count: how many; 0 means all.
        seed: of the draw.
    """
    if not count or count >= len(rows):
        return rows
    chosen = np.random.default_rng(seed).choice(len(rows), size=count, replace=False)
    return rows.select(sorted(chosen.tolist()))
