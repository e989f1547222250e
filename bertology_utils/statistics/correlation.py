"""Correlations with their uncertainty."""

from __future__ import annotations

import numpy as np

from .resampling import RESAMPLES, Bootstrap, Seed, resampled_rows


def rank_correlation(x: np.ndarray, y: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's rank correlation of two values per item, items resampled, such as heads.

    Args:
        x, y: shape (items,).
        seed: of the resampling.
    """
    rows = np.vstack([np.arange(len(x)), *resampled_rows(len(x), seed, RESAMPLES)])  # (1 + resamples, items)
    a, b = _centred_ranks(x[rows]), _centred_ranks(y[rows])
    with np.errstate(invalid="ignore"):  # where all items are alike
        rho = (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return Bootstrap.of(rho, len(x), seed)


def rank_of(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation of all values of two arrays of one shape; NaN where those of either are all alike."""
    a, b = (_centred_ranks(np.ravel(values)[None])[0] for values in (x, y))
    if not (a.any() and b.any()):
        return float("nan")
    from scipy.stats import spearmanr

    return float(spearmanr(np.ravel(x), np.ravel(y)).statistic)


def rank_text(rank: float) -> str:
    """ "+0.4", or "–" where there is none: over 72 heads it is known to a quarter at best."""
    return "–" if np.isnan(rank) else f"{rank:+.1f}"


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=1)
    return ranks - ranks.mean(axis=1, keepdims=True)
