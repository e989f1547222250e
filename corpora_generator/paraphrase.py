"""The two tasks on sameness of meaning: mrpc and stsb."""

from __future__ import annotations

from collections.abc import Sequence

from . import edits
from .clauses import NP, Clause, Linked, replace, third_person
from .compose import TRANSITIVE, Composer
from .edits import Weighted, first_of, several
from .lexicon import Use
from .rows import Made

FRAMES = (*TRANSITIVE, "give", "give")
LINKS = ("and", "and", "because", "before", "after")
# Share of non-paraphrases that differ in two places rather than in one.
TWO_CHANGES = 0.5
# How often a sentence is a denial, and how often non-paraphrases differ in just that. Neither
# sentence alone must tell: the label shifts its rate of denials by half of the latter.
DENIED, POLARITY = 0.06, 0.25
# How often a sentence has a further clause, the same in both.
CIRCUMSTANCE = 0.2
# How often synonyms and word order change. A paraphrase must change something, so
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
STEPS = (
    ("subject", edits.other_subject, 3),
    ("object", edits.other_object, 3),
    ("verb", edits.other_verb, 3),
    ("place", edits.place, 2),
    ("time", edits.time, 1),
    ("number", edits.number, 1),
)


def _with_circumstance(item: Clause, composer: Composer) -> Linked:
    """The clause with another that no edit touches: what somebody did meanwhile, or why."""
    same = item.subject
    phrases = (same, item.object, item.recipient)
    taken = [phrase.head.entry for phrase in phrases if phrase and phrase.head]
    subject = composer.someone()
    while subject.head.entry in taken:
        subject = composer.someone()
    # Where two people take part, or an edit could put an uncle for an aunt, a pronoun would be
    # ambiguous.
    alone = item.predicate.entry.kind not in ("person", "hunt", "give")
    if alone and same.head and same.head.entry.kind != "relative" and composer.chance(0.5):
        lemma = same.head.lemma
        subject = NP(pronoun=third_person(same), refers=lemma, number=same.number)
        item = replace(item, subject=replace(same, mark=lemma))
    given = {"tenses": (item.tense,), "subject": subject}
    other = composer.clause(("alone", "text", "dish"), place=0.0, time=0.0, numeral=0.0, **given)
    link = composer.rng.choice(LINKS if item.tense == "past" else ("and",))
    first = link != "and" and composer.chance(0.4)
    # "After he did not sing" is no point in time.
    if link in ("and", "because") and composer.chance(0.2):
        other = replace(other, negation=composer.rng.choice(("n't", "n't", "not", "never")))
    return Linked(item, link, other, first)


def _differently(
    steps: Sequence[Weighted], clause: Clause, composer: Composer, count: int, polarity: float
) -> tuple[list[str], Clause]:
    """Up to ``count`` changes of meaning; ``polarity`` is how often one of them is a negation."""
    if not composer.chance(polarity):
        return several(steps, clause, composer, count)
    rest = [step for step in steps if step[0] not in edits.ABOUT_THE_VERB]
    names, made = several(rest, edits.negate(clause, composer), composer, count - 1)
    return ["negation", *names], made


def _in_either_order(composer: Composer, *pair: Clause | Linked) -> tuple[Clause | Linked, ...]:
    return pair if composer.chance(0.5) else pair[::-1]


def mrpc(composer: Composer, label: int) -> Made:
    """A pair that says the same (1) or not (0).

    One sentence is drawn before the label is looked at, and the same rewordings are applied under
    either label. Which of the two comes first is left to chance.
    """
    main = composer.clause(FRAMES, negation=DENIED, numeral=0.25, place=0.4, opposed=0.3)
    if composer.chance(0.3):
        main = edits.passive(main, composer) or main
    linked = _with_circumstance(main, composer) if composer.chance(CIRCUMSTANCE) else None
    original: Clause | Linked = linked or main
    main = linked.main if linked else main
    changes: list[str] = []
    if label == 0:
        count = 2 if composer.chance(TWO_CHANGES) else 1
        changes, main = _differently(MEANING, main, composer, count, POLARITY)
    if composer.chance(SYNONYMS) and (reworded := edits.synonyms(main, composer)):
        changes.append("synonym")
        main = reworded
    if composer.chance(STRUCTURE[label]) or not changes:
        if linked and linked.link != "and":
            changes.append("clause order")
            linked = replace(linked, other_first=not linked.other_first)
        elif made := first_of(FORM, main, composer):
            changes.append(made[0])
            main = made[1]
    if not changes:
        return None
    changed = replace(linked, main=main) if linked else main
    return _in_either_order(composer, changed, original), label, ", ".join(changes)


# What each part of a clause weighs.
WEIGHTS = {
    "predicate": 3.0,
    "subject": 2.5,
    "object": 2.5,
    "recipient": 2.0,
    "place": 1.0,
    "time": 1.0,
    "number": 1.0,
}
# What a word of the same class is worth, and what is left where one sentence affirms what the
# other denies.
SIBLING, OPPOSED = 0.4, 0.6
# How often a sentence is a denial where the events differ, and how often one side is where they
# are alike.
DENIED_EVENT, DENIED_SIDE = 0.2, 0.3


def _parts(clause: Clause) -> dict[str, Use | str]:
    """The parts of a clause: who, did what, to whom or what, where, when, how many."""
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
    if not isinstance(first, Use) or not isinstance(second, Use):
        return float(first == second)
    if {*first.entry.lemmas} == {*second.entry.lemmas}:
        return 1.0
    kinds = first.entry.kind, second.entry.kind
    names = {*kinds} <= {"she", "he"}
    return SIBLING if (kinds[0] == kinds[1] != "time") or names else 0.0


def similarity(first: Clause, second: Clause) -> float:
    """The parts that two clauses share, on the scale from 0 to 5, weighted by what they carry.

    Returns:
        5.0 for clauses that differ in wording only, 0.0 for nothing in common; less by
        :data:`OPPOSED` where one affirms and the other denies.
    """
    a, b = _parts(first), _parts(second)
    weights = {part: weight for part, weight in WEIGHTS.items() if part in a or part in b}
    shared = sum(weight * _alike(a.get(part), b.get(part)) for part, weight in weights.items())
    opposed = OPPOSED if bool(first.negation) != bool(second.negation) else 1.0
    return round(5 * opposed * shared / sum(weights.values()), 1)


def stsb(composer: Composer, label: int) -> Made:
    """A pair with a graded similarity; ``label`` (0 to 5) picks how much is changed."""
    usual = {"place": 0.45, "negation": DENIED_EVENT if label <= 1 else 0.0}
    second = composer.clause(FRAMES, **usual)
    if label <= 1:
        frame, subject = second.predicate.entry.kind, second.subject
        if label == 0 or frame == "hunt":
            subject = None
        if subject and composer.chance(0.25) and (made := edits.other_subject(second, composer)):
            subject = made.subject
        usual |= {"tenses": (second.tense,), "subject": subject, "counted": 0.0}
        frames = tuple(f for f in FRAMES if f not in ("hunt", frame))
        first, changes = composer.clause(frames, **usual), ["other event"]
        if label and composer.chance(0.6):
            first = replace(first, adverbials=second.adverbials)
    else:
        changes, first = _differently(STEPS, second, composer, 5 - label, DENIED_SIDE)
    if composer.chance(0.6) and (reworded := edits.synonyms(first, composer)):
        changes.append("synonym")
        first = reworded
    reordered = composer.chance(0.25) or first == second
    if reordered and (made := first_of(FORM, first, composer)):
        changes.append(made[0])
        first = made[1]
    if not changes:
        return None
    alike = similarity(first, second)
    return _in_either_order(composer, first, second), alike, ", ".join(changes)
