"""Cells of notebooks in one process, with a tiny model, on the CPU or on a device that is not: ``DEVICE FOLDER NOTEBOOK ...``

The folder gets a cache, and what the notebooks write. What a cell raises ends it; the traceback names cell and line.
"""

import json
import os
import re
import sys
from pathlib import Path

SIZES = {"tasks": "sst2,mrpc,stsb", "train_examples": 32, "max_examples": 24, "sweep_examples": 16}


def main(device: str, folder: Path, notebooks: list[Path]) -> None:
    """Run the notebooks' cells one after the other."""
    os.environ |= {"BERTOLOGY_CACHE": str(folder / "cache"), "BERTOLOGY_OUTPUT": str(folder), "MPLBACKEND": "agg"}
    if device != "cpu":
        _choose(device)
    import torch

    from bertology_utils import lab, plan
    from bertology_utils.drift import measure

    torch.set_num_threads(1)
    lab.learned = measure.learned = lambda *_: True  # with so few rows nothing is learned, and half of the code would wait
    plan.jobs_for = lambda *_: 1  # trainings and sweeps in this process, which knows the device
    for notebook in notebooks:
        print(notebook.stem, file=sys.stderr, flush=True)
        _run(
            json.loads(notebook.read_text(encoding="utf-8"))["cells"],
            notebook.stem,
            SIZES | {"model": str(folder / "model")},
        )


def _choose(device: str) -> None:
    """Make the second device known, also to transformers' Trainer."""
    import accelerate
    import second_device
    import torch
    import transformers

    second_device.register()
    os.environ["BERTOLOGY_DEVICE"] = device
    accelerate.PartialState.default_device = property(lambda _: torch.device(device, 0))
    transformers.TrainingArguments.device = property(lambda _: torch.device(device, 0))


def _run(cells: list[dict], name: str, values: dict) -> None:
    import matplotlib.pyplot as plt

    space: dict = {"display": lambda *_: None}
    for number, cell in enumerate(cells, start=1):
        if cell["cell_type"] == "code":
            source = re.sub(r"^(\s*)%.*$", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE)  # no %pip
            exec(compile(source, f"{name}, cell {number}", "exec"), space)
            if {"defaults", "parameters"} & set(cell["metadata"].get("tags", [])):
                space |= {key: value for key, value in values.items() if key in space}
            plt.close("all")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [Path(path) for path in sys.argv[3:]])
