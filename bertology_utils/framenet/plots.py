"""The figures of §4.2 that are made for it alone: annotated sentences, links in maps, scores by model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .. import plots
from ..claims import WEIGHT
from ..common import head_name
from ..plots.dots import Dot
from ..statistics import Seed, bootstrap_mean
from ..statistics.permutation import heads_by_size
from .comparisons import READING_ERROR, published_panel
from .frame_links import FrameSentence
from .measure import Seen

LINK, OTHER = plots.COLOURS["orange"], plots.COLOURS["green"]
PUBLISHED = "bert-base, published figure"  # as a source in figures
RANKS = ("highest head", "second", "third", "fourth")


def annotated_sentence(sentence: FrameSentence) -> Figure:
    """A sentence with its predicate in blue, linked core elements in orange, other elements in grey (Fig 4)."""
    linked = {span for spans in sentence.elements for span in spans}
    exemplar = sentence.exemplar
    marks = [("predicate", span.start, span.end, plots.COLOURS["blue"]) for span in sentence.target]
    marks += [(*span, plots.COLOURS["orange" if span in linked else "grey"]) for span in exemplar.elements]
    return plots.frame_annotation(exemplar.text, marks, f"{exemplar.unit}: {exemplar.frame}")


def sentences_left(rows: Mapping[str, Mapping[str, float]]) -> Figure:
    """Dots for the sentences that every filter leaves, by source.

    Args:
        rows: by filter, then by source.
    """
    figure, ax = plt.subplots(figsize=(8.2, 0.34 * len(rows) + 1.1))
    plots.dots(ax, rows, "sentences left, on a logarithmic scale")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def links_in_maps(rows: Sequence[Sequence[Seen]], columns: Sequence[str]) -> Figure:
    """A map for each head (row) and sentence (column), the links' cells framed in orange (Fig 3, right).

    Args:
        rows: of every head its sentences.
        columns: what the sentences are.
    """
    # inches; a title has to fit above the map of a short sentence
    sides = [max(3.3, *(1.5 + 0.17 * len(row[place].tokens) for row in rows)) for place in range(len(columns))]
    size = sum(sides) + 1.6, len(rows) * (max(sides) + 0.4)
    figure, axes = plt.subplots(len(rows), len(columns), figsize=size, width_ratios=sides, squeeze=False)
    for of_head, row in zip(axes, rows, strict=True):
        for ax, seen, name in zip(of_head, row, columns, strict=True):
            title = f"{head_name(*seen.head)}, {name}\n{seen.text}"
            image = plots.attention_map(ax, seen.weights, seen.tokens, title)
            _frame(ax, seen.cells, LINK)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.6)
    return figure


def compared_places(seen: Seen, places: Mapping[str, Iterable[set[tuple[int, int]]]]) -> Figure:
    """A map for each kind of places that a link is compared with: the link framed in orange, the places dashed in green.

    Args:
        seen: the sentence and the head.
        places: by kind, the cells of every place.
    """
    side = 1.7 + 0.17 * len(seen.tokens)
    figure, axes = plt.subplots(1, len(places), figsize=(len(places) * (side + 0.3) + 0.8, side + 0.3))
    for ax, (kind, of_kind) in zip(axes, places.items(), strict=True):
        image = plots.attention_map(ax, seen.weights, seen.tokens, f"the link and\n{kind}")
        _frame(ax, set().union(*of_kind), OTHER, "--")
        _frame(ax, seen.cells, LINK)
    marks = [
        Rectangle((0, 0), 1, 1, fill=False, ec=colour, ls=line, lw=2, label=name)
        for colour, line, name in ((LINK, "-", "link"), (OTHER, "--", "compared with it"))
    ]
    figure.legend(handles=marks, loc="outside upper center", ncols=2, handlelength=1.2, handleheight=1.2)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.8)
    return figure


def _frame(ax: Axes, cells: Iterable[tuple[int, int]], colour: str, line: str = "-") -> None:
    for row, column in cells:
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, ec=colour, ls=line, lw=2))


def score_panels(panels: Mapping[str, np.ndarray]) -> Figure:
    """Scores of all heads by source, on one scale and with squares of one size (Fig 3, middle); the two highest framed.

    Args:
        panels: by title, shape (layers, heads); the models may have other numbers of layers.
    """
    figure, axes = plt.subplots(1, len(panels), figsize=(3.1 * len(panels) + 0.8, 3.3), squeeze=False)
    highest = max(panel.max() for panel in panels.values())
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=True):
        tops = heads_by_size(panel)[:2]
        plots.heatmap(ax, panel, limits=(0, highest), colour_bar=False)
        ax.set(title=f"{title}\nhighest {' and '.join(head_name(*head) for head in tops)}", aspect="equal")
        for layer, head in tops:
            ax.add_patch(Rectangle((head, layer), 1, 1, fill=False, ec=LINK, lw=1.5, clip_on=False))
    bar = figure.colorbar(axes.flat[0].collections[0], ax=axes, label="mean largest weight along a link", shrink=0.8)
    bar.outline.set_visible(False)
    for ax in axes.flat:
        ax.set_anchor("N")  # the colour bar would centre them
    return figure


def highest_heads(committed: Mapping[str, np.ndarray], measured: Mapping[str, np.ndarray], seed: Seed) -> Figure:
    """Dots for the four highest scores of each model; those of the published figure with the error of reading them off.

    Args:
        committed: scores by source, shape (layers, heads).
        measured: scores by source, shape (sentences, layers, heads); "this run" among them.
        seed: of the resampling of sentences.
    """
    published = [published_panel("framenet")[head] for head in heads_by_size(published_panel("framenet"))[: len(RANKS)]]
    numbers: dict[str, list[Dot]] = {PUBLISHED: [(one, one - READING_ERROR, one + READING_ERROR) for one in published]}
    for name, panel in committed.items():
        numbers[name] = [float(panel[head]) for head in heads_by_size(panel)[: len(RANKS)]]
    for name, scores in measured.items():
        heads = heads_by_size(scores.mean(axis=0))[: len(RANKS)]
        numbers[name] = [bootstrap_mean(scores[:, *head], seed) for head in heads]
    ours = heads_by_size(measured["this run"].mean(axis=0))
    rows = {
        f"{rank}, in this run {head_name(*ours[at])}": {name: of_source[at] for name, of_source in numbers.items()}
        for at, rank in enumerate(RANKS)
    }
    return plots.dot_panels({"four heads of the highest score, by model": rows}, "score: mean largest weight along a link")


def excess_dots(panels: Mapping[str, Mapping[str, Mapping[str, Dot]]]) -> Figure:
    """Excess as dots with intervals, a panel for each title; 0 and the effect that counts are marked."""
    figure = plots.dot_panels(panels, "excess of the weight", border=WEIGHT)
    for ax in figure.axes:
        ax.axvline(0, color=plots.COLOURS["grey"], lw=0.8, ls=":", zorder=0)
    return figure
