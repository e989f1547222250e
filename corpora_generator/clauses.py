"""Derivations: small trees of clauses and noun phrases, before any word order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .lexicon import Use

__all__ = ["GAP", "NP", "NUMERALS", "Adverbial", "Clause", "Linked", "replace"]

NUMERALS = tuple("two three four five six seven eight nine ten eleven twelve".split())
# pronoun -> its object form; pronoun -> its possessive determiner
OBJECT_FORMS = {"I": "me", "we": "us", "he": "him", "she": "her", "they": "them"}
PRONOUNS, DETERMINERS = "I we you he she it they", "my our your his her its their"
POSSESSIVES = dict(zip(PRONOUNS.split(), DETERMINERS.split(), strict=True))
GENDERS = {
    **dict.fromkeys(("aunt", "niece", "grandmother"), "she"),
    **dict.fromkeys(("uncle", "nephew", "grandfather", "stepfather"), "he"),
}


@dataclass(frozen=True)
class NP:
    """A noun phrase.

    Args:
        head: The noun or name; None for a pronoun.
        number: ``"sg"`` or ``"pl"``.
        det: ``"the"``, ``"a"``, ``"no"``, a numeral, a possessive …, or ``""``.
        adjectives: The attributes, the outermost first.
        modifier: A phrase after the noun ("in the park").
        relative: A clause about the noun. If its object is :data:`GAP`, the noun is what it
            is done to ("that Anna bought"), otherwise who does it ("who laughed").
        pronoun: A pronoun that is the whole phrase ("she", "nothing"), in its subject form.
        mark: A name by which a pronoun elsewhere can refer to this phrase.
        refers: The ``mark`` of the pronoun's antecedent.
        second: Another phrase, coordinated with this one.
        conjunctions: The words before the first and before the second phrase.
    """

    head: Use | None = None
    number: str = "sg"
    det: str = "the"
    adjectives: tuple[Use, ...] = ()
    modifier: Adverbial | None = None
    relative: Clause | None = None
    pronoun: str = ""
    mark: str = ""
    refers: str = ""
    second: NP | None = None
    conjunctions: tuple[str, str] = ("", "and")


# The object of a relative clause that is about the noun before it.
GAP = NP(pronoun="that")


@dataclass(frozen=True)
class Adverbial:
    """A place, a time or the like: a preposition (or none) and a phrase."""

    role: str
    preposition: str
    phrase: NP


@dataclass(frozen=True)
class Clause:
    """One predicate with its arguments.

    Args:
        predicate: A verb, or an adjective (then the clause has a copula).
        subject: The subject of the active clause.
        object: What a transitive verb is about.
        recipient: Whom a ditransitive verb gives it to.
        adverbials: In the order in which they are said.
        tense: ``past``, ``present``, ``perfect``, ``pluperfect`` or a modal.
        negation: ``""``, ``"not"``, ``"n't"``, ``"never"``, ``"hardly"`` or ``"nowhere near"``.
        degree: An adverb before a predicate adjective.
        manner: An adverb before the main verb.
        opening: An adverb at the front of the sentence, set off by a comma.
        also: A second predicate adjective ("neither clean nor quiet").
        conjunctions: The words before the first and before the second adjective.
        passive: Whether the object is realised as the subject.
        shifted: Whether the recipient comes last, after "to".
        fronted: Whether the last adverbial comes first.
    """

    predicate: Use
    subject: NP
    object: NP | None = None
    recipient: NP | None = None
    adverbials: tuple[Adverbial, ...] = ()
    tense: str = "past"
    negation: str = ""
    degree: str = ""
    manner: str = ""
    opening: str = ""
    also: Use | None = None
    conjunctions: tuple[str, str] = ("", "and")
    passive: bool = False
    shifted: bool = False
    fronted: bool = False


@dataclass(frozen=True)
class Linked:
    """Two clauses joined by a conjunction.

    Args:
        main: The main (or first) clause.
        link: ``"and"``, ``"but"``, or a subordinating conjunction.
        other: The second, or the subordinate clause.
        other_first: Whether the subordinate clause comes first.
    """

    main: Clause
    link: str
    other: Clause
    other_first: bool = False


def third_person(phrase: NP) -> str:
    """The pronoun for a phrase with a noun."""
    entry = phrase.head.entry
    if phrase.number == "pl":
        return "they"
    if entry.kind in ("she", "he"):
        return entry.kind
    if entry.kind in ("mammal", "bird"):
        return "it"
    # Anybody may be a doctor: the gender depends on the concept, so that a synonym keeps it.
    by_concept = ("she", "he")[sum(map(ord, entry.lemmas[0])) % 2]
    return GENDERS.get(phrase.head.lemma, by_concept)
