"""Pre-trained layers put back into a fine-tuned model: which layers hold what it learned? (§4.3, a causal test of ours)"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.interface import shape_of
from ..encoders.evaluate import predict_logits
from ..glue.tasks import Task, plain_metric, predictions
from ..statistics import RESAMPLES, Bootstrap, Seed, whole_and_resampled
from ..statistics.weighted import weighted_scores

_LAYER = re.compile(r"\.layers?\.(\d+)\.")


def grafted(tuned: nn.Module, start: nn.Module, layers: Iterable[int]) -> nn.Module:
    """The fine-tuned model with some layers as they were before.

    Args:
        tuned: a classifier.
        start: the same architecture before fine-tuning.
        layers: from 0.

    Raises:
        ValueError: the architecture shares its layers' weights, or they cannot be told by their names.
    """
    chosen, before, names = set(layers), start.state_dict(), _layer_of_weights(start)
    if not exchangeable(start):
        raise ValueError(
            f"the layers of {type(start).__name__} cannot be exchanged: their weights do not carry their numbers"
        )
    model = copy.deepcopy(tuned)
    model.load_state_dict({name: before[name] for name, layer in names.items() if layer in chosen}, strict=False)
    return model


def exchangeable(model: nn.Module) -> bool:
    """Has every layer weights of its own, that carry its number? ALBERT's layers share theirs."""
    return set(_layer_of_weights(model).values()) == set(range(shape_of(model)[0]))


def _layer_of_weights(model: nn.Module) -> dict[str, int]:
    return {name: int(match[1]) for name in model.state_dict() if (match := _LAYER.search(name))}


def graft_scores(
    task: Task,
    tuned: nn.Module,
    start: nn.Module,
    groups: Sequence[Sequence[int]],
    batches: Sequence[Batch],
    labels: np.ndarray,
    seed: Seed,
) -> list[Bootstrap]:
    """Score of the fine-tuned model with each group of layers put back, minus its own score, from 0 to 1.

    Args:
        task: the task.
        tuned, start: see :func:`grafted`.
        groups: layers from 0.
        batches: the dev set.
        labels: gold, shape (examples,).
        seed: of the resampling of examples.

    Returns:
        One per group; NaN for an architecture whose layers cannot be exchanged.
    """
    if not exchangeable(start):
        return [Bootstrap(np.nan, np.full(RESAMPLES, np.nan), len(labels), seed) for _ in groups]

    def answers_of(model: nn.Module) -> np.ndarray:
        with torch.inference_mode():
            return predictions(task, predict_logits(model, batches))

    # One copy of the model at a time.
    answers = np.stack([answers_of(tuned), *(answers_of(grafted(tuned, start, group)) for group in groups)])
    weights = whole_and_resampled(len(labels), seed)  # (1 + resamples, examples)
    scores = weighted_scores(plain_metric(task), answers, labels, weights)  # (1 + resamples, 1 + groups)
    losses = scores[:, 1:] - scores[:, :1]
    return [Bootstrap.of(loss, len(labels), seed) for loss in losses.T]


def neighbours(layers: int) -> list[tuple[int, int]]:
    """Every two neighbouring layers, from 0; the last two come last."""
    return [(layer, layer + 1) for layer in range(layers - 1)]


def up_to(layers: int) -> list[tuple[int, ...]]:
    """All layers from the first up to each but the last, from 0."""
    return [tuple(range(count)) for count in range(1, layers)]


def last_pairs_lead(changes: Sequence[Bootstrap]) -> Bootstrap:
    """By how much putting back the last two layers costs more than putting back any other two neighbours.

    Args:
        changes: from :func:`graft_scores` with :func:`neighbours`.

    Returns:
        In units of the score; NaN for a model of two layers.
    """
    if len(changes) < 2:
        return Bootstrap(np.nan, np.full_like(changes[0].draws, np.nan), changes[0].n, changes[0].seed)
    draws = np.stack([np.append(change.value, change.draws) for change in changes])  # (pairs, 1 + resamples)
    leads = draws[:-1].min(axis=0) - draws[-1]
    return Bootstrap.of(leads, changes[0].n, changes[0].seed)
