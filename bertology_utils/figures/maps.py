"""Self-attention maps, and sentences with their annotation."""

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from .style import COLOURS


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
