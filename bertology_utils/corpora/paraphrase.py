"""The two tasks on sameness of meaning: mrpc and stsb."""

from __future__ import annotations

from . import edits
from .clauses import Clause, Linked, replace
from .compose import TRANSITIVE, Composer
from .edits import first_of, several
from .lexicon import Entry, Use
from .realise import realise
from .split import Made

FRAMES = TRANSITIVE + ("give", "give")
LINKS = ("and", "but", "because", "before", "after", "while")
# Share of non-paraphrases that differ in two places rather than in one.
TWO_CHANGES = 0.5
# How often synonyms and word order change; a paraphrase must change something, so
# non-paraphrases (the first figure) need a higher rate for both to come out alike.
SYNONYMS, STRUCTURE = 0.6, (0.75, 0.5)

MEANING = (
    ("other subject", edits.other_subject, 3), ("other object", edits.other_object, 5),
    ("other verb", edits.other_verb, 4),
    ("antonym", edits.opposite, 3), ("other attribute", edits.opposite_attribute, 3), ("number", edits.number, 4),
    ("negation", edits.negate, 2), ("place", edits.place, 4), ("time", edits.time, 2), ("role swap", edits.roles, 2),
)
FORM = (("active and passive", edits.passive, 2), ("dative", edits.dative, 2), ("fronting", edits.front, 1))


def _on_main(item: Clause | Linked, made: tuple[str, Clause] | None) -> tuple[str, Clause | Linked] | None:
    if made is None:
        return None
    return made[0], made[1] if isinstance(item, Clause) else replace(item, main=made[1])


def mrpc(composer: Composer, label: int) -> Made:
    """A pair that says the same (1) or not (0).

    The second sentence is drawn before the label is looked at, and the same
    rewordings are applied under either label.
    """
    item: Clause | Linked = composer.clause(FRAMES, negation=0.15, numeral=0.25, place=0.4, opposed=0.3)
    if composer.chance(0.3):
        item = edits.passive(item, composer) or item
    if composer.chance(0.15):
        subject = composer.someone(numeral=0.0)
        other = composer.clause(("alone",), tenses=(item.tense,), place=0.0, time=0.0, subject=subject)
        link = composer.rng.choice(LINKS if item.tense == "past" else LINKS[:2])
        item = Linked(item, link, other, link not in ("and", "but") and composer.chance(0.4))
    first, changes = item, []

    def main() -> Clause:
        return first if isinstance(first, Clause) else first.main

    if label == 0:
        changes, made = several(MEANING, main(), composer, 2 if composer.chance(TWO_CHANGES) else 1)
        first = _on_main(first, ("", made))[1]
    if composer.chance(SYNONYMS) and (new := edits.synonyms(main(), composer)):
        changes.append("synonym")
        first = _on_main(first, ("", new))[1]
    if composer.chance(STRUCTURE[label]) or not changes:
        if isinstance(first, Linked) and first.link not in ("and", "but"):
            changes.append("clause order")
            first = replace(first, other_first=not first.other_first)
        elif made := _on_main(first, first_of(FORM, main(), composer)):
            changes.append(made[0])
            first = made[1]
    if not changes:
        return None
    return {"sentence1": [realise(first)], "sentence2": [realise(item)]}, label, ", ".join(changes)


# What each proposition weighs, and what a word of the same class is worth.
WEIGHTS = {"predicate": 3.0, "subject": 2.5, "object": 2.5, "recipient": 2.0, "place": 1.0, "time": 1.0, "number": 1.0}
SIBLING = 0.4


def _parts(clause: Clause) -> dict[str, Use | str]:
    """The propositions of a clause: who, did what, to whom or what, where, when, how many."""
    parts: dict[str, Use | str] = {"predicate": clause.predicate}
    for slot in ("subject", "object", "recipient"):
        phrase = getattr(clause, slot)
        if phrase is not None:
            parts[slot] = phrase.head
            if phrase.number == "pl" and phrase.det != "the":
                parts["number"] = phrase.det
    parts.update({item.role: item.phrase.head for item in clause.adverbials})
    return parts


def _alike(one: Use | str | None, two: Use | str | None) -> float:
    if one is None or two is None or isinstance(one, str) or isinstance(two, str):
        return float(one == two)
    a, b = one.entry, two.entry
    if set(a.lemmas) == set(b.lemmas):
        return 1.0
    return SIBLING if _class(a) == _class(b) and a.kind != "time" else 0.0


def _class(entry: Entry) -> str:
    return "name" if entry.kind in ("she", "he") else entry.kind


def similarity(one: Clause, two: Clause) -> float:
    """Shared propositions on the scale from 0 to 5, weighted by what they carry.

    Args:
        one: A clause.
        two: Another.

    Returns:
        5.0 for clauses that differ in wording only, 0.0 for nothing in common.
    """
    a, b = _parts(one), _parts(two)
    shared = total = 0.0
    for part, weight in WEIGHTS.items():
        if part in a or part in b:
            total += weight
            shared += weight * _alike(a.get(part), b.get(part))
    return round(5 * shared / total, 1)


STEPS = (
    ("subject", edits.other_subject, 3), ("object", edits.other_object, 3), ("verb", edits.other_verb, 3),
    ("place", edits.place, 2), ("time", edits.time, 1), ("number", edits.number, 1),
)


def stsb(composer: Composer, label: int) -> Made:
    """A pair with a graded similarity; ``label`` (0 to 5) picks how much is changed."""
    second = composer.clause(FRAMES, numeral=0.15, place=0.45, time=0.25)
    first, changes = second, []
    if label <= 1:
        hunt = second.predicate.entry.kind == "hunt"
        subject = second.subject if label and not hunt else None
        if subject and composer.chance(0.25) and (made := edits.other_subject(second, composer)):
            subject = made.subject
        frames = tuple(f for f in FRAMES if f not in ("hunt", second.predicate.entry.kind))
        other = composer.clause(frames, subject=subject, tenses=(second.tense,), place=0.45, time=0.25)
        if label and composer.chance(0.6):
            other = replace(other, adverbials=second.adverbials)
        first, changes = other, ["other event"]
    else:
        changes, first = several(STEPS, second, composer, 5 - label)
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
    fields = {"sentence1": [realise(first)], "sentence2": [realise(second)]}
    return fields, similarity(first, second), ", ".join(changes)
