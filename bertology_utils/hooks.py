"""Reaching into a model's attention: its maps seen and changed, its heads' outputs changed, inside the forward pass.

All goes through transformers' attention interface, so that no architecture's
code is touched. Where a layer's maps are changed, whatever reads them later,
measurements included, sees the changed ones.
"""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .common import Head

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

IMPLEMENTATION = "bertology_maps"
# Ways to compute one and the same attention: transformers' own, kernels of the Hub ("OWNER/NAME"), and
# this module's, which a model has that was copied within a context.
_SOFTMAX = re.compile(
    rf"(paged\|)?(eager|sdpa|flex_attention|flash_attention_\d|.+/.+)|{IMPLEMENTATION}"
)

# Is shown a layer's maps and what its heads read: (layer, maps, attention module, values of shape
# (examples, heads, tokens, head size)).
Observer = Callable[[int, torch.Tensor, nn.Module, torch.Tensor], None]
# What changes a layer's maps before they are used: (layer, maps, additive mask or None) to maps.
MapEditor = Callable[[int, torch.Tensor, torch.Tensor | None], torch.Tensor]
# What changes what a layer's heads give, before the output projection, shape (examples, tokens,
# heads, head size).
OutputEditor = Callable[[int, torch.Tensor], torch.Tensor]


@dataclass(eq=False)
class _Context(threading.local):
    """The changes that one context makes to the attention of one model.

    Attributes:
        modules: identities of the model's modules, by which its attention is told from another
            model's.
        heads: per layer.
        config: the model's.
        before: the attention that the configuration named before any context.
        edit_maps, edit_outputs, observe: what is called at each layer.
        layer: the one that comes next in this thread's present pass, from 0.
    """

    modules: frozenset[int]
    heads: int
    config: PreTrainedConfig
    before: str
    edit_maps: MapEditor | None
    edit_outputs: OutputEditor | None
    observe: Observer | None
    layer: int = 0


# All that are open; and what this thread or task opened, the outermost first, which may have been
# closed by another one.
_open: list[_Context] = []
_opened_here: ContextVar[tuple[_Context, ...]] = ContextVar("attention_contexts", default=())
_lock = threading.Lock()


def _in_force(modules: Iterable[nn.Module]) -> list[_Context]:
    """The contexts that reach some of these modules here, the outermost first."""
    own = set(map(id, modules))
    return [one for one in _opened_here.get() if one in _open and own & one.modules]


# What models hand down to attention and an eager pass over whole inputs does not use: windows are
# in the mask, positions in the queries and keys; of segments, models that have none know nothing.
_WITHOUT_EFFECT = set(
    "deterministic num_items_in_batch output_attentions output_hidden_states output_router_logits"
    " position_ids return_dict sliding_window token_type_ids use_cache".split()
)


def _observed_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: torch.Tensor | None = None,
    softcap: float | None = None,
    **others: object,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scaled dot-product attention whose maps and outputs the contexts around its model can see and change.

    ``query``, ``key``, ``value``: (examples, heads, tokens, head size), the last two with as many
    heads or a fraction of them (grouped-query attention); ``attention_mask``: additive,
    (examples, 1, tokens, tokens), or None; ``position_bias``: added to the scores likewise;
    ``softcap``: bound on the size of scores.
    """
    contexts = _in_force([module])
    if attention_mask is not None and attention_mask.dtype == torch.bool:
        # SDPA's: another thread opened a context during this pass.
        attention_mask = torch.where(attention_mask, 0.0, torch.finfo(torch.float32).min)
    _check_attention(module, query, key, attention_mask, others, contexts)
    if key.shape[1] < query.shape[1]:  # each is shared by several heads
        each = query.shape[1] // key.shape[1]
        key, value = (
            part[:, :, None].expand(-1, -1, each, -1, -1).flatten(1, 2) for part in (key, value)
        )
    scaling = query.size(-1) ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling  # (examples, heads, tokens, tokens)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    for added in (position_bias, attention_mask):
        scores = scores if added is None else scores + added
    # Of bf16 or fp16, weights are in float32, so that rows sum to 1, until they meet the values.
    weights = torch.softmax(scores, -1, torch.float32 if scores.dtype.itemsize < 4 else None)
    for context in contexts:
        if context.edit_maps is not None:
            weights = context.edit_maps(context.layer, weights, attention_mask)
    # What is measured is summed in float32 at least, and after all edits, so that every
    # measurement sees what the model uses.
    kind = weights.device.type
    mixed = torch.is_autocast_enabled(kind)
    with torch.autocast(kind, enabled=False) if mixed else nullcontext():
        for context in contexts:
            if context.observe is not None:
                single = value.float() if value.dtype.itemsize < 4 else value
                context.observe(context.layer, weights, module, single)
    weights = nn.functional.dropout(weights.to(value.dtype), p=dropout, training=module.training)
    # (examples, tokens, heads, head size)
    output = torch.matmul(weights, value).transpose(1, 2).contiguous()
    for context in contexts:
        if context.edit_outputs is not None:
            output = context.edit_outputs(context.layer, output)
        context.layer += 1
    return output, weights


def _check_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    others: dict[str, object],
    contexts: Sequence[_Context],
) -> None:
    """Refuse attention that would be computed wrongly, or whose heads cannot be numbered."""
    (heads, tokens), (key_heads, keys) = query.shape[1:3], key.shape[1:3]
    first = any(context.layer == 0 for context in contexts)
    causal = others.pop("is_causal", False) or (first and mask is not None and _is_causal(mask))
    unknown = sorted(n for n in others.keys() - _WITHOUT_EFFECT if others[n] is not None)
    why = ""
    if causal:
        why = _DECODER
    elif unknown:
        why = (
            f"gives its attention {', '.join(unknown)}, of which nothing is known here, so that its maps could be wrong"
            " (leave it out if you gave it yourself)"
        )
    elif keys != tokens or heads % key_heads:
        why = f"has {heads} heads with queries of {tokens} tokens and {key_heads} with keys of {keys}, which do not fit"
    elif any(context.heads != heads for context in contexts):
        why = f"has {heads} heads where the configuration has {contexts[0].heads}, so that they cannot be numbered"
    if why:
        raise _refusal(module, why)


_DECODER = (
    "is a decoder, or has one: a token attends to those before it only, and a disabled head would see"
    " those after it, too"
)


def _refusal(of: nn.Module, why: str) -> ValueError:
    return ValueError(
        f"{type(of).__name__} {why}. Encoders such as BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT and ModernBERT can be"
        " measured and their heads disabled"
    )


def _is_causal(mask: torch.Tensor) -> bool:
    """True if some real token is seen by a later one and does not see it; ``mask`` is additive."""
    seen = mask == 0  # (examples, 1, queries, keys); where all queries see the same, 1 of them
    if seen.shape[2] == 1:
        return False
    real = seen.diagonal(dim1=2, dim2=3)
    among = seen & real[..., None] & real[..., None, :]
    return bool((among != among.transpose(2, 3)).any())


def shape_of(model: PreTrainedModel) -> tuple[int, int]:
    """Layers and heads per layer of a model.

    Raises:
        ValueError: its configuration names none.
    """
    model = unwrap(model)
    layers, heads = (
        getattr(model.config, name, None) for name in ("num_hidden_layers", "num_attention_heads")
    )
    if not (isinstance(layers, int) and isinstance(heads, int) and layers > 0 and heads > 0):
        raise _refusal(
            model,
            f"has no attention heads: its configuration gives {layers, heads} as the numbers of layers and of heads per layer",
        )
    return layers, heads


# Methods of PEFT that change a model's own layers, and nothing around it.
_IN_LAYERS = set("LORA ADALORA IA3 LOHA LOKR OFT BOFT VERA".split())


def unwrap(model: Any) -> PreTrainedModel:
    """The model inside what ``torch.compile``, data parallelism or PEFT has wrapped around it.

    A wrapper hides the model's class, its configuration and its attention, and its copies on other
    devices could not be observed.

    Raises:
        ValueError: no model of transformers, or one in a wrapper that does more than the model.
    """
    from transformers import PreTrainedModel

    while not isinstance(model, PreTrainedModel):
        adapters = [*getattr(model, "peft_config", {}).values()]
        if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            model = model.module
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod
        elif adapters and all(
            one.peft_type in _IN_LAYERS and not getattr(one, "alora_invocation_tokens", None)
            for one in adapters
        ):
            model = model.get_base_model()
        else:
            parts: Any = getattr(model, "named_modules", dict)()
            inside = [name for name, part in parts if isinstance(part, PreTrainedModel)]
            instead = f"the one inside, .get_submodule({inside[0]!r})" if inside else "one of these"
            raise ValueError(
                f"{type(model).__name__} is no model of transformers, and what it adds to one (virtual tokens, pooling, a"
                f" scale of its outputs) would be left out; give {instead}"
            )
    return model


def device_of(model: nn.Module) -> torch.device:
    """Where a model takes its inputs, though its weights may wait on the disk (``device_map``)."""
    hooks = (getattr(module, "_hf_hook", None) for module in model.modules())
    brought_to = (getattr(hook, "execution_device", None) for hook in hooks)
    devices = (one for one in brought_to if one is not None)
    device = torch.device(next(devices, next(model.parameters()).device))
    if device.type == "meta":
        raise ValueError(f"{type(model).__name__} has no weights: they are on the device 'meta'")
    return device


def weight_and_bias(linear: Any, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Matrix (out, in) and bias of a linear layer of any class; its inputs are on the device of ``like``.

    Another class than torch's may keep codes, or an update beside its weights, so they are what it
    makes of unit vectors and of zero.
    """
    kept = getattr(linear, "weight", None)
    if type(linear) is nn.Linear and type(kept) is nn.Parameter and kept.device.type != "meta":
        bias = kept.new_zeros(len(kept)) if linear.bias is None else linear.bias
        return kept.detach(), bias.detach()
    kinds = [one.dtype for one in linear.parameters() if one.is_floating_point()]
    kind = (*kinds, like.dtype)[0]
    unit = torch.eye(linear.in_features, dtype=kind, device="cpu").to(like.device)
    with torch.no_grad():
        bias = linear(torch.zeros_like(unit[0]))
        return (linear(unit) - bias).T, bias


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
            f"{type(model).__name__} is in training mode{part}, with dropout; call model.eval() first"
        )


def check_heads(model: PreTrainedModel, heads: Iterable[Sequence[int]]) -> list[Head]:
    """Heads as pairs of Python's integers, from those of NumPy, torch or Python, or an array of two columns.

    Raises:
        TypeError: something other than pairs of integers.
        ValueError: a head that the model does not have, or one that is named twice.
    """
    wanted = "give pairs (layer, head), counted from 0"
    if isinstance(heads, Mapping):
        raise TypeError(f"heads are a mapping, {heads!r}; {wanted}, such as [(0, 1), (0, 2)]")
    checked: list[Head] = []
    for pair in heads:
        try:
            if any(getattr(one, "dtype", type(one)) in (bool, torch.bool) for one in pair):
                raise TypeError("True and False choose, and do not count")
            layer, head = map(operator.index, pair)
        except (TypeError, ValueError):
            raise TypeError(f"{pair!r} is no head; {wanted}") from None
        for kind, at, count in zip(("layer", "head"), (layer, head), shape_of(model), strict=True):
            if not 0 <= at < count:
                raise ValueError(
                    f"{kind} {at} of {layer, head}: this model's {kind}s are 0 to {count - 1}"
                )
        if (layer, head) in checked:
            raise ValueError(f"head {layer, head} is named twice; name each head once")
        checked.append((layer, head))
    return checked


@contextmanager
def attention_hooks(
    model: PreTrainedModel,
    edit_maps: MapEditor | None = None,
    edit_outputs: OutputEditor | None = None,
    observe: Observer | None = None,
) -> Iterator[None]:
    """Within the context, every self-attention of ``model``, and of no other model, calls the given functions.

    Contexts add up: the edits of an outer one come first. Layers are counted
    by their order in the pass, which holds for encoders that share or do not
    number their layers, too. Other threads and asynchronous tasks use the
    model as it is. Afterwards it is as before, whatever happened inside, and
    wherever the context is left.

    Args:
        model: encoder or classifier in evaluation mode.
        edit_maps: changes a layer's maps; measurements see the changed ones.
        edit_outputs: changes what a layer's heads give, before the output projection.
        observe: is shown a layer's maps and the values that they multiply.

    Raises:
        ValueError: a model in training mode, without heads, or whose attention
            does not go through transformers' attention interface.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    model = unwrap(model)
    check_eval(model)
    layers, heads = shape_of(model)
    causal = any(getattr(module, "is_causal", False) for module in model.modules())
    if causal or getattr(model.config, "is_decoder", False):
        raise _refusal(model, _DECODER)
    AttentionInterface.register(IMPLEMENTATION, _observed_attention)
    # Without this line transformers hands over no mask, and padding would be attended to.
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
    with _lock:
        before = {one.before for one in _open if one.config is model.config}
        before = (*before, model.config._attn_implementation)[0]
        if not _SOFTMAX.fullmatch(before or "eager"):
            raise _refusal(
                model,
                f"computes its attention by {before!r}, of which nothing is known here, so that its maps could be wrong"
                " (if they are those of the softmax, call model.set_attn_implementation('eager') first)",
            )
        model.set_attn_implementation(IMPLEMENTATION)
        if model.config._attn_implementation != IMPLEMENTATION:
            raise _refusal(
                model,
                "does not go through transformers' attention interface, so its maps can be neither seen nor changed",
            )
        modules = frozenset(map(id, model.modules()))
        calls = edit_maps, edit_outputs, observe
        context = _Context(modules, heads, model.config, before, *calls)
        _open.append(context)

    base = model.base_model  # which is not what a copy of the model calls, made within the context

    def begin(called: nn.Module, *_: object) -> None:
        if called is base:
            context.layer = 0

    def end(called: nn.Module, *_: object) -> None:
        here = called is base and context in _opened_here.get()
        if here and context.layer != layers:
            raise ValueError(
                f"{type(model).__name__} showed attention maps of {context.layer} layers where its configuration has"
                f" {layers}; models with a decoder, or several layers in one, are not measured"
            )

    hooks = [base.register_forward_pre_hook(begin), base.register_forward_hook(end)]
    _opened_here.set((*_opened_here.get(), context))
    try:
        yield
    finally:
        _opened_here.set(tuple(one for one in _opened_here.get() if one is not context))
        for hook in hooks:
            hook.remove()
        with _lock:
            _open.remove(context)
            if all(one.config is not model.config for one in _open):
                model.set_attn_implementation(before)


def is_edited(model: PreTrainedModel) -> bool:
    """True within a context that changes the model's maps or its heads' outputs, such as one that disables heads."""
    return any(one.edit_maps or one.edit_outputs for one in _in_force(model.modules()))


def layers_of(model: PreTrainedModel) -> Any:  # torch knows a list of modules, and no names in them
    """The encoder's layers; raises ValueError for a model that is not laid out as BERT."""
    layers = getattr(getattr(model.base_model, "encoder", None), "layer", None)
    if layers is None or not hasattr(layers[0].attention, "self"):
        raise ValueError(
            f"the layers of {type(model).__name__} are not laid out as BERT's, so that parts of theirs are not"
            " reached here, as notebooks 3 and 10 do; BERT, RoBERTa and ELECTRA are, and attention_maps reads the maps of any other"
        )
    return layers


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
    check_heads(model, [(layer, head)])
    model = unwrap(model)
    attention = layers_of(model)[layer].attention.self
    parts = {name: getattr(attention, name) for name in ("query", "key", "value")}
    size = parts["query"].out_features // model.config.num_attention_heads
    rows, like = slice(head * size, (head + 1) * size), torch.empty(0, device=device_of(model))
    whole = {name: weight_and_bias(linear, like) for name, linear in parts.items()}
    return {name: (weight[rows], bias[rows]) for name, (weight, bias) in whole.items()}
