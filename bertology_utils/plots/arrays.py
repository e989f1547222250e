"""Pictures of arrays with named axes. Layers and heads are named by their coordinates, from 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..stats import HEADS
from .style import GAIN

NOTHING = "not testable: one fine-tuning run only"
RISE, FALL, NULL = "#c2562d", "#2f5d8a", "#9aa1a8"  # gains, losses, and what luck would give


def panels(
    count: int, width: float, height: float, columns: int = 4, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes in rows of ``columns``, each of a size in inches; without any it says why it is empty."""
    if not count:
        figure = plt.figure(figsize=(4, 0.5))
        figure.text(0.5, 0.5, NOTHING, ha="center", va="center")
        return figure, []
    rows, across = -(-count // columns), min(columns, count)
    size = max(width * across, 4), height * rows
    figure, axes = plt.subplots(
        rows, across, figsize=size, squeeze=False, layout="constrained", **options
    )
    for ax in axes.flat[count:]:
        ax.set_axis_off()
    return figure, list(axes.flat[:count])


def head_grids(
    values: xr.DataArray,
    marked: xr.DataArray | None = None,
    label: str = "",
    limit: float | None = None,
) -> Figure:
    """Layers by heads for each task, on one colour scale around zero; ``marked`` heads have a dot.

    Args:
        values: with axes task, layer and head.
        marked: booleans of the same axes.
        label: of the scale.
        limit: where colours end; by default the largest size.
    """
    figure, axes = panels(values.sizes["task"], 2.5, 2.6)
    limit = limit or float(np.abs(values).max())
    for ax, task in zip(axes, values.task.values, strict=True):
        one = values.sel(task=task).transpose("layer", "head")
        image = ax.imshow(one, cmap=GAIN, vmin=-limit, vmax=limit)
        if marked is not None:
            rows, columns = np.nonzero(marked.sel(task=task).transpose("layer", "head").values)
            ax.plot(columns, rows, "o", color="k", ms=3)
        for axis, name in ((ax.xaxis, "head"), (ax.yaxis, "layer")):
            numbers = one[name].values
            shown = np.unique(np.append(np.arange(0, len(numbers), 3), len(numbers) - 1))
            axis.set_ticks(shown, numbers[shown])
        ax.set(title=task, xlabel="head", ylabel="layer")
        ax.spines[:].set_visible(True)
    ends = "both" if float(np.abs(values).max()) > limit else "neither"
    figure.colorbar(image, ax=axes, label=label, shrink=0.85, extend=ends)
    return figure


def rows_with_intervals(
    columns: Mapping[str, tuple[xr.Dataset | xr.DataArray, str]],
    xlabel: str,
    height: float | None = None,
) -> Figure:
    """A row for each task; in it a dot with its interval for each estimate, and a tick for each number without one.

    Args:
        columns: by label an estimate (value, low, high) or an array, and a colour; axis task.
        xlabel: of the axis.
        height: of a row, in inches; by default what its dots need.
    """
    tasks = next(iter(columns.values()))[0].task.values
    if not len(tasks):
        return panels(0, 0, 0)[0]
    height = height or max(0.6, 0.24 * len(columns))
    size = 6.4, height * len(tasks) + 0.2 * len(columns) + 0.6
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    places = np.arange(len(tasks))[::-1]
    for shift, (name, (one, colour)) in zip(
        np.linspace(0.22, -0.22, len(columns)), columns.items(), strict=True
    ):
        if isinstance(one, xr.Dataset):
            ax.hlines(places + shift, one.low, one.high, color=colour, lw=2)
            ax.plot(one.value, places + shift, "o", color=colour, ms=5, label=name)
        else:
            ax.plot(one, places + shift, "|", color=colour, ms=13, mew=2.5, label=name)
    ax.axvline(0, color="k", lw=0.6)
    ax.set(yticks=places, yticklabels=tasks, xlabel=xlabel, ylim=(-0.6, len(tasks) - 0.4))
    figure.legend(loc="outside upper left", frameon=False, fontsize=8.5)
    return figure


def lines_by_layer(columns: Mapping[str, tuple[xr.Dataset, str]], ylabel: str) -> Figure:
    """A panel for each task; in it dots with intervals by layer for each estimate, side by side.

    Args:
        columns: by label an estimate (value, low, high) with axes task and layer, and a colour.
        ylabel: of the axis.
    """
    first = next(iter(columns.values()))[0]
    figure, axes = panels(first.sizes["task"], 3.1, 2.5, columns=3, sharex=True)
    for ax, task in zip(axes, first.task.values, strict=True):
        shifts = np.linspace(-0.15, 0.15, len(columns)) if len(columns) > 1 else [0]
        for shift, (name, (one, colour)) in zip(shifts, columns.items(), strict=True):
            if task not in one.task.values:
                continue
            here = one.sel(task=task)
            ax.vlines(here.layer + shift, here.low, here.high, color=colour, lw=1.6)
            ax.plot(here.layer + shift, here.value, "o", color=colour, ms=3.5, label=name)
        ax.axhline(0, color="k", lw=0.6)
        ax.set(
            title=task,
            xlabel="layer",
            xticks=first.layer.values[:: 1 if len(first.layer) < 8 else 2],
        )
    if axes:
        axes[0].set_ylabel(ylabel)
    if axes and len(columns) > 1:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside upper left",
            ncols=len(columns),
            frameon=False,
            fontsize=8.5,
        )
    return figure


def head_scatter(
    across: Mapping[str, xr.DataArray],
    up: Mapping[str, xr.DataArray],
    xlabel: str,
    ylabel: str,
    named: int = 2,
) -> Figure:
    """A panel for each task with a dot for each head, and a line on which both numbers agree; the heads farthest out are named.

    Args:
        across, up: by task, with axes layer and head.
        xlabel, ylabel: of the axes.
        named: how many heads have their name.
    """
    figure, axes = panels(len(across), 3.1, 3.0, columns=3)
    for ax, (task, x) in zip(axes, across.items(), strict=True):
        x, y = x.stack(which=HEADS), up[task].stack(which=HEADS)
        ax.axline((0, 0), slope=1, color="0.75", lw=0.8, zorder=0)
        ax.axhline(0, color="0.5", lw=0.6, zorder=0)
        ax.axvline(0, color="0.5", lw=0.6, zorder=0)
        ax.scatter(x, y, s=11, color=FALL, alpha=0.7, lw=0)
        for place in np.argsort(-np.hypot(x.values, y.values))[:named]:
            layer, head = x.which.values[place]
            ax.annotate(
                f" ({layer}, {head})", (x.values[place], y.values[place]), fontsize=7.5, va="center"
            )
        ax.set(title=task, xlabel=xlabel)
    if axes:
        axes[0].set_ylabel(ylabel)
    return figure
