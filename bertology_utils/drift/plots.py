"""The figures of §4.3: how alike maps are by layer, and dots for the paper, a run on real data and this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from .. import plots
from ..common import axis_numbers
from ..glue import Task, plain_metric
from ..results import Entry
from ..statistics import Bootstrap, Estimate, Seed, resampled_means
from .scores import COLUMNS, paper_points

THIS_RUN, PAPER = "this run", "the paper"
# By comparison: colour, and line with marks.
COMPARISONS = {
    "fine-tuning": ("blue", ".-"),
    "fine-tuning again": ("blue", ".:"),
    "another seed": ("green", "x--"),
    "random start": ("orange", "s-"),
}
Scores = Mapping[Task, Mapping[str, Mapping[str, Bootstrap]]]  # by task, column (if it was run) and metric


def change_by_layer(similarity: Mapping[Task, Mapping[str, np.ndarray]], seeds: Mapping[Task, Seed]) -> plt.Figure:
    """Mean similarity by layer with its interval, for fine-tuning and its controls, a panel for each task.

    Args:
        similarity: by task and comparison, each of shape (examples, layers, heads); not every task has a random start.
        seeds: of each task's resampling of examples.
    """
    count = len(similarity)
    figure, axes = plt.subplots(1, count, figsize=(1.6 * count + 1, 2.9), sharey=True, squeeze=False)
    for ax, (task, by_name) in zip(axes.flat, similarity.items(), strict=True):
        of_more = {name: ("blue", ":") for name in by_name if name.startswith("fine-tuning") and name not in COMPARISONS}
        drawn = {name: look for name, look in (COMPARISONS | of_more).items() if name in by_name}
        for name, (colour, line) in drawn.items():
            colour, means = plots.COLOURS[colour], resampled_means(by_name[name].mean(axis=2), seeds[task])
            numbers = axis_numbers(means.shape[1])
            ax.fill_between(numbers, *np.percentile(means, [2.5, 97.5], axis=0), color=colour, alpha=0.3, lw=0)
            ax.plot(numbers, by_name[name].mean(axis=(0, 2)), line, ms=4, color=colour, label=name)
        ax.set(title=task.title, xlabel="layer", xticks=numbers[:: 1 + len(numbers) // 8])
        ax.tick_params(axis="x", labelsize=7)
    axes[0, 0].set_ylabel("mean cosine similarity")
    handles = {label: one for ax in axes.flat for one, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncol=4)
    return figure


def before_and_after(before: np.ndarray, after: np.ndarray, tokens: Sequence[str], title: str) -> plt.Figure:
    """One head's maps of one input, before and after fine-tuning; the scale ends at the largest weight.

    Args:
        before, after: shape (tokens, tokens).
        tokens: the wordpieces.
        title: above both.
    """
    side = 1.6 + 0.2 * len(tokens)  # inches
    figure, axes = plt.subplots(1, 2, figsize=(2 * side + 0.8, side))
    for ax, weights, name in zip(axes, (before, after), ("pre-trained", "fine-tuned"), strict=True):
        image = plots.attention_map(ax, weights, tokens, name)
        image.set_clim(0, float(max(before.max(), after.max())))
    figure.suptitle(title)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure


def table1_dots(scores: Scores, constant: Mapping[Task, float], real: Mapping[tuple, Entry], title: str) -> plt.Figure:
    """Table 1: a panel for each column, a row for each task, with accuracy or Pearson's correlation.

    Args:
        scores: by task, column and metric, from :func:`bertology_utils.drift.scores.score_task`.
        constant: what always the same answer scores in this run, drawn as a grey tick.
        real: the run to draw beside, by (task's name, column, metric).
        title: of that run.
    """

    def row(task: Task, column: str) -> dict:
        metric = plain_metric(task)
        points = paper_points(task, column, metric)
        found = {
            PAPER: None if points is None else points / 100,
            title: real.get((task.name, column, metric)),
            THIS_RUN: scores[task].get(column, {}).get(metric),
        }
        return {name: dot for name, dot in found.items() if dot is not None}

    panels = {name: {task.title: row(task, column) for task in scores} for column, name in COLUMNS.items()}
    figure = plots.dot_panels(panels, "score × 100", 100, columns=len(COLUMNS))
    for at, ax in enumerate(figure.axes):
        at_constant = 100 * np.array(list(constant.values()))
        ax.plot(at_constant, range(len(constant)), "|", color="grey", ms=20, mew=1, zorder=0, label="always the same answer")
        ax.set(xlim=(min(-5, ax.get_xlim()[0]), 103), xticks=range(0, 101, 20))
        if at:
            ax.set_yticklabels([])
    figure.legends[0].remove()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def leads(ahead: Mapping[Task, Estimate], real: Mapping[str, Entry], title: str) -> plt.Figure:
    """How far the last two layers are ahead, by task; of the paper, which gives no number, whether they are.

    Args:
        ahead: of each task the nearest of :func:`bertology_utils.drift.measure.over_trainings`.
        real: the run to draw beside, by the task's name.
        title: of that run.
    """
    rows = {
        task.title: ({title: real[task.name]} if task.name in real else {}) | {THIS_RUN: ours}
        for task, ours in ahead.items()
    }
    figure, ax = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.3))
    plots.dots(ax, rows, "how far ahead the last two layers are, in cosine similarity", border=0.0)
    reach = 2.5 * max(abs(estimate.value) for estimate in ahead.values()) or 0.1
    look = {"color": plots.SOURCE_COLOURS[PAPER], "mfc": "white", "ms": 5}
    for at, task in enumerate(ahead):
        ax.plot(0.92 * (-1 if task.name == "qqp" else 1) * reach, at, "D", **look)
    ax.plot([], [], "D", label=f"{PAPER}: left or right of 0", **look)
    plots.cut(ax, -reach, reach)  # with two trainings an interval may be far longer than any difference
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def restored(
    changes: Mapping[Task, Sequence[Estimate]], pairs: Sequence[str], real: Mapping[tuple, Entry], title: str
) -> plt.Figure:
    """What restoring two neighbouring layers does to the score, a panel for each task.

    Args:
        changes: by task, for each pair of layers.
        pairs: how the pairs are called.
        real: the run to draw beside, by (task's name, pair).
        title: of that run.
    """
    panels = {
        task.title: {
            pair: ({title: real[task.name, pair]} if (task.name, pair) in real else {}) | {THIS_RUN: of_task[at]}
            for at, pair in enumerate(pairs)
        }
        for task, of_task in changes.items()
    }
    figure = plots.dot_panels(panels, "change of the score, points", 100, border=0.0)
    _limit(figure, [100 * one.value for of_task in changes.values() for one in of_task])
    for ax in figure.axes[::4]:  # the first of each row
        ax.set_ylabel("layers put back")
    return figure


def last_two(changes: Mapping[Task, tuple[Estimate, Estimate]], gain: Mapping[Task, Estimate]) -> plt.Figure:
    """What the score loses without the fine-tuning of the last two layers, and without that of all others.

    Args:
        changes: by task, the change with the last two restored, and with all others restored.
        gain: of the score by fine-tuning; a grey tick marks where all of it is lost.
    """
    colours = {"the last two put back": plots.COLOURS["blue"], "all others put back": plots.COLOURS["red"]}
    rows = {task.title: dict(zip(colours, pair, strict=True)) for task, pair in changes.items()}
    figure, ax = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.3))
    plots.dots(ax, rows, "change of the score, points", 100, colours, markers={"all others put back": "s"})
    lost = [-100 * gain[task].value for task in changes]
    ax.plot(lost, range(len(lost)), "|", color="grey", ms=20, mew=1.5, zorder=0, label="all that fine-tuning gained")
    ax.axvline(0, color="black", lw=0.8, zorder=0)
    _limit(figure, [*lost, *(100 * one.value for pair in changes.values() for one in pair)])
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def movements(cosines: Mapping[str, Mapping[Task, Bootstrap]]) -> plt.Figure:
    """Similarity of the changes that two trainings make to the maps, by task.

    Args:
        cosines: by comparison as it is to be called, and by task; the second is with another task.
    """
    colours = dict(zip(cosines, (plots.COLOURS["blue"], plots.COLOURS["grey"]), strict=True))
    rows = {task.title: {title: of[task] for title, of in cosines.items()} for task in next(iter(cosines.values()))}
    figure, ax = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.3))
    markers = dict(zip(colours, "o^", strict=True))
    plots.dots(ax, rows, "cosine of the two changes (0: unrelated, 1: the same)", 1, colours, None, markers)
    ax.set_xlim(right=1.05)
    ax.axvline(0, color="black", lw=0.8, zorder=0)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _limit(figure: plt.Figure, points: Iterable[float]) -> None:
    """Horizontal limits by what was measured: with two trainings an interval may be wider than any score."""
    lowest = min((value for value in points if np.isfinite(value)), default=0.0)
    for ax in figure.axes:
        plots.cut(ax, 1.25 * min(lowest, -2), max(5, -0.25 * lowest))
