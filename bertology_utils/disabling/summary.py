"""Notebook 6's numbers in the form of its results file, in which other runs can be drawn beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..common import Head, head_name
from ..glue.tasks import TASKS, Task
from .measure import Effects, Variants

Models = Mapping[str, Mapping]  # of every training, by "mrpc, training 1"
THIS_RUN = "this run"


def of_effects(effects: Mapping[tuple[Task, int], Effects], learned: Mapping[Task, bool] | None = None) -> dict[str, dict]:
    """What disabling does, by model.

    Args:
        effects: of every training, by task and number of the training.
        learned: by task; of these only, if given.
    """
    return {
        f"{task.name}, training {number + 1}": {
            "baseline": effect.baseline,
            "heads": of_variants(effect.heads),
            "layers": of_variants(effect.layers) | {"gains": [gain.summary() for gain in effect.layers.gains]},
        }
        for (task, number), effect in effects.items()
        if learned is None or learned[task]
    }


def of_variants(variants: Variants) -> dict[str, object]:
    """Of the heads, or the layers, of one training."""
    test, selected = variants.test, variants.selected
    return {
        "values": variants.values,
        **{side: getattr(test, side).reshape(variants.shape) for side in ("better", "worse")},
        "mean": variants.mean.summary(),
        "best": variants.gains[variants.best].summary(),
        "on other examples": [float(selected.honest.mean()), *selected.interval],
        "best by chance": np.percentile(test.best_by_chance, [50, 95]),
    }


def of_named(effects: Mapping[tuple[Task, int], Effects], heads: Sequence[Head]) -> dict[str, dict]:
    """The gains of some heads, (layer, head) from 0, by model and the head's name."""
    return {
        f"{task.name}, training {number + 1}": {
            head_name(*head): effect.heads.gains[head[0] * effect.heads.shape[1] + head[1]].summary() for head in heads
        }
        for (task, number), effect in effects.items()
    }


def beside(real: str, results: Mapping, own: Models) -> dict[str, Models]:
    """Models by whose they are: those of a committed run, if it is there, and this run's.

    Args:
        real: the committed run's title.
        results: its ``results.json``, parsed; empty without.
        own: this run's.
    """
    found = results.get("effects", {})
    return ({real: found} if found else {}) | {THIS_RUN: own}


def task_of(model: str) -> Task:
    """Of "mrpc, training 1" the task."""
    return TASKS[model.split(",")[0]]


def title_of(model: str) -> str:
    """Of "mrpc, training 1", "MRPC, training 1"."""
    return task_of(model).title + model[model.index(",") :]


def firsts(models: Models) -> dict[Task, Mapping]:
    """The first training of every task."""
    found: dict[Task, Mapping] = {}
    for model, numbers in models.items():
        found.setdefault(task_of(model), numbers)
    return found
