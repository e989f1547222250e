"""The sweep as one would write it: a forward pass of the whole model for every head and every layer (§4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import Batch
from ..attention.interface import shape_of
from ..common import Head, to_people, track
from ..encoders.evaluate import predict_logits
from .ablations import disabled, replacement
from .groups import partner_batches
from .switch import layer_heads


@dataclass(frozen=True)
class Sweep:
    """Outputs of a classifier with each head, and each layer, disabled.

    Attributes:
        baseline: with all heads in place, shape (examples, labels).
        heads: shape (layers, heads, examples, labels).
        layers: with all heads of a layer disabled, shape (layers, examples, labels).
    """

    baseline: np.ndarray
    heads: np.ndarray
    layers: np.ndarray


def reference_sweep(
    model, batches: Sequence[Batch], layers: Sequence[int] | None = None, ablation: str = "uniform"
) -> Sweep:
    """Every head and every layer, one pass each: the check, and the way for models that the fast sweep does not know.

    Within :func:`bertology_utils.disabling.switch.disable_heads` all that is disabled there stays disabled.

    Args:
        model: classifier in evaluation mode.
        batches: the dev set; see :mod:`bertology_utils.attention.batches`.
        layers: from 0, in which heads are disabled; all by default.
        ablation: one of :data:`bertology_utils.disabling.ablations.ABLATIONS`.

    Raises:
        ValueError: see :func:`bertology_utils.disabling.switch.disable_heads`.
        FloatingPointError: an output is NaN or infinite.
    """
    instead = replacement(model, batches, ablation)
    if isinstance(instead, str):
        batches = partner_batches(batches)

    def outputs(heads: list[Head]) -> np.ndarray:
        with disabled(model, heads, instead):
            return predict_logits(model, batches)

    heads, whole = [], []
    layers = range(shape_of(model)[0]) if layers is None else layers
    for layer, _ in zip(layers, track([f"layer {to_people(layer)}" for layer in layers], "disabling heads"), strict=True):
        own = layer_heads(model, layer)
        heads.append([outputs([head]) for head in own])
        whole.append(outputs(own))
    return Sweep(predict_logits(model, batches), np.array(heads), np.array(whole))
