"""The entries of the lexicon, and how they are drawn for one split."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from . import words

# In dev rows, the share of draws that take a held-out entry where there is one.
HELD_OUT_SHARE = 0.85


@dataclass(frozen=True)
class Entry:
    """One concept: the lemmas that name it, and its links to other concepts.

    Args:
        lemmas: The interchangeable lemmas, the plainest first.
        pos: ``"NOUN"``, ``"PROPN"``, ``"VERB"`` or ``"ADJ"``.
        kind: The group of its table: a semantic class, or a verb's frame.
        held_out: Whether only dev rows may use it.
        hypernym: A lemma of the class above, or ``""``.
        opposites: The lemmas of the opposite concept.
    """

    lemmas: tuple[str, ...]
    pos: str
    kind: str
    held_out: bool = False
    hypernym: str = ""
    opposites: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """An entry with the lemma that was chosen to name it."""

    entry: Entry
    lemma: str


def groups(table: str) -> dict[str, tuple[str, ...]]:
    """The entries of a table of :mod:`.words`, by group."""
    entries: dict[str, tuple[str, ...]] = {}
    for word in table.split():
        if word.endswith(":"):
            kind = word[:-1]
            entries[kind] = ()
        else:
            entries[kind] += (word,)
    return entries


def _read(table: str, pos: str) -> dict[str, tuple[Entry, ...]]:
    read: dict[str, list[Entry]] = {}
    for kind, items in groups(table).items():
        read[kind] = []
        for number, item in enumerate(items):
            item, _, hypernym = item.partition("<")
            first, *second = [tuple(pole.split("=")) for pole in item.split("!")]
            entry = Entry(first, pos, kind, number % 3 == 2, hypernym, *second)
            read[kind].append(entry)
            if second:
                read[kind].append(replace(entry, lemmas=second[0], opposites=first))
    return {kind: tuple(entries) for kind, entries in read.items()}


_TABLES = [
    {**_read(words.NOUNS, "NOUN"), **_read(words.NAMES, "PROPN")},
    _read(words.VERBS, "VERB"),
    _read(words.ADJECTIVES, "ADJ"),
]
_ENTRIES = [entry for table in _TABLES for entries in table.values() for entry in entries]
# A lemma of two groups that is held out in only one of them would leak into the training rows.
HELD_OUT = frozenset(lemma for entry in _ENTRIES if entry.held_out for lemma in entry.lemmas) - {
    lemma for entry in _ENTRIES if not entry.held_out for lemma in (*entry.lemmas, entry.hypernym)
}
# By kind, without the entries that such a lemma makes unusable.
NOUNS, VERBS, ADJECTIVES = (
    {
        kind: tuple(e for e in entries if not e.held_out or HELD_OUT.issuperset(e.lemmas))
        for kind, entries in table.items()
    }
    for table in _TABLES
)
OBJECTS, DESCRIBED = groups(words.OBJECTS), groups(words.DESCRIBED)
PERSON = OBJECTS["person"]


class Vocabulary:
    """Draws entries and lemmas for one split.

    Args:
        rng: The source of chance.
        dev: Whether held-out entries may be drawn. If so they are preferred, since what is
            measured is the transfer to words that training never showed.
    """

    def __init__(self, rng: random.Random, dev: bool):
        self.rng, self.dev = rng, dev

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.rng.random() < probability

    def draw(self, entries: Iterable[Entry]) -> Entry | None:
        """One of the entries that the split allows, or None if there is none."""
        allowed = [e for e in entries if self.dev or not e.held_out]
        if self.dev and allowed:
            wanted = self.chance(HELD_OUT_SHARE)
            allowed = [e for e in allowed if e.held_out == wanted] or allowed
        return self.rng.choice(allowed) if allowed else None

    def use(self, entry: Entry) -> Use:
        """The entry under one of its lemmas."""
        return Use(entry, self.rng.choice(entry.lemmas))

    def noun(self, kinds: Iterable[str]) -> Use:
        """A noun of one of the kinds; all entries are equally likely."""
        return self.use(self.draw([e for kind in kinds for e in NOUNS[kind]]))

    def adjective(self, kind: str) -> Use:
        """An adjective of that group."""
        return self.use(self.draw(ADJECTIVES[kind]))

    def verb(self, frames: tuple[str, ...], opposed: bool = False) -> Use:
        """A verb of one of the frames; the frame is drawn first.

        Args:
            frames: The frames to draw from, repeated for weight.
            opposed: Whether to prefer verbs that have an opposite.
        """
        entries = VERBS[self.rng.choice(frames)]
        with_opposite = [e for e in entries if e.opposites] if opposed else []
        return self.use(self.draw(with_opposite) or self.draw(entries))

    def sibling(self, use: Use) -> Use | None:
        """Another word of the same group, which neither implies nor excludes this one."""
        old = use.entry
        table = {"VERB": VERBS, "ADJ": ADJECTIVES}.get(old.pos, NOUNS)
        close = {*old.lemmas, *old.opposites, old.hypernym} - {""}
        others = [e for e in table[old.kind] if not close & {*e.lemmas, *e.opposites}]
        entry = self.draw([e for e in others if e.hypernym not in old.lemmas])
        return entry and self.use(entry)

    def synonym(self, use: Use) -> Use | None:
        """The same entry under another lemma, or None if it has only one."""
        others = [lemma for lemma in use.entry.lemmas if lemma != use.lemma]
        return Use(use.entry, self.rng.choice(others)) if others else None

    def opposite(self, use: Use) -> Use | None:
        """The opposite entry, or None if there is none."""
        old = use.entry
        if not old.opposites:
            return None
        return self.use(replace(old, lemmas=old.opposites, opposites=old.lemmas, hypernym=""))
