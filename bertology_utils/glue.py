"""The seven GLUE tasks of the paper: fields, metrics, Table 1 (§3, §4.3), and their rows in one shape.

Rows come from the Hub, from a folder in GLUE's own layout, or from the project's own corpora,
always as a ``datasets.Dataset`` with the Hub's columns for the task: its text fields, ``label`` (a
``ClassLabel``, or float32 for STS-B) and ``idx``. GLUE's files are tab-separated without quoting,
plain or packed (.tsv.gz); no CSV library reads them, on purpose: they hold unbalanced quotation
marks, and an error must name the line.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .common import HUB_GLUE, HUB_REVISIONS, hub_errors, one_of, opened

if TYPE_CHECKING:
    import datasets
    from datasets import Dataset

# Column names in GLUE's files → the Hub's, where they differ.
COLUMNS = {
    "mrpc": {"sentence1": "#1 String", "sentence2": "#2 String", "label": "Quality"},
    "stsb": {"label": "score"},
    "qqp": {"label": "is_duplicate"},
    "mnli": {"premise": "sentence1", "hypothesis": "sentence2", "label": "gold_label"},
}
Columns = dict[str, list[Any]]  # by name: texts, labels, or row numbers
# The synthetic rows of three tasks, in the form of GLUE's own download and with their gold
# annotation; corpora/README.md is their data card.
EMBEDDED = Path(__file__).parent / "corpora" / "glue"
EMBEDDED_TASKS = ("mrpc", "stsb", "sst2")
LEAST_ROWS = 4  # heads are chosen on one half of the rows and measured on the other


@dataclass(frozen=True)
class Task:
    """One GLUE task.

    Attributes:
        name: configuration name on the Hub ("mrpc").
        title: name as the paper writes it ("MRPC").
        folder: folder name in GLUE's own download ("MRPC").
        fields: text columns, one or two, with the Hub's names.
        labels: label names in the order of their ids; empty for a regression.
        metrics: names of the metrics, the one for ranking models first.
        dev_split: the Hub's name of the split that is evaluated.
        dev_file: the same split's file in GLUE's own download.
        paper: Table 1's scores after fine-tuning (0 to 100), one for each metric; the table calls that of
            STS-B "Acc", and a regression has none, so it is read as the correlation.
    """

    name: str
    title: str
    folder: str
    fields: tuple[str, ...]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    paper: tuple[float, ...]
    dev_split: str = "validation"
    dev_file: str = "dev.tsv"

    @property
    def is_regression(self) -> bool:
        """True for STS-B, whose label is a similarity from 0 to 5."""
        return not self.labels

    @property
    def num_labels(self) -> int:
        """Width of the classifier's output."""
        return max(1, len(self.labels))


_PAIR = ("sentence1", "sentence2")
# fmt: off
_TASKS = (
    Task("mrpc", "MRPC", "MRPC", _PAIR, ("not_equivalent", "equivalent"), ("F1", "accuracy"), (87.9, 82.3)),
    Task("stsb", "STS-B", "STS-B", _PAIR, (), ("Pearson", "Spearman"), (82.7,)),
    Task("sst2", "SST-2", "SST-2", ("sentence",), ("negative", "positive"), ("accuracy",), (92.0,)),
    Task("qqp", "QQP", "QQP", ("question1", "question2"), ("not_duplicate", "duplicate"), ("F1", "accuracy"), (65.2, 78.6)),
    Task("rte", "RTE", "RTE", _PAIR, ("entailment", "not_entailment"), ("accuracy",), (64.6,)),
    Task("qnli", "QNLI", "QNLI", ("question", "sentence"), ("entailment", "not_entailment"), ("accuracy",), (84.4,)),
    Task("mnli", "MNLI-m", "MNLI", ("premise", "hypothesis"), ("entailment", "neutral", "contradiction"),
         ("accuracy",), (78.6,), "validation_matched", "dev_matched.tsv"),
)
# fmt: on
TASKS = {task.name: task for task in _TASKS}


def get_task(name: str) -> Task:
    """The task called ``name`` ("mrpc", …), in any spelling of case or dash ("STS-B").

    Raises:
        ValueError: if there is none, naming the seven.
    """
    key = str(name).strip().lower().replace("-", "")
    return TASKS[one_of("task", {"mnlim": "mnli"}.get(key, key), TASKS)]


def parse_tasks(names: str) -> tuple[Task, ...]:
    """Tasks named in a comma-separated list; "all" means the seven, in Table 1's order.

    Raises:
        ValueError: for an unknown name or an empty list.
    """
    if names.strip().lower() == "all":
        return _TASKS
    chosen = [get_task(name) for name in names.split(",") if name.strip()]
    if not chosen:
        raise ValueError(f"no task named in {names!r}; write 'all' or some of: {', '.join(TASKS)}")
    return tuple(dict.fromkeys(chosen))


def output_order(
    task: Task, id2label: Mapping[Any, str] | None, label2id: Mapping[str, Any] | None
) -> list[int]:
    """For each of the task's labels, in order, the number of the classifier's output for it.

    Checkpoints name their outputs, and not all in GLUE's order. Case, dashes and spaces do not
    matter; "LABEL_1" or "1" is the task's label number 1.

    Args:
        task: the task.
        id2label: names of the outputs, as a model's configuration has them; or None.
        label2id: the same the other way round; one of both may be the default, LABEL_0 ….

    Raises:
        ValueError: the names are not those of the task's labels, or the two contradict each other.
    """
    ids = range(task.num_labels)
    default, digits = [f"label_{number}" for number in ids], [str(number) for number in ids]
    forms = (list(task.labels), default, digits)
    orders: dict[tuple[int, ...] | None, list[str]] = {}
    for named in (id2label or {}, {at: name for name, at in (label2id or {}).items()}):
        names = {int(at): str(name) for at, name in named.items()}
        plain = [re.sub(r"[\W_]+", "_", name).lower() for _, name in sorted(names.items())]
        if not names or plain == default or (task.is_regression and len(names) == 1):
            continue
        known = next((form for form in forms if sorted(form) == sorted(plain)), None)
        orders[tuple(map(plain.index, known)) if known else None] = list(names.values())
    if None in orders or len(orders) > 1:
        wanted = list(task.labels) if task.labels else "one score"
        raise ValueError(
            f"has a classifier with the outputs {' or '.join(map(str, orders.values()))}, by id2label"
            f" and label2id of its config.json, and {task.title} wants {wanted}; give a checkpoint"
            f" fine-tuned on {task.title}, or name its outputs there as these labels, in their order"
        )
    return list(next((order for order in orders if order), ids))


def check_split(task: Task, split: str, folder: Path) -> None:
    """Refuse a split of a folder that cannot be trained on or measured; raises as :func:`load_rows`."""
    path = _file(task, split, folder)
    labels = read_table(task, path)["label"]
    if split == "train":
        check_labels(f"{path}: {task.title}", labels)
    elif len(labels) < LEAST_ROWS:
        why = "since heads are chosen on one half of them and tried on the other"
        raise ValueError(f"{path}: {len(labels)} rows; at least {LEAST_ROWS} are needed, {why}")


def check_labels(what: str, labels: Sequence[float]) -> None:
    """Refuse labels from which nothing can be learnt: none, or the same for all rows."""
    if len(labels) == 0:
        raise ValueError(f"{what}: no training rows")
    if len(set(labels)) == 1:
        one = f"have the label {labels[0]}; at least two are wanted"
        raise ValueError(f"{what}: all {len(labels)} training rows {one}")


def _file(task: Task, split: str, folder: Path) -> Path:
    """The file of a split, plain or packed; where there is none, the message lists what is there."""
    path = folder / task.folder / ("train.tsv" if split == "train" else task.dev_file)
    for file in (path, path.with_name(f"{path.name}.gz")):
        if file.is_file():
            return file
    there = ", ".join(sorted(file.name for file in path.parent.glob("*.tsv*")))
    hint = f"the folder has: {there}" if there else f"{path.parent} has no .tsv file"
    raise FileNotFoundError(f"missing file {path} ({hint})")


def read_table(task: Task, path: Path) -> Columns:
    """Columns of one .tsv or .tsv.gz file of ``task``, under the Hub's names, with ``idx`` counted from 0.

    Empty lines at the end are no rows. GLUE's own QQP files have a few rows with too few columns,
    which every loader leaves out, the Hub's as well; they are counted in a warning.

    Raises:
        ValueError: no rows, a missing column, a row with too few or too many columns or an unknown
            label; the message gives file and line.
    """
    with opened(path) as file:
        lines = [line.rstrip("\r\n") for line in file]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) < 2:
        raise ValueError(f"{path}: no rows; a header and at least one row are wanted")
    header = lines[0].split("\t")
    names = {name: COLUMNS.get(task.name, {}).get(name, name) for name in (*task.fields, "label")}
    if missing := [name for name in names.values() if name not in header]:
        what = f"no column {missing[0]!r} for {task.title}; the header has: {', '.join(header)}"
        raise ValueError(f"{path}, line 1: {what}")
    columns: Columns = {name: [] for name in (*names, "idx")}
    positions = {name: header.index(written) for name, written in names.items()}
    left_out: list[int] = []
    for number, line in enumerate(lines[1:], start=2):
        row = line.split("\t")
        if len(row) < len(header) and task.name == "qqp" and len(left_out) < len(lines) - 2:
            left_out.append(number)
            continue
        if len(row) != len(header):
            advice = "mend or delete this line (columns are separated by tabs, and texts hold none)"
            wrong = f"{len(row)} columns where the header has {len(header)}"
            raise ValueError(f"{path}, line {number}: {wrong}; {advice}")
        for name, position in positions.items():
            columns[name].append(row[position])
        columns["label"][-1] = _label(task, columns["label"][-1], f"{path}, line {number}")
        columns["idx"].append(number - 2)
    if left_out:
        what = f"{len(left_out)} rows are left out, which have too few columns, as in GLUE's own"
        text = f"{path}: {what} QQP files; the first is line {left_out[0]}"
        warnings.warn(text, stacklevel=2)
    return columns


def _label(task: Task, text: str, where: str) -> int | float:
    if task.is_regression:
        if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) <= 5:
            return float(text)
        raise ValueError(f"{where}: label {text!r} is not a score from 0 to 5")
    known = [*task.labels, *map(str, range(task.num_labels))]
    if text in known:
        return known.index(text) % task.num_labels
    raise ValueError(f"{where}: unknown label {text!r}; known are: {', '.join(known)}")


def schema(task: Task) -> datasets.Features:
    """Columns and types of a task's rows, as the Hub has them."""
    import datasets

    text, number, names = datasets.Value("string"), datasets.Value("int32"), list(task.labels)
    label = datasets.ClassLabel(names=names) if names else datasets.Value("float32")
    return datasets.Features({**dict.fromkeys(task.fields, text), "label": label, "idx": number})


def load_rows(task: Task, split: str, folder: Path | None) -> Dataset:
    """Rows of one split of one task.

    Args:
        task: the task.
        split: "train" or "dev".
        folder: in GLUE's own layout; None for the Hub.

    Returns:
        A Dataset with the columns of :func:`schema`.

    Raises:
        FileNotFoundError, ValueError: a file is missing or malformed; the
            message names file and line.
        ConnectionError: they cannot be fetched from the Hub.
    """
    import datasets

    one_of("split", split, ("train", "dev"))
    if folder is not None:
        table = read_table(task, _file(task, split, folder))
        return datasets.Dataset.from_dict(table, features=schema(task))
    revision, part = HUB_REVISIONS[HUB_GLUE], "train" if split == "train" else task.dev_split
    instead = "data='embedded', or data='folder:PATH' of GLUE's own .tsv files"
    with hub_errors(f"the data set {HUB_GLUE!r} at revision {revision}", instead):
        return datasets.load_dataset(HUB_GLUE, task.name, split=part, revision=revision)


def sample(rows: Dataset, count: int, seed: int) -> Dataset:
    """``count`` rows drawn without replacement by ``seed``, in their old order; all if there are no more.

    Args:
        rows: any Dataset.
        count: how many; 0 means all.
        seed: of the draw.
    """
    if not count or count >= len(rows):
        return rows
    drawn = np.random.default_rng(seed).choice(len(rows), size=count, replace=False)
    return rows.select(np.sort(drawn))


def texts(task: Task, rows: Dataset) -> Iterator[tuple[str, ...]]:
    """What each row says, whatever its case and spaces."""
    columns = ([" ".join(text.lower().split()) for text in rows[name]] for name in task.fields)
    return zip(*columns, strict=True)


def without(task: Task, rows: Dataset, others: Dataset) -> Dataset:
    """The rows that do not say what one of the others says."""
    seen = {*texts(task, others)}
    kept = [at for at, text in enumerate(texts(task, rows)) if text not in seen]
    return rows if len(kept) == len(rows) else rows.select(kept)
