"""On what do heads have a stripe, and had they it before? Estimates from resampled examples (§4.4)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..annotation.token_types import LINGUISTIC, TOKEN_TYPES
from ..statistics import Bootstrap
from .claims import STRIPE
from .compare import against_marks, kept_share, shares_of_heads
from .reading import Reading


class Stripes:
    """Heads with a stripe on a type of word, and heads with one mainly on [CLS] or [SEP].

    Args:
        reading: of one model on one task.
    """

    def __init__(self, reading: Reading):
        marks = [TOKEN_TYPES.index(kind) for kind in ("[CLS]", "[SEP]")]
        self._rivals = against_marks(reading.even_shares, range(len(LINGUISTIC)), marks, reading.seed)
        self._n, self._seed = len(reading.lengths), reading.seed

    @cached_property
    def heads(self) -> tuple[np.ndarray, np.ndarray]:
        """On a word, and mainly on a special token; each of shape (1 + resamples, layers, heads)."""
        return self._rivals.striped(STRIPE)

    def count(self, border: float) -> tuple[int, int]:
        """How many heads have a stripe on a word, and mainly on a special token, if it begins at ``border`` even shares."""
        words, marks = self._rivals.striped(border)
        return int(words[0].sum()), int(marks[0].sum())

    def on_words(self) -> Bootstrap:
        """Share of heads with a stripe on a word."""
        return shares_of_heads(self.heads[0], self._n, self._seed)

    def ahead(self) -> Bootstrap:
        """Share of heads with one mainly on a special token, minus that."""
        return shares_of_heads(self.heads[1], self._n, self._seed) - self.on_words()

    def words_beside_marks(self) -> Bootstrap:
        """What words get above an even share, as a part of what special tokens get above it; see ``Rivals.beside_marks``."""
        return self._rivals.beside_marks()

    def kept(self, before: Stripes) -> Bootstrap:
        """Of the heads with a stripe on a special token, the share that had it ``before``."""
        return kept_share(before.heads[1], self.heads[1], self._n, self._seed)
