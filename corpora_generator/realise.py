"""From derivations to annotated sentences."""

from __future__ import annotations

from bertology_utils.annotation.annotators import Sentence

from . import inflection
from .clauses import (
    GAP,
    NP,
    NUMERALS,
    OBJECT_FORMS,
    POSSESSIVES,
    Adverbial,
    Clause,
    Linked,
    replace,
)
from .tree import Node, linearise

DEMONSTRATIVES = {"these": "this", "those": "that"}
MODALS = ("will", "can", "could", "should")
CONTRACTED = {"will": "won't", "can": "can't"}
SUBORDINATORS = ("because", "although", "before", "after")


def _word(form: str, upos: str, deprel: str, *before: Node) -> Node:
    """A word that is its own lemma."""
    return Node(form, form, upos, deprel, list(before))


def _comma() -> Node:
    return _word(",", "PUNCT", "punct")


def noun_phrase(phrase: NP, deprel: str) -> Node:
    """The tree of a noun phrase.

    Args:
        phrase: The derivation.
        deprel: Its relation to its head.
    """
    if phrase.pronoun:
        subject = deprel.startswith("nsubj")
        form = phrase.pronoun if subject else OBJECT_FORMS.get(phrase.pronoun, phrase.pronoun)
        node = Node(form, phrase.pronoun, "PRON", deprel, refers=phrase.refers)
    else:
        lemma, upos = phrase.head.lemma, phrase.head.entry.pos
        plural = phrase.number == "pl" and upos == "NOUN"
        form = inflection.plural(lemma) if plural else lemma
        adjectives = [_word(use.lemma, "ADJ", "amod") for use in phrase.adjectives]
        before = _determiner(phrase) + adjectives
        node = Node(form, lemma, upos, deprel, before, mark=phrase.mark)
    if phrase.modifier:
        node.after.append(adverbial(phrase.modifier, "nmod"))
    if phrase.relative and phrase.relative.object is GAP:
        about = clause(replace(phrase.relative, object=None), "acl:relcl")
        about.before.insert(0, noun_phrase(GAP, "obj"))
        node.after.append(about)
    elif phrase.relative:
        who = NP(pronoun="who", number=phrase.number)
        node.after.append(clause(replace(phrase.relative, subject=who), "acl:relcl"))
    if phrase.second:
        first, second = phrase.conjunctions
        node.before.insert(0, _word(first, "CCONJ", "cc:preconj"))
        other = noun_phrase(phrase.second, "conj")
        other.before.insert(0, _word(second, "CCONJ", "cc"))
        node.after.append(other)
    return node


def _determiner(phrase: NP) -> list[Node]:
    det = phrase.det
    if not det:
        return []
    if det in NUMERALS:
        return [_word(det, "NUM", "nummod")]
    if det in POSSESSIVES.values():
        return [Node(det, det, "PRON", "nmod:poss", refers=phrase.refers)]
    if det in ("last", "next", "many"):
        return [_word(det, "ADJ", "amod")]
    return [Node(det, DEMONSTRATIVES.get(det, det), "DET", "det")]


def _prepositional(preposition: str, phrase: NP, deprel: str) -> Node:
    node = noun_phrase(phrase, deprel)
    node.before.insert(0, _word(preposition, "ADP", "case"))
    return node


def adverbial(item: Adverbial, deprel: str = "obl") -> Node:
    """The tree of an adverbial, or of a noun's modifier (``nmod``)."""
    if not item.preposition:
        return noun_phrase(item.phrase, deprel + ":tmod")
    return _prepositional(item.preposition, item.phrase, deprel)


def _number(phrase: NP) -> str:
    """What a verb agrees with: ``"sg"``, ``"pl"`` or ``"I"``."""
    if phrase.pronoun == "I":
        return "I"
    if phrase.pronoun in ("they", "we", "you"):
        return "pl"
    # "Neither the soup nor the sauces were": the last one decides.
    return _number(phrase.second) if phrase.second else phrase.number


def _finite(lemma: str, tense: str, number: str) -> str:
    if lemma in MODALS:
        return lemma
    if tense in ("past", "pluperfect"):
        return "were" if lemma == "be" and number == "pl" else inflection.past(lemma)
    if lemma == "be":
        return {"sg": "is", "pl": "are", "I": "am"}[number]
    return inflection.third_person(lemma) if number == "sg" else lemma


def _verb_group(item: Clause, number: str) -> list[Node]:
    """The auxiliaries, then the predicate's own verb or the copula, without negation."""
    copula = item.predicate.entry.pos == "ADJ"
    # Pairs of a lemma and the form that it needs.
    chain, form = [], "finite"
    if item.tense in MODALS:
        chain, form = [(item.tense, "finite")], "base"
    elif item.tense in ("perfect", "pluperfect"):
        chain, form = [("have", "finite")], "participle"
    if item.passive or copula:
        chain.append(("be", form))
        form = "participle"
    elif item.negation in ("not", "n't") and not chain:
        chain, form = [("do", "finite")], "base"
    if not copula:
        chain.append((item.predicate.lemma, form))
    nodes = []
    for lemma, form in chain:
        if form == "finite":
            spelled = _finite(lemma, item.tense, number)
        else:
            spelled = inflection.participle(lemma) if form == "participle" else lemma
        nodes.append(Node(spelled, lemma, "AUX", "aux"))
    return nodes


def _after_predicate(item: Clause) -> list[Node]:
    """What follows the predicate: objects, a recipient, an agent."""
    to = [_prepositional("to", item.recipient, "obl")] if item.recipient else []
    if item.passive:
        return [*to, _prepositional("by", item.subject, "obl:agent")]
    target = [noun_phrase(item.object, "obj")] if item.object else []
    if item.recipient and not item.shifted:
        return [noun_phrase(item.recipient, "iobj"), *target]
    return [*target, *to]


def clause(item: Clause, deprel: str = "root") -> Node:
    """The tree of a clause, without final punctuation.

    Args:
        item: The derivation.
        deprel: The predicate's relation to its head.
    """
    subject = item.object if item.passive else item.subject
    verb = _verb_group(item, _number(subject))
    if item.predicate.entry.pos == "ADJ":
        verb[-1].deprel = "cop"
        main = _word(item.predicate.lemma, "ADJ", deprel)
    else:
        main = verb.pop()
        main.upos, main.deprel = "VERB", deprel
        if item.passive:
            verb[-1].deprel = "aux:pass"
    # "Cannot" is spelled as one word, which would hide its negation.
    if item.negation == "n't" or (item.negation == "not" and verb[0].form == "can"):
        verb[0].form = CONTRACTED.get(verb[0].form, verb[0].form + "n't")
    elif item.negation:
        *modifier, word = item.negation.split()
        before = [_word(form, "ADV", "advmod") for form in modifier]
        verb.insert(1, _word(word, "PART" if word == "not" else "ADV", "advmod", *before))
    adverbs = (item.degree, "" if item.negation else item.manner)
    verb += [_word(adverb, "ADV", "advmod") for adverb in adverbs if adverb]

    main.before = [noun_phrase(subject, "nsubj:pass" if item.passive else "nsubj"), *verb]
    main.after = _after_predicate(item)
    if item.also:
        first, second = item.conjunctions
        if first:
            main.before.append(_word(first, "CCONJ", "cc:preconj"))
        main.after.append(_word(item.also.lemma, "ADJ", "conj", _word(second, "CCONJ", "cc")))
    adverbials = list(item.adverbials)
    if item.fronted and adverbials:
        main.before[:0] = [adverbial(adverbials.pop()), _comma()]
    main.after += [adverbial(other) for other in adverbials]
    return main


def realise(item: Clause | Linked) -> Sentence:
    """The annotated sentence of a derivation."""
    first = item if isinstance(item, Clause) else item.main
    main = clause(first)
    if isinstance(item, Linked) and item.link in SUBORDINATORS:
        other = clause(item.other, "advcl")
        other.before.insert(0, _word(item.link, "SCONJ", "mark"))
        if item.other_first:
            main.before[:0] = [other, _comma()]
        else:
            main.after.append(other)
    elif isinstance(item, Linked):
        other = clause(item.other, "conj")
        other.before[:0] = [_comma(), _word(item.link, "CCONJ", "cc")]
        main.after.append(other)
    if first.opening and not first.fronted:
        main.before[:0] = [_word(first.opening, "ADV", "advmod"), _comma()]
    main.after.append(_word(".", "PUNCT", "punct"))
    return linearise(main)
