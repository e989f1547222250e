"""What the corpora hand out: rows of text with their gold annotation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """One word of a sentence, annotated in the manner of Universal Dependencies.

    Contracted negations ("didn't") stay one word, an auxiliary with
    ``negation`` set, so that a word never ends inside a word piece.

    ``start`` and ``end`` count characters of the *field's* text.  For a field
    of one sentence that is the sentence's own text; in a field of two, the
    second sentence's words are shifted by the length of the first plus the
    space between them.  ``head`` and ``antecedent`` index words of the same
    sentence; the root's head is -1.
    """

    form: str
    lemma: str
    start: int
    end: int
    upos: str
    head: int
    deprel: str
    negation: bool = False
    antecedent: int | None = None


@dataclass(frozen=True)
class Sentence:
    """One sentence's text and its words in reading order."""

    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Row:
    """One example: texts by field name, a label, the gold, and what was changed.

    ``change`` names what the derivation of a pair altered ("role swap"); it is
    empty for tasks of a single sentence.
    """

    text: dict[str, str]
    label: int | float
    sentences: dict[str, tuple[Sentence, ...]]
    change: str = ""
