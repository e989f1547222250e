"""The figures of notebook 7. ``runs`` are tables of results by whose they are, real data first (:attr:`Record.runs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import plots
from ..attention import Batch, attention_maps, vectors
from ..common import Head, head_name
from ..plots import COLOURS, FLOW_COLOURS, attention_map
from ..results import Runs
from ..statistics import largest
from .measure import RANKS
from .mixing import DEFINITIONS, PUBLISHED
from .special_tokens import CUT_FROM, INSTEAD, MARKS

WAY_COLOURS = {"by weight": COLOURS["grey"], "by norm": COLOURS["green"]}
KIND_COLOURS = dict(zip(MARKS, FLOW_COLOURS, strict=False)) | {"words": COLOURS["orange"]}
STATE_COLOURS = {"pre-trained": COLOURS["grey"], "fine-tuned": COLOURS["blue"]}
POINTS = "share of links that a head points along, by {}"
LINKS = {  # rows of a figure: which links, and how the row's label in the results begins
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
    by_weight, by_norm = (
        attention_maps(model, batch, way)[layer][0, number].cpu().numpy()
        for way in ("weight", "norm")
    )
    lengths = vectors(model, batch)[layer][0, number].norm(dim=1).cpu().numpy()
    size = 0.19 * len(tokens) + 1.6
    figure, axes = plt.subplots(
        1, 3, figsize=(2 * size + 2.2, size), width_ratios=(size, 1.6, size)
    )
    attention_map(axes[0], by_weight, tokens, f"{head_name(*head)}, by weight")
    attention_map(axes[2], by_norm, tokens, f"{head_name(*head)}, by norm")
    places = np.arange(len(tokens))
    axes[1].barh(places, lengths, color=WAY_COLOURS["by norm"], height=0.7)
    axes[1].set(title="‖f(x)‖", xlabel="length", ylim=(len(tokens) - 0.5, -0.5))
    axes[1].set_yticks(places, tokens, fontsize=7)
    return figure


def lengths(runs: Runs) -> Figure:
    """Mean length of f(x) by layer, a panel for each run, a line for each kind of token."""
    found = {
        name: run.find("mean length of vectors", state="pre-trained") for name, run in runs.items()
    }
    panels = {name: {one["kind"]: one["value"] for one in of_run} for name, of_run in found.items()}
    return plots.layer_lines(panels, "mean length ‖f(x)‖", KIND_COLOURS)


def flow_both_ways(runs: Runs) -> Figure:
    """Where each layer's attention goes, pre-trained, left by weight and right by norm, a row for each run."""
    panels, names = {}, []
    for name, run in runs.items():
        for way in ("weight", "norm"):
            (entry,) = run.find(f"share of attention by destination, by {way}", state="pre-trained")
            panels[f"{name}\nby {way}"], names = np.array(entry["value"]), entry["kinds"]
    return plots.flow_grid(panels, names, columns=2)


def answers_moved(runs: Runs, sink: str = "[CLS]") -> Figure:
    """How far answers move without attention to the sink and without as much to words, a panel for each run and way."""
    cut = dict(zip(CUT_FROM, (f"attention cut from {sink}", "as much cut from words"), strict=True))
    colours = dict(zip(cut.values(), (KIND_COLOURS[sink], KIND_COLOURS["words"]), strict=True))
    what = {f"how far answers move, {way} instead": f"{way} instead" for way in INSTEAD}
    panels = plots.panels_of(
        runs, list(what), ("run", "what"), "task", "kind", {"kind": cut, "what": what}
    )
    least = -0.005, None  # room for a dot at 0
    return plots.dot_panels(
        panels, "how far the answer moves", 1, colours, columns=2, limits=least, within=(0, np.inf)
    )


def heads_both_ways(runs: Runs) -> Figure:
    """Scatters of the pre-trained heads by weight and by norm, a row for each run and a panel for each dependency.

    A dot is how often a head points right; the highest head by either is orange and named.
    """
    known = {name: run for name, run in runs.items() if run.find(POINTS.format("weight"))}
    relations = [
        entry["kind"] for entry in next(iter(known.values())).find(POINTS.format("weight"))
    ]
    size = 2.5 * len(relations), 2.6 * len(known) + 0.3
    figure, axes = plt.subplots(
        len(known), len(relations), figsize=size, squeeze=False, sharex=True, sharey=True
    )
    for row, (name, run) in zip(axes, known.items(), strict=True):
        for ax, relation in zip(row, relations, strict=True):
            ax.axline((0, 0), slope=1, color=COLOURS["grey"], lw=0.8)
            ax.set(
                xlim=(0, 100),
                ylim=(0, 100),
                aspect="equal",
                xticks=(0, 50, 100),
                yticks=(0, 50, 100),
            )
            if not run.find(POINTS.format("weight"), kind=relation):
                continue
            both = [
                100 * run.array(POINTS.format(way), kind=relation) for way in ("weight", "norm")
            ]
            ax.plot(
                *(values.ravel() for values in both), "o", color=COLOURS["blue"], ms=4, alpha=0.6
            )
            for at in {largest(values) for values in both}:
                place = [values[at] for values in both]
                ax.plot(*place, "o", color=COLOURS["orange"], ms=5)
                ax.annotate(
                    head_name(*at),
                    place,
                    xytext=(-9, -1),
                    textcoords="offset points",
                    ha="right",
                    va="center",
                    fontsize=8,
                )
        row[0].set_ylabel(f"{name}\n\nright by norm, %")
    for ax, relation in zip(axes[0], relations, strict=True):
        ax.set_title(next((row for row, (_, kind) in LINKS.items() if kind == relation), relation))
    for ax in axes[-1]:
        ax.set_xlabel("right by weight, %")
    return figure


def ranks(runs: Runs, border: float) -> Figure:
    """Rank correlation of heads by norm with the same by weight, a panel for each run, a row for each kind of link."""
    panels: dict[str, dict[str, dict]] = {}
    for name, run in runs.items():
        panels[name] = {
            row: {
                state: entry
                for state in STATE_COLOURS
                for entry in run.find(RANKS.format(links))
                if entry["kind"].startswith(f"{kind}, {state}")
            }
            for row, (links, kind) in LINKS.items()
        }
    label = "rank correlation over heads"
    return plots.dot_panels(
        panels, label, 1, STATE_COLOURS, limits=(0.6, 1.02), border=border, within=(-1, 1)
    )


def mixing(ratios: Mapping[str, np.ndarray]) -> Figure:
    """Mixing ratios by layer, a panel for each definition, a line for each model; dashed what is published of bert-base.

    Args:
        ratios: by model, shape (layers, definitions), in the order of ``DEFINITIONS``.
    """
    few = (
        ("blue",) if len(ratios) == 1 else ("orange", "blue", "grey")
    )  # blue is this run's, wherever it stands alone
    colours = {
        "bert-base, published": "black",
        **dict(zip(ratios, (COLOURS[name] for name in few), strict=False)),
    }
    panels: dict[str, dict[str, np.ndarray]] = {}
    for at, name in enumerate(DEFINITIONS):
        lines = panels[name.replace(" with", "\nwith").replace(" and", "\nand")] = {
            of: one[:, at] for of, one in ratios.items()
        }
        if name in PUBLISHED:
            lines["bert-base, published"] = np.full(max(map(len, ratios.values())), PUBLISHED[name])
    return plots.layer_lines(panels, "mixing ratio", colours, (0, 1))
