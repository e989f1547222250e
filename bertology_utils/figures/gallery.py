"""The forms of figure that the suite uses, side by side, to learn to read them."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..statistics import Bootstrap
from .heatmaps import heatmap
from .layers import layer_bars
from .maps import map_picture
from .style import COLOURS, GAIN


def gallery(
    weights: np.ndarray,
    separators: Sequence[int],
    shares: np.ndarray,
    similarity: np.ndarray,
    gains: np.ndarray,
    by_layer: Sequence[Bootstrap],
) -> Figure:
    """Five panels, lettered A to E: a map, a share, drift, gain, and dots with intervals.

    Args:
        weights: of one head, shape (tokens, tokens).
        separators: positions of [SEP].
        shares: what each head gives some token, from 0 to 1, shape (layers, heads).
        similarity: of each head's maps before and after fine-tuning, from 0 to 1, same shape.
        gains: score without each head minus the score with it, from −1 to 1, same shape.
        by_layer: the same for whole layers.

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
    layer_bars(axes["E"], by_layer, "")
    axes["E"].set(ylabel="layer")
    titles = {"A": "map", "B": "heads", "C": "drift", "D": "gain", "E": "dots with intervals"}
    for letter, title in titles.items():
        axes[letter].set_title(f"{letter} · {title}", loc="left", fontsize=10, fontweight="bold")
    return figure
