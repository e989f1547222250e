"""The figures of §4.5 that are made for it alone: links beside neighbours, and what [CLS] looks at (Fig 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..annotation.token_types import TOKEN_TYPES
from ..common import head_name
from ..statistics import ties


def links_and_neighbours(
    scores: Mapping[str, np.ndarray], clear: Mapping[str, np.ndarray], neighbours: np.ndarray, even: float
):
    """Attention along links beside attention to neighbours, a panel for each type of link and a point for each head.

    Orange heads have a clear excess over other inputs' places; the three highest carry their names.

    Args:
        scores: by type of link, the weight along it, shape (layers, heads).
        clear: by type of link, where the excess is clear, shape (layers, heads).
        neighbours: attention to the previous or next token, shape (layers, heads).
        even: what an even head gives any token.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(scores), figsize=(3.3 * len(scores), 3.4), sharey=True, squeeze=False)
    for ax, (kind, score) in zip(axes.flat, scores.items(), strict=True):
        for chosen, colour, label in (
            (~clear[kind], "grey", "no clear excess"),
            (clear[kind], "orange", "clear excess over other inputs' places"),
        ):
            ax.scatter(neighbours[chosen], score[chosen], s=18, alpha=0.7, color=figures.COLOURS[colour], label=label, lw=0)
        for at, shift in zip(ties.heads_by_size(score), [(-4, 6), (6, -1), (6, -10)], strict=False):
            ax.annotate(head_name(*at), (neighbours[at], score[at]), textcoords="offset points", xytext=shift, fontsize=7)
        ax.axhline(even, color=figures.COLOURS["grey"], ls=":", lw=1)
        ax.set(title=kind, xlabel="attention to previous or next token", xscale="log")
        ax.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"], minor=False)
        ax.minorticks_off()
    axes.flat[0].set_ylabel("attention along links")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def weights_from_cls(weights: Mapping[str, np.ndarray], tasks: Sequence[str]):
    """What [CLS] gives each type of token in the last layer, a table for each model on one scale (Fig 7).

    Args:
        weights: by model, shape (tasks, types), types in the order of :data:`TOKEN_TYPES`; NaN where there is none.
        tasks: their names.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(weights), figsize=(14, 0.36 * len(tasks) + 1.6), sharey=True)
    most = max(np.nanmax(values) for values in weights.values())
    for ax, (name, values) in zip(axes, weights.items(), strict=True):
        figures.table_map(ax, values, tasks, TOKEN_TYPES, (0, most), f"{name}: weight from [CLS]")
    return figure
