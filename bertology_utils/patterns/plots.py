"""The figures of notebook 1: maps as pictures, bars of the patterns' shares, and rows of several sources beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .. import plots
from ..common import axis_numbers
from ..glue import TASKS
from ..plots.old import Dot
from ..results import Entry, Results
from ..verdicts import CLAIMS
from .labels import PATTERNS, LabelledMap
from .validation import LABELLINGS, NETWORK, REGRESSION

THIS_RUN, PAPER, REAL = "this run", "the paper", "MiniLM, real GLUE"
BY_REGRESSION = "the same, by logistic regression"
NOISE = "not fine-tuned, other examples"
# Who names maps, how maps are counted, and what changes them.
COLOURS = {
    PAPER: plots.SOURCE_COLOURS[PAPER],
    LABELLINGS: plots.COLOURS["green"],
    NETWORK: plots.COLOURS["blue"],
    REGRESSION: plots.COLOURS["orange"],
    REAL: plots.SOURCE_COLOURS[REAL],
    "MiniLM, real text": plots.SOURCE_COLOURS["MiniLM, real text"],
    BY_REGRESSION: plots.COLOURS["orange"],
    THIS_RUN: plots.SOURCE_COLOURS[THIS_RUN],
    NOISE: plots.COLOURS["grey"],
}
PATTERN_COLOURS = {pattern: plots.PATTERN_COLOURS(index) for index, pattern in enumerate(PATTERNS)}
_UNKNOWN = "#d9dbde"
# The lowest and the highest share of heterogeneous maps (§4.1).
HETEROGENEOUS = {"mrpc": CLAIMS["heterogeneous"].least, "qqp": CLAIMS["heterogeneous"].most}


def in_rows(rows: Mapping[str, Sequence[LabelledMap]]) -> Figure:
    """Labelled maps in rows, each row under its name, each map under its task and its length in wordpieces.

    Args:
        rows: by name, as many maps in each.
    """
    shown = [one for row in rows.values() for one in row]
    titles = [f"{TASKS[one.task].title}, {len(one.weights)}" for one in shown]
    figure, axes = plots.map_grid(shown, titles, columns=len(shown) // len(rows))
    for ax, name in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(name.replace("+", "\n+ "), fontsize=8)
    return figure


def in_grid(maps: Sequence[LabelledMap], columns: int) -> Figure:
    """Labelled maps, each under its settled label, so many in a row."""
    return plots.map_grid(maps, [one.pattern for one in maps], columns)[0]


def every_head(maps: np.ndarray, patterns: np.ndarray) -> Figure:
    """All heads' maps of one input, layers from top to bottom, each in a frame of its pattern's colour.

    Args:
        maps: shape (layers, heads, tokens, tokens).
        patterns: indices into PATTERNS, shape (layers, heads).
    """
    layers, heads = patterns.shape
    figure, axes = plt.subplots(
        layers, heads, figsize=(0.82 * heads + 0.4, 0.82 * layers + 0.8), squeeze=False
    )
    for place in np.ndindex(layers, heads):
        plots.map_picture(axes[place], maps[place])
        axes[place].set(xticks=[], yticks=[])
        axes[place].spines[:].set(color=plots.PATTERN_COLOURS(int(patterns[place])), linewidth=2.5)
    for ax, number in zip(axes[:, 0], axis_numbers(layers), strict=True):
        ax.set_ylabel(f"layer {number}", fontsize=8)
    for ax, number in zip(axes[0], axis_numbers(heads), strict=True):
        ax.set_title(f"head {number}", fontsize=7, fontweight="normal", pad=3)
    frames = [
        Patch(facecolor="white", edgecolor=colour, lw=2.5) for colour in PATTERN_COLOURS.values()
    ]
    figure.legend(frames, PATTERNS, loc="outside lower center", ncol=len(PATTERNS), fontsize=8)
    return figure


def shares(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Bars of the patterns' shares, tasks from top to bottom, the same in every panel (Fig 2).

    Args:
        panels: by title, by task's title the share of each pattern, from 0 to 1; all NaN but the
            last where only the heterogeneous share is known. A task that a panel lacks stays empty.
    """
    tasks = list(
        dict.fromkeys(
            task for panel in sorted(panels.values(), key=len, reverse=True) for task in panel
        )
    )
    width = 3.6 * len(panels) + 0.6
    figure, axes = plt.subplots(
        1, len(panels), figsize=(width, 0.34 * len(tasks) + 1.5), sharey=True, squeeze=False
    )
    colours: dict[str, Any] = dict(PATTERN_COLOURS)
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=True):
        for row, task in enumerate(tasks):
            parts = dict(zip(PATTERNS, panel.get(task, ()), strict=False))
            if not parts:
                ax.text(50, row, "–", ha="center", va="center", color=plots.COLOURS["grey"])
            elif np.isnan(parts["vertical"]):
                parts = {
                    "not given singly": 1 - parts["heterogeneous"],
                    "heterogeneous": parts["heterogeneous"],
                }
                colours |= {"not given singly": _UNKNOWN}
            left = 100 * (np.cumsum(list(parts.values())) - list(parts.values()))
            for start, (name, share) in zip(left, parts.items(), strict=True):
                ax.barh(
                    row,
                    100 * share,
                    left=start,
                    height=0.72,
                    color=colours[name],
                    edgecolor="white",
                    lw=0.5,
                )
        ax.set(
            title=title, xlabel="share of maps (%)", xlim=(0, 100), ylim=(len(tasks) - 0.4, -0.6)
        )
    axes[0, 0].set_yticks(range(len(tasks)), tasks)
    patches = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(patches, list(colours), loc="outside lower center", ncol=len(colours), fontsize=8)
    return figure


def shares_of_runs(runs: Mapping[str, Results]) -> Figure:
    """:func:`shares` after fine-tuning, corrected: what the paper gives in numbers, and every run (Fig 2).

    Args:
        runs: by title.
    """
    unknown = [float("nan")] * (len(PATTERNS) - 1)
    panels = {
        f"{PAPER} (bert-base)": {
            TASKS[task].title: [*unknown, share] for task, share in HETEROGENEOUS.items()
        }
    }
    for title, run in runs.items():
        found = panels.setdefault(title, {})
        for one in run.find("share of maps, corrected", state="fine-tuned"):
            found.setdefault(TASKS[one["task"]].title, []).append(one["value"])
    return shares(panels)


def heterogeneous(rows: Mapping[str, Mapping[str, Dot]]) -> Figure:
    """The heterogeneous share by every count that there is; grey is the paper's range.

    Args:
        rows: see :func:`bertology_utils.plots.dots`; by source as in :data:`COLOURS`.
    """
    figure = plots.dot_panels(
        {"": rows}, "heterogeneous maps (%)", 100, COLOURS, limits=(-2, 102), within=(0, 1)
    )
    low, high = (100 * share for share in HETEROGENEOUS.values())
    figure.axes[0].axvspan(low, high, color=plots.COLOURS["grey"], alpha=0.18, lw=0, zorder=0)
    return figure


def heterogeneous_of_runs(runs: Mapping[str, Results]) -> Figure:
    """:func:`heterogeneous` by task, among the labels, and with random weights.

    Args:
        runs: by title, this one among them.
    """
    what, other = (
        f"share of maps: heterogeneous, {how}" for how in ("corrected", f"by {REGRESSION}")
    )
    sources: dict[str, Mapping[str, Dot]] = {PAPER: HETEROGENEOUS}
    for title, run in runs.items():
        sources[title] = of_learned(run, what)
        sources.setdefault(
            BY_REGRESSION, of_learned(run, other)
        )  # the first run's, which is of real data
    tasks = [
        name
        for name in TASKS
        if any(name in found for source, found in sources.items() if source != PAPER)
    ]
    rows: dict[str, dict[str, Dot]] = {
        TASKS[name].title: {
            source: found[name] for source, found in sources.items() if name in found
        }
        for name in tasks
    }
    for title, name in {
        "labels of maps": "share of labels",
        "labels of maps by norm": "share of labels by norm",
    }.items():
        if found := runs[THIS_RUN].find(name, kind="heterogeneous"):
            rows[title] = {REAL: found[0]}
    rows["random weights"] = {
        title: float(run.array("share of maps, random weights")[-1]) for title, run in runs.items()
    }
    return heterogeneous(rows)


def usual_patterns(runs: Mapping[str, Results]) -> Figure:
    """The pattern that every head shows most often, on the tasks that all runs have.

    Args:
        runs: by title, each a row of panels.
    """
    found = {
        title: run.by("task", "share of maps by head", state="fine-tuned")
        for title, run in runs.items()
    }
    if len(found) > 1 and not set.intersection(*map(set, found.values())):
        found = {THIS_RUN: found[THIS_RUN]}  # of other tasks than the run on real data
    tasks = [task for task in TASKS if all(task in of_run for of_run in found.values())]
    panels = {
        (title, TASKS[task].title): np.array(of_run[task]["value"]).argmax(axis=-1)
        for title, of_run in found.items()
        for task in tasks
    }
    figure = plots.heatmap_grid(panels, "", (-0.5, len(PATTERNS) - 0.5), plots.PATTERN_COLOURS)
    figure.axes[-1].set_yticks(range(len(PATTERNS)), PATTERNS, fontsize=8)
    return figure


def of_learned(run: Results, what: str) -> dict[str, Entry]:
    """A run's numbers by name of the tasks that it learned."""
    learned = run.content.get("facts", {}).get("learned", {})
    return {
        task: one
        for task, one in run.by("task", what).items()
        if learned.get(task, True) and one.get("low") is not None
    }
