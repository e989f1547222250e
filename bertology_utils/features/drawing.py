"""The figures of §4.4 that are made for it alone: rows of heatmaps for types of token, and weights by layer (Fig 6)."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..common import axis_numbers


def rows_of_types(panels: dict[str, np.ndarray], label: str, tasks: int, signed: bool = False):
    """Heatmaps with a row for each type of token and a column for each task; each row has its own scale (Fig 6).

    Args:
        panels: by title, row after row, each of shape (layers, heads).
        label: what the colours mean, with the unit.
        tasks: panels in a row.
        signed: values can be below 0, which is then the middle of the scale.

    Returns:
        The figure.
    """
    values = np.abs(list(panels.values()))  # (rows · tasks, layers, heads)
    most = np.nanmax(values.reshape(len(panels) // tasks, -1), axis=1).tolist()
    limits = [(-end if signed else 0, end) for end in most]
    return figures.heatmap_grid(
        panels, label, limits, cmap="vlag" if signed else figures.MAP, columns=tasks, panel=(1.95, 1.75)
    )


def weights_by_layer(tuned: Mapping[str, Mapping[str, np.ndarray]], pretrained: Mapping[str, np.ndarray], even: float):
    """What special tokens get in every layer, a panel each: a line for each task, dashed before fine-tuning.

    Args:
        tuned: by type of token and then by task, of the fine-tuned models, shape (layers,).
        pretrained: by type of token, shape (layers,).
        even: what an even head would give any token.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(tuned), figsize=(4.5 * len(tuned), 3.2))
    for ax, (kind, by_task) in zip(axes, tuned.items(), strict=True):
        layers = axis_numbers(len(pretrained[kind]))
        for title, weights in by_task.items():
            ax.plot(layers, weights, label=title, lw=1.4)
        ax.plot(layers, pretrained[kind], color="black", ls="--", label="pre-trained")
        ax.axhline(even, color=figures.COLOURS["grey"], ls=":", label="even")
        ax.set(title=kind, xlabel="layer", ylabel="mean weight", ylim=(0, None), xticks=layers)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
    return figure
