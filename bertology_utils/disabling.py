"""A model with some of its heads disabled (§4.6), heads in the order of their importance, and classifiers fine-tuned with less (§5).

A disabled head attends with 1/L as in the paper, or gives another output instead. A head that is removed
gives zero: then its weights can be deleted. By 1/L it would go on giving the mean of its values, and
nothing would be saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from .batches import Batch, prepare
from .common import Head, one_of
from .hooks import attention_hooks, check_heads, layers_of, shape_of
from .models import outputs_of, predict_logits

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# What a disabled head gives. "uniform" is the paper's: attention of 1/L. "zero" takes the head's
# output away, "mean" replaces it by its mean over all tokens of the data.
ABLATIONS = ("uniform", "zero", "mean")
# Of every head, (layers, heads, head size or 1); None for uniform attention.
Instead = torch.Tensor | None


def all_heads(model: PreTrainedModel) -> list[Head]:
    """Every (layer, head) of a model, from 0."""
    return [head for layer in range(shape_of(model)[0]) for head in layer_heads(model, layer)]


def layer_heads(model: PreTrainedModel, layer: int) -> list[Head]:
    """Every head of one layer, from 0."""
    return [(layer, head) for head in range(shape_of(model)[1])]


def disable_heads(
    model: PreTrainedModel, heads: Iterable[Head], instead: Instead = None
) -> AbstractContextManager[None]:
    """A context within which the given heads attend with the constant weight 1/L, or give a constant instead.

    L is the number of real tokens, special tokens among them, as in the
    published code; padding gets nothing. ModernBERT's local layers are no
    exception: a disabled head attends to the whole input, beyond its window.
    Contexts add up, and reach no other model, thread or asynchronous task.
    Afterwards the model is as before, whatever happened inside. To disable each head in turn,
    :func:`bertology_utils.sweeps.sweep` gives the same answers faster.

    Args:
        model: encoder or classifier in evaluation mode, whose attention goes
            through transformers' attention interface.
        heads: (layer, head) from 0, of any kind of integers, or an array of two columns; any set,
            whole layers and all heads included; without heads the model is as it is.
        instead: what each head gives, before the output projection, in place of attending with 1/L;
            see :func:`replacement`.

    Raises:
        TypeError: something other than pairs of integers.
        ValueError: a head that the model does not have or that is named twice, or see
            :func:`bertology_utils.hooks.attention_hooks`.
    """
    chosen: dict[int, list[int]] = {}
    for layer, head in sorted(check_heads(model, heads)):
        chosen.setdefault(layer, []).append(head)

    def uniform(layer: int, weights: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if layer not in chosen:
            return weights
        examples, _, queries, keys = weights.shape
        real = weights.new_ones((examples, 1, 1, keys), dtype=torch.bool)
        if mask is not None:
            # The additive mask is 0 where a token is seen, and a real one is at least by itself.
            real = (mask == 0).any(dim=2, keepdim=True).expand_as(real)
        lengths = real.sum(dim=3, keepdim=True).clamp(min=1)
        rows = real.to(weights.dtype) / lengths  # (examples, 1, 1, keys)
        weights = weights.clone()
        weights[:, chosen[layer]] = rows.expand(-1, len(chosen[layer]), queries, -1)
        return weights

    def replace(layer: int, context: torch.Tensor) -> torch.Tensor:
        if layer not in chosen or instead is None:
            return context
        own = chosen[layer]
        context = context.clone()  # (examples, tokens, heads, head size)
        context[:, :, own] = instead[layer, own].to(context)
        return context

    if not chosen:
        return nullcontext()
    if instead is None:
        return attention_hooks(model, edit_maps=uniform)
    return attention_hooks(model, edit_outputs=replace)


def replacement(model: PreTrainedModel, batches: Sequence[Batch], ablation: str) -> Instead:
    """Output that each head gives instead when it is disabled, for :func:`disable_heads`; None for "uniform", which changes weights.

    Args:
        model: in evaluation mode.
        batches: the data over which the mean is taken.
        ablation: one of :data:`ABLATIONS`.
    """
    if one_of("ablation", ablation, ABLATIONS) == "uniform":
        return None
    if ablation == "zero":  # of any size of head, which not every configuration tells
        return torch.zeros(*shape_of(model), 1, dtype=torch.float64)
    model, batches = prepare(model, batches, whole=False)
    sums, tokens = [], 0
    for batch in batches:
        outputs: list[torch.Tensor] = []  # of each layer, summed over tokens

        def add(_: int, context: torch.Tensor, real: torch.Tensor = batch.mask) -> torch.Tensor:
            outputs.append(context[real].sum(dim=0).double().cpu())  # (heads, head size)
            return context

        with torch.inference_mode(), attention_hooks(model, edit_outputs=add):
            model(**batch.inputs)
        sums.append(torch.stack(outputs))
        tokens += int(batch.mask.sum())
    return torch.stack(sums).sum(dim=0) / tokens


def logits_without(
    model: PreTrainedModel, batches: Sequence[Batch], heads: Sequence[Head], instead: Instead = None
) -> np.ndarray:
    """A classifier's outputs with some heads disabled, shape (examples, labels), in the order of the data.

    Args:
        model, heads, instead: see :func:`disable_heads`.
        batches: see :mod:`bertology_utils.batches`.

    Raises:
        ValueError: see :func:`disable_heads`.
    """
    with disable_heads(model, heads, instead):
        return predict_logits(model, batches)


# Heads by their importance, and fine-tuning without some of them.


def importance(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """How much the loss depends on each head, to first order, shape (layers, heads).

    It is the mean over examples of ``|∂loss/∂ξ|`` at ξ = 1, where ξ multiplies the head's output, that
    is of the absolute sum of output × gradient over the example's tokens (Michel, Levy and Neubig,
    2019, equation 2). All heads come from one backward pass.

    Args:
        model: a classifier in evaluation mode.
        batches: with gold labels, and not those on which pruned models are compared.

    Raises:
        ValueError: labels that are missing or not numbers, or see :func:`bertology_utils.batches.prepare`.
    """
    outputs: list[torch.Tensor] = []  # per layer, (examples, tokens, heads, head size)

    def keep(layer: int, context: torch.Tensor) -> torch.Tensor:
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        outputs.append(context if layer else context.detach().requires_grad_())
        return outputs[-1]

    model, batches = prepare(model, batches, whole=False, classifier=True)
    total, examples = np.zeros(shape_of(model)), 0
    with torch.enable_grad(), attention_hooks(model, edit_outputs=keep):
        for batch in batches:
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
            total += products.double().sum(dim=(2, 4)).abs().sum(dim=1).cpu().numpy()
            examples += len(batch.index)
    return total / examples


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
    model, batches = prepare(model, batches, whole=False, classifier=True)
    zeros = replacement(model, batches, "zero")
    while left := [head for head in all_heads(model) if head not in gone]:
        with disable_heads(model, gone, zeros):
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
