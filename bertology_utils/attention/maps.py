"""Attention maps: one pass over the data, any number of measurements (§3).

A self-attention map is the L × L array of one head for one input: row i holds
the weights with which token i attends to every token, and sums to 1. Maps are
handed to the measurements inside the forward pass, layer by layer, and then
dropped; nothing L × L is kept for all examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch

from .batches import Batch, Measurement, begin, check_batches
from .hooks import Observer, attention_hooks, device_of, unwrap
from .norms import weighed

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def _forward(model: PreTrainedModel, batch: Batch, visit: Observer) -> torch.Tensor:
    """One forward pass; ``visit(layer, maps)`` is called at each layer. Returns the model's first output."""

    def visit_sized(layer: int, maps: torch.Tensor) -> None:
        if maps.shape[3] != (tokens := batch.mask.shape[1]):
            raise ValueError(
                f"{type(model).__name__} shows maps of {maps.shape[3]} tokens where the input has {tokens}, so that no cell"
                " can be named; give a model without virtual tokens"
            )
        visit(layer, maps)

    with torch.inference_mode(), attention_hooks(model, observe=visit_sized):
        return model(**batch.inputs)[0]


def attention_maps(
    model: PreTrainedModel, batch: Batch, attention: str = "weight"
) -> list[torch.Tensor]:
    """All maps of one batch, for looking at: per layer (examples, heads, tokens, tokens).

    Args:
        model: encoder or classifier in evaluation mode.
        batch: the inputs.
        attention: "weight", or "norm": what the weights carry, see
            :mod:`bertology_utils.attention.norms`.

    Raises:
        TypeError, ValueError: see :func:`check_batches`; the model shows no maps; another attention.
    """
    batches = check_batches(unwrap(model), batch, whole=False)
    if len(batches) > 1:
        raise ValueError(f"{len(batches)} batches are given; look at the maps of one at a time")
    maps: list[torch.Tensor] = observe(
        model, batches, {"": weighed(_Maps(), attention)}, whole=False
    )[""]
    return maps


class _Maps:
    """Measurement: all maps as they are, layer by layer."""

    def __init__(self) -> None:
        self._maps: list[torch.Tensor] = []

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        self._maps.append(maps)

    def compute(self) -> list[torch.Tensor]:
        return self._maps


def observe(
    model: PreTrainedModel,
    batches: Iterable[Batch],
    measurements: Mapping[str, Measurement],
    whole: bool = True,
) -> dict[str, Any]:
    """One pass of ``model`` over ``batches`` that feeds every measurement.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: see :func:`check_batches`; moved to the model's device.
        measurements: by name. One that has a method ``start(batch)`` is told of
            each batch before the pass.
        whole: see :func:`check_batches`.

    Returns:
        What each measurement computed, by name.

    Raises:
        TypeError, ValueError: see :func:`check_batches`; the model shows no maps; a measurement is to
            be fed by norm and the model's output projection cannot be named, or was fed before.
    """
    model = unwrap(model)
    batches = check_batches(model, batches, whole)
    device = device_of(model)
    for name, measurement in measurements.items():
        _use(name, measurement)
    with ExitStack() as attached:
        for measurement in measurements.values():
            if attach := getattr(measurement, "attach", None):
                attached.enter_context(attach(model))
        for batch in batches:
            batch = batch.to(device)
            for measurement in measurements.values():
                begin(measurement, batch)

            def update_all(layer: int, maps: torch.Tensor, batch: Batch = batch) -> None:
                for measurement in measurements.values():
                    measurement.update(layer, maps, batch)

            _forward(model, batch, update_all)
    return {name: measurement.compute() for name, measurement in measurements.items()}


def _use(name: str, measurement: Any) -> None:
    """Mark a measurement, and those in it, as fed: its sums would mix a second data set with the first."""
    while measurement is not None:
        if getattr(measurement, "is_used", False):
            raise ValueError(
                f"the measurement {name!r} has been fed already, and would add other data to that; make a new one"
            )
        measurement.is_used = True
        measurement = getattr(measurement, "measurement", None)
