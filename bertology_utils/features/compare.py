"""What the weights of types of token say: against other types, special tokens and layers, with resampled examples (§4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..statistics import Bootstrap, Seed, bootstrap_mean, whole_and_resampled


def earlier_and_later(values: np.ndarray, seed: Seed) -> tuple[Bootstrap, Bootstrap]:
    """How much less of one token's attention the second half of the layers gives than the first (§4.4).

    A middle layer belongs to neither half.

    Args:
        values: of one type, shape (examples, layers, heads).
        seed: of the resampling of examples.

    Returns:
        The first half's mean, and that minus the second half's.
    """
    by_layer = values.mean(axis=2)  # (examples, layers)
    half = by_layer.shape[1] // 2
    first, second = (bootstrap_mean(part.mean(axis=1), seed) for part in (by_layer[:, :half], by_layer[:, -half:]))
    return first, first - second


def resampled_type_means(values: np.ndarray, seed: Seed) -> np.ndarray:
    """Means over the examples that have a type, for the data as they are and for resamples.

    Args:
        values: shape (examples, …), NaN where an example lacks the type.
        seed: of the resampling of examples.

    Returns:
        Shape (1 + resamples, …), the data as they are first; NaN where no example has the type.
    """
    weights = whole_and_resampled(len(values), seed)  # (1 + resamples, examples)
    flat = values.reshape(len(values), -1)
    with np.errstate(invalid="ignore"):
        means = weights @ np.nan_to_num(flat) / (weights @ np.isfinite(flat))
    return means.reshape(-1, *values.shape[1:])


@dataclass(frozen=True)
class Rivals:
    """Types of word against special tokens, for resamples of the examples; see :func:`against_marks`.

    Attributes:
        means: of each type over the examples that have it, shape (1 + resamples, types, layers, heads).
        marks: of the more attended special token over the same examples, same shape.
        n: examples that have the type, shape (types,).
        examples: all of them.
        seed: of the resampling.
    """

    means: np.ndarray
    marks: np.ndarray
    n: np.ndarray
    examples: int
    seed: Seed

    def striped(self, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Heads with a stripe on a type of word, and heads with one mainly on a special token.

        A stripe is a mean of more than ``least``; one on words is also above
        the special tokens.

        Returns:
            Two boolean arrays of shape (1 + resamples, layers, heads), the data as they are first.
        """
        with np.errstate(invalid="ignore"):
            words = np.any((self.means > least) & (self.means > self.marks), axis=1)
            marks = np.any(self.marks > least, axis=1)
        return words, np.logical_and(marks, np.logical_not(words))

    def beside_marks(self, even: float = 1.0) -> Bootstrap:
        """What the most attended type of word has above an even share, as a part of what the special token has above it.

        Of means over heads, in multiples of the even share; the type is chosen in every resample anew. NaN if the
        special token has no more than an even share.

        Args:
            even: the even share in the units of the values.
        """
        with np.errstate(invalid="ignore"):
            words = np.nan_to_num(self.means.mean(axis=(2, 3)), nan=-np.inf)  # (1 + resamples, types)
        at = words.argmax(axis=1)
        rows = np.arange(len(words))
        above_even = self.marks.mean(axis=(2, 3))[rows, at] - even
        ratio = (words[rows, at] - even) / (above_even if above_even[0] > 0 else np.nan)
        return Bootstrap.of(ratio, self.examples, self.seed)


def shares_of_heads(heads: np.ndarray, n: int, seed: Seed) -> Bootstrap:
    """Share of heads that are true, from shape (1 + resamples, layers, heads), the data as they are first."""
    shares = heads.mean(axis=(1, 2))
    return Bootstrap.of(shares, n, seed)


def kept_share(before: np.ndarray, after: np.ndarray, n: int, seed: Seed) -> Bootstrap:
    """Share of the heads that are true after which were so before; both as for :func:`shares_of_heads`. NaN if none is."""
    count = after.sum(axis=(1, 2))
    shares = (before & after).sum(axis=(1, 2)) / np.maximum(count, 1)
    if not count[0]:
        shares = np.full(len(shares), np.nan)
    return Bootstrap.of(shares, n, seed)


def against_marks(values: np.ndarray, types: Sequence[int], marks: Sequence[int], seed: Seed) -> Rivals:
    """What types of word get, and what special tokens get in the same examples (§4.4).

    Args:
        values: shape (examples, all types, layers, heads), NaN where an example has no token of the type.
        types, marks: which of them are the types of word, and which the special tokens.
        seed: of the resampling of examples.
    """
    means, best = [], []
    for kind in types:
        there = np.isfinite(values[:, [kind, *marks], 0, 0]).all(axis=1)
        both = np.where(there[:, None, None, None], values[:, [kind, *marks]], np.nan)
        resampled = resampled_type_means(both, seed)  # (1 + resamples, 1 + marks, layers, heads)
        means.append(resampled[:, 0])
        best.append(resampled[:, 1:].max(axis=1))
    present = np.isfinite(values[:, list(types), 0, 0]).sum(axis=0)
    return Rivals(np.stack(means, axis=1), np.stack(best, axis=1), present, len(values), seed)


def ahead(values: np.ndarray, kind: int, rivals: Sequence[int], seed: Seed) -> tuple[bool, float]:
    """Does a type get more than every other, each compared in the examples that have both (§4.5, Fig 7)?

    Args:
        values: shape (examples, types), NaN where an example lacks the type.
        kind: the type.
        rivals: the types to be ahead of; ``kind`` itself is passed over.
        seed: of the resampling of examples.

    Returns:
        Whether it does, and in what share of the resamples. A type that no example has is not ahead.
    """
    if not np.isfinite(values[:, kind]).any():
        return False, 0.0
    others = [rival for rival in rivals if rival != kind and np.isfinite(values[:, rival] + values[:, kind]).any()]
    compared = against_marks(values[:, :, None, None], others, [kind], seed)
    wins = ~(compared.marks <= compared.means)  # (1 + resamples, others, 1, 1); a rival that is missing is no rival
    return bool(wins[0].all()), float(wins[1:].all(axis=(1, 2, 3)).mean())
