"""A head's importance from one backward pass (Michel, Levy and Neubig, 2019, eq. 2), to compare with its exact effect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from ..attention import Batch
from .ablations import output_projections


def gradient_importance(model, batches: Sequence[Batch]) -> np.ndarray:
    """How much the loss of an example would change, to first order, if a head's output were scaled.

    The mean over examples of |∂loss/∂ξ| at ξ = 1, where ξ multiplies the
    head's output: the absolute sum of output × gradient over the example's tokens.

    Args:
        model: a classifier of BERT's make in evaluation mode.
        batches: with gold labels.

    Returns:
        Shape (layers, heads).

    Raises:
        ValueError: a model in training mode or of another make, or labels that are not numbers.
    """
    if model.training:
        raise ValueError("importance is measured in evaluation mode; call model.eval() first")
    outputs: list[torch.Tensor] = []

    def keep(module, arguments):
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        context = arguments[0] if outputs else arguments[0].detach().requires_grad_()
        outputs.append(context)
        return (context, *arguments[1:])

    hooks = [module.register_forward_pre_hook(keep) for module in output_projections(model)]
    device, total, examples = next(model.parameters()).device, 0.0, 0
    try:
        for batch in batches:
            batch = batch.to(device)
            if not torch.isfinite(batch.labels.float()).all():
                raise ValueError("some labels are missing; importance is that of the loss, which needs them")
            outputs.clear()
            with torch.enable_grad():
                loss = _loss(model(**batch.inputs).logits, batch.labels)
            gradients = torch.autograd.grad(loss, outputs)
            total = total + sum_by_head(outputs, gradients, model.config.num_attention_heads)
            examples += len(batch.index)
    finally:
        for hook in hooks:
            hook.remove()
    return (total / examples).cpu().numpy()


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Sum of the examples' losses, so that each example's gradient is its own."""
    if logits.shape[1] == 1:
        return functional.mse_loss(logits[:, 0], labels.to(logits), reduction="sum")
    return functional.cross_entropy(logits, labels, reduction="sum")


def sum_by_head(outputs: Sequence[torch.Tensor], gradients: Sequence[torch.Tensor], heads: int) -> torch.Tensor:
    """Sum over examples of |Σ output × gradient|, shape (layers, heads), from (examples, tokens, heads · size) per layer."""
    products = torch.stack([(a.detach() * b).unflatten(2, (heads, -1)) for a, b in zip(outputs, gradients, strict=True)])
    return products.double().sum(dim=(2, 4)).abs().sum(dim=1)  # (layers, examples, tokens, heads, size) to (layers, heads)
