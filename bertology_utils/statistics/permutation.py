"""Permutation tests of many statistics at once, corrected by their maximum (Westfall and Young, 1993)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .resampling import RESAMPLES, Seed

LEVEL = 0.05  # of everything that is decided, two-sided
ONE_SIDED = LEVEL / 2  # of a p value that looks to one side


def max_statistic(differences: np.ndarray, seed: Seed, draws: int = RESAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Permutation tests of many paired differences at once, corrected by the maximum statistic.

    If nothing made a difference, an example's differences could as well have
    the other sign. Each draw flips the signs of a random half of the examples,
    for all statistics alike, so that what they have in common stays; a mean is
    compared with the largest standardised one of each draw (Westfall and
    Young, 1993).

    Args:
        differences: shape (examples, …); NaN where an example says nothing.
        seed: of the draws.
        draws: how many.

    Returns:
        p-values of "above 0" and of "below 0", each of shape (…).
    """
    shape = differences.shape[1:]
    flat = np.nan_to_num(differences.reshape(len(differences), -1))  # (examples, statistics)
    spread = np.sqrt((flat**2).sum(axis=0))
    scale = np.where(spread > 0, spread, np.inf)  # a statistic without any difference
    signs = np.where(np.random.default_rng(seed).random((draws, len(flat))) < 0.5, -1.0, 1.0)
    drawn = signs @ flat / scale
    above, below = corrected_p(flat.sum(axis=0) / scale, drawn.max(axis=1), drawn.min(axis=1))
    return above.reshape(shape), below.reshape(shape)


def corrected_p(observed: np.ndarray, largest: np.ndarray, smallest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Permutation p-values corrected over many statistics (Westfall and Young, 1993).

    Args:
        observed: standardised statistics, shape (statistics,).
        largest, smallest: of all of them in each draw, shape (draws,).

    Returns:
        p-values of "above" and of "below", each of shape (statistics,).
    """
    draws, tie = len(largest), 1e-9  # what is equal but for rounding counts as equal
    above = (1 + (largest[:, None] >= observed - tie).sum(axis=0)) / (1 + draws)
    below = (1 + (smallest[:, None] <= observed + tie).sum(axis=0)) / (1 + draws)
    return above, below


@dataclass(frozen=True)
class ManyTest:
    """Means of many paired differences against a least effect.

    Attributes:
        means: over the examples that say something, shape (…); NaN where none does.
        above, below: p values, one-sided, that a mean is above, or below, the
            least effect; corrected over all of them, same shape.
        n: examples that say something, same shape.
    """

    means: np.ndarray
    above: np.ndarray
    below: np.ndarray
    n: np.ndarray


def many_test(differences: np.ndarray, least: float, seed: Seed) -> ManyTest:
    """Which mean differences are above a least effect, and which below? By :func:`max_statistic`.

    Args:
        differences: shape (examples, …); NaN where an example says nothing.
        least: the smallest effect that counts.
        seed: of the draws.
    """
    n = np.isfinite(differences).sum(axis=0)
    means = np.nansum(differences, axis=0) / np.where(n, n, np.nan)
    above, below = max_statistic(differences - least, seed)
    return ManyTest(means, np.where(n, above, 1.0), np.where(n, below, 1.0), n)
