"""Pronouns whose antecedent stands in the same sentence."""

from __future__ import annotations

from .clauses import NP
from .realise import POSSESSIVES, number_of

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


def possessive_for(phrase: NP) -> str:
    """The possessive determiner for what the phrase owns; ``""`` where an edit of the phrase could belie it."""
    if phrase.head is None:
        pronoun = phrase.pronoun
    elif phrase.number == "pl" or phrase.second or phrase.head.entry.base_kind == "relative":
        return ""
    else:
        pronoun = _third_person(phrase)
    return next((form for form, owner in POSSESSIVES.items() if owner == pronoun), "")
