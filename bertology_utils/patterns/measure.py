"""Patterns of the pre-trained encoder as notebook 8 still records them; it goes when that notebook moves to measurements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ..attention import Measurement
from ..glue import Task
from ..statistics import Bootstrap, Seed, means_with_gaps, whole_and_resampled
from . import labels
from .classifiers import Patterns, load_network
from .labels import PATTERNS, indices

if TYPE_CHECKING:
    import pandas as pd

    from ..lab import Lab

NETWORK = "network"
ROUNDS = 500  # of the expectation maximisation; shares then move by less than 1e-4
DRAWS = 10_000  # of patterns at random
FIRST_THREE = ("vertical", "diagonal", "vertical+diagonal")


def one_hot(named: np.ndarray) -> np.ndarray:
    """1 where a head shows a pattern, shape (examples, layers, heads, patterns), of indices into PATTERNS."""
    return (named[..., None] == np.arange(len(PATTERNS))).astype(np.float64)


def natural_maps() -> pd.DataFrame:
    """MiniLM's labelled maps that were drawn at random, so that shares of them mean something."""
    maps = labels.load_maps()
    return maps[(maps["part"] == "natural") & (maps["encoder"] == "embedded")]


def confusions(maps: pd.DataFrame, by: str, seed: Seed, label: str = "pattern") -> np.ndarray:
    """How many maps of each pattern (rows) are named as each pattern (columns).

    Heads are resampled, and all maps of a drawn head come along, as these are alike.

    Args:
        maps: from :func:`natural_maps`.
        by: the column of the names.
        seed: of the resampling.
        label: the column of what is taken to be true.

    Returns:
        Of all heads, then of resampled ones, shape (1 + resamples, patterns, patterns).
    """
    head = maps.groupby(["layer", "head"]).ngroup()
    counts = np.zeros((head.max() + 1, len(PATTERNS), len(PATTERNS)))
    np.add.at(counts, (head, indices(maps[label]), indices(maps[by])), 1)
    return np.tensordot(whole_and_resampled(len(counts), seed), counts, axes=1)


def classifier_errors(by: str, seed: Seed) -> np.ndarray:
    """Share of each true pattern's maps (rows) that a classifier names as each pattern (columns).

    Args:
        by: the column of its answers.
        seed: of the resampling of heads.

    Returns:
        Of all heads, then of resampled ones, shape (1 + resamples, patterns, patterns). A pattern
        that does not occur has equal shares, as nothing is known of it.
    """
    counts = confusions(natural_maps(), by, seed)
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1e-12), 1 / len(PATTERNS))


def possible_patterns(task: Task) -> np.ndarray:
    """True for the patterns that the task's inputs can show, shape (patterns,): blocks need two sentences."""
    return np.array([pattern != "block" or len(task.fields) > 1 for pattern in PATTERNS])


def corrected_shares(
    observed: np.ndarray, confusion: np.ndarray, possible: np.ndarray
) -> np.ndarray:
    """Shares of the true patterns that best explain the shares of the predicted ones.

    A classifier that takes one vertical map in ten for heterogeneous inflates
    the heterogeneous share. Given how it errs, expectation maximisation gives
    the maximum-likelihood shares (Saerens et al., 2002), which unlike those of
    an inverted matrix never leave the range from 0 to 1.

    Args:
        observed: predicted shares, shape (…, patterns), summing to 1.
        confusion: share of each true pattern's maps (rows) that are predicted
            as each pattern (columns), shape (…, patterns, patterns).
        possible: False for patterns that cannot occur, shape (patterns,).

    Returns:
        Shape (…, patterns), summing to 1.
    """
    shares = np.broadcast_to(possible / possible.sum(), observed.shape)
    for _ in range(ROUNDS):
        predicted = np.maximum(np.einsum("...t,...tp->...p", shares, confusion), 1e-12)
        shares = shares * np.einsum("...tp,...p->...t", confusion, observed / predicted)
    return shares / shares.sum(axis=-1, keepdims=True)


def pattern_shares(
    one_hot: np.ndarray, errors: np.ndarray, seed: Seed, possible: np.ndarray
) -> dict[str, Bootstrap]:
    """Shares of the patterns among all maps, corrected for the classifier's errors.

    The intervals come from the choice of examples and from what is not known of these errors.

    Args:
        one_hot: 1 where a head shows a pattern, shape (examples, …, patterns).
        errors: from :func:`classifier_errors`.
        seed: of the resampling of examples.
        possible: see :func:`corrected_shares`.
    """
    n = len(one_hot)
    by_example = one_hot.reshape(n, -1, len(PATTERNS)).mean(axis=1)  # (examples, patterns)
    shares = corrected_shares(means_with_gaps(by_example, seed), errors, possible)
    pairs = zip(PATTERNS, shares.T, strict=True)
    return {pattern: Bootstrap.of(of_pattern, n, seed) for pattern, of_pattern in pairs}


def together(parts: Sequence[Bootstrap]) -> Bootstrap:
    """The sum of shares of the same examples."""
    value, draws = sum(part.value for part in parts), np.sum([part.draws for part in parts], axis=0)
    return Bootstrap(value, draws, parts[0].n, parts[0].seed)


def _usual(one_hot: np.ndarray, seed: Seed) -> np.ndarray:
    """The pattern that each head shows most often in the examples as they are, then in resampled ones.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.

    Returns:
        Indices into PATTERNS, shape (1 + resamples, layers, heads).
    """
    return means_with_gaps(one_hot, seed).argmax(axis=-1)


def _commonest(usual: np.ndarray) -> np.ndarray:
    """Heads that the two commonest patterns cover, of heads by pattern, (…, patterns) to (…).

    Heterogeneous is no pattern that could repeat: it is what has none, and all that random weights
    show.
    """
    return np.sort(usual[..., :-1], axis=-1)[..., -2:].sum(axis=-1)


def coverage(one_hot: np.ndarray, seed: Seed) -> Bootstrap:
    """Share of the heads whose usual pattern is one of the two commonest, examples resampled.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.
    """
    usual = _usual(one_hot, seed)
    heads = (usual[..., None] == np.arange(len(PATTERNS))).sum(axis=(1, 2))  # by pattern
    return Bootstrap.of(_commonest(heads) / usual[0].size, len(one_hot), seed)


def coverage_by_chance(heads: int, patterns: int, seed: Seed) -> float:
    """What :func:`coverage` exceeds in 2.5 % of cases if every head drew its usual pattern evenly at random.

    Args:
        heads: how many.
        patterns: that can occur.
        seed: of the draws.
    """
    even = np.full(patterns, 1 / patterns)
    drawn = np.random.default_rng(seed).multinomial(heads, even, size=DRAWS)
    return float(np.quantile(_commonest(drawn) / heads, 0.975))


def task_agreement(one_hots: Sequence[np.ndarray], seeds: Sequence[Seed]) -> Bootstrap:
    """Cohen's κ between two tasks over heads' usual patterns, mean over all pairs of tasks; examples resampled.

    1 if every head keeps its pattern, 0 if tasks agree no more often than by
    chance. All heads of the model are in it, so these are not resampled.

    Args:
        one_hots: per task, shape (examples, layers, heads, patterns).
        seeds: of each task's resampling.
    """
    usual = [_usual(one_hot, seed) for one_hot, seed in zip(one_hots, seeds, strict=True)]
    flat = [one.reshape(len(one), -1) for one in usual]  # each (1 + resamples, heads of all layers)
    agreement = np.mean([kappa(first, second) for first, second in combinations(flat, 2)], axis=0)
    return Bootstrap.of(agreement, sum(map(len, one_hots)), tuple(seeds))


def kappa(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cohen's κ of two labellings, shape (…, items) to (…); 0 where both give one same label to all, as chance would."""
    same = (first == second).mean(axis=-1)
    patterns = np.arange(len(PATTERNS))
    one, other = ((names[..., None] == patterns).mean(axis=-2) for names in (first, second))
    chance = (one * other).sum(axis=-1)  # of the frequencies of every pattern
    return np.where(chance < 1, (same - chance) / np.maximum(1 - chance, 1e-12), 0.0)


def measurements(lab: Lab, task: Task) -> dict[str, Measurement]:
    """What is measured of a model on a task's rows: patterns as the network names them."""
    return {NETWORK: Patterns(load_network().to(lab.device), lab.tokenizer.sep_token_id)}
