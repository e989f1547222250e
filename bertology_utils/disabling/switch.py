"""A model with some of its heads disabled (§4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from ..attention import Batch
from ..attention.interface import reaching, shape_of
from ..common import Head, head_name, to_code, to_people
from ..encoders.evaluate import predict_logits


def all_heads(model) -> list[Head]:
    """Every (layer, head) of a model, from 0."""
    layers, heads = shape_of(model)
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def layer_heads(model, layer: int) -> list[Head]:
    """Every head of one layer, from 0."""
    return [(layer, head) for head in range(shape_of(model)[1])]


@contextmanager
def disable_heads(model, heads: Iterable[Head], no_weight: Sequence[int] = ()) -> Iterator[None]:
    """Within the context the given heads attend with the constant weight 1/L.

    L is the number of real tokens, special tokens among them, as in the
    published code; padding gets nothing. ModernBERT's local layers are no
    exception: a disabled head attends to the whole input, beyond its window.
    Contexts add up, and reach no other model. Afterwards the model is as
    before, whatever happened inside.

    Args:
        model: encoder or classifier in evaluation mode, whose attention goes
            through transformers' attention interface.
        heads: (layer, head) from 0; any set, whole layers and all heads included.
        no_weight: token ids that get no weight and are not counted in L, such
            as ``tokenizer.all_special_ids`` for the reading in which L counts words.

    Raises:
        ValueError: no head, a head that the model does not have or that is
            named twice, or see :func:`bertology_utils.attention.interface.reaching`.
    """
    chosen = by_layer(model, heads)
    ids: list[torch.Tensor] = []  # of the present pass

    def remember(module, arguments, keywords) -> None:
        ids[:] = [keywords["input_ids"] if "input_ids" in keywords else arguments[0]]

    def uniform(layer: int, weights: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if layer not in chosen:
            return weights
        examples, _, queries, keys = weights.shape
        real = weights.new_ones((examples, 1, 1, keys), dtype=torch.bool)
        if mask is not None:
            # The additive mask is 0 where a token is seen, and a real one is at least by itself.
            real = (mask == 0).any(dim=2, keepdim=True).expand_as(real)
        if no_weight:
            special = torch.isin(ids[0], torch.tensor(list(no_weight), device=weights.device))
            real = real & ~special[:, None, None, :]
        rows = real.to(weights.dtype) / real.sum(dim=3, keepdim=True).clamp(min=1)  # (examples, 1, 1, keys)
        weights = weights.clone()
        weights[:, chosen[layer]] = rows.expand(-1, len(chosen[layer]), queries, -1)
        return weights

    hook = model.base_model.register_forward_pre_hook(remember, with_kwargs=True) if no_weight else None
    try:
        with reaching(model, edit_maps=uniform):
            yield
    finally:
        if hook is not None:
            hook.remove()


def logits_without(model, batches: Sequence[Batch], heads: Sequence[Head]) -> np.ndarray:
    """A classifier's outputs with some heads disabled.

    Args:
        model, heads: see :func:`disable_heads`.
        batches: see :mod:`bertology_utils.attention.batches`.

    Returns:
        Shape (examples, labels), in the order of the data.

    Raises:
        ValueError: see :func:`disable_heads`.
    """
    with disable_heads(model, heads):
        return predict_logits(model, batches)


def by_layer(model, heads: Iterable[Head]) -> dict[int, list[int]]:
    """Heads by layer.

    Raises:
        ValueError: no head, one that the model does not have, or one named twice.
    """
    heads = list(heads)
    if not heads:
        raise ValueError("no head to disable is named; give at least one (layer, head), counted from 0")
    shape = shape_of(model)
    for at, head in enumerate(heads):
        for kind, index, count in zip(("layer", "head"), head, shape, strict=True):
            to_code(to_people(index), count, kind)
        if head in heads[:at]:
            raise ValueError(f"head {head_name(*head)} is named twice; name each head to disable once")
    return {layer: sorted(head for at, head in heads if at == layer) for layer, _ in heads}
