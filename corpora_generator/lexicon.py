"""Entries of the lexicon, read from the tables of :mod:`.words`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from . import words

HELD_OUT_EVERY = 3


@dataclass(frozen=True)
class Entry:
    """One concept: the lemmas that name it and its links to other concepts.

    Args:
        lemmas: The interchangeable lemmas, the plainest first.
        pos: ``"NOUN"``, ``"PROPN"``, ``"VERB"`` or ``"ADJ"``.
        kind: The semantic class (nouns, adjectives) or frame (verbs).
        held_out: Whether training rows must do without it.
        hypernym: A lemma for the class above, or ``""``.
        opposites: The lemmas of the opposite concept.
        subjects: The kinds a verb's subject is drawn from.
        objects: The kinds a verb's object is drawn from.
    """

    lemmas: tuple[str, ...]
    pos: str
    kind: str
    held_out: bool = False
    hypernym: str = ""
    opposites: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()

    @property
    def base_kind(self) -> str:
        """The kind, for the word that names a whole class as well."""
        return self.kind.removeprefix("class of ")


@dataclass(frozen=True)
class Use:
    """An entry together with the lemma chosen to name it."""

    entry: Entry
    lemma: str


def parse(
    table: str, pos: str, kind: str, hypernym: str = "", subjects: str = "", objects: str = ""
) -> tuple[Entry, ...]:
    """Read one group of a table.

    Args:
        table: Entries in the notation that :mod:`.words` describes.
        pos: Part of speech of the group.
        kind: Semantic class or frame of the group.
        hypernym: What to use where an entry names no hypernym of its own.
        subjects: Blank-separated kinds, for verbs.
        objects: Blank-separated kinds, for verbs.

    Returns:
        The entries; the two sides of an opposition follow one another and are
        held out together.
    """
    entries = []
    for number, item in enumerate(table.split()):
        item, _, own = item.partition("<")
        poles = [tuple(pole.split("=")) for pole in item.split("!")]
        for side, pole in enumerate(poles):
            opposites = poles[1 - side] if len(poles) == 2 else ()
            held_out = number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
            entries.append(
                Entry(
                    pole,
                    pos,
                    kind,
                    held_out,
                    own or hypernym,
                    opposites,
                    tuple(subjects.split()),
                    tuple(objects.split()),
                )
            )
    return tuple(entries)


@cache
def nouns() -> dict[str, tuple[Entry, ...]]:
    """Common nouns by kind, names by pronoun (``"she"``, ``"he"``), and ``"city"``."""
    groups = {
        kind: parse(table, "NOUN", kind, hypernym)
        for kind, (hypernym, table) in words.NOUNS.items()
    }
    groups.update({kind: parse(table, "PROPN", kind) for kind, table in words.NAMES.items()})
    groups["city"] = parse(words.CITIES, "PROPN", "city")
    return groups


@cache
def verbs() -> dict[str, tuple[Entry, ...]]:
    """Verbs by frame: the transitive frames of the table and five others."""
    groups = {
        frame: parse(table, "VERB", frame, "", subjects, objects)
        for frame, (subjects, objects, table) in words.VERBS.items()
    }
    groups["alone"] = parse(words.INTRANSITIVE["person"], "VERB", "alone", "", words.PEOPLE)
    groups["alone mammal"] = parse(
        words.INTRANSITIVE["mammal"], "VERB", "alone mammal", "", "mammal"
    )
    groups["give"] = parse(
        words.DITRANSITIVE, "VERB", "give", "", words.PEOPLE, words.GOODS + " book"
    )
    groups["factive"] = parse(words.FACTIVE, "VERB", "factive", "", words.PEOPLE)
    groups["attitude"] = parse(words.ATTITUDE, "VERB", "attitude", "", words.PEOPLE)
    return groups


@cache
def adjectives() -> dict[str, tuple[Entry, ...]]:
    """Adjectives by what they describe."""
    return {kind: parse(table, "ADJ", kind) for kind, table in words.ADJECTIVES.items()}


@cache
def held_out_lemmas() -> frozenset[str]:
    """Every lemma that only validation rows may show (opinion words included)."""
    from . import opinions

    groups = [*nouns().values(), *verbs().values(), *adjectives().values()]
    shown, held = set(), set()
    for entry in (entry for group in groups for entry in group):
        (held if entry.held_out else shown).update(entry.lemmas)
        shown.update([entry.hypernym] if entry.hypernym else [])
    tables = [
        opinions.LIKE,
        opinions.DISLIKE,
        opinions.PLEASE,
        opinions.ANNOY,
        opinions.VIRTUES,
        opinions.VICES,
        *opinions.PRAISE.values(),
        *opinions.BLAME.values(),
        *(table for pair in opinions.DOMAINS.values() for table in pair),
    ]
    for table in tables:
        for entry in parse(table, "X", "opinion"):
            (held if entry.held_out else shown).update(entry.lemmas)
    clash = sorted(held & shown)
    # A lemma in two groups, held out in one of them only, would leak into training.
    return frozenset(lemma for lemma in held if lemma not in clash)


def usable(entry: Entry) -> bool:
    """Whether the entry's ``held_out`` flag agrees with all its lemmas' standing.

    A lemma that sits in two groups counts as held out only if both say so; an
    entry marked held out that contains such a lemma is left unused.
    """
    held = held_out_lemmas()
    return not entry.held_out or all(lemma in held for lemma in entry.lemmas)


def kinds(text: str) -> tuple[str, ...]:
    """Split a blank-separated list of kinds."""
    return tuple(text.split())
