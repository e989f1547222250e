"""Attention along links between two words, beside the same cells at other inputs' places (§4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..attention import Batch, received
from .token_links import LINK_TYPES, TokenLink


@dataclass(frozen=True)
class TokenLinkScores:
    """What :class:`TokenLinkAttention` computes. An example's value is the mean over its links; NaN where it has none.

    Attributes:
        actual: largest weight among a link's cells, shape (examples, types, layers, heads).
        matched: the same of the links that have places to compare them with.
        elsewhere: mean over these places.
        counts: links per type, and how many of them have such places, shape (types, 2).
    """

    actual: np.ndarray
    matched: np.ndarray
    elsewhere: np.ndarray
    counts: np.ndarray


class TokenLinkAttention:
    """Measurement: the weight along every link, and at the places it is compared with.

    Args:
        links: per example of the data, from :func:`bertology_utils.links.token_links.borrow`.
        centred: subtract from every weight what the token gets from the
            average token, so that a head's preference for certain words,
            whoever is looking, does not count.
    """

    def __init__(self, links: Sequence[dict[str, list[TokenLink]]], centred: bool = False):
        self._links = links
        self._centred = centred
        self._rows: dict[int, list[np.ndarray]] = {}
        self._places = _Places([], 0)

    def start(self, batch: Batch) -> None:
        """List the cells of the batch's links."""
        starts = batch.starts.tolist()
        self._places = _Places([self._links[index] for index in batch.index], batch.mask.shape[1], starts)
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        if self._centred:
            maps = maps - received(maps, batch)[:, :, None]
        values = self._places.means(maps)  # (3, examples, types, heads)
        for row, index in enumerate(batch.index):
            self._rows[index].append(values[:, row])

    def compute(self) -> TokenLinkScores:
        """The values of all examples, in the order of the data."""
        values = np.stack([np.stack(self._rows[index], axis=2) for index in sorted(self._rows)], axis=1)
        all_links = [[link for by_type in self._links for link in by_type[name]] for name in LINK_TYPES]
        counts = np.array([[len(of_type), sum(len(link.places) > 0 for link in of_type)] for of_type in all_links])
        actual, matched, elsewhere = values
        return TokenLinkScores(actual, matched, elsewhere, counts)


class _Places:
    """The cells of a batch's links and of their places, as indices into its flattened maps."""

    def __init__(self, examples: list[dict[str, list[TokenLink]]], tokens: int, starts: Sequence[int] = ()):
        self.shape = len(examples), len(LINK_TYPES)
        # per link
        cells: list[np.ndarray] = []
        sizes: list[int] = []
        places: list[int] = []
        group: list[int] = []
        for row, by_type in enumerate(examples):
            for number, name in enumerate(LINK_TYPES):
                for link in by_type[name]:
                    for rows, columns in ((link.rows, link.columns), *link.places):
                        cells.append(((row * tokens) + rows + starts[row]) * tokens + columns + starts[row])
                        sizes.append(len(rows))
                    places.append(1 + len(link.places))
                    group.append(row * len(LINK_TYPES) + number)
        self.group = np.array(group, dtype=int)
        self.cells = torch.from_numpy(np.concatenate(cells)) if cells else None
        self.place_starts = np.cumsum(sizes, dtype=int) - np.array(sizes, dtype=int)
        self.places = np.array(places, dtype=int)
        self.link_starts = np.cumsum(self.places) - self.places

    def means(self, maps: torch.Tensor) -> np.ndarray:
        """Means over links of (actual, matched, elsewhere), shape (3, examples, types, heads)."""
        heads = maps.shape[1]
        found = np.full((3, *self.shape, heads), np.nan)
        if self.cells is None:
            return found
        by_head = maps.transpose(0, 1).reshape(heads, -1)  # (heads, examples · tokens · tokens)
        weights = by_head[:, self.cells.to(maps.device)].cpu().double().numpy()
        largest = np.maximum.reduceat(weights, self.place_starts, axis=1)  # (heads, places)
        actual = largest[:, self.link_starts]  # (heads, links)
        movable = self.places > 1
        others = (np.add.reduceat(largest, self.link_starts, axis=1) - actual)[:, movable] / (self.places[movable] - 1)
        for part, (values, group) in enumerate(
            [(actual, self.group), (actual[:, movable], self.group[movable]), (others, self.group[movable])]
        ):
            self._mean(values, group, found[part].reshape(-1, heads))
        return found

    @staticmethod
    def _mean(values: np.ndarray, group: np.ndarray, into: np.ndarray) -> None:
        """Means of (heads, links) over the links of each group, into (groups, heads)."""
        if len(group):
            groups, starts, counts = np.unique(group, return_index=True, return_counts=True)  # links stand group by group
            into[groups] = (np.add.reduceat(values, starts, axis=1) / counts).T
