"""Where FrameNet's links stand among wordpieces, and how much every head attends along them and elsewhere (§4.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .attention import observe
from .batches import Batch, encode
from .cells import BORROWED, Cells, StrongestCells, as_set, cells_between
from .framenet import FrameSentence, Span
from .words import wordpieces

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel

# Who attends: the predicate, as the paper's text says, or the element, as its code has it.
DIRECTIONS = FORWARD, BACK = "predicate to element", "element to predicate"
# What a weight is beyond: nothing; its place; its place, and what its words give and receive anyway.
BEYOND = ("nothing", "place", "place and words")


# Where links are among wordpieces


@dataclass(frozen=True)
class FramePlaces:
    """Where a sentence's links stand among its wordpieces.

    Attributes:
        sentence: the sentence.
        predicate: positions of the predicate's wordpieces.
        elements: positions of each linked element's.
        length: wordpieces, special tokens included.
        words: positions of all but the special tokens.
    """

    sentence: FrameSentence
    predicate: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]
    length: int
    words: range

    def pairs(self, direction: str, pairing: str = "product") -> Cells:
        """The map's cells that belong to the links.

        Args:
            direction: one of :data:`DIRECTIONS`.
            pairing: "product" pairs every wordpiece of the predicate with every one of an element;
                "zip" the first with the first and so on, as the published code does.
        """
        if pairing == "zip":
            pairs = [zip(self.predicate, element, strict=False) for element in self.elements]
            cells = [np.array([*several]).T for several in pairs]
        else:
            cells = [cells_between(self.predicate, element) for element in self.elements]
        predicate_first = np.hstack(cells)
        return predicate_first if direction == FORWARD else predicate_first[::-1]


def place(
    sentences: Sequence[FrameSentence], tokenizer: Any, max_length: int = 128
) -> tuple[list[FramePlaces], Dataset]:
    """Sentences with the wordpieces of their links, and the model's inputs.

    Args:
        sentences: from :func:`bertology_utils.framenet.extract`.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input.

    Returns:
        The placed sentences, and the model's inputs in the same order. Sentences are left out whose
        predicate, or an element of which, has no wordpiece within ``max_length``.
    """
    from datasets import Dataset

    texts = [sentence.exemplar.text for sentence in sentences]
    inputs = encode(tokenizer, texts, max_length=max_length, return_offsets_mapping=True)
    all_offsets = inputs.pop("offset_mapping")

    def positions(row: int, spans: Sequence[Span]) -> tuple[int, ...]:
        pieces = (wordpieces(all_offsets[row], span.start, span.end) for span in spans)
        return tuple(sorted({index for several in pieces for index in several}))

    placed, rows = [], []
    for row, sentence in enumerate(sentences):
        predicate = positions(row, sentence.target)
        elements = tuple(positions(row, spans) for spans in sentence.elements)
        if predicate and all(elements):
            owners = inputs.sequence_ids(row)  # None for a special token
            pieces = [position for position, owner in enumerate(owners) if owner is not None]
            words = range(pieces[0], pieces[-1] + 1)
            placed.append(FramePlaces(sentence, predicate, elements, len(owners), words))
            rows.append(row)
    return placed, Dataset.from_dict(dict(inputs)).select(rows)


# Attention along links


def partners(placed: Sequence[FramePlaces], seed: int) -> list[list[int]]:
    """For each sentence up to eight others, drawn by the seed, in which the place of its links is looked at as well.

    They have as many wordpieces, and none of its links' cells is a link's there. Each is a partner
    of its partners, so that all maps are looked at equally often.

    Returns:
        Positions in ``placed``.
    """
    rng, cells = np.random.default_rng(seed), [as_set(one.pairs(FORWARD)) for one in placed]
    others: list[list[int]] = [[] for _ in placed]
    by_length = defaultdict[int, list[int]](list)
    for at, sentence in enumerate(placed):
        by_length[sentence.length].append(at)
    for same in by_length.values():
        for _ in range(BORROWED):
            single: list[int] = []
            for own in rng.permutation(same).tolist():
                fitting = (
                    at
                    for at in single
                    if at not in others[own] and cells[own].isdisjoint(cells[at])
                )
                if (partner := next(fitting, None)) is None:
                    single.append(own)
                    continue
                single.remove(partner)
                others[own].append(partner)
                others[partner].append(own)
    return others


class BeyondWords(StrongestCells):
    """Measurement: the largest weight in each set of cells, beyond what the two words give and receive anyway.

    From every weight the mean of its row and that of its column are subtracted, and the mean of all
    is added; the means are over words, without special tokens.

    Args:
        sets: see :class:`bertology_utils.cells.StrongestCells`.
        words: per example the positions of its words.
    """

    def __init__(self, sets: Sequence[Sequence[Cells]], words: Sequence[range]):
        super().__init__(sets)
        self._words = words

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        share = torch.zeros(batch.mask.shape, dtype=maps.dtype, device=maps.device)
        for row, index in enumerate(batch.index):
            share[row, list(self._words[index])] = 1 / len(self._words[index])
        given = torch.einsum("ehij,ej->ehi", maps, share)
        received = torch.einsum("ehij,ei->ehj", maps, share)
        mean = torch.einsum("ehi,ei->eh", given, share)
        anyway = given[..., None] + received[:, :, None] - mean[..., None, None]
        super().update(layer, maps - anyway, batch)


def link_weights(
    model: PreTrainedModel,
    placed: Sequence[FramePlaces],
    batches: Sequence[Batch],
    pairing: str = "product",
    seed: int = 1,
) -> np.ndarray:
    """The largest weight along each sentence's links in every head, and how much larger it is than elsewhere.

    Beyond nothing, as in the paper; beyond the mean of what it is at the same place in the sentence's
    :func:`partners`; and the same after :class:`BeyondWords`.

    Args:
        model: an encoder.
        placed: from :func:`place`.
        batches: model inputs of the same sentences.
        pairing: see :meth:`FramePlaces.pairs`.
        seed: of the draw of partners.

    Returns:
        Shape (directions, :data:`BEYOND`, sentences, layers, heads); NaN where a sentence has no
        partner.
    """
    others, measures = partners(placed, seed), {}
    for direction in DIRECTIONS:
        cells = [one.pairs(direction, pairing) for one in placed]
        sets = [[cells[at] for at in (own, *others[own])] for own in range(len(placed))]
        measures[direction] = StrongestCells(sets)
        measures[f"{direction}, words"] = BeyondWords(sets, [one.words for one in placed])
    seen = observe(model, batches, measures)  # of each sentence at its own place, then at others'

    def beyond_place(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        there = (
            [values[at][1 + others[at].index(own)] for at in others[own]]
            for own in range(len(placed))
        )
        return [
            one[0] - (np.mean(several, axis=0) if several else np.nan)
            for one, several in zip(values, there, strict=True)
        ]

    return np.array(
        [
            [[one[0] for one in seen[way]]]
            + [beyond_place(seen[name]) for name in (way, f"{way}, words")]
            for way in DIRECTIONS
        ]
    )
