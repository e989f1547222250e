"""What is trained, and swept, for notebook 7: nothing that notebooks 4 and 6 do not need as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..disabling.needs import SweepOf
from ..encoders.needs import FineTuning, finetunings
from ..glue.tasks import Task

SWEPT = ("mrpc", "stsb", "sst2", "rte")  # tasks whose heads the paper disables one by one (§4.6)


def swept(tasks: Iterable[Task]) -> list[Task]:
    """Of these tasks."""
    return [task for task in tasks if task.name in SWEPT]


def needs(trainings: Mapping[Task, int]) -> list[FineTuning | SweepOf]:
    """Some classifiers for each task, and the sweeps that say which heads matter.

    Args:
        trainings: of each task.
    """
    trained = finetunings(trainings)
    return [*trained, *(SweepOf(training) for training in trained if training.task in swept(trainings))]
