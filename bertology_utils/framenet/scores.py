"""How much every head attends along the links between a predicate and its frame elements (§4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from datasets import Dataset

from ..alignment import wordpieces
from ..attention import Batch
from ..choices import one_of
from ..protocols import DIRECTIONS
from .exemplars import Span
from .links import LinkedSentence

PAIRINGS = ("product", "zip")


@dataclass(frozen=True)
class Placed:
    """Where a sentence's links stand among its wordpieces.

    Attributes:
        sentence: the sentence.
        predicate: positions of the predicate's wordpieces.
        elements: positions of each linked element's.
        length: wordpieces, [CLS] and [SEP] included.
    """

    sentence: LinkedSentence
    predicate: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]
    length: int

    def pairs(self, direction: str, pairing: str = "product") -> tuple[np.ndarray, np.ndarray]:
        """Rows (attending) and columns (attended to) of the map's cells that belong to the links, each shape (pairs,).

        Args:
            direction: one of :data:`DIRECTIONS`.
            pairing: "product" pairs every wordpiece of the predicate with
                every one of an element; "zip" the first with the first and so
                on, as the published code does.
        """
        one_of("direction", direction, DIRECTIONS)
        one_of("pairing", pairing, PAIRINGS)
        both = [(p, e) for element in self.elements
                for p, e in (zip(self.predicate, element, strict=False) if pairing == "zip"
                             else ((p, e) for p in self.predicate for e in element))]
        ways = {"predicate to element": both, "element to predicate": [(e, p) for p, e in both]}
        chosen = ways.get(direction) or both + ways["element to predicate"]
        rows, columns = np.array(chosen).T
        return rows, columns


def place(sentences: Sequence[LinkedSentence], tokenizer, max_length: int = 128) -> tuple[list[Placed], Dataset, int]:
    """Tokenise, and find the links' wordpieces.

    Args:
        sentences: from :func:`bertology_utils.framenet.links.extract`.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input.

    Returns:
        The placed sentences, the model's inputs in the same order, and how
        many sentences were left out because a predicate or an element has no
        wordpiece within ``max_length``.
    """
    texts = [one.exemplar.text for one in sentences]
    inputs = tokenizer(texts, truncation=True, max_length=max_length, return_offsets_mapping=True)
    placed, rows = [], []
    for row, (one, offsets) in enumerate(zip(sentences, inputs.pop("offset_mapping"), strict=True)):
        predicate = _positions(offsets, one.target)
        elements = tuple(_positions(offsets, spans) for spans in one.elements)
        if predicate and all(elements):
            placed.append(Placed(one, predicate, elements, len(offsets)))
            rows.append(row)
    columns = {name: [values[row] for row in rows] for name, values in inputs.items()}
    return placed, Dataset.from_dict(columns | {"labels": [0] * len(rows)}), len(sentences) - len(placed)


def _positions(offsets, spans: Sequence[Span]) -> tuple[int, ...]:
    return tuple(sorted({index for span in spans for index in wordpieces(offsets, span.start, span.end)}))


@dataclass(frozen=True)
class LinkScores:
    """What :class:`Links` computes.

    Attributes:
        shifted: per sentence, shape (shifts, layers, heads): the score of the
            links as they are first, then those of the same cells moved along
            the sentence together, so that all distances stay.
    """

    shifted: tuple[np.ndarray, ...]

    @property
    def actual(self) -> np.ndarray:
        """Scores of the annotated links, shape (sentences, layers, heads)."""
        return np.stack([one[0] for one in self.shifted])

    @property
    def movable(self) -> LinkScores:
        """The sentences where the links can stand elsewhere."""
        return LinkScores(tuple(one for one in self.shifted if len(one) > 1))


class Links:
    """Measurement: the largest weight among the cells of a sentence's links, for every head.

    Args:
        placed: the sentences, in the order of the batches' ``index``.
        direction, pairing: see :meth:`Placed.pairs`.
    """

    def __init__(self, placed: Sequence[Placed], direction: str, pairing: str = "product"):
        self._cells = [one.pairs(direction, pairing) for one in placed]
        self._shifts = [_shifts(*cells, one.length) for cells, one in zip(self._cells, placed, strict=True)]
        self._scores: list[list[np.ndarray]] = [[] for _ in placed]

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Score one layer; see :class:`bertology_utils.attention.Measurement`."""
        first = batch.mask.int().argmax(dim=1).tolist()  # padding may stand on the left
        weights = maps.cpu()
        for row, index in enumerate(batch.index):
            moved = self._shifts[index][:, None] + first[row]  # (shifts, 1)
            rows, columns = (torch.from_numpy(cells + moved) for cells in self._cells[index])  # (shifts, pairs)
            self._scores[index].append(weights[row][:, rows, columns].amax(dim=2).T.numpy())  # (shifts, heads)

    def compute(self) -> LinkScores:
        """The scores of all sentences, in order."""
        return LinkScores(tuple(np.stack(layers, axis=1) for layers in self._scores))


def _shifts(rows: np.ndarray, columns: np.ndarray, length: int) -> np.ndarray:
    """By how much the cells can move so that all stay on words: 0 first, then from left to right."""
    low, high = min(rows.min(), columns.min()), max(rows.max(), columns.max())
    # [CLS] and [SEP] stand at 0 and length - 1.
    return np.array([0, *(shift for shift in range(1 - low, length - 1 - high) if shift)])
