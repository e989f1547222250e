"""What the weights of types of token say: against other types, special tokens and layers, with resampled examples (§4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..statistics import Bootstrap, Seed, bootstrap_mean, bootstrap_weights, max_statistic


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
    weights = np.vstack([np.ones(len(values)), bootstrap_weights(len(values), seed)])  # (1 + resamples, examples)
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
        seed: of the resampling.
    """

    means: np.ndarray
    marks: np.ndarray
    n: np.ndarray
    seed: Seed

    @property
    def ratios(self) -> list[Bootstrap | None]:
        """Per type: the mean over heads against that of the special token; None for a type that no example has."""
        mark = self.marks.mean(axis=(2, 3))
        ratios = self.means.mean(axis=(2, 3)) / mark  # (1 + resamples, types)
        return [
            Bootstrap(float(ratio[0]), ratio[1:], int(n), self.seed) if n else None
            for ratio, n in zip(ratios.T, self.n, strict=True)
        ]

    def striped(self, least: float, sure: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Heads with a stripe on a type of word, and heads with one on a special token only; each shape (layers, heads).

        A stripe is a mean of more than ``least``, in a share of ``sure`` of the
        resamples; one on words is also above the special tokens.
        """
        with np.errstate(invalid="ignore"):
            words = ((self.means > least) & (self.means > self.marks))[1:].mean(axis=0).max(axis=0) >= sure
            marks = (self.marks > least)[1:].mean(axis=0).max(axis=0) >= sure
        return words, marks & ~words


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
    return Rivals(np.stack(means, axis=1), np.stack(best, axis=1), present, seed)


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
    wins = compared.marks > compared.means  # (1 + resamples, others, 1, 1)
    return bool(wins[0].all()), float(wins[1:].all(axis=(1, 2, 3)).mean())


@dataclass(frozen=True)
class Increase:
    """How much more each head gives each type after a change, such as fine-tuning; see :func:`increase`.

    Attributes:
        means: over the examples that have the type, shape (types, layers, heads); NaN for a type that none has.
        p: of an increase, corrected over all heads and types, same shape.
        n: examples that have the type, shape (types,).
    """

    means: np.ndarray
    p: np.ndarray
    n: np.ndarray


def increase(differences: np.ndarray, seed: Seed) -> Increase:
    """Test which heads give which types more than before (§4.4).

    Args:
        differences: after minus before, shape (examples, types, layers, heads), NaN where an example lacks the type.
        seed: of the permutations.
    """
    n = np.isfinite(differences[..., 0, 0]).sum(axis=0)
    means = np.nansum(differences, axis=0) / np.where(n, n, np.nan)[:, None, None]
    return Increase(means, max_statistic(differences, seed)[0], n)
