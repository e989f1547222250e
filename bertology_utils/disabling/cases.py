"""Single examples on which a disabled head shows: by how much it moves the classifier's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..common import Head
from ..glue.tasks import Task
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
        answer: the label that the whole model gives, by its id.
        whole, without: its probability with all heads, and without this one.
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
