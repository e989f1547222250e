"""The figures of §4.1 that are made for it alone: shares of the patterns, with their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..claims.register import PAPER_HETEROGENEOUS
from ..glue.tasks import Task
from ..statistics import Bootstrap
from .labelled_maps import PATTERNS

# By task and state, "pre-trained" then "fine-tuned"; see shares.pattern_shares.
Shares = Mapping[tuple[Task, str], Mapping[str, list[Bootstrap]]]


def pattern_shares(of_task: Shares, states: tuple[str, str] = ("before", "after")):
    """Bars of the patterns' shares in two states of every task, as predicted and corrected (Fig 2); the figure."""
    tasks = _tasks(of_task)
    figure, axes = plt.subplots(1, 2, figsize=(10, 0.62 * len(tasks) + 1.6), sharey=True)
    heights = [_height(row, 0.2) for row in range(len(of_task))]
    for ax, version in zip(axes, ("predicted", "corrected"), strict=True):
        for row, versions in enumerate(of_task.values()):
            edges = 100 * np.cumsum([0, *(share.value for share in versions[version])])
            for index, pattern in enumerate(PATTERNS):
                ax.barh(
                    heights[row],
                    edges[index + 1] - edges[index],
                    left=edges[index],
                    height=0.36,
                    edgecolor="white",
                    lw=0.5,
                    color=figures.PATTERN_COLOURS(index),
                    label=pattern if row == 0 else None,
                )
        ax.set(title=version, xlabel="share of maps (%)", xlim=(0, 100))
    names = [name for task in tasks for name in (f"{task.title}  {states[0]}", states[1])]
    axes[0].set_yticks(heights, names, fontsize=8)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=len(PATTERNS))
    return figure


def heterogeneous_shares(of_task: Shares):
    """The heterogeneous shares: dots with intervals are corrected, crosses predicted, grey the paper's range; the figure."""
    tasks, last = _tasks(of_task), PATTERNS.index("heterogeneous")
    figure, ax = plt.subplots(figsize=(6.5, 0.5 * len(tasks) + 1.6))
    ax.axvspan(
        *(100 * share for share in PAPER_HETEROGENEOUS.values()),
        color=figures.COLOURS["grey"],
        alpha=0.2,
        lw=0,
        label="the paper's range",
    )
    for row, ((_, state), versions) in enumerate(of_task.items()):
        predicted, corrected = (versions[name][last] for name in ("predicted", "corrected"))
        height, colour = _height(row, 0.15), figures.COLOURS["blue" if row % 2 else "orange"]
        ax.plot([100 * end for end in corrected.interval], [height, height], color=colour, lw=2)
        ax.plot(100 * corrected.value, height, "o", color=colour, ms=5, label=f"{state}, corrected" if row < 2 else None)
        ax.plot(100 * predicted.value, height, "x", color=colour, ms=5, label=f"{state}, predicted" if row < 2 else None)
    ax.set(xlabel="heterogeneous maps (%)", xlim=(0, None), yticks=range(len(tasks)))
    ax.set_yticklabels([task.title for task in tasks])
    ax.invert_yaxis()
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncol=2)
    return figure


def _tasks(of_task: Shares) -> list[Task]:
    return list(dict.fromkeys(task for task, _ in of_task))


def _height(row: int, apart: float) -> float:
    """Where a bar stands: the two states of a task lie ``apart`` from its place, to either side."""
    return row // 2 + (apart if row % 2 else -apart)
