"""Which pattern does every head show for every example? A measurement for the one pass over the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from ..attention import Batch
from .images import SHORTEST
from .labelled_maps import PATTERNS

NO_TOKEN = -1  # an id that no wordpiece has


class Classifier(Protocol):
    """What tells patterns apart: the network, or the logistic regression."""

    def to(self, device: torch.device) -> Any:
        """Work on maps that lie there."""

    def predict(self, maps: torch.Tensor, separators: torch.Tensor) -> np.ndarray:
        """See :meth:`bertology_utils.patterns.cnn.PatternCNN.predict`."""


@dataclass(frozen=True)
class FoundPatterns:
    """What :class:`Patterns` computes.

    Attributes:
        patterns: indices into PATTERNS, shape (examples, layers, heads), for
            the examples that are long enough, in the order of the data.
        skipped: examples of fewer than four wordpieces, left out.
    """

    patterns: np.ndarray
    skipped: int

    @property
    def shares(self) -> np.ndarray:
        """Share of the examples in which a head shows each pattern, shape (layers, heads, patterns)."""
        return self.one_hot.mean(axis=0)

    @property
    def one_hot(self) -> np.ndarray:
        """1 where a head shows a pattern, shape (examples, layers, heads, patterns)."""
        return (self.patterns[..., None] == np.arange(len(PATTERNS))).astype(np.float64)


class Patterns:
    """Measurement: the pattern of every map (§4.1).

    Args:
        network: the classifier; :func:`bertology_utils.patterns.cnn.load_network`, or ``logistic.load_logistic``.
        separator: the tokenizer's id of [SEP]; None if it has none.
    """

    def __init__(self, network: Classifier, separator: int | None):
        self.network = network
        self.separator = separator
        self._rows: dict[int, list[np.ndarray]] = {}
        self._skipped = 0
        self._groups: list[tuple[list[int], torch.Tensor, torch.Tensor]] = []

    def start(self, batch: Batch) -> None:
        """Sort the batch's examples by length: maps are cut to their real tokens, and only equal ones stack."""
        self.network.to(batch.mask.device)
        lengths = batch.lengths.tolist()
        self._skipped += sum(length < SHORTEST for length in lengths)
        self._groups = []
        for length in sorted({length for length in lengths if length >= SHORTEST}):
            rows = [row for row, other in enumerate(lengths) if other == length]
            at = batch.mask[rows].nonzero()[:, 1].view(len(rows), length)  # (examples, length): their real positions
            ids = batch.inputs["input_ids"][rows].gather(1, at)
            self._groups.append((rows, at, ids == (NO_TOKEN if self.separator is None else self.separator)))
            self._rows |= {batch.index[row]: [] for row in rows}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Classify one layer; see :class:`bertology_utils.attention.Measurement`.

        Raises:
            ValueError: the maps hold NaN, or rows that do not sum to 1.
        """
        heads = maps.shape[1]
        for rows, at, separators in self._groups:
            part = maps[rows].take_along_dim(at[:, None, :, None], 2).take_along_dim(at[:, None, None, :], 3)
            part = part.flatten(0, 1)  # (examples · heads, length, length)
            found = self.network.predict(part, separators.repeat_interleave(heads, dim=0))
            for row, patterns in zip(rows, found.reshape(len(rows), heads), strict=True):
                self._rows[batch.index[row]].append(patterns)

    def compute(self) -> FoundPatterns:
        """The patterns of all examples.

        Raises:
            ValueError: no example is long enough.
        """
        if not self._rows:
            raise ValueError(f"none of the {self._skipped} inputs has {SHORTEST} wordpieces or more; no map shows a pattern")
        return FoundPatterns(np.array([self._rows[index] for index in sorted(self._rows)]), self._skipped)
