"""The sweep as one would write it: a forward pass of the whole model for every head and every layer (§4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import Batch
from ..evaluate import predict_logits
from ..progress import track
from .switch import disable_heads, layer_heads


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


def reference_sweep(model, batches: Sequence[Batch]) -> Sweep:
    """Every head and every layer, one pass each: the check, and the way for models that the fast sweep does not know.

    Args:
        model: classifier in evaluation mode.
        batches: the dev set; see :mod:`bertology_utils.batches`.

    Raises:
        ValueError: see :func:`bertology_utils.disabling.switch.disable_heads`.
        FloatingPointError: an output is NaN or infinite.
    """
    heads, layers = [], []
    for layer in track(range(model.config.num_hidden_layers), "disabling heads of layer"):
        own = layer_heads(model, layer)
        heads.append([_disabled(model, batches, [head]) for head in own])
        layers.append(_disabled(model, batches, own))
    return Sweep(predict_logits(model, batches), np.array(heads), np.array(layers))


def _disabled(model, batches: Sequence[Batch], heads: list) -> np.ndarray:
    with disable_heads(model, heads):
        return predict_logits(model, batches)
