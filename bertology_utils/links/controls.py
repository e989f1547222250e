"""Are the highest heads for links just those that attend to neighbours? (§4.5)

The other control, places borrowed from other inputs, is part of the ``measure``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..statistics import Bootstrap, Seed, rank_correlation, ties


def candidates_are_diagonal(
    scores: np.ndarray, neighbours: np.ndarray, seed: Seed, count: int = 5, draws: int = 10_000
) -> tuple[float, float]:
    """Do the heads with the highest scores attend to neighbours more than others do (§4.5)?

    Args:
        scores: along links, shape (heads,).
        neighbours: attention to the previous or next token, shape (heads,).
        seed: of the draws.
        count: how many heads are candidates.
        draws: random sets of heads to compare with.

    Returns:
        The share of random sets that attend to neighbours less, by mean rank;
        and the candidates' mean rank, 1 for the head that does so most.
    """
    ranks = ties.ranks(neighbours)
    candidates = ranks[ties.by_size(scores)[:count]].mean()
    rng = np.random.default_rng(seed)
    drawn = np.array([ranks[rng.choice(ranks.size, count, replace=False)].mean() for _ in range(draws)])
    return float(np.mean(drawn > candidates)), float(candidates)


def with_neighbours(values: Mapping[str, np.ndarray], neighbours: np.ndarray, seed: Seed) -> dict[str, Bootstrap]:
    """Does what heads do along links go with their attention to neighbours? Spearman's ρ, heads resampled.

    Args:
        values: by type of link, shape (layers, heads).
        neighbours: attention to the previous or next token, same shape.
        seed: of the resampling.
    """
    flat = np.ravel(neighbours)
    return {name: rank_correlation(np.ravel(of_type), flat, seed) for name, of_type in values.items()}


def highest_five(
    scores: Mapping[str, np.ndarray], neighbours: np.ndarray, seed: Seed
) -> tuple[dict[str, float], dict[str, float]]:
    """:func:`candidates_are_diagonal` for each type of link: the shares of random fives that are lower, and the mean ranks.

    Args:
        scores: by type of link, shape (layers, heads).
        neighbours: attention to the previous or next token, same shape.
        seed: of the draws.
    """
    found = {kind: candidates_are_diagonal(heads.ravel(), neighbours.ravel(), seed) for kind, heads in scores.items()}
    return {kind: share for kind, (share, _) in found.items()}, {kind: rank for kind, (_, rank) in found.items()}
