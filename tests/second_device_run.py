"""Every measurement of the study "small", with a tiny model, on the CPU or on a device that is not: ``DEVICE FOLDER``."""

import os
import sys
from pathlib import Path

ENTRIES = {
    "data": "embedded",
    "annotation": "gold",
    "tasks": "mrpc",
    "recipe": {"epochs": 1, "max_length": 48},
    "train_rows": 32,
    "rows": 8,
    "disabled_rows": 8,
    "compared_rows": 8,
    "several_rows": 4,
    "pruned_rows": 8,
    "sentences": 40,
    "frames": 8,
}


def main(device: str, folder: Path) -> None:
    """Measure into the folder."""
    os.environ |= {"BERTOLOGY_CACHE": str(folder / "cache"), "BERTOLOGY_MEASURED": str(folder)}
    import torch

    torch.cpu.get_capabilities = dict  # one number format on both
    if device != "cpu":
        _choose(device)
    from bertology_utils import __main__ as cli
    from bertology_utils import settings

    settings.STUDIES["small"] = ENTRIES | {"model": str(folder / "model")}
    sys.exit(cli.main(["measure", "--study", "small"]))


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
    main(sys.argv[1], Path(sys.argv[2]))
