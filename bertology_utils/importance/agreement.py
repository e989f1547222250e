"""Would another run, or other examples, order the heads alike?

Effects are what disabling a head costs: the rise of an example's loss. Correlations are over heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from ..statistics import Bootstrap, Seed, mean_of, rank_correlation, rank_correlations

ENOUGH = 0.8  # agreement from which one measurement may stand for another
FEWEST_EXAMPLES = 100
SAME, DIFFERENT = "the same examples", "different examples"
ORDERS = 40  # random orders of the examples, of which nested subsets are taken


def between_runs(effects: np.ndarray, seed: Seed) -> Bootstrap:
    """Rank correlation of heads' effects in two runs on the same examples, mean over pairs; heads resampled.

    Args:
        effects: shape (heads, runs), of two runs or more.
        seed: of the resampling.
    """
    pairs = combinations(effects.T, 2)
    return mean_of([rank_correlation(*pair, seed) for pair in pairs])


def held_by(effects: np.ndarray, counts: Sequence[int]) -> dict[int, float]:
    """Share of the variance between heads that lies in so many of them, those furthest from the mean.

    Args:
        effects: shape (heads, runs), of which the mean over runs is taken.
        counts: of heads.
    """
    mean = effects.mean(axis=1)
    squares = np.sort((mean - mean.mean()) ** 2)[::-1]
    return {count: float(squares[:count].sum() / squares.sum()) for count in counts}


def numbers_of_examples(most: int) -> list[int]:
    """100, 200, 400 … and half of all and all examples."""
    doubled = [FEWEST_EXAMPLES * 2**power for power in range(20)]
    return sorted({*(n for n in doubled if n < most), most // 2, most} - {0})


def by_examples(rises: np.ndarray, seed: Seed) -> dict[str, dict[int, np.ndarray]]:
    """Rank correlation of heads' effects in two runs, by the number of examples that each was measured on.

    Subsets are nested: the first so many examples of a random order. On :data:`SAME` examples both
    runs have the first ones, on :data:`DIFFERENT` examples one has the first and one the last, so
    that these are at most half of all.

    Args:
        rises: of the loss, shape (runs, heads, examples), of two runs or more.
        seed: of the orders.

    Returns:
        By :data:`SAME` or :data:`DIFFERENT` and number of examples, the mean over pairs of runs in
        each order, shape (orders,).
    """
    runs, heads, n = rises.shape
    numbers, rng = numbers_of_examples(n), np.random.default_rng(seed)
    halves = [count for count in numbers if count <= n // 2]
    first = {count: np.empty((ORDERS, runs, heads)) for count in numbers}
    last = {count: np.empty((ORDERS, runs, heads)) for count in halves}
    for at in range(ORDERS):
        sums = np.cumsum(rises[..., rng.permutation(n)], axis=2)  # over the first so many examples
        for count in numbers:
            first[count][at] = sums[..., count - 1] / count
        for count in halves:
            last[count][at] = (sums[..., -1] - sums[..., n - count - 1]) / count

    def correlated(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Mean over pairs of runs, shape (orders,)."""
        pairs = combinations(range(runs), 2)
        return np.mean([rank_correlations(one[:, a], other[:, b]) for a, b in pairs], axis=0)

    return {
        SAME: {count: correlated(first[count], first[count]) for count in numbers},
        DIFFERENT: {count: correlated(first[count], last[count]) for count in halves},
    }


def in_own_scale(effects: np.ndarray) -> np.ndarray:
    """Effects divided by their spread over heads in each run and ablation: some runs need all heads more than others.

    That changes no order, and no set of heads.

    Args:
        effects: shape (heads, runs, ablations, parts).
    """
    spread = effects.mean(axis=3, keepdims=True).std(axis=0, keepdims=True)
    return effects / np.where(spread > 0, spread, 1.0)


def shuffled(effects: np.ndarray, heads_per_layer: int, seed: Seed) -> np.ndarray:
    """Effects with heads permuted within their layers, anew in each run and ablation: a control without head effects.

    Args:
        effects: shape (heads, runs, ablations, parts).
        heads_per_layer: of the model.
        seed: of the permutations.
    """
    rng, found = np.random.default_rng(seed), effects.copy()
    heads, runs, ablations, _ = effects.shape
    layers = range(0, heads, heads_per_layer)
    for run, ablation, start in product(range(runs), range(ablations), layers):
        layer = slice(start, start + heads_per_layer)
        found[layer, run, ablation] = rng.permutation(effects[layer, run, ablation])
    return found
