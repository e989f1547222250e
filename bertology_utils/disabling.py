"""A model with some of its heads disabled: attention of 1/L as in the paper, or another output instead (§4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from .batches import Batch, check_batches
from .common import Head, one_of
from .hooks import attention_hooks, check_heads, device_of, shape_of
from .models import predict_logits

# What a disabled head gives. "uniform" is the paper's: attention of 1/L. "zero" takes the head's
# output away, "mean" replaces it by its mean over all tokens of the data.
ABLATIONS = ("uniform", "zero", "mean")
# Of every head, (layers, heads, head size or 1); None for uniform attention.
Instead = torch.Tensor | None


def all_heads(model) -> list[Head]:
    """Every (layer, head) of a model, from 0."""
    return [head for layer in range(shape_of(model)[0]) for head in layer_heads(model, layer)]


def layer_heads(model, layer: int) -> list[Head]:
    """Every head of one layer, from 0."""
    return [(layer, head) for head in range(shape_of(model)[1])]


def disable_heads(model, heads: Iterable[Head]) -> AbstractContextManager[None]:
    """A context within which the given heads attend with the constant weight 1/L.

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
            whole layers and all heads included.

    Raises:
        TypeError: something other than pairs of integers.
        ValueError: no head, a head that the model does not have or that is
            named twice, or see :func:`bertology_utils.hooks.attention_hooks`.
    """
    chosen = _by_layer(model, heads)

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

    return attention_hooks(model, edit_maps=uniform)


def replace_outputs(
    model, heads: Sequence[Head], instead: torch.Tensor
) -> AbstractContextManager[None]:
    """A context within which the given heads give a constant; see :func:`disable_heads`.

    Args:
        model: classifier or encoder in evaluation mode.
        heads: (layer, head) from 0.
        instead: what each head gives, before the output projection, shape (layers, heads, head
            size or 1).
    """
    chosen = _by_layer(model, heads)

    def replace(layer: int, context: torch.Tensor) -> torch.Tensor:
        if layer not in chosen:
            return context
        own = chosen[layer]
        context = context.clone()  # (examples, tokens, heads, head size)
        context[:, :, own] = instead[layer, own].to(context)
        return context

    return attention_hooks(model, edit_outputs=replace)


def replacement(model, batches: Sequence[Batch], ablation: str) -> Instead:
    """Output that each head gives instead when it is disabled; None for "uniform", which changes weights.

    Args:
        model: in evaluation mode.
        batches: the data over which the mean is taken.
        ablation: one of :data:`ABLATIONS`.
    """
    if one_of("ablation", ablation, ABLATIONS) == "uniform":
        return None
    if ablation == "zero":  # of any size of head, which not every configuration tells
        return torch.zeros(*shape_of(model), 1, dtype=torch.float64)
    return mean_outputs(model, batches)


def mean_outputs(model, batches: Sequence[Batch]) -> torch.Tensor:
    """Each head's output before the projection, mean over all tokens of the data; shape (layers, heads, head size)."""
    layers, heads = shape_of(model)
    sums: dict[int, torch.Tensor] = {}
    tokens, device, real = 0, device_of(model), torch.empty(0)

    def add(layer: int, context: torch.Tensor) -> torch.Tensor:
        summed = context.flatten(2)[real].sum(dim=0).double().cpu()
        sums[layer] = sums.get(layer, 0) + summed
        return context

    with torch.inference_mode(), attention_hooks(model, edit_outputs=add):
        for batch in check_batches(model, batches, whole=False):
            batch = batch.to(device)
            real = batch.mask
            tokens += int(real.sum())
            model(**batch.inputs)
    return torch.stack([sums[layer] / tokens for layer in range(layers)]).unflatten(1, (heads, -1))


def disabled(model, heads: Sequence[Head], instead: Instead) -> AbstractContextManager[None]:
    """A context within which heads are disabled as :func:`replacement` says; without heads the model is as it is."""
    if not len(heads):
        return nullcontext()
    if instead is None:
        return disable_heads(model, heads)
    return replace_outputs(model, heads, instead)


def logits_without(
    model, batches: Sequence[Batch], heads: Sequence[Head], instead: Instead = None
) -> np.ndarray:
    """A classifier's outputs with some heads disabled, shape (examples, labels), in the order of the data.

    Args:
        model, heads, instead: see :func:`disabled`; without heads, the model's own outputs.
        batches: see :mod:`bertology_utils.batches`.

    Raises:
        ValueError: see :func:`disable_heads`.
    """
    with disabled(model, heads, instead):
        return predict_logits(model, batches)


def _by_layer(model, heads: Iterable[Sequence[int]]) -> dict[int, list[int]]:
    """Heads by layer; see :func:`bertology_utils.hooks.check_heads`, and there must be one."""
    checked = check_heads(model, heads)
    if not checked:
        raise ValueError(
            "no head to disable is named; give at least one (layer, head), counted from 0"
        )
    return {layer: sorted(head for at, head in checked if at == layer) for layer, _ in checked}
