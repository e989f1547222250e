"""From derivations to ordered dependency trees."""

from __future__ import annotations

from bertology_utils.annotation.annotators import Sentence

from . import inflection
from .clauses import GAP, NP, Adverbial, Clause, Linked, replace
from .tree import Node, linearise
from .words import PEOPLE

NUMERALS = tuple("two three four five six seven eight nine ten eleven twelve".split())
# determiner -> whose it is
POSSESSIVES = {
    "my": "I",
    "our": "we",
    "your": "you",
    "his": "he",
    "her": "she",
    "its": "it",
    "their": "they",
}
OBJECT_FORMS = {"I": "me", "we": "us", "he": "him", "she": "her", "they": "them"}
DEMONSTRATIVES = {"these": "this", "those": "that"}
MODALS = ("will", "can", "could", "should", "may", "might", "must")
CONTRACTED = {"will": "won't", "can": "can't", "am": "am not"}
SUBORDINATORS = ("because", "although", "before", "after")
WH = {"place": "where", "time": "when", "manner": "how", "reason": "why"}


def noun_phrase(phrase: NP, deprel: str) -> Node:
    """The tree of a noun phrase.

    Args:
        phrase: The derivation.
        deprel: Its relation to what it will be attached to.
    """
    if phrase.pronoun:
        upos = "ADV" if phrase.pronoun == "nowhere" else "PRON"
        form = (
            phrase.pronoun
            if deprel.startswith("nsubj")
            else OBJECT_FORMS.get(phrase.pronoun, phrase.pronoun)
        )
        node = Node(form, phrase.pronoun, upos, deprel, mark=phrase.mark, refers=phrase.refers)
    else:
        node = _noun(phrase, deprel)
    if phrase.emphatic:
        node.after.append(
            Node(phrase.emphatic, phrase.emphatic, "PRON", "nmod:npmod", refers=phrase.mark)
        )
    if phrase.modifier:
        node.after.append(adverbial(phrase.modifier, "nmod"))
    if phrase.relative:
        node.after.append(_relative(phrase.relative, phrase.number))
    if phrase.second:
        first, second = phrase.conjunctions
        if first:
            node.before.insert(0, Node(first, first, "CCONJ", "cc:preconj"))
        other = noun_phrase(phrase.second, "conj")
        other.before.insert(0, Node(second, second, "CCONJ", "cc"))
        node.after.append(other)
    return node


def _relative(item: Clause, number: str) -> Node:
    """A clause about a noun of that number, who does what it says or to which it is done."""
    if item.object is not GAP:
        return clause(replace(item, subject=NP(pronoun="who", number=number)), "acl:relcl")
    node = clause(replace(item, object=None), "acl:relcl")
    node.before.insert(0, noun_phrase(GAP, "obj"))
    return node


def _noun(phrase: NP, deprel: str) -> Node:
    lemma, entry = phrase.head.lemma, phrase.head.entry
    start, of, rest = lemma.partition(" of ")
    *compound, lemma = start.split(" ")
    form = inflection.plural(lemma) if phrase.number == "pl" and entry.pos == "NOUN" else lemma
    node = Node(form, lemma, entry.pos, deprel, mark=phrase.mark)
    node.before += _determiners(phrase)
    node.before += [Node(use.lemma, use.lemma, "ADJ", "amod") for use in phrase.adjectives]
    node.before += [Node(word, word, "ADJ", "amod") for word in compound]
    if of:
        node.after.append(Node(rest, rest, "NOUN", "nmod", [Node("of", "of", "ADP", "case")]))
    return node


def _determiners(phrase: NP) -> list[Node]:
    det = phrase.det
    if not det:
        return []
    if det in NUMERALS:
        return [Node(det, det, "NUM", "nummod")]
    if det in POSSESSIVES:
        return [Node(det, det, "PRON", "nmod:poss", refers=phrase.refers)]
    if det in ("last", "next", "many", "most"):
        return [Node(det, det, "ADJ", "amod")]
    *outer, inner = det.split(" ")  # "all the"
    return [
        *(Node(word, word, "DET", "det:predet") for word in outer),
        Node(inner, DEMONSTRATIVES.get(inner, inner), "DET", "det"),
    ]


def adverbial(item: Adverbial, deprel: str = "obl") -> Node:
    """The tree of an adverbial, or of a noun's modifier (``nmod``)."""
    if item.phrase.pronoun == "nowhere":
        return noun_phrase(item.phrase, "advmod")
    if not item.preposition:
        return noun_phrase(item.phrase, deprel + ":tmod")
    node = noun_phrase(item.phrase, deprel)
    node.before.insert(0, Node(item.preposition, item.preposition, "ADP", "case"))
    return node


def is_person(phrase: NP) -> bool:
    """Whether to ask for the phrase with "who"."""
    people = (*PEOPLE.split(), "she", "he")
    if phrase.pronoun:
        return phrase.pronoun in (*OBJECT_FORMS, "you", "who", "nobody", "everyone", "anyone")
    return phrase.head is not None and phrase.head.entry.base_kind in people


def number_of(phrase: NP) -> str:
    """What a verb agrees with: ``"sg"``, ``"pl"`` or ``"I"``."""
    if phrase.pronoun == "I":
        return "I"
    if phrase.pronoun in ("they", "we", "you"):
        return "pl"
    if phrase.second:
        return "pl" if phrase.conjunctions[1] == "and" else number_of(phrase.second)
    return phrase.number


def _finite(lemma: str, tense: str, number: str) -> str:
    if lemma in MODALS:
        return lemma
    if tense in ("past", "pluperfect"):
        return "were" if lemma == "be" and number == "pl" else inflection.past(lemma)
    if lemma == "be":
        return {"sg": "is", "pl": "are", "I": "am"}[number]
    return inflection.third_person(lemma) if number == "sg" else lemma


def _chain(item: Clause, copula: bool, passive: bool, support: bool) -> list[tuple[str, str]]:
    """The verb group as (lemma, needed form) pairs; the last is the predicate's own."""
    chain, form = [], "finite"
    if item.infinitive:
        form = "base"
    elif item.tense in MODALS:
        chain, form = [(item.tense, "finite")], "base"
    elif item.tense in ("perfect", "pluperfect"):
        chain, form = [("have", "finite")], "participle"
    if passive or copula:
        chain.append(("be", form))
        form = "participle"
    elif support and not chain and not item.infinitive:
        chain, form = [("do", "finite")], "base"
    if not copula:
        chain.append((item.predicate.lemma, form))
    return chain


def _inflect(lemma: str, form: str, tense: str, number: str) -> str:
    if form == "finite":
        return _finite(lemma, tense, number)
    return inflection.participle(lemma) if form == "participle" else lemma


def _arguments(item: Clause, passive: bool) -> tuple[NP, list[Node]]:
    """The phrase in subject position, and what follows the predicate."""
    after = []
    if item.ask in ("object", "which", "number"):
        item = replace(item, object=None)
    if passive:
        if item.recipient:
            node = noun_phrase(item.recipient, "obl")
            node.before.insert(0, Node("to", "to", "ADP", "case"))
            after.append(node)
        agent = noun_phrase(item.subject, "obl:agent")
        agent.before.insert(0, Node("by", "by", "ADP", "case"))
        return item.object, [*after, agent]
    if item.recipient and not item.shifted:
        after.append(noun_phrase(item.recipient, "iobj"))
    if item.object:
        after.append(noun_phrase(item.object, "obj"))
    if item.recipient and item.shifted:
        node = noun_phrase(item.recipient, "obl")
        node.before.insert(0, Node("to", "to", "ADP", "case"))
        after.append(node)
    return item.subject, after


def _asked(item: Clause) -> Node:
    """The question word or phrase at the front."""
    if item.ask in WH:
        return Node(WH[item.ask], WH[item.ask], "ADV", "advmod")
    if item.ask == "object":
        form, lemma = ("whom", "who") if is_person(item.object) else ("what", "what")
        return Node(form, lemma, "PRON", "obj")
    if item.ask == "which":
        return noun_phrase(replace(item.object, det="which", number="sg"), "obj")
    node = noun_phrase(replace(item.object, det="", number="pl"), "obj")
    node.before.insert(
        0, Node("many", "many", "ADJ", "amod", [Node("how", "how", "ADV", "advmod")])
    )
    return node


def clause(item: Clause, deprel: str = "root") -> Node:
    """The tree of a clause, without final punctuation.

    Args:
        item: The derivation.
        deprel: The predicate's relation to its head.
    """
    copula = item.predicate.entry.pos == "ADJ"
    passive = (
        item.passive
        and item.object is not None
        and item.ask in ("", "polar")
        and not item.infinitive
    )
    inverted = item.ask not in ("", "subject")
    subject, after = _arguments(item, passive)
    if item.ask == "subject":
        subject = NP(pronoun="who" if is_person(subject) else "what")
    number = number_of(subject)
    chain = _chain(item, copula, passive, inverted or item.negation in ("not", "n't"))
    forms = [_inflect(lemma, form, item.tense, number) for lemma, form in chain]
    if item.negation == "n't" and item.tense in ("may", "might"):
        item = replace(item, negation="not")
    # "Cannot" is spelled as one word, which would hide its negation.
    if item.negation == "n't" or (item.negation == "not" and forms[0] == "can"):
        item = replace(item, negation="n't")
        forms[0] = CONTRACTED.get(forms[0], forms[0] + "n't")

    verb = [Node(form, lemma, "AUX", "aux") for form, (lemma, _) in zip(forms, chain, strict=False)]
    if copula:
        verb[-1].deprel = "cop"
        main = Node(item.predicate.lemma, item.predicate.lemma, "ADJ", deprel)
    else:
        main = verb.pop()
        main.upos, main.deprel = "VERB", deprel
        if passive:
            verb[-1].deprel = "aux:pass"
    if item.negation and item.negation != "n't":
        *modifier, word = item.negation.split(" ")
        before = [Node(form, form, "ADV", "advmod") for form in modifier]
        verb.insert(1, Node(word, word, "PART" if word == "not" else "ADV", "advmod", before))
    adverbs = (item.degree, "" if item.negation else item.manner)
    verb += [Node(adverb, adverb, "ADV", "advmod") for adverb in adverbs if adverb]

    if item.infinitive:
        to = Node("to", "to", "PART", "mark")
        main.before = [*verb, to] if item.negation else [to, *verb]
    else:
        node = noun_phrase(subject, "nsubj:pass" if passive else "nsubj")
        main.before = [*verb[:1], node, *verb[1:]] if inverted else [node, *verb]
    if inverted and item.ask != "polar":
        main.before.insert(0, _asked(item))
    main.after = after
    _add_second_adjective(item, main)
    _add_adverbials(item, main)
    if item.complement:
        embedded = clause(item.complement, "ccomp")
        embedded.before.insert(0, Node("that", "that", "SCONJ", "mark"))
        main.after.append(embedded)
    return main


def _add_second_adjective(item: Clause, main: Node) -> None:
    if item.also is None:
        return
    first, second = item.conjunctions
    if first:
        main.before.append(Node(first, first, "CCONJ", "cc:preconj"))
    other = Node(
        item.also.lemma, item.also.lemma, "ADJ", "conj", [Node(second, second, "CCONJ", "cc")]
    )
    main.after.append(other)


def _add_adverbials(item: Clause, main: Node) -> None:
    adverbials = [a for a in item.adverbials if a.role != item.ask]
    if item.fronted and adverbials and not item.ask and not item.infinitive:
        main.before[:0] = [adverbial(adverbials.pop()), Node(",", ",", "PUNCT", "punct")]
    main.after += [adverbial(a) for a in adverbials]


def _open(main: Node, opening: str) -> None:
    if opening:
        main.before[:0] = [
            Node(opening, opening, "ADV", "advmod"),
            Node(",", ",", "PUNCT", "punct"),
        ]


def derivation(item: Clause | Linked) -> Node:
    """The tree of a whole sentence, without final punctuation."""
    if isinstance(item, Clause):
        main = clause(item)
        _open(main, "" if item.fronted or item.ask else item.opening)
        return main
    main = clause(item.main)
    if item.link in SUBORDINATORS:
        other = clause(item.other, "advcl")
        other.before.insert(0, Node(item.link, item.link, "SCONJ", "mark"))
        if item.other_first:
            main.before[:0] = [other, Node(",", ",", "PUNCT", "punct")]
        else:
            main.after.append(other)
    else:
        other = clause(item.other, "conj")
        other.before[:0] = [
            Node(",", ",", "PUNCT", "punct"),
            Node(item.link, item.link, "CCONJ", "cc"),
        ]
        main.after.append(other)
    _open(main, "" if item.main.fronted else item.main.opening)
    return main


def sentence(tree: Node, stop: str = ".", offset: int = 0) -> Sentence:
    """Close a tree with its punctuation mark and read it off."""
    tree.after.append(Node(stop, stop, "PUNCT", "punct"))
    return linearise(tree, offset)


def realise(item: Clause | Linked, offset: int = 0) -> Sentence:
    """The annotated sentence of a derivation.

    Args:
        item: A clause, or two linked ones.
        offset: Where the sentence starts in its field.
    """
    asks = isinstance(item, Clause) and item.ask
    return sentence(derivation(item), "?" if asks else ".", offset)
