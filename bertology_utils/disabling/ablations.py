"""What a disabled head gives instead: even attention, nothing, or what it gives on average (§4.6, and two others)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from ..attention import Batch
from ..common import one_of
from .switch import Head, by_layer, disable_heads

# "uniform" is the paper's: attention of 1/L. "zero" takes the head's output away, "mean" replaces it by its mean over
# all tokens of the data; the literature after the paper uses all three.
ABLATIONS = ("uniform", "zero", "mean")


@contextmanager
def replace_outputs(model, heads: Sequence[Head], instead: torch.Tensor) -> Iterator[None]:
    """Within the context the given heads give a constant, whatever they read. Afterwards the model is as before.

    Args:
        model: classifier or encoder in evaluation mode, of BERT's make.
        heads: (layer, head) from 0.
        instead: what each head gives, before the output projection; shape (layers, heads, head size).

    Raises:
        ValueError: no head, a head that the model does not have, or a model of another make.
    """
    hooks = []

    def put(layer: int, chosen: list[int]):
        def before(module, arguments):
            context = arguments[0].unflatten(2, instead.shape[1:]).clone()  # (examples, tokens, heads, head size)
            context[:, :, chosen] = instead[layer, chosen].to(context)
            return (context.flatten(2), *arguments[1:])

        return before

    try:
        for layer, chosen in by_layer(model, heads).items():
            hooks.append(output_projections(model)[layer].register_forward_pre_hook(put(layer, chosen)))
        yield
    finally:
        for hook in hooks:
            hook.remove()


def output_projections(model) -> list[torch.nn.Module]:
    """The layers' modules that project the heads' outputs, in order.

    Raises:
        ValueError: the model is not of BERT's make.
    """
    try:
        return [layer.attention.output.dense for layer in model.base_model.encoder.layer]
    except AttributeError:
        raise ValueError(
            f"{type(model).__name__} is not made like BERT, so its heads' outputs cannot be replaced;"
            " ablation='uniform' works for it"
        ) from None


def replacement(model, batches: Sequence[Batch], ablation: str) -> torch.Tensor | None:
    """What every head gives when it is disabled, shape (layers, heads, head size); None for even attention.

    Args:
        model: in evaluation mode.
        batches: the data over which the mean is taken.
        ablation: one of :data:`ABLATIONS`.
    """
    if one_of("ablation", ablation, ABLATIONS) == "uniform":
        return None
    heads = model.config.num_attention_heads
    projections = output_projections(model)
    sums = torch.zeros(len(projections), projections[0].in_features, dtype=torch.float64)
    if ablation == "zero":
        return sums.unflatten(1, (heads, -1))
    real: list[torch.Tensor] = []

    def add(layer: int):
        def before(module, arguments) -> None:
            sums[layer] += arguments[0][real[-1]].sum(dim=0).double().cpu()

        return before

    hooks = [module.register_forward_pre_hook(add(layer)) for layer, module in enumerate(projections)]
    try:
        for batch in batches:
            batch = batch.to(next(model.parameters()).device)
            real.append(batch.mask)
            with torch.inference_mode():
                model(**batch.inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return (sums / sum(int(mask.sum()) for mask in real)).unflatten(1, (heads, -1))


def disabled(model, heads: Sequence[Head], instead: torch.Tensor | None):
    """Context in which heads are disabled, as :func:`replacement` says."""
    return disable_heads(model, heads) if instead is None else replace_outputs(model, heads, instead)
