"""The two tasks on sameness of meaning: mrpc and stsb."""

from __future__ import annotations

from collections.abc import Sequence

from bertology_utils.annotation.annotators import Sentence

from . import edits
from .anaphora import pronoun_for
from .clauses import Clause, Linked, replace
from .compose import TRANSITIVE, Composer
from .edits import Edit, first_of, several
from .lexicon import Entry, Use
from .realise import realise
from .split import Made

FRAMES = TRANSITIVE + ("give", "give")
LINKS = ("and", "and", "because", "before", "after")
# Share of non-paraphrases that differ in two places rather than in one.
TWO_CHANGES = 0.5
# How often a sentence is a denial, and how often non-paraphrases differ in just that.  Either
# sentence alone must not tell: the label shifts its rate of denials by half of the latter.
DENIED, POLARITY = 0.06, 0.25
# How often the sentence has a further clause, the same in both.
CIRCUMSTANCE = 0.2
# How often synonyms and word order change; a paraphrase must change something, so
# non-paraphrases (the first figure) need a higher rate for both to come out alike.
SYNONYMS, STRUCTURE = 0.6, (0.75, 0.5)

MEANING = (
    ("other subject", edits.other_subject, 3),
    ("other object", edits.other_object, 5),
    ("other verb", edits.other_verb, 4),
    ("antonym", edits.opposite, 3),
    ("other attribute", edits.opposite_attribute, 3),
    ("number", edits.number, 4),
    ("place", edits.place, 4),
    ("time", edits.time, 2),
    ("role swap", edits.roles, 2),
)
FORM = (
    ("active and passive", edits.passive, 2),
    ("dative", edits.dative, 2),
    ("fronting", edits.front, 1),
)


def _with_main(item: Clause | Linked, clause: Clause) -> Clause | Linked:
    return clause if isinstance(item, Clause) else replace(item, main=clause)


def _with_circumstance(item: Clause, composer: Composer) -> Linked:
    """The clause with another, that no edit touches: what somebody did meanwhile, or why."""
    same = item.subject
    taken = [
        phrase.head.entry
        for phrase in (same, item.object, item.recipient)
        if phrase and phrase.head
    ]
    subject = composer.someone(numeral=0.0)
    while subject.head.entry in taken:
        subject = composer.someone(numeral=0.0)
    # Where two people take part, or an edit could put an uncle for an aunt, a pronoun would be
    # ambiguous.
    alone = item.predicate.entry.kind not in ("person", "hunt", "give")
    if alone and same.head and same.head.entry.kind != "relative" and composer.chance(0.5):
        subject = pronoun_for(same)
        item = replace(item, subject=replace(same, mark=same.head.lemma))
    other = composer.clause(
        ("alone", "text", "dish"),
        tenses=(item.tense,),
        place=0.0,
        time=0.0,
        subject=subject,
        numeral=0.0,
    )
    link = composer.rng.choice(LINKS if item.tense == "past" else ("and",))
    first = link != "and" and composer.chance(0.4)
    # "After he did not sing" is no point in time.
    denied = link in ("and", "because") and composer.chance(0.2)
    negation = composer.rng.choice(("n't", "n't", "not", "never")) if denied else ""
    return Linked(item, link, replace(other, negation=negation), first)


def mrpc(composer: Composer, label: int) -> Made:
    """A pair that says the same (1) or not (0).

    One sentence is drawn before the label is looked at, and the same
    rewordings are applied under either label; which of the two comes first is
    left to chance.
    """
    item: Clause | Linked = composer.clause(
        FRAMES, negation=DENIED, numeral=0.25, place=0.4, opposed=0.3
    )
    if composer.chance(0.3):
        item = edits.passive(item, composer) or item
    if composer.chance(CIRCUMSTANCE):
        item = _with_circumstance(item, composer)
    first, changes = item, []

    def main() -> Clause:
        return first if isinstance(first, Clause) else first.main

    if label == 0:
        count = 2 if composer.chance(TWO_CHANGES) else 1
        changes, made = _differently(MEANING, main(), composer, count, POLARITY)
        first = _with_main(first, made)
    if composer.chance(SYNONYMS) and (new := edits.synonyms(main(), composer)):
        changes.append("synonym")
        first = _with_main(first, new)
    if composer.chance(STRUCTURE[label]) or not changes:
        if isinstance(first, Linked) and first.link not in ("and", "but"):
            changes.append("clause order")
            first = replace(first, other_first=not first.other_first)
        elif made := first_of(FORM, main(), composer):
            changes.append(made[0])
            first = _with_main(first, made[1])
    if not changes:
        return None
    return _in_either_order(composer, first, item), label, ", ".join(changes)


def _differently(
    edits_: Sequence[tuple[str, Edit, int]],
    clause: Clause,
    composer: Composer,
    count: int,
    polarity: float,
) -> tuple[list[str], Clause]:
    """Up to ``count`` changes of meaning; with the probability ``polarity`` one of polarity is made, be it beyond."""
    if not composer.chance(polarity):
        return several(edits_, clause, composer, count)
    rest = [edit for edit in edits_ if edit[0] not in edits.ABOUT_THE_VERB]
    names, made = several(rest, edits.negate(clause, composer), composer, count - 1)
    return ["negation", *names], made


def _in_either_order(
    composer: Composer, first: Clause | Linked, second: Clause | Linked
) -> dict[str, list[Sentence]]:
    pair = [first, second] if composer.chance(0.5) else [second, first]
    return {
        name: [realise(item)] for name, item in zip(("sentence1", "sentence2"), pair, strict=True)
    }


# What each proposition weighs, and what a word of the same class is worth.
WEIGHTS = {
    "predicate": 3.0,
    "subject": 2.5,
    "object": 2.5,
    "recipient": 2.0,
    "place": 1.0,
    "time": 1.0,
    "number": 1.0,
}
SIBLING = 0.4
# What is left where one sentence affirms what the other denies.
OPPOSED = 0.6
# How often the sentence is a denial where the events differ, and how often one side is where they
# are alike.
DENIED_EVENT, DENIED_SIDE = 0.2, 0.3


def _parts(clause: Clause) -> dict[str, Use | str]:
    """The propositions of a clause: who, did what, to whom or what, where, when, how many."""
    parts: dict[str, Use | str] = {"predicate": clause.predicate}
    for slot in ("subject", "object", "recipient"):
        phrase = getattr(clause, slot)
        if phrase is not None:
            parts[slot] = phrase.head or phrase.pronoun
            if phrase.number == "pl" and phrase.det != "the":
                parts["number"] = phrase.det
    parts.update({item.role: item.phrase.head for item in clause.adverbials})
    return parts


def _alike(first: Use | str | None, second: Use | str | None) -> float:
    if first is None or second is None or isinstance(first, str) or isinstance(second, str):
        return float(first == second)
    a, b = first.entry, second.entry
    if set(a.lemmas) == set(b.lemmas):
        return 1.0
    return SIBLING if _class(a) == _class(b) and a.kind != "time" else 0.0


def _class(entry: Entry) -> str:
    return "name" if entry.kind in ("she", "he") else entry.kind


def similarity(first: Clause, second: Clause) -> float:
    """Shared propositions on the scale from 0 to 5, weighted by what they carry.

    Args:
        first: A clause.
        second: Another.

    Returns:
        5.0 for clauses that differ in wording only, 0.0 for nothing in common;
        less by :data:`OPPOSED` where one affirms and the other denies.
    """
    a, b = _parts(first), _parts(second)
    shared = total = 0.0
    for part, weight in WEIGHTS.items():
        if part in a or part in b:
            total += weight
            shared += weight * _alike(a.get(part), b.get(part))
    opposed = OPPOSED if bool(first.negation) != bool(second.negation) else 1.0
    return round(5 * opposed * shared / total, 1)


STEPS = (
    ("subject", edits.other_subject, 3),
    ("object", edits.other_object, 3),
    ("verb", edits.other_verb, 3),
    ("place", edits.place, 2),
    ("time", edits.time, 1),
    ("number", edits.number, 1),
)


def stsb(composer: Composer, label: int) -> Made:
    """A pair with a graded similarity; ``label`` (0 to 5) picks how much is changed."""
    second = composer.clause(
        FRAMES, numeral=0.15, place=0.45, time=0.25, negation=DENIED_EVENT if label <= 1 else 0.0
    )
    first, changes = second, []
    if label <= 1:
        hunt = second.predicate.entry.kind == "hunt"
        subject = second.subject if label and not hunt else None
        if subject and composer.chance(0.25) and (made := edits.other_subject(second, composer)):
            subject = made.subject
        frames = tuple(f for f in FRAMES if f not in ("hunt", second.predicate.entry.kind))
        other = composer.clause(
            frames,
            subject=subject,
            tenses=(second.tense,),
            place=0.45,
            time=0.25,
            negation=DENIED_EVENT,
        )
        if label and composer.chance(0.6):
            other = replace(other, adverbials=second.adverbials)
        first, changes = other, ["other event"]
    else:
        changes, first = _differently(STEPS, second, composer, 5 - label, DENIED_SIDE)
    if composer.chance(0.6) and (new := edits.synonyms(first, composer)):
        changes.append("synonym")
        first = new
    if composer.chance(0.25) or first == second:
        made = first_of(FORM, first, composer)
        if made:
            changes.append(made[0])
            first = made[1]
    if not changes:
        return None
    return _in_either_order(composer, first, second), similarity(first, second), ", ".join(changes)
