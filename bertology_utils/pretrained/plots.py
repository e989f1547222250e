"""The figures of notebook 8: its own beside published ones, and those of the sections whose claims it judges."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..claims import HETEROGENEOUS
from ..common import axis_numbers, head_name
from ..framenet.plots import links_in_maps
from ..glue import Task
from ..links.plots import links_and_neighbours
from ..patterns import plots as patterns
from ..plots import COLOURS, SOURCE_COLOURS, heatmap
from ..statistics import Estimate, heads_by_size
from ..weighing.plots import KIND_COLOURS, mixing

__all__ = ["by_depth", "heterogeneous", "links_and_neighbours", "links_in_maps", "mixing", "panels_beside", "same_heads"]


def panels_beside(published: Mapping[str, np.ndarray], here: Mapping[str, np.ndarray], run: str) -> Figure:
    """Published panels above, this run's below; one scale for each column.

    Args:
        published, here: by title, mean weight of every head, shape (layers, heads); the same titles.
        run: what this run is of.
    """
    figure, axes = plt.subplots(2, len(published), figsize=(3.7 * len(published), 6.4), squeeze=False)
    figure.get_layout_engine().set(w_pad=0.12)  # inches: the scale's name is not the next panel's
    for column, (title, theirs) in enumerate(published.items()):
        limits = 0.0, float(max(theirs.max(), here[title].max()))
        for ax, panel, source in zip(axes[:, column], (theirs, here[title]), ("bert-base, published", run), strict=True):
            heatmap(ax, panel, limits=limits, colour_bar=False).set_title(f"{title}\n{source}", fontsize=9)
        bar = figure.colorbar(axes[0, column].collections[0], ax=axes[:, column], label="mean weight", aspect=40, pad=0.02)
        bar.outline.set_visible(False)
    return figure


def same_heads(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """A dot for each head: the published weight across, this run's up; the three highest here are named.

    Args:
        pairs: by panel, published and here, both of shape (layers, heads).
    """
    figure, axes = plt.subplots(1, len(pairs), figsize=(3.3 * len(pairs), 3.2), squeeze=False)
    for ax, (title, (theirs, ours)) in zip(axes.flat, pairs.items(), strict=True):
        ax.axline((0, 0), slope=1, color=COLOURS["grey"], lw=0.8)
        ax.plot(theirs.ravel(), ours.ravel(), "o", ms=4, alpha=0.6, color=SOURCE_COLOURS["this run"])
        for at in heads_by_size(ours)[:3]:
            ax.annotate(
                head_name(*at), (theirs[at], ours[at]), xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=8
            )
        ax.set(title=title, xlabel="published weight")
    axes.flat[0].set_ylabel("this run")
    return figure


def by_depth(models: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """What one [CLS] and one [SEP] get, by layer, a panel for each model on one scale.

    Args:
        models: by title, and then by kind of token, mean over heads, shape (layers,).
    """
    figure, axes = plt.subplots(1, len(models), figsize=(3.6 * len(models), 2.9), sharey=True, squeeze=False)
    for ax, (title, lines) in zip(axes.flat, models.items(), strict=True):
        for kind, values in lines.items():
            ax.plot(axis_numbers(len(values)), values, "o-", ms=4, lw=1.6, color=KIND_COLOURS[kind], label=kind)
        ax.axvline(len(values) / 2 + 0.5, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(title=title, xlabel="layer")
        ax.set_xticks(axis_numbers(len(values)))
    axes.flat[0].set(ylabel="mean weight", ylim=(0, None))  # of all, which share it; once all lines are drawn
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def heterogeneous(shares: Mapping[Task, Estimate]) -> Figure:
    """Share of heterogeneous maps on each task, before fine-tuning, beside the range that the paper gives after it."""
    return patterns.heterogeneous(patterns.rows_of({patterns.PAPER: HETEROGENEOUS, patterns.THIS_RUN: shares}))
