"""Stripes, and attention from [CLS] to [SEP], as pages 5 and 8 still compute them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..annotation.inputs import LINGUISTIC, TOKEN_TYPES
from ..common import one_based
from ..published import published_panel
from ..statistics import Bootstrap, Seed, bootstrap_mean, means_with_gaps
from .measure import TypeWeights

STRIPE = 2.0  # times an even share: a type that gets more has a stripe
SPECIAL = tuple(TOKEN_TYPES.index(kind) for kind in ("[CLS]", "[SEP]"))
OVERTAKES = "layer from which on [SEP] gets more than [CLS]"


def mean_over_examples(values: np.ndarray) -> np.ndarray:
    """Mean over the examples that have a type; NaN where none has it.

    Args:
        values: shape (examples, …), NaN where an example lacks the type.
    """
    with np.errstate(invalid="ignore"):
        return np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0)


# Stripes


@dataclass(frozen=True)
class Stripes:
    """Types of word against special tokens, for resamples of the examples; see :func:`stripes_of`.

    Attributes:
        means: of each type over the examples that have it, shape (1 + resamples, types, layers,
            heads).
        marks: of the more attended special token over the same examples, same shape.
        n: examples.
        seed: of the resampling.
    """

    means: np.ndarray
    marks: np.ndarray
    n: int
    seed: Seed

    def heads(self, border: float = STRIPE) -> tuple[np.ndarray, np.ndarray]:
        """Heads with a stripe on a type of word, and heads with one mainly on a special token.

        A stripe is a mean of more than ``border``; one on words is also above the special tokens.

        Returns:
            Two boolean arrays of shape (1 + resamples, layers, heads), the data as they are first.
        """
        with np.errstate(invalid="ignore"):
            words = np.any((self.means > border) & (self.means > self.marks), axis=1)
            marks = np.any(self.marks > border, axis=1)
        return words, marks & ~words

    def on_words(self) -> Bootstrap:
        """Share of heads with a stripe on a word."""
        return self._bootstrap(self.heads()[0].mean(axis=(1, 2)))

    def marks_ahead(self) -> Bootstrap:
        """Share of heads with one mainly on a special token, minus the share with one on a word."""
        return self._bootstrap(self.heads()[1].mean(axis=(1, 2))) - self.on_words()

    def kept(self, before: Stripes) -> Bootstrap:
        """Of the heads with a stripe mainly on a special token, the share that had it ``before``; NaN if no head has one."""
        had, has = before.heads()[1], self.heads()[1]
        count = has.sum(axis=(1, 2))
        shares = (had & has).sum(axis=(1, 2)) / np.maximum(count, 1)
        return self._bootstrap(shares if count[0] else np.full(len(shares), np.nan))

    def _bootstrap(self, values: np.ndarray) -> Bootstrap:
        return Bootstrap.of(values, self.n, self.seed)


def stripes_of(one: TypeWeights) -> Stripes:
    """What types of word get, and what [CLS] and [SEP] get in the same examples, of one model and task."""
    values, means, marks = one.even_shares, [], []  # values: (examples, types, layers, heads)
    for at in range(len(LINGUISTIC)):
        there = np.isfinite(values[:, [at, *SPECIAL]]).all(axis=1, keepdims=True)
        both = np.where(there, values[:, [at, *SPECIAL]], np.nan)
        resampled = means_with_gaps(both, one.seed)  # (1 + resamples, 1 + 2, layers, heads)
        means.append(resampled[:, 0])
        marks.append(resampled[:, 1:].max(axis=1))
    return Stripes(np.stack(means, axis=1), np.stack(marks, axis=1), len(values), one.seed)


# From [CLS] to [SEP]


def sep_ahead(one: TypeWeights) -> np.ndarray:
    """How much more [SEP] gets than [CLS] in every layer, mean over heads, shape (examples, layers)."""
    return (one.on("[SEP]") - one.on("[CLS]")).mean(axis=2)


def last_layer_ahead(one: TypeWeights) -> Bootstrap:
    """How much more [SEP] gets than [CLS] in the last layer."""
    return bootstrap_mean(sep_ahead(one)[:, -1], one.seed)


def overtaking_layer(ahead: np.ndarray) -> float:
    """The layer, from 1, from which on [SEP] gets more than [CLS] in every layer; NaN if it does not in the last.

    Args:
        ahead: how much more [SEP] gets, shape (layers,).
    """
    behind = 1 + int(np.flatnonzero(ahead <= 0).max(initial=-1))  # layers until [CLS] is last ahead
    return float(one_based(behind)) if behind < len(ahead) else np.nan


def published_ahead() -> np.ndarray:
    """As :func:`sep_ahead`, mean over examples, of the published heatmaps, shape (layers,)."""
    return (published_panel("[SEP]") - published_panel("[CLS]")).mean(axis=1)
