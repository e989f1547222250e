"""Notebook 3's numbers for the results file, and what they come to in a few sentences."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..claims.findings import amount, sizes
from ..common import to_people
from ..encoders.finetune import rows_digest
from ..glue.tasks import TASKS, Task
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate, average
from ..statistics.ties import largest
from . import wording
from .tables import Scores

if TYPE_CHECKING:
    from datasets import Dataset

_TRAINING = "fine-tuning"
Similarity = Mapping[Task, Mapping[str, np.ndarray]]  # by task and comparison, shape (examples, layers, heads)


def of_tasks(found: Mapping[Task, Estimate | Bootstrap]) -> dict[str, dict[str, float]]:
    """Estimates by the task's name."""
    return {task.name: estimate.summary() for task, estimate in found.items()}


def scores(table1: Scores, tuning: Mapping[Task, Estimate], pretraining: Mapping[Task, Estimate]) -> dict[str, object]:
    """Table 1, and what fine-tuning and pre-training are worth on average."""
    worth = {"fine-tuning": tuning, "pre-training": pretraining}
    return {
        "table1": {
            task.name: {
                column: {metric: value.summary() for metric, value in metrics.items()} for column, metrics in columns.items()
            }
            for task, columns in table1.items()
        },
        "gains": {name: average(list(gains.values())).summary() for name, gains in worth.items() if gains},
    }


def layers(similarity: Similarity, leads: Mapping[Task, Estimate]) -> dict[str, object]:
    """How far the maps moved, by head and comparison, and how far ahead the last two layers are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)  # a map that stayed in every example: NaN
        drift = {task.name: {name: np.nanmean(values, axis=0) for name, values in by_name.items()}
                 for task, by_name in similarity.items()}  # fmt: skip
    return {"drift": drift, "leads": of_tasks(leads)}


def layers_put_back(costs: Mapping[Task, Sequence[Estimate]], leads: Mapping[Task, Estimate]) -> dict:
    """What putting layers back changes, and the last two layers against other neighbours."""
    return {
        "put_back": {task.name: [estimate.summary() for estimate in of_task] for task, of_task in costs.items()},
        "put_back_leads": of_tasks(leads),
    }


def rows(of_tasks: Mapping[Task, tuple[Dataset, Dataset]]) -> dict[str, dict[str, object]]:
    """How many training and dev rows each task has, and a digest of the first."""
    return {
        task.name: {"train": len(train), "dev": len(dev), "train_sha256": rows_digest(train)}
        for task, (train, dev) in of_tasks.items()
    }


def trainings(of_task: Iterable[str]) -> list[str]:
    """Of the names of comparisons, those of a training with the pre-trained model; see :func:`names_of`."""
    return [name for name in of_task if name.startswith(_TRAINING)]


def names_of(count: int) -> list[str]:
    """Names of that many comparisons of a training with the pre-trained model."""
    return [_TRAINING, f"{_TRAINING} again", *(f"{_TRAINING} {number}" for number in range(3, count + 1))][:count]


def by_layer(similarity: Similarity) -> dict[Task, list[np.ndarray]]:
    """Mean similarity by layer in each training, shape (layers,)."""
    return {task: [of_task[name].mean(axis=(0, 2)) for name in trainings(of_task)] for task, of_task in similarity.items()}


def sentences(results: Mapping) -> list[str]:
    """The notebook in a few sentences.

    Args:
        results: what goes into ``results.json``: "drift", "gains", "random_start_learned" and "put_back".
    """
    tasks = {name: TASKS[name] for name in results["drift"]}
    by_task = {
        tasks[name]: [np.mean(of_task[one], axis=1) for one in trainings(of_task)]
        for name, of_task in results["drift"].items()
    }
    mean = np.mean([several for of_task in by_task.values() for several in of_task], axis=0)  # (layers,)
    lowest = to_people(*largest(-mean))
    learned = {tasks[name]: value for name, value in results["random_start_learned"].items()}
    ends = f"{mean[0]:.2f} in the first layer and {mean[-1]:.2f} in the last"
    return [
        f"Mean similarity of maps before and after fine-tuning is {ends}; it is lowest in layer {lowest}.",
        wording.layers_in_trainings(by_task),
        _worth(results["gains"], len(tasks), len(learned)),
        wording.random_start(learned),
        *_put_back(results["put_back"], len(mean)),
    ]


def _worth(gains: Mapping[str, Mapping], tasks: int, random_starts: int) -> str:
    """What fine-tuning is worth, and pre-training, on how many tasks it was measured, if not on all."""
    tuning = gains["fine-tuning"]
    text = f"Fine-tuning is worth {amount(tuning, 'points', 1, sign=True)} on average"
    if pretraining := gains.get("pre-training"):
        over = f" over {random_starts} of {tasks} tasks" if random_starts < tasks else ""
        text += f", pre-training {amount(pretraining, 'points', 1, sign=True)}{over}"
    return f"{text} ({sizes(tuning)})."


def _put_back(costs: Mapping[str, Sequence[Mapping]], layers: int) -> list[str]:
    """Which layers' fine-tuning matters more; nothing for a model whose layers cannot be put back."""
    last, others = layers - 2, 2 * layers - 4  # places of the last two neighbours, and of all layers but these
    ends = {TASKS[name]: (several[last]["value"], several[others]["value"]) for name, several in costs.items()}
    if others <= last or not np.isfinite(list(ends.values())).all():
        return []
    return [wording.costs(ends)]
