"""Rows as the tables that GLUE itself ships, task by task: its columns, in its order.

What GLUE has and the corpora have not (sources, parses, the labels of single
annotators) is left empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from bertology_utils.glue import COLUMNS, Task

from .rows import Row

_MNLI = (
    "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse sentence2_parse"
    " sentence1 sentence2"
).split()
HEADERS = {
    "mrpc": ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
    "stsb": "index genre filename year old_index source1 source2 sentence1 sentence2 score".split(),
    "sst2": ["sentence", "label"],
    "qqp": "id qid1 qid2 question1 question2 is_duplicate".split(),
    "rte": ["index", "sentence1", "sentence2", "label"],
    "qnli": ["index", "question", "sentence", "label"],
    "mnli": _MNLI,
}
ANNOTATORS = {"train": ["label1"], "dev": [f"label{number}" for number in range(1, 6)]}


def header(task: Task, split: str) -> list[str]:
    """Column names of the task's file; ``split`` is "train" or "dev"."""
    return HEADERS[task.name] + (ANNOTATORS[split] + ["gold_label"] if task.name == "mnli" else [])


def table(task: Task, split: str, rows: Sequence[Row]) -> str:
    """The text of a .tsv file, without quoting, as GLUE has it."""
    columns = header(task, split)
    lines = [columns]
    for number, row in enumerate(rows):
        cells = _cells(task, number, row)
        lines.append([cells.get(column, "") for column in columns])
    mark = "\ufeff" if task.name == "mrpc" else ""  # GLUE's MRPC begins with a byte-order mark
    return mark + "".join("\t".join(line) + "\n" for line in lines)


def _cells(task: Task, number: int, row: Row) -> dict[str, str]:
    named = COLUMNS.get(task.name, {})
    cells = dict.fromkeys(("index", "id", "promptID", "pairID"), str(number))
    cells |= dict.fromkeys(("#1 ID", "qid1"), str(2 * number + 1)) | dict.fromkeys(
        ("#2 ID", "qid2"), str(2 * number + 2)
    )
    cells |= {named.get(field, field): text for field, text in row.text.items()}
    return cells | {named.get("label", "label"): _label(task, row.label)}


def _label(task: Task, label: int | float) -> str:
    if task.is_regression:
        return f"{label:.3f}"
    return str(label) if task.name in ("mrpc", "sst2", "qqp") else task.labels[int(label)]
