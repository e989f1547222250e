"""The figures of notebook 7: one map by weight and by norm, lengths of vectors, attention cut, and heads along links.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..attention import Batch, attention_maps, vectors
from ..common import Head, head_name
from ..plots import COLOURS, FLOW_COLOURS
from ..results import Results
from ..verdicts import CLAIMS, PRETRAINED
from .measure import LENGTHS, MOVED, POINTS, RANKS, SHARES, TUNED, WAYS
from .special_tokens import CUT_FROM, INSTEAD, MARKS

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


def answers_moved(results: Results) -> Figure:
    """How far answers move without attention to the sink and without as much to words, a panel for each replacement."""
    sink = results.content["facts"]["sink"]
    kinds = dict(
        zip(CUT_FROM, (f"attention cut from {sink}", "as much cut from words"), strict=True)
    )
    names = {MOVED.format(instead): f"{instead} instead" for instead in INSTEAD}
    table = results.table(list(names))
    table["what"], table["kind"] = table.what.map(names), table.kind.map(kinds)
    table["low"] = table.low.clip(lower=0)  # a distance
    colours = dict(zip(kinds.values(), (KIND_COLOURS[sink], COLOURS["orange"]), strict=True))
    label = "how far the answer moves"
    return plots.dots(table, colour="kind", panel="what", label=label, colours=colours)


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
    return plots.scatter(table, x=across, y=up, panel="kind", name="name", diagonal=True)


def ranks(results: Results) -> Figure:
    """Rank correlation of heads by norm with the same by weight, a row for each kind of link."""
    table, parts = results.table([RANKS.format(links) for links in dict(LINKS.values())]), []
    for row, (links, kind) in LINKS.items():
        for state in (PRETRAINED, TUNED):
            own = table.kind.str.startswith(f"{kind}, {state}") & (
                table.what == RANKS.format(links)
            )
            parts.append(table[own].assign(links=row, state=state))
    return plots.dots(
        pd.concat(parts, ignore_index=True),
        y="links",
        colour="state",
        label="rank correlation over heads",
        colours={PRETRAINED: COLOURS["grey"], TUNED: COLOURS["blue"]},
        border={"least that counts as the same": CLAIMS["relations-rank"].least},
    )
