"""Links between words, of grammar (§4.5) and of FrameNet (§4.2): where they stand in a map, and what every head gives them.

A link is a set of cells of the map. What a head gives it is compared with what it gives the same place
in other inputs, and with rivals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .attention import Measure, observe
from .batches import Batch, encode, received
from .framenet import FrameSentence, Span
from .words import (
    NOUNS,
    PRONOUNS,
    SUBJECTS,
    AnnotatedInput,
    PlacedSentence,
    is_punctuation,
    wordpieces,
)

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel

BORROWED = 8  # places from other inputs, for each link at most
Cells = np.ndarray  # rows (attending) and columns (attended to) of a map's cells, shape (2, cells)
# ClearNLP makes the copula the subject's head, UD the adjective or noun that it belongs to.
PREDICATES = {"VERB", "AUX"}
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")
# Who attends: the predicate, as the paper's text says, or the element, as its code has it.
DIRECTIONS = FORWARD, BACK = "predicate to element", "element to predicate"
# What a weight is beyond: nothing; its place; its place, and what its words give and receive anyway.
BEYOND = ("nothing", "place", "place and words")


def cells_between(rows: Sequence[int], columns: Sequence[int]) -> Cells:
    """The cells from each of some tokens to each of some others."""
    return np.stack([np.repeat(rows, len(columns)), np.tile(columns, len(rows))])


def as_set(cells: Cells) -> set[tuple[int, int]]:
    """Cells as pairs (row, column)."""
    return set(zip(*cells.tolist(), strict=True))


def strongest_cells(sets: Sequence[Sequence[Cells]], centred: bool = False) -> Measure:
    """Measure: the largest weight in each of an input's sets of cells, for every head; of each example (sets, heads).

    Args:
        sets: per example of the data, its sets of cells; none is empty.
        centred: subtract from every weight what the token gets from the average token, so that a
            head's preference for certain words, whoever attends, does not count.
    """
    cells = [np.hstack([np.empty((2, 0), dtype=int), *several]) for several in sets]
    sizes = [[0, *(one.shape[1] for one in several)] for several in sets]
    starts = [np.cumsum(several)[:-1] for several in sizes]

    def measure(maps: torch.Tensor, batch: Batch) -> Iterator[np.ndarray]:
        if centred:
            maps = maps - received(maps, batch)[:, :, None]
        for index, own in zip(batch.index, maps.cpu().numpy(), strict=True):
            rows, columns = cells[index]
            weights = own[:, rows, columns]  # (heads, cells)
            yield np.maximum.reduceat(weights, starts[index], axis=1).T

    return measure


# The links of an input.


@dataclass(frozen=True)
class TokenLink:
    """A pair of words, the first attending to the second.

    Attributes:
        cells: the map's cells that belong to the pair.
        sentence: its number in the input from 0, its first position, and its wordpieces.
        places: cells in which other inputs have such links; see :func:`borrow`.
        rivals: cells from the first word to each of its rivals; see :func:`find_links`.
    """

    cells: Cells
    sentence: tuple[int, int, int]
    places: tuple[Cells, ...] = ()
    rivals: tuple[Cells, ...] = ()

    @property
    def adjacent(self) -> bool:
        """True if the two words are neighbours."""
        return bool(np.abs(self.cells[0] - self.cells[1]).min() == 1)

    @property
    def forwards(self) -> bool:
        """True if the second word comes after the first."""
        return bool(self.cells[1].mean() > self.cells[0].mean())


InputLinks = Mapping[str, Sequence[TokenLink]]  # the links of one input, by type


def find_links(annotated: AnnotatedInput) -> dict[str, list[TokenLink]]:
    """The links of an input, by type, each with its rivals; a pronoun is linked with every noun of its sentence.

    A link's *rivals* are the words between its two that have the second word's part of speech
    (proper nouns are nouns) and no such link with the first: in "the dog that chased the cat
    sleeps", *cat* is a rival of *dog* for the verb *sleeps*. So a head that attends to any noun on
    that side, or to the nearest, attends to a rival as much as to the subject. Nouns farther away
    would not show that, as the subject is mostly the nearer one; nor would those on the other side.
    Rivals cannot show whether a head goes by the order of words (the first noun of a sentence), or
    by number.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    links: dict[str, list[TokenLink]] = {name: [] for name in LINK_TYPES}
    for number, sentence in enumerate(annotated.sentences):
        first, last = sentence.span
        pieces, written, place = (
            sentence.pieces,
            sentence.written,
            (number, first, last - first + 1),
        )
        for name, pairs in _pairs(sentence).items():
            links[name] += [
                TokenLink(
                    cells_between(pieces[a], pieces[b]),
                    place,
                    rivals=_rivals(sentence, a, b, pairs),
                )
                for a, b in pairs
                if written[a] != written[b]
            ]
    return links


def _pairs(sentence: PlacedSentence) -> dict[str, list[tuple[int, int]]]:
    """Pairs of words by type of link, as indices of the sentence's words."""
    # A parser can call a punctuation mark a subject, and a limit on length can take a word away.
    words = {
        at: word
        for at, word in enumerate(sentence.words)
        if sentence.pieces[at] and not is_punctuation(word)
    }
    nouns = [at for at, word in words.items() if word.upos in NOUNS]
    subjects = [
        (word.head, at)
        for at, word in words.items()
        if word.deprel in SUBJECTS and word.head in words and words[word.head].upos in PREDICATES
    ]
    pronouns = [(noun, at) for at, word in words.items() if word.upos in PRONOUNS for noun in nouns]
    both = [way for one in (subjects, pronouns) for way in (one, [(b, a) for a, b in one])]
    return dict(zip(LINK_TYPES, both, strict=True))


def _rivals(
    sentence: PlacedSentence, a: int, b: int, pairs: Sequence[tuple[int, int]]
) -> tuple[Cells, ...]:
    kinds = ["NOUN" if word.upos in NOUNS else word.upos for word in sentence.words]
    pieces, written = sentence.pieces, sentence.written
    return tuple(
        cells_between(pieces[a], pieces[at])
        for at in range(min(a, b) + 1, max(a, b))
        if pieces[at] and kinds[at] == kinds[b] and (a, at) not in pairs
        if written[at] not in (written[a], written[b])
    )


def borrow(inputs: Sequence[InputLinks], seed: int) -> list[dict[str, list[TokenLink]]]:
    """The same links with places to compare them with, borrowed from other inputs as §4.2's control does.

    A place is where a link of the same type is in a sentence of the same length that is the same
    one (first or second) of its own input. So what a head does at that distance, and at those
    positions of a sentence, is in the comparison. Places that are themselves links of the type are
    left out.

    Args:
        inputs: per input, from :func:`find_links`.
        seed: of the draw, where there are many.
    """
    rng = np.random.default_rng(seed)
    # Relative to their sentence's start, by type, sentence and length.
    groups = defaultdict[tuple[str, int, int], list[Cells]](list)
    for by_type in inputs:
        for name, links in by_type.items():
            for link in links:
                number, start, length = link.sentence
                groups[name, number, length].append(link.cells - start)

    def with_places(name: str, links: Sequence[TokenLink]) -> list[TokenLink]:
        own, compared = {cell for link in links for cell in as_set(link.cells)}, []
        for link in links:
            number, start, length = link.sentence
            known = groups[name, number, length]
            drawn = (known[at] + start for at in rng.permutation(len(known)))
            free = (cells for cells in drawn if own.isdisjoint(as_set(cells)))
            compared.append(replace(link, places=tuple(islice(free, BORROWED))))
        return compared

    return [
        {name: with_places(name, links) for name, links in by_type.items()} for by_type in inputs
    ]


def link_counts(inputs: Sequence[InputLinks], what: str = "") -> np.ndarray:
    """How many links there are, or how many have ``what``, an attribute of theirs; shape (types, examples)."""
    return np.array(
        [
            [sum(not what or bool(getattr(link, what)) for link in one[name]) for one in inputs]
            for name in LINK_TYPES
        ]
    )


# What every head gives them.


def link_cells(links: Sequence[InputLinks]) -> list[list[Cells]]:
    """The cells of every link of an input, of its places and of its rivals, as sets for :func:`strongest_cells`."""
    return [
        [
            cells
            for name in LINK_TYPES
            for link in by_type[name]
            for cells in (link.cells, *link.places, *link.rivals)
        ]
        for by_type in links
    ]


def means_over_links(
    links: Sequence[InputLinks], strongest: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """The weight along every link, and how much more that is than at other places: means over an input's links.

    Args:
        links: per example of the data, from :func:`borrow`.
        strongest: the largest weights of their cells, see :func:`link_cells`; (layers, sets, heads).

    Returns:
        By what it is above, shape (examples, types, layers, heads); NaN where there are none to compare.
        Above "nothing": the largest weight among a link's cells; above "places": the same minus its
        mean over other inputs' places; above "rivals": the same minus its mean over the link's rivals.
    """
    weights = [one.swapaxes(0, 1) for one in strongest]  # (sets, layers, heads)
    shape = 3, len(weights), len(LINK_TYPES), *weights[0].shape[1:]
    values = np.full(shape, np.nan, dtype=np.float32)
    for example, (by_type, one) in enumerate(zip(links, weights, strict=True)):
        rows = iter(one.astype(float))  # one set after the other
        for kind, name in enumerate(LINK_TYPES):
            above: tuple[list[np.ndarray], ...] = [], [], []
            for link in by_type[name]:
                own = next(rows)
                above[0].append(own)
                for several, cells in ((above[1], link.places), (above[2], link.rivals)):
                    if cells:
                        several.append(own - np.mean([*islice(rows, len(cells))], axis=0))
            for part, several in enumerate(above):
                if several:
                    values[part, example, kind] = np.mean(several, axis=0)
    return dict(zip(("nothing", "places", "rivals"), values, strict=True))


# Links of FrameNet.


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


def place_frames(
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


def beyond_words(sets: Sequence[Sequence[Cells]], words: Sequence[range]) -> Measure:
    """Measure: the largest weight in each set of cells, beyond what the two words give and receive anyway; see :func:`strongest_cells`.

    From every weight the mean of its row and that of its column are subtracted, and the mean of all
    is added; the means are over words, without special tokens.

    Args:
        sets: see :func:`strongest_cells`.
        words: per example the positions of its words.
    """
    strongest = strongest_cells(sets)

    def measure(maps: torch.Tensor, batch: Batch) -> Iterable[np.ndarray]:
        share = torch.zeros(batch.mask.shape, dtype=maps.dtype, device=maps.device)
        for row, index in enumerate(batch.index):
            share[row, list(words[index])] = 1 / len(words[index])
        given = torch.einsum("ehij,ej->ehi", maps, share)
        received = torch.einsum("ehij,ei->ehj", maps, share)
        mean = torch.einsum("ehi,ei->eh", given, share)
        anyway = given[..., None] + received[:, :, None] - mean[..., None, None]
        return strongest(maps - anyway, batch)

    return measure


def link_weights(
    model: PreTrainedModel,
    placed: Sequence[FramePlaces],
    batches: Sequence[Batch],
    pairing: str = "product",
    seed: int = 1,
) -> np.ndarray:
    """The largest weight along each sentence's links in every head, and how much larger it is than elsewhere.

    Beyond nothing, as in the paper; beyond the mean of what it is at the same place in the sentence's
    :func:`partners`; and the same after :func:`beyond_words`.

    Args:
        model: an encoder.
        placed: from :func:`place_frames`.
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
        measures[direction] = strongest_cells(sets)
        measures[f"{direction}, words"] = beyond_words(sets, [one.words for one in placed])
    seen = observe(model, batches, measures)  # of each sentence at its own place, then at others'

    def beyond_place(values: Sequence[np.ndarray]) -> list[np.ndarray]:
        there = (
            [values[at][:, 1 + others[at].index(own)] for at in others[own]]
            for own in range(len(placed))
        )
        return [
            one[:, 0] - (np.mean(several, axis=0) if several else np.nan)
            for one, several in zip(values, there, strict=True)
        ]

    return np.array(
        [
            [[one[:, 0] for one in seen[way]]]
            + [beyond_place(seen[name]) for name in (way, f"{way}, words")]
            for way in DIRECTIONS
        ]
    )
