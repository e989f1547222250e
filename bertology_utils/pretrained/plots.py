"""The figures of notebook 8: published panels beside MiniLM's and a run's own, and heads along dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..annotation.annotators import Word
from ..claims import HETEROGENEOUS
from ..common import axis_numbers, head_name
from ..framenet.comparisons import published_panel
from ..framenet.plots import links_in_maps
from ..judge import PRETRAINED, THIS_RUN
from ..links.dependencies import CLARK, FOUND
from ..links.plots import links_and_neighbours
from ..patterns import plots as patterns
from ..plots import COLOURS, SOURCE_COLOURS, dot_panels, heatmap, token_map
from ..plots.dots import Dot
from ..plots.style import SOURCE_MARKERS
from ..results import Results
from ..statistics import heads_by_size
from ..weighing.plots import KIND_COLOURS, mixing
from .measure import MEANINGS

__all__ = [
    "arcs_in_map",
    "by_depth",
    "heterogeneous",
    "links_and_neighbours",
    "links_in_maps",
    "mixing",
    "panels",
    "pointing",
]
__all__ += ["published_panel", "same_heads", "token_map"]
Runs = Mapping[str, Results]
PUBLISHED = "bert-base, published"
PANEL = "weight on a panel"  # row of results.json, by kind
MARKS = ("[CLS]", "[SEP]")
_PANELS = {"frame-semantic links": "framenet"}  # kinds of which the published panel has another name
UD = "MiniLM, UD English"  # where the run on real data had a treebank


def _panels(runs: Runs, kind: str) -> dict[str, np.ndarray]:
    """The published panel of a kind and each run's, by title, shape (layers, heads)."""
    found = {PUBLISHED: published_panel(_PANELS.get(kind, kind))}
    for name, run in runs.items():
        if run.find(PANEL, kind=kind):
            title = "MiniLM, FrameNet" if kind in _PANELS and name != THIS_RUN else name
            found[title] = run.array(PANEL, kind=kind)
    return found


def panels(runs: Runs, kinds: Sequence[str] = MARKS) -> Figure:
    """Published panels and each run's, a row for each kind, on one scale; a square is a head.

    Args:
        runs: by title.
        kinds: of token, or "frame-semantic links".
    """
    rows = {kind: _panels(runs, kind) for kind in kinds}
    width, most = max(map(len, rows.values())), max(panel.max() for row in rows.values() for panel in row.values())
    figure, axes = plt.subplots(len(kinds), width, figsize=(3.1 * width + 0.9, 3.2 * len(kinds)), squeeze=False)
    for across, (kind, row) in zip(axes, rows.items(), strict=True):
        for ax, (title, panel) in zip(across, row.items(), strict=False):
            heatmap(ax, panel, limits=(0, float(most)), colour_bar=False)
            ax.set(title=f"{kind}\n{title}", aspect="equal")
            ax.title.set_fontsize(9)
        for ax in across[len(row) :]:
            ax.set_axis_off()
    bar = figure.colorbar(axes[0, 0].collections[0], ax=axes, label="mean weight", aspect=18 * len(kinds), pad=0.02)
    bar.outline.set_visible(False)
    for ax in axes.flat:
        ax.set_anchor("N")  # the colour bar would centre them
    return figure


def arcs_in_map(weights: np.ndarray, words: Sequence[Word], title: str) -> Figure:
    """One head's map of words, with an orange frame where a word's row meets the column of the word that it depends on.

    Args:
        weights: shape (words, words).
        words: of one sentence, annotated.
        title: above.
    """
    figure = token_map(weights, [word.form for word in words], title)
    for at, word in enumerate(words):
        if word.head >= 0:
            frame = plt.Rectangle((word.head - 0.5, at - 0.5), 1, 1, fill=False, edgecolor=COLOURS["orange"], linewidth=1.6)
            figure.axes[0].add_patch(frame)
    figure.axes[0].set(xlabel="to word", ylabel="from word")
    return figure


def same_heads(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """A dot for each head: the published weight across, this run's up; the three highest here are named.

    Args:
        pairs: by panel, published and here, both of shape (layers, heads).
    """
    figure, axes = plt.subplots(1, len(pairs), figsize=(3.3 * len(pairs), 3.2), squeeze=False)
    for ax, (title, (theirs, ours)) in zip(axes.flat, pairs.items(), strict=True):
        ax.axline((0, 0), slope=1, color=COLOURS["grey"], lw=0.8)
        ax.plot(theirs.ravel(), ours.ravel(), "o", ms=4, alpha=0.6, color=SOURCE_COLOURS["this run"])
        for at in heads_by_size(ours)[:3]:
            ax.annotate(
                head_name(*at), (theirs[at], ours[at]), xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=8
            )
        ax.set(title=title, xlabel="published weight")
    axes.flat[0].set_ylabel("this run")
    return figure


def by_depth(runs: Runs) -> Figure:
    """What one [CLS] and one [SEP] get, by layer, mean over heads: as published, and a panel for each run, on one scale."""
    lines = {kind: {title: panel.mean(axis=1) for title, panel in _panels(runs, kind).items()} for kind in MARKS}
    titles = list(lines[MARKS[0]])
    figure, axes = plt.subplots(1, len(titles), figsize=(3.4 * len(titles), 2.9), sharey=True, squeeze=False)
    for ax, title in zip(axes.flat, titles, strict=True):
        for kind, marker in zip(MARKS, "os", strict=True):
            values = lines[kind][title]
            ax.plot(axis_numbers(len(values)), values, f"{marker}-", ms=4, lw=1.6, color=KIND_COLOURS[kind], label=kind)
        ax.axvline(len(values) / 2 + 0.5, color=COLOURS["grey"], ls=":", lw=1)
        ax.set(title=title, xlabel="layer")
        ax.set_xticks(axis_numbers(len(values)))
    axes.flat[0].set(ylabel="mean weight", ylim=(0, None))  # of all, which share it; once all lines are drawn
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def pointing(runs: Runs) -> Figure:
    """How many arcs the best head and the best fixed distance find, by dependency; beside Clark et al.'s, and random weights."""
    clark, drawn, random_here = "bert-base, Clark et al.", "random weights", f"{THIS_RUN}, random"
    shown: dict[str, dict[str, dict[str, Dot]]] = {"the best head": {}, "the best fixed distance": {}}
    names = {
        name: name if name == THIS_RUN or "treebank" not in run.content["settings"] else UD for name, run in runs.items()
    }
    for rows, what in zip(shown.values(), FOUND, strict=True):
        for relation, theirs in CLARK.items():
            row = rows[f"{relation}, {MEANINGS[relation]}"] = {
                clark: (theirs.accuracy if what == FOUND[0] else theirs.offset) / 100
            }
            for name, run in runs.items():
                for entry in run.find(what, kind=relation, state=PRETRAINED):
                    row[names[name]] = entry
            for entry in runs[THIS_RUN].find(what, kind=relation, state=drawn):
                row[random_here] = entry
    colours = {clark: SOURCE_COLOURS["the paper"]} | {names[name]: SOURCE_COLOURS[name] for name in runs}
    colours[random_here] = SOURCE_COLOURS[drawn]
    markers = {clark: "D", random_here: "^"} | {names[name]: SOURCE_MARKERS[name] for name in runs}
    figure = dot_panels(shown, "finds the other word, % of arcs", 100, colours, columns=2, markers=markers)
    figure.axes[1].set_yticklabels([])  # the same rows
    return figure


def heterogeneous(runs: Runs) -> Figure:
    """Share of heterogeneous maps on each task, before fine-tuning, beside the range that the paper gives after it."""
    shares = {name: run.by("task", "share of maps: heterogeneous, corrected") for name, run in runs.items()}
    return patterns.heterogeneous(patterns.rows_of({patterns.PAPER: HETEROGENEOUS, **shares}))
