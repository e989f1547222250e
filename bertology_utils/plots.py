"""Pictures of named arrays, of attention maps and of trees, in one style.

- :func:`rows_with_intervals`: estimates with intervals, a row for each task. :func:`lines_by_layer`: the
  same by layer, a panel for each task. :func:`head_grids`: layers by heads on one scale around zero.
  :func:`name_heads`: names beside the dots of heads. :func:`panels`: empty axes for anything else.
- :func:`token_map`, :func:`draw_map`, :func:`attention_lines`: a map of one input; :func:`map_picture`: a
  small one; :func:`outline`: cells of a map. :func:`table_map`: a table with coloured cells.
  :func:`tree_arcs`: a sentence's tree, and those that methods find.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, PowerNorm, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Arc

from .cache import write_atomically

COLOURS = {
    "blue": "#2f5d8a",
    "orange": "#d9822b",
    "grey": "#8a8f98",
    "green": "#3f8f6b",
    "red": "#b5483a",
}
# The five patterns of §4.1, in the order of patterns.PATTERNS; told apart without colour
# vision by lightness.
PATTERN_COLOURS = ListedColormap(["#2f5d8a", "#d9822b", "#7c5c8e", "#8fc1a9", "#c8584c"])
# Of features.DESTINATIONS: special tokens dark, punctuation between, neighbours warm, the rest pale.
FLOW_COLOURS = ["#1f3d5c", "#5b8db8", "#b7a8cf", "#b5483a", "#e8a33d", "#f2d08b", "#e4e6e9"]
# Below zero, zero and above it; zero is pure white, the middle one of an odd number of colours.
GAIN = LinearSegmentedColormap.from_list("gain", ["#1f4e8c", "#ffffff", "#a8322a"], N=255)


def set_style() -> None:
    """Apply the suite's style to matplotlib; call once, at the top of a notebook."""
    sns.set_theme(style="ticks", context="notebook", font_scale=0.85)
    plt.rcParams.update(
        {
            "figure.dpi": 110,
            "savefig.dpi": 160,
            "figure.constrained_layout.use": True,
            "axes.titleweight": "bold",
            "axes.titlesize": "medium",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "font.family": "DejaVu Sans",
            "svg.hashsalt": "bertology",  # the same ids, so the same bytes, on every run
        }
    )


def show(figure: Figure, folder: Path, name: str, alt: str) -> None:
    """Write ``name``.png and ``name``.pdf into ``folder``, without dates, each atomically; and show the figure on the page.

    Args:
        figure: of matplotlib.
        folder, name: of the files.
        alt: what the picture shows, for those who do not see it; it stands in the output's metadata
            (``image/png``, ``alt``), where pages read it.
    """
    from IPython.display import display

    dated = {"png": ["Software"], "pdf": ["CreationDate", "Creator", "Producer"]}
    for kind, entries in dated.items():
        content, metadata = io.BytesIO(), dict.fromkeys(entries)
        figure.savefig(content, format=kind, metadata=metadata, bbox_inches="tight")
        write_atomically(folder / f"{name}.{kind}", content.getvalue())
        # It stands; another layout for each format would take half of the time.
        figure.set_layout_engine("none")
    display(figure, metadata={"image/png": {"alt": alt}})
    plt.close(figure)  # or the notebook would show it once more


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
    for ax in axes.flat[max(0, count - across) : count]:  # below some of them is no other
        ax.tick_params(labelbottom=True)
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
            ax.plot(columns, rows, "o", color="k", mec="w", mew=0.7, ms=4)  # seen on dark blue
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
    shifts = np.linspace(0.22, -0.22, len(columns)) if len(columns) > 1 else [0]
    for shift, (name, (one, colour)) in zip(shifts, columns.items(), strict=True):
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
    figure, axes = panels(first.sizes["task"], 3.1, 2.5, columns=3)
    for ax, task in zip(axes, first.task.values, strict=True):
        shifts = np.linspace(-0.15, 0.15, len(columns)) if len(columns) > 1 else [0]
        for shift, (name, (one, colour)) in zip(shifts, columns.items(), strict=True):
            if task not in one.task.values:
                continue
            here = one.sel(task=task)
            ax.vlines(here.layer + shift, here.low, here.high, color=colour, lw=1.6)
            ax.plot(here.layer + shift, here.value, "o", color=colour, ms=3.5, label=name)
        ax.axhline(0, color="k", lw=0.6)
        ticks = first.layer.values[:: 1 if len(first.layer) < 8 else 2]
        ax.set(title=task, xlabel="layer", xticks=ticks)
    if axes:
        axes[0].set_ylabel(ylabel)
    if axes and len(columns) > 1:
        look: dict[str, Any] = {"loc": "outside upper left", "frameon": False, "fontsize": 8.5}
        figure.legend(*axes[0].get_legend_handles_labels(), ncols=len(columns), **look)
    return figure


def name_heads(
    ax: Axes, x: xr.DataArray, y: xr.DataArray, heads: Iterable[tuple[int, int]]
) -> None:
    """Write the names of some heads beside their dots; to the left of a dot that has another to its right.

    Args:
        ax: with a scatter of heads.
        x, y: the places of the dots, with axes layer and head.
        heads: (layer, head), counted from 1.
    """
    dots = {
        one: [values.sel(layer=one[0], head=one[1]).item() for values in (x, y)] for one in heads
    }
    near = 0.05 * np.ptp(ax.get_ylim())
    for (layer, head), (across, up) in dots.items():
        left = any(other > across and abs(high - up) < near for other, high in dots.values())
        name, side = (f"({layer}, {head}) ", "right") if left else (f" ({layer}, {head})", "left")
        ax.annotate(name, (across, up), fontsize=7.5, va="center", ha=side)


def table_map(
    ax: Axes,
    values: pd.DataFrame,
    limits: tuple[float, float],
    title: str = "",
    texts: pd.DataFrame | None = None,
) -> None:
    """Draw a table of numbers, each in a cell of its colour (Fig 7).

    Args:
        ax: matplotlib axes.
        values: the table, with the names of its rows and columns.
        limits: values at the two ends of the colour scale.
        title: above it.
        texts: what the cells say; by default the numbers with two decimals.
    """
    look: dict[str, Any] = {"linewidths": 0.4, "linecolor": "white", "annot_kws": {"fontsize": 8}}
    look |= {"cmap": "mako_r", "vmin": limits[0], "vmax": limits[1], "cbar": False}  # dark is more
    look |= {"annot": True, "fmt": ".2f"} if texts is None else {"annot": texts, "fmt": ""}
    sns.heatmap(values, ax=ax, **look)
    ax.set(title=title, xlabel="", ylabel="")
    ax.tick_params(length=0, labelsize=8)
    ax.tick_params(axis="x", rotation=40)
    ax.tick_params(axis="y", rotation=0)


def draw_map(
    ax: Axes, weights: np.ndarray, tokens: Sequence[str], title: str = "", most: float = 1.0
) -> AxesImage:
    """Draw one self-attention map: queries from top to bottom, keys from left to right (Fig 1).

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        title: above the map.
        most: where the scale ends.

    Returns:
        The image, for a colour bar.
    """
    image = ax.imshow(weights, cmap="Blues", vmin=0, vmax=most, interpolation="nearest")
    ax.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=7)
    ax.set_yticks(range(len(tokens)), tokens, fontsize=7)
    ax.set(title=title, xlabel="to token", ylabel="from token")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def token_map(
    weights: np.ndarray, tokens: Sequence[str], title: str = "", most: float = 1.0
) -> Figure:
    """A figure of one map with its scale; see :func:`draw_map`."""
    side = 2 + 0.17 * len(tokens)  # inches
    figure, ax = plt.subplots(figsize=(side + 0.8, side))
    image = draw_map(ax, weights, tokens, title, most)
    figure.colorbar(image, ax=[ax], label="attention weight", shrink=0.8)
    return figure


def outline(ax: Axes, cells: Iterable[tuple[int, int]], **line: Any) -> None:
    """Outline cells of a self-attention map, in orange.

    Args:
        ax: matplotlib axes.
        cells: (row, column) of each, from 0.
        line: other properties of matplotlib's Rectangle, such as ``linestyle``.
    """
    look = {"fill": False, "edgecolor": COLOURS["orange"], "linewidth": 1.8, "clip_on": False}
    for row, column in cells:
        ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, **look | line))


def map_picture(
    ax: Axes, weights: np.ndarray, separators: Sequence[int] = (), title: str = ""
) -> None:
    """Draw one self-attention map without its tokens, for its pattern (§4.1).

    The colour scale ends at the map's own maximum and lifts what is faint, so that the pattern
    shows whatever the weights' size. [SEP] is marked at both axes.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens).
        separators: positions of [SEP].
        title: above the map.
    """
    ax.imshow(
        weights, cmap="Blues", norm=PowerNorm(0.5, 0, np.max(weights)), interpolation="nearest"
    )
    ax.set_xticks(separators, [""] * len(separators))
    ax.set_yticks(separators, [""] * len(separators))
    ax.tick_params(color=COLOURS["red"], length=4, width=1.5)
    ax.spines[:].set(visible=True, linewidth=0.5, color=COLOURS["grey"])
    ax.set_title(title, fontsize=7, fontweight="normal", pad=3)


FAINTEST = 0.4  # of a uniform weight: lines of smaller weights would only grey the picture


def attention_lines(
    ax: Axes, weights: np.ndarray, tokens: Sequence[str], marked: Iterable[tuple[int, int]] = ()
) -> None:
    """Draw one map as lines from each query, left, to its keys, right; thick and dark is a large weight.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces, drawn from top to bottom.
        marked: (query, key) of the lines that are orange instead of grey, from 0.
    """
    drawn = np.argwhere(weights >= FAINTEST / len(tokens))
    drawn = drawn[np.argsort(weights[tuple(drawn.T)], kind="stable")]  # the darkest on top
    shown, chosen = weights[tuple(drawn.T)], set(marked)
    base = [COLOURS["orange" if (q, k) in chosen else "grey"] for q, k in drawn.tolist()]
    # Mixed with white instead of transparent: crossings of faint lines stay faint.
    colours = 1 - np.minimum(1, 0.15 + shown)[:, None] * (1 - to_rgba_array(base)[:, :3])
    lines = [[(0, query), (1, key)] for query, key in drawn]
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=0.4 + 3 * shown))
    for x, side, name in ((-0.03, "right", "from"), (1.03, "left", "to")):
        look: dict[str, Any] = {"ha": side, "va": "center", "fontsize": 9}
        ax.text(x, -1.1, name, color=COLOURS["grey"], style="italic", **look)
        for place, token in enumerate(tokens):
            ax.text(x, place, token, **look)
    ax.set(xlim=(-0.75, 1.75), ylim=(len(tokens) - 0.4, -1.6))
    ax.set_axis_off()


def _height(words: int) -> float:
    """Of an arc over so many words; long ones are flatter."""
    return 1.4 * abs(words) ** 0.7


def tree_arcs(
    words: Sequence[str], gold: Sequence[int], found: Mapping[str, Sequence[int]], above: str
) -> Figure:
    """A sentence's tree above its words, and below them the tree that each of several methods finds; wrong arcs are dashed.

    Args:
        words: of the sentence.
        gold: the word to which each one is joined, from 0; -1 for none.
        found: by title of the panel, the same of a method.
        above: what stands above the words.
    """
    ends = np.cumsum([len(word) + 3.0 for word in words])
    at = ends - np.array([len(word) for word in words]) / 2
    right = {frozenset(arc) for arc in enumerate(gold)}
    top, below = (
        0.4 + max(_height(a - b) for one in trees for a, b in enumerate(one) if b >= 0) / 2
        for trees in ([gold], found.values())
    )
    figure, axes = panels(len(found), 6.0, 1.45, columns=1)
    for ax, (title, links) in zip(axes, found.items(), strict=True):
        for side, own in ((1, gold), (-1, links)):
            for word, other in enumerate(own):
                if other >= 0:
                    is_right = frozenset((word, other)) in right
                    look: dict[str, Any] = {"lw": 1.5, "ls": "-" if is_right else (0, (3, 2))}
                    look |= {"color": COLOURS["blue" if is_right else "orange"]}
                    look |= {"theta1": 90 - side * 90, "theta2": 270 - side * 90}
                    centre, width = (at[word] + at[other]) / 2, abs(at[word] - at[other])
                    ax.add_patch(Arc((centre, side * 0.3), width, _height(word - other), **look))
        for place, text in zip(at, words, strict=True):
            ax.text(place, 0, text, ha="center", va="center", size=8.5)
        look = {"color": COLOURS["grey"], "style": "italic", "size": 7.5, "va": "center"}
        for side, name in ((1, above), (-1, title)):
            ax.text(at[0] - 2.5, side * 0.8, name, ha="right", **look)
        ax.set(xlim=(at[0] - 3 - max(map(len, (above, *found))), ends[-1] + 2), ylim=(-below, top))
        ax.set_axis_off()
    return figure
