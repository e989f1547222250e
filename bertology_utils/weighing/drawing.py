"""The figures of notebook 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from .. import figures
from ..common import axis_numbers, head_name
from ..statistics.ties import largest

WEIGHT_COLOUR, NORM_COLOUR = figures.COLOURS["grey"], figures.COLOURS["green"]
WAY_COLOURS = {"by weight": WEIGHT_COLOUR, "by norm": NORM_COLOUR}
WORDS_COLOUR = figures.COLOURS["orange"]
KIND_COLOURS = {"[CLS]": figures.FLOW_COLOURS[0], "[SEP]": figures.FLOW_COLOURS[1], "punctuation": figures.FLOW_COLOURS[2]}


def map_both_ways(tokens: Sequence[str], by_weight: np.ndarray, lengths: np.ndarray, by_norm: np.ndarray, head: str):
    """One map by weight, what each token's vector is long, and the map by norm.

    Args:
        tokens: the wordpieces.
        by_weight, by_norm: shape (tokens, tokens), rows summing to 1.
        lengths: of f(x), shape (tokens,).
        head: its name.

    Returns:
        The figure.
    """
    size = 0.19 * len(tokens) + 1.6
    figure, axes = plt.subplots(1, 3, figsize=(2 * size + 2.2, size), width_ratios=(size, 1.6, size))
    figures.attention_map(axes[0], by_weight, tokens, f"{head}, by weight")
    figures.attention_map(axes[2], by_norm, tokens, f"{head}, by norm")
    places = np.arange(len(tokens))
    axes[1].barh(places, lengths, color=NORM_COLOUR, height=0.7)
    axes[1].set(title="‖f(x)‖", xlabel="length", ylim=(len(tokens) - 0.5, -0.5))
    axes[1].set_yticks(places, tokens, fontsize=7)
    return figure


def lengths_by_layer(lengths: Mapping[str, np.ndarray]):
    """Mean ‖f(x)‖ of tokens of each type, by layer.

    Args:
        lengths: by type, shape (layers,).

    Returns:
        The figure.
    """
    figure, ax = plt.subplots(figsize=(5.6, 3.1))
    _lines(ax, lengths)
    ax.set(xlabel="layer", ylabel="mean length ‖f(x)‖", ylim=(0, None))
    return figure


def _lines(ax: Axes, lines: Mapping[str, np.ndarray]) -> None:
    """A line by layer for each kind of token, with its name at the end."""
    ends = sorted(lines, key=lambda kind: lines[kind][-1])
    for kind, values in lines.items():
        layers, colour = axis_numbers(len(values)), KIND_COLOURS.get(kind, WORDS_COLOUR)
        ax.plot(layers, values, "o-", color=colour, ms=4, lw=1.6)
        # Names of lines that end close together make room for each other.
        close = [
            other
            for other in ends
            if other != kind and abs(lines[other][-1] - values[-1]) < 0.07 * max(map(max, lines.values()))
        ]
        shift = 0 if not close else 6 if ends.index(kind) > ends.index(close[0]) else -6
        at = (layers[-1], values[-1])
        ax.annotate(kind, at, xytext=(6, shift), textcoords="offset points", va="center", color=colour)
    ax.set_xticks(layers)


def mixing(ratios: Mapping[str, np.ndarray], definitions: Sequence[str], published: Mapping[str, float]):
    """Mixing ratios by layer, a panel for each definition, a line for each model; dashed what is published of bert-base.

    Args:
        ratios: by model, shape (layers, definitions).
        definitions: their names.
        published: mean over layers, by definition.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(definitions), figsize=(2.5 * len(definitions), 2.9), sharey=True)
    few = ("blue",) if len(ratios) == 1 else ("orange", "blue", "grey")  # blue is this run's, wherever it stands alone
    colours = dict(zip(ratios, (figures.COLOURS[name] for name in few), strict=False))
    for at, (ax, name) in enumerate(zip(axes, definitions, strict=True)):
        for model, values in ratios.items():
            ax.plot(axis_numbers(len(values)), values[:, at], "o-", ms=3.5, lw=1.5, color=colours[model], label=model)
        if name in published:
            ax.axhline(published[name], color="black", ls="--", lw=1, label="bert-base, published")
        ax.set(title=name.replace(" with", "\nwith").replace(" and", "\nand"), xlabel="layer", ylim=(0, 1))
        ax.set_xticks(axis_numbers(len(values)))
    axes[0].set_ylabel("mixing ratio")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def gradients(lines: Mapping[str, np.ndarray]):
    """Mean size of the gradient for a weight, by layer, on a logarithmic scale.

    Args:
        lines: by kind of token, shape (layers,).

    Returns:
        The figure.
    """
    figure, ax = plt.subplots(figsize=(5.6, 3.0))
    _lines(ax, lines)
    ax.set(xlabel="layer", ylabel="mean |∂ answer / ∂ weight|", yscale="log")
    return figure


def heads_both_ways(dots: Mapping[str, tuple[np.ndarray, np.ndarray]]):
    """Scatters of all heads by weight and by norm, a panel for each relation; the highest head by either is named.

    Args:
        dots: by relation, how often each head points right by weight and by norm, shape (ways, layers, heads).

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(1, len(dots), figsize=(2.7 * len(dots), 2.9), squeeze=False)
    for ax, (relation, both) in zip(axes.flat, dots.items(), strict=True):
        ax.axline((0, 0), slope=1, color=WEIGHT_COLOUR, lw=0.8)
        for way, colour in ((1, "grey"), (0, "blue")):
            ax.plot(*(values[way].ravel() for values in both), "o", color=figures.COLOURS[colour], ms=4, alpha=0.6)
        for at in {largest(values) for values in both}:
            ax.annotate(head_name(*at[1:]), [values[at] for values in both], xytext=(-4, 4), textcoords="offset points", ha="right",
                        fontsize=8)  # fmt: skip
        ax.set(title=relation, xlabel="points right, by weight", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.flat[0].set_ylabel("by norm")
    return figure
