"""What types of token lose when weights become norms."""

from __future__ import annotations

import numpy as np

from ..features.flow import DESTINATIONS
from ..statistics import Bootstrap, Seed, bootstrap, bootstrap_mean

MARKS = DESTINATIONS[:3]  # [CLS], [SEP] and punctuation


def fall(by_weight: np.ndarray, by_norm: np.ndarray, kind: str, seed: Seed) -> Bootstrap:
    """By how much the share of one destination is smaller by norm, mean over layers and heads.

    Args:
        by_weight, by_norm: ``destinations`` of :class:`bertology_utils.features.flow.Flow`.
        kind: one of its destinations.
        seed: of the resampling of examples.
    """
    at = DESTINATIONS.index(kind)
    return bootstrap_mean((by_weight - by_norm)[..., at].mean(axis=(1, 2)), seed)


def most_of(shares: np.ndarray, kind: str) -> int:
    """Heads that give one destination more than half of their attention, in the mean over examples.

    Args:
        shares: shape (examples, layers, heads, destinations).
        kind: the destination.
    """
    return int((shares[..., DESTINATIONS.index(kind)].mean(axis=0) > 0.5).sum())


def in_even_shares(shares: np.ndarray, marks: list[np.ndarray]) -> dict[str, float]:
    """What one token of each kind gets, in multiples of an even share; mean over examples, layers and heads.

    Args:
        shares: shape (examples, layers, heads, destinations).
        marks: per example which tokens are of which of :data:`MARKS`, shape (3, wordpieces).
    """
    got = shares[..., : len(MARKS)].mean(axis=(1, 2))  # (examples, marks)
    lengths = np.array([of_example.shape[1] for of_example in marks])
    counts = np.array([of_example.sum(axis=1) for of_example in marks])  # (examples, marks)
    each = (got * lengths[:, None]).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    return dict(zip(MARKS, map(float, each), strict=True))


def gradient_gap(gradients: np.ndarray, seed: Seed) -> Bootstrap:
    """By what part the gradient for a weight on the first kind of token is smaller than on the second, mean over layers.

    Args:
        gradients: from :func:`bertology_utils.weighing.gradients.weight_gradients`, of two kinds.
        seed: of the resampling of examples.
    """
    first, second = gradients.mean(axis=2).T  # (examples,) each
    return bootstrap(lambda rows: 1 - first[rows].mean() / second[rows].mean(), len(first), seed)
