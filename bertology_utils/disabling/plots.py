"""The figures of §4.6: heads on and off, every head's gain (Fig 8), gains as dots (Fig 9), and more and more heads off.

``runs`` below are tables of results by whose they are; this run's rows
(:func:`bertology_utils.disabling.effects.rows_of`) stand under :data:`THIS_RUN`. Rows of a figure
are in the order of this run's tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .. import plots
from ..attention import Batch, attention_maps
from ..common import Head, head_name, one_based
from ..glue import TASKS
from ..results import Runs
from ..statistics import ONE_SIDED
from ..verdicts import SCORE, THIS_RUN
from .masking import disable_heads

REACH = 3.0  # points; the scale of gains ends here
FURTHEST = -17.0  # points; a layer that costs more is drawn at the border
PAPER = "the paper"
PAPER_BEST = {
    "mrpc": 0.012,
    "stsb": 0.001,
}  # §4.6: the largest and the smallest best gain over all tasks
PAPER_LAYER = {
    ("rte", 0): (0.032, 0.032, 0.032)
}  # §4.6: the gain without a layer, from 0, with no interval
CHANCE = {
    "the best by luck, median to 95 %": plots.COLOURS["grey"],
    "the best head": plots.COLOURS["orange"],
    "chosen on one half, measured on the other": plots.COLOURS["blue"],
}


def map_on_and_off(model, example: Batch, tokens: Sequence[str], head: Head) -> Figure:
    """A figure of a head's map with the tokens on its axes, and the same with the head disabled.

    Args:
        model: classifier in evaluation mode.
        example: one, alone in its batch.
        tokens: its wordpieces.
        head: (layer, head) from 0.
    """
    layer, number = head
    maps = {
        f"head {head_name(*head)}": attention_maps(model, example)[layer][0, number].cpu().numpy()
    }
    with disable_heads(model, [head]):
        maps["disabled"] = attention_maps(model, example)[layer][0, number].cpu().numpy()
    return plots.token_maps(maps, tokens)


def gain_maps(runs: Runs) -> Figure:
    """A figure of the gain of every head, first training of each task: a row for each run, one scale for all (Fig 8).

    Red is a gain, blue a loss, white no change; what is beyond the scale is hatched. ▲ is a gain
    and ▼ a loss that is more than chance. The paper's best heads are lines on the scale.
    """
    what, panels = "gain without a head", {}
    tasks = {entry["task"] for run in runs.values() for entry in run.find(what)}
    for name, run in runs.items():
        for task in (task for task in TASKS if task in tasks):
            there = run.find(what, task=task, training=1)
            panels[name, TASKS[task].title] = (
                100 * run.array(what, task=task, training=1) if there else None
            )
    layers = max(len(one) for one in panels.values() if one is not None)
    label = "gain, points (hatched: beyond; lines: the paper)"
    size = 2.7, 0.2 * layers + 0.75
    figure = plots.heatmap_grid(
        panels, label, (-REACH, REACH), plots.GAIN, panel=size, extend="both"
    )
    figure.axes[-1].hlines(
        [100 * gain for gain in PAPER_BEST.values()], 0, 1, color="black", lw=1.5
    )
    named = {task.title: name for name, task in TASKS.items()}
    for ax, ((name, title), gains) in zip(figure.axes, panels.items(), strict=False):
        if gains is None:
            continue
        for layer, head in np.argwhere(np.abs(gains) > REACH):
            ax.add_patch(
                Rectangle((head, layer), 1, 1, fill=False, hatch="////", edgecolor="white", lw=0)
            )
        for side, marker in (("better", "^"), ("worse", "v")):
            p = runs[name].array(
                "p of the gain without a head", task=named[title], training=1, kind=side
            )
            for layer, head in np.argwhere(p < ONE_SIDED):
                ax.plot(
                    head + 0.5, layer + 0.5, marker, ms=6.5, color="black", mec="white", mew=0.8
                )
    return figure


def best_by_chance(runs: Runs) -> Figure:
    """A figure of the best head's gain, the largest by chance, and the gain on examples without a say in the choice.

    A panel for each run and one for the paper's numbers, which come without a test.
    """
    chance, largest, others = CHANCE
    what = {
        "largest gain without a head by chance": chance,
        "largest gain without a head": largest,
        "gain without the chosen head, on other examples": others,
    }
    found = plots.panels_of(runs, list(what), "run", ("task", "training"), "what", {"what": what})
    for of_run in found.values():
        for row in of_run.values():
            if row:
                median, high = row[chance]["value"]
                row |= {chance: (median, median, high), largest: row[largest]["value"]}  # type: ignore[dict-item]
    best = {f"{TASKS[task].title}, training 1": gain for task, gain in PAPER_BEST.items()}
    title = f"{PAPER}\n(one training, no test)"
    paper = {row: {largest: best[row]} if row in best else {} for row in next(iter(found.values()))}
    return plots.dot_panels({title: paper, **found}, "gain, points", 100, CHANCE)


def layer_gains(runs: Runs) -> Figure:
    """A figure of the gain of every layer, first training of each task, one scale for all (Fig 9).

    A loss beyond the scale is an arrow at its border with the number beside it.
    """
    panels: dict[str, dict[str, dict]] = {}
    for own in runs[THIS_RUN].find("gain without a layer", training=1):
        rows = panels[TASKS[own["task"]].title] = {}
        for name, run in runs.items():
            for entry in run.find("gain without a layer", task=own["task"], training=1):
                for at, gain in enumerate(
                    zip(*(entry[part] for part in ("value", "low", "high")), strict=True)
                ):
                    rows.setdefault(str(one_based(at)), {})[name] = gain
        for (task, layer), gain in PAPER_LAYER.items():
            if task == own["task"]:
                rows[str(one_based(layer))][PAPER] = gain
    inside = {
        title: {
            row: {name: gain for name, gain in dots.items() if 100 * gain[0] >= FURTHEST}
            for row, dots in rows.items()
        }
        for title, rows in panels.items()
    }
    figure = plots.dot_panels(inside, "gain, points", 100)
    for ax, rows, drawn in zip(figure.axes, panels.values(), inside.values(), strict=False):
        _cut(
            ax,
            rows,
            [name for name in plots.SOURCE_COLOURS if any(name in row for row in drawn.values())],
        )
    figure.axes[0].set_ylabel("layer")
    return figure


def _cut(ax, rows: Mapping[str, Mapping[str, tuple]], sources: Sequence[str]) -> None:
    """Let the axis end at :data:`FURTHEST`, and say what is beyond it: arrows, the numbers beside each other.

    Args:
        ax: matplotlib axes.
        rows: by layer and source, what was to be drawn.
        sources: those that were drawn, from the top of a row to its bottom.
    """
    for at, row in enumerate(rows.values()):
        beyond = [
            name for name in plots.SOURCE_COLOURS if name in row and 100 * row[name][0] < FURTHEST
        ]
        for place, name in enumerate(beyond):
            rank = sources.index(name) if name in sources else place
            height = at + 0.22 * (rank - (len(sources) - 1) / 2)  # as plots.dots has them
            colour = plots.SOURCE_COLOURS[name]
            ax.plot(FURTHEST, height, "<", color=colour, ms=5, clip_on=False)
            where, number = FURTHEST + 0.8 + 3.6 * place, f"−{-100 * row[name][0]:.0f}"
            ax.text(where, at, number, fontsize=8.5, color=colour, va="center")
    ax.set_xlim(left=FURTHEST)


def without_several(runs: Runs) -> Figure:
    """A figure of the gain with a twelfth of the heads off, a row for each task, with a line at a loss of a point."""
    what = "gain with a twelfth of the heads off"
    panels = plots.panels_of(runs, what, "what", "task", names={"what": {what: ""}})
    return plots.dot_panels(panels, "gain, points", 100, border=-SCORE)
