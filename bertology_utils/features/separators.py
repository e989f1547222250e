"""Does [SEP] get more where it stands alone? One-sentence tasks against two-sentence tasks (§4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..glue.tasks import Task
from ..statistics import Bootstrap, Estimate, lead, over_trainings


def ahead_of_pairs(measured: Mapping[Task, Sequence[Bootstrap]], learned: Mapping[Task, bool]) -> dict[Task, Estimate]:
    """By one-sentence task, its number minus the largest of any two-sentence task; learned tasks only.

    Args:
        measured: of every task and training.
        learned: by task.

    Returns:
        Estimates over the trainings; nothing where tasks of either kind are missing.
    """
    single, double = ([task for task in measured if len(task.fields) == count and learned[task]] for count in (1, 2))
    by_training = list(zip(*(measured[task] for task in double), strict=False))
    return {
        task: over_trainings([lead(one, others) for one, others in zip(measured[task], by_training, strict=False)])
        for task in single
        if by_training
    }
