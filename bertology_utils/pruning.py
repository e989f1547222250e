"""A classifier with less: heads that are removed, and layers that fine-tuning leaves as they are (§5).

A head that is removed gives zero: then its weights can be deleted. By 1/L, as in the paper, it would
go on giving the mean of its values, and nothing would be saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from .common import Head
from .disabling import all_heads, disabled, replacement
from .hooks import attention_hooks, check_heads, device_of, layers_of, shape_of, unwrap
from .models import check, outputs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from .batches import Batch


def importance(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """How much the loss depends on each head, to first order, shape (layers, heads).

    It is the mean over examples of ``|∂loss/∂ξ|`` at ξ = 1, where ξ multiplies the head's output, that
    is of the absolute sum of output × gradient over the example's tokens (Michel, Levy and Neubig,
    2019, equation 2). All heads come from one backward pass.

    Args:
        model: a classifier in evaluation mode.
        batches: with gold labels, and not those on which pruned models are compared.

    Raises:
        ValueError: labels that are missing or not numbers, or see :func:`bertology_utils.models.check`.
    """
    outputs: list[torch.Tensor] = []  # per layer, (examples, tokens, heads, head size)

    def keep(layer: int, context: torch.Tensor) -> torch.Tensor:
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        outputs.append(context if layer else context.detach().requires_grad_())
        return outputs[-1]

    model = unwrap(model)
    device, examples = device_of(model), 0
    total = torch.zeros(shape_of(model), dtype=torch.float64, device=device)
    with torch.enable_grad(), attention_hooks(model, edit_outputs=keep):
        for batch in check(model, batches, whole=False):
            batch = batch.to(device)
            if batch.labels is None or not torch.isfinite(batch.labels.float()).all():
                raise ValueError(
                    "some labels are missing; importance is that of the loss, which needs them"
                )
            outputs.clear()
            loss = _loss(outputs_of(model, batch), batch.labels)
            gradients = torch.autograd.grad(loss, outputs)
            products = torch.stack(
                [out.detach() * slope for out, slope in zip(outputs, gradients, strict=True)]
            )  # (layers, examples, tokens, heads, size)
            # Of every example summed before its absolute value is taken.
            total += products.double().sum(dim=(2, 4)).abs().sum(dim=1)
            examples += len(batch.index)
    return (total / examples).cpu().numpy()


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Sum of the examples' losses, so that each example's gradient is its own."""
    if logits.shape[1] == 1:
        return functional.mse_loss(logits[:, 0], labels.to(logits), reduction="sum")
    return functional.cross_entropy(logits, labels, reduction="sum")


def normalise_layers(values: np.ndarray) -> np.ndarray:
    """Importance in the scale of each layer, divided by the layer's root mean square, (layers, heads).

    Undivided, whole layers would go first (Molchanov et al., 2017, as in Michel et al., 2019, §4.1).
    """
    return values / np.maximum(np.sqrt((values**2).mean(axis=1, keepdims=True)), 1e-30)


def removal_order(model: PreTrainedModel, batches: Sequence[Batch], step: int) -> list[Head]:
    """All heads, from 0, in the order in which they are removed, the least important first.

    So many go at a time, then those that are left are ranked anew, each layer's in its own scale.

    Args:
        model, batches: see :func:`importance`.
        step: heads that go at a time; as many as there are for one ranking of all.
    """
    gone: list[Head] = []
    batches = check(unwrap(model), batches, whole=False)
    zeros = replacement(model, batches, "zero")
    while left := [head for head in all_heads(model) if head not in gone]:
        with disabled(model, gone, zeros):
            rank = normalise_layers(importance(model, batches))
        gone += sorted(left, key=lambda head: rank[head])[:step]
    return gone


@dataclass(frozen=True)
class Cut:
    """What a fine-tuning run goes without, from its first step to its last.

    Attributes:
        frozen: so many of the lowest layers, and with them the embeddings, stay as they are.
        removed: heads (layer, head) from 0 that give zero.
    """

    frozen: int = 0
    removed: tuple[Head, ...] = ()

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.frozen} layers frozen, {len(self.removed)} heads removed"

    def apply(self, model: PreTrainedModel) -> None:
        """Freeze layers of a model, remove heads of it, and let no training undo it.

        Of a removed head what the output projection reads is zero, and so is its gradient: AdamW's
        moments of it stay zero then, and decay leaves zero as it is.

        Args:
            model: BERT, or built like it, on the device on which it is trained.

        Raises:
            ValueError: a model that is not built like BERT, or without such layers or heads.
        """
        layers = layers_of(model)
        if not 0 <= self.frozen <= len(layers):
            raise ValueError(
                f"{self.frozen} layers cannot be frozen; the model has {len(layers)} of them"
            )
        for part in (model.base_model.embeddings, *layers[: self.frozen]) if self.frozen else ():
            part.requires_grad_(False)
        masks: dict[int, torch.Tensor] = {}
        for layer, head in check_heads(model, self.removed) if self.removed else ():
            weight = layers[layer].attention.output.dense.weight  # (hidden, heads · head size)
            mask = masks.setdefault(layer, torch.ones_like(weight))
            size = weight.shape[1] // shape_of(model)[1]
            mask[:, head * size : (head + 1) * size] = 0
        for layer, mask in masks.items():
            weight = layers[layer].attention.output.dense.weight
            weight.data.mul_(mask)
            weight.register_hook(lambda gradient, mask=mask: gradient * mask)
