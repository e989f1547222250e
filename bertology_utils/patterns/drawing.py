"""The figures of §4.1 that are made for it alone: shares of the patterns, who names them how well, and usual patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import figures
from ..claims.register import PAPER_HETEROGENEOUS
from ..figures.dots import Dot
from .beside import NOISE
from .labelled_maps import PATTERNS

# Who names maps, and how maps are counted.
JUDGE_COLOURS = {
    "the paper": figures.SOURCE_COLOURS["the paper"],
    "one labelling against the other": figures.COLOURS["green"],
    "network": figures.COLOURS["blue"],
    "logistic regression": figures.COLOURS["orange"],
}
COUNT_COLOURS = {
    "the paper": figures.SOURCE_COLOURS["the paper"],
    "MiniLM, real GLUE": figures.SOURCE_COLOURS["MiniLM, real GLUE"],
    "this run": figures.SOURCE_COLOURS["this run"],
    "this run, by logistic regression": figures.COLOURS["orange"],
}
CHANGE_COLOURS = {
    "MiniLM, real GLUE": figures.SOURCE_COLOURS["MiniLM, real GLUE"],
    "this run": figures.SOURCE_COLOURS["this run"],
    NOISE: figures.COLOURS["grey"],
}
_UNKNOWN = "#d9dbde"


def shares(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Bars of the patterns' shares, tasks from top to bottom, the same in every panel (Fig 2).

    Args:
        panels: by title, by task's title the share of each pattern, from 0 to 1; all NaN but the last where only the
            heterogeneous share is known. A task that a panel lacks stays empty.

    Returns:
        The figure.
    """
    tasks = list(dict.fromkeys(task for _, panel in sorted(panels.items(), key=lambda of: -len(of[1])) for task in panel))
    width = 3.6 * len(panels) + 0.6
    figure, axes = plt.subplots(1, len(panels), figsize=(width, 0.34 * len(tasks) + 1.5), sharey=True, squeeze=False)
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=True):
        for row, task in enumerate(tasks):
            if task in panel:
                _bar(ax, row, np.asarray(panel[task], dtype=float))
            else:
                ax.text(50, row, "–", ha="center", va="center", color=figures.COLOURS["grey"])
        ax.set(title=title, xlabel="share of maps (%)", xlim=(0, 100), ylim=(len(tasks) - 0.4, -0.6))
    axes[0, 0].set_yticks(range(len(tasks)), tasks)
    colours: dict[str, Any] = {pattern: figures.PATTERN_COLOURS(index) for index, pattern in enumerate(PATTERNS)}
    if any(np.isnan(share[0]) for panel in panels.values() for share in panel.values()):
        colours["not given singly"] = _UNKNOWN
    patches = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(patches, list(colours), loc="outside lower center", ncol=len(colours), fontsize=8)
    return figure


def _bar(ax, row: int, values: np.ndarray) -> None:
    """One task's bar; where only the last share is known, the rest is one grey piece."""
    known = not np.isnan(values[0])
    parts = values if known else np.array([1 - values[-1], values[-1]])
    colours: list[Any] = [figures.PATTERN_COLOURS(index) for index in range(len(PATTERNS))]
    if not known:
        colours = [_UNKNOWN, colours[-1]]
    for left, width, colour in zip(100 * (np.cumsum(parts) - parts), 100 * parts, colours, strict=True):
        ax.barh(row, width, left=left, height=0.72, color=colour, edgecolor="white", lw=0.5)


def heterogeneous(rows: Mapping[str, Mapping[str, Dot]]) -> Figure:
    """The heterogeneous share by every count that there is; grey is the paper's range.

    Args:
        rows: see :func:`bertology_utils.figures.dots`; by source as in :data:`COUNT_COLOURS`.

    Returns:
        The figure.
    """
    figure = figures.dot_panels({"": rows}, "heterogeneous maps (%)", 100, COUNT_COLOURS, columns=1)
    low, high = (100 * share for share in PAPER_HETEROGENEOUS.values())
    figure.axes[0].axvspan(low, high, color=figures.COLOURS["grey"], alpha=0.18, lw=0, zorder=0)
    return figure


def usual_patterns(panels: Mapping[str, np.ndarray]) -> Figure:
    """The pattern that every head shows most often.

    Args:
        panels: by title, indices into PATTERNS, shape (layers, heads).

    Returns:
        The figure.
    """
    limits = (-0.5, len(PATTERNS) - 0.5)
    columns = 4 if len(panels) % 3 else 3
    figure = figures.heatmap_grid(dict(panels), "", limits, cmap=figures.PATTERN_COLOURS, columns=columns)
    figure.axes[-1].set_yticks(range(len(PATTERNS)), PATTERNS, fontsize=8)
    return figure


def confusions(counts: Mapping[str, np.ndarray]) -> Figure:
    """Confusion matrices side by side.

    Args:
        counts: by title, shape (patterns, patterns), rows what the label is.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(counts), figsize=(4.5 * len(counts), 3.9), squeeze=False)
    for ax, (title, numbers) in zip(axes.flat, counts.items(), strict=True):
        figures.confusion(ax, numbers, list(PATTERNS), list(PATTERNS), title)
    return figure
