"""The figures of notebook 8: the encoder beside published ones, and heads along dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..annotation.annotators import Word
from ..links.dependencies import CLARK, FOUND
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
    table["what"] = table.what.map(
        dict(
            zip(FOUND, ("best head", "best fixed distance", "nearest word of a kind"), strict=True)
        )
    )
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
