"""The figures of §4.4: maps over their columns' means, attention by layer, stripes, Figure 6, depth, and heads that turned to words.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plots
from ..annotation.inputs import TOKEN_TYPES, AnnotatedInput, token_types
from ..published import published_panel
from ..results import Results
from ..verdicts import CLAIMS, MIN_EXAMPLES
from .compare import BEYOND, EXAMPLES, MORE, PUBLISHED, SHARES, TURNED, WEIGHTS
from .measure import DESTINATIONS, NEIGHBOURS

BERT = "bert-base"  # of the published heatmaps
TOP = 10  # heads that are drawn of those that turned to words
LINES = {"[CLS]": plots.FLOW_COLOURS[0], "[SEP]": plots.COLOURS["orange"]}


def maps_over_columns(
    annotated: AnnotatedInput, maps: Mapping[str, np.ndarray], marked: str = ""
) -> Figure:
    """Self-attention maps of one input, and below each what every token receives: the mean of its column.

    Args:
        annotated: the input.
        maps: by title, each of shape (wordpieces, wordpieces).
        marked: the type of word whose bars are orange.
    """
    tokens, side = annotated.pieces, 1.4 + 0.16 * annotated.length  # inches of a map
    colours = np.full(len(tokens), "#b9bec6")
    kinds = dict(zip(("[CLS]", "[SEP]", "punctuation"), plots.FLOW_COLOURS, strict=False))
    for kind, colour in (kinds | ({marked: plots.COLOURS["orange"]} if marked else {})).items():
        colours[token_types(annotated)[TOKEN_TYPES.index(kind)]] = colour
    figure, axes = plt.subplots(
        2,
        len(maps),
        figsize=(side * len(maps) + 0.6, side + 1.4),
        height_ratios=(side, 1.4),
        squeeze=False,
        sharex="col",
        sharey="row",
    )
    for top, below, (title, weights) in zip(*axes, maps.items(), strict=True):
        image = plots.draw_map(top, weights, tokens, title)
        top.set(xlabel="", aspect="auto")  # columns stand above their bars
        top.tick_params(labelbottom=False)
        below.bar(range(len(tokens)), weights.mean(axis=0), color=colours)
        below.axhline(1 / len(tokens), color=plots.COLOURS["grey"], ls=":", lw=1.5)
        below.set_xticks(range(len(tokens)), tokens, rotation=90, fontsize=7)
        below.set(xlabel="to token", ylabel="weight on it")
    figure.colorbar(image, ax=list(axes[0]), label="weight", shrink=0.8)
    for ax in axes.flat:
        ax.label_outer()
    return figure


def attention_by_layer(results: Results) -> Figure:
    """Where each layer's attention goes: pre-trained, fine-tuned and with random weights."""
    table = results.table(SHARES)
    table["kind"] = table.kind.replace(dict.fromkeys(NEIGHBOURS, "itself, neighbours"))
    table = table.replace({"kind": {"all else": "other words"}})
    order = ["state", "layer", "kind"]
    table = table.groupby(order, sort=False, as_index=False).value.sum()
    colours = [*plots.FLOW_COLOURS[:3], plots.FLOW_COLOURS[4], plots.FLOW_COLOURS[-1]]
    return plots.stacked(table, panel="state", label="share of attention, %", colours=colours)


def stripes(runs: Mapping[str, Results]) -> Figure:
    """The share of heads with a stripe on [CLS] or [SEP], on a word, or on neither.

    Args:
        runs: by title, such as one run by weight and one by norm.
    """
    parts = ["[CLS] or [SEP]", "a word", "no stripe"]
    words, lead = (CLAIMS[f"stripes-{one}"].estimate for one in ("exclusive", "special"))
    tables = []
    for title, results in runs.items():
        table = results.table([words, lead])
        table = table.pivot_table(index="task", columns="what", values="value", observed=True)
        both = table[words] + table[lead], table[words]
        shares = pd.DataFrame(dict(zip(parts, (*both, 100 - sum(both)), strict=True)))
        tables.append(shares.rename_axis(columns="kind").stack().rename("value").reset_index())
        tables[-1]["measured by"] = title
    table = pd.concat(tables)
    colours = [LINES["[CLS]"], plots.COLOURS["orange"], plots.FLOW_COLOURS[-1]]
    return plots.stacked(
        table, y="task", panel="measured by", label="share of heads, %", colours=colours
    )


def special_tokens_by_depth(results: Results) -> Figure:
    """What [CLS] and [SEP] receive from the first layer to the last: bert-base as published, and this model on every task."""
    model = results.model_title
    table = results.table(WEIGHTS, kind=list(LINES))
    by = ["state", "kind", "task", "layer"]
    table = table.groupby(by, sort=False, observed=True, as_index=False).value.mean()
    by_weight = results.weight == "weight"  # as the published panels are
    panels = {f"{BERT}, pre-trained (published)": results.table(PUBLISHED)} if by_weight else {}
    panels |= {f"{model}, {state}": rows for state, rows in table.groupby("state", sort=False)}
    uniform = results.array(SHARES, state="random weights")[:, DESTINATIONS.index("[CLS]")].mean()
    size = (3.3 * len(panels), 3.2)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False)
    for ax, (title, rows) in zip(axes.flat, panels.items(), strict=True):
        for kind, colour in LINES.items():
            one = rows[rows.kind == kind]
            for _, of_task in one.groupby("task", observed=True):
                ax.plot(of_task.layer, of_task.value, color=colour, lw=0.8, alpha=0.35)
            mean = one.groupby("layer").value.mean()
            ax.plot(mean.index, mean, color=colour, lw=2, marker="o", ms=4)
            inner = mean[1:-1] if len(mean) > 2 else mean  # at the ends a label would hide the axes
            top = int(inner.idxmax())
            highest = one.value[one.layer == top].max()
            _label(ax, kind, (top, highest), color=colour, weight="bold")
        if title.startswith(model):
            ax.axhline(uniform, color=plots.COLOURS["grey"], ls=":", lw=1.2)
        ax.set_xticks(sorted(rows.layer.unique()))
        ax.set_title(title, fontsize=10)
        ax.set(xlabel="layer")
        ax.grid(axis="y", color="#e6e8eb", lw=0.6)
    axes[0, 0].set_ylabel(f"mean {results.weight}")
    axes[0, 0].set_ylim(0, 1.12 * max(rows.value.max() for rows in panels.values()))
    _label(axes[0, -1], "uniform weight", (min(2, table.layer.max()), uniform), fontsize=8)
    return figure


def _label(ax: Axes, text: str, at: tuple[float, float], **look: Any) -> None:
    """Words just above a point."""
    look = {"ha": "center", "color": plots.COLOURS["grey"]} | look
    ax.annotate(text, at, (0, 5), textcoords="offset points", **look)


def special_tokens_by_head(results: Results) -> Figure:
    """Figure 6 for pre-trained encoders: what [CLS] and [SEP] receive from every head, in bert-base as published and here."""
    heads = results.table(WEIGHTS, state="pre-trained", kind=list(LINES))
    task = "QQP" if "QQP" in set(heads.task) else heads.task.iloc[0]
    heads = plots.head_arrays(heads[heads.task == task], "kind")
    panels = {}
    if results.weight == "weight":  # as the published panels are
        panels = {f"{BERT}: {kind}": published_panel(kind) for kind in LINES}
    panels |= {f"{results.model_title}: {kind}": heads[kind] for kind in LINES}
    most = max(float(np.nanmax(values)) for values in panels.values())
    figure = plots.head_grid(panels, f"mean {results.weight}", (0, most))
    for ax in figure.axes[:-1]:
        ax.set_anchor("N")  # first layers side by side, also of encoders of several depths
    return figure


def gains(results: Results) -> Figure:
    """The heads whose weight on nouns, or on negation, rises most: how much, and how much above matched words; first runs."""
    kinds, places = ["nouns", "negation"], ["kind", "task", "layer", "head"]
    table = results.table([MORE, BEYOND]).merge(_enough(results, kinds))
    if table.empty:  # too few examples on every task
        return plots.dots(table)
    table = table.pivot(index=places, columns="what", values="value").reset_index()
    table["name"] = table.task.astype(str) + "  (" + table.layer.astype(str) + ", "
    table["name"] += table["head"].astype(str) + ")"
    figure, axes = plt.subplots(1, 2, figsize=(9.4, 3.6), sharex=True)
    looks = {
        MORE: ("rise", "grey", "o"),
        BEYOND: ("rise above that of matched words", "orange", "D"),
    }
    for ax, kind in zip(axes, kinds, strict=True):
        top = table[table.kind == kind].nlargest(TOP, MORE)[::-1]
        ax.hlines(top.name, top[BEYOND], top[MORE], color="#c9cdd3", lw=2, zorder=1)
        for what, (label, colour, marker) in looks.items():
            ax.scatter(top[what], top.name, color=plots.COLOURS[colour], marker=marker, label=label)
        ax.axvline(0, color=plots.COLOURS["grey"], lw=0.8, zorder=0)
        ax.set(title=kind, xlabel=f"rise of the {results.weight} by fine-tuning")
        ax.tick_params(axis="y", length=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def turned(results: Results) -> Figure:
    """The weight on nouns, or on negation, of the head that turned to it most, before and after; measured on other examples."""
    kinds = ["nouns", "negation"]
    table = results.table(TURNED, kind=kinds, state=["pre-trained", "fine-tuned"])
    return plots.dots(
        table,
        colour="state",
        panel="kind",
        label="weight",
        colours={"pre-trained": plots.COLOURS["grey"], "fine-tuned": plots.COLOURS["orange"]},
    )


def _enough(results: Results, kinds: list[str]) -> pd.DataFrame:
    """Kinds and tasks with enough examples that have the type."""
    present = results.table(EXAMPLES, kind=kinds)
    return present.loc[present.value >= MIN_EXAMPLES, ["kind", "task"]]
