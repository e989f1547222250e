"""The figures of §4.4: maps over their columns' means, Figure 6, depth, every head as a dot, and shares beside a real run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plots
from ..annotation.inputs import TOKEN_TYPES, AnnotatedInput, token_types
from ..glue import TASKS
from ..plots.old import SOURCE_MARKERS
from ..results import Results, Runs
from ..verdicts import MIN_EXAMPLES, THIS_RUN, WEIGHT
from .compare import MORE_ATTENDED
from .measure import DESTINATIONS
from .tuned import BEYOND, KEPT, MORE, ON_SPECIAL, ON_WORDS, SHARES, STATES, WEIGHTS

EXAMPLES = "examples with the type"
PUBLISHED = "weight by layer, published figure"  # read off, of bert-base; a row of this run
BERT_BASE = "bert-base, published figure"
ABOVE_MATCHED = ", above matched words"
_CLS, _SEP, _POINTS = plots.FLOW_COLOURS[:3]  # as in the bars of where attention goes
_ORANGE, _EVEN = plots.COLOURS["orange"], plots.COLOURS["grey"]
Heads = dict[
    str, dict[str, dict[str, np.ndarray]]
]  # by type, task's title and source a number for each head


def attention_flow(run: Results) -> Figure:
    """Where each layer's attention goes in one run: pre-trained, fine-tuned and with random weights."""
    return plots.flow_grid(
        {state: run.array(SHARES, state=state) for state in STATES}, DESTINATIONS
    )


def stripes(runs: Runs) -> Figure:
    """The share of heads with a stripe on a word, of how many more have one on a special token, and since when."""
    titles = {
        ON_WORDS: "on a word",
        ON_SPECIAL: "on [CLS] or [SEP],\nminus those on a word",
        KEPT: "of those on [CLS] or [SEP],\nhad it before fine-tuning",
    }
    panels = plots.panels_of(runs, list(titles), "what", "task", names={"what": titles})
    return plots.dot_panels(panels, "share of heads, %", 100, limits=(-4, 104))


def changes(runs: Runs, kinds: Sequence[str], matched: bool = True) -> Heads:
    """What fine-tuning adds in every head to some types of word, first training, for :func:`heads_as_dots`.

    Nothing where under 30 examples have the type.

    Args:
        runs: by title; tasks are those of this run.
        kinds: the types.
        matched: with a second panel for each type, of what is above matched words.
    """
    found: Heads = {}
    for kind in kinds:
        for what, behind in ((MORE, ""), (BEYOND, ABOVE_MATCHED))[: 1 + matched]:
            panel = found[kind + behind] = {}
            for task in dict.fromkeys(one["task"] for one in runs[THIS_RUN].find(EXAMPLES)):
                row = panel[TASKS[task].title] = {}
                for name, run in runs.items():
                    present = run.find(EXAMPLES, task=task, kind=kind)
                    if (
                        present
                        and present[0]["value"] >= MIN_EXAMPLES
                        and run.find(what, task=task, kind=kind)
                    ):
                        row[name] = run.array(what, task=task, kind=kind)
    return found


def mean_heads(run: Results, kind: str, state: str) -> list[np.ndarray]:
    """What every head of a run's models, fine-tuned or pre-trained, gives one type, a task each: shape (layers, heads)."""
    return [
        np.array(one["value"], dtype=float) for one in run.find(WEIGHTS, state=state, kind=kind)
    ]


def maps_over_columns(
    annotated: AnnotatedInput, maps: Mapping[str, np.ndarray], marked: str = ""
) -> Figure:
    """Self-attention maps of one input, and below each what every token gets from the average token.

    Args:
        annotated: the input.
        maps: by title, each of shape (wordpieces, wordpieces).
        marked: the type of word whose bars are orange.
    """
    side = 1.4 + 0.16 * annotated.length
    figure, axes = plt.subplots(
        2,
        len(maps),
        figsize=(side * len(maps) + 0.6, side + 1.4),
        height_ratios=(side, 1.4),
        squeeze=False,
        sharex="col",
        sharey="row",
    )
    colours = _bar_colours(annotated, marked)
    for top, below, (title, weights) in zip(*axes, maps.items(), strict=True):
        image = plots.attention_map(top, weights, annotated.pieces, title)
        top.set(xlabel="", ylabel="from token" if top is axes[0, 0] else "")
        top.tick_params(labelbottom=False)
        top.set_aspect("auto")  # columns stand above their bars
        below.bar(range(annotated.length), weights.mean(axis=0), color=colours)
        below.axhline(1 / annotated.length, color=_EVEN, ls=":", lw=1.5)
        below.set(xlabel="to token", ylabel="column's mean" if below is axes[1, 0] else "")
        below.set_xticks(range(annotated.length), annotated.pieces, rotation=90, fontsize=7)
    figure.colorbar(image, ax=list(axes[0]), label="weight", shrink=0.8)
    return figure


def _bar_colours(annotated: AnnotatedInput, marked: str) -> list[str]:
    colours = np.full(annotated.length, "#b9bec6")
    of_type = token_types(annotated)
    for kind, colour in (
        ("punctuation", _POINTS),
        ("[SEP]", _SEP),
        ("[CLS]", _CLS),
        (marked, _ORANGE),
    ):
        if kind:
            colours[of_type[TOKEN_TYPES.index(kind)]] = colour
    return colours.tolist()


def by_depth(runs: Runs, even: float) -> Figure:
    """What [CLS] and [SEP] get from the first layer to the last, pre-trained, mean over heads, on one scale.

    The line is the mean over tasks and the band their range; of bert-base there is the published
    panel of one task.

    Args:
        runs: by title; this run has the published rows.
        even: what an even head would give any token.
    """
    figure, axes = plt.subplots(1, 2, figsize=(8.8, 3.1), sharey=True)
    for ax, kind in zip(axes, ("[CLS]", "[SEP]"), strict=True):
        by_source = {BERT_BASE: [runs[THIS_RUN].array(PUBLISHED, kind=kind)]} | {
            name: [heads.mean(axis=1) for heads in mean_heads(run, kind, "pre-trained")]
            for name, run in runs.items()
        }
        for source, several in by_source.items():
            depth, colour = np.linspace(0, 1, len(several[0])), plots.SOURCE_COLOURS[source]
            ax.plot(
                depth,
                np.mean(several, axis=0),
                "-",
                marker=SOURCE_MARKERS[source],
                ms=4,
                lw=1.5,
                color=colour,
                label=source,
            )
            ax.fill_between(
                depth,
                np.min(several, axis=0),
                np.max(several, axis=0),
                color=colour,
                alpha=0.18,
                lw=0,
            )
        ax.axhline(even, color=_EVEN, ls=":", lw=1.5, label="even share of this run's inputs")
        ax.set(title=kind, xlabel="depth", ylim=(0, None))
        ax.set_xticks([0, 0.5, 1], ["first layer", "", "last layer"])
        for text, side in zip(ax.get_xticklabels()[::2], ("left", "right"), strict=True):
            text.set_ha(side)  # neighbouring panels' labels would touch
    axes[0].set_ylabel("mean weight")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2)
    return figure


def heads_as_dots(panels: Heads, label: str) -> Figure:
    """A row of dots for each task and source, one dot for each head; one scale, and the least effect as an orange line.

    Tasks that the paper names for a type stand in bold with an asterisk.

    Args:
        panels: from :func:`changes`; no source where examples are too few.
        label: of the axis.
    """
    tallest = max(map(len, panels.values()))
    size = 3.0 * len(panels), 0.5 * tallest + 1.5
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharex=True, squeeze=False)
    for ax, (kind, rows) in zip(axes.flat, panels.items(), strict=True):
        _rows_of_heads(ax, rows)
        ax.axvline(WEIGHT, color=_ORANGE, lw=1.5, zorder=0)
        ax.set(title=kind.replace(", ", ",\n"), xlabel=label, ylim=(len(rows) - 0.5, -0.5))
        starred = [
            TASKS[name].title for name in MORE_ATTENDED.get(kind.removesuffix(ABOVE_MATCHED), ())
        ]
        ax.set_yticks(range(len(rows)), [f"{task} *" if task in starred else task for task in rows])
        for text in ax.get_yticklabels():
            text.set_fontweight("bold" if text.get_text().endswith("*") else "normal")
    sources = list(
        dict.fromkeys(source for rows in panels.values() for row in rows.values() for source in row)
    )
    lines = [
        plt.Line2D([], [], marker=SOURCE_MARKERS[one], ls="", color=plots.SOURCE_COLOURS[one])
        for one in sources
    ]
    lines.append(plt.Line2D([], [], color=_ORANGE))
    figure.legend(
        lines,
        [*sources, f"+{WEIGHT}: the least that counts"],
        loc="outside upper center",
        ncols=len(lines),
    )
    return figure


def _rows_of_heads(ax: Axes, rows: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    for at, row in enumerate(rows.values()):
        if not row:
            ax.text(
                0.98,
                at,
                "too few examples",
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=8,
                color=_EVEN,
            )
        for place, (source, heads) in enumerate(row.items()):
            values = np.sort(np.ravel(heads))
            beside = (
                0.07 * (np.arange(values.size) % 5 - 2) / (1 + (len(row) > 1))
            )  # neighbours apart
            height = at + 0.4 * (place - (len(row) - 1) / 2) + beside
            mark, colour = SOURCE_MARKERS[source], plots.SOURCE_COLOURS[source]
            ax.plot(values, height, mark, ms=3, alpha=0.6, mew=0, color=colour)
