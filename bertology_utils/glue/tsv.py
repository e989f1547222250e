"""GLUE's own download: one folder per task, tab-separated files without quoting, plain or packed (.tsv.gz).

No CSV library is used, on purpose: GLUE's files hold unbalanced quotation
marks, and an error must name the line.
"""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from ..common.textfile import opened
from .tasks import Task

# Column names in GLUE's files → the Hub's, where they differ.
COLUMNS = {
    "mrpc": {"sentence1": "#1 String", "sentence2": "#2 String", "label": "Quality"},
    "stsb": {"label": "score"},
    "qqp": {"label": "is_duplicate"},
    "mnli": {"premise": "sentence1", "hypothesis": "sentence2", "label": "gold_label"},
}
_MAX_SCORE = 5.0  # STS-B's labels run from 0 to 5

Columns = dict[str, list[str] | list[int] | list[float]]  # by name: texts, labels, or row numbers


def read_split(task: Task, split: str, folder: Path, train_files: dict[str, str] | None = None) -> Columns:
    """Columns of one split, under the Hub's names, with ``idx`` counted from 0.

    Args:
        task: the task.
        split: "train" or "dev".
        folder: the folder that holds one folder per task.
        train_files: training files named on their own, by task name.

    Raises:
        FileNotFoundError: no such file; the message lists what is there.
        ValueError: no rows, a missing column, a truncated row or an unknown
            label; the message gives file and line.
    """
    return read_table(task, _file(task, split, folder, train_files))


def check_folder(
    tasks: Sequence[Task], folder: Path, train_files: dict[str, str] | None = None, splits: Sequence[str] = ("train", "dev")
) -> None:
    """Refuse a folder in which some task's files cannot be read, by the header and the first row of each.

    Args:
        tasks: those that will be read.
        folder: as in :func:`read_split`.
        train_files: as in :func:`read_split`.
        splits: of "train" and "dev" those that will be read.

    Raises:
        FileNotFoundError, ValueError: as :func:`read_split`.
    """
    for task in tasks:
        for split in splits:
            read_table(task, _file(task, split, folder, train_files), most=1)


def _file(task: Task, split: str, folder: Path, train_files: dict[str, str] | None) -> Path:
    """The file of a split, plain or packed."""
    name = (train_files or {}).get(task.name, "train.tsv") if split == "train" else task.dev_file
    path = folder / task.folder / name
    packed = path.with_name(f"{path.name}.gz")
    if path.is_file() or packed.is_file():
        return path if path.is_file() else packed
    there = sorted(p.name for p in path.parent.glob("*.tsv*")) if path.parent.is_dir() else []
    hint = f"the folder has: {', '.join(there)}" if there else f"{path.parent} has no .tsv file"
    raise FileNotFoundError(
        f"missing file {path} ({hint}). A training file of another name is given by train_files='TASK=FILE'."
    )


def read_table(task: Task, path: Path, most: int | None = None) -> Columns:
    """Columns of one .tsv or .tsv.gz file of ``task``, at most so many rows; see :func:`read_split`."""
    with opened(path) as file:
        lines = [line.rstrip("\r\n").split("\t") for line in islice(file, most and most + 1)]
    if len(lines) < 2:
        raise ValueError(f"{path}: no rows; a header and at least one row are wanted")
    header, *rows = lines
    where = _column_positions(task, header, path)
    columns: dict[str, list[str]] = {name: [] for name in where}
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: {len(row)} columns where the header has {len(header)}")
        for name, position in where.items():
            columns[name].append(row[position])
    labels = [_label(task, text, path, number) for number, text in enumerate(columns["label"], start=2)]
    return {**columns, "label": labels, "idx": list(range(len(rows)))}


def _column_positions(task: Task, header: list[str], path: Path) -> dict[str, int]:
    renamed = COLUMNS.get(task.name, {})
    positions = {}
    for name in (*task.fields, "label"):
        wanted = renamed.get(name, name)
        if wanted not in header:
            raise ValueError(f"{path}, line 1: no column {wanted!r} for {task.title}; the header has: {', '.join(header)}")
        positions[name] = header.index(wanted)
    return positions


def _label(task: Task, text: str, path: Path, line: int) -> int | float:
    if task.is_regression:
        if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) <= _MAX_SCORE:
            return float(text)
        raise ValueError(f"{path}, line {line}: label {text!r} is not a score from 0 to 5")
    if text in task.labels:
        return task.labels.index(text)
    if text.isdecimal() and int(text) < len(task.labels):
        return int(text)
    allowed = [*task.labels, *map(str, range(len(task.labels)))]
    raise ValueError(f"{path}, line {line}: unknown label {text!r}; known are: {', '.join(allowed)}")
