"""What one head does, as lines from token to token."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from .style import COLOURS

FAINTEST = 0.4  # of an equal share: lines of smaller weights would only grey the picture


def attention_lines(ax: Axes, weights: np.ndarray, tokens: Sequence[str], title: str = "") -> None:
    """One self-attention map as lines: who attends at the left, to whom at the right; thick and dark is a large weight.

    Args:
        ax: matplotlib axes.
        weights: shape (tokens, tokens), rows summing to 1.
        tokens: the wordpieces, drawn from top to bottom.
        title: above.
    """
    drawn = np.argwhere(weights >= FAINTEST / len(tokens))
    drawn = drawn[np.argsort(weights[tuple(drawn.T)], kind="stable")]  # the darkest last, on top
    sizes = weights[tuple(drawn.T)]
    lines = [[(0, query), (1, key)] for query, key in drawn]
    # Mixed with white instead of transparent: crossings of faint lines stay faint.
    colours = 1 - np.minimum(1, 0.15 + sizes)[:, None] * (1 - np.array(to_rgb(COLOURS["blue"])))
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=0.4 + 3 * sizes))
    for place, token in enumerate(tokens):
        ax.text(-0.03, place, token, ha="right", va="center", fontsize=8)
        ax.text(1.03, place, token, ha="left", va="center", fontsize=8)
    for name, x, side in (("from", -0.03, "right"), ("to", 1.03, "left")):
        ax.text(x, -1.1, name, ha=side, va="center", fontsize=8, color=COLOURS["grey"], style="italic")
    ax.set(xlim=(-0.75, 1.75), ylim=(len(tokens) - 0.4, -1.6), title=title)
    ax.set_axis_off()


def line_panels(panels: dict[str, np.ndarray], tokens: Sequence[str]) -> Figure:
    """Several :func:`attention_lines` of one input side by side.

    Args:
        panels: by title, each of shape (tokens, tokens).
        tokens: the wordpieces.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 0.19 * len(tokens) + 1), squeeze=False)
    for ax, (title, weights) in zip(axes.flat, panels.items(), strict=True):
        attention_lines(ax, weights, tokens, title)
    return figure
