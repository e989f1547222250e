"""Do the patterns repeat, across heads and across tasks? (§4.1)"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..statistics import Bootstrap, Seed, bootstrap, resampled_means
from .labelled_maps import PATTERNS


def usual_patterns(one_hot: np.ndarray) -> np.ndarray:
    """The pattern that each head shows most often: indices into PATTERNS, shape (layers, heads).

    Args:
        one_hot: shape (examples, layers, heads, patterns).
    """
    return one_hot.mean(axis=0).argmax(axis=-1)


def resampled_usual(one_hot: np.ndarray, seed: Seed) -> np.ndarray:
    """:func:`usual_patterns` of resampled examples, shape (resamples, layers, heads)."""
    return resampled_means(one_hot, seed).argmax(axis=-1)


def heads_by_pattern(usual: np.ndarray) -> np.ndarray:
    """How many heads have each usual pattern: (…, layers, heads) to (…, patterns)."""
    return (usual[..., None] == np.arange(len(PATTERNS))).sum(axis=(-3, -2))


def repeat_share(one_hot: np.ndarray, possible: np.ndarray, seed: Seed) -> float:
    """Share of resamples of the examples in which each possible pattern is the usual one of two heads or more.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        possible: False for patterns that cannot occur, shape (patterns,).
        seed: of the resampling.
    """
    counts = heads_by_pattern(resampled_usual(one_hot, seed))[:, possible]
    return float((counts >= 2).all(axis=1).mean())


def task_agreement(usual: Sequence[np.ndarray], seed: Seed) -> Bootstrap:
    """Cohen's κ between two tasks over heads' usual patterns, mean over all pairs of tasks.

    1 if every head keeps its pattern, 0 if tasks agree no more often than by
    chance. The interval comes from resampling heads.

    Args:
        usual: per task, from :func:`usual_patterns`.
        seed: of the resampling.

    Raises:
        ValueError: fewer than two tasks.
    """
    if len(usual) < 2:
        raise ValueError("agreement between tasks needs at least two tasks")
    labels = [of_task.ravel() for of_task in usual]  # each (heads of all layers,)

    def agreement(heads: np.ndarray) -> float:
        return float(np.mean([kappa(first[heads], second[heads]) for first, second in combinations(labels, 2)]))

    return bootstrap(agreement, len(labels[0]), seed)


def kappa(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cohen's κ of two labellings, shape (…, items) to (…); 1 where both give one same label to all."""
    same = (first == second).mean(axis=-1)
    frequencies = [(labels[..., None] == np.arange(len(PATTERNS))).mean(axis=-2) for labels in (first, second)]
    chance = (frequencies[0] * frequencies[1]).sum(axis=-1)
    return np.where(chance < 1, (same - chance) / np.maximum(1 - chance, 1e-12), 1.0)
