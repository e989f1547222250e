"""Sets of cells of an attention map, such as those of a link between two words: the largest weight in each (§4.2, §4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from .batches import Batch, received

BORROWED = 8  # places from other inputs, for each link at most
Cells = np.ndarray  # rows (attending) and columns (attended to) of a map's cells, shape (2, cells)


def cells_between(rows: Sequence[int], columns: Sequence[int]) -> Cells:
    """The cells from each of some tokens to each of some others."""
    return np.stack([np.repeat(rows, len(columns)), np.tile(columns, len(rows))])


def as_set(cells: Cells) -> set[tuple[int, int]]:
    """Cells as pairs (row, column)."""
    return set(zip(*cells.tolist(), strict=True))


def borrow_places(
    places: Sequence[Cells],
    own: set[tuple[int, int]],
    rng: np.random.Generator,
    shift: int = 0,
) -> list[Cells]:
    """Up to :data:`BORROWED` places of other inputs' links, drawn at random, that share no cell with an input's own links.

    Args:
        places: cells to draw from.
        own: cells of the input's own links.
        rng: draws.
        shift: by how many tokens the places are moved.
    """
    drawn = (places[at] + shift for at in rng.permutation(len(places)))
    return [*islice((cells for cells in drawn if own.isdisjoint(as_set(cells))), BORROWED)]


class StrongestCells:
    """Measurement: the largest weight in each of an input's sets of cells, for every head.

    Args:
        sets: per example of the data, its sets of cells; none is empty.
        centred: subtract from every weight what the token gets from the average token, so that a
            head's preference for certain words, whoever attends, does not count.
    """

    def __init__(self, sets: Sequence[Sequence[Cells]], centred: bool = False):
        self._cells = [np.hstack([np.empty((2, 0), dtype=int), *several]) for several in sets]
        self._sizes = [[cells.shape[1] for cells in several] for several in sets]
        self._centred = centred
        self._values: dict[int, list[np.ndarray]] = {}
        self._now = torch.empty(0)

    def start(self, batch: Batch) -> None:
        """Lay the cells of the batch's examples side by side: shape (3, cells), of example, row and column."""
        cells = [
            np.insert(self._cells[index], 0, row, axis=0) for row, index in enumerate(batch.index)
        ]
        self._now = torch.from_numpy(np.hstack(cells)).to(batch.mask.device)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        if self._centred:
            maps = maps - received(maps, batch)[:, :, None]
        example, row, column = self._now
        weights = maps[example, :, row, column].cpu().numpy()  # (cells, heads)
        sizes = [self._sizes[index] for index in batch.index]
        starts = np.cumsum([0, *np.concatenate(sizes)], dtype=int)[:-1]
        largest = np.maximum.reduceat(weights, starts, axis=0)  # (sets, heads)
        ends = np.cumsum([len(of_example) for of_example in sizes])[:-1]
        for index, values in zip(batch.index, np.split(largest, ends), strict=True):
            self._values.setdefault(index, []).append(values)

    def compute(self) -> Any:
        """Per example, shape (sets, layers, heads)."""
        return [np.stack(self._values[index], axis=1) for index in sorted(self._values)]
