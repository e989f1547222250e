"""Where attention goes: to special tokens, punctuation, neighbours, or anywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..annotation.inputs import AnnotatedInput
from ..annotation.token_types import LINGUISTIC, token_types
from ..attention import Batch, received
from .measure import side_by_side

# In this order: a token that is two of these counts as the first.
DESTINATIONS = ("[CLS]", "[SEP]", "punctuation", "previous", "self", "next", "all else")
NEIGHBOURS = {"previous": -1, "self": 0, "next": 1}


def marks(annotated: AnnotatedInput) -> np.ndarray:
    """[CLS], [SEP] and punctuation of an input, shape (3, wordpieces)."""
    cls, separators, points = token_types(annotated)[len(LINGUISTIC) :]
    return np.stack([cls, separators & ~cls, points & ~separators & ~cls])  # a text can spell out "[SEP]"


@dataclass(frozen=True)
class FlowShares:
    """What :class:`Flow` computes; shares of the average token's attention, from 0 to 1.

    Attributes:
        destinations: shape (examples, layers, heads, 7), in the order of
            :data:`DESTINATIONS`; they sum to 1.
        neighbours: attention to the previous token, the token itself and the
            next, whatever these are, shape (examples, layers, heads, 3).
    """

    destinations: np.ndarray
    neighbours: np.ndarray


class Flow:
    """Measurement: how each head divides its attention.

    Args:
        marks: per example of the data, from :func:`marks`.
    """

    def __init__(self, marks: Sequence[np.ndarray]):
        self._marks = marks
        self._rows: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._now = torch.empty(0)

    def start(self, batch: Batch) -> None:
        """Lay the batch's marks side by side: shape (examples, 3, tokens)."""
        self._now = side_by_side(self._marks, batch).float()
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        to_marks = torch.einsum("ehk,emk->ehm", received(maps, batch), self._now.to(maps.dtype))
        other = 1 - self._now.amax(dim=1)  # (examples, tokens): words
        neighbours, words = [], []
        for offset in NEIGHBOURS.values():
            weights = torch.diagonal(maps, offset, dim1=2, dim2=3)  # (examples, heads, queries that have this neighbour)
            real = batch.mask[:, max(0, -offset) : maps.shape[2] - max(0, offset)]
            weights = weights * real[:, None] / batch.lengths[:, None, None]
            keys = other[:, max(0, offset) : maps.shape[3] + min(0, offset)]
            neighbours.append(weights.sum(dim=2))
            words.append((weights * keys[:, None]).sum(dim=2))
        shares = torch.cat([to_marks, torch.stack(words, dim=2)], dim=2)  # (examples, heads, 6)
        shares = torch.cat([shares, 1 - shares.sum(dim=2, keepdim=True)], dim=2)
        destinations = shares.cpu().double().numpy()
        around = torch.stack(neighbours, dim=2).cpu().double().numpy()
        for index, *both in zip(batch.index, destinations, around, strict=True):
            self._rows[index].append(tuple(both))

    def compute(self) -> FlowShares:
        """Shares of all examples, in the order of the data."""
        rows = [self._rows[index] for index in sorted(self._rows)]
        return FlowShares(*(np.array([[layer[part] for layer in row] for row in rows]) for part in (0, 1)))
