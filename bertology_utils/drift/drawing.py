"""Maps before and after fine-tuning, and how alike they are by layer (§4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..common import axis_numbers
from ..glue.tasks import Task
from ..statistics import Seed, resampled_means

# By comparison: colour, and line with marks.
COMPARISONS = {
    "fine-tuning": ("blue", ".-"),
    "fine-tuning again": ("blue", ".:"),
    "another seed": ("green", "x--"),
    "random start": ("orange", "s-"),
}


def change_by_layer(similarity: Mapping[Task, Mapping[str, np.ndarray]], seeds: Mapping[Task, Seed]):
    """Mean similarity by layer with its interval, for fine-tuning and its controls, per task.

    Args:
        similarity: by task and comparison, each of shape (examples, layers, heads); not every task has a random start.
        seeds: of each task's resampling of examples.

    Returns:
        The figure.
    """
    count = len(similarity)
    figure, axes = plt.subplots(1, count, figsize=(1.6 * count + 1, 2.9), sharey=True, squeeze=False)
    for ax, (task, by_name) in zip(axes.flat, similarity.items(), strict=True):
        of_more = {name: ("blue", ":") for name in by_name if name.startswith("fine-tuning") and name not in COMPARISONS}
        drawn = {name: look for name, look in (COMPARISONS | of_more).items() if name in by_name}
        for name, (colour, line) in drawn.items():
            colour, means = figures.COLOURS[colour], resampled_means(by_name[name].mean(axis=2), seeds[task])
            numbers = axis_numbers(means.shape[1])
            ax.fill_between(numbers, *np.percentile(means, [2.5, 97.5], axis=0), color=colour, alpha=0.3, lw=0)
            ax.plot(numbers, by_name[name].mean(axis=(0, 2)), line, ms=4, color=colour, label=name)
        ax.set(title=task.title, xlabel="layer", xticks=numbers[:: 1 + len(numbers) // 8])
        ax.tick_params(axis="x", labelsize=7)
    axes[0, 0].set_ylabel("mean cosine similarity")
    handles = {label: one for ax in axes.flat for one, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncol=4)
    return figure


def before_and_after(before: np.ndarray, after: np.ndarray, tokens: Sequence[str], title: str):
    """One head's maps of one input, before and after fine-tuning; the scale ends at the largest weight.

    Args:
        before, after: shape (tokens, tokens).
        tokens: the wordpieces.
        title: above both.

    Returns:
        The figure.
    """
    side = 1.6 + 0.2 * len(tokens)  # inches
    figure, axes = plt.subplots(1, 2, figsize=(2 * side + 0.8, side))
    for ax, weights, name in zip(axes, (before, after), ("pre-trained", "fine-tuned"), strict=True):
        image = figures.attention_map(ax, weights, tokens, name)
        image.set_clim(0, float(max(before.max(), after.max())))
    figure.suptitle(title)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure
