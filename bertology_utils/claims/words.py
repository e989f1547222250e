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


def counted(estimate: Estimate, of: str = "n") -> str:
    """ "n=320, 2 trainings"."""
    return f"{of}={estimate.n}" + (f", {estimate.trainings} trainings" if estimate.trainings > 1 else "")


def least_of(
    estimates: Mapping[Task, Estimate] | Mapping[str, Estimate],
    scale: float = 1.0,
    digits: int = 3,
    most: bool = False,
    of: str = "tasks",
    border: float | None = None,
    unit: str | None = None,
    counts: str = "n",
    against: float | None = None,
) -> str:
    """The smallest of the tasks' estimates (or the largest), with its interval and sizes; "–" for none.

    Args:
        estimates: by task, or by what else they are called.
        scale: each number times it, such as 100 for points.
        digits: behind the point.
        most: the largest, where a claim is that something is small.
        of: what there are several of.
        border: take instead the one that is least surely above it (or below, with ``most``).
        unit: behind the interval; by default "points" where the scale is 100.
        counts: what was resampled, if not examples.
        against: if intervals lie wholly below it, these tasks decide: it is one of theirs, and their number is told.
    """
    if not estimates:
        return "–"

    def order(item: tuple[Task | str, Estimate]) -> tuple[float, float]:
        signed = -item[1] if most else item[1]
        return (0.0 if border is None else -signed.p_above(-border if most else border)), signed.value

    deciding = {} if against is None else {task: one for task, one in estimates.items() if one.interval[1] < against}
    task, estimate = min((deciding or estimates).items(), key=order)
    which = "least sure" if border is not None else "most" if most else "least"
    place = f"surely not on {len(deciding)}" if deciding else f"the {which}"
    among = f", {place} of {len(estimates)} {of}" if len(estimates) > 1 else ""
    unit = (" points" if scale == 100 else "") if unit is None else unit
    title = task.title if isinstance(task, Task) else task
    return f"{title} {estimate.text(scale, digits, sign=True)}{unit}{among}; {counted(estimate, counts)}"
