"""Several models' maps compared with each other in one pass of each: fine-tuning, its repetition, and controls (§4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch

from ..attention import Batch, attention_maps
from ..attention.interface import shape_of


def drifts(
    pairs: Mapping[str, tuple[torch.nn.Module, torch.nn.Module]],
    batches: Iterable[Batch],
    protocol: str = "paper",
    displacements: Mapping[str, tuple[torch.nn.Module, torch.nn.Module, torch.nn.Module]] | None = None,
    weighing: str = "weight",
) -> dict[str, np.ndarray]:
    """Similarity within several pairs of models, from one pass of each model, however many pairs it is in.

    The maps of all models are held for one batch.

    Args:
        pairs: (model, other model) by name, all with as many layers and heads.
        batches: inputs.
        protocol: see :func:`map_cosine`.
        displacements: (start, one end, another end) by name: do both ends lie in the same direction? The cosine between
            the changes of the maps, from −1 to 1; 0 if two trainings moved them independently. NaN where a map stayed.
        weighing: see :class:`Drift`.

    Returns:
        As :class:`Drift` gives them, by name: shape (examples, layers, heads).

    Raises:
        ValueError: models of different shapes.
    """
    triples = displacements or {}
    models = list({id(model): model for several in (*pairs.values(), *triples.values()) for model in several}.values())
    shapes = {shape_of(model) for model in models}
    if len(shapes) > 1:
        raise ValueError(f"drift compares head by head; these models have (layers, heads) of {sorted(shapes)}")
    place = {id(model): at for at, model in enumerate(models)}
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*pairs, *triples)}
    order: list[int] = []
    for batch in batches:
        batch = batch.to(next(models[0].parameters()).device)
        of_models = [attention_maps(model, batch, weighing) for model in models]
        of_layers = [dot_products(maps, batch.mask, protocol) for maps in zip(*of_models, strict=True)]
        order += batch.index
        for name, several in (*pairs.items(), *triples.items()):
            at = [place[id(model)] for model in several]
            compare = cosine if len(at) == 2 else displacement_cosine
            found[name].append(torch.stack([compare(products, *at) for products in of_layers], dim=1).cpu().numpy())
    return {name: np.concatenate(parts)[np.argsort(order)] for name, parts in found.items()}


def dot_products(maps: Sequence[torch.Tensor], mask: torch.Tensor, protocol: str = "paper") -> torch.Tensor:
    """Dot products of the flattened maps of every two models, which every cosine between them comes from.

    Args:
        maps: of each model, shape (examples, heads, tokens, tokens).
        mask, protocol: see :func:`map_cosine`.

    Returns:
        float64, shape (examples, heads, models, models).
    """
    real = mask[:, None, :, None] if protocol == "paper" else torch.ones_like(mask)[:, None, :, None]
    flat = torch.stack([(of_one * real).double().flatten(2) for of_one in maps], dim=2)  # (examples, heads, models, cells)
    return flat @ flat.transpose(2, 3)


def cosine(products: torch.Tensor, one: int, other: int) -> torch.Tensor:
    """Of two models' maps, shape (examples, heads), from :func:`dot_products`; as :func:`map_cosine`."""
    lengths = products[..., one, one] * products[..., other, other]
    return products[..., one, other] / lengths.clamp(min=1e-16).sqrt()


def displacement_cosine(products: torch.Tensor, start: int, end: int, other: int) -> torch.Tensor:
    """Cosine between two changes of the same maps, end − start and other − start.

    Args:
        products: from :func:`dot_products`.
        start, end, other: places of the three models.

    Returns:
        Shape (examples, heads), NaN where a map did not change.
    """

    def moved(a: int, b: int) -> torch.Tensor:
        """Dot product of two changes."""
        return products[..., a, b] - products[..., a, start] - products[..., start, b] + products[..., start, start]

    ends = moved(end, end), moved(other, other)
    # A change below one part in a million is the rounding of single precision.
    still = [of_one <= 1e-12 * products[..., start, start] for of_one in ends]
    found = moved(end, other) / (ends[0] * ends[1]).clamp(min=1e-300).sqrt()
    return found.masked_fill(still[0] | still[1], torch.nan)
