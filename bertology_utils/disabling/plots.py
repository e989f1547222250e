"""The figures of §4.6: heads on and off, every head's gain (Fig 8), gains as dots (Fig 9), and more and more heads off.

``runs`` below are tables of results by whose they are; this run's rows (:func:`bertology_utils.disabling.effects.rows_of`)
stand under :data:`THIS_RUN`. Rows of a figure are in the order of this run's tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from .. import plots
from ..attention import Batch, attention_maps
from ..claims import SCORE
from ..common import Head, head_name, one_based
from ..glue import TASKS, Task
from ..judge import THIS_RUN
from ..results import Entry, Results
from ..statistics import ONE_SIDED
from .switch import disable_heads

Runs = Mapping[str, Results]
REACH = 3.0  # points; the scale of gains ends here
FURTHEST = -17.0  # points; a layer that costs more is drawn at the border
PAPER = "the paper"
PAPER_BEST = {"mrpc": 0.012, "stsb": 0.001}  # §4.6: the largest and the smallest best gain over all tasks
PAPER_LAYER = {("rte", 0): (0.032, 0.032, 0.032)}  # §4.6: the gain without a layer, from 0, with no interval
CHANCE = {
    "the best by luck, median to 95 %": plots.COLOURS["grey"],
    "the best head": plots.COLOURS["orange"],
    "chosen on one half, measured on the other": plots.COLOURS["blue"],
}
_WHITE_AT_ZERO = plots.GAIN.resampled(255)  # an odd number of colours: the middle one is pure white


def _on_and_off(model, example: Batch, head: Head) -> list[np.ndarray]:
    """A head's map, shape (tokens, tokens), and the same disabled."""
    layer, number = head
    as_it_is = attention_maps(model, example)[layer][0, number]
    with disable_heads(model, [head]):
        disabled = attention_maps(model, example)[layer][0, number]
    return [as_it_is.cpu().numpy(), disabled.cpu().numpy()]


def map_on_and_off(model, example: Batch, tokens: Sequence[str], head: Head) -> Figure:
    """A figure of a head's map with the tokens on its axes, and the same with the head disabled.

    Args:
        model: classifier in evaluation mode.
        example: one, alone in its batch.
        tokens: its wordpieces.
        head: (layer, head) from 0.
    """
    side = 1.3 + 0.16 * len(tokens)  # inches
    figure, axes = plt.subplots(1, 2, figsize=(2 * side + 0.8, side), sharey=True)
    titles = (f"head {head_name(*head)}", "disabled")
    for ax, weights, title in zip(axes, _on_and_off(model, example, head), titles, strict=True):
        image = plots.attention_map(ax, weights, tokens, title)
    axes[1].set_ylabel("")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.7)
    return figure


def gain_maps(runs: Runs) -> Figure:
    """A figure of the gain of every head, first training of each task: a row for each run, one scale for all (Fig 8).

    Red is a gain, blue a loss, white no change; what is beyond the scale is hatched. ▲ is a gain and ▼ a loss that is
    more than chance. The paper's best heads are marked on the scale.
    """
    tasks = list(dict.fromkeys(entry["task"] for _, run in _own_first(runs) for entry in run.find("gain without a head")))
    layers = len(runs[THIS_RUN].find("gain without a head")[0]["value"])
    size = 2.7 * len(tasks) + 1.6, (0.2 * layers + 0.75) * len(runs) + 0.3
    figure, axes = plt.subplots(len(runs), len(tasks), figsize=size, squeeze=False)
    for row, (name, run) in zip(axes, runs.items(), strict=True):
        for ax, task in zip(row, tasks, strict=True):
            if run.find("gain without a head", task=task, training=1):
                _gain_map(ax, run, task)
            else:
                ax.set_axis_off()
                ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=plots.COLOURS["grey"])
            ax.set(ylabel="", xlabel="")
        row[0].set_ylabel(f"{name}\n\nlayer")
    for ax, task in zip(axes[0], tasks, strict=True):
        ax.set_title(TASKS[task].title)
    for ax in axes[-1]:
        ax.set_xlabel("head")
    _scale(figure, axes)
    return figure


def _gain_map(ax, run: Results, task: str) -> None:
    gains = 100 * run.array("gain without a head", task=task, training=1)
    plots.heatmap(ax, gains, limits=(-REACH, REACH), cmap=_WHITE_AT_ZERO, colour_bar=False)
    ax.collections[0].set_edgecolor("#d5d8dc")  # white squares end somewhere
    for layer, head in np.argwhere(np.abs(gains) > REACH):
        ax.add_patch(Rectangle((head, layer), 1, 1, fill=False, hatch="////", edgecolor="white", lw=0))
    for side, marker in (("better", "^"), ("worse", "v")):
        p = run.array("p of the gain without a head", task=task, training=1, kind=side)
        for layer, head in np.argwhere(p < ONE_SIDED):
            ax.plot(head + 0.5, layer + 0.5, marker, ms=6.5, color="black", mec="white", mew=0.8)


def _scale(figure: Figure, axes: np.ndarray) -> None:
    """The one scale of gains, its ends and the paper's range marked."""
    drawn = next(ax for ax in axes.flat if ax.collections)
    bar = figure.colorbar(drawn.collections[0], ax=axes, aspect=12 * len(axes), pad=0.07, label="gain, points")
    ends = [f"−{REACH:.0f} or less\n(hatched)", "−1", "0", "+1", f"+{REACH:.0f} or more\n(hatched)"]
    bar.set_ticks([-REACH, -1, 0, 1, REACH], labels=ends, fontsize=7)
    low, high = (100 * side(PAPER_BEST.values()) for side in (min, max))
    bar.ax.plot([-0.35, -0.35], [low, high], color="black", lw=3, clip_on=False, solid_capstyle="butt")
    bar.ax.annotate(
        "the paper's\nbest heads", (-0.45, (low + high) / 2), ha="right", va="center", fontsize=7, annotation_clip=False
    )


def best_heads(runs: Runs) -> Figure:
    """A figure of the best head's gain and the mean gain over heads, of every training; the paper's best as a band."""
    panels: dict[str, dict[str, dict]] = {"the best head": {}, "mean over all heads": {}}
    for name, run in _own_first(runs):
        for rows, what in zip(panels.values(), ("largest gain without a head", "mean gain without a head"), strict=True):
            for entry in run.find(what):
                rows.setdefault(_title(entry), {})[name] = entry
    for title, gain in _paper_best().items():
        if title in panels["the best head"]:
            panels["the best head"][title][PAPER] = gain
    figure = plots.dot_panels(panels, "gain, points", 100)
    low, high = (100 * side(PAPER_BEST.values()) for side in (min, max))
    figure.axes[0].axvspan(low, high, color="black", alpha=0.12, lw=0, zorder=0)
    return _from_zero(figure)


def best_by_chance(runs: Runs) -> Figure:
    """A figure of the best head's gain, the largest by chance, and the gain on examples without a say in the choice.

    A panel for each run and one for the paper's numbers, which come without a test.
    """
    chance, largest, others = CHANCE
    found = [entry for _, run in _own_first(runs) for entry in run.find("largest gain without a head")]
    tasks = list(dict.fromkeys(entry["task"] for entry in found))
    titles = list(map(_title, sorted(found, key=lambda entry: (tasks.index(entry["task"]), entry["training"]))))
    panels: dict[str, dict[str, dict]] = {name: {title: {} for title in titles} for name in (PAPER, *runs)}
    for title, gain in _paper_best().items():
        panels[PAPER].get(title, {})[largest] = gain
    for name, run in runs.items():
        for entry in run.find("largest gain without a head"):
            model = {"task": entry["task"], "training": entry["training"]}
            median, high = run.array("largest gain without a head by chance", **model)
            (elsewhere,) = run.find("gain without the chosen head, on other examples", **model)
            panels[name][_title(entry)] = {chance: (median, median, high), largest: entry["value"], others: elsewhere}
    figure = plots.dot_panels(panels, "gain, points", 100, CHANCE)
    figure.axes[0].set_title(f"{PAPER}\n(one training, no test)")
    for ax in figure.axes[1:]:
        ax.set_yticklabels([])  # the same rows
    return _from_zero(figure)


def layer_gains(runs: Runs) -> Figure:
    """A figure of the gain of every layer, first training of each task, one scale for all (Fig 9).

    A loss beyond the scale is an arrow at its border with the number beside it.
    """
    panels: dict[str, dict[str, dict]] = {}
    for own in runs[THIS_RUN].find("gain without a layer", training=1):
        rows = panels[TASKS[own["task"]].title] = {}
        for name, run in runs.items():
            for entry in run.find("gain without a layer", task=own["task"], training=1):
                for at, gain in enumerate(zip(*(entry[part] for part in ("value", "low", "high")), strict=True)):
                    rows.setdefault(str(one_based(at)), {})[name] = gain
        for (task, layer), gain in PAPER_LAYER.items():
            if task == own["task"]:
                rows[str(one_based(layer))][PAPER] = gain
    inside = {
        title: {row: {name: gain for name, gain in dots.items() if 100 * gain[0] >= FURTHEST} for row, dots in rows.items()}
        for title, rows in panels.items()
    }
    figure = plots.dot_panels(inside, "gain, points", 100)
    for ax, rows, drawn in zip(figure.axes, panels.values(), inside.values(), strict=False):
        _cut(ax, rows, [name for name in plots.SOURCE_COLOURS if any(name in row for row in drawn.values())])
        ax.set_ylabel("layer")
    return _from_zero(figure)


def _cut(ax, rows: Mapping[str, Mapping[str, tuple]], sources: Sequence[str]) -> None:
    """Let the axis end at :data:`FURTHEST`, and say what is beyond it: arrows, the numbers beside each other.

    Args:
        ax: matplotlib axes.
        rows: by layer and source, what was to be drawn.
        sources: those that were drawn, from the top of a row to its bottom.
    """
    for at, row in enumerate(rows.values()):
        beyond = [name for name in plots.SOURCE_COLOURS if name in row and 100 * row[name][0] < FURTHEST]
        for place, name in enumerate(beyond):
            rank = sources.index(name) if name in sources else place
            height = at + 0.22 * (rank - (len(sources) - 1) / 2)  # as plots.dots has them
            colour = plots.SOURCE_COLOURS[name]
            ax.plot(FURTHEST, height, "<", color=colour, ms=5, clip_on=False)
            where, number = FURTHEST + 0.8 + 3.6 * place, f"−{-100 * row[name][0]:.0f}"
            ax.text(where, at, number, fontsize=8.5, color=colour, va="center")
    ax.set_xlim(left=FURTHEST)


def head_gains(runs: Runs, heads: Sequence[Head]) -> Figure:
    """A figure of the gain of the frame heads, a panel each, of every training, with a line at a loss of a point.

    Args:
        runs: one with another number of layers or heads is left out, since its heads are others.
        heads: (layer, head) from 0.
    """
    panels: dict[str, dict[str, dict]] = {f"head {head_name(*head)}": {} for head in heads}
    shapes = {name: np.shape(run.find("gain without a head")[0]["value"]) for name, run in runs.items()}
    for name, run in _own_first(runs):
        for rows, head in zip(panels.values(), heads, strict=True):
            for entry in run.find("gain without a frame head", kind=head_name(*head)):
                if shapes[name] == shapes[THIS_RUN]:
                    rows.setdefault(_title(entry), {})[name] = entry
    return _from_zero(plots.dot_panels(panels, "gain, points", 100, border=-SCORE))


def without_several(runs: Runs) -> Figure:
    """A figure of the gain with a twelfth of the heads off, a row for each task, with a line at a loss of a point."""
    rows: dict[str, dict[str, Entry]] = {}
    for name, run in _own_first(runs):
        for entry in run.find("gain with a twelfth of the heads off"):
            rows.setdefault(TASKS[entry["task"]].title, {})[name] = entry
    return _from_zero(plots.dot_panels({"": rows}, "gain, points", 100, border=-SCORE))


def curves_of_scores(
    curves: Mapping[Task, Mapping[int, float]],
    spared: Mapping[Task, int],
    examples: Mapping[Task, int],
    at_random: Mapping[Task, Sequence[Mapping[int, float]]] | None = None,
) -> Figure:
    """A figure of scores with more and more heads disabled, and the line a point below the whole model.

    Args:
        curves: by task, number of disabled heads → score, from 0 to 1; the last number is that of all heads.
        spared: by task, how many heads can go, which an orange line marks.
        examples: by task, how many each score is of.
        at_random: by task, for some of them, the same in random orders.
    """
    figure, axes = plots.panel_grid(len(curves), 3.2, 2.8)
    grey, blue, orange = (plots.COLOURS[name] for name in ("grey", "blue", "orange"))
    handles: dict[str, Artist] = {}
    for ax, (task, curve) in zip(axes, curves.items(), strict=True):
        for drawn in (at_random or {}).get(task, ()):
            ax.plot(list(drawn), [100 * score for score in drawn.values()], lw=0.8, color=grey, label="a random order")
        ax.plot(list(curve), [100 * score for score in curve.values()], "o-", ms=3, color=blue, label="ordered by gain")
        ax.axhline(100 * (curve[0] - 0.01), color=grey, ls=":", label="a point below the whole model")
        ax.axvline(spared[task], color=orange, lw=2, label="so many can go")
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        title = f"{task.title}: {spared[task]} of {max(curve)} can go, n={examples[task]}"
        ax.set(xlabel="heads disabled", ylabel="score, points")
        ax.set_title(title, fontsize=9)
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=len(handles))
    return figure


def _own_first(runs: Runs) -> list[tuple[str, Results]]:
    return sorted(runs.items(), key=lambda item: item[0] != THIS_RUN)


def _title(entry: Entry) -> str:
    """ "MRPC, training 1"."""
    return f"{TASKS[entry['task']].title}, training {entry['training']}"


def _paper_best() -> dict[str, float]:
    """The paper's best gains by the title of a row."""
    return {_title({"task": task, "training": 1}): gain for task, gain in PAPER_BEST.items()}


def _from_zero(figure: Figure) -> Figure:
    """The figure with the whole model marked at 0, and a scale in whole points."""
    for ax in figure.axes:
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        ax.axvline(0, color=plots.COLOURS["grey"], lw=0.8, zorder=0)
    return figure
