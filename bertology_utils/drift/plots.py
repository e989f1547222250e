"""The figures of §4.3: what the score loses with layers put back, how alike maps are by head and by layer, and Table 1.

``runs`` below are tables of results by whose they are; a figure shows the run on real data beside this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import plots
from ..common import axis_numbers
from ..glue import TASKS, Task, plain_metric
from ..judge import THIS_RUN
from ..results import Entry, Results
from ..statistics import Bootstrap
from .measure import trainings_in
from .scores import COLUMNS, paper_points

Runs = Mapping[str, Results]
PAPER = "the paper"
PUT_BACK = "change of the score with layers put back"
SIMILARITY = "similarity of maps"
ENDS = {"the last two put back": plots.COLOURS["blue"], "all others put back": plots.COLOURS["red"]}


def before_and_after(before: np.ndarray, after: np.ndarray, tokens: Sequence[str], title: str) -> Figure:
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


def restored(runs: Runs) -> Figure:
    """What putting two neighbouring layers back does to the score: a panel for each task, a row for each pair."""
    panels: dict[str, dict[str, dict[str, Entry]]] = {
        TASKS[task].title: {pair: {} for pair in _pairs(runs[THIS_RUN])} for task in _tasks(runs, PUT_BACK)
    }
    for name, run in runs.items():
        for entry in run.find(PUT_BACK):
            if entry["kind"] in panels[TASKS[entry["task"]].title]:
                panels[TASKS[entry["task"]].title][entry["kind"]][name] = entry
    figure = plots.dot_panels(panels, "change of the score, points", 100, border=0.0)
    _limit(figure, [100 * one["value"] for rows in panels.values() for of in rows.values() for one in of.values()])
    for ax in figure.axes[::4]:  # the first of each row
        ax.set_ylabel("layers put back")
    return figure


def change_and_cost(runs: Runs) -> Figure:
    """By layer, how much fine-tuning changed the maps, and what the score loses without it; a row of two panels for each run.

    A thin line is a task, the mean over its trainings; the thick one is the mean over tasks.
    """
    figure, axes = plt.subplots(len(runs), 2, figsize=(8.4, 2.5 * len(runs) + 0.3), squeeze=False, sharex=True, sharey="col")
    for row, (name, run) in zip(axes, runs.items(), strict=True):
        changed = {task: 1 - np.mean(_by_layer(run, task), axis=0) for task in _tasks({name: run}, SIMILARITY)}
        cost = {
            task: np.array([-100 * run.find(PUT_BACK, task=task, kind=pair)[0]["value"] for pair in _pairs(run)])
            for task in _tasks({name: run}, PUT_BACK)
        }
        layers = np.array(axis_numbers(len(next(iter(changed.values())))))
        _lines(row[0], layers, changed, "blue")
        _lines(row[1], layers[:-1] + 0.5, cost, "red")
        row[0].set_ylabel(f"{name}\n\nchange of maps")
        row[1].set_ylabel("points lost")
        for ax in row:
            ax.set_xticks(layers)
    axes[0, 0].set_title("How much the maps change")
    axes[0, 1].set_title("What undoing two layers costs")
    for ax in axes[-1]:
        ax.set_xlabel("layer")
    axes[0, 0].legend(loc="upper left")
    return figure


def _lines(ax, at: np.ndarray, by_task: Mapping[str, np.ndarray], colour: str) -> None:
    for number, values in enumerate(by_task.values()):
        ax.plot(at, values, color=plots.COLOURS["grey"], lw=0.8, label="one task" if not number else None)
    mean = np.mean(list(by_task.values()), axis=0)
    ax.plot(at, mean, "o-", color=plots.COLOURS[colour], lw=2.5, ms=4, label="mean of the tasks")
    ax.axhline(0, color="black", lw=0.6, zorder=0)


def last_two(runs: Runs) -> Figure:
    """What the score loses with the last two layers put back, and with all others, a panel for each run.

    A grey tick marks where all that fine-tuning gained is lost.
    """
    kinds = _pairs(runs[THIS_RUN])[-1], f"1 to {len(_pairs(runs[THIS_RUN])) - 1}"
    tasks = [TASKS[task] for task in _tasks(runs, PUT_BACK)]
    figure, axes = plt.subplots(1, len(runs), figsize=(4.6 * len(runs), 0.4 * len(tasks) + 1.5), squeeze=False, sharey=True)
    points: list[float] = []
    for ax, (name, run) in zip(axes.flat, runs.items(), strict=True):
        found = [run.by("task", PUT_BACK, kind=kind) for kind in kinds]
        rows = {
            task.title: {source: of[task.name] for source, of in zip(ENDS, found, strict=True) if task.name in of}
            for task in tasks
        }
        plots.dots(ax, rows, "change of the score, points", 100, ENDS, markers={"all others put back": "s"})
        gains = run.by("task", "gain by fine-tuning")
        lost = {at: -100 * gains[task.name]["value"] for at, task in enumerate(tasks) if task.name in gains}
        ax.plot(list(lost.values()), list(lost), "|", color="black", ms=16, mew=1.5, label="all that fine-tuning gained")
        ax.axvline(0, color="black", lw=0.8, zorder=0)
        ax.set_title(name)
        points += [*lost.values(), *(100 * one["value"] for row in rows.values() for one in row.values())]
    _limit(figure, points)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def heads_changed(runs: Runs) -> Figure:
    """Similarity of every head's maps before and after the first training: a row for each run, one scale (Fig 5)."""
    tasks, arrays = _tasks(runs, SIMILARITY), {}
    for name, run in runs.items():
        for task in tasks:
            if run.find(SIMILARITY, task=task, kind="fine-tuning"):
                arrays[name, task] = run.array(SIMILARITY, task=task, kind="fine-tuning")
    layers = max(map(len, arrays.values()))
    size = 1.75 * len(tasks) + 1.6, (0.19 * layers + 0.75) * len(runs) + 0.2
    figure, axes = plt.subplots(len(runs), len(tasks), figsize=size, squeeze=False)
    limits = np.floor(10 * min(map(np.min, arrays.values()))) / 10, 1.0
    for row, name in zip(axes, runs, strict=True):
        for ax, task in zip(row, tasks, strict=True):
            if (name, task) in arrays:
                plots.heatmap(ax, arrays[name, task], limits=limits, cmap="mako", colour_bar=False)
                ax.set_xticks(ax.get_xticks()[::3], [label.get_text() for label in ax.get_xticklabels()[::3]])
            else:
                ax.set_axis_off()
                ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=plots.COLOURS["grey"])
            ax.set(ylabel="", xlabel="head" if name == THIS_RUN else "")
        row[0].set_ylabel(f"{name}\n\nlayer")
    for ax, task in zip(axes[0], tasks, strict=True):
        ax.set_title(TASKS[task].title)
    drawn = next(ax for ax in axes.flat if ax.collections).collections[0]
    figure.colorbar(drawn, ax=axes, label="cosine similarity (dark: changed)", aspect=30, pad=0.01).outline.set_visible(
        False
    )
    return figure


def change_by_layer(runs: Runs) -> Figure:
    """Mean similarity by layer of every training and of a random start, a panel for each task that has one.

    The scale begins at the lowest value; a line near 1 means that those maps hardly changed.
    """
    there = [
        (name, run, task) for name, run in runs.items() for task in _tasks({name: run}, SIMILARITY, kind="random start")
    ]
    figure, axes = plots.panel_grid(max(1, len(there)), 2.3, 2.5, columns=3, sharey=True)
    for ax, (name, run, task) in zip(axes, there, strict=False):
        for number, values in enumerate(_by_layer(run, task)):
            label = "trainings of the pre-trained model" if not number else None
            ax.plot(axis_numbers(len(values)), values, ".-", color=plots.COLOURS["blue"], lw=1, label=label)
        (start,) = _by_layer(run, task, ["random start"])
        numbers = axis_numbers(len(start))
        ax.plot(numbers, start, "s-", ms=4, color=plots.COLOURS["orange"], label="random start")
        ax.set(title=f"{TASKS[task].title}\n{name}", xticks=numbers[:: 1 + len(numbers) // 8], xlabel="layer")
        ax.title.set_fontsize(8.5)
    for ax in axes[::3]:
        ax.set_ylabel("cosine similarity")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=2)
    return figure


def table1_dots(runs: Runs) -> Figure:
    """Table 1: a panel for each column, a row for each task, with accuracy or Pearson's correlation.

    A grey tick is what always the same answer scores: of the run on real data where that is known, else of this run.
    """
    tasks = [TASKS[task] for task in _tasks(runs, "score")]

    def row(task: Task, column: str) -> dict:
        metric = plain_metric(task)
        found: dict[str, float | Entry] = {}
        points = paper_points(task, column, metric)
        if points is not None:
            found[PAPER] = points / 100
        for name, run in runs.items():
            for entry in run.find("score", task=task, kind=metric, state=COLUMNS[column]):
                found[name] = entry
        return found

    panels = {name: {task.title: row(task, column) for task in tasks} for column, name in COLUMNS.items()}
    figure = plots.dot_panels(panels, "score × 100", 100, columns=len(COLUMNS))
    known: dict[str, float] = {}
    for run in reversed(list(runs.values())):  # the real one last
        known |= {one["task"]: 100 * one["value"] for one in run.find("score of always the same answer")}
    constant = {at: known[task.name] for at, task in enumerate(tasks) if task.name in known}
    for at, ax in enumerate(figure.axes):
        ticks = list(constant.values()), list(constant)
        ax.plot(*ticks, "|", color="grey", ms=20, mew=1, zorder=0, label="always the same answer")
        ax.set(xlim=(min(-5, ax.get_xlim()[0]), 103), xticks=range(0, 101, 20))
        if at:
            ax.set_yticklabels([])
    figure.legends[0].remove()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def movements(cosines: Mapping[str, Mapping[Task, Bootstrap]]) -> Figure:
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


def _tasks(runs: Runs, what: str, **labels: str) -> list[str]:
    """Names of the tasks of which some run has such numbers, in the paper's order."""
    there = {entry["task"] for run in runs.values() for entry in run.find(what, **labels)}
    return [name for name in TASKS if name in there]


def _pairs(run: Results) -> list[str]:
    """What the pairs of neighbouring layers are called, in order."""
    return list(dict.fromkeys(entry["kind"] for entry in run.find(PUT_BACK) if "," in entry["kind"]))


def _by_layer(run: Results, task: str, kinds: Sequence[str] = ()) -> list[np.ndarray]:
    """Mean similarity by layer, of every training or of these comparisons; each of shape (layers,)."""
    names = kinds or trainings_in(entry["kind"] for entry in run.find(SIMILARITY, task=task))
    return [run.array(SIMILARITY, task=task, kind=name).mean(axis=1) for name in names]


def _limit(figure: Figure, points: Iterable[float]) -> None:
    """Horizontal limits by what was measured: with two trainings an interval may be wider than any score."""
    lowest = min((value for value in points if np.isfinite(value)), default=0.0)
    for ax in figure.axes:
        plots.cut(ax, 1.25 * min(lowest, -2), max(5, -0.25 * lowest))
