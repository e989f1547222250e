"""Decisions: permutation tests of many statistics at once, rank correlations, and ties.

Another processor changes a measurement in its fourth digit at most, a p value
or a share of resamples by a few draws. Whatever is chosen or decided by less
than that would differ from machine to machine: it is a tie, and a tie is said.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from ..common import Head, head_name, one_based
from .estimates import RESAMPLES, ROUNDING, Bootstrap, Seed, resampled_means, resampled_rows

LEVEL = 0.05  # of everything that is decided, two-sided
ONE_SIDED = LEVEL / 2  # of a p value that looks to one side
MARGIN = 0.0005  # of a score, a weight or a similarity, each a fraction of 1
DRAWS = 4000  # of a permutation test: so many that a p of 0.025 is known to a tenth of itself


def _exchanged(differences: np.ndarray, seed: Seed, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised means of the differences, (statistics,), and those with random signs, (draws, statistics)."""
    flat = np.nan_to_num(differences.reshape(len(differences), -1))  # (examples, statistics)
    flat = np.where(np.abs(flat) > ROUNDING, flat, 0)
    spread = np.sqrt((flat**2).sum(axis=0))
    scale = np.where(spread > 0, spread, np.inf)  # a statistic without any difference
    return flat.sum(axis=0) / scale, _signs(seed, draws, len(flat)) @ flat / scale


@lru_cache(maxsize=1)  # many tests of the same examples follow each other
def _signs(seed: Seed, draws: int, examples: int) -> np.ndarray:
    """1 or −1 for every example, by draw, shape (draws, examples); read-only."""
    signs = np.where(np.random.default_rng(seed).random((draws, examples)) < 0.5, -1.0, 1.0)
    signs.setflags(write=False)
    return signs


def corrected_p(
    observed: np.ndarray, largest: np.ndarray, smallest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Permutation p-values corrected over many statistics (Westfall and Young, 1993).

    Args:
        observed: standardised statistics, shape (statistics,).
        largest, smallest: of all of them in each draw, shape (draws,).

    Returns:
        p-values of "above" and of "below", each of shape (statistics,).
    """
    draws = len(largest)
    above = (1 + (largest[:, None] >= observed - ROUNDING).sum(axis=0)) / (1 + draws)
    below = (1 + (smallest[:, None] <= observed + ROUNDING).sum(axis=0)) / (1 + draws)
    return above, below


@dataclass(frozen=True)
class ManyTest:
    """Means of many paired differences against a least effect.

    Attributes:
        means: over the examples that say something, shape (…); NaN where none does.
        above, below: p values, one-sided, that a mean is above, or below, the
            least effect; corrected over all of them, same shape.
        n: examples that say something, same shape.
        below_alone: as ``below``, not corrected: for the claim that *every* mean is below, which
            needs no correction, since all of them have to pass (an intersection–union test; Berger,
            1982).
    """

    means: np.ndarray
    above: np.ndarray
    below: np.ndarray
    n: np.ndarray
    below_alone: np.ndarray

    def __getitem__(self, at: Any) -> ManyTest:
        """Some of the tests, corrected over all as before."""
        return ManyTest(*(getattr(self, part.name)[at] for part in fields(self)))


def many_test(differences: np.ndarray, least: float, seed: Seed, draws: int = DRAWS) -> ManyTest:
    """Permutation tests of many paired differences at once against a least effect, corrected by the maximum statistic.

    If nothing made a difference, an example's differences could as well have
    the other sign. Each draw flips the signs of a random half of the examples,
    for all statistics alike, so that what they have in common stays; a mean is
    compared with the largest standardised one of each draw (Westfall and
    Young, 1993).

    Args:
        differences: shape (examples, …); NaN where an example says nothing.
        least: the smallest effect that counts.
        seed: of the draws.
        draws: how many.
    """
    n = np.isfinite(differences).sum(axis=0)
    means = np.nansum(differences, axis=0) / np.where(n, n, np.nan)
    observed, drawn = _exchanged(differences - least, seed, draws)
    corrected = corrected_p(observed, drawn.max(axis=1), drawn.min(axis=1))
    alone = (1 + (drawn <= observed + ROUNDING).sum(axis=0)) / (1 + draws)
    above, below, below_alone = (np.where(n, p.reshape(n.shape), 1.0) for p in (*corrected, alone))
    return ManyTest(means, above, below, n, below_alone)


def in_both(one: ManyTest, other: ManyTest) -> ManyTest:
    """Two tests of the same things as one: above where both say so, below where either does; means are the smaller ones.

    Args:
        one, other: of one shape.
    """
    pairs = (one.below, other.below), (one.below_alone, other.below_alone)
    below, alone = (
        np.minimum(1.0, 2 * np.minimum(*pair)) for pair in pairs
    )  # either suffices, so each has half the level
    above = np.maximum(one.above, other.above)
    return ManyTest(
        np.fmin(one.means, other.means), above, below, np.minimum(one.n, other.n), alone
    )


def rank_correlation(x: np.ndarray, y: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's rank correlation of two properties of items, items resampled, such as heads.

    The interval is about a rule for heads of this kind, of which those of one model are a sample.
    Examples are not resampled: what they leave uncertain makes the correlation smaller, not the
    interval wider. Where one property of given heads is measured in two ways, see
    :func:`rank_agreement`.

    Args:
        x, y: shape (items,).
        seed: of the resampling.

    Returns:
        With the items as its ``n``.
    """
    rows = np.vstack(
        [np.arange(len(x)), *resampled_rows(len(x), seed, RESAMPLES)]
    )  # (1 + resamples, items)
    return Bootstrap.of(rank_correlations(x[rows], y[rows]), len(x), seed)


def rank_agreement(first: np.ndarray, second: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's rank correlation of items that examples measure in two ways, examples resampled.

    The interval is about these items, such as all heads of a model, on other examples; as that of a
    kappa. Both ways see the same examples, so that noise hardly makes the correlation smaller.

    Args:
        first, second: shape (examples, sets, items); of several sets of items, such as heads by
            direction, each is ranked by itself, and the mean of their correlations taken.
        seed: of the resampling.
    """
    means = [
        np.concatenate([values.mean(axis=0)[None], resampled_means(values, seed)])
        for values in (first, second)
    ]
    rho = rank_correlations(
        *(of.reshape(-1, of.shape[2]) for of in means)
    )  # of every resample and set
    return Bootstrap.of(rho.reshape(len(means[0]), -1).mean(axis=1), len(first), seed)


def rank_correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of every row of one array with that of another; NaN where those of either are all alike.

    Args:
        x, y: shape (rows, items).
    """
    a, b = _centred_ranks(x), _centred_ranks(y)
    with np.errstate(invalid="ignore"):
        return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def rank_of(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation of all values of two arrays of one shape; NaN where those of either are all alike."""
    return float(rank_correlations(np.ravel(x)[None], np.ravel(y)[None])[0])


def rank_text(rank: float) -> str:
    """ "+0.4", or "–" where there is none: over 72 heads it is known to a quarter at best."""
    return "–" if np.isnan(rank) else f"{rank:+.1f}"


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    # Equal but for rounding is a tie, in units of each row's largest value.
    size = np.abs(values).max(axis=1, keepdims=True, initial=0)
    units = ROUNDING * np.where(size > 0, size, 1)
    ranks = rankdata(np.round(values / units), axis=1)
    return ranks - ranks.mean(axis=1, keepdims=True)


def by_size(values: np.ndarray, margin: float = MARGIN) -> np.ndarray:
    """Flat indices, the largest value first; values within ``margin`` of a larger one count as equal to it.

    Equal ones keep their order, so that it does not hang on their last digits.

    Args:
        values: of any shape; NaN comes last.
        margin: what counts as equal.
    """
    flat = np.nan_to_num(np.asarray(values, dtype=float).ravel(), nan=-np.inf)
    order, leader = np.argsort(-flat, kind="stable"), np.inf
    groups: list[list[int]] = []
    for index in order:
        if flat[index] < leader - margin or not groups:
            leader = flat[index]
            groups.append([])
        groups[-1].append(int(index))
    return np.array([index for group in groups for index in sorted(group)], dtype=int)


def heads_by_size(values: np.ndarray) -> list[Head]:
    """Every (layer, head) from 0, that of the largest value first; see :func:`by_size`.

    Args:
        values: shape (layers, heads).
    """
    return [divmod(int(index), values.shape[1]) for index in by_size(values)]


def largest(values: np.ndarray, margin: float = MARGIN) -> tuple[int, ...]:
    """Index of the largest value, the first of those that tie with it."""
    return tuple(
        int(index) for index in np.unravel_index(by_size(values, margin)[0], np.shape(values))
    )


def name_of_largest(values: np.ndarray, margin: float = MARGIN) -> str:
    """The head, or the layer, of the largest value as people read it, and how many tie with it.

    Args:
        values: shape (layers, heads) or (layers,).
        margin: what counts as a tie.
    """
    at = largest(values, margin)
    others = int((np.asarray(values) >= values[at] - margin).sum()) - 1
    name = head_name(*at) if len(at) == 2 else str(one_based(*at))
    return f"{name} (tied with {others})" if others > 0 else name


def p_text(p: float) -> str:
    """A p value as it is printed: two digits, since the draws do not give more."""
    return "< 0.01" if p < 0.01 else f"{p:.2f}"


def p_is(p: float) -> str:
    """ "p < 0.01" or "p = 0.03"."""
    return f"p {p_text(p)}" if p < 0.01 else f"p = {p_text(p)}"


def count_of(mask: np.ndarray) -> str:
    """ "7 of 72": how many are true, as counts are printed that one of many on a border may change."""
    return f"{np.count_nonzero(mask)} of {np.size(mask)}"
