"""What disabling does, as dots for several runs on one scale: the best heads, luck, layers (Fig 9), and heads by name.

``models`` below are runs by whose they are, see :func:`bertology_utils.disabling.summary.beside`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from .. import figures
from ..common import Head, axis_numbers, head_name
from ..glue.tasks import TASKS
from .summary import THIS_RUN, Models, firsts, title_of

FURTHEST = -17.0  # points; a layer that costs more is drawn at the border
PAPER = "the paper"
PAPER_BEST = {"mrpc": 0.012, "stsb": 0.001}  # §4.6: the largest and the smallest best gain over all tasks
PAPER_LAYER = {("rte", 0): 0.032}  # §4.6: the gain without a layer, from 0
LUCK = {
    "the best by luck, median to 95 %": figures.COLOURS["grey"],
    "the best head": figures.COLOURS["orange"],
    "chosen on one half, measured on the other": figures.COLOURS["blue"],
}


def best_heads(models: Mapping[str, Models]):
    """The gain of the best head and the mean gain over heads, of every training; the paper's best as a band.

    Returns:
        The figure.
    """
    panels: dict[str, dict[str, dict]] = {"the best head": {}, "mean over all heads": {}}
    for name, run in _own_first(models):
        for model, numbers in run.items():
            for rows, part in zip(panels.values(), ("best", "mean"), strict=True):
                rows.setdefault(title_of(model), {})[name] = numbers["heads"][part]
    for task, gain in PAPER_BEST.items():
        row = f"{TASKS[task].title}, training 1"
        if row in panels["the best head"]:
            panels["the best head"][row][PAPER] = gain
    figure = figures.dot_panels(panels, "gain, points", 100)
    low, high = (100 * side(PAPER_BEST.values()) for side in (min, max))
    figure.axes[0].axvspan(low, high, color="black", alpha=0.12, lw=0, zorder=0)
    _zero(figure)
    return figure


def luck(models: Mapping[str, Models]):
    """The best head's gain, what luck gives the best of so many heads, and the gain on examples without a say in the choice.

    Returns:
        The figure, a panel for each run and one for the paper's numbers, which come without a test.
    """
    chance, best, others = LUCK
    titles = dict.fromkeys(title_of(model) for _, run in _own_first(models) for model in run)
    panels: dict[str, dict[str, dict]] = {name: {title: {} for title in titles} for name in (PAPER, *models)}
    for task, gain in PAPER_BEST.items():
        panels[PAPER].get(f"{TASKS[task].title}, training 1", {})[best] = gain
    for name, run in models.items():
        for model, numbers in run.items():
            heads = numbers["heads"]
            median, high = heads["best by chance"]
            panels[name][title_of(model)] = {
                chance: (median, median, high),
                best: heads["best"]["value"],
                others: tuple(heads["on other examples"]),
            }
    figure = figures.dot_panels(panels, "gain, points", 100, LUCK)
    figure.axes[0].set_title(f"{PAPER}\n(one training, no test)")
    for ax in figure.axes[1:]:
        ax.set_yticklabels([])  # the same rows
    _zero(figure)
    return figure


def layer_gains(models: Mapping[str, Models]):
    """The gain of every layer, first training of each task, one scale for all (Fig 9).

    A loss beyond the scale is an arrow at its border with the number beside it.

    Returns:
        The figure.
    """
    panels: dict[str, dict[str, dict]] = {}
    for task in firsts(models[THIS_RUN]):
        rows = panels[task.title] = {}
        for name, run in models.items():
            if task in firsts(run):
                layers = firsts(run)[task]["layers"]
                for number, gain in zip(
                    axis_numbers(len(layers["values"])), layers.get("gains", layers["values"]), strict=True
                ):
                    rows.setdefault(str(number), {})[name] = gain
        for (name, layer), gain in PAPER_LAYER.items():
            if name == task.name:
                rows[str(axis_numbers(layer + 1)[layer])][PAPER] = gain
    inside = {title: {row: _inside(dots) for row, dots in rows.items()} for title, rows in panels.items()}
    figure = figures.dot_panels(inside, "gain, points", 100)
    for ax, rows, drawn in zip(figure.axes, panels.values(), inside.values(), strict=False):
        _cut(ax, rows, [name for name in figures.SOURCE_COLOURS if any(name in row for row in drawn.values())])
        ax.set_ylabel("layer")
    _zero(figure)
    return figure


def _points(gain: Mapping | float) -> float:
    return 100 * float(gain["value"] if isinstance(gain, Mapping) else gain)


def _inside(dots: Mapping[str, Mapping | float]) -> dict[str, Mapping | float]:
    """Without what is beyond :data:`FURTHEST`."""
    return {name: gain for name, gain in dots.items() if _points(gain) >= FURTHEST}


def _cut(ax, rows: Mapping[str, Mapping], sources: Sequence[str]) -> None:
    """Let the axis end at :data:`FURTHEST`, and say what is beyond it: arrows, the numbers beside each other.

    Args:
        ax: matplotlib axes.
        rows: by layer and source, what was to be drawn.
        sources: those that were drawn, from the top of a row to its bottom.
    """
    for at, row in enumerate(rows.values()):
        beyond = [name for name in figures.SOURCE_COLOURS if name in row and name not in _inside(row)]
        for place, name in enumerate(beyond):
            rank = sources.index(name) if name in sources else place
            height = at + 0.22 * (rank - (len(sources) - 1) / 2)  # as figures.dots has them
            colour = figures.SOURCE_COLOURS[name]
            ax.plot(FURTHEST, height, "<", color=colour, ms=5, clip_on=False)
            where, number = FURTHEST + 0.8 + 3.6 * place, f"−{-_points(row[name]):.0f}"
            ax.text(where, at, number, fontsize=8.5, color=colour, va="center")
    ax.set_xlim(left=FURTHEST)


def head_gains(models: Mapping[str, Models], named: Mapping[str, Mapping], heads: Sequence[Head], border: float):
    """The gain of some heads, a panel each, of every training.

    Args:
        models: of every run; one of another number of layers or heads is left out, since its heads are others.
        named: by run and model, the estimates of these heads by their names, where there are some; without one a
            gain is drawn without its interval.
        heads: (layer, head) from 0.
        border: a gain from which the claim would hold, drawn as an orange line.

    Returns:
        The figure.
    """
    panels: dict[str, dict[str, dict]] = {f"head {head_name(*head)}": {} for head in heads}
    shapes = {name: np.shape(next(iter(run.values()))["heads"]["values"]) for name, run in models.items()}
    for name, run in _own_first(models):
        for model, numbers in run.items() if shapes[name] == shapes[THIS_RUN] else ():
            estimates = named.get(name, {}).get(model, {})
            for rows, head in zip(panels.values(), heads, strict=True):
                value = float(np.asarray(numbers["heads"]["values"])[head])
                rows.setdefault(title_of(model), {})[name] = estimates.get(head_name(*head), value)
    figure = figures.dot_panels(panels, "gain, points", 100, border=border)
    _zero(figure)
    return figure


def _own_first(models: Mapping[str, Models]) -> list[tuple[str, Models]]:
    """Runs with their names; rows of a figure are in the order of this run's tasks."""
    return sorted(models.items(), key=lambda item: item[0] != THIS_RUN)


def _zero(figure) -> None:
    """The whole model, at 0, and a scale in whole points."""
    for ax in figure.axes:
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.axvline(0, color=figures.COLOURS["grey"], lw=0.8, zorder=0)
