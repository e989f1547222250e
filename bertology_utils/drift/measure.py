"""How alike two models' attention maps are, and what a classifier answers with layers reset (§4.3)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..attention import Batch, attention_maps
from ..attention.hooks import shape_of
from ..cache import cached
from ..glue import Task
from ..models import predict_logits

if TYPE_CHECKING:
    from datasets import Dataset

    from ..lab import Lab

EMBEDDINGS = -1  # in place of a layer's number


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


def logits_with_reset(
    lab: Lab,
    task: Task,
    groups: Sequence[Sequence[int]],
    seed_offset: int = 0,
    rows: Dataset | None = None,
) -> np.ndarray:
    """Outputs of a fine-tuning run as it is, then with each group of layers reset, from the cache.

    Args:
        lab: its lab.
        task: the task.
        groups: see :func:`reset_logits`.
        seed_offset: number of the run.
        rows: on which; by default all dev rows.

    Returns:
        Shape (1 + groups, rows, labels).
    """
    start, tuned = lab.lazy_untrained(task), lab.lazy_classifier(task, seed_offset=seed_offset)
    inputs = lab.lazy_batches(task, lab.rows(task, "dev") if rows is None else rows)
    return cached(reset_logits, tuned, start, [(), *map(tuple, groups)], inputs)


def reset_logits(
    tuned: nn.Module, start: nn.Module, groups: Sequence[Sequence[int]], batches: Sequence[Batch]
) -> np.ndarray:
    """Outputs of a fine-tuned classifier with each group of layers reset to pre-trained weights.

    Args:
        tuned: the classifier.
        start: the same architecture before fine-tuning.
        groups: layers from 0, and :data:`EMBEDDINGS`; () for the classifier as it is.
        batches: inputs.

    Returns:
        Shape (groups, examples, labels).

    Raises:
        ValueError: its layers share their weights.
    """
    if not has_own_layers(tuned):
        raise ValueError("layers that share their weights, as ALBERT's, cannot be reset one by one")
    before, outputs = parts_of(start), []
    for group in groups:
        model = copy.deepcopy(tuned)
        own = parts_of(model)
        for part in group:
            own[part].load_state_dict(before[part].state_dict())
        outputs.append(predict_logits(model, batches))
    return np.stack(outputs)


def parts_of(model: nn.Module) -> dict[int, nn.Module]:
    """Its layers by number, where each has its own weights, and its embeddings; ALBERT's layers share theirs."""
    named = model.named_modules()
    lists = [module for name, module in named if name.split(".")[-1] in ("layer", "layers")]
    layers = dict(enumerate(lists[0] if lists else ()))
    embeddings = getattr(model.base_model, "embeddings", None)
    return layers if embeddings is None else layers | {EMBEDDINGS: embeddings}


def has_own_layers(model: nn.Module) -> bool:
    """True if every layer has its own weights; ALBERT's layers share theirs."""
    return parts_of(model).keys() - {EMBEDDINGS} == set(range(shape_of(model)[0]))
