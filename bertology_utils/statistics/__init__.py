"""Uncertainty, so that every room can say how sure a number is.

``resampling``: the bootstrap over examples. ``weighted``: metrics of weighted
examples, its fast form. ``permutation``: tests of many statistics at once.
``estimate``: intervals that know of trainings, too. ``correlation``: of ranks,
with its interval. ``ties``: what rounding could exchange.
"""

from .correlation import rank_correlation
from .estimate import Estimate, average, over_trainings
from .permutation import LEVEL, ONE_SIDED, ManyTest, corrected_p, many_test, max_statistic
from .resampling import (
    RESAMPLES,
    Bootstrap,
    Seed,
    bootstrap,
    bootstrap_mean,
    bootstrap_weights,
    lead,
    resampled_means,
    whole_and_resampled,
)

__all__ = [
    "LEVEL",
    "ONE_SIDED",
    "RESAMPLES",
    "Bootstrap",
    "Estimate",
    "ManyTest",
    "Seed",
    "average",
    "bootstrap",
    "bootstrap_mean",
    "bootstrap_weights",
    "corrected_p",
    "lead",
    "many_test",
    "max_statistic",
    "over_trainings",
    "rank_correlation",
    "resampled_means",
    "whole_and_resampled",
]
