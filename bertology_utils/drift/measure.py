"""How alike two models' attention maps are (§4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import nn

from ..attention import Batch, attention_maps
from ..attention.hooks import shape_of


def map_similarity(model: nn.Module, reference: nn.Module, batches: Iterable[Batch]) -> np.ndarray:
    """Cosine similarity of two models' maps, shape (examples, layers, heads); see :func:`compare_maps`."""
    return compare_maps({"": (model, reference)}, batches)[""]


def compare_maps(
    comparisons: Mapping[str, tuple[nn.Module, nn.Module]], batches: Iterable[Batch]
) -> dict[str, np.ndarray]:
    """Cosine similarities of flattened attention maps, from one pass of each model (§4.3).

    The maps of all models are held for one batch.

    Args:
        comparisons: by name two models.
        batches: inputs.

    Returns:
        By name, shape (examples, layers, heads), examples in the order of the data.

    Raises:
        ValueError: models of different shapes, or no inputs.
    """
    models = list({id(one): one for several in comparisons.values() for one in several}.values())
    if len(shapes := {shape_of(model) for model in models}) > 1:
        raise ValueError(
            "maps are compared head by head, and these models have (layers, heads) of"
            f" {sorted(shapes)}; compare models of the same shape"
        )
    cosines: dict[str, list[np.ndarray]] = {name: [] for name in comparisons}
    order: list[int] = []
    for batch in batches:
        batch = batch.to(next(models[0].parameters()).device)
        rows = batch.mask[:, None, :, None]
        by_layer: dict[str, list[torch.Tensor]] = {name: [] for name in comparisons}
        for maps in zip(*(attention_maps(model, batch) for model in models), strict=True):
            flat = [(of_model * rows).double().flatten(2) for of_model in maps]
            by_model = dict(zip(map(id, models), flat, strict=True))  # (examples, heads, tokens²)
            for name, pair in comparisons.items():
                by_layer[name].append(cosine(*(by_model[id(one)] for one in pair)))
        for name, layers in by_layer.items():
            cosines[name].append(torch.stack(layers, dim=1).cpu().numpy())
        order += batch.index
    if not order:
        raise ValueError("there are no inputs to compare maps on; give at least one batch")
    return {name: np.concatenate(parts)[np.argsort(order)] for name, parts in cosines.items()}


def cosine(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Cosine of two vectors, shapes (…, numbers) to (…)."""
    lengths = one.square().sum(dim=-1) * other.square().sum(dim=-1)
    return (one * other).sum(dim=-1) / lengths.clamp(min=1e-300).sqrt()
