"""Reaching into a model's attention: its maps seen and changed, its heads' outputs changed, inside the forward pass.

All goes through transformers' attention interface, so that no architecture's
code is touched. Where a layer's maps are changed, whatever reads them later,
measurements included, sees the changed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..common import one_based, zero_based

if TYPE_CHECKING:
    from transformers import PreTrainedModel


IMPLEMENTATION = "bertology_maps"

Observer = Callable[[int, torch.Tensor], None]
# Is shown what a layer's heads read: (layer, attention module, values of shape (examples, heads,
# tokens, head size)).
ValueObserver = Callable[[int, nn.Module, torch.Tensor], None]
# What changes a layer's maps before they are used: (layer, maps, additive mask or None) to maps.
MapEditor = Callable[[int, torch.Tensor, torch.Tensor | None], torch.Tensor]
# What changes what a layer's heads give, before the output projection, shape (examples, tokens,
# heads, head size).
OutputEditor = Callable[[int, torch.Tensor], torch.Tensor]


@dataclass(eq=False)
class _Reach:
    """The changes that one context makes to the attention of one model.

    Attributes:
        modules: identities of the model's modules, by which its attention is told from another
            model's.
        edit_maps, edit_outputs, observe, observe_values: what is called at each layer.
        layer: the one that comes next in the present pass, from 0.
    """

    modules: frozenset[int]
    edit_maps: MapEditor | None
    edit_outputs: OutputEditor | None
    observe: Observer | None
    observe_values: ValueObserver | None = None
    layer: int = 0


# Everything that is in force, the outermost context first.
_reaches: ContextVar[tuple[_Reach, ...]] = ContextVar("attention_reaches", default=())


def register_attention() -> None:
    """Make this module's attention known to transformers; calling it again does nothing."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(IMPLEMENTATION, _observed_attention)
    # Without the second line transformers hands over no mask at all, and
    # padding would be attended to without a word.
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


def _observed_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: object,
) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention whose maps and outputs the contexts around its model can see and change.

    ``query``, ``key``, ``value``: (examples, heads, tokens, head size);
    ``attention_mask``: additive, (examples, 1, tokens, tokens), or None.
    """
    scaling = query.size(-1) ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling  # (examples, heads, tokens, tokens)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = torch.softmax(scores, dim=-1)
    reaches = [reach for reach in _reaches.get() if id(module) in reach.modules]
    for reach in reaches:
        if reach.edit_maps is not None:
            weights = reach.edit_maps(reach.layer, weights, attention_mask)
    with _single_precision(weights.device.type):  # what is measured is summed in float32 at least
        for reach in reaches:  # after all edits, so that every measurement sees what the model uses
            if reach.observe_values is not None:
                reach.observe_values(reach.layer, module, _at_least_single(value))
            if reach.observe is not None:
                reach.observe(reach.layer, _at_least_single(weights))
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    context = (
        torch.matmul(weights, value).transpose(1, 2).contiguous()
    )  # (examples, tokens, heads, head size)
    for reach in reaches:
        if reach.edit_outputs is not None:
            context = reach.edit_outputs(reach.layer, context)
        reach.layer += 1
    return context, None


def _single_precision(device: str) -> AbstractContextManager[object]:
    """A context without mixed precision, where there is any."""
    return (
        torch.autocast(device, enabled=False)
        if torch.is_autocast_enabled(device)
        else nullcontext()
    )


def _at_least_single(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, in float32 if it had fewer bits (bf16, fp16)."""
    return tensor if tensor.dtype.itemsize >= 4 else tensor.float()


def shape_of(model: PreTrainedModel) -> tuple[int, int]:
    """Layers and heads per layer of a model.

    Raises:
        ValueError: its configuration names none.
    """
    layers, heads = (
        getattr(model.config, name, None) for name in ("num_hidden_layers", "num_attention_heads")
    )
    if not (isinstance(layers, int) and isinstance(heads, int) and layers > 0 and heads > 0):
        raise ValueError(
            f"{type(model).__name__} has no attention heads: its configuration gives {layers, heads} as the numbers of"
            " layers and of heads per layer. Encoders such as BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT and ModernBERT have them"
        )
    return layers, heads


def unwrap(model: Any) -> PreTrainedModel:
    """The model inside what ``torch.compile`` or data parallelism has wrapped around it.

    A wrapper hides the model's class, its configuration and its attention, and its copies on other
    devices could not be observed.
    """
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while isinstance(model, wrappers) or hasattr(model, "_orig_mod"):
        model = model.module if isinstance(model, wrappers) else model._orig_mod
    return model


def check_eval(model: nn.Module) -> None:
    """Refuse a model that is in training mode, as a whole or in part.

    Dropout would give other maps and outputs at every call.

    Raises:
        ValueError: naming the first such part.
    """
    training = [name for name, module in model.named_modules() if module.training]
    if training:
        part = f" (its part {training[0]!r})" if training[0] else ""
        raise ValueError(
            f"{type(model).__name__} is in training mode{part}, so that dropout would change its"
            " outputs at every call; call model.eval() first"
        )


@contextmanager
def reaching(
    model: PreTrainedModel,
    edit_maps: MapEditor | None = None,
    edit_outputs: OutputEditor | None = None,
    observe: Observer | None = None,
    observe_values: ValueObserver | None = None,
) -> Iterator[None]:
    """Within the context, every self-attention of ``model``, and of no other model, calls the given functions.

    Contexts add up: the edits of an outer one come first. Layers are counted
    by their order in the pass, which holds for encoders that share or do not
    number their layers, too. Afterwards the model is as before, whatever
    happened inside.

    Args:
        model: encoder or classifier in evaluation mode.
        edit_maps: changes a layer's maps; measurements see the changed ones.
        edit_outputs: changes what a layer's heads give, before the output projection.
        observe: is shown a layer's maps.
        observe_values: is shown a layer's values just before its maps.

    Raises:
        ValueError: a model in training mode, without heads, or whose attention
            does not go through transformers' attention interface.
    """
    check_eval(model)
    layers, _ = shape_of(model)
    before = model.config._attn_implementation
    register_attention()
    model.set_attn_implementation(IMPLEMENTATION)
    if model.config._attn_implementation != IMPLEMENTATION:
        raise ValueError(
            f"the attention of {type(model).__name__} does not go through transformers' attention interface,"
            " so its maps can be neither seen nor changed; that of BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT"
            " and ModernBERT does"
        )
    reach = _Reach(
        frozenset(map(id, model.modules())), edit_maps, edit_outputs, observe, observe_values
    )
    hooks = [
        model.base_model.register_forward_pre_hook(lambda *_: setattr(reach, "layer", 0)),
        model.base_model.register_forward_hook(
            lambda *_: _check_layers(model, reach.layer, layers)
        ),
    ]
    token = _reaches.set((*_reaches.get(), reach))
    try:
        yield
    finally:
        _reaches.reset(token)
        for hook in hooks:
            hook.remove()
        model.set_attn_implementation(before)


def _check_layers(model: PreTrainedModel, seen: int, expected: int) -> None:
    if seen != expected:
        raise ValueError(
            f"{type(model).__name__} showed attention maps of {seen} layers where its configuration has {expected},"
            " so that layers cannot be numbered; models with a decoder, or several layers in one, are not measured"
        )


def is_edited(model: PreTrainedModel) -> bool:
    """True within a context that changes the model's maps or its heads' outputs, such as one that disables heads."""
    own = {id(module) for module in model.modules()}
    return any(
        own & reach.modules for reach in _reaches.get() if reach.edit_maps or reach.edit_outputs
    )


def head_weights(
    model: PreTrainedModel, layer: int, head: int
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The matrix and the bias that make a head's queries, keys and values.

    A model keeps those of all heads of a layer in one matrix; these are the head's rows.

    Args:
        model: encoder or classifier of BERT's layout: BERT, RoBERTa or ELECTRA.
        layer, head: from 0.

    Returns:
        By "query", "key" and "value": a matrix, shape (head size, hidden size), and a bias, shape
        (head size,).

    Raises:
        ValueError: no such layer or head, or a model that is laid out otherwise.
    """
    for kind, index, count in zip(("layer", "head"), (layer, head), shape_of(model), strict=True):
        zero_based(one_based(index), count, kind)
    try:
        attention = model.base_model.encoder.layer[layer].attention.self
        parts = {name: getattr(attention, name) for name in ("query", "key", "value")}
    except AttributeError:
        raise ValueError(
            f"the layers of {type(model).__name__} are not laid out as BERT's, so its heads cannot be computed by hand"
            " here; BERT, RoBERTa and ELECTRA can, and attention_maps reads the maps of any other"
        ) from None
    size = parts["query"].out_features // model.config.num_attention_heads
    rows = slice(head * size, (head + 1) * size)
    return {
        name: (linear.weight.detach()[rows], linear.bias.detach()[rows])
        for name, linear in parts.items()
    }
