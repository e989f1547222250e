"""Layers × heads and self-attention maps as colours, annotated sentences, and a gallery of the forms of figure."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ..common import Head, axis_numbers
from .style import COLOURS, GAIN, MAP


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


def attention_map(ax: Axes, weights: np.ndarray, tokens: Sequence[str], title: str = "") -> AxesImage:
    """One self-attention map: queries from top to bottom, keys from left to right, dark for more (Fig 1).

    In another colour than heatmaps of similarity, where dark can mean little.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        title: above the map.

    Returns:
        The image, for a colour bar.
    """
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=7)
    ax.set_yticks(range(len(tokens)), tokens, fontsize=7)
    ax.set(title=title, xlabel="to token", ylabel="from token")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def token_map(weights: np.ndarray, tokens: Sequence[str], title: str = "") -> Figure:
    """A figure of one :func:`attention_map` alone, with its scale.

    Args:
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        title: above the map.

    Returns:
        The figure.
    """
    side = 2 + 0.17 * len(tokens)  # inches
    figure, ax = plt.subplots(figsize=(side + 0.8, side))
    figure.colorbar(attention_map(ax, weights, tokens, title), ax=ax, label="attention weight", shrink=0.8)
    return figure


def map_picture(ax: Axes, weights: np.ndarray, separators: Sequence[int] = (), title: str = "") -> None:
    """One self-attention map without its tokens, for its pattern (§4.1).

    The colour scale ends at the map's own maximum and lifts what is faint, so
    that the pattern shows whatever the weights' size. [SEP] is marked at both axes.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens).
        separators: positions of [SEP].
        title: above the map.
    """
    ax.imshow(weights, cmap="Blues", norm=PowerNorm(0.5, 0, np.max(weights)))
    marks = [""] * len(separators)
    ax.set_xticks(separators, marks)
    ax.set_yticks(separators, marks)
    ax.tick_params(color=COLOURS["red"], length=4, width=1.5)
    ax.spines[:].set(visible=True, linewidth=0.5, color=COLOURS["grey"])
    ax.set_title(title, fontsize=7, fontweight="normal", pad=3)


def map_grid(maps: Sequence[Any], titles: list[str], columns: int) -> tuple[Figure, np.ndarray]:
    """Many maps side by side; see :func:`map_picture`.

    Args:
        maps: objects with ``weights`` and ``separators`` (positions of [SEP]).
        titles: one each.
        columns: maps in a row.

    Returns:
        The figure and its axes, shape (rows, columns).
    """
    rows = -(-len(maps) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(1.2 * columns, 1.36 * rows), squeeze=False)
    for ax in axes.flat[len(maps) :]:
        ax.set_axis_off()
    for ax, shown, title in zip(axes.flat, maps, titles, strict=False):
        map_picture(ax, shown.weights, shown.separators, title)
    return figure, axes


def frame_annotation(text: str, spans: Iterable[tuple[str, int, int, str]], title: str = "") -> Figure:
    """A sentence with its predicate and frame elements marked (Fig 4).

    Args:
        text: the sentence.
        spans: (name, start, end, colour) of each mark, characters with ``end`` excluded.
        title: above it.

    Returns:
        The figure.
    """
    width = 0.105  # inches of one character of the monospaced font below
    figure, ax = plt.subplots(figsize=(width * len(text) + 0.6, 1.1))
    ax.set(xlim=(-0.5, len(text) + 0.5), ylim=(-1.5, 1.4))
    ax.set_axis_off()
    ax.set_title(title, loc="left")
    for position, character in enumerate(text):
        ax.text(position + 0.5, 0.4, character, family="DejaVu Sans Mono", fontsize=11, ha="center", va="center")
    for name, start, end, colour in spans:
        ax.add_patch(plt.Rectangle((start - 0.1, -0.2), end - start + 0.2, 1.2, color=colour, alpha=0.25, lw=0))
        ax.text((start + end) / 2, -0.75, name, fontsize=8, ha="center", va="center", color=colour, fontweight="bold")
    return figure


def gallery(
    weights: np.ndarray,
    separators: Sequence[int],
    shares: np.ndarray,
    similarity: np.ndarray,
    gains: np.ndarray,
    by_layer: Sequence[np.ndarray],
    head: Head,
) -> Figure:
    """Five panels, lettered A to E: a map, a share, drift, gain, and dots with intervals.

    Args:
        weights: of one head, shape (tokens, tokens).
        separators: positions of [SEP].
        shares: what each head gives some token, from 0 to 1, shape (layers, heads).
        similarity: of each head's maps before and after fine-tuning, from 0 to 1, same shape.
        gains: score without each head minus the score with it, from −1 to 1, same shape.
        by_layer: the same for whole layers, and the lower and upper ends of their intervals, each of shape (layers,).
        head: the map's, (layer, head) from 0; it has a frame in the panels of heads.

    Returns:
        The figure.
    """
    figure, axes = plt.subplot_mosaic([["A", "B", "C"], ["D", "E", "E"]], figsize=(10.5, 6.2))
    map_picture(axes["A"], weights, separators)
    axes["A"].set(xlabel="to token", ylabel="from token")
    heatmap(axes["B"], shares, "share of attention", (0, 1))
    heatmap(axes["C"], similarity, "similarity", (min(0.5, np.nanmin(similarity)), 1), "mako")  # dark is more change
    most = max(100 * float(np.nanmax(np.abs(gains))), 1.0)  # a point at least: no change at all is white
    heatmap(axes["D"], 100 * gains, "gain, points", (-most, most), GAIN)
    axes["D"].spines[:].set(visible=True, linewidth=0.5, color=COLOURS["grey"])  # white squares end somewhere
    for letter in "BCD":
        axes[letter].add_patch(plt.Rectangle(head[::-1], 1, 1, fill=False, edgecolor=COLOURS["orange"], lw=2, clip_on=False))
    values, low, high = (100 * np.asarray(part) for part in by_layer)
    layers = axis_numbers(len(values))
    axes["E"].axvline(0, color=COLOURS["orange"], lw=1.5, zorder=0)
    axes["E"].hlines(layers, low, high, color=COLOURS["blue"], lw=1.5)
    axes["E"].plot(values, layers, "o", ms=5, color=COLOURS["blue"])
    axes["E"].set(ylabel="layer", yticks=layers, xlabel="gain, points", ylim=(len(values) + 0.5, 0.5))
    titles = {"A": "map", "B": "heads", "C": "drift", "D": "gain", "E": "dots with intervals"}
    for letter, title in titles.items():
        axes[letter].set_title(f"{letter} · {title}", loc="left", fontsize=10, fontweight="bold")
    return figure
