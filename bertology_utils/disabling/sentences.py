"""What came out, said under the figures and at the end; each sentence is computed from the numbers that it holds.

``models`` below holds those of every training on a task that was learned, see :mod:`bertology_utils.disabling.summary`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..common import Head, head_name, to_people
from ..glue.tasks import Task, predictions
from ..statistics.permutation import ONE_SIDED
from ..statistics.resampling import rounded
from ..statistics.ties import MARGIN, by_size, name_of_largest, p_is
from .measure import Effects
from .reference import Sweep
from .summary import Models, title_of

NOTHING = "No model has learned its task, so nothing is said."


def span(values: Iterable[float], digits: int = 2) -> str:
    """ "+0.53 to +3.75": the smallest and the largest; one number if they are the same."""
    values = [float(value) for value in values]
    return " to ".join(dict.fromkeys(rounded(end, digits, True) for end in (min(values), max(values))))


def _counts(counts: Iterable[int]) -> str:
    """ "1 to 4"; one number if they are the same."""
    counts = sorted(counts)
    return " to ".join(dict.fromkeys(f"{end}" for end in (counts[0], counts[-1])))


def _count(models: Models) -> str:
    """ "8 models, n=320"."""
    sizes = sorted({model["heads"]["best"]["n"] for model in models.values()})
    n = f"n={sizes[0]}" if len(sizes) == 1 else f"n={sizes[0]} to {sizes[-1]}"
    return f"{len(models)} model{'s' * (len(models) > 1)}, {n}"


def of_heads(models: Models) -> str:
    """What one head is worth: the best one's gain, the worst one's, and that of a head drawn at random."""
    if not models:
        return NOTHING
    best = [100 * model["heads"]["best"]["value"] for model in models.values()]
    mean = [100 * model["heads"]["mean"]["value"] for model in models.values()]
    worst = [100 * np.min(model["heads"]["values"]) for model in models.values()]
    raised = sum(value > 100 * MARGIN for value in best)
    return (
        f"With its best head off, the score rises in {raised} of {len(models)} models: it changes by {span(best)} points."
        f" With the worst head off it changes by {span(worst)}, with one drawn at random by {span(mean)} ({_count(models)})."
    )


def of_luck(models: Models) -> str:
    """Is the best gain beyond what luck gives, does some head gain surely, and does a gain last on other examples?"""
    if not models:
        return NOTHING
    heads = [model["heads"] for model in models.values()]
    beyond = sum(np.max(one["values"]) > one["best by chance"][1] + MARGIN for one in heads)
    sure = sum(np.min(one["better"]) < ONE_SIDED for one in heads)
    others = [one["on other examples"] for one in heads]
    lasting = sum(low > 0 for _, low, _ in others)
    return (
        f"In {beyond} of {len(heads)} models the best gain is above what luck gives the best head in 19 of 20 cases."
        f" Chosen on one half of the examples and measured on the other, the best head changes the score by"
        f" {span(100 * mean for mean, _, _ in others)} points; the interval is above 0 in {lasting} of {len(heads)} models."
        f" Beside its own changes by chance, {sure} of {len(heads)} models have one that gains by more than chance."
    )


def of_power(models: Models) -> str:
    """How large a gain has to be before it can be told from luck."""
    if not models:
        return NOTHING
    limits = {model: 100 * numbers["heads"]["best by chance"][1] for model, numbers in models.items()}
    least, most = (title_of(pick(limits, key=lambda model: limits[model])) for pick in (min, max))
    low, high = min(limits.values()), max(limits.values())
    return (
        f"To be beyond luck by its size the largest gain would have to exceed {low:.1f} points ({least}) to {high:.1f}"
        f" ({most}). A head that changes few answers can be sure with less."
    )


def of_sure_heads(effects: Mapping[tuple[Task, int], Effects], sweeps: Mapping[tuple[Task, int], Sweep]) -> list[str]:
    """For every model in which some head surely gains, and not the one that gains most: what both do.

    Args:
        effects: of every training, by task and number of the training.
        sweeps: the outputs that they are of.
    """
    found = []
    for (task, number), effect in effects.items():
        heads, p = effect.heads, effect.heads.test.better
        if not heads.significant().any() or p[heads.best] < ONE_SIDED:
            continue
        surest = int(by_size(np.where(p < ONE_SIDED, heads.values.ravel(), -np.inf))[0])
        tie = heads.values.flat[surest] >= heads.values.max() - MARGIN
        shape, sweep = heads.shape, sweeps[task, number]
        best, sure = (
            f"{100 * heads.gains[at].value:+.2f} points, {p_is(p[at])}, {_reach(task, sweep, divmod(at, shape[1]))}"
            for at in (heads.best, surest)
        )
        found.append(
            f"{task.title}, training {to_people(number)}: {np.count_nonzero(heads.significant())} of {p.size} heads gain by"
            f" more than chance.\n  largest gain: {name_of_largest(heads.values)}, {best}"
            f"\n  sure gain: {head_name(*divmod(surest, shape[1]))}, {sure}"
            + (f" (one of the tie: gains within {100 * MARGIN:.2f} points count as equal)" if tie else "")
        )
    return found


def _reach(task: Task, sweep: Sweep, head: Head) -> str:
    """How much of what a model says a head's disabling changes."""
    whole, without = predictions(task, sweep.baseline), predictions(task, sweep.heads[head])
    if task.is_regression:
        return f"moves the predicted similarity (0 to 1) by {np.abs(without - whole).mean():.3f} on average"
    return f"changes {int((without != whole).sum())} answers"


def of_layers(models: Models) -> str:
    """What a whole layer is worth: the best and the worst of every model."""
    if not models:
        return NOTHING
    values = {model: 100 * np.asarray(numbers["layers"]["values"]) for model, numbers in models.items()}
    raised = sum(int((of_model > 100 * MARGIN).sum()) for of_model in values.values())
    worst = min(values, key=lambda model: values[model].min())
    others = [100 * numbers["layers"]["on other examples"][0] for numbers in models.values()]
    return (
        f"{raised} of {sum(map(len, values.values()))} layers raise the score when they are disabled. The best layer of a"
        f" model changes it by {span(v.max() for v in values.values())} points, chosen on one half of the examples and"
        f" measured on the other by {span(others)}. The worst costs up to {-values[worst].min():.0f} points"
        f" ({title_of(worst)}, layer {name_of_largest(-values[worst])})."
    )


def of_frame_heads(models: Models, heads: Sequence[Head]) -> str:
    """What disabling the frame-semantic heads does."""
    if not models:
        return NOTHING
    changes = [100 * np.asarray(model["heads"]["values"])[head] for model in models.values() for head in heads]
    names = " or ".join(head_name(*head) for head in heads)
    return f"Disabling {names} changes the score by {span(changes)} points ({_count(models)})."


def of_shared(across_tasks: Iterable[int], across_trainings: Iterable[int]) -> str:
    """How many of their five most needed heads models share.

    Args:
        across_tasks: one number per pair of tasks.
        across_trainings: one number per pair of trainings of a task.
    """
    tasks, trainings = list(across_tasks), list(across_trainings)
    parts = []
    if trainings:
        parts.append(f"two trainings of one task share {_counts(trainings)}")
    if tasks:
        parts.append(f"two tasks share {_counts(tasks)}")
    return f"Of the five heads that a model needs most, {', '.join(parts)}." if parts else ""


def closing(
    models: Models, frame_heads: Sequence[Head], across_tasks: Iterable[int], across_trainings: Iterable[int]
) -> list[str]:
    """The notebook in at most five sentences.

    Args:
        models: of tasks that were learned.
        frame_heads: (layer, head) from 0.
        across_tasks, across_trainings: see :func:`of_shared`.
    """
    if not models:
        return [NOTHING]
    heads = [model["heads"] for model in models.values()]
    raised = [one for one in heads if np.max(one["values"]) > MARGIN]
    beyond = sum(np.max(one["values"]) > one["best by chance"][1] + MARGIN for one in heads)
    sure = [100 * gain for one in heads for gain in np.asarray(one["values"])[np.asarray(one["better"]) < ONE_SIDED]]
    worst = [100 * np.min(model["layers"]["values"]) for model in models.values()]
    whole = "Every model has a layer it needs" if max(worst) < -1 else "Not every model has a layer it needs"
    count = f"{len(sure) or 'none'} of {sum(np.size(one['values']) for one in heads)} heads"
    found = [
        f"{len(raised)} of {len(heads)} models score higher without some head; in {beyond or 'none'} is the largest gain beyond luck.",
        f"Beside what chance alone does to the same head, {count} gain surely"
        + (f", {span(sure)} points." if sure else "."),
        f"{whole}: without its worst one the score changes by {span(worst, 1)} points.",
        of_frame_heads(models, frame_heads),
        of_shared(across_tasks, across_trainings),
    ]
    return [sentence for sentence in found if sentence]
