"""From what the classifier said to what is there: shares of the five patterns (§4.1, Fig 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..glue.tasks import Task
from ..statistics import Bootstrap, Estimate, Seed, bootstrap_mean, over_trainings, resampled_means
from .evidence import Evidence
from .labelled_maps import PATTERNS
from .measure import FoundPatterns

ROUNDS = 500  # of the expectation maximisation; shares then move by less than 1e-4


def corrected_shares(observed: np.ndarray, confusion: np.ndarray, possible: np.ndarray | None = None) -> np.ndarray:
    """Shares of the true patterns that best explain the shares of the predicted ones.

    A classifier that takes one vertical map in ten for heterogeneous inflates
    the heterogeneous share. Given how it errs, the maximum-likelihood shares
    are found by expectation maximisation (Saerens et al., 2002), which unlike
    inverting the matrix never leaves the range from 0 to 1.

    Args:
        observed: predicted shares, shape (…, patterns), summing to 1.
        confusion: share of each true pattern's maps (rows) that are predicted
            as each pattern (columns), shape (…, patterns, patterns).
        possible: False for patterns that cannot occur, shape (patterns,); all
            can if None.

    Returns:
        Shape (…, patterns), summing to 1.
    """
    start = np.ones(observed.shape[-1]) if possible is None else possible.astype(float)
    shares = np.broadcast_to(start / start.sum(), observed.shape)
    for _ in range(ROUNDS):
        joint = shares[..., :, None] * confusion  # (…, true, predicted)
        predicted = np.maximum(joint.sum(axis=-2, keepdims=True), 1e-12)
        shares = (joint / predicted * observed[..., None, :]).sum(axis=-1)
    return shares / shares.sum(axis=-1, keepdims=True)


def _normalised(counts: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a pattern that does not occur gets equal shares, as nothing is known of it."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1e-12), 1 / counts.shape[-1])


@dataclass(frozen=True)
class ClassifierErrors:
    """How the classifier errs, and how surely that is known.

    Attributes:
        matrix: share of each true pattern's maps (rows) predicted as each
            pattern (columns), shape (patterns, patterns).
        draws: the same from resampled heads of the labelled maps, shape
            (resamples, patterns, patterns).
    """

    matrix: np.ndarray
    draws: np.ndarray


def classifier_errors(evidence: Evidence, seed: Seed) -> ClassifierErrors:
    """From the cross-validated predictions; resamples heads, not maps, as maps of one head are alike."""
    groups, numbers = np.unique(evidence.groups, return_inverse=True)
    by_head = np.zeros((len(groups), len(PATTERNS), len(PATTERNS)))
    np.add.at(by_head, (numbers, evidence.true, evidence.predicted), 1)  # counts, (heads, true, predicted)
    return ClassifierErrors(_normalised(by_head.sum(axis=0)), _normalised(resampled_means(by_head, seed)))


def possible_patterns(task: Task) -> np.ndarray:
    """True for the patterns that the task's inputs can show, shape (patterns,): blocks need two sentences."""
    return np.array([pattern != "block" or len(task.fields) > 1 for pattern in PATTERNS])


def pattern_shares(
    one_hot: np.ndarray, errors: ClassifierErrors, seed: Seed, possible: np.ndarray | None = None
) -> dict[str, list[Bootstrap]]:
    """Shares of the patterns among all maps, as predicted and corrected for the classifier's errors.

    Args:
        one_hot: 1 where a head shows a pattern, shape (examples, …, patterns).
        errors: from :func:`classifier_errors`.
        seed: of the resampling of examples.
        possible: see :func:`corrected_shares`.

    Returns:
        "predicted" and "corrected", each with one bootstrapped share per
        pattern. The intervals of the former come from the choice of examples
        alone, those of the latter from it and from what is not known of the
        classifier's errors.
    """
    by_example = one_hot.reshape(len(one_hot), -1, one_hot.shape[-1]).mean(axis=1)  # (examples, patterns)
    mean, draws = by_example.mean(axis=0), resampled_means(by_example, seed)
    found = {
        "predicted": (mean, draws),
        "corrected": (corrected_shares(mean, errors.matrix, possible), corrected_shares(draws, errors.draws, possible)),
    }
    return {
        name: [Bootstrap(float(v), d, len(by_example), seed) for v, d in zip(value, all_draws.T, strict=True)]
        for name, (value, all_draws) in found.items()
    }


def together(parts: Sequence[Bootstrap], patterns: Sequence[str]) -> Bootstrap:
    """Share of some patterns together.

    Args:
        parts: of every pattern, one of the lists of :func:`pattern_shares`.
        patterns: whose shares to add.
    """
    chosen = [parts[PATTERNS.index(pattern)] for pattern in patterns]
    value, draws = sum(part.value for part in chosen), np.sum([part.draws for part in chosen], axis=0)
    return Bootstrap(value, draws, chosen[0].n, chosen[0].seed)


def apart(one: FoundPatterns, others: Sequence[FoundPatterns], pattern: str, seed: Seed) -> Estimate:
    """The share of a pattern as named in one pass minus that in others of the same examples, over these.

    Args:
        one: of a model that is not among the trainings.
        others: of every training.
        pattern: which.
        seed: of the resampling of examples.
    """
    at = PATTERNS.index(pattern)

    def share(found: FoundPatterns) -> Bootstrap:
        return bootstrap_mean(found.one_hot[..., at].mean(axis=(1, 2)), seed)

    return over_trainings([share(one) - share(other) for other in others])
