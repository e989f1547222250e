"""The figures of notebook 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..common import axis_numbers, head_name
from ..plots import COLOURS, FLOW_COLOURS, attention_map
from ..statistics import largest
from .mixing import DEFINITIONS, PUBLISHED
from .special_tokens import MARKS

WAY_COLOURS = {"by weight": COLOURS["grey"], "by norm": COLOURS["green"]}
KIND_COLOURS = dict(zip(MARKS, FLOW_COLOURS, strict=False)) | {"words": COLOURS["orange"]}


def map_both_ways(
    tokens: Sequence[str], by_weight: np.ndarray, lengths: np.ndarray, by_norm: np.ndarray, head: str
) -> Figure:
    """One head's map by weight, the lengths of the tokens' vectors, and its map by norm.

    Args:
        tokens: the wordpieces.
        by_weight, by_norm: shape (tokens, tokens), rows summing to 1.
        lengths: of f(x), shape (tokens,).
        head: its name.
    """
    size = 0.19 * len(tokens) + 1.6
    figure, axes = plt.subplots(1, 3, figsize=(2 * size + 2.2, size), width_ratios=(size, 1.6, size))
    attention_map(axes[0], by_weight, tokens, f"{head}, by weight")
    attention_map(axes[2], by_norm, tokens, f"{head}, by norm")
    places = np.arange(len(tokens))
    axes[1].barh(places, lengths, color=WAY_COLOURS["by norm"], height=0.7)
    axes[1].set(title="‖f(x)‖", xlabel="length", ylim=(len(tokens) - 0.5, -0.5))
    axes[1].set_yticks(places, tokens, fontsize=7)
    return figure


def by_layer(lines: Mapping[str, np.ndarray], label: str) -> Figure:
    """A line by layer for each kind of token, with its name at the end.

    Args:
        lines: by kind, shape (layers,).
        label: of the vertical axis.
    """
    figure, ax = plt.subplots(figsize=(5.6, 3.1))
    ends = sorted(lines, key=lambda kind: lines[kind][-1])
    margin = 0.07 * max(map(max, lines.values()))
    for kind, values in lines.items():
        layers, colour = axis_numbers(len(values)), KIND_COLOURS[kind]
        ax.plot(layers, values, "o-", color=colour, ms=4, lw=1.6)
        # Names of lines that end close together make room for each other.
        close = [other for other in ends if other != kind and abs(lines[other][-1] - values[-1]) < margin]
        shift = 0 if not close else 6 if ends.index(kind) > ends.index(close[0]) else -6
        at = (layers[-1], values[-1])
        ax.annotate(kind, at, xytext=(6, shift), textcoords="offset points", va="center", color=colour)
    ax.set(xlabel="layer", ylabel=label, ylim=(0, None))
    ax.set_xticks(layers)
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


def heads_both_ways(dots: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Scatters of all heads by weight and by norm, a panel for each relation; the highest head by either is named.

    Args:
        dots: by relation, how often each head points right by weight and by norm, shape (ways, layers, heads).
    """
    figure, axes = plt.subplots(1, len(dots), figsize=(2.7 * len(dots), 2.9), squeeze=False)
    for ax, (relation, both) in zip(axes.flat, dots.items(), strict=True):
        ax.axline((0, 0), slope=1, color=COLOURS["grey"], lw=0.8)
        for way, colour in ((1, "grey"), (0, "blue")):
            ax.plot(*(values[way].ravel() for values in both), "o", color=COLOURS[colour], ms=4, alpha=0.6)
        for at in {largest(values) for values in both}:
            place = [values[at] for values in both]
            ax.annotate(head_name(*at[1:]), place, xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=8)
        ax.set(title=relation, xlabel="points right, by weight", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.flat[0].set_ylabel("by norm")
    return figure
