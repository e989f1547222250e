"""What an experiment needs to have been trained: declared in each section's ``needs``, made before its notebook runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..glue.tasks import Task


@dataclass(frozen=True)
class FineTuning:
    """One fine-tuned classifier.

    Attributes:
        task: the task.
        init: what it starts from, "pretrained" or "normal".
        seed_offset: another number is another training of the same kind.
    """

    task: Task
    init: str = "pretrained"
    seed_offset: int = 0


def finetunings(counts: Mapping[Task, int], init: str = "pretrained") -> list[FineTuning]:
    """As many trainings of every task, which differ in their seed."""
    return [FineTuning(task, init, number) for task, count in counts.items() for number in range(count)]
