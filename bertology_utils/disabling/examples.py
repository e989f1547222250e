"""Some examples out of many batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attention import Batch


def alone(batches: Sequence[Batch], example: int) -> Batch:
    """One example as a batch of its own, without padding.

    Args:
        batches: of many examples.
        example: its position in the data.

    Raises:
        ValueError: it is in none of them.
    """
    for batch in batches:
        if example in batch.index:
            row = batch.index.index(example)
            return _rows(batch, [row], [example], batch.mask[row])
    raise ValueError(f"example {example} is in none of {len(batches)} batches; they hold other rows of the data")


def only(batches: Sequence[Batch], wanted: np.ndarray) -> list[Batch]:
    """Some examples of many, counted anew.

    Args:
        batches: of all examples.
        wanted: True for those that are kept, shape (examples,).
    """
    place = np.cumsum(wanted) - 1
    kept = [(batch, [row for row, index in enumerate(batch.index) if wanted[index]]) for batch in batches]
    return [_rows(batch, rows, [int(place[batch.index[row]]) for row in rows]) for batch, rows in kept if rows]


def _rows(batch: Batch, rows: list[int], index: list[int], columns=slice(None)) -> Batch:
    inputs = {name: ids[rows][:, columns] for name, ids in batch.inputs.items()}
    return Batch(inputs, index, None if batch.labels is None else batch.labels[rows])
