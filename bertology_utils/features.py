"""Attention to tokens of one type, such as nouns or [SEP] (§4.4, Fig 6), also from [CLS] alone (§4.5, Fig 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from .annotation.token_types import TOKEN_TYPES
from .attention import Batch
from .choices import one_of
from .protocols import PROTOCOLS
from .statistics import Bootstrap, Seed, bootstrap_mean, bootstrap_weights

ATTENDING = ("all tokens", "[CLS]")


class Features:
    """Measurement: the weight that each type of token gets from the average token (or from [CLS]), for every head.

    The weights in a token's column of the attention map are summed and divided
    by the number of rows; of several tokens of a type the largest counts.

    Args:
        types: per example of the data, which wordpieces are of which type,
            shape (types, wordpieces); see
            :func:`bertology_utils.annotation.token_types.token_types`.
        attending: whose attention is measured, one of :data:`ATTENDING`.
    """

    def __init__(self, types: Sequence[np.ndarray], attending: str = "all tokens"):
        self._types = types
        self._attending = one_of("attending", attending, ATTENDING)
        self._values: dict[int, list[np.ndarray]] = {}
        self._mask = torch.empty(0)

    def start(self, batch: Batch) -> None:
        """Lay the batch's examples side by side: shape (examples, types, tokens)."""
        examples, tokens = batch.mask.shape
        self._mask = torch.zeros(examples, len(self._types[batch.index[0]]), tokens, dtype=torch.bool)
        for row, (index, real) in enumerate(zip(batch.index, batch.mask.cpu(), strict=True)):
            self._mask[row, :, real] = torch.from_numpy(self._types[index])
            self._values[index] = []
        self._mask = self._mask.to(batch.mask.device)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        got = received(maps, batch) if self._attending == "all tokens" else _from_first(maps, batch)
        largest = torch.stack([
            got.masked_fill(~mask[:, None], -torch.inf).amax(dim=2) for mask in self._mask.unbind(1)  # each (examples, tokens)
        ], dim=1).cpu().double().numpy()  # (examples, types, heads)
        for index, values in zip(batch.index, largest, strict=True):
            self._values[index].append(values)

    def compute(self) -> np.ndarray:
        """Weights from 0 to 1, shape (examples, types, layers, heads), NaN where an example has no token of the type."""
        values = np.stack([np.stack(self._values[index], axis=1) for index in sorted(self._values)])
        return np.where(np.isfinite(values), values, np.nan)


def received(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """What each token gets from the average real token: column sums over lengths, shape (examples, heads, tokens).

    Args:
        maps: shape (examples, heads, tokens, tokens).
        batch: the inputs.
    """
    share = batch.mask / batch.lengths[:, None]  # (examples, queries)
    return torch.einsum("ehqk,eq->ehk", maps, share.to(maps.dtype))


def _from_first(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The row of each example's first real token, [CLS]: shape (examples, heads, tokens)."""
    first = batch.mask.int().argmax(dim=1)
    return maps[torch.arange(len(maps), device=maps.device), :, first]


def disregard(values: np.ndarray, protocol: str) -> np.ndarray:
    """Examples without a type, as a protocol counts them.

    Args:
        values: from :class:`Features`, with the types of :data:`TOKEN_TYPES`.
        protocol: "paper" leaves them out (NaN). "official" counts them as 0,
            except for negation, as the published code did.
    """
    if one_of("protocol", protocol, PROTOCOLS) == "paper":
        return values
    kept = np.array([name == "negation" for name in TOKEN_TYPES])[None, :, None, None]
    return np.where(np.isnan(values) & ~kept, 0.0, values)


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
        return [Bootstrap(float(one[0]), one[1:], int(n), self.seed) if n else None
                for one, n in zip(ratios.T, self.n, strict=True)]

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
    others = [one for one in rivals if one != kind and np.isfinite(values[:, one] + values[:, kind]).any()]
    compared = against_marks(values[:, :, None, None], others, [kind], seed)
    wins = compared.marks > compared.means  # (1 + resamples, others, 1, 1)
    return bool(wins[0].all()), float(wins[1:].all(axis=(1, 2, 3)).mean())
