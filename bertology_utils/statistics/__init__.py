"""Uncertainty, so that every room can say how sure a number is.

``estimates``: the bootstrap over examples, and intervals that know of trainings, too.
``permutation``: tests of many statistics at once, rank correlations, and ties.
"""

from .estimates import (
    RESAMPLES,
    Bootstrap,
    Estimate,
    Seed,
    apart,
    average,
    bootstrap,
    bootstrap_mean,
    bootstrap_weights,
    mean_of,
    mean_over_seeds,
    means_with_gaps,
    moderated,
    over_trainings,
    pooled,
    resampled_means,
    resampled_scores,
    weighted_scores,
    whole_and_resampled,
)
from .permutation import (
    ONE_SIDED,
    ManyTest,
    by_size,
    count_of,
    heads_by_size,
    in_both,
    largest,
    many_test,
    name_of_largest,
    p_text,
    rank_agreement,
    rank_correlation,
    rank_correlations,
    rank_of,
    rank_text,
)
