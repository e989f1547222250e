"""Derivations: small trees of clauses and noun phrases, before any word order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .lexicon import Use

__all__ = ["GAP", "NP", "Adverbial", "Clause", "Linked", "replace"]


@dataclass(frozen=True)
class NP:
    """A noun phrase.

    Args:
        head: Noun or name; None for a bare pronoun.
        number: ``"sg"`` or ``"pl"``.
        det: ``"the"``, ``"a"``, ``"every"``, ``"no"`` …, a numeral word, or ``""``.
        adjectives: Attributes, outermost first.
        modifier: A phrase after the noun ("in the park").
        relative: A clause about the noun ("who laughed"); if its object is :data:`GAP`, the
            noun is what it is done to ("that Anna bought"), else who does it.
        pronoun: A pronoun that stands for the whole phrase ("she", "nothing"), in its subject form.
        emphatic: What insists on who it is: ``"herself"`` right after the noun.
        mark: A name by which a pronoun elsewhere can refer to this phrase.
        refers: The ``mark`` of the pronoun's antecedent.
        second: Another phrase coordinated with this one.
        conjunctions: The words before the first and before the second phrase.
    """

    head: Use | None = None
    number: str = "sg"
    det: str = "the"
    adjectives: tuple[Use, ...] = ()
    modifier: Adverbial | None = None
    relative: Clause | None = None
    pronoun: str = ""
    emphatic: str = ""
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
        complement: A that-clause.
        adverbials: In the order in which they are said.
        tense: ``past``, ``present``, ``perfect``, ``pluperfect`` or a modal.
        negation: ``""``, ``"not"``, ``"n't"``, ``"never"``, ``"hardly"`` or ``"nowhere near"``.
        degree: An adverb before a predicate adjective.
        manner: An adverb before the main verb.
        opening: An adverb at the front of the whole sentence, set off by a comma.
        also: A second predicate adjective ("neither clean nor quiet").
        conjunctions: The words before the first and before the second adjective.
        passive: Realise the object as subject.
        shifted: Realise the recipient after "to".
        fronted: Put the last adverbial first.
        ask: The role that a question asks for, ``"polar"``, or ``""``.
        infinitive: Realise without subject, after "to".
    """

    predicate: Use
    subject: NP
    object: NP | None = None
    recipient: NP | None = None
    complement: Clause | None = None
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
    ask: str = ""
    infinitive: bool = False


@dataclass(frozen=True)
class Linked:
    """A main clause and another, joined by a conjunction.

    Args:
        main: The main (or first) clause.
        link: ``"and"``, ``"but"`` (coordination) or a subordinator.
        other: The second, or the subordinate clause.
        other_first: Put the subordinate clause before the main one.
    """

    main: Clause
    link: str
    other: Clause
    other_first: bool = False
