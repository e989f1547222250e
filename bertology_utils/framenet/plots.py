"""The figures of §4.2 that are made for it alone: annotated sentences, links in maps, scores by model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from .. import plots
from ..claims import WEIGHT
from ..common import DIRECTIONS, head_name
from ..judge import THIS_RUN
from ..plots.dots import Dot
from ..results import Results
from ..statistics import ONE_SIDED, Seed, bootstrap_mean
from ..statistics.permutation import heads_by_size
from .comparisons import READING_ERROR, published_panel
from .frame_links import PAPER_SENTENCES, FrameSentence
from .measure import Seen

LINK, OTHER = plots.COLOURS["orange"], plots.COLOURS["green"]
PUBLISHED = "bert-base, published figure"  # as a source in figures
RANKS = ("highest head", "second", "third", "fourth")
WAYS = DIRECTIONS[:2]  # who attends: the predicate, as the paper's text says, or the element, as its code has it
BOTH = "smaller of both"  # of the excess of the weight, and of the weight with each word's popularity off
BEYOND = {"place": "weight", "place and word": BOTH}
REACH = 0.1  # the scale of the excess ends here
Runs = Mapping[str, Results]
_WHITE_AT_ZERO = plots.GAIN.resampled(255)  # an odd number of colours: the middle one is pure white


def annotated_sentence(sentence: FrameSentence) -> Figure:
    """A sentence with its predicate in blue, linked core elements in orange, other elements in grey (Fig 4)."""
    linked = {span for spans in sentence.elements for span in spans}
    exemplar = sentence.exemplar
    marks = [("predicate", span.start, span.end, plots.COLOURS["blue"]) for span in sentence.target]
    marks += [(*span, plots.COLOURS["orange" if span in linked else "grey"]) for span in exemplar.elements]
    return plots.frame_annotation(exemplar.text, marks, f"{exemplar.unit}: {exemplar.frame}")


def sentences_left(runs: Runs, protocol: str) -> Figure:
    """Dots for the sentences that every filter leaves, by run; last, those that the other protocol's rules keep.

    Args:
        runs: tables of results by whose they are.
        protocol: whose filters this run has.
    """
    other = "paper" if protocol == "official" else "official"
    last = {"official": "by all of the published code's rules", "paper": "by the paper's text"}[other]
    steps = [entry["kind"] for entry in runs[THIS_RUN].find("sentences left")]
    rows: dict[str, dict[str, Dot]] = {step.replace(" (by coreType)", ""): {} for step in (*steps, last)}
    for name, run in runs.items():
        left = {
            **run.by("kind", "sentences left"),
            **dict(zip([last], run.find("sentences kept", kind=other), strict=False)),
        }
        for row, step in zip(rows.values(), (*steps, last), strict=True):
            if step in left:
                row[name] = left[step]["value"]
    for row in list(rows.values())[-2:]:
        row["the paper"] = PAPER_SENTENCES
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
    size = len(places) * (side + 0.3) + 0.8, side + 0.3
    figure, axes = plt.subplots(1, len(places), figsize=size, squeeze=False)
    for ax, (kind, of_kind) in zip(axes.flat, places.items(), strict=True):
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


def score_panels(runs: Runs) -> Figure:
    """Scores of all heads on one scale, the two highest framed: the published figure, then a column for each run (Fig 3).

    A row for each direction; the published figure, which is of one direction, has twice as many layers and spans both.
    """
    panels = {name: {way: run.array("score along frame links", kind=way) for way in WAYS}
              for name, run in runs.items() if run.find("score along frame links", kind=WAYS[-1])}  # fmt: skip
    published = published_panel("framenet")
    highest = max(panel.max() for panel in (published, *(one for ways in panels.values() for one in ways.values())))
    figure = plt.figure(figsize=(3.5 * len(panels) + 4.2, 4.6))
    grid = figure.add_gridspec(len(WAYS), 1 + len(panels))
    _score_panel(figure.add_subplot(grid[:, 0]), published, f"{PUBLISHED}\n{WAYS[-1]}", highest)
    for column, (name, ways) in enumerate(panels.items(), start=1):
        for row, (way, panel) in enumerate(ways.items()):
            ax = figure.add_subplot(grid[row, column])
            _score_panel(ax, panel, f"{name}\n{way}", highest)
            ax.set(ylabel="", xlabel="head" if row else "")
    axes = figure.axes
    bar = figure.colorbar(axes[0].collections[0], ax=axes, label="score: mean largest weight along a link", shrink=0.8)
    bar.outline.set_visible(False)
    return figure


def _score_panel(ax: Axes, panel: np.ndarray, title: str, highest: float) -> None:
    plots.heatmap(ax, panel, limits=(0, highest), colour_bar=False)
    ax.set_title(title, fontsize=9)
    for layer, head in heads_by_size(panel)[:2]:
        ax.add_patch(Rectangle((head, layer), 1, 1, fill=False, ec=LINK, lw=1.8, clip_on=False))


def excess_panels(runs: Runs) -> Figure:
    """Every head's excess along links, a row for each direction; heads that surely follow links are framed.

    Two columns for each run, before and after each word's popularity is taken off.
    """
    columns = {f"{name}\nbeyond {beyond}": (run, state) for name, run in runs.items()
               if run.find("excess along frame links", kind=WAYS[-1]) for beyond, state in BEYOND.items()}  # fmt: skip
    shape = 2.6 * len(columns) + 1.2, 4.3
    figure, axes = plt.subplots(len(WAYS), len(columns), figsize=shape, squeeze=False)
    for row, way in zip(axes, WAYS, strict=True):
        for ax, (title, (run, state)) in zip(row, columns.items(), strict=True):
            plots.heatmap(ax, run.array("excess along frame links", kind=way, state=state), limits=(-REACH, REACH),
                          cmap=_WHITE_AT_ZERO, colour_bar=False)  # fmt: skip
            ax.collections[0].set_edgecolor("#d5d8dc")  # white squares end somewhere
            ax.set(title=title if way == WAYS[0] else "", xlabel="head" if way == WAYS[-1] else "")
            ax.set_ylabel(f"{way}\n\nlayer" if ax is row[0] else "")
            ax.title.set_fontsize(9)
            if state == BOTH:
                p = run.array("p of the excess beyond place and word", kind=way)
                for layer, head in np.argwhere(p <= ONE_SIDED):
                    ax.add_patch(Rectangle((head, layer), 1, 1, fill=False, ec="black", lw=1.8, clip_on=False))
    scale = {"label": "excess of the weight", "shrink": 0.8, "aspect": 25, "pad": 0.01, "extend": "both"}
    figure.colorbar(axes[0, 0].collections[0], ax=axes, **scale).outline.set_visible(False)
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
        ax.xaxis.set_major_locator(MaxNLocator(4))
    return figure
