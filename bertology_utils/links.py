"""Links between words, of grammar (§4.5) and of FrameNet (§4.2): where they stand in a map, and what every head gives them.

A link is a set of cells of the map. What a head gives it is compared with what it gives the same place
in other inputs, and with rivals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .attention import Measure, observe
from .batches import Batch, encode, received
from .framenet import FrameSentence, Span
from .words import NOUNS, SUBJECTS, AnnotatedInput, PlacedSentence, wordpieces

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BORROWED = 8  # places from other inputs, for each link at most
Cells = np.ndarray  # rows (attending) and columns (attended to) of a map's cells, shape (2, cells)
# ClearNLP makes the copula the subject's head, UD the adjective or noun that it belongs to.
PREDICATES = {"VERB", "AUX"}
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")
# Who attends: the predicate, as the paper's text says, or the element, as its code has it.
DIRECTIONS = ("predicate to element", "element to predicate")
# What a weight is beyond: nothing; its place; its place, and what its words give and receive anyway.
BEYOND = ("nothing", "place", "place and words")


def cells_between(rows: Sequence[int], columns: Sequence[int]) -> Cells:
    """The cells from each of some tokens to each of some others."""
    return np.stack([np.repeat(rows, len(columns)), np.tile(columns, len(rows))])


def as_set(cells: Cells) -> set[tuple[int, int]]:
    """Cells as pairs (row, column)."""
    return set(zip(*cells.tolist(), strict=True))


def strongest_cells(
    sets: Sequence[Sequence[Cells]],
    anyway: Callable[[torch.Tensor, Batch], torch.Tensor] | None = None,
) -> Measure:
    """Measure: the largest weight in each of an input's sets of cells, for every head.

    Per example shape (layers, sets, heads).

    Args:
        sets: per example of the data, its sets of cells; none is empty.
        anyway: of maps and their batch what is subtracted from every weight, such as
            :func:`popularity`; by default nothing.
    """
    cells = [np.hstack([np.empty((2, 0), dtype=int), *several]) for several in sets]
    sizes = [[0, *(one.shape[1] for one in several)] for several in sets]
    starts = [np.cumsum(several)[:-1] for several in sizes]

    def measure(maps: torch.Tensor, batch: Batch) -> Iterator[np.ndarray]:
        if anyway:
            maps = maps - anyway(maps, batch)
        for index, own in zip(batch.index, maps.cpu().numpy(), strict=True):
            rows, columns = cells[index]
            weights = own[:, rows, columns]  # (heads, cells)
            yield np.maximum.reduceat(weights, starts[index], axis=1).T

    return measure


def popularity(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """What each token gets from the average token, whoever attends; shape (examples, heads, 1, tokens)."""
    return received(maps, batch)[:, :, None]


def words_anyway(maps: torch.Tensor, batch: Batch, words: Sequence[range]) -> torch.Tensor:
    """What two words give and receive anyway: the means of row and column minus that of all, over words alone; as the maps.

    Args:
        maps: shape (examples, heads, tokens, tokens).
        batch: the inputs.
        words: per example of the data the positions of its words, without special tokens.
    """
    share = torch.zeros(batch.mask.shape, dtype=maps.dtype, device=maps.device)
    for row, index in enumerate(batch.index):
        share[row, list(words[index])] = 1 / len(words[index])
    given = torch.einsum("ehij,ej->ehi", maps, share)
    gets = torch.einsum("ehij,ei->ehj", maps, share)
    mean = torch.einsum("ehi,ei->eh", given, share)
    return given[..., None] + gets[:, :, None] - mean[..., None, None]


# The links of an input.


@dataclass(frozen=True)
class TokenLink:
    """A pair of words, the first attending to the second.

    Attributes:
        kind: its type's place among :data:`LINK_TYPES`.
        cells: the map's cells that belong to the pair.
        sentence: its number in the input from 0, its first position, and its wordpieces.
        places: cells in which other inputs have such links; see :func:`borrow`.
        rivals: cells from the first word to each of its rivals; see :func:`find_links`.
    """

    kind: int
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


def find_links(annotated: AnnotatedInput) -> list[TokenLink]:
    """The links of an input, each with its rivals; a pronoun is linked with every noun of its sentence.

    A link's *rivals* are the words between its two that have the second word's part of speech
    (proper nouns are nouns) and no such link with the first: in "the dog that chased the cat
    sleeps", *cat* is a rival of *dog* for the verb *sleeps*. So a head that attends to any noun on
    that side, or to the nearest, attends to a rival as much as to the subject. Nouns farther away
    would not show that, as the subject is mostly the nearer one; nor would those on the other side.
    Rivals cannot show whether a head goes by the order of words (the first noun of a sentence), or
    by number.

    Returns:
        One type after the other; words that the length limit took away are in none.
    """
    links = []
    for number, sentence in enumerate(annotated.sentences):
        pieces, written = sentence.pieces, sentence.written
        there = [at for own in pieces for at in own]
        tags = ["NOUN" if word.upos in NOUNS else word.upos for word in sentence.words]
        for kind, pairs in enumerate(_pairs(sentence)):
            for a, b in pairs:
                if written[a] == written[b]:
                    continue
                rivals = [
                    at
                    for at in range(min(a, b) + 1, max(a, b))
                    if pieces[at] and tags[at] == tags[b] and (a, at) not in pairs
                    if written[at] not in (written[a], written[b])
                ]
                cells, *others = (cells_between(pieces[a], pieces[at]) for at in (b, *rivals))
                place = number, min(there), max(there) - min(there) + 1
                links.append(TokenLink(kind, cells, place, rivals=tuple(others)))
    return sorted(links, key=lambda link: link.kind)


def _pairs(sentence: PlacedSentence) -> list[list[tuple[int, int]]]:
    """Pairs of words for each of :data:`LINK_TYPES`, as indices of the sentence's words."""
    # A parser can call a punctuation mark a subject, and a limit on length can take a word away.
    words = {
        at: word
        for at, word in enumerate(sentence.words)
        if sentence.pieces[at] and word.upos != "PUNCT"
    }
    nouns = [at for at, word in words.items() if word.upos in NOUNS]
    subjects = [
        (word.head, at)
        for at, word in words.items()
        if word.deprel in SUBJECTS and word.head in words and words[word.head].upos in PREDICATES
    ]
    pronouns = [(noun, at) for at, word in words.items() if word.upos == "PRON" for noun in nouns]
    return [way for one in (subjects, pronouns) for way in (one, [(b, a) for a, b in one])]


def borrow(inputs: Sequence[Sequence[TokenLink]], seed: int) -> list[list[TokenLink]]:
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
    groups = defaultdict[tuple[int, int, int], list[Cells]](list)
    for link in chain(*inputs):
        number, start, length = link.sentence
        groups[link.kind, number, length].append(link.cells - start)

    def with_places(links: Sequence[TokenLink]) -> Iterator[TokenLink]:
        own = defaultdict[int, set[tuple[int, int]]](set)
        for link in links:
            own[link.kind] |= as_set(link.cells)
        for link in links:
            number, start, length = link.sentence
            known = groups[link.kind, number, length]
            drawn = (known[at] + start for at in rng.permutation(len(known)))
            free = (cells for cells in drawn if own[link.kind].isdisjoint(as_set(cells)))
            yield replace(link, places=tuple(islice(free, BORROWED)))

    return [[*with_places(links)] for links in inputs]


def link_counts(inputs: Sequence[Sequence[TokenLink]], what: str = "") -> np.ndarray:
    """How many links there are, or how many have ``what``, an attribute of theirs; shape (types, examples)."""
    counts = np.zeros((len(LINK_TYPES), len(inputs)), dtype=int)
    for example, links in enumerate(inputs):
        for link in links:
            counts[link.kind, example] += not what or bool(getattr(link, what))
    return counts


# What every head gives them.


def link_cells(inputs: Sequence[Sequence[TokenLink]]) -> list[list[Cells]]:
    """Per example the cells of every link, of its places and of its rivals, for :func:`strongest_cells`."""
    return [
        [cells for link in links for cells in (link.cells, *link.places, *link.rivals)]
        for links in inputs
    ]


def means_over_links(
    inputs: Sequence[Sequence[TokenLink]], strongest: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """The weight along every link, and how much more that is than at other places.

    Args:
        inputs: per example of the data its links, from :func:`borrow`.
        strongest: per example the largest weight in each of :func:`link_cells`, shape (layers,
            sets, heads).

    Returns:
        By what it is above, shape (examples, types, layers, heads): means over links, NaN where there
        are none to compare. Above "nothing": the largest weight among a link's cells; above "places":
        the same minus its mean over other inputs' places; above "rivals": the same minus its mean
        over the link's rivals.
    """
    layers, _, heads = strongest[0].shape
    values = np.full((3, len(inputs), len(LINK_TYPES), layers, heads), np.nan, dtype=np.float32)
    for example, (links, weights) in enumerate(zip(inputs, strongest, strict=True)):
        rows = iter(weights.swapaxes(0, 1).astype(float))  # one set after the other
        above = defaultdict[tuple[int, int], list[np.ndarray]](list)
        for link in links:
            own = next(rows)
            above[0, link.kind].append(own)
            for part, cells in enumerate((link.places, link.rivals), start=1):
                if cells:
                    others = [*islice(rows, len(cells))]
                    above[part, link.kind].append(own - np.mean(others, axis=0))
        for (part, kind), several in above.items():
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

    def cells(self, pairing: str = "product") -> Cells:
        """The map's cells from the predicate to its elements.

        Args:
            pairing: "product" pairs every wordpiece of the predicate with every one of an element;
                "zip" the first with the first and so on, as the published code does.
        """
        if pairing == "zip":
            pairs = [zip(self.predicate, element, strict=False) for element in self.elements]
            return np.hstack([np.array([*several]).T for several in pairs])
        return np.hstack([cells_between(self.predicate, element) for element in self.elements])


def place_frames(
    sentences: Sequence[FrameSentence], tokenizer: Any, max_length: int = 128
) -> tuple[list[FramePlaces], dict[str, list[Any]]]:
    """Sentences with the wordpieces of their links, and the model's inputs.

    Args:
        sentences: from :func:`bertology_utils.framenet.extract`.
        tokenizer: a fast tokenizer.
        max_length: wordpieces per input.

    Returns:
        The placed sentences, and the model's inputs in the same order. Sentences are left out whose
        predicate, or an element of which, has no wordpiece within ``max_length``.
    """
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
    return placed, {name: [every[row] for row in rows] for name, every in inputs.items()}


def partners(placed: Sequence[FramePlaces], seed: int) -> list[list[int]]:
    """For each sentence up to eight others, drawn by the seed, in which the place of its links is looked at as well.

    They have as many wordpieces, and none of its links' cells is a link's there. Each is a partner
    of its partners, so that all maps are looked at equally often.

    Returns:
        Positions in ``placed``.
    """
    rng, cells = np.random.default_rng(seed), [as_set(one.cells()) for one in placed]
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


def link_weights(
    model: PreTrainedModel,
    placed: Sequence[FramePlaces],
    batches: Sequence[Batch],
    pairing: str = "product",
    seed: int = 1,
) -> np.ndarray:
    """The largest weight along each sentence's links in every head, and how much larger it is than elsewhere.

    Beyond nothing, as in the paper; beyond the mean of what it is at the same place in the sentence's
    :func:`partners`; and the same of weights beyond :func:`words_anyway`.

    Args:
        model: an encoder.
        placed: from :func:`place_frames`.
        batches: model inputs of the same sentences.
        pairing: see :meth:`FramePlaces.cells`.
        seed: of the draw of partners.

    Returns:
        Shape (directions, :data:`BEYOND`, sentences, layers, heads); NaN where a sentence has no
        partner.
    """
    others, cells, measures = partners(placed, seed), [one.cells(pairing) for one in placed], {}
    anyway = partial(words_anyway, words=[one.words for one in placed])
    for direction, step in zip(DIRECTIONS, (1, -1), strict=True):
        sets = [[cells[at][::step] for at in (own, *others[own])] for own in range(len(placed))]
        measures[direction] = strongest_cells(sets)
        measures[f"{direction}, words"] = strongest_cells(sets, anyway)
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
