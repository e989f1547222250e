"""Is the change due to the task? Another seed, and a random start that learned it (§4.3, controls of ours)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..glue.tasks import Task, plain_metric
from ..statistics import Bootstrap, Seed, bootstrap_mean, mean_of
from ..statistics.verdicts import outcome
from .table1 import constant_score


def mean_change(
    similarity: Mapping[Task, Mapping[str, np.ndarray]], names: Sequence[str], seeds: Mapping[Task, Seed]
) -> Bootstrap:
    """1 − similarity, mean over some comparisons, heads, layers and tasks.

    Args:
        similarity: by task and comparison, each of shape (examples, layers, heads).
        names: the comparisons.
        seeds: of each task's resampling of examples.
    """
    changes = {task: 1 - np.mean([by_name[name] for name in names], axis=(0, 2, 3)) for task, by_name in similarity.items()}
    return mean_of([bootstrap_mean(change, seeds[task]) for task, change in changes.items()])


def learned(task: Task, scores: Mapping[str, Bootstrap], labels: np.ndarray) -> bool:
    """Does a classifier beat the constant answer in 95 % of the resamples?

    Args:
        task: the task.
        scores: by metric, from :func:`bertology_utils.drift.table1.score_task`.
        labels: gold, shape (examples,).
    """
    return outcome(scores[plain_metric(task)].share_above(constant_score(task, labels))) == "agrees"
