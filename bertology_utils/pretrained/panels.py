"""Every head beside the same head on a published panel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common import Head, head_name
from ..statistics import Bootstrap, Seed, rank_correlation
from ..statistics.ties import heads_by_size

TOP = 10  # heads that are compared as the highest


@dataclass(frozen=True)
class Comparison:
    """One panel here beside the published one.

    Attributes:
        rank: Spearman's correlation over heads, heads resampled.
        difference: here minus published, of the head where it is largest.
        where: that head, (layer, head) from 0.
        common: of the ten highest heads, how many are so in both.
    """

    rank: Bootstrap
    difference: float
    where: Head
    common: int

    def row(self) -> dict[str, object]:
        """For a table; heads from 1."""
        return {
            "rank correlation": self.rank.text(1, 2),
            "largest difference": f"{self.difference:+.2f}",
            "at head": head_name(*self.where),
            f"of the {TOP} highest, in common": self.common,
        }

    def summary(self) -> dict[str, object]:
        """For the results file; heads from 1."""
        return {
            "rank": self.rank.summary(),
            "difference": self.difference,
            "where": head_name(*self.where),
            "common": self.common,
        }


def compare(here: np.ndarray, published: np.ndarray, seed: Seed) -> Comparison:
    """Compare two panels.

    Args:
        here, published: mean weight of every head, both of shape (layers, heads).
        seed: of the resampling of heads.

    Raises:
        ValueError: of two shapes.
    """
    if here.shape != published.shape:
        raise ValueError(f"panels of {here.shape} and {published.shape} (layers, heads) have no heads in common to compare")
    apart = here - published
    layer, head = np.unravel_index(np.abs(apart).argmax(), apart.shape)
    highest = [set(heads_by_size(panel)[:TOP]) for panel in (here, published)]
    return Comparison(
        rank_correlation(here.ravel(), published.ravel(), seed),
        float(apart[layer, head]),
        (int(layer), int(head)),
        len(highest[0] & highest[1]),
    )
