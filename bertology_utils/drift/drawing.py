"""The figures of §4.3 that are made for it alone: Table 1 as a picture, the change by layer, one head's two maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..common import axis_numbers
from ..glue.tasks import Task, plain_metric
from ..statistics import Bootstrap, Seed, over_trainings, resampled_means
from .table1 import COLUMNS, paper_points

# By comparison: colour, and line with marks.
COMPARISONS = {
    "fine-tuning": ("blue", ".-"),
    "fine-tuning again": ("blue", ".:"),
    "another seed": ("green", "x--"),
    "random start": ("orange", "s-"),
}


def table1_panels(scores: Mapping[Task, Mapping[str, Mapping[str, Bootstrap]]], constant: Mapping[Task, float]):
    """Scores of the three columns beside the paper's, per task.

    Args:
        scores: by task, column and metric, from :func:`bertology_utils.drift.table1.score_task`.
        constant: what always the same answer scores.

    Returns:
        The figure.
    """
    marks = {"pretrained": ("o", "grey"), "normal": ("s", "orange"), "finetuned": ("D", "blue")}
    figure, axes = plt.subplots(1, len(scores), figsize=(1.5 * len(scores) + 1, 3.4), sharey=True, squeeze=False)
    for ax, (task, columns) in zip(axes.flat, scores.items(), strict=True):
        metric = plain_metric(task)
        for x, (column, (marker, colour)) in enumerate(marks.items()):
            ours, low_high = columns[column][metric], np.array(columns[column][metric].interval)
            ax.errorbar(
                x,
                100 * ours.value,
                yerr=100 * abs(low_high - ours.value)[:, None],
                fmt=marker,
                capsize=2,
                color=figures.COLOURS[colour],
                label=COLUMNS[column],
            )
            ax.plot(x + 0.3, paper_points(task, column, metric), marker, mfc="none", color=figures.COLOURS[colour])
        ax.axhline(100 * constant[task], ls="--", lw=0.8, color="black", label="constant answer")
        ax.set(title=task.title, xticks=[], xlabel=metric, xlim=(-0.5, 2.8), ylim=(-12, 104))
    axes[0, 0].plot([], [], "o", mfc="none", color="black", label="hollow: the paper's")
    axes[0, 0].set_ylabel("score × 100")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=5)
    return figure


def change_by_layer(similarity: Mapping[Task, Mapping[str, np.ndarray]], seeds: Mapping[Task, Seed]):
    """Mean similarity by layer with its interval, for fine-tuning and its controls, per task.

    Args:
        similarity: by task and comparison, each of shape (examples, layers, heads).
        seeds: of each task's resampling of examples.

    Returns:
        The figure.
    """
    count = len(similarity)
    figure, axes = plt.subplots(1, count, figsize=(1.6 * count + 1, 2.9), sharey=True, squeeze=False)
    for ax, (task, by_name) in zip(axes.flat, similarity.items(), strict=True):
        for name, (colour, line) in COMPARISONS.items():
            colour, means = figures.COLOURS[colour], resampled_means(by_name[name].mean(axis=2), seeds[task])
            numbers = axis_numbers(means.shape[1])
            ax.fill_between(numbers, *np.percentile(means, [2.5, 97.5], axis=0), color=colour, alpha=0.3, lw=0)
            ax.plot(numbers, by_name[name].mean(axis=(0, 2)), line, ms=4, color=colour, label=name)
        ax.set(title=task.title, xlabel="layer", xticks=numbers[:: 1 + len(numbers) // 8])
        ax.tick_params(axis="x", labelsize=7)
    axes[0, 0].set_ylabel("mean cosine similarity")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=4)
    return figure


def put_back(changes: Mapping[Task, Sequence[Sequence[Bootstrap]]], pairs: Sequence[str]):
    """What putting back two neighbouring layers does to the score, per task.

    Args:
        changes: by task, of every training, for each pair of layers.
        pairs: how the pairs are called.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(changes), figsize=(1.6 * len(changes) + 1, 2.9), sharey=True, squeeze=False)
    for ax, (task, trainings) in zip(axes.flat, changes.items(), strict=True):
        over = [over_trainings(several) for several in zip(*trainings, strict=True)]
        values = np.array([100 * estimate.value for estimate in over])
        ends = np.array([[100 * end for end in estimate.interval] for estimate in over]).T  # (2, pairs)
        # With two trainings an interval may be wider than any score.
        ends = np.clip(ends, -100, 100)
        ax.vlines(range(len(pairs)), *ends, color=figures.COLOURS["blue"], lw=1)
        ax.plot(values, "o-", ms=4, color=figures.COLOURS["blue"])
        ax.axhline(0, lw=0.8, color="black")
        ax.set(title=task.title, xlabel="layers put back", xticks=range(len(pairs)))
        ax.set_xticklabels(pairs, fontsize=6)
    every = [100 * change.value for trainings in changes.values() for several in trainings for change in several]
    lowest = min((value for value in every if np.isfinite(value)), default=0.0)
    axes[0, 0].set(ylabel="change of the score, points", ylim=(1.3 * min(lowest, -2), max(3, -0.15 * lowest)))
    return figure


def before_and_after(maps: Mapping[str, np.ndarray], tokens: Sequence[str], title: str):
    """One head's maps of one input, before and after fine-tuning.

    Args:
        maps: by title, two of shape (tokens, tokens).
        tokens: the wordpieces.
        title: above both.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 4.2))
    for ax, (name, weights) in zip(axes, maps.items(), strict=True):
        image = figures.attention_map(ax, weights, tokens, name)
    figure.suptitle(title)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure
