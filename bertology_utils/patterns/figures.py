"""The figures of notebook 1: maps as pictures, the patterns' shares (Fig 2), and every head's usual pattern.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from .. import plots
from ..common import axis_numbers
from ..glue import TASKS
from ..results import Results
from ..verdicts import CLAIMS
from .labels import PATTERNS
from .measure import GENEROUS

COLOURS = {pattern: to_hex(plots.PATTERN_COLOURS(index)) for index, pattern in enumerate(PATTERNS)}
# The lowest and the highest share of heterogeneous maps in the paper, in percent (§4.1).
PAPER = {"MRPC": 100 * CLAIMS["heterogeneous"].least, "QQP": 100 * CLAIMS["heterogeneous"].most}


def labelled_maps(maps: pd.DataFrame) -> Figure:
    """Labelled maps in a row for each pattern, as many in each, under their task and length in wordpieces."""
    rows = {pattern: [*maps[maps["pattern"] == pattern].itertuples()] for pattern in PATTERNS}
    shown = [one for row in rows.values() for one in row]
    titles = [f"{TASKS[one.task].title}, {len(one.weights)}" for one in shown]
    figure, axes = plots.map_grid(shown, titles, columns=len(shown) // len(rows))
    for ax, pattern in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(pattern.replace("+", "\n+ "), fontsize=8)
    return figure


def every_head(maps: np.ndarray, patterns: np.ndarray) -> Figure:
    """All heads' maps of one input, each in a frame of its pattern's colour.

    Args:
        maps: shape (layers, heads, tokens, tokens).
        patterns: indices into PATTERNS, shape (layers, heads).
    """
    layers, heads = patterns.shape
    size = 0.82 * heads + 0.4, 0.82 * layers + 0.8
    figure, axes = plt.subplots(layers, heads, figsize=size, squeeze=False)
    for place in np.ndindex(layers, heads):
        plots.map_picture(axes[place], maps[place])
        axes[place].spines[:].set(color=COLOURS[PATTERNS[patterns[place]]], linewidth=2.5)
    for ax, number in zip(axes[:, 0], axis_numbers(layers), strict=True):
        ax.set_ylabel(f"layer {number}", fontsize=8)
    for ax, number in zip(axes[0], axis_numbers(heads), strict=True):
        ax.set_title(f"head {number}", fontsize=7, fontweight="normal", pad=3)
    frames = [Patch(facecolor="white", edgecolor=one, lw=2.5) for one in COLOURS.values()]
    figure.legend(frames, PATTERNS, loc="outside lower center", ncols=len(PATTERNS), fontsize=8)
    return figure


def pattern_shares(results: Results) -> Figure:
    """Shares of the patterns after fine-tuning, and where the paper's heterogeneous maps begin (Fig 2)."""
    table = results.table("share of maps, corrected", state="fine-tuned")
    figure = plots.stacked(table, y="task", label="share of maps, %", colours=COLOURS)
    line: dict[str, Any] = {"color": "black", "lw": 2.5, "solid_capstyle": "butt"}
    for row, task in enumerate(table.task.cat.categories):
        if task in PAPER:
            figure.axes[0].plot([100 - PAPER[task]] * 2, [row - 0.43, row + 0.43], **line)
    if PAPER.keys() & set(table.task):
        handles: list[Artist] = [Patch(color=one) for one in COLOURS.values()]
        names = [*PATTERNS, "where heterogeneous begins in the paper"]
        figure.legends[0].remove()
        handles.append(Line2D([], [], **line))
        figure.legend(handles, names, loc="outside upper center", ncols=3)
    return figure


def usual_patterns(results: Results) -> Figure:
    """The pattern that every head shows most often on most tasks, and on how many if not on all; before and after."""
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.1))
    for ax, state in zip(axes, ("pre-trained", "fine-tuned"), strict=True):
        by_task = results.by("task", "share of maps by head", state=state).values()
        usual = np.stack([np.array(one["value"]).argmax(axis=-1) for one in by_task])
        tasks = (usual[..., None] == np.arange(len(PATTERNS))).sum(axis=0)  # by head and pattern
        limits = -0.5, len(PATTERNS) - 0.5
        plots.head_map(ax, tasks.argmax(axis=-1), limits, plots.PATTERN_COLOURS)
        for (layer, head), count in np.ndenumerate(tasks.max(axis=-1)):
            if count < len(usual):
                light = PATTERNS[tasks[layer, head].argmax()] == "block"
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold"}
                ax.text(head, layer, str(count), color="black" if light else "white", **look)
        ax.set_xticks(range(usual.shape[2]), axis_numbers(usual.shape[2]))
        ax.set_title(f"{state}, {len(usual)} task{'s' * (len(usual) > 1)}")
    axes[1].set_ylabel("")
    handles = [Patch(color=one) for one in COLOURS.values()]
    figure.legend(handles, PATTERNS, loc="outside lower center", ncols=len(PATTERNS), fontsize=9)
    return figure


def confusion(results: Results) -> Figure:
    """What the network calls the labelled maps of each pattern, in percent, of heads that it did not see."""
    what = "share of labelled maps named so"
    shares = 100 * np.array([results.array(what, state=pattern) for pattern in PATTERNS])
    figure, ax = plt.subplots(figsize=(5.4, 3.8))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    for (row, column), share in np.ndenumerate(shares):
        ink = "white" if share > 55 else "black"
        ax.text(column, row, f"{share:.0f}", ha="center", va="center", color=ink)
    names = [pattern.replace("+", "\n+ ") for pattern in PATTERNS]
    ax.set_xticks(range(len(names)), names, rotation=30, fontsize=8)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set(xlabel="the network's answer, % of a row", ylabel="label")
    ax.spines[:].set_visible(False)
    return figure


def heterogeneous(results: Results) -> Figure:
    """The corrected share of heterogeneous maps by task, as either classifier finds it; grey is the paper's range."""
    named_by = {
        "corrected": "network",
        "by logistic regression": "logistic regression",
        GENEROUS: "network, heterogeneous if either label says so",
    }
    table = results.table([f"share of maps: heterogeneous, {how}" for how in named_by])
    table["named by"] = table.what.str.partition(", ")[2].map(named_by)
    low, high = PAPER.values()
    label = "heterogeneous maps, %"
    figure = plots.dots(table, colour="named by", label=label, limits=(0, high + 2))
    ax = figure.axes[0]
    ax.axvspan(low, high, color=plots.COLOURS["grey"], alpha=0.18, lw=0, zorder=0)
    text = f"the paper:\nfrom {low:.0f} % (MRPC)\nto {high:.0f} % (QQP)"
    middle = (low + high) / 2, float(np.mean(ax.get_ylim()))
    ax.text(*middle, text, ha="center", va="center", fontsize=9)
    return figure
