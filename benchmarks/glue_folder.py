"""GLUE's seven tasks in three folders of GLUE's own layout: whole; one to explore, one to confirm what was found there.

    python benchmarks/glue_folder.py PATH/TO/glue TARGET

``TARGET/whole`` has all rows, for studies, which hold rows back themselves (studies.toml).
``TARGET/explore`` and ``TARGET/confirm`` have the same training rows. The dev rows of ``confirm``
do not occur in ``explore``, so that no run on it can have touched them: they are training rows of
five tasks, and dev rows of MNLI and QNLI, whose dev sets are large. Where only a part of a task's
training rows is to be had, that part becomes its ``train.tsv``. QQP's own dev rows are not to be
had, so training rows stand for them.
"""

import sys
from pathlib import Path

import numpy as np

# A task's training file and dev file, and how many rows of which of them are held back for ``confirm``.
TASKS = {
    "MRPC": ("train", "dev", "train", 600),
    "RTE": ("train", "dev", "train", 400),
    "STS-B": ("train", "dev", "train", 1000),
    "SST-2": ("train", "dev", "train", 10_000),
    "MNLI": ("train_subset9k", "dev_matched", "dev", 4815),
    "QNLI": ("train_subset10k", "dev", "dev", 2000),
    "QQP": ("train_subset23k", "", "train", 3000),
}
QQP_DEV = 2000  # training rows that stand for its dev rows in ``explore``
SEED = 1  # of every draw


def write(source: Path, target: Path) -> None:
    """Lay out the seven tasks under ``target``, which must not exist yet."""
    for task, (train, dev, held_of, count) in TASKS.items():
        header, train_rows = _read(source / task / f"{train}.tsv")
        if dev:
            dev_header, dev_rows = _read(source / task / f"{dev}.tsv")
        else:
            dev_header = header
            dev_rows, train_rows = _split(train_rows, QQP_DEV)
        if dev_header != header and held_of == "train":
            raise ValueError(f"{task}: the columns of {train}.tsv and {dev}.tsv differ")
        _place(
            target / "whole" / task, train_rows, dev_rows, f"{dev or 'dev'}.tsv", header, dev_header
        )
        if held_of == "train":
            held, train_rows = _split(train_rows, count)
        else:
            held, dev_rows = _split(dev_rows, count)
        for folder, rows in ("explore", dev_rows), ("confirm", held):
            _place(
                target / folder / task, train_rows, rows, f"{dev or 'dev'}.tsv", header, dev_header
            )


def _place(place: Path, train: list[str], dev: list[str], name: str, *headers: str) -> None:
    place.mkdir(parents=True)
    _write(place / "train.tsv", headers[0], train)
    _write(place / name, headers[1], dev)


def _read(path: Path) -> tuple[str, list[str]]:
    header, *rows = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    return header, rows


def _write(path: Path, header: str, rows: list[str]) -> None:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8", newline="\n")


def _split(rows: list[str], count: int) -> tuple[list[str], list[str]]:
    """So many rows, drawn by the seed, and the others, both in their order."""
    chosen = set(np.random.default_rng(SEED).permutation(len(rows))[:count].tolist())
    held = [row for at, row in enumerate(rows) if at in chosen]
    return held, [row for at, row in enumerate(rows) if at not in chosen]


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
