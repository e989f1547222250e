"""§4.5: attention along links between words, against other inputs' places, rivals and neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from .annotation import Word
from .cells import Cells, StrongestCells, as_set, borrow_places, cells_between
from .words import NOUNS, PRONOUNS, SUBJECTS, AnnotatedInput, PlacedSentence, is_punctuation

# ClearNLP makes the copula the subject's head, UD the adjective or noun that it belongs to.
PREDICATES = {"VERB", "AUX"}
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")


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


def find_links(annotated: AnnotatedInput, antecedents: bool) -> dict[str, list[TokenLink]]:
    """The links of an input, by type, each with its rivals.

    A link's *rivals* are the words between its two that have the second word's part of speech
    (proper nouns are nouns) and no such link with the first: in "the dog that chased the cat
    sleeps", *cat* is a rival of *dog* for the verb *sleeps*. So a head that attends to any noun on
    that side, or to the nearest, attends to a rival as much as to the subject. Nouns farther away
    would not show that, as the subject is mostly the nearer one; nor would those on the other side.
    Rivals cannot show whether a head goes by the order of words (the first noun of a sentence), or
    by number.

    Args:
        annotated: the input.
        antecedents: True to link a pronoun with the word it refers to; False,
            the paper's reading for parsed text, with every noun of its sentence.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    links: dict[str, list[TokenLink]] = {name: [] for name in LINK_TYPES}
    for number, sentence in enumerate(annotated.sentences):
        first, last = sentence.span
        subjects, nouns = _verbs_and_subjects(sentence), _nouns_and_pronouns(sentence, antecedents)
        directed = (subjects, [(b, a) for a, b in subjects], nouns, [(b, a) for a, b in nouns])
        # A parser can call a punctuation mark a subject, a limit on length can take a word away,
        # and words that share a written word share its wordpieces.
        whole = [
            bool(own) and not is_punctuation(word)
            for word, own in zip(sentence.words, sentence.pieces, strict=True)
        ]
        written, place = sentence.written, (number, first, last - first + 1)
        for name, pairs in zip(LINK_TYPES, directed, strict=True):
            links[name] += [
                TokenLink(_between(sentence, a, b), place, (), _rivals(sentence, a, b, pairs))
                for a, b in pairs
                if whole[a] and whole[b] and written[a] != written[b]
            ]
    return links


def _between(sentence: PlacedSentence, a: int, b: int) -> Cells:
    """The map's cells from one word to another."""
    return cells_between(sentence.pieces[a], sentence.pieces[b])


def _rivals(
    sentence: PlacedSentence, a: int, b: int, pairs: Sequence[tuple[int, int]]
) -> tuple[Cells, ...]:
    def kind(word: Word) -> str:
        return "NOUN" if word.upos in NOUNS else word.upos

    wanted, written = kind(sentence.words[b]), sentence.written
    return tuple(
        _between(sentence, a, at)
        for at in range(min(a, b) + 1, max(a, b))
        if sentence.pieces[at]
        and kind(sentence.words[at]) == wanted
        and (a, at) not in pairs
        and written[at] not in (written[a], written[b])
    )


def _verbs_and_subjects(sentence: PlacedSentence) -> list[tuple[int, int]]:
    """Pairs of a verb and its subject, as indices of the sentence's words."""
    return [
        (word.head, at)
        for at, word in enumerate(sentence.words)
        if word.deprel in SUBJECTS
        and word.head >= 0
        and sentence.words[word.head].upos in PREDICATES
    ]


def _nouns_and_pronouns(sentence: PlacedSentence, antecedents: bool) -> list[tuple[int, int]]:
    pronouns = [(word, at) for at, word in enumerate(sentence.words) if word.upos in PRONOUNS]
    if antecedents:
        return [(word.antecedent, at) for word, at in pronouns if word.antecedent is not None]
    nouns = [at for at, word in enumerate(sentence.words) if word.upos in NOUNS]
    return [(noun, at) for _, at in pronouns for noun in nouns]


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
            places = borrow_places(groups[name, number, length], own, rng, start)
            compared.append(replace(link, places=tuple(places)))
        return compared

    return [
        {name: with_places(name, links) for name, links in by_type.items()} for by_type in inputs
    ]


def link_counts(inputs: Sequence[InputLinks]) -> dict[str, np.ndarray]:
    """How many links there are, with places, with rivals, of adjacent words and forwards; each of shape (types, examples)."""
    every = {"links": [[len(by_type[name]) for by_type in inputs] for name in LINK_TYPES]}
    for what in ("places", "rivals", "adjacent", "forwards"):
        every[what] = [
            [sum(bool(getattr(link, what)) for link in by_type[name]) for by_type in inputs]
            for name in LINK_TYPES
        ]
    return {what: np.array(counts) for what, counts in every.items()}


# What every head gives them.


@dataclass(frozen=True)
class LinkScores:
    """Result of :class:`TokenLinkAttention`; each of shape (examples, types, layers, heads).

    An example's value is the mean over its links; NaN where it has none to compare.

    Attributes:
        along: largest weight among a link's cells.
        above_places: the same minus its mean over other inputs' places.
        above_rivals: the same minus its mean over the link's rivals.
        ahead: share of links that get more than each of their rivals.
    """

    along: np.ndarray
    above_places: np.ndarray
    above_rivals: np.ndarray
    ahead: np.ndarray


class TokenLinkAttention(StrongestCells):
    """Measurement: the weight along every link, and how much more that is than at other places.

    Args:
        links: per example of the data, from :func:`borrow`.
        centred: see :class:`bertology_utils.cells.StrongestCells`.
    """

    def __init__(self, links: Sequence[InputLinks], centred: bool = False):
        self._links = links
        sets = [
            [
                cells
                for name in LINK_TYPES
                for link in by_type[name]
                for cells in (link.cells, *link.places, *link.rivals)
            ]
            for by_type in links
        ]
        super().__init__(sets, centred)

    def compute(self) -> LinkScores:
        """The values of all examples, in the order of the data."""
        pairs = zip(self._links, super().compute(), strict=True)
        return LinkScores(*np.stack([link_values(*pair) for pair in pairs], 1, dtype=np.float32))


def link_values(by_type: InputLinks, weights: np.ndarray) -> np.ndarray:
    """The parts of :class:`LinkScores` of one example, shape (4, types, layers, heads).

    Args:
        by_type: its links.
        weights: the largest weight along each link, at its places and on its rivals, one link after
            the other, shape (sets, layers, heads).
    """
    values = np.full((4, len(LINK_TYPES), *weights.shape[1:]), np.nan)
    rows = iter(weights.astype(float))
    for kind, name in enumerate(LINK_TYPES):
        parts = list[np.ndarray](), list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        for link in by_type[name]:
            own = next(rows)
            parts[0].append(own)
            if places := [*islice(rows, len(link.places))]:
                parts[1].append(own - np.mean(places, axis=0))
            if rivals := [*islice(rows, len(link.rivals))]:
                parts[2].append(own - np.mean(rivals, axis=0))
                parts[3].append(own > np.max(rivals, axis=0))
        for part, each in enumerate(parts):
            if each:
                values[part, kind] = np.mean(each, axis=0)
    return values
