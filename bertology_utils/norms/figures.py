"""The figures of notebook 7: one map by weight and by norm, lengths of vectors, uniform shares, attention cut, heads along links.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..attention import Batch, attention_maps, vectors
from ..common import Head, head_name
from ..plots import COLOURS, FLOW_COLOURS
from ..results import Results
from ..verdicts import PRETRAINED
from .carried import MARKS
from .links import POINTS, RANKS, TUNED, TUNING, WAYS
from .measure import COUNTED, DROPPED, LENGTHS, MOVED, SHARES, UNIFORM

KIND_COLOURS = dict(zip(MARKS, FLOW_COLOURS, strict=False)) | {"words": COLOURS["orange"]}
LINKS = {  # rows of a figure: which links, and how their label in the results begins
    "subject (nsubj)": ("dependencies", "nsubj"),
    "object (obj)": ("dependencies", "obj"),
    "adjective (amod)": ("dependencies", "amod"),
    "determiner (det)": ("dependencies", "det"),
    "frame link": ("frame links", "by norm"),
    "frame link,\nwords only in both": ("frame links among words", "words only"),
}


def map_both_ways(model, batch: Batch, tokens: Sequence[str], head: Head) -> Figure:
    """One head's map by weight, the lengths of the tokens' vectors, and its map by norm.

    Args:
        model: encoder or classifier in evaluation mode.
        batch: one input.
        tokens: its wordpieces.
        head: (layer, head) from 0.
    """
    layer, number = head
    maps = [attention_maps(model, batch, way)[layer][0, number].cpu().numpy() for way in WAYS]
    lengths = vectors(model, batch)[layer][0, number].norm(dim=1).cpu().numpy()
    size = 0.19 * len(tokens) + 1.6
    figure, axes = plt.subplots(
        1, 3, figsize=(2 * size + 2.2, size), width_ratios=(size, 1.6, size)
    )
    for ax, way, weights in zip(axes[::2], WAYS, maps, strict=True):
        plots.draw_map(ax, weights, tokens, f"{head_name(*head)}, by {way}")
    places = np.arange(len(tokens))
    axes[1].barh(places, lengths, color=COLOURS["green"], height=0.7)
    axes[1].set(title="‖f(x)‖", xlabel="length", ylim=(len(tokens) - 0.5, -0.5))
    axes[1].set_yticks(places, tokens, fontsize=7)
    return figure


def lengths(results: Results) -> Figure:
    """Mean length of f(x) by layer, pre-trained, a line for each kind of token."""
    table = results.table(LENGTHS, state=PRETRAINED)
    return plots.lines(table, colour="kind", label="mean length ‖f(x)‖", colours=KIND_COLOURS)


def attention_by_layer(results: Results) -> Figure:
    """Where each layer's attention goes, pre-trained, by weight and by norm."""
    names = {SHARES.format(way): f"by {way}" for way in WAYS}
    table = results.table(list(names), state=PRETRAINED)
    table["what"] = table.what.map(names)
    label = "share of attention, %"
    return plots.stacked(table, panel="what", label=label, colours=FLOW_COLOURS)


def uniform_shares(results: Results) -> Figure:
    """What one token of each kind gets by layer, in uniform shares, pre-trained: by weight, by norm and by projection."""
    names = {UNIFORM.format(way): f"by {way}" for way in COUNTED}
    table = results.table(list(names), state=PRETRAINED)
    table["what"] = table.what.map(names)
    look: dict[str, Any] = {"label": "uniform shares, 1/L", "border": {"a uniform share": 1}}
    look |= {"colours": KIND_COLOURS, "share": False}
    return plots.lines(table, colour="kind", panel="what", **look)


def answers_moved(results: Results) -> Figure:
    """How far answers move when the sink's attention is dropped, and by the cuts that should move them farther."""
    sink = results.content["facts"]["sink"]
    names = {
        DROPPED: f"{sink} dropped",
        "words, nothing instead": "words dropped",
        "the sink, the rest instead": f"{sink}'s attention to the other tokens",
        "the sink, the mean instead": f"{sink}'s attention to all tokens alike",
    }
    table = results.table(MOVED, kind=list(names))
    table["kind"] = pd.Categorical(table.kind.map(names), list(names.values()))
    colours = (KIND_COLOURS[sink], COLOURS["orange"], COLOURS["green"], COLOURS["grey"])
    label = "how far the answer moves"
    return plots.dots(table, colour="kind", label=label, colours=colours, limits=(0, None))


def heads_both_ways(results: Results) -> Figure:
    """Every pre-trained head by weight and by norm, a panel for each dependency: how often it points right.

    The highest head by either carries its name.
    """
    names = {POINTS.format(way): f"right by {way}, %" for way in WAYS}
    across, up = names.values()
    table = results.table(list(names))
    table = table.assign(what=table.what.map(names))
    table = table.pivot(index=["kind", "layer", "head"], columns="what", values="value")
    table = table.reset_index().assign(name="")
    for _, heads in table.groupby("kind"):
        for at in {heads[across].idxmax(), heads[up].idxmax()}:
            table.loc[at, "name"] = head_name(table.layer[at] - 1, table["head"][at] - 1)
    titles = {kind: title for title, (_, kind) in LINKS.items()}
    there = [titles[kind] for kind in titles if kind in set(table.kind)]
    table["kind"] = pd.Categorical(table.kind.map(titles), there)
    return plots.scatter(table, x=across, y=up, panel="kind", name="name")


def ranks(results: Results) -> Figure:
    """Rank correlation of fine-tuned heads by norm with the same by weight, and with themselves before; by kind of link."""
    names = {RANKS: "norm with weight", TUNING: "fine-tuned with pre-trained"}
    what = {
        name.format(links): words for links in dict(LINKS.values()) for name, words in names.items()
    }
    table, parts = results.table(list(what)), []
    for row, (links, kind) in LINKS.items():
        own = table.kind.str.startswith(f"{kind}, {TUNED}")
        own &= table.what.isin([name.format(links) for name in names])
        parts.append(table[own].assign(links=row))
    rows = pd.concat(parts, ignore_index=True)
    rows["what"] = rows.what.map(what)
    colours = dict(zip(names.values(), (COLOURS["blue"], COLOURS["grey"]), strict=True))
    label = "rank correlation over heads"
    return plots.dots(rows, y="links", colour="what", label=label, colours=colours)
