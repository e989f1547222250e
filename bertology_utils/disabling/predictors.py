"""What a head's maps are like, and what it adds, to see whether that predicts what disabling it does (§4.6, ours)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.carried import Carrying
from ..attention.interface import reaching, shape_of

PREDICTORS = ("weight on [CLS] and [SEP]", "weight on itself and its neighbours", "distance from even weights")


class MapStatistics:
    """Measurement: three statistics of every head's map, by example.

    Args:
        special: ids of the special tokens.
    """

    def __init__(self, special: tuple[int, ...]):
        self._special = special
        self._rows: dict[int, list[np.ndarray]] = {}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        ids, mask = batch.inputs["input_ids"], batch.mask
        special = torch.isin(ids, torch.tensor(self._special, device=ids.device)) & mask
        rows = mask[:, None].double()  # (examples, 1, queries)
        lengths = mask.sum(dim=1).double()[:, None]  # (examples, 1)

        def mean(of_queries: torch.Tensor) -> torch.Tensor:
            """Mean over an input's own queries: (examples, heads, queries) to (examples, heads)."""
            return (of_queries.double() * rows).sum(dim=2) / lengths

        marks = mean((maps * special[:, None, None]).sum(dim=3))
        near = mean(_diagonal(maps, -1) + _diagonal(maps, 0) + _diagonal(maps, 1))
        even = mask[:, None, None].double() / lengths[:, :, None, None]  # (examples, 1, 1, keys)
        distance = mean((maps.double() - even).abs().sum(dim=3) / 2)
        values = torch.stack([marks, near, distance], dim=1).cpu().numpy()  # (examples, statistics, heads)
        for index, of_example in zip(batch.index, values, strict=True):
            self._rows.setdefault(index, []).append(of_example)

    def compute(self) -> dict[str, np.ndarray]:
        """Means over examples, each of shape (layers, heads), by :data:`PREDICTORS`."""
        means = np.mean([np.stack(self._rows[index], axis=1) for index in sorted(self._rows)], axis=0)
        return dict(zip(PREDICTORS, means, strict=True))  # (statistics, layers, heads)


def lengths_added(model, batches: Sequence[Batch]) -> np.ndarray:
    """How long the vector is that a head adds to a token: ‖Σ a_ij f(x_j)‖, mean over all tokens (Kobayashi et al., 2020).

    Args:
        model: encoder or classifier in evaluation mode.
        batches: inputs.

    Returns:
        Shape (layers, heads).

    Raises:
        ValueError: see :class:`bertology_utils.attention.carried.Carrying`.
    """
    carrying, mask, tokens = Carrying(model), torch.empty(0), 0
    sums, attending = np.zeros(shape_of(model)), list[nn.Module]()  # the module of the present layer

    def see(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        attending[:] = [module]

    def add(layer: int, context: torch.Tensor) -> torch.Tensor:
        carrying.see(layer, attending[0], context.transpose(1, 2))  # to (examples, heads, tokens, head size)
        sums[layer] += (carrying.lengths * mask[:, None]).sum(dim=(0, 2)).double().cpu().numpy()
        return context

    with torch.inference_mode(), reaching(model, edit_outputs=add, observe_values=see):
        for batch in batches:
            batch = batch.to(next(model.parameters()).device)
            mask, tokens = batch.mask, tokens + int(batch.mask.sum())
            model(**batch.inputs)
    return sums / tokens


def _diagonal(maps: torch.Tensor, offset: int) -> torch.Tensor:
    """What every query gives the token so many places on; 0 where there is none. Shape (examples, heads, queries)."""
    weights = torch.diagonal(maps, offset=offset, dim1=2, dim2=3)
    lost = abs(offset)
    return torch.nn.functional.pad(weights, (lost, 0) if offset < 0 else (0, lost))
