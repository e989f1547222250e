"""The figures of §4.4: two maps over their columns' means, attention by layer, stripes, Figure 6, depth, and gains of heads.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..annotation.inputs import TOKEN_TYPES, AnnotatedInput, token_types
from ..common import head_name
from ..results import Results
from ..verdicts import CLAIMS, MIN_EXAMPLES
from .compare import BEYOND, EXAMPLES, MORE, PUBLISHED, SHARES, WEIGHTS
from .measure import DESTINATIONS


def maps_over_columns(
    annotated: AnnotatedInput, maps: Mapping[str, np.ndarray], marked: str = ""
) -> Figure:
    """Self-attention maps of one input, and below each what every token gets from the average token.

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
        below.set(xlabel="to token", ylabel="column's mean")
    figure.colorbar(image, ax=list(axes[0]), label="weight", shrink=0.8)
    for ax in axes.flat:
        ax.label_outer()
    return figure


def attention_by_layer(results: Results) -> Figure:
    """Where each layer's attention goes: pre-trained, fine-tuned and with random weights."""
    return plots.stacked(
        results.table(SHARES),
        panel="state",
        label="share of attention, %",
        colours=plots.FLOW_COLOURS,
    )


def stripes(results: Results) -> Figure:
    """The share of heads with a stripe on a word, and of how many more have one on [CLS] or [SEP]."""
    names = {
        CLAIMS["stripes-exclusive"].estimate: "on a word",
        CLAIMS["stripes-special"].estimate: "on [CLS] or [SEP],\nminus those on a word",
    }
    table = results.table(list(names))
    table["what"] = table.what.map(names)
    return plots.dots(table, panel="what", label="share of heads, %", limits=(-4, 104))


def special_tokens_by_head(results: Results) -> Figure:
    """Figure 6: what [SEP] and [CLS] get from every head of the fine-tuned models, by task, on one scale."""
    tables = [results.table(WEIGHTS, state="fine-tuned", kind=kind) for kind in ("[SEP]", "[CLS]")]
    table = pd.concat(tables)
    table["panel"] = table.kind + ", " + table.task.astype(str)
    return plots.head_grid(plots.head_arrays(table, "panel"), "mean weight", (0, 1), columns=3)


def special_tokens_by_depth(results: Results) -> Figure:
    """What [CLS] and [SEP] get from the first layer to the last, pre-trained; of bert-base the published panels."""
    own, published = "the model here", "bert-base, published figure (QQP)"
    table = results.table(WEIGHTS, state="pre-trained", kind=["[CLS]", "[SEP]"]).assign(model=own)
    table = table.groupby(
        ["model", "kind", "task", "layer"], observed=True, as_index=False
    ).value.mean()
    table = pd.concat([table, results.table(PUBLISHED).assign(model=published)])
    last = table.groupby("model").layer.transform("max")
    uniform = results.array(SHARES, state="random weights")[:, DESTINATIONS.index("[CLS]")].mean()
    figure = plots.lines(
        table.assign(depth=(table.layer - 1) / (last - 1), task=table.task.astype(str)),
        x="depth",
        colour="model",
        panel="kind",
        each="task",
        label="mean weight",
        border={"uniform weight": float(uniform)},
    )
    for ax in figure.axes:
        ax.set_xticks([0, 0.5, 1], ["first layer", "", "last layer"])
    return figure


def gains(results: Results) -> Figure:
    """What fine-tuning adds to every head's weight on nouns and negation, by itself and above matched words; first runs."""
    kinds, places = ["nouns", "negation"], ["kind", "task", "layer", "head"]
    present = results.table(EXAMPLES, kind=kinds)[["kind", "task", "value"]]
    present = present[present.value >= MIN_EXAMPLES].drop(columns="value")
    table = results.table([MORE, BEYOND]).merge(present)
    if table.empty:  # too few examples on every task
        return plots.dots(table)
    table = table.pivot(index=places, columns="what", values="value").reset_index()
    highest = table.groupby("kind")[BEYOND].idxmax()
    layers, heads = table.loc[highest, "layer"] - 1, table.loc[highest, "head"] - 1
    table.loc[highest, "name"] = list(map(head_name, layers, heads))
    table["kind"] = pd.Categorical(table.kind, kinds)
    return plots.scatter(
        table, x=MORE, y=BEYOND, colour="task", panel="kind", name="name", diagonal=True
    )
