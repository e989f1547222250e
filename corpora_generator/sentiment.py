"""The task on opinions: sst2."""

from __future__ import annotations

from functools import cache

from . import opinions
from .clauses import NP, Adverbial, Clause, Linked, replace
from .compose import Composer
from .lexicon import Entry, Use, parse
from .realise import realise
from .split import Made

# label -> patterns with weights; people say "not good" far more often than "not bad"
PATTERNS = {
    0: (("plain", 8), ("agreement", 6), ("denied", 10), ("contrast", 5)),
    1: (("plain", 10), ("agreement", 8), ("denied", 4), ("contrast", 5)),
}
# How often a word of opinion in a validation row is one that training never showed.
NEW_WORDS = 0.6
# How often an opinion opens with an adverb that says nothing for or against.
OPENING = 0.25
OPENINGS = ("overall", "frankly", "honestly", "generally")
DOMAINS = tuple(opinions.DOMAINS)
OVER = ("film", "concert", "meal")
HAVE = Use(Entry(("have",), "VERB", "have"), "have")
LACK = Use(Entry(("lack",), "VERB", "lack"), "lack")


@cache
def _entries(table: str, pos: str) -> tuple[Entry, ...]:
    return parse(table, pos, "opinion")


class Critic:
    """Draws opinions about one thing.

    Args:
        composer: Source of words and chance.
        domain: A key of :data:`.opinions.DOMAINS`.
    """

    def __init__(self, composer: Composer, domain: str):
        self.composer, self.domain = composer, domain
        things, parts = opinions.DOMAINS[domain]
        self.thing = self._noun(things)
        self.part, self.other_part = self._noun(parts), self._noun(parts)
        while self.other_part == self.part:
            self.other_part = self._noun(parts)

    def _word(self, table: str, pos: str) -> Use:
        vocabulary = self.composer.vocabulary
        entries = _entries(table, pos)
        if vocabulary.validation:
            new = self.composer.chance(NEW_WORDS)
            entries = tuple(e for e in entries if e.held_out == new)
        return vocabulary.use(vocabulary.draw(entries))

    def _noun(self, table: str) -> NP:
        vocabulary = self.composer.vocabulary
        return NP(vocabulary.use(vocabulary.draw(_entries(table, "NOUN"))))

    def adjective(self, good: bool) -> Use:
        """An adjective of praise or blame that suits the domain."""
        tables = opinions.PRAISE if good else opinions.BLAME
        return self._word(tables["any" if self.composer.chance(0.4) else self.domain], "ADJ")

    def topic(self, part: bool | None = None) -> NP:
        """The thing itself or a part of it; ``part`` says which, if it matters."""
        if part is None:
            part = self.composer.chance(0.6)
        if not part:
            return replace(self.thing, det=self.composer.rng.choice(("the", "this")))
        if self.composer.chance(0.2):
            return replace(self.part, modifier=Adverbial("of", "of", self.thing))
        return self.part

    def plain(self, good: bool, part: bool | None = None) -> Clause:
        """An opinion without negation, of the thing or of a part of it."""
        composer, rng = self.composer, self.composer.rng
        roll = rng.randrange(7)
        if roll < 4:
            predicate, also = self.adjective(good), self.adjective(good)
            if also.entry == predicate.entry or not composer.chance(0.2):
                also = None
            degree = "" if also else rng.choice(("", "", "really", "quite", "truly"))
            return Clause(predicate, self.topic(part), tense=self.tense(), degree=degree, also=also)
        if roll == 4:
            verb = self._word(opinions.LIKE if good else opinions.DISLIKE, "VERB")
            return Clause(verb, self.speaker(), self.topic(part), tense=self.tense())
        if roll == 5 or part is False:
            verb = self._word(opinions.PLEASE if good else opinions.ANNOY, "VERB")
            return Clause(
                verb,
                self.topic(part),
                NP(pronoun=rng.choice(("I", "we", "everyone"))),
                tense=self.tense(),
            )
        det = "" if self.part.head.lemma in opinions.UNCOUNTED else "a"
        owned = replace(self.part, det=det, adjectives=(self.adjective(good),))
        return Clause(HAVE, self.thing, owned, tense=self.tense())

    def tense(self) -> str:
        """Performances are over; things are as they are."""
        return "past" if self.domain in OVER else self.composer.rng.choice(("past", "present"))

    def speaker(self) -> NP:
        """Who holds the opinion."""
        return self.composer.rng.choice((NP(pronoun="I"), NP(pronoun="we"), self.composer.name()))

    def denied(self, good: bool) -> Clause:
        """An opinion that a negation turns round: its words alone say the opposite."""
        rng = self.composer.rng
        roll = rng.randrange(11)
        word = self.adjective(not good)
        if roll < 3:
            negation = rng.choice(("not", "n't", "n't", "hardly", "nowhere near"))
            return Clause(word, self.topic(), tense=self.tense(), negation=negation)
        if roll == 3:
            other = self.adjective(not good)
            if other.entry == word.entry:
                return Clause(word, self.topic(), tense=self.tense(), negation="not")
            return Clause(
                word, self.topic(), tense=self.tense(), also=other, conjunctions=("neither", "nor")
            )
        if roll == 4:
            nothing = NP(pronoun="nothing", modifier=Adverbial("about", "about", self.thing))
            return Clause(word, nothing, tense=self.tense())
        if roll == 5:
            verb = self._word(opinions.DISLIKE if good else opinions.LIKE, "VERB")
            return Clause(
                verb,
                self.speaker(),
                self.topic(),
                tense=self.tense(),
                negation=rng.choice(("n't", "n't", "never", "hardly")),
            )
        if roll == 6:
            verb = self._word(opinions.ANNOY if good else opinions.PLEASE, "VERB")
            return Clause(
                verb,
                self.topic(),
                NP(pronoun=rng.choice(("I", "we", "anyone"))),
                tense=self.tense(),
                negation=rng.choice(("n't", "n't", "never", "hardly")),
            )
        if roll == 7:
            return Clause(LACK, self.thing, self.quality(not good, "any"), tense=self.tense())
        if roll == 8:
            neither = replace(self.part, second=self.other_part, conjunctions=("neither", "nor"))
            return Clause(word, neither, tense=self.tense())
        if roll == 9 and self.part.head.lemma not in opinions.UNCOUNTED:
            parts = Adverbial("of", "of", replace(self.part, number="pl"))
            return Clause(word, NP(pronoun="none", number="pl", modifier=parts), tense=self.tense())
        return Clause(HAVE, self.thing, self.quality(not good, "no"), tense=self.tense())

    def quality(self, good: bool, det: str) -> NP:
        """A virtue or a vice as an object."""
        head = self._word(opinions.VIRTUES if good else opinions.VICES, "NOUN")
        return NP(head, "sg" if good else "pl", det)

    def agreement(self, good: bool) -> Linked:
        """Two opinions of one tenor, the second of them with a pronoun."""
        rng = self.composer.rng
        thing = replace(self.thing, det=rng.choice(("the", "this", "that")), mark="thing")
        it = NP(pronoun="it", refers="thing")
        tense = self.tense()
        first = Clause(
            self.adjective(good), thing, tense=tense, degree=rng.choice(("", "", "really", "quite"))
        )
        roll = rng.randrange(4)
        adjective = self.adjective(good)
        if roll == 0 and adjective.entry != first.predicate.entry:
            second = Clause(adjective, it, tense=tense)
        elif roll == 1:
            second = Clause(
                self._word(opinions.PLEASE if good else opinions.ANNOY, "VERB"),
                it,
                self.speaker(),
                tense=tense,
            )
        else:
            second = Clause(
                self._word(opinions.LIKE if good else opinions.DISLIKE, "VERB"),
                self.speaker(),
                it,
                tense=tense,
            )
        return Linked(first, "and", second)

    def contrast(self, good: bool) -> Linked:
        """Two opposite opinions, of which the main clause's decides."""
        composer = self.composer
        # The two opinions concern different things, else the sentence contradicts itself.
        about_part = composer.chance(0.5)
        main, other = self.plain(good, about_part), self.plain(not good, True)
        if about_part:
            main = _on(main, self.part, self.other_part)
        other = replace(other, tense=main.tense)
        link = composer.rng.choice(("although", "although", "but"))
        if link == "but":
            return Linked(other, "but", main)
        return Linked(main, link, other, composer.chance(0.6))


def _on(clause: Clause, part: NP, other: NP) -> Clause:
    """The clause with another part in the place of the one it speaks of."""
    for slot in ("subject", "object"):
        phrase = getattr(clause, slot)
        if phrase is not None and phrase.head == part.head:
            det = phrase.det
            if clause.predicate is HAVE:
                det = "" if other.head.lemma in opinions.UNCOUNTED else "a"
            return replace(clause, **{slot: replace(phrase, head=other.head, det=det)})
    return clause


def sst2(composer: Composer, label: int) -> Made:
    """One opinion sentence: negative (0) or positive (1)."""
    critic = Critic(composer, composer.rng.choice(DOMAINS))
    pattern = composer.rng.choice([name for name, weight in PATTERNS[label] for _ in range(weight)])
    said = getattr(critic, pattern)(bool(label))
    if isinstance(said, Clause) and composer.chance(OPENING):
        said = replace(said, opening=composer.rng.choice(OPENINGS))
    return {"sentence": [realise(said)]}, label, ""
