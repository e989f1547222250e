"""Preconditions: what has to be true of a model or of data before a claim can be judged with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..glue.tasks import Task, plain_metric
from ..statistics import Bootstrap, Seed, whole_and_resampled
from ..statistics.estimate import over_trainings
from ..statistics.weighted import weighted_scores
from .support import HOLDS, above

MIN_EXAMPLES = 30  # below it a mean over examples is an anecdote


def constant_score(task: Task, labels: np.ndarray) -> float:
    """What always the same answer scores: the most frequent class's share, or no correlation for a regression.

    Args:
        task: the task.
        labels: gold, shape (examples,).
    """
    return 0.0 if task.is_regression else float(np.bincount(labels).max() / len(labels))


def learned(task: Task, predicted: np.ndarray, labels: np.ndarray, seed: Seed) -> bool:
    """Did every training learn the task: is each one's score surely above that of always the same answer?

    By :func:`bertology_utils.glue.tasks.plain_metric`.

    Args:
        task: the task.
        predicted: of every training, shape (trainings, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    weights = whole_and_resampled(len(labels), seed)  # (1 + resamples, examples)
    scores = weighted_scores(plain_metric(task), predicted, labels, weights).T  # (trainings, 1 + resamples)
    constant = constant_score(task, labels)
    each = [over_trainings([Bootstrap.of(score, len(labels), seed)]) for score in scores]
    return all(above(estimate, constant).outcome == HOLDS for estimate in each)


def unlearned(tasks: Sequence[Task], learned: Mapping[Task, bool]) -> str:
    """What is missing if no task that a claim is about was learned; empty if one was, or none was asked for."""
    if any(learned[task] for task in tasks):
        return ""
    titles = ", ".join(task.title for task in tasks)
    return f"no model that learned {titles}: none is surely above always the same answer" if tasks else "no such task here"


def no_sink(in_even_shares: float) -> str:
    """What is missing if the pre-trained model has no [SEP] sink: if [SEP] gets less than an even share.

    Args:
        in_even_shares: attention to one [SEP], pre-trained, mean over heads and examples, in multiples of 1/L.
    """
    if in_even_shares > 1:
        return ""
    return f"a model with a [SEP] sink: pre-trained, [SEP] gets {in_even_shares:.1f} of an even share"


def never_adjacent(adjacent: float, least: float = 0.05) -> str:
    """What is missing if linked words hardly ever stand side by side.

    Args:
        adjacent: share of links whose words are neighbours; NaN where there are no links.
        least: below it, the claim cannot be tested.
    """
    if adjacent >= least:
        return ""
    return "no such links here" if np.isnan(adjacent) else f"adjacent links: {adjacent:.0%} of these words are neighbours"


def too_few(n: int) -> str:
    """What is missing if a mean would be over fewer than :data:`MIN_EXAMPLES` examples."""
    return "" if n >= MIN_EXAMPLES else f"examples: {n}, of {MIN_EXAMPLES} at least"
