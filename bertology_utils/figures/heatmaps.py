"""Layers × heads, and tables of numbers, as colours."""

from collections.abc import Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from ..common import axis_numbers
from .style import MAP


def heatmap(
    ax: Axes,
    values: np.ndarray,
    label: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str | Colormap = MAP,
    colour_bar: bool = True,
) -> Axes:
    """Layers × heads in the paper's orientation: layer 1 at the top, head 1 at the left.

    Args:
        ax: matplotlib axes.
        values: shape (layers, heads).
        label: what the colours mean, with the unit.
        limits: values at the two ends of the colour scale; the data's own by default.
        cmap: colour map.
        colour_bar: draw the scale beside the map.

    Raises:
        ValueError: ``values`` is not two-dimensional.
    """
    if np.ndim(values) != 2:
        raise ValueError(f"a heatmap wants (layers, heads), not shape {np.shape(values)}")
    layers, heads = np.shape(values)
    low, high = limits or (np.nanmin(values), np.nanmax(values))
    # As seaborn's heatmap, which draws the whole figure once more for each, to see whether labels overlap.
    sns.despine(ax=ax, left=True, bottom=True)
    there = np.ma.masked_invalid(values)
    mesh = ax.pcolormesh(there, cmap=cmap, vmin=low, vmax=high, linewidths=0.4, edgecolor="white")
    ax.set(xlim=(0, heads), ylim=(layers, 0))
    if colour_bar:
        ax.figure.colorbar(mesh, ax=ax, label=label).outline.set_linewidth(0)
    ax.set_xticks(np.arange(heads) + 0.5, [str(number) for number in axis_numbers(heads)])
    ax.set_yticks(np.arange(layers) + 0.5, [str(number) for number in axis_numbers(layers)], va="center")
    ax.set(xlabel="head", ylabel="layer")
    ax.tick_params(length=0, rotation=0, labelsize=7)
    return ax


def heatmap_grid(
    values: dict[str, np.ndarray],
    label: str,
    limits: tuple[float, float] | list[tuple[float, float]],
    cmap: str | Colormap = MAP,
    columns: int = 4,
    panel: tuple[float, float] = (2.9, 2.5),
    extend: Literal["neither", "both", "min", "max"] = "neither",
) -> Figure:
    """Several heatmaps under their titles.

    Args:
        values: by title, each of shape (layers, heads).
        label: what the colours mean, with the unit; short, since it stands beside the scale.
        limits: values at the two ends of the one colour scale; or a list with those of each row of panels.
        cmap: colour map.
        columns: panels in a row.
        panel: width and height of a panel in inches.
        extend: at which ends of the scale an arrow says that there are values beyond it.

    Returns:
        The figure.
    """
    rows = -(-len(values) // columns)
    width = min(columns, len(values))
    by_row = limits if isinstance(limits, list) else [limits] * rows
    figure, axes = plt.subplots(rows, width, figsize=(panel[0] * width + 0.8, panel[1] * rows + 0.2), squeeze=False)
    for index, (ax, (title, heads)) in enumerate(zip(axes.flat, values.items(), strict=False)):
        heatmap(ax, heads, limits=by_row[index // width], cmap=cmap, colour_bar=False).set_title(title)
        if index % width:
            ax.set(ylabel="", yticks=[])
        if index + width < len(values):  # another panel stands below
            ax.set(xlabel="", xticks=[])
    for ax in axes.flat[len(values) :]:
        ax.set_axis_off()
    for sharing in axes if isinstance(limits, list) else [axes]:
        long = 15 * rows if sharing is axes else 12
        look = {"label": label, "shrink": 0.8, "aspect": long, "pad": 0.01, "extend": extend}
        bar = figure.colorbar(sharing.flat[0].collections[0], ax=sharing, **look)
        bar.outline.set_visible(False)
    return figure


def table_map(
    ax: Axes, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], limits: tuple[float, float], title: str
) -> None:
    """A table of numbers, dark for more, each number in its cell (Fig 7).

    Args:
        ax: matplotlib axes.
        values: shape (rows, columns).
        rows, columns: their names.
        limits: values at the two ends of the colour scale.
        title: above it.
    """
    sns.heatmap(
        values,
        ax=ax,
        cmap=MAP,
        vmin=limits[0],
        vmax=limits[1],
        annot=True,
        fmt=".2f",
        cbar=False,
        linewidths=0.4,
        linecolor="white",
        annot_kws={"fontsize": 8},
        xticklabels=list(columns),
        yticklabels=list(rows),
    )
    ax.set_title(title)
    ax.tick_params(length=0, labelsize=8)
    ax.tick_params(axis="x", rotation=40)
    ax.tick_params(axis="y", rotation=0)


def confusion(ax: Axes, counts: np.ndarray, rows: list[str], columns: list[str], title: str) -> None:
    """Confusion matrix: numbers are counts, colours shares of the row.

    Args:
        ax: matplotlib axes.
        counts: shape (rows, columns).
        rows: what the maps are.
        columns: what they were taken for.
        title: above it.
    """
    sns.heatmap(
        counts / counts.sum(axis=1, keepdims=True),
        ax=ax,
        cmap=MAP,
        vmin=0,
        vmax=1,
        annot=counts,
        fmt="d",
        cbar=False,
        square=True,
        linewidths=0.4,
        linecolor="white",
        annot_kws={"fontsize": 8},
        xticklabels=[name.replace("+", "\n+ ") for name in columns],
        yticklabels=[name.replace("+", "\n+ ") for name in rows],
    )
    ax.set(title=title, xlabel="the network says", ylabel="the label is")
    ax.tick_params(length=0, labelsize=7)
    ax.tick_params(axis="x", rotation=40)
    ax.tick_params(axis="y", rotation=0)
