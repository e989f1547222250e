"""Would another run, or other examples, order the heads alike?

Effects are what disabling a head costs: the rise of an example's loss. Correlations are over heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..statistics import (
    PRIOR,
    Bootstrap,
    Seed,
    bootstrap,
    mean_of,
    rank_correlation,
    rank_correlations,
    rank_of,
)
from .components import Components

ENOUGH = 0.8  # agreement from which one measurement may stand for another
FEWEST = 0.3  # reliability below which a correlation cannot be corrected
FEWEST_EXAMPLES = 100
SAME, DIFFERENT = "the same examples", "different examples"
ORDERS = 40  # random orders of the examples, of which nested subsets are taken
DRAWS = 400


def between_runs(effects: np.ndarray, seed: Seed) -> Bootstrap:
    """Rank correlation of heads' effects in two runs on the same examples, mean over pairs; heads resampled.

    Args:
        effects: shape (heads, runs).
        seed: of the resampling.

    Raises:
        ValueError: one run.
    """
    pairs = list(combinations(range(_several(effects.shape[1])), 2))
    return mean_of([rank_correlation(effects[:, a], effects[:, b], seed) for a, b in pairs])


def _several(runs: int) -> int:
    if runs < 2:
        raise ValueError(
            "one run: whether another would order the heads alike cannot be told; train two or more"
        )
    return runs


def linear(effects: np.ndarray, seed: Seed) -> Bootstrap:
    """Pearson's correlation of heads' effects in two runs, mean over pairs; heads resampled.

    Variances, and so this correlation, are about the few heads that do most.

    Args:
        effects: shape (heads, runs), of two runs or more.
        seed: of the resampling.
    """
    upper = np.triu_indices(_several(effects.shape[1]), 1)

    def correlation(heads: np.ndarray) -> float:
        return float(np.corrcoef(effects[heads].T)[upper].mean())

    return bootstrap(correlation, len(effects), seed)


def without_largest(effects: np.ndarray, count: int) -> np.ndarray:
    """Effects without the heads whose mean over runs lies furthest from that of all heads.

    Args:
        effects: shape (heads, runs).
        count: of the heads that are left out.
    """
    return effects[_by_distance(effects)[count:]]


def held_by(effects: np.ndarray, counts: Sequence[int]) -> dict[int, float]:
    """Share of the variance between heads that lies in so many of them, those furthest from the mean.

    Args:
        effects: shape (heads, runs), of which the mean over runs is taken.
        counts: of heads.
    """
    mean = effects.mean(axis=1)
    squares = ((mean - mean.mean()) ** 2)[_by_distance(effects)]
    return {count: float(squares[:count].sum() / squares.sum()) for count in counts}


def holding(effects: np.ndarray, share: float) -> int:
    """The fewest heads that hold this share of the variance between heads; see :func:`held_by`."""
    shares = held_by(effects, range(1, len(effects) + 1))
    return next(count for count, held in shares.items() if held >= share - 1e-9)


def _by_distance(effects: np.ndarray) -> np.ndarray:
    mean = effects.mean(axis=1)
    return np.argsort(-np.abs(mean - mean.mean()), kind="stable")


# By the number of examples


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
        rises: of the loss, shape (runs, heads, examples).
        seed: of the orders.

    Returns:
        By :data:`SAME` or :data:`DIFFERENT` and number of examples, the mean over pairs of runs in
        each order, shape (orders,).
    """
    runs, heads, n = rises.shape
    numbers, rng = numbers_of_examples(n), np.random.default_rng(seed)
    pairs = list(combinations(range(_several(runs)), 2))
    borders = sorted({*numbers, *(n - count for count in numbers)} - {0})
    first = {count: np.empty((ORDERS, runs, heads)) for count in numbers}
    last = {count: np.empty((ORDERS, runs, heads)) for count in numbers}
    for at in range(ORDERS):
        parts = np.split(rises[..., rng.permutation(n)], borders, axis=2)
        sums = np.cumsum([part.sum(axis=2) for part in parts], axis=0)
        until = {0: np.zeros((runs, heads))} | dict(zip(borders, sums, strict=False))
        for count in numbers:
            first[count][at] = until[count] / count
            last[count][at] = (until[n] - until[n - count]) / count

    def correlated(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Mean over pairs of runs, shape (orders,)."""
        rhos = [rank_correlations(one[:, a], other[:, b]) for a, b in pairs]
        return np.mean(rhos, axis=0)

    halves = [count for count in numbers if count <= n // 2]
    return {
        SAME: {count: correlated(first[count], first[count]) for count in numbers},
        DIFFERENT: {count: correlated(first[count], last[count]) for count in halves},
    }


def expected(
    components: Components, share: float, seed: Seed, same: bool = False, draws: int = DRAWS
) -> float:
    """Rank correlation of heads' effects in two new runs, by the components.

    The true effects are the measured ones, drawn together as far as they overstate how heads
    differ. Noise is scaled per head by its observed variability, since few heads vary most; what few
    runs say of that is drawn towards the head's variability over runs and examples, of which much is
    known (as in :func:`bertology_utils.statistics.moderated`).

    Args:
        components: of heads' effects in two runs or more by one ablation, best of
            :func:`in_own_scale`.
        share: of the examples at hand; above 1 for more, infinite for any number.
        seed: of the draws.
        same: both runs are measured on the same new examples, instead of each on its own.
        draws: pairs of measurements.
    """
    mean, raw = components.effects.mean(axis=(1, 2, 3)), components.raw
    relative = {at: sizes / max(sizes.mean(), 1e-300) for at, sizes in components.squares.items()}
    usual = relative["training", "part"]
    moved = {}  # the component of each head, shape (heads,)
    for at, own in relative.items():
        degrees = components.degrees(at)
        moved[at] = max(raw[at], 0.0) * (degrees * own + PRIOR * usual) / (degrees + PRIOR)
    kept = np.sqrt(max(raw[()], 0.0) / max(mean.var(ddof=1), 1e-300))
    truth = mean.mean() + kept * (mean - mean.mean())
    parts, rng = share * components.levels["part"], np.random.default_rng(seed)
    of_run = moved["training",] + moved["training", "part"] / parts
    of_examples = moved["part",] / parts

    def noise(variance: np.ndarray | float) -> np.ndarray:
        return np.sqrt(variance) * rng.standard_normal((draws, len(mean)))

    shared = noise(of_examples)
    first = truth + noise(of_run) + shared
    second = truth + noise(of_run) + (shared if same else noise(of_examples))
    return _mean(rank_correlations(first, second))


def _mean(values: np.ndarray) -> float:
    """Of those that are known; NaN where none is."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def in_own_scale(effects: np.ndarray) -> np.ndarray:
    """Effects divided by their spread over heads in each run and ablation: some runs need all heads more than others.

    That changes no order, and no set of heads.

    Args:
        effects: shape (heads, runs, ablations, parts).
    """
    spread = effects.mean(axis=3, keepdims=True).std(axis=0, keepdims=True)
    return effects / np.where(spread > 0, spread, 1.0)


# Controls


def corrected(cheap: np.ndarray, effects: np.ndarray) -> dict[str, float]:
    """How a cheap measure of heads goes with their effects, in rank correlations, and what seeds hide of it.

    Args:
        cheap, effects: of every run, shape (heads, runs).

    Returns:
        "of the measure" and "of the effect": between two runs, the reliability of each;
        "measured": in one run; "corrected": between one run's measure and another's effect, for
        both reliabilities (Spearman, 1904), NaN where either is below :data:`FEWEST`.
    """
    count = cheap.shape[1]
    ordered = [(a, b) for a in range(count) for b in range(count) if a != b]
    own, other = (
        float(np.mean([rank_of(of[:, a], of[:, b]) for a, b in ordered])) for of in (cheap, effects)
    )
    same = float(np.mean([rank_of(cheap[:, at], effects[:, at]) for at in range(count)]))
    across = float(np.mean([rank_of(cheap[:, a], effects[:, b]) for a, b in ordered]))
    able = min(own, other) >= FEWEST
    return {
        "of the measure": own,
        "of the effect": other,
        "measured": same,
        "corrected": across / float(np.sqrt(own * other)) if able else float("nan"),
    }


def shuffled(effects: np.ndarray, heads_per_layer: int, seed: Seed) -> np.ndarray:
    """Effects with heads permuted within their layers, anew in each run and ablation: a control without head effects.

    Args:
        effects: shape (heads, runs, ablations, parts).
        heads_per_layer: of the model.
        seed: of the exchanges.
    """
    rng, found = np.random.default_rng(seed), effects.copy()
    for run in range(effects.shape[1]):
        for ablation in range(effects.shape[2]):
            for start in range(0, len(effects), heads_per_layer):
                order = start + rng.permutation(heads_per_layer)
                found[start : start + heads_per_layer, run, ablation] = effects[
                    order, run, ablation
                ]
    return found
