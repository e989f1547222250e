"""Layers × heads and self-attention maps as colours, annotated sentences, and a gallery of the forms of figure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ..common import Head, axis_numbers
from .style import COLOURS, GAIN, MAP


def heatmap(
    ax: Axes,
    values: np.ndarray,
    label: str = "",
    limits: tuple[float, float] | Normalize | None = None,
    cmap: str | Colormap = MAP,
    colour_bar: bool = True,
) -> Axes:
    """Layers × heads in the paper's orientation: layer 1 at the top, head 1 at the left.

    Args:
        ax: matplotlib axes.
        values: shape (layers, heads).
        label: what the colours mean, with the unit.
        limits: values at the two ends of the colour scale, or matplotlib's norm; the data's own
            range by default.
        cmap: colour map.
        colour_bar: draw the scale beside the map.

    Raises:
        ValueError: ``values`` is not two-dimensional.
    """
    if np.ndim(values) != 2:
        raise ValueError(f"a heatmap wants (layers, heads), not shape {np.shape(values)}")
    layers, heads = np.shape(values)
    norm = (
        limits
        if isinstance(limits, Normalize)
        else Normalize(*(limits or (np.nanmin(values), np.nanmax(values))))
    )
    # As seaborn's heatmap, which draws the whole figure once more for each, to see whether labels
    # overlap.
    sns.despine(ax=ax, left=True, bottom=True)
    there = np.ma.masked_invalid(values)
    edge = "#d5d8dc" if cmap is GAIN else "white"  # white squares end somewhere
    mesh = ax.pcolormesh(there, cmap=cmap, norm=norm, linewidths=0.4, edgecolor=edge)
    ax.set(xlim=(0, heads), ylim=(layers, 0))
    if colour_bar:
        ax.figure.colorbar(mesh, ax=ax, label=label).outline.set_linewidth(0)
    ax.set_xticks(np.arange(heads) + 0.5, [str(number) for number in axis_numbers(heads)])
    ax.set_yticks(
        np.arange(layers) + 0.5, [str(number) for number in axis_numbers(layers)], va="center"
    )
    ax.set(xlabel="head", ylabel="layer")
    ax.tick_params(length=0, rotation=0, labelsize=7)
    return ax


def heatmap_grid(
    values: Mapping[Any, np.ndarray | None],
    label: str,
    limits: tuple[float, float] | Normalize,
    cmap: str | Colormap = MAP,
    columns: int = 4,
    panel: tuple[float, float] = (2.9, 2.5),
    extend: Literal["neither", "both", "min", "max"] = "neither",
) -> Figure:
    """Several heatmaps on one scale, each under its title; or in named rows and columns.

    Args:
        values: by title, or by (row, column), each of shape (layers, heads); None for what was not
            measured.
        label: what the colours mean, with the unit; short, since it stands beside the scale.
        limits: values at the two ends of the scale, or matplotlib's norm.
        cmap: colour map.
        columns: panels in a row, where rows have no names.
        panel: width and height of a panel in inches.
        extend: at which ends of the scale an arrow says that there are values beyond it.

    Returns:
        The figure; its axes are in the order of the values, the scale's last.
    """
    in_rows = isinstance(next(iter(values)), tuple)
    if in_rows:
        columns = len({column for _, column in values})
    width, rows = min(columns, len(values)), -(-len(values) // columns)
    size = panel[0] * width + 0.8 + 0.4 * in_rows, panel[1] * rows + 0.2
    figure, axes = plt.subplots(rows, width, figsize=size, squeeze=False)
    shapes = [None if heads is None else heads.shape for heads in values.values()]
    for index, (ax, (name, heads)) in enumerate(zip(axes.flat, values.items(), strict=False)):
        row, title = name if in_rows else ("", name)
        if heads is None:
            ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=COLOURS["grey"])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        else:
            heatmap(ax, heads, limits=limits, cmap=cmap, colour_bar=False)
            ax.set_xticks(
                ax.get_xticks()[:: 1 if panel[0] > 2 else 3]
            )  # labels of a narrow panel would touch
            ax.set_xticklabels([str(int(place + 0.5)) for place in ax.get_xticks()])
        if not in_rows or index < width:
            ax.set_title(title, fontsize=9)
        if index % width:
            ax.set_ylabel("")
            if shapes[index] == shapes[index - 1]:
                ax.set_yticks([])
        elif row:
            ax.set_ylabel(f"{row}\n\nlayer")
        if (
            index + width < len(values) and shapes[index] and shapes[index + width]
        ):  # another panel stands below
            ax.set(xlabel="")
            if shapes[index][1] == shapes[index + width][1]:  # type: ignore[index]
                ax.set_xticks([])
    for ax in axes.flat[len(values) :]:
        ax.set_axis_off()
    drawn = next(ax for ax in axes.flat if ax.collections).collections[0]
    figure.colorbar(
        drawn, ax=axes, label=label, shrink=0.8, aspect=15 * rows, pad=0.01, extend=extend
    ).outline.set_visible(False)
    return figure


def table_map(
    ax: Axes,
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    limits: tuple[float, float],
    title: str,
) -> None:
    """A table of numbers, dark for more, each number in its cell (Fig 7).

    Args:
        ax: matplotlib axes.
        values: shape (rows, columns).
        rows, columns: their names.
        limits: values at the two ends of the colour scale.
        title: above it.
    """
    names = {"xticklabels": list(columns), "yticklabels": list(rows)}
    look: dict[str, Any] = {"linewidths": 0.4, "linecolor": "white", "annot_kws": {"fontsize": 8}}
    sns.heatmap(
        values,
        ax=ax,
        cmap=MAP,
        vmin=limits[0],
        vmax=limits[1],
        annot=True,
        fmt=".2f",
        cbar=False,
        **look,
        **names,
    )
    ax.set_title(title)
    ax.tick_params(length=0, labelsize=8)
    ax.tick_params(axis="x", rotation=40)
    ax.tick_params(axis="y", rotation=0)


def attention_map(
    ax: Axes, weights: np.ndarray, tokens: Sequence[str], title: str = ""
) -> AxesImage:
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
    """:func:`token_maps` of one map."""
    return token_maps({title: weights}, tokens)


def token_maps(maps: Mapping[str, np.ndarray], tokens: Sequence[str], most: float = 1.0) -> Figure:
    """Maps of one input side by side, each an :func:`attention_map` under its title, with their scale.

    Args:
        maps: by title, each of shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        most: where the scale ends.

    Returns:
        The figure.
    """
    side = 2 + 0.17 * len(tokens)  # inches
    figure, axes = plt.subplots(1, len(maps), figsize=(len(maps) * side + 0.8, side), squeeze=False)
    for ax, (title, weights) in zip(axes.flat, maps.items(), strict=True):
        image = attention_map(ax, weights, tokens, title)
        image.set_clim(0, most)
        if ax is not axes[0, 0]:
            ax.set_ylabel("")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure


def frame(
    ax: Axes,
    rows: Sequence[int],
    columns: Sequence[int],
    colour: str = "orange",
    line: str = "-",
    thick: float = 1.8,
    inset: float = 0.0,
) -> None:
    """A frame around the cells of some rows and columns of an :func:`attention_map`, inset by so much of a cell.

    Its colour is one of :data:`COLOURS`.
    """
    corner = min(columns) - 0.5 + inset, min(rows) - 0.5 + inset
    size = np.ptp(columns) + 1 - 2 * inset, np.ptp(rows) + 1 - 2 * inset
    ax.add_patch(
        plt.Rectangle(
            corner, *size, fill=False, edgecolor=COLOURS[colour], linestyle=line, linewidth=thick
        )
    )


def map_picture(
    ax: Axes, weights: np.ndarray, separators: Sequence[int] = (), title: str = ""
) -> None:
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


def frame_annotation(
    text: str, spans: Iterable[tuple[str, int, int, str]], title: str = ""
) -> Figure:
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
        ax.text(
            position + 0.5,
            0.4,
            character,
            family="DejaVu Sans Mono",
            fontsize=11,
            ha="center",
            va="center",
        )
    for name, start, end, colour in spans:
        ax.add_patch(
            plt.Rectangle(
                (start - 0.1, -0.2), end - start + 0.2, 1.2, color=colour, alpha=0.25, lw=0
            )
        )
        ax.text(
            (start + end) / 2,
            -0.75,
            name,
            fontsize=8,
            ha="center",
            va="center",
            color=colour,
            fontweight="bold",
        )
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
        by_layer: the same for whole layers, and the lower and upper ends of their intervals, each
            of shape (layers,).
        head: the map's, (layer, head) from 0; it has a frame in the panels of heads.

    Returns:
        The figure.
    """
    figure, axes = plt.subplot_mosaic([["A", "B", "C"], ["D", "E", "E"]], figsize=(10.5, 6.2))
    map_picture(axes["A"], weights, separators)
    axes["A"].set(xlabel="to token", ylabel="from token")
    heatmap(axes["B"], shares, "share of attention", (0, 1))
    heatmap(
        axes["C"], similarity, "similarity", (min(0.5, np.nanmin(similarity)), 1), "mako"
    )  # dark is more change
    most = max(
        100 * float(np.nanmax(np.abs(gains))), 1.0
    )  # a point at least: no change at all is white
    heatmap(axes["D"], 100 * gains, "gain, points", (-most, most), GAIN)
    for letter in "BCD":
        axes[letter].add_patch(
            plt.Rectangle(
                head[::-1], 1, 1, fill=False, edgecolor=COLOURS["orange"], lw=2, clip_on=False
            )
        )
    values, low, high = (100 * np.asarray(part) for part in by_layer)
    layers = axis_numbers(len(values))
    axes["E"].axvline(0, color=COLOURS["orange"], lw=1.5, zorder=0)
    axes["E"].hlines(layers, low, high, color=COLOURS["blue"], lw=1.5)
    axes["E"].plot(values, layers, "o", ms=5, color=COLOURS["blue"])
    axes["E"].set(
        ylabel="layer", yticks=layers, xlabel="gain, points", ylim=(len(values) + 0.5, 0.5)
    )
    titles = {"A": "map", "B": "heads", "C": "drift", "D": "gain", "E": "dots with intervals"}
    for letter, title in titles.items():
        axes[letter].set_title(f"{letter} · {title}", loc="left", fontsize=10, fontweight="bold")
    return figure
