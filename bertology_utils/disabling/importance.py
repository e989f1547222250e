"""A head's importance from one backward pass (Michel, Levy and Neubig, 2019, eq. 2), to compare with its exact effect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from ..attention import Batch
from ..attention.interface import reaching, shape_of


def gradient_importance(model, batches: Sequence[Batch]) -> np.ndarray:
    """How much the loss of an example would change, to first order, if a head's output were scaled.

    The mean over examples of ``|∂loss/∂ξ|`` at ξ = 1, where ξ multiplies the
    head's output: the absolute sum of output × gradient over the example's tokens.

    Args:
        model: a classifier in evaluation mode.
        batches: with gold labels.

    Returns:
        Shape (layers, heads).

    Raises:
        ValueError: no batches, labels that are missing or not numbers, or see
            :func:`bertology_utils.attention.interface.reaching`.
    """
    outputs: list[torch.Tensor] = []  # per layer, (examples, tokens, heads, head size)

    def keep(layer: int, context: torch.Tensor) -> torch.Tensor:
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        outputs.append(context if layer else context.detach().requires_grad_())
        return outputs[-1]

    if not batches:
        raise ValueError("no examples to weigh heads by; give at least one batch")
    device, examples = next(model.parameters()).device, 0
    total = torch.zeros(shape_of(model), dtype=torch.float64, device=device)
    with torch.enable_grad(), reaching(model, edit_outputs=keep):
        for batch in batches:
            batch = batch.to(device)
            if batch.labels is None or not torch.isfinite(batch.labels.float()).all():
                raise ValueError("some labels are missing; importance is that of the loss, which needs them")
            outputs.clear()
            gradients = torch.autograd.grad(_loss(model(**batch.inputs).logits, batch.labels), outputs)
            total += sum_by_head(outputs, gradients)
            examples += len(batch.index)
    return (total / examples).cpu().numpy()


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Sum of the examples' losses, so that each example's gradient is its own."""
    if logits.shape[1] == 1:
        return functional.mse_loss(logits[:, 0], labels.to(logits), reduction="sum")
    return functional.cross_entropy(logits, labels, reduction="sum")


def sum_by_head(outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor]) -> torch.Tensor:
    """Sum over examples of ``|Σ output × gradient|``, shape (layers, heads), from (examples, tokens, heads, size) per layer."""
    products = torch.stack([output.detach() * gradient for output, gradient in zip(outputs, gradients, strict=True)])
    return products.double().sum(dim=(2, 4)).abs().sum(dim=1)  # (layers, examples, tokens, heads, size) to (layers, heads)
