"""The token types whose attention §4.4 measures, and which wordpieces are of which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..common import PROTOCOLS, one_of
from .base import Word
from .inputs import NEGATION_WORDS, AnnotatedInput, Positions, mask

# Labels of Universal Dependencies, and ClearNLP's where it has another.
NOUNS, VERBS, PRONOUNS, PUNCTUATION = {"NOUN", "PROPN"}, {"VERB"}, {"PRON"}, {"PUNCT"}
SUBJECTS = {"nsubj", "nsubj:pass", "nsubjpass"}
OBJECTS = {"obj", "dobj"}

_WORDS: dict[str, Callable[[Word], bool]] = {
    "nouns": lambda word: word.upos in NOUNS,
    "verbs": lambda word: word.upos in VERBS,
    "pronouns": lambda word: word.upos in PRONOUNS,
    "subjects": lambda word: word.deprel in SUBJECTS,
    "objects": lambda word: word.deprel in OBJECTS,
}
LINGUISTIC = (*_WORDS, "negation")
MARKS = ("[CLS]", "[SEP]", "punctuation")
TOKEN_TYPES = LINGUISTIC + MARKS


def is_punctuation(word: Word) -> bool:
    """True for punctuation marks."""
    return word.upos in PUNCTUATION


def token_types(annotated: AnnotatedInput, protocol: str = "paper") -> np.ndarray:
    """Which wordpieces of an input are of which type (§4.4).

    Every wordpiece of a word counts. Nouns include proper nouns, verbs exclude
    auxiliaries, subjects and objects are the words that head them.

    Args:
        annotated: the input.
        protocol: "paper" goes by the words' characters. "official" goes by
            strings, as the published code did: every wordpiece that is spelt
            like one of a word of the type, and for negation those of every
            word that contains one of the list ("north" contains "nor").

    Returns:
        Shape (types, wordpieces), True where a wordpiece is of the type; types
        in the order of :data:`TOKEN_TYPES`.
    """
    one_of("protocol", protocol, PROTOCOLS)
    found: dict[str, list[Positions]] = {
        name: [pieces for word, pieces in annotated.words if wanted(word)] for name, wanted in _WORDS.items()
    }
    found["negation"] = list(annotated.negation) if protocol == "paper" else _containing(annotated, NEGATION_WORDS)
    found |= {
        "[CLS]": [annotated.cls],
        "[SEP]": [annotated.separators],
        "punctuation": [pieces for word, pieces in annotated.words if is_punctuation(word)],
    }
    masks = {name: mask(annotated.length, [at for pieces in found[name] for at in pieces]) for name in TOKEN_TYPES}
    if protocol == "official":
        masks |= {name: _alike(annotated, masks[name]) for name in LINGUISTIC}
    return np.stack(list(masks.values()))


def _containing(annotated: AnnotatedInput, parts: Sequence[str]) -> list[Positions]:
    """Words in which a string of the list occurs anywhere."""
    return [pieces for word, pieces in annotated.words if any(part in word.form.lower() for part in parts)] + list(
        annotated.negation
    )


def _alike(annotated: AnnotatedInput, chosen: np.ndarray) -> np.ndarray:
    """Every wordpiece spelt like a chosen one."""
    spelt = {piece for piece, at in zip(annotated.pieces, chosen, strict=True) if at}
    return np.array([piece in spelt for piece in annotated.pieces])
