"""The figures of notebook 8: the encoder beside published ones, and heads along dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plots
from ..links.dependencies import CLARK, FOUND, WAYS
from ..plots import COLOURS
from ..published import published_panel
from ..results import Results
from ..verdicts import PRETRAINED
from .measure import PANEL

MEANINGS = {
    "nsubj": "subject → verb (nsubj)",
    "obj": "object → verb (obj)",
    "amod": "adjective → noun (amod)",
    "det": "article → noun (det)",
    # The others of a treebank's twelve commonest.
    "case": "preposition → noun (case)",
    "advmod": "adverb → verb (advmod)",
    "obl": "adjunct → verb (obl)",
    "aux": "auxiliary → verb (aux)",
    "cc": "“and” → conjunct (cc)",
    "conj": "second conjunct → first (conj)",
    "compound": "noun → noun (compound)",
    "mark": "“that” → verb (mark)",
}
TAGS = {"NOUN": "noun", "VERB": "verb", "ADJ": "adjective", "PRON": "pronoun", "ADP": "preposition"}
PLACES = {"before": "to the left", "after": "to the right"}
HEAD, DISTANCE, RULE = "best head", "best fixed distance", "nearest word of a kind"
RANDOM = "random weights"
POINTERS = dict(zip(FOUND, (HEAD, DISTANCE, RULE), strict=True))
MARKS = {HEAD: COLOURS["blue"], DISTANCE: "#6b7079", RULE: COLOURS["orange"], RANDOM: "black"}


def by_depth(results: Results) -> Figure:
    """How much every head attends to [CLS] and to [SEP], with each layer's mean: as published, and here."""
    figure, axes = plots.panel_grid(2, 4, 3.2, sharey=True)
    kinds = {"[CLS]": COLOURS["blue"], "[SEP]": COLOURS["orange"]}
    names = "bert-base, published heatmaps", results.model_title
    for ax, name, is_published in zip(axes, names, (True, False), strict=True):
        for kind, colour in kinds.items():
            panel = published_panel(kind) if is_published else results.array(PANEL, kind=kind)
            layers, beside = np.arange(1, len(panel) + 1), np.linspace(-0.2, 0.2, panel.shape[1])
            ax.scatter(layers[:, None] + beside, panel, s=9, color=colour, alpha=0.5, lw=0)
            mean = panel.mean(axis=1)
            ax.plot(layers, mean, color=colour, lw=2.2)
            end = len(layers) + 0.035 * len(layers) + 0.15, mean[-1]
            ax.text(*end, kind, color=colour, va="center", weight="bold")
        ax.set(title=name, xlabel="layer", xticks=layers, ylim=(0, 1))
    axes[0].set_ylabel("attention to the token")
    return figure


def arcs_in_map(
    weights: np.ndarray, words: Sequence[str], governors: Sequence[int], title: str
) -> Figure:
    """One head's map of words, with a frame in each word's row at the word that governs it.

    Args:
        weights: shape (words, words).
        words: of one sentence.
        governors: of each word the place of its governor, from 0; -1 for the root.
        title: above.
    """
    figure = plots.token_maps({title: weights}, words, most=float(np.max(weights)))
    for at, governor in enumerate(governors):
        if governor >= 0:
            plots.outline(figure.axes[0], [(at, governor)])
    figure.axes[0].set(xlabel="to word", ylabel="from word")
    return figure


def pointing(results: Results) -> Figure:
    """How often the best head finds the governor, beside the best fixed distance: Clark et al.'s, and this run's."""
    pointers = {HEAD: "accuracy", DISTANCE: "offset"}
    rows = [
        (kind, by, getattr(one, pointers[by])) for kind, one in CLARK.items() for by in pointers
    ]
    published = pd.DataFrame(rows, columns=["kind", "pointer", "value"])
    table = results.table(FOUND)
    table["pointer"] = table.what.map(POINTERS)
    table.loc[table.state != PRETRAINED, "pointer"] = RANDOM
    table = table[table.pointer != RULE]
    kinds = [kind for kind in CLARK if kind in set(table.kind)]
    figure, axes = plots.panel_grid(2, 4, 2.9, sharey=True)
    names = "bert-base (Clark et al.)", results.model_title
    for ax, name, of in zip(axes, names, (published, table), strict=True):
        bars(ax, of, kinds)
        ax.set_title(name, pad=28)
    return figure


def relations(results: Results) -> Figure:
    """Along a treebank's dependencies, how often the best head finds the governor, beside both rivals.

    Args:
        results: results/ud, as ``docs/evidence.py`` writes it.
    """
    ending = f", {WAYS[0]}"
    table = results.table(FOUND, state=PRETRAINED)
    table = table[table.kind.str.endswith(ending)]
    names = table.kind.str.removesuffix(ending)
    table = table.assign(kind=names, pointer=table.what.map(POINTERS))
    share = table.pivot(index="kind", columns="pointer", values="value")
    kinds = list((share[HEAD] - share[RULE]).sort_values(ascending=False).index)
    figure, ax = plt.subplots(figsize=(8.4, 5.6))
    bars(ax, table, kinds)
    best = [results.content["facts"][f"best {of}, {PRETRAINED}"] for of in ("heads", "rules")]
    right = {"color": MARKS[RULE], "va": "center", "size": "small"}
    for row, kind in enumerate(kinds):
        head, rule = (of[kind + ending] for of in best)
        ax.text(1, row, head, color=COLOURS["blue"], va="center", size="small")
        ax.text(102, row, rule_in_words(rule), **right)
    ax.text(102, -0.5, "which word:", **right | {"va": "bottom"})
    return figure


def rule_in_words(rule: str) -> str:
    """A rule of :data:`bertology_utils.links.dependencies.RULES` as people say it: "verb to the right"."""
    tag, _, place = rule.partition(" ")
    return f"{TAGS.get(tag, tag)} {PLACES.get(place, place)}"


def bars(ax: Axes, table: pd.DataFrame, kinds: Sequence[str]) -> None:
    """A bar for the best head of each dependency, its rivals as strokes across it, all named at the first.

    Args:
        ax: matplotlib axes.
        table: columns "kind", "pointer", "value" in percent and, with intervals, "low" and "high".
        kinds: the dependencies from top to bottom.
    """
    rows = np.arange(len(kinds))
    for pointer, of in table.groupby("pointer"):
        of = of.set_index("kind").reindex(kinds)
        colour = MARKS[pointer]
        if pointer == HEAD:
            ax.barh(rows, of.value, height=0.62, color="#a9c1da")
        elif pointer == RANDOM:
            ax.plot(of.value, rows, "x", color=colour, ms=6)
        else:
            ax.vlines(of.value, rows - 0.38, rows + 0.38, color=colour, lw=3)
        if "low" in of and pointer != RANDOM:
            ax.hlines(rows, of.low, of.high, color=colour, lw=1.4)
    first = table[table.kind == kinds[0]].sort_values("value") if kinds else table[:0]
    for at, one in enumerate(first.itertuples()):
        side = "left" if at == len(first) - 1 else "center" if at or one.value < 20 else "right"
        text = one.pointer.replace("word ", "word\n").replace("fixed ", "fixed\n")
        style: dict[str, Any] = {"color": MARKS[one.pointer], "ha": side, "size": "small"}
        ax.text(one.value, -0.5, text.replace("random ", "random\n"), va="bottom", **style)
    ax.set_yticks(rows, [MEANINGS.get(kind, kind) for kind in kinds])
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, 100), ylim=(len(kinds) - 0.4, -0.6), xlabel="governors found, %")
