"""What a disabled head gives instead: even attention, nothing, its average, or what it gives another input (§4.6, and others)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch

from ..attention import Batch
from ..attention.interface import reaching, shape_of
from ..common import Head, one_of
from .switch import by_layer, disable_heads

# "uniform" is the paper's: attention of 1/L. "zero" takes the head's output away, "mean" replaces it by its mean over
# all tokens of the data, "interchange" by what the head gives another input of the same length, token by token; the
# literature after the paper uses all four.
INTERCHANGE = "interchange"
ABLATIONS = ("uniform", "zero", "mean", INTERCHANGE)
# Of every head, (layers, heads, head size); INTERCHANGE; or None for even attention.
Instead = torch.Tensor | str | None


def replace_outputs(model, heads: Sequence[Head], instead: torch.Tensor | str) -> AbstractContextManager[None]:
    """Context in which the given heads give a constant, or what they give the next input; see :func:`disable_heads`.

    Args:
        model: classifier or encoder in evaluation mode.
        heads: (layer, head) from 0.
        instead: what each head gives, before the output projection, shape (layers, heads, head size); or
            :data:`INTERCHANGE`, for batches of partners (:func:`bertology_utils.disabling.groups.partner_batches`).
    """
    chosen = by_layer(model, heads)

    def put(layer: int, context: torch.Tensor) -> torch.Tensor:
        if layer not in chosen:
            return context
        own = chosen[layer]
        others = context.roll(-1, dims=0)[:, :, own] if isinstance(instead, str) else instead[layer, own].to(context)
        context = context.clone()  # (examples, tokens, heads, head size)
        context[:, :, own] = others
        return context

    return reaching(model, edit_outputs=put)


def replacement(model, batches: Sequence[Batch], ablation: str) -> Instead:
    """What every head gives when it is disabled.

    Args:
        model: in evaluation mode.
        batches: the data over which the mean is taken.
        ablation: one of :data:`ABLATIONS`.
    """
    if one_of("ablation", ablation, ABLATIONS) == "uniform":
        return None
    if ablation == INTERCHANGE:
        return ablation
    layers, heads = shape_of(model)
    sums = torch.zeros(layers, model.config.hidden_size, dtype=torch.float64)
    if ablation == "zero":
        return sums.unflatten(1, (heads, -1))
    tokens, device, real = 0, next(model.parameters()).device, torch.empty(0)

    def add(layer: int, context: torch.Tensor) -> torch.Tensor:
        sums[layer] += context.flatten(2)[real].sum(dim=0).double().cpu()
        return context

    with torch.inference_mode(), reaching(model, edit_outputs=add):
        for batch in batches:
            batch = batch.to(device)
            real = batch.mask
            tokens += int(real.sum())
            model(**batch.inputs)
    return (sums / tokens).unflatten(1, (heads, -1))


def disabled(model, heads: Sequence[Head], instead: Instead):
    """Context in which heads are disabled, as :func:`replacement` says."""
    return disable_heads(model, heads) if instead is None else replace_outputs(model, heads, instead)
