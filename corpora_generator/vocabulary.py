"""Drawing words for one split: training never sees what is held out."""

from __future__ import annotations

import random
from collections.abc import Iterable

from . import lexicon
from .lexicon import Entry, Use

HELD_OUT_SHARE = 0.85


class Vocabulary:
    """Draws entries and lemmas.

    Args:
        rng: Source of chance.
        validation: Whether held-out entries may be drawn; if so they are
            preferred, since what is measured is transfer to unseen words.
    """

    def __init__(self, rng: random.Random, validation: bool):
        self.rng = rng
        self.validation = validation

    def draw(self, entries: Iterable[Entry], other_than: Entry | None = None) -> Entry | None:
        """One entry allowed in this split, or None if there is none.

        Args:
            entries: What to draw from.
            other_than: An entry to avoid, together with its opposites and with what is a
                kind of it or what it is a kind of.
        """
        allowed = [e for e in entries if lexicon.usable(e) and (self.validation or not e.held_out)]
        if other_than is not None:
            close = {*other_than.lemmas, *other_than.opposites, other_than.hypernym} - {""}
            allowed = [
                e
                for e in allowed
                if not close & {*e.lemmas, *e.opposites} and e.hypernym not in other_than.lemmas
            ]
        if not allowed:
            return None
        if self.validation:
            held = [e for e in allowed if e.held_out]
            shown = [e for e in allowed if not e.held_out]
            wanted = held if self.rng.random() < HELD_OUT_SHARE else shown
            allowed = wanted or allowed
        return self.rng.choice(allowed)

    def use(self, entry: Entry) -> Use:
        """The entry under a lemma drawn from its synonyms."""
        return Use(entry, self.rng.choice(entry.lemmas))

    def noun(self, kinds: tuple[str, ...]) -> Use:
        """A noun of one of the kinds, every entry being equally likely."""
        groups = lexicon.nouns()
        return self.use(self.draw([e for kind in kinds for e in groups[kind]]))

    def adjective(self, kind: str) -> Use:
        """An adjective said of a kind of thing."""
        return self.use(self.draw(lexicon.adjectives()[kind]))

    def verb(self, frames: tuple[str, ...], opposed: bool = False) -> Use:
        """A verb of one of the frames, the frame being drawn first.

        Args:
            frames: Frames to draw from, repeated for weight.
            opposed: Prefer verbs that have an opposite.
        """
        entries = lexicon.verbs()[self.rng.choice(frames)]
        with_opposite = [e for e in entries if e.opposites] if opposed else []
        return self.use(self.draw(with_opposite) or self.draw(entries))

    def sibling(self, use: Use) -> Use | None:
        """Another word of the same class, neither a synonym nor the opposite."""
        groups = {"VERB": lexicon.verbs, "ADJ": lexicon.adjectives}.get(
            use.entry.pos, lexicon.nouns
        )()
        if use.entry.kind not in groups:
            return None
        entry = self.draw(groups[use.entry.kind], use.entry)
        return None if entry is None else self.use(entry)

    def synonym(self, use: Use) -> Use | None:
        """The same entry under another lemma, or None if it has just one."""
        others = [lemma for lemma in use.entry.lemmas if lemma != use.lemma]
        return Use(use.entry, self.rng.choice(others)) if others else None

    def opposite(self, use: Use) -> Use | None:
        """The opposite entry, or None if the entry has none."""
        if not use.entry.opposites:
            return None
        entry = Entry(
            use.entry.opposites,
            use.entry.pos,
            use.entry.kind,
            use.entry.held_out,
            "",
            use.entry.lemmas,
            use.entry.subjects,
            use.entry.objects,
        )
        return self.use(entry)

    def hypernym(self, use: Use) -> Use | None:
        """The class above as a word of its own, or None if it has none."""
        if not use.entry.hypernym:
            return None
        # A verb's class above keeps the frame, so that its arguments stay valid.
        entry = Entry(
            (use.entry.hypernym,),
            use.entry.pos,
            "class of " + use.entry.kind,
            False,
            "",
            (),
            use.entry.subjects,
            use.entry.objects,
        )
        return Use(entry, use.entry.hypernym)
