"""The figures of §4.2: annotated sentences, links in maps, every head's score and excess.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plots
from ..common import head_name
from ..plots import COLOURS
from ..published import published_panel
from ..results import Results
from ..statistics import ONE_SIDED, heads_by_size
from ..verdicts import WEIGHT
from . import measure
from .release import FrameSentence

TOP = 15  # heads of which a figure shows what controls leave


def annotated_sentence(sentence: FrameSentence) -> Figure:
    """A sentence with its predicate in blue, linked core elements in orange, other elements in grey (Fig 4)."""
    linked = {span for spans in sentence.elements for span in spans}
    exemplar = sentence.exemplar
    figure, ax = plt.subplots(figsize=(0.105 * len(exemplar.text) + 0.6, 1.1))
    ax.set(xlim=(-0.5, len(exemplar.text) + 0.5), ylim=(-1.5, 1.4))
    ax.set_axis_off()
    ax.set_title(f"{exemplar.unit}: {exemplar.frame}", loc="left")
    centred = {"ha": "center", "va": "center"}
    for place, character in enumerate(exemplar.text):
        ax.text(place + 0.5, 0.4, character, family="DejaVu Sans Mono", fontsize=11, **centred)
    for span in (*exemplar.target, *exemplar.elements):
        target = span in exemplar.target
        colour = COLOURS["blue" if target else "orange" if span in linked else "grey"]
        ax.axvspan(span.start, span.end, 0.45, 0.85, color=colour, alpha=0.25, lw=0)
        middle, name = (span.start + span.end) / 2, "predicate" if target else span.name
        ax.text(middle, -0.75, name, fontsize=8, color=colour, fontweight="bold", **centred)
    return figure


def link_in_map(link: measure.Seen, reverse: bool = False) -> Figure:
    """A head's map of a sentence, with the cells of its links framed in orange (Fig 3).

    Args:
        link: the map and the cells.
        reverse: True to frame the cells of the opposite direction in green.
    """
    side = max(3.3, 1.5 + 0.2 * len(link.tokens))  # inches
    figure, ax = plt.subplots(figsize=(side + 1.2, side + 0.2))
    image = plots.draw_map(ax, link.weights, link.tokens, f"head {head_name(*link.head)}")
    if reverse:
        plots.outline(ax, [cell[::-1] for cell in link.cells], "green", linewidth=2.4)
    plots.outline(ax, link.cells, linewidth=2.4)
    figure.colorbar(image, ax=ax, label="attention weight", shrink=0.6)
    return figure


def weights_at_places(link: measure.Seen, places: Sequence[set[tuple[int, int]]]) -> Figure:
    """A head's largest weight along a sentence's links and at each other place, before and after correction.

    Args:
        link: a head's map of the sentence.
        places: the cells of every place that the links are compared with.
    """
    corrected = link.weights - link.weights.mean(axis=0)
    panels = {"attention weight": link.weights, "minus the mean weight of the column": corrected}
    figure, axes = plots.panel_grid(2, 4.3, 0.24 * len(places) + 1.2, sharey=True)
    chosen = [max(cells, key=lambda cell: link.weights[cell]) for cells in [link.cells, *places]]
    names = [f"{link.tokens[row]} → {link.tokens[column]}" for row, column in chosen]
    at = np.arange(len(chosen))
    for ax, (title, weights) in zip(axes, panels.items(), strict=True):
        largest = [max(weights[cell] for cell in cells) for cells in [link.cells, *places]]
        mean = np.mean(largest[1:])
        ax.barh(at, largest, color=[COLOURS["orange"], *[COLOURS["green"]] * len(places)])
        ax.axvline(mean, color="black", lw=1.2, ls="--")
        ax.axvline(0, color=COLOURS["grey"], lw=0.8)
        arrow = {"arrowstyle": "<->", "color": "black"}
        ax.annotate("", (largest[0], -0.75), (mean, -0.75), arrowprops=arrow)
        middle, number = (largest[0] + mean) / 2, f"excess {largest[0] - mean:.2f}"
        ax.text(middle, -0.9, number, ha="center", fontsize=9)
        ax.set(xlabel=title, ylim=(len(at) - 0.4, -1.6))
        ax.set_yticks(at, [f"{names[0]} (the link)", *names[1:]])
        ax.tick_params(axis="y", length=0)
    _on_one_scale(axes)
    return figure


def _on_one_scale(axes: Sequence[Axes]) -> None:
    low, high = zip(*(ax.get_xlim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_xlim(min(low), max(high))


def sorted_scores(results: Results) -> Figure:
    """All heads sorted by their score along links, beside those of random weights: does any stand out?

    Those beyond the 99th percentile are orange.
    """
    panels: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        f"{measure.PUBLISHED}\n{measure.DIRECTIONS[1]}": (published_panel("framenet"), None)
    }
    for direction in measure.DIRECTIONS[::-1]:
        panels[f"this model\n{direction}"] = (
            results.array(measure.SCORE, kind=direction),
            results.array(measure.ELSEWHERE, kind=direction, state=measure.RANDOM),
        )
    figure, axes = plots.panel_grid(len(panels), 3.2, 2.9, sharey=True)
    for ax, (title, (scores, random)) in zip(axes, panels.items(), strict=True):
        ax.set_title(title, fontsize=10)
        values = np.sort(scores, axis=None)
        beyond = values > np.percentile(values, 99)
        rank = np.arange(1, values.size + 1)
        ax.plot(rank, values, ".", color=COLOURS["blue"], ms=5)
        ax.plot(rank[beyond], values[beyond], "o", color=COLOURS["orange"], ms=7)
        ax.text(
            *(0.97 * rank[beyond][0], values[beyond].max()),
            f"{beyond.sum()} of {values.size}  ",
            color=COLOURS["orange"],
            ha="right",
            va="center",
            fontsize=10,
        )
        if random is not None:
            ax.plot(rank, np.sort(random, axis=None), color=COLOURS["grey"], lw=2)
            ax.text(1, random.min() + 0.008, "random weights", color=COLOURS["grey"], fontsize=9)
        ax.set_xlabel("head, sorted by score")
    axes[0].set_ylabel("score")
    return figure


def links_and_places(results: Results) -> Figure:
    """A dot for each head: its mean weight along links against that at other sentences' places, by direction.

    Heads that follow links are orange and named.
    """
    panels = {}
    for direction in measure.DIRECTIONS:
        elsewhere = results.array(measure.ELSEWHERE, kind=direction, state=measure.OTHER_PLACES)
        panels[direction] = elsewhere, results.array(measure.SCORE, kind=direction)
    end = 1.08 * max(np.max(both) for both in panels.values())
    figure, axes = plots.panel_grid(2, 4.2, 4.3, sharey=True)
    for ax, (direction, (elsewhere, along)) in zip(axes, panels.items(), strict=True):
        following = results.array(measure.P_OF_EXCESS, kind=direction) <= ONE_SIDED
        ax.plot([0, end], [0, end], color=COLOURS["grey"], lw=1, zorder=0)
        ax.scatter(elsewhere[~following], along[~following], s=12, color=COLOURS["blue"], alpha=0.6)
        ax.scatter(elsewhere[following], along[following], s=50, color=COLOURS["orange"])
        names = sorted(map(tuple, np.argwhere(following)), key=lambda head: along[head])
        for at, head in enumerate(names):  # by turns beside and above, so that names do not overlap
            offset = -6, 15 * (at % 2)
            where = elsewhere[head], along[head]
            ax.annotate(
                head_name(*head), where, offset, textcoords="offset points", ha="right", va="center"
            )
        ax.text(0.98 * end, 0.9 * end, "equal", color=COLOURS["grey"], ha="right", fontsize=9)
        who = "text" if direction == measure.FORWARD else "code"
        count = f"{following.sum()} of {along.size} heads follow links"
        ax.set_title(f"{direction} (the paper's {who})\n{count}", fontsize=10)
        ax.xaxis.set_major_locator(plt.MultipleLocator(0.05))
        ax.yaxis.set_major_locator(plt.MultipleLocator(0.05))
        ax.set(xlim=(0, end), ylim=(0, end), aspect="equal")
        ax.set_xlabel("mean weight at other sentences' places")
    axes[0].set_ylabel("mean weight along links")
    return figure


def two_controls(results: Results) -> Figure:
    """What each control leaves of the heads with the largest excess, a panel for each direction.

    Heads that follow links are orange.
    """
    figure, axes = plots.panel_grid(2, 4.4, 0.24 * TOP + 1.3)
    for ax, direction in zip(axes, measure.DIRECTIONS, strict=True):
        first, both = (
            results.array(measure.EXCESS, kind=direction, state=state)
            for state in (measure.WEIGHT_ALONE, measure.BOTH)
        )
        following = results.array(measure.P_OF_EXCESS, kind=direction) <= ONE_SIDED
        heads = heads_by_size(first)[:TOP]
        for at, head in enumerate(heads):
            colour = COLOURS["orange" if following[head] else "blue"]
            ax.plot([both[head], first[head]], [at, at], color="#c9ccd1", lw=2, zorder=0)
            ax.plot(first[head], at, "o", mfc="white", mec=COLOURS["grey"], ms=7)
            ax.plot(both[head], at, "o", color=colour, ms=7)
        ax.axvline(WEIGHT, color="black", lw=1.2, ls=":")
        ax.axvline(0, color=COLOURS["grey"], lw=0.8)
        ax.set_yticks(range(len(heads)), [head_name(*head) for head in heads], fontsize=9)
        ax.set(ylim=(len(heads) - 0.5, -0.5), xlabel="excess of the weight along links")
        ax.set_title(direction)
        ax.tick_params(axis="y", length=0)
    _on_one_scale(axes)
    looks = {
        "excess over other sentences' places": {"mfc": "white", "mec": COLOURS["grey"]},
        "smaller of this and the same after column means are subtracted": {
            "color": COLOURS["blue"]
        },
        "the same, significantly above 0.02 (dotted)": {"color": COLOURS["orange"]},
    }
    handles = [plt.Line2D([], [], ls="", marker="o", ms=7, **look) for look in looks.values()]
    figure.legend(handles, list(looks), loc="outside upper center", ncols=1, fontsize=9)
    return figure
