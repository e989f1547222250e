"""Self-attention maps of fine-tuned encoders, labelled with the paper's five patterns (§4.1).

The folder's README is the data card: where the maps come from, the guideline,
and how far two annotators agree.  No text is stored, only weights.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from ...common import one_of

FOLDER = Path(__file__).parent
# The paper's five classes (§4.1, Figure 1).
PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
PARTS = ("natural", "enriched")


@dataclass(frozen=True)
class LabelledMap:
    """One map with its label.

    Attributes:
        weights: shape (length, length), rows sum to 1; row i is what token i attends to.
        pattern: one of :data:`PATTERNS`, after disagreements were settled.
        first: the first annotator's label.
        second: the second annotator's.
        part: "natural" (drawn at random) or "enriched" (drawn for rare patterns).
        task: the task that the encoder was fine-tuned on and the input comes from.
        example: dev row of the input.
        layer: from 0.
        head: from 0.
        separators: positions of [SEP].
    """

    weights: np.ndarray
    pattern: str
    first: str
    second: str
    part: str
    task: str
    example: int
    layer: int
    head: int
    separators: tuple[int, ...]

    @property
    def group(self) -> tuple[int, int]:
        """What must not be on both sides of a split: the head, whatever task it was fine-tuned on.

        All encoders started from one model, and most heads keep their pattern.
        """
        return self.layer, self.head


@cache
def load_maps(folder: Path = FOLDER) -> tuple[LabelledMap, ...]:
    """All labelled maps, in the order of ``labels.csv``.

    Args:
        folder: Where ``labels.csv`` and ``maps.safetensors`` are.

    Raises:
        ValueError: The two files do not match, or a row has an unknown label or part;
            the message names the row.
    """
    maps = load_file(folder / "maps.safetensors")
    with (folder / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ids = [row["id"] for row in rows]
    if sorted(ids) != sorted(maps):
        odd = sorted(set(ids) ^ set(maps)) or "one twice"
        raise ValueError(f"labels.csv and maps.safetensors in {folder} do not hold the same maps: {odd}")
    return tuple(_labelled(row, maps[row["id"]]) for row in rows)


def _labelled(row: dict[str, str], weights: np.ndarray) -> LabelledMap:
    for column in ("pattern", "first", "second"):
        one_of(f"{column} of map {row['id']}", row[column], PATTERNS)
    one_of(f"part of map {row['id']}", row["part"], PARTS)
    length = int(row["length"])
    if weights.shape != (length, length) or not np.allclose(weights.sum(axis=1, dtype=np.float32), 1, atol=5e-3):
        raise ValueError(f"map {row['id']} is no {length} x {length} map whose rows sum to 1: its shape is {weights.shape}")
    return LabelledMap(
        weights.astype(np.float32),
        row["pattern"],
        row["first"],
        row["second"],
        row["part"],
        row["task"],
        int(row["example"]),
        int(row["layer"]),
        int(row["head"]),
        tuple(int(position) for position in row["separators"].split()),
    )
