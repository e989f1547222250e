"""What came out of each part of §4.3, in sentences that numbers fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..common import to_people
from ..glue.tasks import Task
from ..statistics.estimate import Estimate
from ..statistics.resampling import rounded
from ..statistics.ties import MARGIN, by_size


def changed_most(by_layer: np.ndarray, count: int = 2) -> str:
    """The layers of the lowest similarity, from 1: "5, 6"; "all alike" where no layer changed more than another.

    Args:
        by_layer: similarity, shape (layers,).
        count: how many.
    """
    if np.ptp(by_layer) <= MARGIN:
        return "all alike"
    return ", ".join(str(to_people(int(layer))) for layer in sorted(by_size(-by_layer)[:count]))


def layers_in_trainings(by_layer: Mapping[Task, Sequence[np.ndarray]]) -> str:
    """On which tasks the last two layers are the two that changed most, in how many trainings.

    Args:
        by_layer: by task and training, similarity of shape (layers,).
    """
    named = {task: [changed_most(one) for one in several] for task, several in by_layer.items()}
    last = {task: _last_two(len(several[0])) for task, several in by_layer.items()}
    each = [task for task, several in named.items() if set(several) == {last[task]}]
    some = [task for task, several in named.items() if last[task] in several and task not in each]
    none = {task: " or ".join(dict.fromkeys(several)) for task, several in named.items() if last[task] not in several}
    parts = [f"on {len(each)} of {len(named)} tasks in every training{_listed(each)}"]
    if some:
        trainings = "one training" if max(map(len, named.values())) <= 2 else "some trainings"
        parts.append(f"on {len(some)} in {trainings} only{_listed(some)}")
    if none:
        parts.append(f"on {len(none)} in none: " + ", ".join(f"{task.title} (layers {most})" for task, most in none.items()))
    return f"The last two layers are the two that changed most {'; '.join(parts)}."


def padding(readings: Mapping[Task, Mapping[str, np.ndarray]]) -> str:
    """Where it depends on rows of padding whether the last two layers changed most.

    Args:
        readings: by task and protocol, similarity of shape (layers,).
    """
    depends = [task for task, both in readings.items() if len({_are_last(values) for values in both.values()}) > 1]
    if not depends:
        return f"On none of {len(readings)} tasks does it depend on padding whether the last two layers changed most."
    return (
        f"On {len(depends)} of {len(readings)} tasks{_listed(depends)} one reading names the last two layers and the other"
        " does not: there claim 1 depends on whether padding counts."
    )


def random_start(learned: Mapping[Task, bool]) -> str:
    """What a random start that learned few tasks, or none, can be compared with.

    Args:
        learned: by task that a random start was trained on.
    """
    if not learned:
        return "No random start was trained on these tasks."
    count = sum(learned.values())
    text = f"From random weights {count} of {len(learned)} tasks were learned{_listed([t for t in learned if learned[t]])}."
    if count == len(learned):
        return text
    return text + (
        " Where it learned nothing, claim 3 compares pre-training with always the same answer: the difference says that a"
        " pre-trained model learns at all in so few steps, and no more."
    )


def costs(by_task: Mapping[Task, tuple[float, float]]) -> str:
    """Which costs more, putting back the last two layers or all the others?

    Args:
        by_task: change of the score, from 0 to 1, with the last two put back, and with all others put back.
    """
    more = [task for task, (last, others) in by_task.items() if others < last]
    last, others = (rounded(100 * float(np.mean([pair[at] for pair in by_task.values()])), 0, True) for at in (0, 1))
    return (
        f"Putting the last two layers back changes the score by {last} points on average, putting all others back by"
        f" {others}. The others cost more on {len(more)} of {len(by_task)} tasks{_listed(more)}."
    )


def same_way(same: Mapping[Task, Estimate], apart: Mapping[Task, Estimate], half: float, least: float) -> str:
    """On which tasks two trainings change the maps alike.

    Args:
        same: by task, the cosine of the changes of two trainings.
        apart: that minus the cosine with a training on another task.
        half, least: what these are compared with.
    """
    alike = [task for task, cosine in same.items() if cosine.value > half]
    more = sum(cosine.value > least for cosine in apart.values())
    return (
        f"The cosine is above {half} on {len(alike)} of {len(same)} tasks{_listed(alike)}, and above that with another task"
        f" by more than {least} on {more} of {len(apart)}."
    )


def by_norm(weighing: str, maps: np.ndarray, norms: np.ndarray) -> str:
    """Which layers change most by both measures, of shape (layers, heads)."""
    one, other = (changed_most(values.mean(axis=1)) for values in (maps, norms))
    return f"On average over tasks and heads layers {one} change most by {weighing}, layers {other} by norm."


def single_classifiers(title: str, metric: str, scores: np.ndarray, first: int = 5) -> str:
    """What one random classifier may score.

    Args:
        title: of the task.
        metric: its name.
        scores: of each classifier in points, shape (classifiers,).
        first: how many are told one by one.
    """
    zero = int((scores == 0).sum())
    few = ", ".join(f"{value:.0f}" for value in scores[:first])
    return (
        f"{title}, {metric}: the first {first} score {few}; the highest {scores.max():.0f}.\n"
        f"{zero} of {len(scores)} score 0, so that the paper's 0 "
        + ("can come from a single random layer." if zero else "would be rare for a single random layer.")
    )


def one_of_two(last: float, before: float, both: float) -> str:
    """From which of the last two layers a loss comes: changes of the score with either put back, and with both."""
    more = "the last layer" if last < before else "the one before"
    sums = "more" if both < last + before else "less"
    return f"Alone, {more} costs more; both together cost {sums} than the two add up to."


def _last_two(layers: int) -> str:
    return ", ".join(str(to_people(layer)) for layer in range(layers - 2, layers))


def _are_last(by_layer: np.ndarray) -> bool:
    return changed_most(by_layer) == _last_two(len(by_layer))


def _listed(tasks: Sequence[Task]) -> str:
    return f" ({', '.join(task.title for task in tasks)})" if tasks else ""
