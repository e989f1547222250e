"""Edits of a derivation: each takes a clause and gives another, or None.

None says that the edit does not apply.  Edits are undone by their like, so a
pair's first sentence can be made from its second with neither looking made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .anaphora import pronoun_for
from .clauses import Clause, Linked, replace
from .compose import Composer
from .lexicon import Use
from .realise import NUMERALS, OBJECT_FORMS, POSSESSIVES
from .words import SYMMETRIC

# Tenses in which what is said is so.
REAL = ("past", "perfect", "pluperfect", "will", "present")
# Determiners that bring in something new.
INDEFINITE = ("a", "many", *NUMERALS)
# How often the further clause that :func:`join` adds is a denial.
DENIED = 0.2

Edit = Callable[[Clause, Composer], Clause | None]
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
    found: list[tuple[Path, Use]] = [(("predicate",), clause.predicate)]
    phrases = [((slot,), getattr(clause, slot)) for slot in ("subject", "object", "recipient")]
    phrases += [(("adverbials", i, "phrase"), a.phrase) for i, a in enumerate(clause.adverbials)]
    for path, phrase in phrases:
        if phrase is not None and phrase.head is not None:
            found.append(((*path, "head"), phrase.head))
            found += [((*path, "adjectives", i), use) for i, use in enumerate(phrase.adjectives)]
    return found


def swap_word(
    clause: Clause,
    composer: Composer,
    change: Callable[[Use], Use | None],
    only: Callable[[Path], bool] = lambda path: True,
) -> Clause | None:
    """Replace one word, at a spot drawn from those where ``change`` applies."""
    options = [(path, new) for path, use in uses(clause) if only(path) and (new := change(use))]
    return put(clause, *composer.rng.choice(options)) if options else None


def synonyms(clause: Clause, composer: Composer) -> Clause | None:
    """Name every concept that has several lemmas by another of them."""
    changed = clause
    for path, use in uses(clause):
        new = composer.vocabulary.synonym(use)
        changed = put(changed, path, new) if new else changed
    return changed if changed != clause else None


def passive(clause: Clause, composer: Composer) -> Clause | None:
    """Turn active into passive and back."""
    # "Her car was sold by Anna" would put the pronoun before its antecedent.
    if (
        clause.object is None
        or clause.ask
        or clause.object.det in POSSESSIVES
        or clause.subject.relative
    ):
        return None
    if clause.subject.pronoun in OBJECT_FORMS or clause.subject.pronoun == "you":
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
    return (
        replace(clause, fronted=not clause.fronted)
        if clause.adverbials and not clause.opening
        else None
    )


def opposite(clause: Clause, composer: Composer) -> Clause | None:
    """Replace the predicate by its opposite."""
    return swap_word(
        clause, composer, composer.vocabulary.opposite, lambda path: path == ("predicate",)
    )


def opposite_attribute(clause: Clause, composer: Composer) -> Clause | None:
    """Replace an attribute by its opposite."""
    return swap_word(
        clause, composer, composer.vocabulary.opposite, lambda path: "adjectives" in path
    )


def negate(clause: Clause, composer: Composer) -> Clause | None:
    """Deny what is affirmed, affirm what is denied."""
    # Nobody is "never tall": a trait is just denied.
    words = (
        ("n't", "not") if clause.predicate.entry.pos == "ADJ" else ("n't", "n't", "not", "never")
    )
    indefinite = clause.object is not None and clause.object.det in INDEFINITE
    passive_ = clause.passive and (bool(clause.negation) or not indefinite)
    return replace(
        clause, negation="" if clause.negation else composer.rng.choice(words), passive=passive_
    )


def number(clause: Clause, composer: Composer) -> Clause | None:
    """Change a numeral."""
    spots = [
        slot
        for slot in ("subject", "object")
        if (np := getattr(clause, slot)) and np.det in NUMERALS
    ]
    if not spots:
        return None
    slot = composer.rng.choice(spots)
    old = getattr(clause, slot).det
    return put(clause, (slot, "det"), composer.rng.choice([n for n in NUMERALS if n != old]))


def roles(clause: Clause, composer: Composer) -> Clause | None:
    """Swap who did it with whom it was done to."""
    other = "recipient" if clause.recipient else "object"
    target = getattr(clause, other)
    if target is None or (
        other == "object" and clause.predicate.entry.kind not in ("person", "hunt")
    ):
        return None
    if clause.predicate.lemma in SYMMETRIC:
        return None
    if clause.passive and clause.negation and clause.subject.det in INDEFINITE:
        return None  # as for the passive
    return replace(clause, **{"subject": target, other: clause.subject})


def _sibling(where: str) -> Edit:
    def edit(clause: Clause, composer: Composer) -> Clause | None:
        return swap_word(
            clause, composer, composer.vocabulary.sibling, lambda path: path == (where, "head")
        )

    return edit


other_subject, other_object = _sibling("subject"), _sibling("object")


def other_verb(clause: Clause, composer: Composer) -> Clause | None:
    """Replace the verb by another that takes the same arguments."""
    return swap_word(
        clause, composer, composer.vocabulary.sibling, lambda path: path == ("predicate",)
    )


def _index(clause: Clause, role: str) -> int | None:
    return next((i for i, item in enumerate(clause.adverbials) if item.role == role), None)


def place(clause: Clause, composer: Composer) -> Clause | None:
    """Move the event to another place."""
    i = _index(clause, "place")
    if i is None:
        return None
    sibling = composer.vocabulary.sibling(clause.adverbials[i].phrase.head)
    return put(clause, ("adverbials", i), composer.at(sibling)) if sibling else None


def time(clause: Clause, composer: Composer) -> Clause | None:
    """Move the event to another time."""
    i = _index(clause, "time")
    if i is None:
        return None
    for _ in range(9):
        new = composer.time(clause.tense)
        if new and new != clause.adverbials[i]:
            return put(clause, ("adverbials", i), new)
    return None


def other_event(clause: Clause, composer: Composer) -> Clause | None:
    """Let the same subject do something else."""
    person = clause.predicate.entry.kind not in ("hunt",)
    frames = (
        ("goods", "goods", "person", "text", "dish", "animal", "building", "music")
        if person
        else ("hunt",)
    )
    frames = tuple(frame for frame in frames if frame != clause.predicate.entry.kind) or frames
    made = composer.clause(frames, subject=clause.subject, tenses=(clause.tense,))
    return replace(made, negation=clause.negation)


def join(
    clause: Clause, composer: Composer, links: Sequence[str] = ("and", "and", "but")
) -> Linked | None:
    """The clause together with something else that its subject does, said with a pronoun.

    Args:
        clause: The clause.
        composer: Source of words and chance.
        links: Conjunctions to draw from.
    """
    if (
        clause.subject.head is None
        or clause.subject.second
        or clause.subject.det in ("every", "no")
    ):
        return None
    if clause.complement or clause.passive:
        return None
    if clause.subject.head.entry.kind == "class of relative":
        return None  # of either sex
    mark = clause.subject.mark or clause.subject.head.lemma
    pronoun = replace(pronoun_for(clause.subject), refers=mark)
    if clause.object is not None and clause.object.refers == mark:
        pronoun = replace(pronoun, pronoun=POSSESSIVES[clause.object.det])
    link = composer.rng.choice(links)
    other = other_event(replace(clause, subject=pronoun, negation=""), composer)
    if other.object is not None and other.object.head.entry == clause.subject.head.entry:
        return None  # "Anna … and she warned Anna"
    # "Before she did not sing" is no point in time.
    if link in ("and", "but") and composer.chance(DENIED):
        other = replace(other, negation=composer.rng.choice(("n't", "n't", "not", "never")))
    other = replace(
        other, adverbials=other.adverbials[:1] if composer.chance(0.3) else (), opening=""
    )
    return Linked(replace(clause, subject=replace(clause.subject, mark=mark)), link, other)


def first_of(
    edits: Sequence[tuple[str, Edit, int]], clause: Clause, composer: Composer
) -> tuple[str, Clause] | None:
    """Apply one applicable edit, drawn with the given weights.

    Args:
        edits: Names, edits and integer weights.
        clause: What to edit.
        composer: Source of words and chance.

    Returns:
        The name and the edited clause, or None if no edit applies.
    """
    left = list(edits)
    while left:
        roll = composer.rng.randrange(sum(weight for _, _, weight in left))
        for chosen in left:
            roll -= chosen[2]
            if roll < 0:
                break
        made = chosen[1](clause, composer)
        if made is not None and made != clause:
            return chosen[0], made
        left.remove(chosen)
    return None


# Two of these together could undo each other ("loved", "did not hate").
ABOUT_THE_VERB = ("antonym", "negation", "other verb", "verb")


def several(
    edits: Sequence[tuple[str, Edit, int]], clause: Clause, composer: Composer, count: int
) -> tuple[list[str], Clause]:
    """Apply up to ``count`` different edits, none of which can undo another.

    Args:
        edits: As for :func:`first_of`.
        clause: What to edit.
        composer: Source of words and chance.
        count: How many edits to apply, if so many apply.

    Returns:
        The names of the edits applied and the edited clause.
    """
    names: list[str] = []
    for _ in range(count):
        made = first_of(edits, clause, composer) if edits else None
        if made is None:
            break
        names.append(made[0])
        clause = made[1]
        used = ABOUT_THE_VERB if made[0] in ABOUT_THE_VERB else made[:1]
        edits = [edit for edit in edits if edit[0] not in used]
    return names, clause
