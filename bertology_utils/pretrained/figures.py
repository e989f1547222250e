"""The figures of notebook 8: the encoder beside published ones, and heads along dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..annotation.annotators import Word
from ..links.dependencies import CLARK, FOUND, WAYS
from ..plots import COLOURS
from ..published import published_panel
from ..results import Results
from ..verdicts import PRETRAINED
from .measure import BY_LAYER, PANEL

BERT = "bert-base, published"
MEANINGS = {
    "nsubj": "subject–verb (nsubj)",
    "obj": "object–verb (obj)",
    "amod": "adjective–noun (amod)",
    "det": "article–noun (det)",
}
OTHERS = {  # of a treebank's twelve commonest
    "case": "preposition–noun (case)",
    "advmod": "adverb–verb (advmod)",
    "obl": "adjunct–verb (obl)",
    "aux": "auxiliary–verb (aux)",
    "cc": "“and”–conjunct (cc)",
    "conj": "conjunct–first conjunct (conj)",
    "compound": "noun–noun (compound)",
    "mark": "“that”–verb (mark)",
}
POINTERS = dict(
    zip(FOUND, ("best head", "best fixed distance", "nearest word of a kind"), strict=True)
)


def encoder_name(results: Results) -> str:
    """What a run's encoder is called in figures."""
    name = results.content["settings"]["model"]
    return "MiniLM" if name == "embedded" else Path(name).name


def by_depth(results: Results) -> Figure:
    """What one [CLS] and one [SEP] get by layer, mean over heads: as published, and here."""
    table = results.table(BY_LAYER)
    names = {"published": BERT, PRETRAINED: encoder_name(results)}
    table["encoder"] = pd.Categorical(table.state.map(names), list(names.values()))
    colours = {"[CLS]": COLOURS["blue"], "[SEP]": COLOURS["orange"]}
    figure = plots.lines(
        table,
        colour="kind",
        panel="encoder",
        label="mean weight",
        colours=colours,
        columns=2,
        share=False,
    )
    for ax in figure.axes:
        ax.set_ylim(0, 1.05 * table.value.max())
    return figure


def panels(results: Results) -> Figure:
    """What every head gives [CLS] and [SEP], as published and in this encoder, on one scale."""
    arrays = {}
    for kind in ("[CLS]", "[SEP]"):
        arrays[f"{BERT}: {kind}"] = published_panel(kind)
        arrays[f"{encoder_name(results)}: {kind}"] = results.array(PANEL, kind=kind)
    most = max(float(array.max()) for array in arrays.values())
    return plots.head_grid(arrays, "mean weight", (0, most), columns=2)


def arcs_in_map(weights: np.ndarray, words: Sequence[Word], title: str) -> Figure:
    """One head's map of words, with a frame in each word's row at the word that it depends on.

    Args:
        weights: shape (words, words).
        words: of one sentence, annotated.
        title: above.
    """
    figure = plots.token_maps({title: weights}, [word.form for word in words])
    arcs = [(at, word.head) for at, word in enumerate(words) if word.head >= 0]
    for arc in arcs:
        plots.outline(figure.axes[0], [arc])
    figure.axes[0].set(xlabel="to word", ylabel="from word")
    return figure


def pointing(results: Results) -> Figure:
    """In how many arcs the best head, the best fixed distance and the nearest word of a kind find the other word."""
    random, clark = "random weights", "bert-base, Clark et al."
    table = results.table(FOUND)
    table["encoder"] = table.state.replace(PRETRAINED, encoder_name(results))
    published = pd.DataFrame(
        {"what": what, "kind": kind, "value": getattr(one, part), "encoder": clark}
        for what, part in zip(FOUND[:2], ("accuracy", "offset"), strict=True)
        for kind, one in CLARK.items()
    )
    table = pd.concat([table, published], ignore_index=True)
    table["what"] = table.what.map(POINTERS)
    table["dependency"] = pd.Categorical(table.kind.map(MEANINGS), list(MEANINGS.values()))
    colours = {
        clark: COLOURS["orange"],
        encoder_name(results): COLOURS["blue"],
        random: COLOURS["grey"],
    }
    return plots.dots(
        table.dropna(subset="dependency"),
        y="dependency",
        colour="encoder",
        panel="what",
        label="finds the other word, % of arcs",
        colours=colours,
        columns=3,
    )


def relations(results: Results) -> Figure:
    """Along a treebank's dependencies, in how many arcs the same three find the word that governs another.

    Args:
        results: results/ud, as ``docs/evidence.py`` writes it.
    """
    ending = f", {WAYS[0]}"
    table = results.table(FOUND, state=PRETRAINED)
    table = table[table.kind.str.endswith(ending)]
    names = table.kind.str.removesuffix(ending)
    table = table.assign(
        dependency=names.map(lambda name: (MEANINGS | OTHERS).get(name, name)),
        pointer=table.what.map(POINTERS),
    )
    shown = (COLOURS[name] for name in ("blue", "grey", "orange"))
    colours = dict(zip(POINTERS.values(), shown, strict=True))
    label = "finds the governor, % of arcs"
    return plots.dots(table, y="dependency", colour="pointer", label=label, colours=colours)
