"""What is trained for §4.3: at least two classifiers for each task, and some from a random start."""

from collections.abc import Mapping

from ..encoders.needs import FineTuning, finetunings
from ..glue.tasks import Task


def needs(trainings: Mapping[Task, int], random_starts: Mapping[Task, int]) -> list[FineTuning]:
    """The fine-tunings behind Table 1 and Figure 5.

    Args:
        trainings: of each task.
        random_starts: of each task.

    Raises:
        ValueError: one training of a task, which cannot be compared with another.
    """
    if min(trainings.values()) < 2:
        raise ValueError("trainings=1: notebook 3 compares trainings of one task; choose trainings 2 or more")
    return finetunings(trainings) + finetunings(random_starts, init="normal")
