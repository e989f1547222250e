"""How long the vectors are that heads read: ‖f(x)‖ by type of token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.carried import Carrying
from ..attention.interface import reaching, shape_of
from ..features import side_by_side


def mean_lengths(model, batches: Sequence[Batch], kinds: Sequence[np.ndarray]) -> np.ndarray:
    """Mean of ‖f(x)‖ over the tokens of each kind and over heads.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: inputs.
        kinds: per example of the data which tokens are of which kind, shape (kinds, wordpieces).

    Returns:
        Shape (kinds, layers); NaN where there is no token of a kind.

    Raises:
        ValueError: see :class:`bertology_utils.attention.carried.Carrying`.
    """
    carrying = Carrying(model)
    sums, counts = np.zeros((len(kinds[0]), shape_of(model)[0])), np.zeros(len(kinds[0]))
    now = torch.empty(0)

    def see(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        carrying.see(layer, module, values)
        by_token = carrying.lengths.mean(dim=1)  # (examples, tokens)
        sums[:, layer] += torch.einsum("et,ekt->k", by_token, now).double().cpu().numpy()

    with torch.inference_mode(), reaching(model, observe_values=see):
        for batch in batches:
            batch = batch.to(next(model.parameters()).device)
            now = side_by_side(kinds, batch).to(next(model.parameters()).dtype)  # (examples, kinds, tokens)
            counts += now.sum(dim=(0, 2)).cpu().numpy()
            model(**batch.inputs)
    return sums / np.where(counts, counts, np.nan)[:, None]
