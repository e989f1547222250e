"""What is trained for §4.3: two classifiers for each task, and one from a random start."""

from collections.abc import Sequence

from ..encoders.needs import FineTuning, finetunings
from ..glue.tasks import Task


def needs(tasks: Sequence[Task]) -> list[FineTuning]:
    """The fine-tunings behind Table 1 and Figure 5."""
    return finetunings(tasks) + finetunings(tasks, 1, init="normal")
