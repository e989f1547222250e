"""Links between two words, such as a verb and its subject, and the places to compare them with (§4.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ..annotation.inputs import AnnotatedInput, PlacedSentence, Positions
from ..annotation.token_types import NOUNS, PRONOUNS, SUBJECTS, is_punctuation
from ..statistics import Seed

PREDICATES = {"VERB", "AUX"}  # ClearNLP makes the copula the subject's head, UD the adjective or noun beside it
Cells = tuple[np.ndarray, np.ndarray]  # rows and columns of a map, each of shape (pairs,)
BORROWED = 8  # places from other inputs
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")


@dataclass(frozen=True)
class TokenLink:
    """A pair of words, the first attending to the second.

    Attributes:
        rows, columns: the map's cells that belong to the pair, each of shape (pairs,).
        sentence: its number in the input from 0, its first position, and its wordpieces.
        places: cells to compare it with, (rows, columns) each; see :func:`borrow`.
    """

    rows: np.ndarray
    columns: np.ndarray
    sentence: tuple[int, int, int]
    places: tuple[Cells, ...] = ()

    @property
    def distance(self) -> int:
        """How many wordpieces the two words are apart; 1 if they stand side by side."""
        return int(np.abs(self.rows - self.columns).min())

    @property
    def adjacent(self) -> bool:
        """Do the two words stand side by side?"""
        return self.distance == 1


def find_links(annotated: AnnotatedInput, antecedents: bool) -> dict[str, list[TokenLink]]:
    """The links of an input, by type.

    Args:
        annotated: the input.
        antecedents: True to link a pronoun with the word it refers to; False,
            the paper's reading for parsed text, with every noun of its sentence.

    Returns:
        A list for each of :data:`LINK_TYPES`; words that the length limit took away are in none.
    """
    found: dict[str, list[TokenLink]] = {name: [] for name in LINK_TYPES}
    for number, sentence in enumerate(annotated.sentences):
        pairs = {
            "verb → subject": _verbs_and_subjects(sentence),
            "noun → pronoun": _nouns_and_pronouns(sentence, antecedents),
        }
        pairs |= {
            "subject → verb": [(b, a) for a, b in pairs["verb → subject"]],
            "pronoun → noun": [(b, a) for a, b in pairs["noun → pronoun"]],
        }
        positions = [at for pieces in sentence.pieces for at in pieces]
        if not positions:
            continue
        words = {
            at
            for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
            if not is_punctuation(word)
            for at in pieces
        }
        extent = number, min(positions), max(positions) - min(positions) + 1
        for name, of_type in pairs.items():
            # A parser can call a punctuation mark a subject, and a limit on length can take a word away.
            whole = [(a, b) for a, b in of_type if a and b and words.issuperset(a + b)]
            found[name] += [TokenLink(np.repeat(a, len(b)), np.tile(b, len(a)), extent) for a, b in whole]
    return found


def borrow(
    inputs: Sequence[dict[str, list[TokenLink]]], seed: Seed, count: int = BORROWED
) -> list[dict[str, list[TokenLink]]]:
    """The same links with places to compare them with, borrowed from other inputs as §4.2's control does.

    A place is where a link of the same type stands in a sentence of the same
    length that is the same one (first or second) of its own input. So what a
    head does at that distance, and at those positions of a sentence, is in the
    comparison. Places that are themselves links of the type are left out.

    Args:
        inputs: per input, from :func:`find_links`.
        seed: of the draw, where there are more than ``count``.
        count: places per link at most.
    """
    rng = np.random.default_rng(seed)
    groups: dict[tuple[str, int, int], list[tuple[int, Cells]]] = {}  # cells relative to their sentence's start
    for row, by_type in enumerate(inputs):
        for name, links in by_type.items():
            for link in links:
                number, start, length = link.sentence
                cells = link.rows - start, link.columns - start
                groups.setdefault((name, number, length), []).append((row, cells))
    found = []
    for row, by_type in enumerate(inputs):
        with_places: dict[str, list[TokenLink]] = {}
        for name, links in by_type.items():
            own = {cell for link in links for cell in _cells(link.rows, link.columns)}

            def places(link: TokenLink) -> Iterator[Cells]:
                number, start, length = link.sentence
                group = groups[name, number, length]
                for at in rng.permutation(len(group)):
                    other, (rows, columns) = group[at]
                    if other != row and own.isdisjoint(_cells(rows + start, columns + start)):
                        yield rows + start, columns + start

            with_places[name] = [replace(link, places=tuple(islice(places(link), count))) for link in links]
        found.append(with_places)
    return found


def _cells(rows: np.ndarray, columns: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def share_adjacent(inputs: Sequence[dict[str, list[TokenLink]]], names: Sequence[str]) -> float:
    """Share of the links of some types whose words stand side by side; NaN where there are none."""
    sides = [link.adjacent for by_type in inputs for name in names for link in by_type[name]]
    return float(np.mean(sides)) if sides else float("nan")


def _verbs_and_subjects(sentence: PlacedSentence) -> list[tuple[Positions, Positions]]:
    return [
        (sentence.pieces[word.head], pieces)
        for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
        if word.deprel in SUBJECTS and word.head >= 0 and sentence.words[word.head].upos in PREDICATES
    ]


def _nouns_and_pronouns(sentence: PlacedSentence, antecedents: bool) -> list[tuple[Positions, Positions]]:
    words, pieces = sentence.words, sentence.pieces
    if antecedents:
        return [
            (pieces[word.antecedent], own)
            for word, own in zip(words, pieces, strict=True)
            if word.upos in PRONOUNS and word.antecedent is not None
        ]
    nouns = [own for word, own in zip(words, pieces, strict=True) if word.upos in NOUNS]
    return [(noun, own) for word, own in zip(words, pieces, strict=True) if word.upos in PRONOUNS for noun in nouns]
