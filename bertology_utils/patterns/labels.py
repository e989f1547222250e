"""Labelled self-attention maps (§4.1), and maps whose label is known by construction.

The data card, ``labelled_maps/README.md``, says where the maps come from, by what guideline they
were labelled, and how far two annotators agree. No text is stored, only weights.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from ..common import one_of

FOLDER = Path(__file__).parent / "labelled_maps"
BY_NORM = FOLDER / "by_norm"  # maps of what attention carries, a hundred others
# The paper's five classes (§4.1, Figure 1).
PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")
PARTS = ("natural", "enriched")
SHORTEST = 4  # wordpieces; in shorter maps every pattern looks alike


@dataclass(frozen=True)
class Picture:
    """What a label is about: the map and where [SEP] stands.

    Attributes:
        weights: shape (tokens, tokens), rows sum to 1.
        separators: True at [SEP], shape (tokens,).
    """

    weights: np.ndarray
    separators: np.ndarray


@dataclass(frozen=True)
class LabelledMap:
    """One map with its label.

    Attributes:
        weights: shape (tokens, tokens), rows sum to 1; row i is what token i attends to.
        pattern: one of :data:`PATTERNS`, after disagreements were settled.
        first, second: the two annotators' labels.
        part: "natural" (drawn at random) or "enriched" (drawn for rare patterns).
        task: the task that the encoder was fine-tuned on and the input comes from, by name.
        example: dev row of the input.
        layer, head: from 0.
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

    @property
    def picture(self) -> Picture:
        """The map as classifiers are given it; rows of half precision are made to sum to 1 exactly."""
        separators = np.isin(np.arange(len(self.weights)), self.separators)
        return Picture(self.weights / self.weights.sum(axis=1, keepdims=True), separators)


@cache
def load_maps(folder: Path = FOLDER) -> tuple[LabelledMap, ...]:
    """All labelled maps, in the order of ``labels.csv``.

    Args:
        folder: where ``labels.csv`` and ``maps.safetensors`` are.

    Raises:
        ValueError: the two files do not match, or a row has an unknown label or part;
            the message names the row.
    """
    maps = load_file(folder / "maps.safetensors")
    with (folder / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    ids = [row["id"] for row in rows]
    if sorted(ids) != sorted(maps):
        odd = sorted(set(ids) ^ set(maps)) or "one twice"
        raise ValueError(
            f"labels.csv and maps.safetensors in {folder} do not hold the same maps: {odd}"
        )
    return tuple(_labelled(row, maps[row["id"]]) for row in rows)


def _labelled(row: dict[str, str], weights: np.ndarray) -> LabelledMap:
    for column in ("pattern", "first", "second"):
        one_of(f"{column} of map {row['id']}", row[column], PATTERNS)
    one_of(f"part of map {row['id']}", row["part"], PARTS)
    length = int(row["length"])
    if weights.shape != (length, length) or not np.allclose(
        weights.sum(axis=1, dtype=np.float32), 1, atol=5e-3
    ):
        raise ValueError(
            f"map {row['id']} is no {length} x {length} map whose rows sum to 1: its shape is {weights.shape}"
        )
    columns: dict[str, Any] = {
        name: row[name] for name in ("pattern", "first", "second", "part", "task")
    }
    columns |= {name: int(row[name]) for name in ("example", "layer", "head")}
    return LabelledMap(
        weights.astype(np.float32), **columns, separators=tuple(map(int, row["separators"].split()))
    )


def targets(labelled: Sequence[LabelledMap], by: str = "pattern") -> np.ndarray:
    """Labels as indices into :data:`PATTERNS`, shape (maps,).

    Args:
        labelled: the maps.
        by: whose labels: "pattern" for the settled ones, "first" or "second" for an annotator's.
    """
    return np.array([PATTERNS.index(getattr(one, by)) for one in labelled])


def natural(folder: Path = FOLDER) -> np.ndarray:
    """True for labelled maps that were drawn at random, shape (maps,); see the data card."""
    return np.array([one.part == "natural" for one in load_maps(folder)])


def drawn(pattern: str, count: int, rng: np.random.Generator) -> list[LabelledMap]:
    """At most ``count`` maps that both annotators gave a pattern, at random."""
    maps = [one for one in load_maps() if one.first == one.second == pattern]
    return [
        maps[row] for row in sorted(rng.choice(len(maps), min(count, len(maps)), replace=False))
    ]


def disputed(one: str, other: str) -> list[LabelledMap]:
    """The labelled maps that one labelling calls one pattern and the second labelling the other."""
    return [each for each in load_maps() if {each.first, each.second} == {one, other}]


def sentence_numbers(separators: np.ndarray) -> np.ndarray:
    """The sentence of each token, from 0, shape (tokens,); [SEP] belongs to the sentence that it ends, [CLS] to the first."""
    return np.cumsum(separators) - separators


# Maps that are known by construction, with what the guideline calls each. ---

LENGTHS = (8, 16, 32, 64, 100)
EXPECTED = {
    "uniform": "heterogeneous",
    "to itself": "diagonal",
    "to the previous token": "diagonal",
    "to [CLS]": "vertical",
    "half to [CLS], half to itself": "vertical+diagonal",
    "within its own sentence": "block",
}


def constructed_maps(length: int) -> dict[str, Picture]:
    """Exact maps of two sentences of equal length, named as in :data:`EXPECTED`.

    Args:
        length: wordpieces, [CLS] and both [SEP] included.
    """
    separators = np.zeros(length, dtype=bool)
    separators[[length // 2, length - 1]] = True
    itself, first = np.eye(length), np.zeros((length, length))
    first[:, 0] = 1
    sentence = sentence_numbers(separators)
    same = (sentence[:, None] == sentence).astype(float)
    maps = {
        "uniform": np.full((length, length), 1 / length),
        "to itself": itself,
        "to the previous token": np.vstack([itself[:1], itself[:-1]]),
        "to [CLS]": first,
        "half to [CLS], half to itself": (first + itself) / 2,
        "within its own sentence": same / same.sum(axis=1, keepdims=True),
    }
    return {name: Picture(weights, separators) for name, weights in maps.items()}
