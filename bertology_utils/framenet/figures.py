"""The figures of §4.2: annotated sentences, links in maps, every head's score and excess.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..common import head_name
from ..plots import COLOURS
from ..published import published_panel
from ..results import Results
from ..statistics import ONE_SIDED
from .links import FrameSentence
from .measure import (
    BOTH,
    DIRECTIONS,
    ELSEWHERE,
    EXCESS,
    LINKS,
    OTHER_PLACES,
    P_OF_EXCESS,
    PUBLISHED,
    RANDOM,
    SCORE,
    WEIGHT_ALONE,
    Seen,
)

REACH = 0.1  # the scale of the excess ends here


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


def links_in_maps(maps: Sequence[Seen], places: Iterable[set[tuple[int, int]]] = ()) -> Figure:
    """Maps side by side with their links' cells framed in orange, and the cells of other places in green (Fig 3, right).

    Args:
        maps: a head's map of a sentence each.
        places: the cells of every place that the links are compared with.
    """
    sides = [max(3.3, 1.5 + 0.17 * len(one.tokens)) for one in maps]  # inches
    size = sum(sides) + 1.2, max(sides) + 0.2
    figure, axes = plt.subplots(1, len(maps), figsize=size, width_ratios=sides, squeeze=False)
    for ax, one in zip(axes.flat, maps, strict=True):
        title = f"head {head_name(*one.head)}\n{one.text}"
        image = plots.draw_map(ax, one.weights, one.tokens, title)
        for at, cells in enumerate(places):  # so that outlines of two places do not touch
            plots.outline(ax, cells, "green", 0.04 + 0.05 * (at % 4), linewidth=1.2)
        plots.outline(ax, one.cells, linewidth=2.4)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.6)
    return figure


def sorted_scores(results: Results) -> Figure:
    """All heads by their score along links, at other sentences' places and with random weights: does any stand out?

    Right of the dotted line are the heads beyond the 99th percentile.
    """
    panels = {f"{PUBLISHED},\n{DIRECTIONS[1]}": {LINKS: published_panel("framenet")}}
    for direction in DIRECTIONS[::-1]:
        states = {LINKS: results.array(SCORE, kind=direction)}
        for state in (OTHER_PLACES, RANDOM):
            states[state] = results.array(ELSEWHERE, kind=direction, state=state)
        panels[f"here,\n{direction}"] = states
    rows = [
        {"panel": panel, "scores of": of, "share": share, "value": value}
        for panel, states in panels.items()
        for of, scores in states.items()
        for share, value in zip(
            np.linspace(0, 100, scores.size), np.sort(scores, axis=None), strict=True
        )
    ]
    table = pd.DataFrame(rows)
    table["panel"] = pd.Categorical(table.panel, list(panels))
    figure = plots.lines(table, x="share", colour="scores of", panel="panel", label="mean weight")
    for ax in figure.axes:
        ax.axvline(99, color=COLOURS["grey"], ls=":", lw=1)
        ax.set_xlabel("heads, % (sorted by score)")
    return figure


def excess(results: Results) -> Figure:
    """Every head's excess along links, a row for each direction; heads that follow links are framed."""
    panels: dict[str, np.ndarray] = {}
    framed: list[np.ndarray] = []
    for direction in DIRECTIONS:
        p = results.array(P_OF_EXCESS, kind=direction)
        for state, beyond in {WEIGHT_ALONE: "place", BOTH: "place and word"}.items():
            panels[f"{direction},\nbeyond {beyond}"] = results.array(
                EXCESS, kind=direction, state=state
            )
            framed.append(np.argwhere(p <= ONE_SIDED) if state == BOTH else np.empty((0, 2)))
    limits = (-REACH, REACH)
    figure = plots.head_grid(panels, "excess of the weight", limits, plots.GAIN, columns=2)
    for ax in figure.axes[:2]:
        ax.tick_params(labelbottom=False)
    for ax, heads in zip(figure.axes, framed, strict=False):
        for head in heads:
            plots.outline(ax, [head], inset=0.06, edgecolor="black")
    return figure
