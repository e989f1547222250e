"""Single examples on which a disabled head shows: by how much it moves the classifier's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from scipy.stats import binom

from ..attention import Batch
from ..common import Head, head_name
from ..glue.tasks import Task, plain_metric, predictions
from ..statistics.ties import heads_by_size, largest
from .controls import scores_of
from .reference import Sweep


def first_with_labels(tasks: Sequence[Task]) -> Task:
    """The first task whose answer is a label, not a number.

    Raises:
        ValueError: there is none.
    """
    for task in tasks:
        if task.labels:
            return task
    raise ValueError(
        f"{', '.join(task.title for task in tasks)}: no answer with a probability; add a task with labels: mrpc"
    )


def answer_changes(sweep: Sweep) -> np.ndarray:
    """What disabling each head does to the probability of the whole model's answer.

    Args:
        sweep: outputs of a classifier with two labels or more.

    Returns:
        Probability without the head minus probability with all heads, from −1 to 1, shape (layers, heads, examples).

    Raises:
        ValueError: a regression, whose output is no probability.
    """
    if sweep.baseline.shape[1] < 2:
        raise ValueError("a regression gives no probabilities; choose a task with labels, such as MRPC")
    answers = sweep.baseline.argmax(axis=1)[:, None]  # (examples, 1)
    before = np.take_along_axis(softmax(sweep.baseline, axis=-1), answers, axis=-1)[:, 0]
    after = np.take_along_axis(softmax(sweep.heads, axis=-1), answers[None, None], axis=-1)[..., 0]
    return after - before


@dataclass(frozen=True)
class Case:
    """A head and an example.

    Attributes:
        head: (layer, head) from 0.
        example: position in the data.
        answer: the label that is looked at, by its id: of :func:`largest_case` that of the whole model, of
            :func:`helped_case` the right one.
        whole, without: its probability with all heads, and without this one; of a regression see :func:`rightness`.
    """

    head: Head
    example: int
    answer: int
    whole: float
    without: float


def largest_case(sweep: Sweep, head: Head | None = None) -> Case:
    """Where disabling one head moves the answer most, whichever way.

    Args:
        sweep: outputs of a classifier with two labels or more.
        head: look at this one only, (layer, head) from 0.

    Raises:
        ValueError: see :func:`answer_changes`.
    """
    changes = answer_changes(sweep)
    sizes = np.abs(changes)
    layer, number = head or np.unravel_index(sizes.max(axis=2).argmax(), sizes.shape[:2])
    example = int(sizes[layer, number].argmax())
    whole = softmax(sweep.baseline[example])
    answer = int(whole.argmax())
    without = float(whole[answer] + changes[layer, number, example])
    return Case((int(layer), int(number)), example, answer, float(whole[answer]), without)


def rightness(task: Task, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability of the right label; of a regression 1 minus the distance from the right number, on a scale from 0 to 1.

    Args:
        task: the task.
        outputs: of a classifier, shape (..., examples, labels).
        labels: gold, shape (examples,).

    Returns:
        Shape (..., examples).
    """
    if task.is_regression:
        return 1 - np.abs(outputs[..., 0] - labels / 5)
    return softmax(outputs, axis=-1)[..., np.arange(len(labels)), labels]


def helped_case(task: Task, sweep: Sweep, labels: np.ndarray, batches: Sequence[Batch]) -> Case:
    """The head of the largest gain, and of the shorter half of the examples the one whose right answer gains most by it.

    Args:
        task: the task.
        sweep: a classifier's outputs.
        labels: gold, shape (examples,).
        batches: the same examples, for their lengths.
    """
    metric = plain_metric(task)
    scores = np.stack(
        [scores_of(metric, np.stack([predictions(task, one) for one in layer]), labels) for layer in sweep.heads]
    )
    head = heads_by_size(scores)[0]
    whole, without = (rightness(task, outputs, labels) for outputs in (sweep.baseline, sweep.heads[head]))
    lengths = np.empty(len(labels))
    for batch in batches:
        lengths[batch.index] = batch.lengths.cpu()
    (example,) = largest(np.where(lengths <= np.median(lengths), without - whole, -np.inf))
    answer = 0 if task.is_regression else int(labels[example])
    return Case(head, example, answer, float(whole[example]), float(without[example]))


def told(task: Task, case: Case) -> str:
    """What disabling a head does to the right answer of an example, in words."""
    what = (
        "closeness to the right score" if task.is_regression else f"probability of “{task.labels[case.answer]}”, the label"
    )
    return f"{what}: {case.whole:.2f} with head {head_name(*case.head)}, {case.without:.2f} without it"


def turned(task: Task, sweep: Sweep, labels: np.ndarray, head: Head) -> np.ndarray:
    """The answers that disabling a head changes, for better or worse.

    Args:
        task: the task.
        sweep: a classifier's outputs.
        labels: gold, shape (examples,).
        head: (layer, head) from 0.

    Returns:
        1 where an answer becomes right and −1 where it becomes wrong, in the order of the examples, shape (such
        examples,). Of a regression, whether each number comes nearer to the right one.
    """
    outputs = sweep.baseline, sweep.heads[head]
    if task.is_regression:
        before, after = (rightness(task, one, labels) for one in outputs)
    else:
        before, after = ((predictions(task, one) == labels).astype(float) for one in outputs)
    signs = np.sign(after - before).astype(int)
    return signs[signs != 0]


def coin(signs: np.ndarray) -> float:
    """The probability that a fair coin gives as many 1 as these signs, or more.

    Args:
        signs: 1 and −1, from :func:`turned`.
    """
    return float(binom.sf(int((signs > 0).sum()) - 1, len(signs), 0.5))
