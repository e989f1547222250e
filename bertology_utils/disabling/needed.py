"""Which heads models need most, and what they share: between trainings of a task, and between tasks (§5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..common import Head
from ..glue.tasks import Task
from ..statistics.correlation import rank_of
from ..statistics.ties import by_size
from .measure import Effects, Variants, most_needed, shared_heads

FEW = 5  # heads of a model that count as its most needed
EffectsByTraining = Mapping[tuple[Task, int], Effects]


class Shared(NamedTuple):
    """What two models have in common.

    Attributes:
        heads: of the :data:`FEW` that either needs most, how many both do.
        p: the probability of as many by chance.
        rank: rank correlation, over all heads, of what disabling does; NaN where it does the same for all.
    """

    heads: int
    p: float
    rank: float


def shared(first: Variants, second: Variants) -> Shared:
    """What two models have in common."""
    return Shared(*shared_heads(first.values, second.values, FEW), rank_of(first.values, second.values))


def top(values: np.ndarray) -> list[Head]:
    """The :data:`FEW` heads of the largest values exactly, without ties; (layer, head) from 0."""
    return [divmod(int(at), values.shape[1]) for at in by_size(values, margin=0)[:FEW]]


def between_trainings(effects: EffectsByTraining) -> dict[Task, list[Shared]]:
    """Every pair of trainings, by task."""
    by_task: dict[Task, list[Variants]] = {}
    for (task, _), effect in effects.items():
        by_task.setdefault(task, []).append(effect.heads)
    return {task: [shared(b, a) for a, b in combinations(several, 2)] for task, several in by_task.items()}


def between_tasks(effects: EffectsByTraining) -> dict[tuple[Task, Task], Shared]:
    """Every pair of tasks, first training of each."""
    first = {task: effect.heads for (task, number), effect in effects.items() if number == 0}
    return {(a, b): shared(first[a], first[b]) for a, b in combinations(first, 2)}


def by_all(effects: EffectsByTraining, tasks: Sequence[Task]) -> list[Head]:
    """Heads among the most needed of each of these tasks, in some training; (layer, head) from 0."""
    of_tasks = [
        {head for (task, _), effect in effects.items() if task is one for head in most_needed(effect.heads.values, FEW)}
        for one in tasks
    ]
    return sorted(set.intersection(*of_tasks)) if of_tasks else []
