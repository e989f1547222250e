"""The figures of notebook 7. ``runs`` are tables of results by whose they are, real data first (:attr:`Record.runs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import plots
from ..attention import Batch, attention_maps, vectors
from ..common import Head, axis_numbers, head_name
from ..glue import TASKS
from ..plots import COLOURS, FLOW_COLOURS, attention_map
from ..results import Results
from ..statistics import largest
from .measure import RANKS
from .mixing import DEFINITIONS, PUBLISHED
from .special_tokens import INSTEAD, MARKS

Runs = Mapping[str, Results]
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
    by_weight, by_norm = (attention_maps(model, batch, way)[layer][0, number].cpu().numpy() for way in ("weight", "norm"))
    lengths = vectors(model, batch)[layer][0, number].norm(dim=1).cpu().numpy()
    size = 0.19 * len(tokens) + 1.6
    figure, axes = plt.subplots(1, 3, figsize=(2 * size + 2.2, size), width_ratios=(size, 1.6, size))
    attention_map(axes[0], by_weight, tokens, f"{head_name(*head)}, by weight")
    attention_map(axes[2], by_norm, tokens, f"{head_name(*head)}, by norm")
    places = np.arange(len(tokens))
    axes[1].barh(places, lengths, color=WAY_COLOURS["by norm"], height=0.7)
    axes[1].set(title="‖f(x)‖", xlabel="length", ylim=(len(tokens) - 0.5, -0.5))
    axes[1].set_yticks(places, tokens, fontsize=7)
    return figure


def lengths(runs: Runs) -> Figure:
    """Mean length of f(x) by layer, a panel for each run, a line for each kind of token."""
    figure, axes = plots.panel_grid(len(runs), 3.6, 2.9)
    for ax, (name, run) in zip(axes, runs.items(), strict=True):
        for entry in run.find("mean length of vectors", state="pre-trained"):
            layers = axis_numbers(len(entry["value"]))
            ax.plot(layers, entry["value"], "o-", color=KIND_COLOURS[entry["kind"]], ms=4, lw=1.6, label=entry["kind"])
            ax.set_xticks(layers)
        ax.set(title=name, xlabel="layer", ylim=(0, None))
    axes[0].set_ylabel("mean length ‖f(x)‖")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(KIND_COLOURS))
    return figure


def flow_both_ways(runs: Runs, state: str = "pre-trained") -> Figure:
    """Where each layer's attention goes, left by weight and right by norm, a row for each run."""
    panels, names = {}, []
    for name, run in runs.items():
        for way in ("weight", "norm"):
            (entry,) = run.find(f"share of attention by destination, by {way}", state=state)
            panels[f"{name}\nby {way}"], names = np.array(entry["value"]), entry["kinds"]
    return plots.flow_grid(panels, names, columns=2)


def cls_by_task(runs: Runs, state: str = "fine-tuned") -> Figure:
    """What [CLS] gets of all attention on each task, by weight and by norm, a panel for each run."""
    panels: dict[str, dict[str, dict]] = {}
    for name, run in runs.items():
        rows = panels[name] = {}
        for way in WAY_COLOURS:
            for entry in run.find(f"share of [CLS], {way}", state=state):
                rows.setdefault(TASKS[entry["task"]].title, {})[way] = entry
    return _from_zero(plots.dot_panels(panels, "share of attention, %", 100, WAY_COLOURS))


def answers_moved(runs: Runs, sink: str = "[CLS]") -> Figure:
    """How far answers move without attention to the sink and without as much to words, a panel for each run and way."""
    colours = {f"attention cut from {sink}": KIND_COLOURS[sink], "as much cut from words": KIND_COLOURS["words"]}
    panels: dict[str, dict[str, dict]] = {}
    for name, run in runs.items():
        for way in INSTEAD:
            rows = panels[f"{name}\n{way} instead"] = {}
            for entry in run.find(f"how far answers move, {way} instead"):
                colour = list(colours)[entry["kind"] == "words"]
                # No distance is below 0, where a symmetric interval may end.
                rows.setdefault(TASKS[entry["task"]].title, {})[colour] = entry | {"low": max(entry["low"], 0.0)}
    return _from_zero(plots.dot_panels(panels, "how far the answer moves", 1, colours, columns=2))


def heads_both_ways(runs: Runs) -> Figure:
    """Scatters of the pre-trained heads by weight and by norm, a row for each run and a panel for each dependency.

    A dot is how often a head points right; the highest head by either is orange and named.
    """
    known = {name: run for name, run in runs.items() if run.find(POINTS.format("weight"))}
    relations = [entry["kind"] for entry in next(iter(known.values())).find(POINTS.format("weight"))]
    size = 2.5 * len(relations), 2.6 * len(known) + 0.3
    figure, axes = plt.subplots(len(known), len(relations), figsize=size, squeeze=False, sharex=True, sharey=True)
    for row, (name, run) in zip(axes, known.items(), strict=True):
        for ax, relation in zip(row, relations, strict=True):
            ax.axline((0, 0), slope=1, color=COLOURS["grey"], lw=0.8)
            ax.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", xticks=(0, 50, 100), yticks=(0, 50, 100))
            if not run.find(POINTS.format("weight"), kind=relation):
                continue
            both = [100 * run.array(POINTS.format(way), kind=relation) for way in ("weight", "norm")]
            ax.plot(*(values.ravel() for values in both), "o", color=COLOURS["blue"], ms=4, alpha=0.6)
            for at in {largest(values) for values in both}:
                place = [values[at] for values in both]
                ax.plot(*place, "o", color=COLOURS["orange"], ms=5)
                ax.annotate(
                    head_name(*at), place, xytext=(-9, -1), textcoords="offset points", ha="right", va="center", fontsize=8
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
                state: entry | {"high": min(entry["high"], 1.0)}  # no correlation is beyond
                for state in STATE_COLOURS
                for entry in run.find(RANKS.format(links))
                if entry["kind"].startswith(f"{kind}, {state}")
            }
            for row, (links, kind) in LINKS.items()
        }
    figure = plots.dot_panels(panels, "rank correlation over heads", 1, STATE_COLOURS, border)
    for ax in figure.axes:
        ax.set_xlim(0.6, 1.02)
    return figure


def _from_zero(figure: Figure) -> Figure:
    """The figure with axes that begin at 0, and room for a dot that lies there."""
    for ax in figure.axes:
        ax.set_xlim(left=-0.02 * ax.get_xlim()[1])
        ax.spines["left"].set_visible(False)
        ax.axvline(0, color="black", lw=0.8, zorder=0)
        ax.tick_params(axis="y", length=0)
    return figure


def mixing(ratios: Mapping[str, np.ndarray]) -> Figure:
    """Mixing ratios by layer, a panel for each definition, a line for each model; dashed what is published of bert-base.

    Args:
        ratios: by model, shape (layers, definitions), in the order of ``DEFINITIONS``.
    """
    figure, axes = plt.subplots(1, len(DEFINITIONS), figsize=(2.5 * len(DEFINITIONS), 2.9), sharey=True)
    few = ("blue",) if len(ratios) == 1 else ("orange", "blue", "grey")  # blue is this run's, wherever it stands alone
    colours = dict(zip(ratios, (COLOURS[name] for name in few), strict=False))
    for at, (ax, name) in enumerate(zip(axes, DEFINITIONS, strict=True)):
        for model, values in ratios.items():
            ax.plot(axis_numbers(len(values)), values[:, at], "o-", ms=3.5, lw=1.5, color=colours[model], label=model)
        if name in PUBLISHED:
            ax.axhline(PUBLISHED[name], color="black", ls="--", lw=1, label="bert-base, published")
        ax.set(title=name.replace(" with", "\nwith").replace(" and", "\nand"), xlabel="layer", ylim=(0, 1))
        ax.set_xticks(axis_numbers(len(values)))
    axes[0].set_ylabel("mixing ratio")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
