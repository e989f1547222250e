"""What is trained, and swept, for §4.6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..encoders.needs import FineTuning, finetunings
from ..glue.tasks import Task
from .ablations import ABLATIONS


@dataclass(frozen=True)
class SweepOf:
    """The outputs of a fine-tuned classifier with every head, and every layer, disabled.

    Attributes:
        training: the classifier.
        ablation: what a disabled head does instead, one of :data:`bertology_utils.disabling.ablations.ABLATIONS`.
    """

    training: FineTuning
    ablation: str = "uniform"


def compared(tasks: Sequence[Task], profile: str) -> Sequence[Task]:
    """The tasks on whose first training the ways of disabling a head are compared."""
    return tasks[:1] if profile == "embedded" else tasks[:2]


def needs(tasks: Sequence[Task], trainings: int, profile: str) -> list[FineTuning | SweepOf]:
    """The fine-tunings and sweeps behind Figures 8 and 9.

    Args:
        tasks: those of the notebook.
        trainings: of each task.
        profile: its name.
    """
    trained = finetunings(dict.fromkeys(tasks, trainings))
    first = finetunings(dict.fromkeys(compared(tasks, profile), 1))
    others = [SweepOf(training, ablation) for training in first for ablation in ABLATIONS if ablation != "uniform"]
    return [*trained, *(SweepOf(training) for training in trained), *others]
