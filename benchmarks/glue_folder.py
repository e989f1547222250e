"""GLUE as the committed run on real data read it: six tasks in a folder of GLUE's own layout.

    python benchmarks/glue_folder.py PATH/TO/glue TARGET

Where only a part of a task's training rows was to be had, that part becomes its ``train.tsv``. QQP's dev rows were not:
2,000 of its training rows, drawn by seed 1, stand for them, and are not trained on. QNLI was not there at all.
"""

import shutil
import sys
from pathlib import Path

import numpy as np

TASKS = {
    "MRPC": "train",
    "RTE": "train",
    "STS-B": "train",
    "SST-2": "train",
    "MNLI": "train_subset9k",
    "QQP": "train_subset23k",
}
HELD_OUT, SEED = 2000, 1  # rows of QQP


def write(source: Path, target: Path) -> None:
    """Lay out the six tasks under ``target``, which must not exist yet."""
    for task, train in TASKS.items():
        (target / task).mkdir(parents=True)
        shutil.copy(source / task / f"{train}.tsv", target / task / "train.tsv")
        for dev in (source / task).glob("dev*.tsv"):
            shutil.copy(dev, target / task)
    header, *rows = (target / "QQP/train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    held_out = set(np.random.default_rng(SEED).permutation(len(rows))[:HELD_OUT].tolist())
    for split, inside in (("dev", True), ("train", False)):
        chosen = [row for at, row in enumerate(rows) if (at in held_out) is inside]
        (target / f"QQP/{split}.tsv").write_text("".join([header, *chosen]), encoding="utf-8")


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
