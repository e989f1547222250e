"""Attention to tokens of one type, such as nouns or [SEP] (§4.4, Fig 6), also from [CLS] alone (§4.5, Fig 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..annotation.token_types import TOKEN_TYPES
from ..attention import Batch, received
from ..common import PROTOCOLS, one_of

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
        self._mask = side_by_side(self._types, batch)
        self._values |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        got = received(maps, batch) if self._attending == "all tokens" else _from_first(maps, batch)
        largest = (
            torch.stack(
                [
                    got.masked_fill(~mask[:, None], -torch.inf).amax(dim=2)
                    for mask in self._mask.unbind(1)  # each (examples, tokens)
                ],
                dim=1,
            )
            .cpu()
            .double()
            .numpy()
        )  # (examples, types, heads)
        for index, values in zip(batch.index, largest, strict=True):
            self._values[index].append(values)

    def compute(self) -> np.ndarray:
        """Weights from 0 to 1, shape (examples, types, layers, heads), NaN where an example has no token of the type."""
        values = np.stack([np.stack(self._values[index], axis=1) for index in sorted(self._values)])
        return np.where(np.isfinite(values), values, np.nan)


def side_by_side(masks: Sequence[np.ndarray], batch: Batch) -> torch.Tensor:
    """Masks of a batch's examples, laid on their real tokens: shape (examples, kinds, tokens), False at padding.

    Args:
        masks: per example of the data, shape (kinds, wordpieces).
        batch: the inputs.
    """
    examples, tokens = batch.mask.shape
    together = torch.zeros(examples, len(masks[batch.index[0]]), tokens, dtype=torch.bool)
    for row, (index, real) in enumerate(zip(batch.index, batch.mask.cpu(), strict=True)):
        together[row, :, real] = torch.from_numpy(masks[index])
    return together.to(batch.mask.device)


def _from_first(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The row of each example's first real token, [CLS]: shape (examples, heads, tokens)."""
    return maps[torch.arange(len(maps), device=maps.device), :, batch.starts]


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
