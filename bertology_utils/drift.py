"""How alike two models' attention maps are (§4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .attention import attention_maps
from .batches import Batch, check_batches
from .hooks import device_of, shape_of, unwrap


def map_similarity(model: Any, reference: Any, batches: Iterable[Batch]) -> np.ndarray:
    """Cosine similarity of two models' flattened attention maps (§4.3).

    Args:
        model, reference: of the same layers and heads.
        batches: inputs.

    Returns:
        Shape (examples, layers, heads), examples in the order of the data.

    Raises:
        ValueError: models of different shapes, one model given twice, or see
            :func:`bertology_utils.batches.check_batches`.
    """
    model, reference = unwrap(model), unwrap(reference)
    if set(model.base_model.parameters()) == set(reference.base_model.parameters()):
        raise ValueError(
            "both models are one and the same, which was changed in place (as PEFT does); compare with"
            " a copy made before, by copy.deepcopy"
        )
    if shape_of(model) != shape_of(reference):
        raise ValueError(
            "maps are compared head by head, and these models have (layers, heads) of"
            f" {shape_of(model)} and {shape_of(reference)}; compare models of the same shape"
        )
    parts: list[np.ndarray] = []
    order: list[int] = []
    device = device_of(model)
    for batch in check_batches(model, batches):
        batch = batch.to(device)
        real = batch.mask[:, None, :, None]
        both = zip(attention_maps(model, batch), attention_maps(reference, batch), strict=True)
        alike = [  # on the first one's device, wherever the reference and its layers are
            cosine(*((maps.to(device).double() * real).flatten(2) for maps in of_layer))
            for of_layer in both
        ]
        parts.append(torch.stack(alike, dim=1).cpu().numpy())
        order += batch.index
    return np.concatenate(parts)[np.argsort(order)]


def cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Cosine of two vectors, shapes (…, numbers) to (…)."""
    lengths = one.square().sum(dim=-1) * other.square().sum(dim=-1)
    return (one * other).sum(dim=-1) / lengths.clamp(min=1e-300).sqrt()
