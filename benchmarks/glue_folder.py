"""GLUE as the committed run on real data read it: six tasks in a folder of GLUE's own layout.

    python benchmarks/glue_folder.py PATH/TO/glue TARGET

Where only a part of a task's training rows was to be had, that part becomes its ``train.tsv``.
QQP's dev rows were not: 2,000 of its training rows, drawn by seed 1, stand for them, and are not
trained on. Of MNLI's 9,815 dev rows 2,000 are drawn alike: notebook 3 answers all dev rows twelve
times for each model. QNLI was not there at all.
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
ROWS, SEED = 2000, 1  # that QQP holds out, and that MNLI keeps


def write(source: Path, target: Path) -> None:
    """Lay out the six tasks under ``target``, which must not exist yet."""
    for task, train in TASKS.items():
        (target / task).mkdir(parents=True)
        shutil.copy(source / task / f"{train}.tsv", target / task / "train.tsv")
        for dev in (source / task).glob("dev*.tsv"):
            shutil.copy(dev, target / task)
    header, drawn, rest = _drawn(target / "QQP/train.tsv")
    (target / "QQP/dev.tsv").write_text("".join([header, *drawn]), encoding="utf-8")
    (target / "QQP/train.tsv").write_text("".join([header, *rest]), encoding="utf-8")
    header, drawn, _ = _drawn(target / "MNLI/dev_matched.tsv")
    (target / "MNLI/dev_matched.tsv").write_text("".join([header, *drawn]), encoding="utf-8")


def _drawn(path: Path) -> tuple[str, list[str], list[str]]:
    """A file's header, the rows that are drawn, and the others, both in their order."""
    header, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    chosen = set(np.random.default_rng(SEED).permutation(len(rows))[:ROWS].tolist())
    return header, *(
        [row for at, row in enumerate(rows) if (at in chosen) is inside] for inside in (True, False)
    )


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
