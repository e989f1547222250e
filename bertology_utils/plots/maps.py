"""Self-attention maps, tables with coloured cells, and trees of sentences."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Arc

from .arrays import panels
from .style import COLOURS, MAP

FAINTEST = 0.4  # of a uniform weight: lines of smaller weights would only grey the picture


def table_map(ax: Axes, values: pd.DataFrame, limits: tuple[float, float], title: str = "") -> None:
    """Draw a table of numbers, each in a cell of its colour (Fig 7).

    Args:
        ax: matplotlib axes.
        values: the table, with the names of its rows and columns.
        limits: values at the two ends of the colour scale.
        title: above it.
    """
    look: dict[str, Any] = {"linewidths": 0.4, "linecolor": "white", "annot_kws": {"fontsize": 8}}
    look |= {"cmap": MAP, "vmin": limits[0], "vmax": limits[1], "cbar": False}
    sns.heatmap(values, ax=ax, annot=True, fmt=".2f", **look)
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


def token_maps(maps: Mapping[str, np.ndarray], tokens: Sequence[str], most: float = 1.0) -> Figure:
    """Maps of one input side by side, each a :func:`draw_map` under its title, with their scale.

    Args:
        maps: by title, each of shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces.
        most: where the scale ends.
    """
    side = 2 + 0.17 * len(tokens)  # inches
    figure, axes = plt.subplots(1, len(maps), figsize=(len(maps) * side + 0.8, side), squeeze=False)
    for ax, (title, weights) in zip(axes.flat, maps.items(), strict=True):
        image = draw_map(ax, weights, tokens, title, most)
        if ax is not axes[0, 0]:
            ax.set_ylabel("")
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure


def outline(
    ax: Axes, cells: Iterable[tuple[int, int]], colour: str = "orange", **line: Any
) -> None:
    """Outline cells of a self-attention map, or heads of a :func:`head_map`.

    Args:
        ax: matplotlib axes.
        cells: (row, column) of each, from 0. There is one outline around cells that fill a
            rectangle, else one around each.
        colour: one of :data:`COLOURS`.
        line: other properties of matplotlib's Rectangle, such as ``linestyle``.
    """
    places = np.array(list(cells)).reshape(-1, 2)
    rectangle = len(places) and len(places) == np.prod(np.ptp(places, axis=0) + 1)
    look = {"fill": False, "edgecolor": COLOURS[colour], "linewidth": 1.8, "clip_on": False} | line
    for part in [places] if rectangle else places[:, None]:
        y, x = part.min(axis=0) - 0.5
        height, width = np.ptp(part, axis=0) + 1
        ax.add_patch(plt.Rectangle((x, y), width, height, **look))


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


def map_grid(maps: Sequence[Any], titles: Sequence[str], columns: int) -> tuple[Figure, np.ndarray]:
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
    figure, axes = panels(len(found), 8.0, 2.4, columns=1)
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
            ax.text(place, 0, text, ha="center", va="center")
        look = {"color": COLOURS["grey"], "style": "italic", "size": "small", "va": "center"}
        for side, name in ((1, above), (-1, title)):
            ax.text(at[0] - 2.5, side * 0.8, name, ha="right", **look)
        ax.set(xlim=(at[0] - 3 - max(map(len, (above, *found))), ends[-1] + 2), ylim=(-below, top))
        ax.set_axis_off()
    return figure
