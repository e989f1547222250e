"""Edits of a derivation: each takes a clause and gives another, or None if it does not apply.

Edits are undone by their like, so a pair's first sentence can be made from its second without
either looking made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .clauses import NUMERALS, OBJECT_FORMS, POSSESSIVES, Clause, replace
from .compose import Composer
from .lexicon import Use
from .words import SYMMETRIC

# Determiners that bring in something new.
INDEFINITE = ("a", "many", *NUMERALS)
# Two of these together could undo each other ("loved", "did not hate").
ABOUT_THE_VERB = ("antonym", "negation", "other verb", "verb")

Edit = Callable[[Clause, Composer], Clause | None]
# A name, an edit, and its weight when one of several is drawn.
Weighted = tuple[str, Edit, int]
Path = tuple[str | int, ...]


def put(node, path: Path, value):
    """A copy of a derivation with the part at ``path`` replaced."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return (*node[:step], put(node[step], rest, value), *node[step + 1 :])
    return replace(node, **{step: put(getattr(node, step), rest, value)})


def uses(clause: Clause) -> list[tuple[Path, Use]]:
    """Every open-class word of a clause's own arguments, with its path."""
    listed: list[tuple[Path, Use]] = [(("predicate",), clause.predicate)]
    phrases = [((slot,), getattr(clause, slot)) for slot in ("subject", "object", "recipient")]
    phrases += [(("adverbials", i, "phrase"), a.phrase) for i, a in enumerate(clause.adverbials)]
    for path, phrase in phrases:
        if phrase is not None and phrase.head is not None:
            listed.append(((*path, "head"), phrase.head))
            listed += [((*path, "adjectives", i), use) for i, use in enumerate(phrase.adjectives)]
    return listed


def _swap(change: Callable[[Composer, Use], Use | None], *where: str) -> Edit:
    """The edit that changes one of the words whose path has all these steps."""

    def edit(clause: Clause, composer: Composer) -> Clause | None:
        spots = [(path, use) for path, use in uses(clause) if {*where} <= {*path}]
        options = [(path, new) for path, use in spots if (new := change(composer, use))]
        return put(clause, *composer.rng.choice(options)) if options else None

    return edit


opposite = _swap(Composer.opposite, "predicate")
opposite_attribute = _swap(Composer.opposite, "adjectives")
other_verb = _swap(Composer.sibling, "predicate")
other_subject = _swap(Composer.sibling, "subject", "head")
other_object = _swap(Composer.sibling, "object", "head")


def synonyms(clause: Clause, composer: Composer) -> Clause | None:
    """Name every concept that has several lemmas by another of them."""
    changed = clause
    for path, use in uses(clause):
        if new := composer.synonym(use):
            changed = put(changed, path, new)
    return changed if changed != clause else None


def passive(clause: Clause, composer: Composer) -> Clause | None:
    """Turn active into passive and back."""
    pronoun = clause.subject.pronoun in (*OBJECT_FORMS, "you")
    if clause.object is None or pronoun or clause.subject.relative:
        return None
    # "Her car was sold by Anna" would put the pronoun before its antecedent.
    if clause.object.det in POSSESSIVES.values():
        return None
    # "A meal was not prepared" denies it of one meal only.
    if clause.negation and clause.object.det in INDEFINITE:
        return None
    return replace(clause, passive=not clause.passive)


def dative(clause: Clause, composer: Composer) -> Clause | None:
    """Turn "gave her a ring" into "gave a ring to her" and back."""
    if clause.recipient is None or clause.passive:
        return None
    return replace(clause, shifted=not clause.shifted)


def front(clause: Clause, composer: Composer) -> Clause | None:
    """Move the last adverbial to the front and back."""
    if not clause.adverbials or clause.opening:
        return None
    return replace(clause, fronted=not clause.fronted)


def negate(clause: Clause, composer: Composer) -> Clause:
    """Deny what is affirmed, affirm what is denied."""
    if clause.negation:
        return replace(clause, negation="")
    new = clause.object is not None and clause.object.det in INDEFINITE
    negation = composer.rng.choice(("n't", "n't", "not", "never"))
    return replace(clause, negation=negation, passive=clause.passive and not new)


def number(clause: Clause, composer: Composer) -> Clause | None:
    """Change a numeral."""
    phrases = [(slot, getattr(clause, slot)) for slot in ("subject", "object")]
    spots = [(slot, phrase.det) for slot, phrase in phrases if phrase and phrase.det in NUMERALS]
    if not spots:
        return None
    slot, old = composer.rng.choice(spots)
    return put(clause, (slot, "det"), composer.rng.choice([n for n in NUMERALS if n != old]))


def roles(clause: Clause, composer: Composer) -> Clause | None:
    """Swap who did it with whom it was done to."""
    other = "recipient" if clause.recipient else "object"
    frame, lemma = clause.predicate.entry.kind, clause.predicate.lemma
    if frame not in ("person", "hunt", "give") or lemma in SYMMETRIC:
        return None
    if clause.passive and clause.negation and clause.subject.det in INDEFINITE:
        return None  # as for the passive
    return replace(clause, **{"subject": getattr(clause, other), other: clause.subject})


def place(clause: Clause, composer: Composer) -> Clause | None:
    """Move the event to another place."""
    for i, item in enumerate(clause.adverbials):
        if item.role == "place" and (other := composer.sibling(item.phrase.head)):
            return put(clause, ("adverbials", i), composer.at(other))
    return None


def time(clause: Clause, composer: Composer) -> Clause | None:
    """Move the event to another time."""
    for i, item in enumerate(clause.adverbials):
        if item.role == "time":
            new = item
            while new == item:
                new = composer.time(clause.tense)
            return put(clause, ("adverbials", i), new)
    return None


def first_of(
    edits: Sequence[Weighted], clause: Clause, composer: Composer
) -> tuple[str, Clause] | None:
    """The name and the outcome of one edit that applies, drawn by weight; None if none applies."""
    left = list(edits)
    while left:
        chosen = composer.rng.choice([item for item in left for _ in range(item[2])])
        name, edit, _ = chosen
        made = edit(clause, composer)
        if made is not None and made != clause:
            return name, made
        left.remove(chosen)
    return None


def several(
    edits: Sequence[Weighted], clause: Clause, composer: Composer, count: int
) -> tuple[list[str], Clause]:
    """Apply up to ``count`` different edits, none of which can undo another.

    Returns:
        The names of the edits applied, and the edited clause.
    """
    names: list[str] = []
    while len(names) < count and (made := first_of(edits, clause, composer)):
        name, clause = made
        names.append(name)
        used = ABOUT_THE_VERB if name in ABOUT_THE_VERB else (name,)
        edits = [edit for edit in edits if edit[0] not in used]
    return names, clause
