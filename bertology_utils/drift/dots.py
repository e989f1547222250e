"""The dot figures of §4.3: the paper, a committed run and this one, or two ways of looking, beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..glue.tasks import Task, plain_metric
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate
from .table1 import COLUMNS, paper_points

THIS_RUN, PAPER = "this run", "the paper"


class Run(Protocol):
    """A run to draw beside: how figures name it, and its ``results.json``, parsed; empty if there is none."""

    title: str
    results: dict


def _number(run: Run, *names: str) -> Any:
    """What its results hold under these names; None if nothing."""
    found: Any = run.results
    for name in names:
        found = found.get(name) if found else None
    return found


def _row(**dots: Any) -> dict[str, Any]:
    return {name: dot for name, dot in dots.items() if dot is not None}


def table1_dots(
    scores: Mapping[Task, Mapping[str, Mapping[str, Bootstrap]]], constant: Mapping[Task, float], real: Run
) -> plt.Figure:
    """Table 1: a panel for each column, a row for each task, with accuracy or Pearson's correlation.

    Args:
        scores: by task, column and metric, from :func:`bertology_utils.drift.table1.score_task`.
        constant: what always the same answer scores in this run, drawn as a grey tick.
        real: the run to draw beside.

    Returns:
        The figure.
    """
    panels = {title: {task.title: _table1_row(task, column, columns, real) for task, columns in scores.items()}
              for column, title in COLUMNS.items()}  # fmt: skip
    figure = figures.dot_panels(panels, "score × 100", 100, columns=len(COLUMNS))
    for at, ax in enumerate(figure.axes):
        at_constant = 100 * np.array(list(constant.values()))
        ax.plot(at_constant, range(len(constant)), "|", color="grey", ms=20, mew=1, zorder=0, label="always the same answer")
        ax.set(xlim=(min(-5, ax.get_xlim()[0]), 103), xticks=range(0, 101, 20))
        if at:
            ax.set_yticklabels([])
    figure.legends[0].remove()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _table1_row(task: Task, column: str, columns: Mapping[str, Mapping[str, Bootstrap]], real: Run) -> dict[str, Any]:
    metric = plain_metric(task)
    points = paper_points(task, column, metric)
    ours, beside = columns.get(column, {}).get(metric), _number(real, "table1", task.name, column, metric)
    return _row(**{PAPER: None if points is None else points / 100, real.title: beside, THIS_RUN: ours})


def leads(ahead: Mapping[Task, Estimate], real: Run) -> plt.Figure:
    """How far the last two layers are ahead, by task; of the paper, which gives no number, whether they are.

    Args:
        ahead: from :func:`bertology_utils.drift.measure.last_layers_lead`, over trainings.
        real: the run to draw beside.

    Returns:
        The figure.
    """
    rows = {
        task.title: _row(**{real.title: _number(real, "leads", task.name), THIS_RUN: ours}) for task, ours in ahead.items()
    }
    figure, ax = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.3))
    figures.dots(ax, rows, "how far ahead the last two layers are, in cosine similarity", border=0.0)
    reach = 2.5 * max(abs(estimate.value) for estimate in ahead.values()) or 0.1
    for at, task in enumerate(ahead):
        side = -1 if task.name == "qqp" else 1
        ax.plot(0.92 * side * reach, at, "D", color=figures.SOURCE_COLOURS[PAPER], mfc="white", ms=5)
    ax.plot([], [], "D", color=figures.SOURCE_COLOURS[PAPER], mfc="white", ms=5, label=f"{PAPER}: left or right of 0")
    figures.cut(ax, -reach, reach)  # with two trainings an interval may be far longer than any difference
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def put_back(changes: Mapping[Task, Sequence[Estimate]], pairs: Sequence[str], real: Run) -> plt.Figure:
    """What putting back two neighbouring layers does to the score, a panel for each task.

    Args:
        changes: by task, for each pair of layers.
        pairs: how the pairs are called.
        real: the run to draw beside.

    Returns:
        The figure.
    """
    panels = {}
    for task, of_task in changes.items():
        beside = _number(real, "put_back", task.name) or []
        same = len(beside) == 2 * len(pairs)  # a model of as many layers: as many pairs as groups from the first layer up
        panels[task.title] = {
            pair: _row(**{real.title: beside[at] if same else None, THIS_RUN: of_task[at]}) for at, pair in enumerate(pairs)
        }
    figure = figures.dot_panels(panels, "change of the score, points", 100, border=0.0)
    _limit(figure, [100 * one.value for of_task in changes.values() for one in of_task])
    for ax in figure.axes[::4]:  # the first of each row
        ax.set_ylabel("layers put back")
    return figure


def last_two(changes: Mapping[Task, tuple[Estimate, Estimate]], gain: Mapping[Task, Estimate]) -> plt.Figure:
    """What the score loses without the fine-tuning of the last two layers, and without that of all others.

    Args:
        changes: by task, the change with the last two put back, and with all others put back.
        gain: of the score by fine-tuning; a grey tick marks where all of it is lost.

    Returns:
        The figure.
    """
    names = {"the last two put back": figures.COLOURS["blue"], "all others put back": figures.COLOURS["red"]}
    rows = {task.title: dict(zip(names, pair, strict=True)) for task, pair in changes.items()}
    figure, ax = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.3))
    figures.dots(ax, rows, "change of the score, points", 100, names, markers={"all others put back": "s"})
    lost = [-100 * gain[task].value for task in changes]
    ax.plot(lost, range(len(lost)), "|", color="grey", ms=20, mew=1.5, zorder=0, label="all that fine-tuning gained")
    ax.axvline(0, color="black", lw=0.8, zorder=0)
    _limit(figure, [*lost, *(100 * one.value for pair in changes.values() for one in pair)])
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _limit(figure: plt.Figure, points: Iterable[float]) -> None:
    """Horizontal limits by what was measured: with two trainings an interval may be wider than any score."""
    lowest = min((value for value in points if np.isfinite(value)), default=0.0)
    for ax in figure.axes:
        figures.cut(ax, 1.25 * min(lowest, -2), max(5, -0.25 * lowest))


def movements(cosines: Mapping[str, Mapping[Task, Bootstrap]], names: Mapping[str, str]) -> plt.Figure:
    """How alike two trainings change the maps, by task.

    Args:
        cosines: by comparison and task.
        names: what two comparisons are called; the second is with another task.

    Returns:
        The figure.
    """
    colours = dict(zip(names.values(), (figures.COLOURS["blue"], figures.COLOURS["grey"]), strict=True))
    tasks = next(iter(cosines.values()))
    rows = {task.title: {title: cosines[name][task] for name, title in names.items()} for task in tasks}
    figure, ax = plt.subplots(figsize=(7, 0.42 * len(rows) + 1.3))
    figures.dots(
        ax,
        rows,
        "cosine of the two changes (0: unrelated, 1: the same)",
        1,
        colours,
        None,
        dict(zip(colours, "o^", strict=True)),
    )
    ax.set_xlim(right=1.05)
    ax.axvline(0, color="black", lw=0.8, zorder=0)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
