"""What is shown before anything is counted: plain examples of the five patterns, one input, and one head (§4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from ..attention import Batch
from ..common import Head
from ..statistics.ties import largest
from .baseline import STATISTICS, map_statistics
from .labelled_maps import LabelledMap, load_maps
from .logistic import statistics_of

SHORTEST, LONGEST = 20, 40  # wordpieces: enough for a pattern, and few enough for its lines to show on a small picture

Statistics = dict[str, float]


def _column(of: Statistics) -> float:
    return of["strongest column"]


def _band(of: Statistics) -> float:
    return of["attention to itself"] + of["to the previous token"] + of["to the next token"]


# By pattern: what a map that shows it plainly has much of.
_PLAINNESS: dict[str, Callable[[Statistics], float]] = {
    "vertical": _column,
    "diagonal": _band,
    "vertical+diagonal": lambda of: min(_column(of), _band(of)),
    "block": lambda of: of["same sentence, above chance"],
    "heterogeneous": lambda of: -max(_column(of), _band(of)),
}

_EXTREMES = {"strongest column": "vertical", "strongest diagonal": "diagonal", "least of both": "heterogeneous"}


def plainest_maps() -> dict[str, LabelledMap]:
    """For each pattern the labelled map that shows it most plainly.

    Of the maps that were drawn at random, have two sentences and 20 to 40
    wordpieces, and got the same label twice: the one with the strongest column
    (vertical), the most attention to itself and to both neighbours (diagonal),
    the most of whichever is less (vertical+diagonal), the most attention within
    a sentence (block), or the least of column and diagonal (heterogeneous).
    """
    found: dict[str, LabelledMap] = {}
    for pattern, plainness in _PLAINNESS.items():
        own = [one for one in load_maps() if one.pattern == one.first == one.second == pattern and _fits(one)]
        found[pattern] = max(own, key=lambda one: plainness(_statistics(one)))
    return found


def extreme_heads(maps: torch.Tensor, separators: torch.Tensor) -> dict[str, Head]:
    """The heads with the strongest column, with most attention to a token itself and its neighbours, and least of both.

    Args:
        maps: of one input, shape (layers, heads, tokens, tokens).
        separators: True at [SEP], shape (tokens,).
    """
    flat = maps.flatten(0, 1)
    found = statistics_of(flat, separators.expand(len(flat), -1)).cpu().numpy()
    heads: dict[str, Head] = {}
    for name, pattern in _EXTREMES.items():
        plainness = [_PLAINNESS[pattern](dict(zip(STATISTICS, row, strict=True))) for row in found.tolist()]
        layer, head = largest(np.reshape(plainness, maps.shape[:2]))
        heads[name] = layer, head
    return heads


def most_changed(before: np.ndarray, after: np.ndarray) -> Head:
    """The head whose shares of the patterns differ most; of ties the first.

    Args:
        before, after: shape (layers, heads, patterns).
    """
    layer, head = largest(np.abs(after - before).sum(axis=-1) / 2)
    return layer, head


def drawn(labelled: Sequence[LabelledMap], pattern: str, count: int, rng: np.random.Generator) -> list[LabelledMap]:
    """At most ``count`` labelled maps of a pattern, at random."""
    maps = [one for one in labelled if one.pattern == pattern]
    return [maps[row] for row in sorted(rng.choice(len(maps), min(count, len(maps)), replace=False))]


def single(batches: Sequence[Batch], index: int) -> Batch:
    """One example of a pass by itself, without padding.

    Args:
        batches: of the pass.
        index: its position in the data.

    Raises:
        ValueError: no such example.
    """
    for batch in batches:
        if index in batch.index:
            row = batch.index.index(index)
            inputs = {name: tensor[row][batch.mask[row]][None] for name, tensor in batch.inputs.items()}
            return Batch(inputs, [index], None if batch.labels is None else batch.labels[row : row + 1])
    raise ValueError(f"no example {index} among these batches")


def of_length(batches: Sequence[Batch], length: int, among: Sequence[int] | np.ndarray = ()) -> Batch:
    """The first example of those nearest to a length in wordpieces, by itself.

    Args:
        batches: of the pass.
        length: how long it should be.
        among: positions in the data to choose from; if empty, all.
    """
    lengths = {index: own for batch in batches for index, own in zip(batch.index, batch.lengths.tolist(), strict=True)}
    chosen = sorted(int(index) for index in among) or sorted(lengths)
    return single(batches, min(chosen, key=lambda index: abs(lengths[index] - length)))


def _fits(one: LabelledMap) -> bool:
    return one.part == "natural" and len(one.separators) == 2 and SHORTEST <= len(one.weights) <= LONGEST


def _statistics(one: LabelledMap) -> Statistics:
    separators = np.isin(np.arange(len(one.weights)), one.separators)
    return dict(zip(STATISTICS, map_statistics(one.weights, separators).tolist(), strict=True))
