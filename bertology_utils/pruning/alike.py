"""Do heads of one layer attend more alike than those of two (Clark et al., 2019, §6; Bian et al., 2021)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention import Batch, observe
from ..attention.hooks import shape_of
from ..cache import Lazy, cached
from ..glue import Task
from ..statistics import Bootstrap, Seed, bootstrap_mean

if TYPE_CHECKING:
    from ..lab import Lab

COMPARED = 100  # rows over which the distances of maps are averaged


def distances_of(lab: Lab, task: Task, model: Lazy) -> np.ndarray:
    """Distances between all heads of a model, from the cache; see :func:`head_distances`."""
    rows = lab.rows(task, "swept", COMPARED)
    return cached(head_distances, model, lab.lazy_batches(task, rows))


def head_distances(model, batches: Sequence[Batch]) -> np.ndarray:
    """See :class:`HeadDistances`; shape (examples, layers, heads, layers, heads)."""
    return observe(model, batches, {"": HeadDistances(shape_of(model)[0])})[""]


class HeadDistances:
    """Measurement: Jensen–Shannon divergence between the maps of every two heads, in bits.

    From 0 to 1; the mean over an input's tokens, whose rows of attention are distributions (Clark
    et al., 2019, §6, who sum).

    Args:
        layers: of the model.
    """

    def __init__(self, layers: int):
        self._layers = layers
        self._maps: list[torch.Tensor] = []
        self._rows: dict[int, np.ndarray] = {}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Keep one layer's maps until those of all are there."""
        self._maps.append(maps)
        if len(self._maps) < self._layers:
            return
        heads = maps.shape[1]
        # (examples, layers · heads, queries, keys)
        every, self._maps = torch.cat(self._maps, dim=1), []
        weights = (batch.mask / batch.lengths[:, None])[:, None].to(maps)  # (examples, 1, queries)
        own = (_entropy(every) * weights).sum(dim=2)  # (examples, layers · heads)
        distances = maps.new_zeros(len(maps), self._layers * heads, self._layers * heads)
        for head in range(self._layers * heads - 1):
            mixed = (every[:, head : head + 1] + every[:, head + 1 :]) / 2
            mean = (own[:, head : head + 1] + own[:, head + 1 :]) / 2
            between = (_entropy(mixed) * weights).sum(dim=2) - mean
            distances[:, head, head + 1 :] = distances[:, head + 1 :, head] = between
        shaped = distances.view(-1, self._layers, heads, self._layers, heads).cpu().numpy()
        self._rows |= dict(zip(batch.index, shaped, strict=True))

    def compute(self) -> np.ndarray:
        """Shape (examples, layers, heads, layers, heads), examples in the order of the data."""
        return np.stack([self._rows[index] for index in sorted(self._rows)])


def _entropy(maps: torch.Tensor) -> torch.Tensor:
    """Of each row, in bits: (…, queries, keys) to (…, queries)."""
    return -torch.special.xlogy(maps, maps).sum(dim=-1) / np.log(2)


def closer_within(distances: np.ndarray, seed: Seed) -> Bootstrap:
    """Mean distance of heads of two layers minus that of heads of one, examples resampled.

    Args:
        distances: of :class:`HeadDistances`.
        seed: of the resampling.
    """
    _, layers, heads = distances.shape[:3]
    same = np.kron(np.eye(layers), np.ones((heads, heads))).astype(bool)
    within, across = same & ~np.eye(layers * heads, dtype=bool), ~same
    flat = distances.reshape(len(distances), layers * heads, layers * heads).astype(float)
    return bootstrap_mean(flat[:, across].mean(axis=1) - flat[:, within].mean(axis=1), seed)
