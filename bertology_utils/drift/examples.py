"""Which head, and which input, is shown as an example of what fine-tuning does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..common import Head
from ..statistics.ties import by_size, largest


def near_length(inputs: Sequence[Sequence[int]], wordpieces: int = 12) -> int:
    """The first of the inputs whose length is nearest to so many wordpieces: long enough to see, short enough to read."""
    return min(range(len(inputs)), key=lambda row: abs(len(inputs[row]) - wordpieces))


def middle_head(similarity: np.ndarray) -> Head:
    """In the layer that changed most, the head in the middle of the order by change: neither the best case nor the worst.

    Args:
        similarity: shape (layers, heads).
    """
    (layer,) = largest(-similarity.mean(axis=1))
    order = by_size(-similarity[layer])  # the most changed first
    return layer, int(order[len(order) // 2])
