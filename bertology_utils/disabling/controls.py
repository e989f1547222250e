"""Which gains of a disabled head are real? (§4.6; the tests are ours)

Everything is paired: the same dev examples with and without the head. The
score is the one that the paper averages, accuracy or Pearson's correlation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..glue.tasks import Task, plain_metric
from ..statistics import Seed, corrected_p
from ..statistics.permutation import ONE_SIDED
from ..statistics.weighted import weighted_scores

PERMUTATIONS = 1000
SPLITS = 200


@dataclass(frozen=True)
class GainTest:
    """Gains of all variants against what chance alone would give.

    Attributes:
        gains: shape (variants,), from 0 to 1.
        better, worse: permutation p-values, corrected over all variants by the
            maximum statistic, shape (variants,).
        best_by_chance: the largest gain in each permutation among the
            variants that are not themselves worse at a corrected p below
            0.025, shape (permutations,). One that changes many predictions
            would gain most by chance, too.
    """

    gains: np.ndarray
    better: np.ndarray
    worse: np.ndarray
    best_by_chance: np.ndarray


def gain_test(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed, permutations: int = PERMUTATIONS
) -> GainTest:
    """Does any variant change the score more than chance would?

    If a head made no difference, its example's two predictions, with and
    without it, could be exchanged. Each permutation exchanges them for a random
    half of the examples, the same ones for all variants, so that what the
    variants have in common stays; a gain is compared with the largest
    standardised one over all variants (Westfall and Young, 1993).

    Args:
        task, baseline, disabled, labels: as for :func:`bertology_utils.disabling.measure.gains`.
        seed: of the permutations.
        permutations: how many.
    """
    swapped = np.random.default_rng(seed).random((permutations, len(labels))) < 0.5
    null = _swapped_gains(task, baseline, disabled, labels, swapped)
    metric = plain_metric(task)
    observed = scores_of(metric, disabled, labels) - scores_of(metric, baseline[None], labels)
    error = np.sqrt((null**2).mean(axis=0))  # its mean is 0 by construction
    scale = np.where(error > 0, error, np.inf)  # a head that changes no prediction
    better, worse = corrected_p(observed / scale, (null / scale).max(axis=1), (null / scale).min(axis=1))
    harmless = worse >= ONE_SIDED
    chance = null[:, harmless].max(axis=1) if harmless.any() else np.zeros(permutations)
    return GainTest(observed, better, worse, chance)


def _swapped_gains(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, swapped: np.ndarray
) -> np.ndarray:
    """Gains with each variant's and the whole model's predictions exchanged where ``swapped``, (permutations, variants)."""
    metric = plain_metric(task)
    if metric == "accuracy":  # one product instead of large arrays of predictions; sums of 1 and −1, exact in any order
        differences = (disabled == labels).astype(np.float64) - (baseline == labels)  # (variants, examples)
        return np.where(swapped, -1.0, 1.0) @ differences.T / len(labels)

    def gain(predicted: np.ndarray) -> np.ndarray:
        with_head, without = np.where(swapped, predicted, baseline), np.where(swapped, baseline, predicted)
        return scores_of(metric, without, labels) - scores_of(metric, with_head, labels)  # (permutations,)

    return np.stack([gain(predicted) for predicted in disabled], axis=1)


def scores_of(metric: str, predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Score of each row of predictions, (variants, examples), on the examples as they are."""
    return weighted_scores(metric, predicted, labels, np.ones((1, len(labels))))[0]


def mcnemar(baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Exact two-sided McNemar p-value of each variant of a classifier, not corrected, shape (variants,)."""
    right = baseline == labels
    p = []
    for predicted in disabled:
        lost, won = int((right & (predicted != labels)).sum()), int((~right & (predicted == labels)).sum())
        p.append(stats.binomtest(won, lost + won).pvalue if lost + won else 1.0)
    return np.array(p)


@dataclass(frozen=True)
class SelectedGain:
    """The gain of a head that was chosen for its gain.

    Attributes:
        naive: on the half on which it was chosen, shape (splits,).
        honest: on the other half, shape (splits,).
    """

    naive: np.ndarray
    honest: np.ndarray

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean honest gain.

        The splits share their examples, so more of them do not make it
        narrower without end (Nadeau and Bengio, 2003).
        """
        half = 1.96 * self.honest.std(ddof=1) * np.sqrt(1 / len(self.honest) + 1)
        return float(self.honest.mean() - half), float(self.honest.mean() + half)

    def text(self) -> str:
        """Mean honest gain and its interval, in points."""
        low, high = self.interval
        return f"{100 * self.honest.mean():+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"


def selected_gain(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed, splits: int = SPLITS
) -> SelectedGain:
    """Choose the best variant on one half of the examples, measure it on the other, over and over.

    The best of 144 heads on a dev set is partly the luckiest. On examples that
    had no say in the choice, luck does not count.

    Args:
        task, baseline, disabled, labels: as for :func:`bertology_utils.disabling.measure.gains`.
        seed: of the splits.
        splits: how many.

    Raises:
        ValueError: fewer than four examples.
    """
    n = len(labels)
    if n < 4:
        raise ValueError(f"{n} examples cannot be halved; at least 4 are needed")
    rng = np.random.default_rng(seed)
    chosen = np.zeros((splits, n), dtype=bool)
    for half in chosen:
        half[rng.permutation(n)[: n // 2]] = True
    both = np.vstack([baseline, disabled])
    first, second = (weighted_scores(plain_metric(task), both, labels, half.astype(float)) for half in (chosen, ~chosen))
    first, second = first[:, 1:] - first[:, :1], second[:, 1:] - second[:, :1]  # (splits, variants)
    best = first.argmax(axis=1)
    rows = np.arange(splits)
    return SelectedGain(first[rows, best], second[rows, best])
