"""A model with some of its heads disabled (§4.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch

from ..attention import editing
from ..common import to_code, to_people

Head = tuple[int, int]


def all_heads(model) -> list[Head]:
    """Every (layer, head) of a model, from 0."""
    layers, heads = model.config.num_hidden_layers, model.config.num_attention_heads
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def layer_heads(model, layer: int) -> list[Head]:
    """Every head of one layer, from 0."""
    return [(layer, head) for head in range(model.config.num_attention_heads)]


@contextmanager
def disable_heads(model, heads: Iterable[Head], no_weight: Sequence[int] = ()) -> Iterator[None]:
    """Within the context the given heads attend with the constant weight 1/L.

    L is the number of real tokens, [CLS] and [SEP] among them, as in the
    published code; padding gets nothing. Afterwards the model is as before,
    whatever happened inside.

    Args:
        model: encoder or classifier in evaluation mode, whose attention goes
            through transformers' attention interface.
        heads: (layer, head) from 0; any set, whole layers and all heads included.
        no_weight: token ids that get no weight and are not counted in L, such
            as those of [CLS] and [SEP] for the reading in which L counts words.

    Raises:
        ValueError: no head, a head that the model does not have, a model in
            training mode, or one whose layers cannot be told apart.
    """
    modules = _self_attentions(model)
    chosen = {id(modules[layer]): indices for layer, indices in by_layer(model, heads).items()}
    inputs: dict[str, torch.Tensor] = {}

    def remember(module, arguments, keywords) -> None:
        inputs["ids"] = keywords["input_ids"] if "input_ids" in keywords else arguments[0]

    def uniform(module, weights: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        indices = chosen.get(id(module))
        if indices is None:
            return weights
        examples, _, queries, keys = weights.shape
        # The additive mask is 0 at real tokens.
        real = mask[:, :, :1] == 0 if mask is not None else weights.new_ones((examples, 1, 1, keys), dtype=torch.bool)
        if no_weight:
            special = torch.isin(inputs["ids"], torch.tensor(list(no_weight), device=weights.device))
            real = real & ~special[:, None, None, :]
        rows = real / real.sum(dim=3, keepdim=True).clamp(min=1)  # (examples, 1, 1, keys)
        weights = weights.clone()
        weights[:, indices] = rows.to(weights.dtype).expand(-1, len(indices), queries, -1)
        return weights

    hook = model.register_forward_pre_hook(remember, with_kwargs=True) if no_weight else None
    try:
        with editing(model, uniform):
            yield
    finally:
        if hook is not None:
            hook.remove()


def by_layer(model, heads: Iterable[Head]) -> dict[int, list[int]]:
    """Heads by layer, without repeats.

    Raises:
        ValueError: no head, or one that the model does not have.
    """
    heads = list(heads)
    if not heads:
        raise ValueError("no head to disable is named; give at least one (layer, head), counted from 0")
    shape = model.config.num_hidden_layers, model.config.num_attention_heads
    for head in heads:
        for kind, index, count in zip(("layer", "head"), head, shape, strict=True):
            to_code(to_people(index), count, kind)
    return {layer: sorted({head for at, head in heads if at == layer}) for layer, _ in heads}


def _self_attentions(model) -> list[torch.nn.Module]:
    layers = model.config.num_hidden_layers
    modules = [module for module in model.modules() if hasattr(module, "query") and hasattr(module, "key")]
    if len(modules) != layers:
        raise ValueError(
            f"{type(model).__name__} has {len(modules)} self-attention modules for {layers} layers,"
            " so a layer's heads cannot be told apart from another's"
        )
    return modules
