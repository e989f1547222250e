"""One example to look at before any statistic, chosen by what the data say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attention import Batch
from ..common import Head
from ..statistics.ties import largest


def alone(batches: Sequence[Batch], index: int) -> Batch:
    """One example by itself, without the padding that its batch gave it.

    Args:
        batches: that together hold the data.
        index: of the example in the data.

    Raises:
        ValueError: none of them has it.
    """
    for batch in batches:
        if index in batch.index:
            row = batch.index.index(index)
            real = batch.mask[row]
            return Batch({name: values[row : row + 1, real] for name, values in batch.inputs.items()}, [index])
    raise ValueError(f"no example {index} in these batches; they hold {sum(len(batch.index) for batch in batches)}")


def of_length(lengths: np.ndarray, wanted: int) -> int:
    """The first example whose length is nearest to the one wanted."""
    return int(np.abs(lengths - wanted).argmin())


def darkest(maps: np.ndarray, places: np.ndarray) -> tuple[Head, float]:
    """Of one input's heads the one whose column is darkest at some of the tokens, and that column's mean in even shares.

    Args:
        maps: shape (layers, heads, tokens, tokens).
        places: which tokens, shape (tokens,).
    """
    columns = maps.mean(axis=2)[..., places].max(axis=2)  # (layers, heads)
    layer, head = largest(columns)
    return (layer, head), float(columns[layer, head] * len(places))


def typical(values: np.ndarray, lengths: np.ndarray, longest: int) -> int:
    """Of the examples that fit on a picture, the one whose value is nearest to the mean over all examples.

    Args:
        values: shape (examples,), NaN where an example has none.
        lengths: in wordpieces, same shape.
        longest: that fits; if none does, all count.
    """
    fits = np.isfinite(values) & ((lengths <= longest) | ~(np.isfinite(values) & (lengths <= longest)).any())
    return largest(np.where(fits, -np.abs(values - np.nanmean(values)), np.nan))[0]
