"""How much every head attends along the links between a predicate and its frame elements, and at other places (§4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..annotation.inputs import wordpieces
from ..attention import Batch, attention_maps, received
from ..attention.batches import encode, make_batches
from ..common import DIRECTIONS, Head, one_of
from ..statistics.permutation import largest
from .frame_links import PAPER, FrameSentence, extract
from .release import Span, load_release

if TYPE_CHECKING:
    from datasets import Dataset

PAIRINGS = ("product", "zip")
# What the links are compared with, and what people read for it.
PLACES = {"moved": "shifted places", "borrowed": "other sentences' places"}
BORROWED = 8  # places to borrow from other sentences
Cells = tuple[np.ndarray, np.ndarray]  # rows and columns of a map, each of shape (pairs,)


@dataclass(frozen=True)
class FramePlaces:
    """Where a sentence's links stand among its wordpieces.

    Attributes:
        sentence: the sentence.
        predicate: positions of the predicate's wordpieces.
        elements: positions of each linked element's.
        length: wordpieces, special tokens included.
        special: special tokens before and behind the words.
    """

    sentence: FrameSentence
    predicate: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]
    length: int
    special: tuple[int, int] = (1, 1)

    @property
    def words(self) -> range:
        """Positions of all but the special tokens."""
        return range(self.special[0], self.length - self.special[1])

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
        both = [
            (p, e)
            for element in self.elements
            for p, e in (
                zip(self.predicate, element, strict=False)
                if pairing == "zip"
                else ((p, e) for p in self.predicate for e in element)
            )
        ]
        ways = {"predicate to element": both, "element to predicate": [(e, p) for p, e in both]}
        chosen = ways.get(direction) or both + ways["element to predicate"]
        rows, columns = np.array(chosen).T
        return rows, columns


def place_release(source: str, tokenizer) -> tuple[list[FramePlaces], Dataset, int]:
    """The sentences of a release that the paper's rules leave; see :func:`place`.

    Args:
        source: from :func:`bertology_utils.framenet.release.load_release`.
        tokenizer: a fast tokenizer.
    """
    return place(extract(load_release(source), PAPER)[0], tokenizer)


def place(
    sentences: Sequence[FrameSentence], tokenizer, max_length: int = 128
) -> tuple[list[FramePlaces], Dataset, int]:
    """Sentences with the wordpieces of their links, and the model's inputs.

    Args:
        sentences: from :func:`bertology_utils.framenet.frame_links.extract`.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input.

    Returns:
        The placed sentences, the model's inputs in the same order, and how
        many sentences were left out because a predicate or an element has no
        wordpiece within ``max_length``.
    """
    from datasets import Dataset

    texts = [sentence.exemplar.text for sentence in sentences]
    inputs = encode(tokenizer, texts, max_length=max_length, return_offsets_mapping=True)
    placed, rows = [], []
    for row, (sentence, offsets) in enumerate(
        zip(sentences, inputs.pop("offset_mapping"), strict=True)
    ):
        predicate = _positions(offsets, sentence.target)
        elements = tuple(_positions(offsets, spans) for spans in sentence.elements)
        if predicate and all(elements):
            placed.append(
                FramePlaces(
                    sentence, predicate, elements, len(offsets), _special(inputs.sequence_ids(row))
                )
            )
            rows.append(row)
    columns = {name: [values[row] for row in rows] for name, values in inputs.items()}
    return placed, Dataset.from_dict(columns), len(sentences) - len(placed)


def _special(owners: Sequence[int | None]) -> tuple[int, int]:
    """How many special tokens stand before and behind the words; they belong to no text."""
    words = [position for position, owner in enumerate(owners) if owner is not None]
    return words[0], len(owners) - 1 - words[-1]


def _positions(offsets, spans: Sequence[Span]) -> tuple[int, ...]:
    return tuple(
        sorted({index for span in spans for index in wordpieces(offsets, span.start, span.end)})
    )


@dataclass(frozen=True)
class FrameLinkScores:
    """Scores of every sentence and head, as :class:`FrameLinkAttention` computes them.

    Attributes:
        places: per sentence, shape (places, layers, heads): the score of its
            links first, then those of the cells that they are compared with.
        hits: True where a row's largest weight among words falls on a link,
            shape (sentences, layers, heads).
    """

    places: tuple[np.ndarray, ...]
    hits: np.ndarray

    @property
    def actual(self) -> np.ndarray:
        """Scores of the annotated links, shape (sentences, layers, heads)."""
        return np.stack([scores[0] for scores in self.places])

    @property
    def excess(self) -> np.ndarray:
        """Links minus the mean of the other places, shape (sentences that have others, layers, heads)."""
        return np.stack(
            [scores[0] - scores[1:].mean(axis=0) for scores in self.places if len(scores) > 1]
        )

    def of(self, rows: Sequence[int]) -> FrameLinkScores:
        """The scores of some sentences."""
        return FrameLinkScores(tuple(self.places[row] for row in rows), self.hits[list(rows)])


class FrameLinkAttention:
    """Measurement: the largest weight among the cells of a sentence's links, for every head.

    Args:
        placed: the sentences, in the order of the batches' ``index``.
        direction, pairing: see :meth:`FramePlaces.pairs`.
        elsewhere: what the links are compared with. "moved": their cells moved
            along the sentence together, so that all distances stay.
            "borrowed": the cells of other sentences of the same length, so
            that distances and positions stay.
        seed: of the choice of borrowed cells.
        centred: subtract from every weight what the token gets from the average token, so that a
            head's preference for certain words, whoever is looking, does not count.
    """

    def __init__(
        self,
        placed: Sequence[FramePlaces],
        direction: str,
        pairing: str = "product",
        elsewhere: str | None = None,
        seed: int = 0,
        centred: bool = False,
    ):
        if elsewhere is not None:
            one_of("elsewhere", elsewhere, PLACES)
        self._placed, self._centred = placed, centred
        # Per sentence the rows and columns of its links, and the positions of its words.
        self._links = [(*sentence.pairs(direction, pairing), sentence.words) for sentence in placed]
        others: list[list[Cells]] = [[] for _ in placed]
        if elsewhere is not None:
            others = self._moved() if elsewhere == "moved" else self._borrowed(seed)
        self._cells = [
            _stack([links[:2], *places]) for links, places in zip(self._links, others, strict=True)
        ]
        self._scores: list[list[np.ndarray]] = [[] for _ in placed]
        self._hits: list[list[np.ndarray]] = [[] for _ in placed]

    def _moved(self) -> list[list[Cells]]:
        """Every place along the sentence where all cells are on words and none is a link's."""
        found = []
        for rows, columns, words in self._links:
            used, links = np.concatenate([rows, columns]), set(zip(rows, columns, strict=True))
            shifts = range(words.start - used.min(), words.stop - used.max())
            found.append(
                [
                    (rows + shift, columns + shift)
                    for shift in shifts
                    if not links & set(zip(rows + shift, columns + shift, strict=True))
                ]
            )
        return found

    def _borrowed(self, seed: int) -> list[list[Cells]]:
        """The cells of up to :data:`BORROWED` other sentences of the same length, drawn at random, none a link's own."""
        rng = np.random.default_rng(seed)
        by_length: dict[int, list[int]] = {}
        for index, sentence in enumerate(self._placed):
            by_length.setdefault(sentence.length, []).append(index)
        found = []
        for sentence, (rows, columns, _) in zip(self._placed, self._links, strict=True):
            links = set(zip(rows, columns, strict=True))
            cells_of_others: list[Cells] = []
            for other in rng.permutation(by_length[sentence.length]):
                cells = self._links[other][:2]
                if len(cells_of_others) < BORROWED and not links & set(zip(*cells, strict=True)):
                    cells_of_others.append(cells)
            found.append(cells_of_others)
        return found

    def others(self, index: int) -> list[set[tuple[int, int]]]:
        """The cells, (row, column), of every place that a sentence's links are compared with."""
        rows, columns = (part.tolist() for part in self._cells[index])
        return [set(zip(*place, strict=True)) for place in zip(rows[1:], columns[1:], strict=True)]

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Score one layer; see :class:`bertology_utils.attention.Measurement`."""
        weights = (maps - received(maps, batch)[:, :, None] if self._centred else maps).cpu()
        for row, (index, first) in enumerate(zip(batch.index, batch.starts.tolist(), strict=True)):
            length = self._placed[index].length
            own = weights[
                row, :, first : first + length, first : first + length
            ]  # (heads, length, length)
            rows, columns = self._cells[index]  # (places, pairs) each
            self._scores[index].append(
                own[:, rows, columns].amax(dim=2).T.numpy()
            )  # (places, heads)
            self._hits[index].append(_points_at(own, *self._links[index]))

    def compute(self) -> FrameLinkScores:
        """The scores of all sentences, in order."""
        hits = np.stack([np.stack(layers) for layers in self._hits])
        return FrameLinkScores(tuple(np.stack(layers, axis=1) for layers in self._scores), hits)


def _stack(places: list[Cells]) -> tuple[torch.Tensor, torch.Tensor]:
    """Cells of several places as two arrays of shape (places, pairs); the first pair fills up, a largest weight stays."""
    most = max(len(rows) for rows, _ in places)

    def filled(cells: np.ndarray) -> np.ndarray:
        return np.concatenate([cells, np.repeat(cells[:1], most - len(cells))])

    rows, columns = (
        torch.from_numpy(np.stack([filled(part[axis]) for part in places])) for axis in (0, 1)
    )
    return rows, columns


def _points_at(
    own: torch.Tensor, rows: np.ndarray, columns: np.ndarray, words: range
) -> np.ndarray:
    """Per head: does the word to which some linked row attends most belong to its link? Shape (heads,)."""
    length = own.shape[1]
    linked = torch.zeros(length, length, dtype=torch.bool)
    linked[rows, columns] = True
    attending = torch.from_numpy(np.unique(rows))
    most = (
        own[:, attending, words.start : words.stop].argmax(dim=2) + words.start
    )  # (heads, rows): words only
    return linked[attending, most].any(dim=1).numpy()


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


def seen(
    encoder,
    tokenizer,
    inputs: Dataset,
    placed: Sequence[FramePlaces],
    index: int,
    head: Head,
    direction: str,
) -> Seen:
    """A sentence as a head sees it.

    Args:
        encoder, tokenizer: the model.
        inputs, placed: all sentences, from :func:`place`.
        index: of the sentence among them.
        head: (layer, head) from 0.
        direction: see :meth:`FramePlaces.pairs`.
    """
    (batch,) = make_batches(inputs.select([index]), tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(inputs[index]["input_ids"])
    start = int(batch.starts[0])
    maps = attention_maps(encoder, batch.to(encoder.device))[head[0]][0, head[1]]
    weights = maps[start : start + len(tokens), start : start + len(tokens)].cpu().numpy()
    cells = [
        (int(row), int(column)) for row, column in zip(*placed[index].pairs(direction), strict=True)
    ]
    return Seen(head, tokens, weights, cells, max(cells, key=lambda cell: weights[cell]))


def most_special(
    placed: Sequence[FramePlaces], scores: FrameLinkScores, head: Head, direction: str
) -> int:
    """Index of the sentence whose link a head prefers most to at least two other places.

    Of sentences whose link is one cell, which are the easiest to read; of any if there is none.

    Raises:
        ValueError: no sentence has two other places.
    """
    excess = np.array(
        [
            one[0][head] - one[1:].mean(axis=0)[head] if len(one) > 2 else np.nan
            for one in scores.places
        ]
    )
    if np.isnan(excess).all():
        raise ValueError(
            "no sentence has two other places for its links; give a release with more sentences"
        )
    simple = np.array([len(place.pairs(direction)[0]) == 1 for place in placed]) & ~np.isnan(excess)
    return largest(np.where(simple, excess, np.nan) if simple.any() else excess)[0]
