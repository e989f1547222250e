"""Maps as pictures: one input's heads with their tokens, every head at once, and one head on many inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .. import figures
from ..common import axis_numbers
from ..glue.tasks import TASKS
from .labelled_maps import PATTERNS, LabelledMap


@dataclass(frozen=True)
class Shown:
    """A map that is drawn without its tokens.

    Attributes:
        weights: shape (tokens, tokens).
        separators: positions of [SEP].
        title: above it.
    """

    weights: np.ndarray
    separators: Sequence[int] = ()
    title: str = ""


def with_tokens(maps: Mapping[str, np.ndarray], tokens: Sequence[str]) -> Figure:
    """Heads of one input side by side, tokens on the axes, on one scale from 0 to 1 that lifts faint weights.

    Args:
        maps: by title, each of shape (tokens, tokens).
        tokens: the wordpieces.

    Returns:
        The figure.
    """
    side = 1.3 + 0.165 * len(tokens)  # inches
    figure, axes = plt.subplots(1, len(maps), figsize=(side * len(maps) + 0.6, side), squeeze=False)
    for ax, (title, weights) in zip(axes.flat, maps.items(), strict=True):
        image = figures.attention_map(ax, weights, tokens, title)
        image.set_norm(PowerNorm(0.5, 0, 1))
        if ax is not axes.flat[0]:
            ax.set(ylabel="", yticks=[])
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.7, pad=0.01)
    return figure


def in_rows(rows: Mapping[str, Sequence[Shown]]) -> Figure:
    """Maps in rows, each row under its name.

    Args:
        rows: by name, as many maps in each.

    Returns:
        The figure.
    """
    shown = [one for row in rows.values() for one in row]
    figure, axes = figures.map_grid(shown, [one.title for one in shown], columns=len(shown) // len(rows))
    for ax, name in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(name.replace("+", "\n+ "), fontsize=8)
    return figure


def labelled(one: LabelledMap) -> Shown:
    """A labelled map under its task and its length in wordpieces."""
    return Shown(one.weights, one.separators, f"{TASKS[one.task].title}, {len(one.weights)}")


def sheet(maps: Sequence[LabelledMap], of: int, columns: int = 10) -> Figure:
    """A contact sheet of maps with one label.

    Args:
        maps: what is shown.
        of: how many there are.
        columns: maps in a row.

    Returns:
        The figure.
    """
    shown = [labelled(one) for one in maps]
    figure, _ = figures.map_grid(shown, [one.title for one in shown], columns)
    figure.suptitle(f"{maps[0].pattern.replace('+', ' + ')}: {len(maps)} of {of} maps")
    return figure


def every_head(maps: np.ndarray, patterns: np.ndarray, separators: Sequence[int]) -> Figure:
    """All heads' maps of one input, layers from top to bottom, each in a frame of its pattern's colour.

    Args:
        maps: shape (layers, heads, tokens, tokens).
        patterns: indices into PATTERNS, shape (layers, heads).
        separators: positions of [SEP].

    Returns:
        The figure.
    """
    layers, heads = patterns.shape
    figure, axes = plt.subplots(layers, heads, figsize=(0.82 * heads + 0.4, 0.82 * layers + 0.8), squeeze=False)
    for layer, row in enumerate(axes):
        for head, ax in enumerate(row):
            figures.map_picture(ax, maps[layer, head])
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(color=figures.PATTERN_COLOURS(int(patterns[layer, head])), linewidth=2.5)
    for row, number in zip(axes, axis_numbers(layers), strict=True):
        row[0].set_ylabel(f"layer {number}", fontsize=8)
    for ax, number in zip(axes[0], axis_numbers(heads), strict=True):
        ax.set_title(f"head {number}", fontsize=7, fontweight="normal", pad=3)
    frames = [Patch(facecolor="white", edgecolor=figures.PATTERN_COLOURS(index), lw=2.5) for index in range(len(PATTERNS))]
    figure.legend(frames, PATTERNS, loc="outside lower center", ncol=len(PATTERNS), fontsize=8)
    return figure
