"""What each type of token gets from the average token, or from [CLS], and how each head divides its attention (§4.4, §4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..annotation.inputs import LINGUISTIC, MARKS, TOKEN_TYPES, AnnotatedInput, token_types
from ..attention import Batch, received
from ..common import PROTOCOLS, one_of
from ..glue import Task

ATTENDING = ("all tokens", "[CLS]")
# Of all attention, in this order: a token that is two of these counts as the first.
DESTINATIONS = ("[CLS]", "[SEP]", "punctuation", "previous", "self", "next", "all else")
NEIGHBOURS = {"previous": -1, "self": 0, "next": 1}


class Features:
    """Measurement: the weight that each type of token gets from the average token (or from [CLS]), for every head.

    The weights in a token's column of the attention map are summed and divided
    by the number of rows; of several tokens of a type the largest counts.

    Args:
        types: per example of the data, which wordpieces are of which type,
            shape (types, wordpieces); see
            :func:`bertology_utils.annotation.inputs.token_types`.
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


def marks(annotated: AnnotatedInput) -> np.ndarray:
    """[CLS], [SEP] and punctuation of an input, for :class:`Flow`: shape (3, wordpieces)."""
    cls, separators, points = token_types(annotated)[len(LINGUISTIC) :]
    return np.stack(
        [cls, separators & ~cls, points & ~separators & ~cls]
    )  # a text can spell out "[SEP]"


@dataclass(frozen=True)
class FlowShares:
    """Result of :class:`Flow`; shares of the average token's attention, from 0 to 1.

    Attributes:
        destinations: shape (examples, layers, heads, 7), in the order of
            :data:`DESTINATIONS`; they sum to 1.
        neighbours: attention to the previous token, the token itself and the
            next, whatever these are, shape (examples, layers, heads, 3).
    """

    destinations: np.ndarray
    neighbours: np.ndarray


class Flow:
    """Measurement: how each head divides its attention.

    Args:
        marks: per example of the data, from :func:`marks`.
    """

    def __init__(self, marks: Sequence[np.ndarray]):
        self._marks = marks
        self._rows: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._now = torch.empty(0)

    def start(self, batch: Batch) -> None:
        """Lay the batch's marks side by side: shape (examples, 3, tokens)."""
        self._now = side_by_side(self._marks, batch).float()
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        to_marks = torch.einsum("ehk,emk->ehm", received(maps, batch), self._now.to(maps.dtype))
        other = 1 - self._now.amax(dim=1)  # (examples, tokens): words
        neighbours, words = [], []
        for offset in NEIGHBOURS.values():
            weights = torch.diagonal(
                maps, offset, dim1=2, dim2=3
            )  # (examples, heads, queries that have this neighbour)
            real = batch.mask[:, max(0, -offset) : maps.shape[2] - max(0, offset)]
            weights = weights * real[:, None] / batch.lengths[:, None, None]
            keys = other[:, max(0, offset) : maps.shape[3] + min(0, offset)]
            neighbours.append(weights.sum(dim=2))
            words.append((weights * keys[:, None]).sum(dim=2))
        shares = torch.cat([to_marks, torch.stack(words, dim=2)], dim=2)  # (examples, heads, 6)
        shares = torch.cat([shares, 1 - shares.sum(dim=2, keepdim=True)], dim=2)
        destinations = shares.cpu().double().numpy()
        around = torch.stack(neighbours, dim=2).cpu().double().numpy()
        for index, *both in zip(batch.index, destinations, around, strict=True):
            self._rows[index].append(tuple(both))

    def compute(self) -> FlowShares:
        """Shares of all examples, in the order of the data."""
        rows = [self._rows[index] for index in sorted(self._rows)]
        return FlowShares(
            *(np.array([[layer[part] for layer in row] for row in rows]) for part in (0, 1))
        )


def in_even_shares(
    flows: Mapping[Task, FlowShares], special: Mapping[Task, Sequence[np.ndarray]]
) -> dict[str, float]:
    """What one [CLS], [SEP] or punctuation mark gets, in multiples of an even share; mean over heads, examples, then tasks.

    Args:
        flows: by task.
        special: by task and example, from :func:`marks`.
    """
    of_tasks = []
    for task, flow in flows.items():
        got = flow.destinations[..., : len(MARKS)].mean(axis=(1, 2))  # (examples, marks)
        lengths = np.array([of_example.shape[1] for of_example in special[task]])
        counts = sum(of_example.sum(axis=1) for of_example in special[task])
        of_tasks.append((got * lengths[:, None]).sum(axis=0) / np.maximum(counts, 1))
    return dict(zip(MARKS, np.mean(of_tasks, axis=0).tolist(), strict=True))
