"""What each notebook needs to have been trained or swept, as its section declares it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...disabling.needs import SweepOf
from ...disabling.needs import needs as of_disabling
from ...drift.needs import needs as of_drift
from ...encoders.needs import FineTuning, finetunings
from ...features.needs import needs as of_features
from ...links.needs import needs as of_links
from ...patterns.needs import needs as of_patterns
from ...weighing.needs import needs as of_weighing
from ..parameters import Settings

Need = FineTuning | SweepOf


def needs_of(notebook: str, settings: Settings) -> list[Need]:
    """What a notebook needs; [] where nothing is trained.

    Args:
        notebook: its name without suffix.
        settings: what it runs with. What a checkpoint was given for is not trained.

    Raises:
        ValueError: fewer trainings than the notebook compares.
    """
    tasks, counts = settings.tasks, {task: settings.trainings_of(task) for task in settings.tasks}
    declared: dict[str, Callable[[], Sequence[Need]]] = {
        "0_attention_head": lambda: finetunings(dict.fromkeys([task for task in tasks if task.labels][:1], 1)),
        "1_attention_patterns": lambda: of_patterns(counts),
        "3_finetuning_drift": lambda: of_drift(counts, {task: settings.random_starts_of(task) for task in tasks}),
        "4_feature_attention": lambda: of_features(counts),
        "5_token_to_token": lambda: of_links(counts),
        "6_disabling_heads": lambda: of_disabling(tasks, settings.trainings, settings.profile.name),
        "7_what_attention_weighs": lambda: of_weighing(counts),
    }
    given = {name for name, _ in settings.checkpoints}
    needs = list(declared[notebook]()) if notebook in declared else []
    return [need for need in needs if _is_made(need, given)]


def _is_made(need: Need, given: set[str]) -> bool:
    """A given checkpoint is not trained, it is swept once, and there is no second training of its task."""
    training = need.training if isinstance(need, SweepOf) else need
    if training.init != "pretrained" or training.task.name not in given:
        return True
    return isinstance(need, SweepOf) and training.seed_offset == 0
