"""Do the patterns repeat, across heads and across tasks? (§4.1)"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..statistics import Bootstrap, Seed, resampled_means
from .labelled_maps import PATTERNS


def usual_patterns(one_hot: np.ndarray) -> np.ndarray:
    """The pattern that each head shows most often: indices into PATTERNS, shape (layers, heads).

    Args:
        one_hot: shape (examples, layers, heads, patterns).
    """
    return one_hot.mean(axis=0).argmax(axis=-1)


def whole_and_resampled_usual(one_hot: np.ndarray, seed: Seed) -> np.ndarray:
    """:func:`usual_patterns` of the examples as they are, then of resampled ones: shape (1 + resamples, layers, heads)."""
    return np.concatenate([usual_patterns(one_hot)[None], resampled_means(one_hot, seed).argmax(axis=-1)])


def heads_by_pattern(usual: np.ndarray) -> np.ndarray:
    """How many heads have each usual pattern: (…, layers, heads) to (…, patterns)."""
    return (usual[..., None] == np.arange(len(PATTERNS))).sum(axis=(-3, -2))


def coverage(one_hot: np.ndarray, seed: Seed, count: int = 2) -> Bootstrap:
    """Share of the heads whose usual pattern is one of the ``count`` commonest, examples resampled.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.
        count: how many patterns are "a limited set" of the five.
    """
    draws = whole_and_resampled_usual(one_hot, seed)
    commonest = np.sort(heads_by_pattern(draws), axis=-1)[..., -count:].sum(axis=-1) / draws[0].size
    return Bootstrap.of(commonest, len(one_hot), seed)


def coverage_by_chance(heads: int, patterns: int, seed: Seed, count: int = 2, draws: int = 10_000) -> float:
    """What :func:`coverage` exceeds in 2.5 % of cases if every head drew its usual pattern evenly at random.

    Args:
        heads: how many.
        patterns: that can occur.
        seed: of the draws.
        count: see :func:`coverage`.
        draws: how many.
    """
    drawn = np.random.default_rng(seed).multinomial(heads, np.full(patterns, 1 / patterns), size=draws)
    return float(np.quantile(np.sort(drawn, axis=1)[:, -count:].sum(axis=1) / heads, 0.975))


def task_agreement(one_hots: Sequence[np.ndarray], seeds: Sequence[Seed]) -> Bootstrap:
    """Cohen's κ between two tasks over heads' usual patterns, mean over all pairs of tasks; examples resampled.

    1 if every head keeps its pattern, 0 if tasks agree no more often than by
    chance. All heads of the model are in it, so these are not resampled.

    Args:
        one_hots: per task, shape (examples, layers, heads, patterns).
        seeds: of each task's resampling.

    Raises:
        ValueError: fewer than two tasks.
    """
    if len(one_hots) < 2:
        raise ValueError("agreement between tasks needs at least two tasks")
    labels = [
        whole_and_resampled_usual(one_hot, seed).reshape(-1, one_hot[0, ..., 0].size)
        for one_hot, seed in zip(one_hots, seeds, strict=True)
    ]  # each (1 + resamples, heads of all layers)
    agreement = np.mean([kappa(first, second) for first, second in combinations(labels, 2)], axis=0)
    return Bootstrap.of(agreement, sum(map(len, one_hots)), tuple(seeds))


def changed_heads(before: np.ndarray, after: np.ndarray, seed: Seed) -> Bootstrap:
    """Share of the heads whose usual pattern fine-tuning changed, beyond what other examples change.

    Usual patterns before, on every other example, are compared with those
    after on the rest; what is subtracted is the comparison of the same two
    halves before fine-tuning.

    Args:
        before, after: shape (examples, layers, heads, patterns), the same examples.
        seed: of the resampling.
    """
    half = np.arange(len(before)) % 2 == 0
    first, rest, tuned = (whole_and_resampled_usual(part, seed) for part in (before[half], before[~half], after[~half]))
    changed = (first != tuned).mean(axis=(1, 2)) - (first != rest).mean(axis=(1, 2))
    return Bootstrap.of(changed, len(before), seed)


def changed_by_examples(one_hot: np.ndarray, seed: Seed) -> Bootstrap:
    """What :func:`changed_heads` subtracts: heads of one model whose usual pattern differs between two halves of examples.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.
    """
    half = np.arange(len(one_hot)) % 2 == 0
    first, rest = (whole_and_resampled_usual(part, seed) for part in (one_hot[half], one_hot[~half]))
    return Bootstrap.of((first != rest).mean(axis=(1, 2)), len(one_hot), seed)


def two_commonest(usual: np.ndarray) -> list[str]:
    """The two patterns that are usual for most heads, the commonest first; of ties the first of PATTERNS.

    Args:
        usual: from :func:`usual_patterns`.
    """
    order = np.argsort(-heads_by_pattern(usual), kind="stable")
    return [PATTERNS[index] for index in order[:2]]


def kappa(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cohen's κ of two labellings, shape (…, items) to (…); 1 where both give one same label to all."""
    same = (first == second).mean(axis=-1)
    frequencies = [(labels[..., None] == np.arange(len(PATTERNS))).mean(axis=-2) for labels in (first, second)]
    chance = (frequencies[0] * frequencies[1]).sum(axis=-1)
    return np.where(chance < 1, (same - chance) / np.maximum(1 - chance, 1e-12), 1.0)
