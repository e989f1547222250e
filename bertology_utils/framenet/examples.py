"""Sentences to look at: how a head sees a link, and where a link is seen best (§4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..attention import attention_maps, batches
from ..common import Head
from ..statistics.ties import largest
from .measure import FrameLinkScores, FramePlaces

if TYPE_CHECKING:
    from datasets import Dataset

PAPERS = "He was becoming agitated ."  # the example of §4.2


@dataclass(frozen=True)
class Seen:
    """A sentence as one head sees it.

    Attributes:
        head: (layer, head) from 0.
        tokens: the wordpieces.
        weights: the head's map, shape (tokens, tokens).
        cells: (row, column) of the links' cells in it.
        link: the cell of these with the largest weight.
    """

    head: Head
    tokens: list[str]
    weights: np.ndarray
    cells: list[tuple[int, int]]
    link: tuple[int, int]

    @property
    def weight(self) -> float:
        """The largest weight along a link: the head's score on this sentence."""
        return float(self.weights[self.link])

    @property
    def text(self) -> str:
        """ "from “agitated” to “he” 0.032"."""
        looking, seen = (self.tokens[place] for place in self.link)
        return f"from “{looking}” to “{seen}” {self.weight:.3f}"


def seen(encoder, tokenizer, inputs: Dataset, placed: Sequence[FramePlaces], index: int, head: Head, direction: str) -> Seen:
    """How a head sees a sentence.

    Args:
        encoder, tokenizer: the model.
        inputs, placed: all sentences, from :func:`bertology_utils.framenet.measure.place`.
        index: of the sentence among them.
        head: (layer, head) from 0.
        direction: see :meth:`FramePlaces.pairs`.
    """
    (batch,) = batches.make_batches(inputs.select([index]), tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(inputs[index]["input_ids"])
    start = int(batch.starts[0])
    maps = attention_maps(encoder, batch.to(encoder.device))[head[0]][0, head[1]]
    weights = maps[start : start + len(tokens), start : start + len(tokens)].cpu().numpy()
    cells = [(int(row), int(column)) for row, column in zip(*placed[index].pairs(direction), strict=True)]
    return Seen(head, tokens, weights, cells, max(cells, key=lambda cell: weights[cell]))


def papers_sentence(placed: Sequence[FramePlaces]) -> int:
    """Index of the paper's sentence; the first one where the release does not have it."""
    texts = [place.sentence.exemplar.text for place in placed]
    return texts.index(PAPERS) if PAPERS in texts else 0


def best_supported(scores: FrameLinkScores, head: Head) -> int:
    """Index of the sentence in which a head gives the link most."""
    return largest(scores.actual[:, *head])[0]


def most_special(placed: Sequence[FramePlaces], scores: FrameLinkScores, head: Head, direction: str) -> int:
    """Index of the sentence whose link a head prefers most to at least two other places.

    Of sentences whose link is one cell, which are the easiest to read; of any if there is none.

    Raises:
        ValueError: no sentence has two other places.
    """
    excess = np.array([one[0][head] - one[1:].mean(axis=0)[head] if len(one) > 2 else np.nan for one in scores.places])
    if np.isnan(excess).all():
        raise ValueError("no sentence has two other places for its links; give a release with more sentences")
    simple = np.array([len(place.pairs(direction)[0]) == 1 for place in placed]) & ~np.isnan(excess)
    return largest(np.where(simple, excess, np.nan) if simple.any() else excess)[0]


def share_seen(placed: Sequence[FramePlaces], scores: FrameLinkScores, head: Head, even_shares: float) -> float:
    """Share of sentences in which a head gives a link more than so many even shares (1 over the number of tokens)."""
    even = np.array([1 / place.length for place in placed])
    return float((scores.actual[:, *head] > even_shares * even).mean())
