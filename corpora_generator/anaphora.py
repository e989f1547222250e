"""Pronouns whose antecedent stands in the same sentence."""

from __future__ import annotations

from .clauses import NP, replace
from .realise import POSSESSIVES, is_person, number_of

FEMININE = ("aunt", "niece", "grandmother")
MASCULINE = ("uncle", "nephew", "grandfather", "stepfather")


def _third_person(phrase: NP) -> str:
    """The pronoun for a phrase with a noun."""
    entry, lemma = phrase.head.entry, phrase.head.lemma
    if number_of(phrase) == "pl":
        return "they"
    if entry.kind in ("she", "he"):
        return entry.kind
    if entry.base_kind in ("mammal", "bird"):
        return "it"
    if lemma in FEMININE or lemma in MASCULINE:
        return "she" if lemma in FEMININE else "he"
    # Anybody may be a doctor.  Bound to the concept, so that a synonym keeps its pronoun.
    return ("she", "he")[sum(map(ord, entry.lemmas[0])) % 2]


def pronoun_for(phrase: NP) -> NP:
    """A pronoun that refers to a phrase marked with its own lemma.

    Args:
        phrase: A phrase with a noun.
    """
    return NP(pronoun=_third_person(phrase), refers=phrase.head.lemma, number=phrase.number)


def insisted(phrase: NP) -> NP:
    """The phrase with a pronoun right after its noun ("the tailor himself"); unchanged where that would be odd."""
    if (
        phrase.head is None
        or phrase.number == "pl"
        or phrase.det in ("a", "every", "no")
        or not is_person(phrase)
    ):
        return phrase
    if phrase.second or phrase.modifier or phrase.relative:
        return phrase
    emphatic = {"she": "herself", "he": "himself"}[_third_person(phrase)]
    return replace(phrase, emphatic=emphatic, mark=phrase.mark or phrase.head.lemma)


def possessive_for(phrase: NP) -> str:
    """The possessive determiner for what the phrase owns; ``""`` where an edit of the phrase could belie it."""
    if phrase.head is None:
        pronoun = phrase.pronoun
    elif phrase.number == "pl" or phrase.second or phrase.head.entry.base_kind == "relative":
        return ""
    else:
        pronoun = _third_person(phrase)
    return next((form for form, owner in POSSESSIVES.items() if owner == pronoun), "")
