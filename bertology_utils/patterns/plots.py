"""The figures of notebook 1: maps as pictures, bars of the patterns' shares, and rows of several sources beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .. import plots
from ..claims import HETEROGENEOUS
from ..common import axis_numbers
from ..glue import TASKS, Task
from ..plots.dots import Dot
from ..results import Entry, Results
from .labels import PATTERNS, LabelledMap
from .validation import LABELLINGS, NETWORK, REGRESSION

THIS_RUN, PAPER = "this run", "the paper"
NOISE = "not fine-tuned, other examples"
# Who names maps, how maps are counted, and what changes them.
COLOURS = {
    PAPER: plots.SOURCE_COLOURS[PAPER],
    LABELLINGS: plots.COLOURS["green"],
    NETWORK: plots.COLOURS["blue"],
    REGRESSION: plots.COLOURS["orange"],
    "MiniLM, real GLUE": plots.SOURCE_COLOURS["MiniLM, real GLUE"],
    THIS_RUN: plots.SOURCE_COLOURS[THIS_RUN],
    f"{THIS_RUN}, by {REGRESSION}": plots.COLOURS["orange"],
    NOISE: plots.COLOURS["grey"],
}
PATTERN_COLOURS = {pattern: plots.PATTERN_COLOURS(index) for index, pattern in enumerate(PATTERNS)}
_UNKNOWN = "#d9dbde"


class Shown(NamedTuple):
    """A map that is drawn without its tokens: its weights (tokens, tokens), positions of [SEP], and a title above it."""

    weights: np.ndarray
    separators: Sequence[int] = ()
    title: str = ""


def labelled(one: LabelledMap) -> Shown:
    """A labelled map under its task and its length in wordpieces."""
    return Shown(one.weights, one.separators, f"{TASKS[one.task].title}, {len(one.weights)}")


def in_rows(rows: Mapping[str, Sequence[Shown]]) -> Figure:
    """Maps in rows, each row under its name.

    Args:
        rows: by name, as many maps in each.
    """
    shown = [one for row in rows.values() for one in row]
    figure, axes = plots.map_grid(shown, [one.title for one in shown], columns=len(shown) // len(rows))
    for ax, name in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(name.replace("+", "\n+ "), fontsize=8)
    return figure


def with_tokens(maps: Mapping[str, np.ndarray], tokens: Sequence[str]) -> Figure:
    """Heads of one input side by side, tokens on the axes, on one scale from 0 to 1 that lifts faint weights.

    Args:
        maps: by title, each of shape (tokens, tokens).
        tokens: the wordpieces.
    """
    side = 1.3 + 0.165 * len(tokens)  # inches
    figure, axes = plt.subplots(1, len(maps), figsize=(side * len(maps) + 0.6, side), squeeze=False)
    for ax, (title, weights) in zip(axes.flat, maps.items(), strict=True):
        image = plots.attention_map(ax, weights, tokens, title)
        image.set_norm(PowerNorm(0.5, 0, 1))
        if ax is not axes.flat[0]:
            ax.set(ylabel="", yticks=[])
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.7, pad=0.01)
    return figure


def every_head(maps: np.ndarray, patterns: np.ndarray) -> Figure:
    """All heads' maps of one input, layers from top to bottom, each in a frame of its pattern's colour.

    Args:
        maps: shape (layers, heads, tokens, tokens).
        patterns: indices into PATTERNS, shape (layers, heads).
    """
    layers, heads = patterns.shape
    figure, axes = plt.subplots(layers, heads, figsize=(0.82 * heads + 0.4, 0.82 * layers + 0.8), squeeze=False)
    for place in np.ndindex(layers, heads):
        plots.map_picture(axes[place], maps[place])
        axes[place].set(xticks=[], yticks=[])
        axes[place].spines[:].set(color=plots.PATTERN_COLOURS(int(patterns[place])), linewidth=2.5)
    for ax, number in zip(axes[:, 0], axis_numbers(layers), strict=True):
        ax.set_ylabel(f"layer {number}", fontsize=8)
    for ax, number in zip(axes[0], axis_numbers(heads), strict=True):
        ax.set_title(f"head {number}", fontsize=7, fontweight="normal", pad=3)
    frames = [Patch(facecolor="white", edgecolor=colour, lw=2.5) for colour in PATTERN_COLOURS.values()]
    figure.legend(frames, PATTERNS, loc="outside lower center", ncol=len(PATTERNS), fontsize=8)
    return figure


def shares(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Bars of the patterns' shares, tasks from top to bottom, the same in every panel (Fig 2).

    Args:
        panels: by title, by task's title the share of each pattern, from 0 to 1; all NaN but the last where only the
            heterogeneous share is known. A task that a panel lacks stays empty.
    """
    tasks = list(dict.fromkeys(task for panel in sorted(panels.values(), key=len, reverse=True) for task in panel))
    width = 3.6 * len(panels) + 0.6
    figure, axes = plt.subplots(1, len(panels), figsize=(width, 0.34 * len(tasks) + 1.5), sharey=True, squeeze=False)
    colours: dict[str, Any] = dict(PATTERN_COLOURS)
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=True):
        for row, task in enumerate(tasks):
            parts = dict(zip(PATTERNS, panel.get(task, ()), strict=False))
            if not parts:
                ax.text(50, row, "–", ha="center", va="center", color=plots.COLOURS["grey"])
            elif np.isnan(parts["vertical"]):
                parts = {"not given singly": 1 - parts["heterogeneous"], "heterogeneous": parts["heterogeneous"]}
                colours |= {"not given singly": _UNKNOWN}
            left = 100 * (np.cumsum(list(parts.values())) - list(parts.values()))
            for start, (name, share) in zip(left, parts.items(), strict=True):
                ax.barh(row, 100 * share, left=start, height=0.72, color=colours[name], edgecolor="white", lw=0.5)
        ax.set(title=title, xlabel="share of maps (%)", xlim=(0, 100), ylim=(len(tasks) - 0.4, -0.6))
    axes[0, 0].set_yticks(range(len(tasks)), tasks)
    patches = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(patches, list(colours), loc="outside lower center", ncol=len(colours), fontsize=8)
    return figure


def heterogeneous(rows: Mapping[str, Mapping[str, Dot]]) -> Figure:
    """The heterogeneous share by every count that there is; grey is the paper's range.

    Args:
        rows: see :func:`bertology_utils.plots.dots`; by source as in :data:`COLOURS`.
    """
    figure = plots.dot_panels({"": rows}, "heterogeneous maps (%)", 100, COLOURS, columns=1)
    low, high = (100 * share for share in HETEROGENEOUS.values())
    figure.axes[0].axvspan(low, high, color=plots.COLOURS["grey"], alpha=0.18, lw=0, zorder=0)
    return figure


def usual_patterns(panels: Mapping[str, np.ndarray]) -> Figure:
    """The pattern that every head shows most often.

    Args:
        panels: by title, indices into PATTERNS, shape (layers, heads).
    """
    limits = (-0.5, len(PATTERNS) - 0.5)
    columns = 4 if len(panels) % 3 else 3
    figure = plots.heatmap_grid(dict(panels), "", limits, cmap=plots.PATTERN_COLOURS, columns=columns)
    figure.axes[-1].set_yticks(range(len(PATTERNS)), PATTERNS, fontsize=8)
    return figure


def paper_shares() -> dict[str, list[float]]:
    """By task's title what the paper gives in numbers: the heterogeneous share, NaN for the other four."""
    return {TASKS[task].title: [*[float("nan")] * (len(PATTERNS) - 1), share] for task, share in HETEROGENEOUS.items()}


def real_shares(real: Results | None) -> dict[str, list[float]]:
    """By task's title the corrected shares of a run on real data, after fine-tuning; empty without a run."""
    found: dict[str, list[float]] = {}
    for one in real.find("share of maps, corrected", state="fine-tuned") if real else ():
        found.setdefault(TASKS[one["task"]].title, []).append(one["value"])
    return found


def real_usual(real: Results | None) -> dict[str, np.ndarray]:
    """By task's name the pattern that each head of a run on real data shows most often, shape (layers, heads)."""
    found = real.by("task", "share of maps by head", state="fine-tuned") if real else {}
    return {task: np.array(one["value"]).argmax(axis=-1) for task, one in found.items()}


def of_learned(real: Results | None, what: str) -> dict[str, Entry]:
    """Numbers of a run on real data, by name of the tasks that it learned; empty without a run."""
    if not real:
        return {}
    learned = real.content["facts"]["learned"]
    return {task: one for task, one in real.by("task", what).items() if learned.get(task) and one.get("low") is not None}


def rows_of(sources: Mapping[str, Mapping[Task, Dot] | Mapping[str, Dot]]) -> dict[str, dict[str, Dot]]:
    """Rows of :func:`bertology_utils.plots.dots` for the tasks of this run, by task's title and source.

    Args:
        sources: by source, one of which is "this run", and by task or task's name.
    """
    by_title = {
        source: {(TASKS[task] if isinstance(task, str) else task).title: one for task, one in found.items()}
        for source, found in sources.items()
    }
    return {row: {source: found[row] for source, found in by_title.items() if row in found} for row in by_title[THIS_RUN]}
