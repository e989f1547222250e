"""What a change of an attention weight means to the answer (as Clark et al., 2019, §3.3, ask it)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..attention import Batch
from ..attention.interface import reaching
from ..encoders.evaluate import check
from ..features import side_by_side


def weight_gradients(model, batches: Sequence[Batch], kinds: Sequence[np.ndarray]) -> np.ndarray:
    """``|∂ answer / ∂ weight|``, mean over heads, attending tokens and the tokens of each kind.

    The answer is the model's own: the largest output minus the mean of all,
    or the score of a regression.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        kinds: per example of the data which tokens are of which kind, shape (kinds, wordpieces).

    Returns:
        Shape (examples, kinds, layers); NaN where an example has no such token.

    Raises:
        ValueError: see :func:`bertology_utils.encoders.evaluate.check`.
    """
    check(model, batches)
    maps: list[torch.Tensor] = []

    def keep(layer: int, weights: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        maps.append(weights if layer else weights.detach().requires_grad_())
        return maps[-1]

    rows: dict[int, np.ndarray] = {}
    with torch.enable_grad(), reaching(model, edit_maps=keep):
        for batch in batches:
            batch = batch.to(next(model.parameters()).device)
            maps.clear()
            gradients = torch.autograd.grad(_answer(model(**batch.inputs).logits).sum(), maps)
            of_kind = side_by_side(kinds, batch).to(gradients[0].dtype)  # (examples, kinds, tokens)
            queries = batch.mask.to(gradients[0].dtype)
            sums = [torch.einsum("ehqk,eq,enk->en", gradient.abs(), queries, of_kind) for gradient in gradients]
            cells = queries.sum(dim=1)[:, None] * of_kind.sum(dim=2) * maps[0].shape[1]  # (examples, kinds)
            means = torch.stack([total / cells for total in sums], dim=2).double().cpu().numpy()
            rows |= dict(zip(batch.index, means, strict=True))
    return np.stack([rows[index] for index in sorted(rows)])


def _answer(logits: torch.Tensor) -> torch.Tensor:
    if logits.shape[1] == 1:
        return logits[:, 0]
    return logits.amax(dim=1) - logits.mean(dim=1)
