"""Attention maps: one pass over the data, any number of measurements (§3).

A self-attention map is the L × L array of one head for one input: row i holds
the weights with which token i attends to every token, and sums to 1. Maps are
handed to the measurements inside the forward pass, layer by layer, and then
dropped; nothing L × L is kept for all examples.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

IMPLEMENTATION = "bertology_maps"

Observer = Callable[[torch.Tensor], None]
# What changes a module's maps before they are used: (module, maps, additive mask or None) to maps.
Editor = Callable[[nn.Module, torch.Tensor, torch.Tensor | None], torch.Tensor]
_observer: ContextVar[Observer | None] = ContextVar("attention_observer", default=None)
_editor: ContextVar[Editor | None] = ContextVar("attention_editor", default=None)


@dataclass(frozen=True)
class Batch:
    """Model inputs of several examples.

    Attributes:
        inputs: what the model takes; each of shape (examples, tokens).
        index: position of each example in the data, in the order of ``inputs``.
        labels: gold labels, shape (examples,).
    """

    inputs: dict[str, torch.Tensor]
    index: list[int]
    labels: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """True at real tokens, False at padding; shape (examples, tokens)."""
        return self.inputs["attention_mask"].bool()

    @property
    def lengths(self) -> torch.Tensor:
        """Real tokens per example, [CLS] and [SEP] included; shape (examples,)."""
        return self.mask.sum(dim=1)

    def to(self, device) -> "Batch":
        """The same batch on another device."""
        inputs = {name: tensor.to(device) for name, tensor in self.inputs.items()}
        return Batch(inputs, self.index, self.labels.to(device))


class Measurement(Protocol):
    """What :func:`observe` feeds, in the manner of torchmetrics."""

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Take in one layer's maps of one batch.

        Args:
            layer: from 0.
            maps: shape (examples, heads, tokens, tokens); padded keys are
                exactly 0, rows of padded queries mean nothing.
            batch: the inputs.
        """

    def compute(self) -> Any:
        """The result over all batches."""


def register_attention() -> None:
    """Make this module's attention known to transformers; calling it again does nothing."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(IMPLEMENTATION, _observed_attention)
    # Without the second line transformers hands over no mask at all, and
    # padding would be attended to without a word.
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)


def _observed_attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    """Scaled dot-product attention that shows its weights to the current observer.

    ``query``, ``key``, ``value``: (examples, heads, tokens, head size);
    ``attention_mask``: additive, (examples, 1, tokens, tokens), or None.
    """
    scaling = query.size(-1) ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling  # (examples, heads, tokens, tokens)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = torch.softmax(scores, dim=-1)
    editor, observer = _editor.get(), _observer.get()
    if editor is not None:
        weights = editor(module, weights, attention_mask)
    if observer is not None:
        observer(weights)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    context = torch.matmul(weights, value)  # (examples, heads, tokens, head size)
    return context.transpose(1, 2).contiguous(), None  # (examples, tokens, heads, head size)


@contextmanager
def _reaching(model, variable: ContextVar, function: Observer | Editor) -> Iterator[None]:
    """Within the context every self-attention of ``model`` calls ``function``; whatever happens, the model is as before."""
    if model.training:
        raise ValueError("attention maps are measured and changed in evaluation mode; call model.eval() first")
    before = model.config._attn_implementation
    register_attention()
    model.set_attn_implementation(IMPLEMENTATION)
    token = variable.set(function)
    try:
        yield
    finally:
        variable.reset(token)
        model.set_attn_implementation(before)


def editing(model, editor: Editor):
    """Context in which ``editor`` changes the maps of ``model``; measurements see the changed ones.

    Raises:
        ValueError: the model is in training mode.
    """
    return _reaching(model, _editor, editor)


def _forward(model, batch: Batch, visit: Callable[[int, torch.Tensor], None]) -> torch.Tensor:
    """One forward pass; ``visit(layer, maps)`` is called at each layer. Returns the model's first output."""
    seen = 0

    def observer(weights: torch.Tensor) -> None:
        # Layers are counted by their order in the pass, which holds for
        # encoders that share or do not number their layers, too.
        nonlocal seen
        visit(seen, weights)
        seen += 1

    with torch.inference_mode(), _reaching(model, _observer, observer):
        output = model(**batch.inputs)[0]
    expected = model.config.num_hidden_layers
    if seen != expected:
        raise ValueError(
            f"{type(model).__name__} showed attention maps of {seen} layers where its configuration has {expected};"
            " its attention does not go through transformers' attention interface"
        )
    return output


def attention_maps(model, batch: Batch) -> list[torch.Tensor]:
    """All maps of one batch, for looking at: per layer (examples, heads, tokens, tokens).

    Raises:
        ValueError: the model is in training mode, or shows no maps.
    """
    maps: list[torch.Tensor] = []
    _forward(model, batch, lambda layer, weights: maps.append(weights))
    return maps


def begin(measurement: Measurement, batch: Batch) -> None:
    """Tell a measurement of the batch that comes next, if it wants to know."""
    getattr(measurement, "start", lambda batch: None)(batch)


def observe(model, batches: Iterable[Batch], measurements: dict[str, Measurement]) -> dict[str, Any]:
    """One pass of ``model`` over ``batches`` that feeds every measurement.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: see :mod:`bertology_utils.attention.batches`; moved to the model's device.
        measurements: by name. One that has a method ``start(batch)`` is told of
            each batch before the pass.

    Returns:
        What each measurement computed, by name.

    Raises:
        ValueError: the model is in training mode, or shows no maps.
    """
    device = next(model.parameters()).device
    for batch in batches:
        batch = batch.to(device)
        for measurement in measurements.values():
            begin(measurement, batch)
        _forward(model, batch, lambda layer, maps: [m.update(layer, maps, batch) for m in measurements.values()])
    return {name: measurement.compute() for name, measurement in measurements.items()}
