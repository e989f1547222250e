"""Uncertainty, so that every room can say how sure a number is.

``resampling``: the bootstrap over examples. ``weighted``: metrics of weighted
examples, its fast form. ``permutation``: tests of many statistics at once.
``correlation``: of ranks, with its interval. ``ties``: what rounding could exchange.
``verdicts``: what follows for a claim.
"""

from .correlation import rank_correlation
from .permutation import LEVEL, corrected_p, max_statistic
from .resampling import RESAMPLES, Bootstrap, Seed, bootstrap, bootstrap_mean, bootstrap_weights, mean_of, resampled_means

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "Bootstrap",
    "Seed",
    "bootstrap",
    "bootstrap_mean",
    "bootstrap_weights",
    "corrected_p",
    "max_statistic",
    "mean_of",
    "rank_correlation",
    "resampled_means",
]
