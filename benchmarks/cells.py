"""Cells of notebooks in this process, one thread, without Jupyter: for what has to be set in the process that computes."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path


def run(notebooks: Iterable[Path], values: Mapping[str, object]) -> None:
    """Run the notebooks one after the other; trainings and sweeps are made here, too. What a cell raises ends it.

    Args:
        notebooks: their files.
        values: of parameters; a notebook takes those that it declares.
    """
    import torch

    from bertology_utils import jobs

    torch.set_num_threads(1)
    jobs.count_workers = lambda *_: 1
    for notebook in notebooks:
        _run(json.loads(notebook.read_text(encoding="utf-8"))["cells"], notebook.stem, values)


def _run(cells: list[dict], name: str, values: Mapping[str, object]) -> None:
    import matplotlib.pyplot as plt

    space: dict = {"display": lambda *_: None}
    for number, cell in enumerate(cells, start=1):
        if cell["cell_type"] == "code":
            source = re.sub(
                r"^(\s*)%.*$", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE
            )  # no %pip
            exec(
                compile(source, f"{name}, cell {number}", "exec"), space
            )  # a traceback names cell and line
            if {"defaults", "parameters"} & set(cell["metadata"].get("tags", [])):
                space |= {key: value for key, value in values.items() if key in space}
            plt.close("all")
