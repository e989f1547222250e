"""How verdicts put numbers: one estimate, that of the task where a claim is nearest to failing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ..glue.tasks import Task
from ..statistics.estimate import Estimate

T = TypeVar("T")


def kept(by_task: Mapping[Task, T], learned: Mapping[Task, bool]) -> dict[Task, T]:
    """Of the tasks that were learned."""
    return {task: value for task, value in by_task.items() if learned[task]}


def counted(estimate: Estimate) -> str:
    """ "n=320, 2 trainings"."""
    return f"n={estimate.n}" + (f", {estimate.trainings} trainings" if estimate.trainings > 1 else "")


def least_of(estimates: Mapping[Task, Estimate], scale: float = 1.0, digits: int = 3, most: bool = False) -> str:
    """The smallest of the tasks' estimates (or the largest), with its interval and sizes; "–" for none.

    Args:
        estimates: by task.
        scale: each number times it, such as 100 for points.
        digits: behind the point.
        most: the largest, where a claim is that something is small.
    """
    if not estimates:
        return "–"
    task, estimate = (max if most else min)(estimates.items(), key=lambda item: item[1].value)
    of = f", the {'most' if most else 'least'} of {len(estimates)} tasks" if len(estimates) > 1 else ""
    unit = " points" if scale == 100 else ""
    return f"{task.title} {estimate.text(scale, digits, sign=True)}{unit}{of}; {counted(estimate)}"
