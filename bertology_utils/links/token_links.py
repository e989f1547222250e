"""Links between two words, such as a verb and its subject, and the places to compare them with (§4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..annotation.inputs import AnnotatedInput, PlacedSentence, Positions, mask
from ..annotation.token_types import NOUNS, PRONOUNS, SUBJECTS, is_punctuation

PREDICATES = {"VERB", "AUX"}  # ClearNLP makes the copula the subject's head, UD the adjective or noun beside it
LINK_TYPES = ("verb → subject", "subject → verb", "noun → pronoun", "pronoun → noun")


@dataclass(frozen=True)
class TokenLink:
    """A pair of words, the first attending to the second.

    Attributes:
        rows, columns: the map's cells that belong to the pair, each of shape (pairs,).
        shifts: by how many positions the cells can be moved along the
            sentence so that they stand on words, and on no link of the same
            type; shape (places,).
    """

    rows: np.ndarray
    columns: np.ndarray
    shifts: np.ndarray


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
    for sentence in annotated.sentences:
        pairs = {
            "verb → subject": _verbs_and_subjects(sentence),
            "noun → pronoun": _nouns_and_pronouns(sentence, antecedents),
        }
        pairs |= {
            "subject → verb": [(b, a) for a, b in pairs["verb → subject"]],
            "pronoun → noun": [(b, a) for a, b in pairs["noun → pronoun"]],
        }
        words = {
            at
            for word, pieces in zip(sentence.words, sentence.pieces, strict=True)
            if not is_punctuation(word)
            for at in pieces
        }
        for name, of_type in pairs.items():
            # A parser can call a punctuation mark a subject; its place has nothing to be compared with.
            found[name] += _with_moves([(a, b) for a, b in of_type if words.issuperset(a + b)], words)
    return found


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


def _with_moves(pairs: list[tuple[Positions, Positions]], words: set[int]) -> list[TokenLink]:
    """Pairs of words as cells, each with its moves; ``words`` are the positions that these may stand on."""
    whole = [(np.repeat(a, len(b)), np.tile(b, len(a))) for a, b in pairs if a and b]
    if not whole:
        return []
    size = max(words) + 1
    allowed = mask(size, words)
    linked = np.zeros((size, size), dtype=bool)
    for rows, columns in whole:
        linked[rows, columns] = True
    found = []
    for rows, columns in whole:
        used = np.concatenate([rows, columns])
        shifts = np.arange(min(words) - used.min(), size - used.max())
        free = allowed[used[:, None] + shifts].all(axis=0)
        free &= ~linked[rows[:, None] + shifts, columns[:, None] + shifts].any(axis=0)
        found.append(TokenLink(rows, columns, shifts[free]))
    return found
