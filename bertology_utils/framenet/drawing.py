"""The figures of §4.2 that are made for it alone: an annotated sentence, and how heads see it."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from .. import figures
from ..common import Head, head_name
from .frame_links import FrameSentence


def annotated_sentence(sentence: FrameSentence):
    """A sentence with its predicate in blue, linked core elements in orange, other elements in grey (Fig 4); the figure."""
    linked = {(span.name, span.start, span.end) for spans in sentence.elements for span in spans}
    marks = [("predicate", span.start, span.end, figures.COLOURS["blue"]) for span in sentence.target]
    for span in sentence.exemplar.elements:
        colour = "orange" if (span.name, span.start, span.end) in linked else "grey"
        marks.append((span.name, span.start, span.end, figures.COLOURS[colour]))
    exemplar = sentence.exemplar
    return figures.frame_annotation(exemplar.text, marks, f"{exemplar.unit}: {exemplar.frame}")


def heads_on_a_link(heads: Sequence[Head], maps: Sequence[np.ndarray], tokens: Sequence[str], looking: int, seen: int):
    """A row per head: its whole map, and where the token ``looking`` looks, the token ``seen`` in orange (Fig 3).

    Args:
        heads: two or more, one may be there twice.
        maps: theirs, each of shape (tokens, tokens).
        tokens: the wordpieces.
        looking, seen: positions of the two ends of a link.

    Returns:
        The figure.
    """
    figure, axes = plt.subplots(len(heads), 2, figsize=(8.4, 7), width_ratios=[1.3, 1])
    for (left, right), at, weights in zip(axes, heads, maps, strict=True):
        image = figures.attention_map(left, weights, tokens, f"head {head_name(*at)}")
        figure.colorbar(image, ax=left, label="attention weight", shrink=0.8)
        colours = [figures.COLOURS["orange" if place == seen else "grey"] for place in range(len(tokens))]
        right.barh(range(len(tokens)), weights[looking], color=colours)
        right.set_yticks(range(len(tokens)), tokens, fontsize=7)
        right.set(xlabel="attention weight", title=f"from “{tokens[looking]}”", xlim=(0, 1))
        right.invert_yaxis()
    return figure
