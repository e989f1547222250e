"""The two inference tasks: mnli and rte.

A hypothesis is drawn first, without regard to the label; the premise is then
made to suit.  So nothing in the hypothesis tells the label.
"""

from __future__ import annotations

from . import edits, lexicon
from .clauses import NP, Clause, Linked, replace
from .compose import Composer, adjective_kind
from .edits import Edit, first_of
from .lexicon import Use
from .realise import number_of, realise
from .split import Made

TENSES = ("past",) * 8 + ("perfect", "pluperfect", "will", "will", "can", "could", "should",
                           "present")
REAL = ("past", "perfect", "pluperfect", "will", "present")
# Frames rich in opposites weigh most, so that contradiction need not lean on negation.
FRAMES = ("goods",) * 5 + ("person",) * 4 + ("building",) * 2 + (
    "give", "hunt", "text", "transport", "dish", "food", "animal", "plant", "music")


def hypothesis(composer: Composer, negation: float = 0.3) -> Clause:
    """A short clause with the things that inference turns on."""
    if composer.chance(0.2):
        return composer.state(negation=negation)
    return composer.clause(FRAMES, opposed=0.8, hypernym=0.45, adjective=0.25, numeral=0.25, place=0.35, time=0.15,
                           negation=negation, tenses=TENSES)


def _specialise(clause: Clause, composer: Composer) -> Clause | None:
    """Put a hyponym for a class noun."""

    def narrower(use: Use) -> Use | None:
        kind = use.entry.kind.removeprefix("class of ")
        if kind == use.entry.kind:
            return None
        own = [e for e in lexicon.nouns().get(kind, ()) if e.hypernym == use.lemma]
        entry = composer.vocabulary.draw(own) if own else None
        return composer.vocabulary.use(entry) if entry else None

    return edits.swap_word(clause, composer, narrower)


def _generalise(clause: Clause, composer: Composer) -> Clause | None:
    """Put the class noun or verb for a word."""
    return edits.swap_word(clause, composer, composer.vocabulary.hypernym)


def _add(clause: Clause, composer: Composer) -> Clause | None:
    """Add an attribute, a place or a time."""
    target = clause.object
    kind = adjective_kind(target.head.entry, composer.vocabulary) if target and not target.adjectives else None
    if kind and target.head.entry.pos == "NOUN" and composer.chance(0.5):
        return edits.put(clause, ("object", "adjectives"), (composer.vocabulary.adjective(kind),))
    if not clause.adverbials and clause.predicate.entry.pos == "VERB" and clause.predicate.entry.kind != "building":
        when = composer.time(clause.tense)
        added = when if when and composer.chance(0.3) else composer.place(clause.predicate.entry.kind)
        return replace(clause, adverbials=(added,))
    return None


def _drop(clause: Clause, composer: Composer) -> Clause | None:
    """Leave out an attribute, a place or a time."""
    if clause.object and clause.object.adjectives and composer.chance(0.6):
        return edits.put(clause, ("object", "adjectives"), ())
    return replace(clause, adverbials=clause.adverbials[:-1]) if clause.adverbials else None


def _nobody(clause: Clause, composer: Composer) -> Clause | None:
    return None if clause.negation else replace(clause, subject=NP(pronoun="nobody"))


def _no_such(clause: Clause, composer: Composer) -> Clause | None:
    """Deny the object in the wider class ("bought no vehicles")."""
    if clause.negation or clause.object is None or clause.object.head.entry.pos != "NOUN":
        return None
    head = composer.vocabulary.hypernym(clause.object.head) or clause.object.head
    return replace(clause, object=NP(head, "pl", "no"))


def _opposite(clause: Clause, composer: Composer) -> Clause | None:
    # What can be done and what can be undone are no contradiction; nor are two denials.
    return edits.opposite(clause, composer) if clause.tense in REAL and not clause.negation else None


def _number(clause: Clause, composer: Composer) -> Clause | None:
    return None if clause.negation or clause.tense not in REAL else edits.number(clause, composer)


def _other_event(clause: Clause, composer: Composer) -> Clause | None:
    made = edits.other_event(clause, composer)
    return replace(made, adverbials=()) if composer.chance(0.4) else made


def pronoun_for(phrase: NP, composer: Composer) -> NP:
    """A pronoun that refers to the phrase under its own lemma."""
    if number_of(phrase) == "pl":
        word = "they"
    elif phrase.head.entry.kind in ("she", "he"):
        word = phrase.head.entry.kind
    elif phrase.head.entry.kind in ("mammal", "bird"):
        word = "it"
    else:
        feminine = ("aunt", "niece", "grandmother")
        masculine = ("uncle", "nephew", "grandfather", "stepfather")
        lemma = phrase.head.lemma
        word = "she" if lemma in feminine else "he" if lemma in masculine else composer.rng.choice(("she", "he"))
    return NP(pronoun=word, refers=phrase.head.lemma, number=phrase.number)


def join(clause: Clause, composer: Composer, links: tuple[str, ...] = ("and", "but")) -> Linked | None:
    """The clause together with something else that its subject does."""
    if clause.subject.head is None or clause.complement or clause.passive:
        return None
    subject = replace(clause.subject, mark=clause.subject.head.lemma)
    tense = clause.tense if clause.tense in REAL else "past"
    pronoun = pronoun_for(clause.subject, composer)
    other = edits.other_event(replace(clause, subject=pronoun, negation="", tense=tense), composer)
    other = replace(other, adverbials=other.adverbials[:1] if composer.chance(0.3) else ())
    return Linked(replace(clause, subject=subject), composer.rng.choice(links), other)


def _embed(frame: str) -> Edit:
    def edit(clause: Clause, composer: Composer) -> Clause:
        verb = composer.vocabulary.verb((frame,))
        tense = composer.rng.choice(("past", "present", "present"))
        return Clause(verb, composer.someone(numeral=0.0), complement=clause, tense=tense)

    return edit


def _affirmed(edit: Edit) -> Edit:
    """The edit, for hypotheses without negation only."""
    return lambda clause, composer: None if clause.negation else edit(clause, composer)


def _by_polarity(affirmed: Edit, denied: Edit) -> Edit:
    """Negation turns round what follows from what."""
    return lambda clause, composer: (denied if clause.negation else affirmed)(clause, composer)


def _other_participant(clause: Clause, composer: Composer) -> Clause | None:
    return edits.other_object(clause, composer) or edits.other_subject(clause, composer)


# What makes a premise, with weights: these set how hard the tasks are.
ENTAILING = (("hypernym", _affirmed(_specialise), 6), ("modifier", _affirmed(_add), 4),
             ("factive", _embed("factive"), 1), ("synonym", edits.synonyms, 3), ("voice", edits.passive, 1))
UNDECIDED = (("hypernym", _by_polarity(_generalise, _specialise), 2), ("modifier", _by_polarity(_drop, _add), 5),
             ("other event", _other_event, 4), ("attitude", _embed("attitude"), 1))
CONTRARY = (("antonym", _opposite, 10), ("number", _number, 6), ("negation", edits.negate, 2), ("nobody", _nobody, 1),
            ("none such", _no_such, 1))
# Mostly another event: a premise of two clauses is hard enough without finer differences.
UNSUPPORTED = (*UNDECIDED, ("other event", _other_event, 16), ("other participant", _other_participant, 5),
               ("antonym", _opposite, 4), ("number", _number, 2), ("negation", edits.negate, 1))
# How often a premise says more besides, or says it in other words, whatever the label.
EXTRA, SYNONYM, VOICE = 0.3, 0.5, 0.2
# How often saying more is all there is to an entailment; the other labels' premises get
# a further clause as often, so that its presence is no sign.
ONLY_MORE, CONJUNCT = 0.15, (0.05, 0.2, 0.2)
KNOWN = 0.08


def _reworded(clause: Clause, composer: Composer, change: str) -> Clause:
    """Synonyms and voice, at the same rates whatever the label; ``change`` is not undone."""
    if composer.chance(SYNONYM) and change != "synonym":
        clause = edits.synonyms(clause, composer) or clause
    if composer.chance(VOICE) and change != "voice" and clause.subject.pronoun != "nobody":
        clause = edits.passive(clause, composer) or clause
    return clause


def mnli(composer: Composer, label: int) -> Made:
    """Premise and hypothesis: entailment (0), neutral (1) or contradiction (2)."""
    target = hypothesis(composer)
    made = first_of((ENTAILING, UNDECIDED, CONTRARY)[label], target, composer)
    if label == 0 and composer.chance(ONLY_MORE) or made is None:
        made = ("conjunct", target)
    change, core = made
    # Saying more keeps every label but an entailment from a denial.
    if composer.chance(EXTRA) and not core.negation and core.complement is None and core.subject.head:
        core = _add(core, composer) or core
    core = _reworded(core, composer, change)
    joined = join(core, composer) if composer.chance(CONJUNCT[label]) or core == target else None
    if label == 2 and joined is None and composer.chance(KNOWN):
        core = _embed("factive")(core, composer)
    return {"premise": [realise(joined or core)], "hypothesis": [realise(target)]}, label, change


def rte(composer: Composer, label: int) -> Made:
    """A longer premise and a short hypothesis: entailment (0) or not (1)."""
    target = hypothesis(composer, negation=0.15)
    change, core = first_of((ENTAILING, UNSUPPORTED)[label], target, composer) or ("conjunct", target)
    core = _reworded(core, composer, change)
    tense = core.tense if core.tense in REAL else "past"
    other = composer.clause(("goods", "text", "dish", "music", "animal", "alone"), place=0.3, time=0.0, adjective=0.1,
                            tenses=(tense,))
    if composer.chance(KNOWN):
        other = _embed(composer.rng.choice(("factive", "attitude")))(other, composer)
    order = (core, other) if composer.chance(0.5) else (other, core)
    if composer.chance(0.3):
        one = realise(order[0])
        premise = [one, realise(order[1], len(one.text) + 1)]
    else:
        events = core.tense == tense == "past" and core.predicate.entry.pos == "VERB"
        links = ("and", "but", "before", "after", "because") if events and not core.negation else ("and", "but")
        joined = join(core, composer, links) if composer.chance(0.4) else None
        premise = [realise(joined or Linked(order[0], composer.rng.choice(("and", "but", "while")), order[1]))]
    return {"sentence1": premise, "sentence2": [realise(target)]}, label, change
