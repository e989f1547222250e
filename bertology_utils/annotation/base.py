"""What annotation is made of: words, sentences, and whatever gives them to a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Word:
    """One word of a sentence, annotated in the manner of Universal Dependencies.

    Attributes:
        form: as it is spelt.
        lemma: its base form.
        start, end: the characters of the *text* that it takes up, ``end``
            excluded. A text can have several sentences.
        upos: universal part of speech.
        head: its head's place among the words of the sentence, from 0; -1 for the root.
        deprel: relation to its head.
        negation: True for a negative word ("not", "nobody", "didn't" as one word).
        antecedent: place of the word that a pronoun refers to, in the same
            sentence; None where there is none, or none is known.
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


Annotated = tuple[Sentence, ...]  # the sentences of one text; word offsets count the text's characters


class Annotator(Protocol):
    """Gives every text its sentences.

    Attributes:
        name: for people, with a version where there is one.
        antecedents: True if pronouns know what they refer to.
    """

    name: str
    antecedents: bool

    def annotate(self, texts: Sequence[str]) -> list[Annotated]:
        """The sentences of each text; none for an empty text."""
