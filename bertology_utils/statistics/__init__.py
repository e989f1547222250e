"""Uncertainty: ``resampling`` of examples, and metrics of ``weighted`` examples, its fast form."""

from .resampling import (
    RESAMPLES, Bootstrap, Seed, bootstrap, bootstrap_mean, bootstrap_weights, corrected_p, max_statistic, mean_of,
    rank_correlation, resampled_means,
)

__all__ = [
    "RESAMPLES", "Bootstrap", "Seed", "bootstrap", "bootstrap_mean", "bootstrap_weights", "corrected_p", "max_statistic",
    "mean_of", "rank_correlation", "resampled_means",
]
