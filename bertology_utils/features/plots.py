"""The figures of §4.4: maps over their columns' means, Figure 6, depth, every head as a dot, and shares beside a real run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from .. import plots
from ..annotation.inputs import TOKEN_TYPES, AnnotatedInput, token_types
from ..claims import WEIGHT
from ..common import axis_numbers
from ..glue import TASKS
from ..judge import MIN_EXAMPLES, THIS_RUN
from ..plots.dots import Dot
from ..plots.style import SOURCE_MARKERS
from ..results import Entry, Results
from .compare import MORE_ATTENDED
from .measure import DESTINATIONS
from .tuned import BEYOND, KEPT, MORE, ON_SPECIAL, ON_WORDS, SHARES, STATES, WEIGHTS

EXAMPLES = "examples with the type"
PUBLISHED = "weight by layer, published figure"  # read off, of bert-base; a row of this run
BERT_BASE = "bert-base, published figure"
ABOVE_MATCHED = ", above matched words"
_CLS, _SEP, _POINTS = plots.FLOW_COLOURS[:3]  # as in the bars of where attention goes
_ORANGE, _EVEN = plots.COLOURS["orange"], plots.COLOURS["grey"]
_LOG_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5)
Runs = Mapping[str, Results]
Heads = dict[str, dict[str, dict[str, np.ndarray]]]  # by type, task's title and source a number for each head


def attention_flow(run: Results) -> Figure:
    """Where each layer's attention goes in one run: pre-trained, fine-tuned and with random weights."""
    return plots.flow_grid({state: run.array(SHARES, state=state) for state in STATES}, DESTINATIONS)


def stripes(runs: Runs) -> Figure:
    """The share of heads with a stripe on a word, of how many more have one on a special token, and since when."""
    titles = (
        "on a word",
        "on [CLS] or [SEP],\nminus those on a word",
        "of those on [CLS] or [SEP],\nhad it before fine-tuning",
    )
    panels = {title: {"what": what} for title, what in zip(titles, (ON_WORDS, ON_SPECIAL, KEPT), strict=True)}
    figure = dots_by_task(runs, panels, "share of heads, %", 100)
    for ax in figure.axes:
        ax.set_xlim(-4, 104)
    return figure


def dots_by_task(runs: Runs, panels: Mapping[str, Mapping[str, str]], label: str, scale: float = 1.0) -> Figure:
    """A panel for each kind of number, a row for each task of this run, a dot for each run; no interval leaves what is possible.

    Args:
        runs: by title.
        panels: by title the labels of the rows to draw, such as {"what": "weight on [SEP]", "kind": "all [SEP] together"}.
        label, scale: of the axis.
    """
    drawn: dict[str, dict[str, dict[str, Dot]]] = {}
    for title, labels in panels.items():
        found = {name: run.by("task", **labels) for name, run in runs.items()}
        rows = drawn[title] = {}
        for task in found[THIS_RUN]:
            there = {
                name: by_task[task] for name, by_task in found.items() if by_task.get(task, {}).get("value") is not None
            }
            rows[TASKS[task].title] = {name: _possible(one) for name, one in there.items()}
    return plots.dot_panels(drawn, label, scale)


def _possible(one: Entry) -> Entry:
    """A share with an interval that ends at 0 and 1, or a difference with one that ends at -1 and 1."""
    least = -1.0 if one["unit"].startswith("difference") else 0.0
    return {**one, "low": max(one["low"], least), "high": min(one["high"], 1.0)}


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
                    if present and present[0]["value"] >= MIN_EXAMPLES and run.find(what, task=task, kind=kind):
                        row[name] = run.array(what, task=task, kind=kind)
    return found


def mean_heads(run: Results, kind: str, state: str) -> list[np.ndarray]:
    """What every head of a run's models, fine-tuned or pre-trained, gives one type, a task each: shape (layers, heads)."""
    return [np.array(one["value"], dtype=float) for one in run.find(WEIGHTS, state=state, kind=kind)]


def maps_over_columns(annotated: AnnotatedInput, maps: Mapping[str, np.ndarray], marked: str = "") -> Figure:
    """Self-attention maps of one input, and below each what every token gets from the average token.

    Args:
        annotated: the input.
        maps: by title, each of shape (wordpieces, wordpieces).
        marked: the type of word whose bars are orange.
    """
    side = 1.4 + 0.16 * annotated.length
    figure, axes = plt.subplots(2, len(maps), figsize=(side * len(maps) + 0.6, side + 1.4), height_ratios=(side, 1.4),
                                squeeze=False, sharex="col", sharey="row")  # fmt: skip
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
    for kind, colour in (("punctuation", _POINTS), ("[SEP]", _SEP), ("[CLS]", _CLS), (marked, _ORANGE)):
        if kind:
            colours[of_type[TOKEN_TYPES.index(kind)]] = colour
    return colours.tolist()


def figure_6(columns: Mapping[str, tuple[np.ndarray, np.ndarray]], even: float, label: str = "mean weight") -> Figure:
    """What [SEP] (upper row) and [CLS] (lower row) get in every head, all on one scale from 0 to 1 (Fig 6).

    The scale is of square roots, so that small weights can be told apart.

    Args:
        columns: by title, the two of shape (layers, heads); models may differ in shape.
        even: an even share, marked on the scale.
        label: of the scale.
    """
    figure, axes = plt.subplots(2, len(columns), figsize=(1.65 * len(columns) + 1.2, 3.9), squeeze=False)
    shapes = [np.shape(pair[0]) for pair in columns.values()]
    for at, (title, pair) in enumerate(columns.items()):
        for ax, values in zip(axes[:, at], pair, strict=True):
            plots.heatmap(ax, values, limits=(0, 1), colour_bar=False).set(xlabel="", ylabel="")
            ax.collections[0].set_norm(PowerNorm(0.5, 0, 1))
            layers, heads = np.shape(values)
            for axis, count in ((ax.xaxis, heads), (ax.yaxis, layers)):
                places = sorted({0, count // 2 - 1, count - 1})
                axis.set_ticks([at + 0.5 for at in places], np.array(axis_numbers(count))[places].tolist())
            ax.tick_params(labelsize=10)
            if at and shapes[at] == shapes[at - 1]:
                ax.set_yticks([])
        axes[0, at].set_xticks([])
        axes[0, at].set_title(title, fontsize=9)
        axes[1, at].set_xlabel("head", fontsize=9)
    for ax, kind in zip(axes[:, 0], ("[SEP]", "[CLS]"), strict=True):
        ax.set_ylabel(f"{kind}\nlayer", fontsize=10)
    bar = figure.colorbar(axes[0, 0].collections[0], ax=axes, label=label, shrink=0.9, aspect=30, pad=0.01)
    bar.set_ticks([0.0, 0.1, 0.3, 1.0], labels=["0", "0.1", "0.3", "1"])
    bar.ax.axhline(even, color=_ORANGE, lw=2)
    bar.ax.annotate("even\nshare", (1, even), xytext=(6, 0), textcoords="offset points", xycoords=("axes fraction", "data"),
                    va="center", fontsize=8, color=_ORANGE)  # fmt: skip
    bar.outline.set_visible(False)
    return figure


def by_depth(runs: Runs, even: float) -> Figure:
    """What [CLS] and [SEP] get from the first layer to the last, pre-trained, mean over heads, on one scale.

    The line is the mean over tasks and the band their range; of bert-base there is the published panel of one task.

    Args:
        runs: by title; this run has the published rows.
        even: what an even head would give any token.
    """
    figure, axes = plt.subplots(1, 2, figsize=(8.8, 3.1), sharey=True)
    for ax, kind in zip(axes, ("[CLS]", "[SEP]"), strict=True):
        by_source = {BERT_BASE: [runs[THIS_RUN].array(PUBLISHED, kind=kind)]} | {
            name: [heads.mean(axis=1) for heads in mean_heads(run, kind, "pre-trained")] for name, run in runs.items()
        }
        for source, several in by_source.items():
            depth, colour = np.linspace(0, 1, len(several[0])), plots.SOURCE_COLOURS[source]
            ax.plot(depth, np.mean(several, axis=0), "-", marker=SOURCE_MARKERS[source], ms=4, lw=1.5, color=colour,
                    label=source)  # fmt: skip
            ax.fill_between(depth, np.min(several, axis=0), np.max(several, axis=0), color=colour, alpha=0.18, lw=0)
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
        starred = [TASKS[name].title for name in MORE_ATTENDED.get(kind.removesuffix(ABOVE_MATCHED), ())]
        ax.set_yticks(range(len(rows)), [f"{task} *" if task in starred else task for task in rows])
        for text in ax.get_yticklabels():
            text.set_fontweight("bold" if text.get_text().endswith("*") else "normal")
    sources = list(dict.fromkeys(source for rows in panels.values() for row in rows.values() for source in row))
    lines = [plt.Line2D([], [], marker=SOURCE_MARKERS[one], ls="", color=plots.SOURCE_COLOURS[one]) for one in sources]
    lines.append(plt.Line2D([], [], color=_ORANGE))
    figure.legend(lines, [*sources, f"+{WEIGHT}: the least that counts"], loc="outside upper center", ncols=len(lines))
    return figure


def _rows_of_heads(ax: Axes, rows: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    for at, row in enumerate(rows.values()):
        if not row:
            ax.text(0.98, at, "too few examples", transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=8,
                    color=_EVEN)  # fmt: skip
        for place, (source, heads) in enumerate(row.items()):
            values = np.sort(np.ravel(heads))
            beside = 0.07 * (np.arange(values.size) % 5 - 2) / (1 + (len(row) > 1))  # neighbours apart
            height = at + 0.4 * (place - (len(row) - 1) / 2) + beside
            mark, colour = SOURCE_MARKERS[source], plots.SOURCE_COLOURS[source]
            ax.plot(values, height, mark, ms=3, alpha=0.6, mew=0, color=colour)


def types_on_a_log_scale(
    rows: Mapping[str, Mapping[str, Dot]], label: str, colours: Mapping[str, str], even: float
) -> Figure:
    """Estimates that differ by factors, as :func:`bertology_utils.plots.dots`.

    Args:
        rows, label, colours: as there.
        even: an even share, dotted.
    """
    figure, ax = plt.subplots(figsize=(6.4, 0.36 * len(rows) + 1.4))
    ax.set_xscale("log")
    plots.dots(ax, rows, label, colours=colours)
    ax.axvline(even, color=_EVEN, ls=":", lw=1.5, zorder=0, label="even share")
    ax.minorticks_off()
    ax.set_xticks(_LOG_TICKS, list(map(str, _LOG_TICKS)))
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=len(colours) + 1)
    return figure
