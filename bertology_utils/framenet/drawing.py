"""The figures of §4.2 that are made for it alone: an annotated sentence, links in maps, and shifted places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .. import figures
from ..claims.register import WEIGHT
from ..common import head_name
from ..figures.dots import Dot
from .controls import top_heads
from .examples import Seen
from .frame_links import FrameSentence

LINK, OTHER = figures.COLOURS["orange"], figures.COLOURS["green"]


def annotated_sentence(sentence: FrameSentence):
    """A sentence with its predicate in blue, linked core elements in orange, other elements in grey (Fig 4); the figure."""
    linked = {(span.name, span.start, span.end) for spans in sentence.elements for span in spans}
    marks = [("predicate", span.start, span.end, figures.COLOURS["blue"]) for span in sentence.target]
    for span in sentence.exemplar.elements:
        colour = "orange" if (span.name, span.start, span.end) in linked else "grey"
        marks.append((span.name, span.start, span.end, figures.COLOURS[colour]))
    exemplar = sentence.exemplar
    return figures.frame_annotation(exemplar.text, marks, f"{exemplar.unit}: {exemplar.frame}")


def links_in_maps(rows: Sequence[Sequence[Seen]], columns: Sequence[str]):
    """A map for each head (row) and sentence (column), the links' cells framed in orange (Fig 3, right).

    Args:
        rows: of every head its sentences.
        columns: what the sentences are.

    Returns:
        The figure.
    """
    # inches; a title has to fit above the map of a short sentence
    sides = [max(3.3, *(1.5 + 0.17 * len(row[place].tokens) for row in rows)) for place in range(len(columns))]
    size = sum(sides) + 1.6, len(rows) * (max(sides) + 0.4)
    figure, axes = plt.subplots(len(rows), len(columns), figsize=size, width_ratios=sides, squeeze=False)
    for of_head, row in zip(axes, rows, strict=True):
        for ax, seen, name in zip(of_head, row, columns, strict=True):
            title = f"{head_name(*seen.head)}, {name}\n{seen.text}"
            image = figures.attention_map(ax, seen.weights, seen.tokens, title)
            _frame(ax, seen.cells, LINK)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.6)
    return figure


def compared_places(seen: Seen, places: Mapping[str, Iterable[set[tuple[int, int]]]]):
    """A map for each kind of places with which a link is compared: the link framed in orange, the places dashed in green.

    Args:
        seen: the sentence and the head.
        places: by kind, the cells of every place.

    Returns:
        The figure.
    """
    side = 1.7 + 0.17 * len(seen.tokens)
    figure, axes = plt.subplots(1, len(places), figsize=(len(places) * (side + 0.3) + 0.8, side + 0.3))
    for ax, (kind, of_kind) in zip(axes, places.items(), strict=True):
        image = figures.attention_map(ax, seen.weights, seen.tokens, f"the link and\n{kind}")
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


def counts_left(rows: Mapping[str, Mapping[str, float]]):
    """How many sentences every filter leaves, a dot for each source; the figure.

    Args:
        rows: by filter, then by source.
    """
    figure, ax = plt.subplots(figsize=(8.2, 0.34 * len(rows) + 1.1))
    figures.dots(ax, rows, "sentences left, on a logarithmic scale")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def score_panels(panels: Mapping[str, np.ndarray]):
    """Scores of all heads by source, on one scale and with squares of one size (Fig 3, middle); the two highest framed; the figure.

    Args:
        panels: by title, shape (layers, heads); the models may have other numbers of layers.
    """
    figure, axes = plt.subplots(1, len(panels), figsize=(3.1 * len(panels) + 0.8, 3.3), squeeze=False)
    highest = max(panel.max() for panel in panels.values())
    for ax, (title, panel) in zip(axes.flat, panels.items(), strict=True):
        tops = top_heads(panel, 2)
        figures.heatmap(ax, panel, limits=(0, highest), colour_bar=False)
        ax.set(title=f"{title}\nhighest {' and '.join(head_name(*head) for head in tops)}", aspect="equal")
        for layer, head in tops:
            ax.add_patch(Rectangle((head, layer), 1, 1, fill=False, ec=LINK, lw=1.5, clip_on=False))
    bar = figure.colorbar(axes.flat[0].collections[0], ax=axes, label="mean largest weight along a link", shrink=0.8)
    bar.outline.set_visible(False)
    for ax in axes.flat:
        ax.set_anchor("N")  # the colour bar would centre them
    return figure


def excess_dots(panels: Mapping[str, Mapping[str, Mapping[str, Dot]]]):
    """Excess as dots with intervals, a panel for each title, 0 and the effect that counts marked; the figure."""
    figure = figures.dot_panels(panels, "excess of the weight", border=WEIGHT)
    for ax in figure.axes:
        ax.axvline(0, color=figures.COLOURS["grey"], lw=0.8, ls=":", zorder=0)
    return figure
