"""Are the highest heads for links just those that attend to neighbours? (§4.5)

The other control, places borrowed from other inputs, is part of the ``measure``.
"""

from __future__ import annotations

import numpy as np

from ..statistics import Seed, ties


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
