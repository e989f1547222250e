"""Correlations with their uncertainty."""

from __future__ import annotations

import numpy as np

from .resampling import Bootstrap, Seed, bootstrap


def rank_correlation(x: np.ndarray, y: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's rank correlation of two values per item, items resampled, such as heads.

    Args:
        x, y: shape (items,).
        seed: of the resampling.
    """
    from scipy.stats import spearmanr

    return bootstrap(lambda rows: float(spearmanr(x[rows], y[rows]).statistic), len(x), seed)
