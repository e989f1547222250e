"""Cells of notebooks in one process, with a tiny model, on the CPU or on a device that is not: ``DEVICE FOLDER NOTEBOOK ...``

The folder gets a cache, and what the notebooks write.
"""

import gc
import os
import sys
from pathlib import Path

SIZES = {"tasks": "sst2,mrpc,stsb", "train_examples": 32, "max_examples": 24, "sweep_examples": 16}


def main(device: str, folder: Path, notebooks: list[Path]) -> None:
    """Run the notebooks' cells one after the other."""
    os.environ |= {"BERTOLOGY_CACHE": str(folder / "cache"), "BERTOLOGY_OUTPUT": str(folder)}
    os.environ["MPLBACKEND"] = "agg"
    if device != "cpu":
        _choose(device)
    import cells

    from bertology_utils import lab, plots

    # With so few rows nothing is learned, and half of the code would wait.
    lab.learned = lambda *_: True
    plots.save = lambda *_: (
        None
    )  # what is drawn is computed; writing the pictures is the same on every device
    # or each of many small trainings, at its end, would look through all that was imported
    gc.freeze()
    for notebook in notebooks:
        cells.run([notebook], SIZES | {"model": str(folder / "model")})


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


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [Path(path) for path in sys.argv[3:]])
