"""The figures of §4.2 that are made for it alone: annotated sentences, links in maps, scores by model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .. import plots
from ..common import DIRECTIONS, Head, head_name
from ..published import published_panel
from ..results import Results, Runs
from ..statistics import ONE_SIDED
from ..statistics.permutation import heads_by_size
from .frame_links import FrameSentence
from .measure import Seen

PUBLISHED = "bert-base, published figure"  # as a source in figures
RANKS = ("highest head", "second", "third", "fourth")
WAYS = DIRECTIONS[
    :2
]  # who attends: the predicate, as the paper's text says, or the element, as its code has it
# of the excess of the weight, and of the weight with each word's popularity off
BOTH = "smaller of both"
BEYOND = {"place": "weight", "place and word": BOTH}
REACH = 0.1  # the scale of the excess ends here


def annotated_sentence(sentence: FrameSentence) -> Figure:
    """A sentence with its predicate in blue, linked core elements in orange, other elements in grey (Fig 4)."""
    linked = {span for spans in sentence.elements for span in spans}
    exemplar = sentence.exemplar
    marks = [("predicate", span.start, span.end, plots.COLOURS["blue"]) for span in sentence.target]
    marks += [
        (*span, plots.COLOURS["orange" if span in linked else "grey"]) for span in exemplar.elements
    ]
    return plots.frame_annotation(exemplar.text, marks, f"{exemplar.unit}: {exemplar.frame}")


def links_in_maps(rows: Sequence[Sequence[Seen]], columns: Sequence[str]) -> Figure:
    """A map for each head (row) and sentence (column), the links' cells framed in orange (Fig 3, right).

    Args:
        rows: of every head its sentences.
        columns: what the sentences are.
    """
    # inches; a title has to fit above the map of a short sentence
    sides = [
        max(3.3, *(1.5 + 0.17 * len(row[place].tokens) for row in rows))
        for place in range(len(columns))
    ]
    size = sum(sides) + 1.6, len(rows) * (max(sides) + 0.4)
    figure, axes = plt.subplots(
        len(rows), len(columns), figsize=size, width_ratios=sides, squeeze=False
    )
    for of_head, row in zip(axes, rows, strict=True):
        for ax, seen, name in zip(of_head, row, columns, strict=True):
            title = f"{head_name(*seen.head)}, {name}\n{seen.text}"
            image = plots.attention_map(ax, seen.weights, seen.tokens, title)
            _frame(ax, seen.cells)
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.6)
    return figure


def compared_places(seen: Seen, places: Mapping[str, Iterable[set[tuple[int, int]]]]) -> Figure:
    """A map for each kind of places that a link is compared with: the link framed in orange, the places in green.

    Args:
        seen: the sentence and the head.
        places: by kind, the cells of every place.
    """
    maps = {f"head {head_name(*seen.head)}: the link\nand {kind}": seen.weights for kind in places}
    figure = plots.token_maps(maps, seen.tokens)
    for ax, of_kind in zip(figure.axes, places.values(), strict=False):
        for at, cells in enumerate(of_kind):
            _frame(
                ax, cells, "green", 1.2, 0.04 + 0.05 * (at % 4)
            )  # so that frames of two places do not touch
        _frame(ax, seen.cells)
    marks = [
        Rectangle((0, 0), 1, 1, fill=False, ec=plots.COLOURS[colour], lw=thick, label=name)
        for colour, thick, name in (
            ("orange", 2.4, "link"),
            ("green", 1.2, "a place compared with it"),
        )
    ]
    figure.legend(
        handles=marks, loc="outside upper center", ncols=2, handlelength=1.2, handleheight=1.2
    )
    return figure


def _frame(
    ax: Axes,
    cells: Iterable[tuple[int, int]],
    colour: str = "orange",
    thick: float = 2.4,
    inset: float = 0.0,
) -> None:
    """One frame around cells that fill a rectangle, else one around each, inset by so much of a cell."""
    places = list(cells)
    rectangle = len(places) == np.prod(np.ptp(places, axis=0) + 1)
    for part in [places] if rectangle else [[one] for one in places]:
        rows, columns = zip(*part, strict=True)
        plots.frame(ax, rows, columns, colour, thick=thick, inset=inset)


def score_panels(runs: Runs) -> Figure:
    """Scores of all heads on one scale, the two highest framed: the published figure, then a column for each run (Fig 3).

    A row for each direction; the published figure is of one.
    """
    panels: dict[tuple[str, str], np.ndarray | None] = {}
    for way in WAYS:
        panels[way, PUBLISHED] = published_panel("framenet") if way == WAYS[-1] else None
        for name, run in _measured(runs, "score along frame links").items():
            panels[way, name] = run.array("score along frame links", kind=way)
    highest = max(float(panel.max()) for panel in panels.values() if panel is not None)
    figure = plots.heatmap_grid(
        panels, "score: mean largest weight", (0, highest), panel=(3.3, 2.5)
    )
    for ax, panel in zip(figure.axes, panels.values(), strict=False):
        for at in [] if panel is None else heads_by_size(panel)[:2]:
            _frame_head(ax, at, plots.COLOURS["orange"])
    return figure


def _measured(runs: Runs, what: str) -> dict[str, Results]:
    """The runs that have such numbers of both directions."""
    return {name: run for name, run in runs.items() if run.find(what, kind=WAYS[-1])}


def _frame_head(ax: Axes, at: Head, colour: str) -> None:
    ax.add_patch(Rectangle(at[::-1], 1, 1, fill=False, ec=colour, lw=1.8, clip_on=False))


def excess_panels(runs: Runs) -> Figure:
    """Every head's excess along links, a row for each direction; heads that surely follow links are framed.

    Two columns for each run, before and after each word's popularity is taken off.
    """
    what, panels = "excess along frame links", dict[tuple[str, str], np.ndarray]()
    framed: list[Any] = []
    for way in WAYS:
        for name, run in _measured(runs, what).items():
            p = run.array("p of the excess beyond place and word", kind=way)
            for beyond, state in BEYOND.items():
                panels[way, f"{name}\nbeyond {beyond}"] = run.array(what, kind=way, state=state)
                framed.append(np.argwhere(p <= ONE_SIDED) if state == BOTH else [])
    label, scale = "excess of the weight", (-REACH, REACH)
    figure = plots.heatmap_grid(panels, label, scale, plots.GAIN, panel=(2.6, 2.1), extend="both")
    for ax, heads in zip(figure.axes, framed, strict=False):
        for at in heads:
            _frame_head(ax, tuple(at), "black")
    return figure
