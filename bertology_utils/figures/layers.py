"""One bar per layer: where attention goes, and what disabling does."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..common import axis_numbers
from ..statistics import Bootstrap
from .style import COLOURS, FLOW_COLOURS


def flow(ax: Axes, shares: np.ndarray, names: Sequence[str], title: str = "") -> None:
    """Where each layer's attention goes: one bar per layer, layer 1 at the top, its parts in percent.

    Args:
        ax: matplotlib axes.
        shares: shape (layers, destinations), rows summing to 1.
        names: of the destinations, in order.
        title: above it.
    """
    left = np.zeros(len(shares))
    layers = axis_numbers(len(shares))
    for share, name, colour in zip(shares.T, names, FLOW_COLOURS, strict=True):
        ax.barh(layers, share, left=left, color=colour, label=name, height=0.86)
        dark = np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) < 0.55
        for layer, width, start in zip(layers, share, left, strict=True):
            if width >= 0.055:
                ax.text(
                    start + width / 2,
                    layer,
                    f"{100 * width:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
        left += share
    # Limits, not an inversion: panels that share the axis would each turn it over again.
    ax.set(title=title, xlim=(0, 1), ylim=(len(shares) + 0.5, 0.5), yticks=layers, xlabel="share of attention, %")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def flow_grid(panels: dict[str, np.ndarray], names: Sequence[str], columns: int = 3) -> Figure:
    """Several :func:`flow` side by side under one legend.

    Args:
        panels: by title, each of shape (layers, destinations).
        names: of the destinations.
        columns: panels in a row.

    Returns:
        The figure.
    """
    columns = min(columns, len(panels))
    layers, rows = max(len(shares) for shares in panels.values()), -(-len(panels) // columns)
    size = 3.6 * columns, (0.34 * layers + 0.9) * rows + 0.4
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax, (title, shares) in zip(axes.flat, panels.items(), strict=False):
        flow(ax, shares, names, title)
    for ax in axes[:, 0]:
        ax.set_ylabel("layer")
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names))
    return figure


def layer_bars(ax: Axes, gains: Sequence[Bootstrap], title: str) -> None:
    """What disabling a whole layer does: one point per layer with its interval, the whole model at 0 (Fig 9).

    Args:
        ax: matplotlib axes.
        gains: one Bootstrap per layer, from 0 to 1.
        title: above it.
    """
    layers = axis_numbers(len(gains))
    values = np.array([gain.value for gain in gains]) * 100
    intervals = np.array([gain.interval for gain in gains]) * 100
    ax.barh(layers, values, color=COLOURS["blue"], alpha=0.35, height=0.7)
    ax.hlines(layers, *intervals.T, color="black", lw=1)
    ax.plot(values, layers, "o", ms=4, color=COLOURS["blue"])
    ax.axvline(0, color=COLOURS["orange"], lw=2)
    ax.set(title=title, yticks=layers, xlabel="gain, points")
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.invert_yaxis()
