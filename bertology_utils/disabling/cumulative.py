"""How many heads can go? Disabling them one after the other, the least needed first (§4.6 allows any number of heads)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..attention import Batch
from ..common import Head, track
from ..encoders.evaluate import predict_logits
from ..glue.tasks import Task, plain_metric, predictions
from ..statistics import Bootstrap, Seed, bootstrap_weights
from ..statistics.ties import heads_by_size
from ..statistics.weighted import weighted_scores
from .controls import scores_of
from .reference import Sweep
from .switch import logits_without


def ordering_half(count: int, seed: Seed) -> np.ndarray:
    """Which examples put the heads in order, so that the others, of an odd number one more, can score that order.

    Args:
        count: of all examples.
        seed: of the draw.

    Returns:
        True for the half that orders, shape (examples,).
    """
    return np.random.default_rng(seed).permutation(count) < count // 2


def greedy_order(gains: np.ndarray) -> list[Head]:
    """Heads by what their disabling does on its own, the largest gain first.

    Args:
        gains: score with a head disabled minus score of the whole model, shape (layers, heads).
    """
    return heads_by_size(gains)


def order_of_half(task: Task, sweep: Sweep, labels: np.ndarray, half: np.ndarray) -> list[Head]:
    """Heads by what each one's disabling does to the score of one half of the examples, the largest gain first.

    Args:
        task: the task.
        sweep: a classifier's outputs.
        labels: gold, shape (examples,).
        half: True for these examples, shape (examples,).
    """
    predicted = np.stack([[predictions(task, logits[half]) for logits in layer] for layer in sweep.heads])
    metric = plain_metric(task)
    return greedy_order(np.stack([scores_of(metric, of_layer, labels[half]) for of_layer in predicted]))


def scored(task: Task, outputs: dict[int, np.ndarray], labels: np.ndarray, seed: Seed) -> dict[int, Bootstrap]:
    """Scores, with paired bootstraps, of what :func:`cumulative` gives.

    Args:
        task: the task.
        outputs: by number of disabled heads, each of shape (examples, labels).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    predicted = np.stack([predictions(task, logits) for logits in outputs.values()])
    weights = np.vstack([np.ones((1, len(labels))), bootstrap_weights(len(labels), seed)])
    scores = weighted_scores(plain_metric(task), predicted, labels, weights)  # (1 + resamples, counts)
    return {count: Bootstrap.of(scores[:, at], len(labels), seed) for at, count in enumerate(outputs)}


def random_order(shape: tuple[int, int], seed: Seed) -> list[Head]:
    """All heads in a random order, to compare an order by gain with.

    Args:
        shape: (layers, heads).
        seed: of the draw.
    """
    return [divmod(int(at), shape[1]) for at in np.random.default_rng(seed).permutation(shape[0] * shape[1])]


def cumulative(model, batches: Sequence[Batch], order: Sequence[Head], step: int = 1) -> dict[int, np.ndarray]:
    """Outputs with the first heads of an order disabled together.

    Args:
        model: classifier in evaluation mode.
        batches: the dev set.
        order: the heads, the first to go first.
        step: heads between two measurements; the last one has all.

    Returns:
        Number of disabled heads → outputs, shape (examples, labels); 0 is the whole model.

    Raises:
        ValueError: ``step`` below 1, or see :func:`bertology_utils.disabling.switch.disable_heads`.
    """
    if step < 1:
        raise ValueError(f"step={step} is out of range; it is 1 or more")
    counts = sorted({*range(step, len(order) + 1, step), len(order)})
    found = {0: predict_logits(model, batches)}
    for count, _ in zip(counts, track([f"{count} heads" for count in counts], "disabling"), strict=True):
        found[count] = logits_without(model, batches, order[:count])
    return found


def heads_to_spare(scores: dict[int, float], loss: float = 0.01) -> int:
    """The largest number of heads before the score first falls by more than ``loss`` below the whole model's.

    Args:
        scores: number of disabled heads → score, from 0 to 1; 0 is the whole model.
        loss: from 0 to 1; one point by default.
    """
    spared = 0
    for count in sorted(scores):
        if scores[count] < scores[0] - loss:
            break
        spared = count
    return spared


def values(curves: Mapping[Task, Mapping[int, Bootstrap]]) -> dict[Task, dict[int, float]]:
    """Of each task's scores the numbers without their uncertainty."""
    return {task: numbers(curve) for task, curve in curves.items()}


def numbers(curve: Mapping[int, Bootstrap]) -> dict[int, float]:
    """The same of one curve."""
    return {count: score.value for count, score in curve.items()}


def half_of(curve: Mapping[int, object]) -> int:
    """Half of the heads, or the next smaller number that was measured."""
    return max(count for count in curve if count <= max(curve) // 2)


def loss_of_half(curves: Mapping[Task, Mapping[int, Bootstrap]]) -> dict[Task, Bootstrap]:
    """What the score loses, by task, when half of the heads are gone, or the next smaller number that was measured."""
    return {task: curve[0] - curve[half_of(curve)] for task, curve in curves.items()}
