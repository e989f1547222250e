"""The task on opinions: sst2."""

from __future__ import annotations

from .clauses import NP, Adverbial, Clause, Linked, replace
from .compose import Composer
from .lexicon import ADJECTIVES, NOUNS, VERBS, Entry, Use
from .rows import Made
from .words import UNCOUNTED

# label -> patterns with weights; people say "not good" far more often than "not bad"
PATTERNS = {
    0: (("plain", 8), ("agreement", 6), ("denied", 10), ("contrast", 5)),
    1: (("plain", 10), ("agreement", 8), ("denied", 4), ("contrast", 5)),
}
# How often a word of opinion in a dev row is one that training never showed.
NEW_WORDS = 0.6
# How often an opinion opens with an adverb that says nothing for or against.
OPENING = 0.25
OPENINGS = ("overall", "frankly", "honestly", "generally")
DOMAINS = ("film", "book", "meal", "hotel", "concert", "phone")
NEGATIONS = ("n't", "n't", "never", "hardly")
HAVE = Use(Entry(("have",), "VERB", "have"), "have")
LACK = Use(Entry(("lack",), "VERB", "lack"), "lack")


class Critic:
    """Draws opinions about one thing, of a domain that is drawn first."""

    def __init__(self, composer: Composer):
        self.composer, self.rng = composer, composer.rng
        self.domain = self.rng.choice(DOMAINS)
        self.thing = NP(composer.noun((f"{self.domain}-thing",)))
        self.part, self.other_part = self._part(), self._part()
        while self.other_part == self.part:
            self.other_part = self._part()

    def _part(self) -> NP:
        return NP(self.composer.noun((f"{self.domain}-part",)))

    def word(self, table: dict[str, tuple[Entry, ...]], kind: str) -> Use:
        """A word of opinion."""
        entries = table[kind]
        if self.composer.dev:
            new = self.composer.chance(NEW_WORDS)
            entries = tuple(entry for entry in entries if entry.held_out == new)
        return self.composer.use(self.composer.draw(entries))

    def adjective(self, good: bool) -> Use:
        """An adjective of praise or blame that suits the domain."""
        kind = "good" if good else "bad"
        return self.word(ADJECTIVES, kind if self.composer.chance(0.4) else f"{kind}-{self.domain}")

    def quality(self, good: bool, det: str) -> NP:
        """A virtue or a vice as an object."""
        head = self.word(NOUNS, "virtue" if good else "vice")
        return NP(head, "sg" if good else "pl", det)

    def topic(self, part: bool | None = None) -> NP:
        """The thing itself or a part of it; ``part`` says which, if it matters."""
        if part is None:
            part = self.composer.chance(0.6)
        if not part:
            return replace(self.thing, det=self.rng.choice(("the", "this")))
        if self.composer.chance(0.2):
            return replace(self.part, modifier=Adverbial("of", "of", self.thing))
        return self.part

    def tense(self) -> str:
        """Performances are over; things are as they are."""
        past = self.domain in ("film", "concert", "meal")
        return "past" if past else self.rng.choice(("past", "present"))

    def speaker(self) -> NP:
        """Who holds the opinion."""
        return self.rng.choice((NP(pronoun="I"), NP(pronoun="we"), self.composer.name()))

    def liking(self, good: bool, part: bool | None = None) -> Clause:
        """Somebody likes or dislikes the topic."""
        verb = self.word(VERBS, "like" if good else "dislike")
        return Clause(verb, self.speaker(), self.topic(part), tense=self.tense())

    def pleasing(self, good: bool, part: bool | None, anybody: str) -> Clause:
        """The topic pleases or annoys somebody."""
        verb, topic = self.word(VERBS, "please" if good else "annoy"), self.topic(part)
        whom = NP(pronoun=self.rng.choice(("I", "we", anybody)))
        return Clause(verb, topic, whom, tense=self.tense())

    def plain(self, good: bool, part: bool | None = None) -> Clause:
        """An opinion without negation, of the thing or of a part of it."""
        roll = self.rng.randrange(7)
        if roll < 4:
            predicate, also = self.adjective(good), self.adjective(good)
            if also.entry == predicate.entry or not self.composer.chance(0.2):
                also = None
            degree = "" if also else self.rng.choice(("", "", "really", "quite", "truly"))
            return Clause(predicate, self.topic(part), tense=self.tense(), degree=degree, also=also)
        if roll == 4:
            return self.liking(good, part)
        if roll == 5 or part is False:
            return self.pleasing(good, part, "everyone")
        det = "" if self.part.head.lemma in UNCOUNTED else "a"
        owned = replace(self.part, det=det, adjectives=(self.adjective(good),))
        return Clause(HAVE, self.thing, owned, tense=self.tense())

    def denied(self, good: bool) -> Clause:
        """An opinion that a negation reverses: its words alone say the opposite."""
        roll = self.rng.randrange(11)
        word = self.adjective(not good)
        if roll < 3:
            negation = self.rng.choice(("not", "n't", "n't", "hardly", "nowhere near"))
            return Clause(word, self.topic(), tense=self.tense(), negation=negation)
        if roll == 3:
            other = self.adjective(not good)
            said = Clause(word, self.topic(), tense=self.tense())
            if other.entry == word.entry:
                return replace(said, negation="not")
            return replace(said, also=other, conjunctions=("neither", "nor"))
        if roll == 4:
            nothing = NP(pronoun="nothing", modifier=Adverbial("about", "about", self.thing))
            return Clause(word, nothing, tense=self.tense())
        if roll == 5:
            return replace(self.liking(not good), negation=self.rng.choice(NEGATIONS))
        if roll == 6:
            said = self.pleasing(not good, None, "anyone")
            return replace(said, negation=self.rng.choice(NEGATIONS))
        if roll == 7:
            return Clause(LACK, self.thing, self.quality(not good, "any"), tense=self.tense())
        if roll == 8:
            neither = replace(self.part, second=self.other_part, conjunctions=("neither", "nor"))
            return Clause(word, neither, tense=self.tense())
        if roll == 9 and self.part.head.lemma not in UNCOUNTED:
            parts = Adverbial("of", "of", replace(self.part, number="pl"))
            return Clause(word, NP(pronoun="none", number="pl", modifier=parts), tense=self.tense())
        return Clause(HAVE, self.thing, self.quality(not good, "no"), tense=self.tense())

    def agreement(self, good: bool) -> Linked:
        """Two opinions of one tenor, the second of them with a pronoun."""
        thing = replace(self.thing, det=self.rng.choice(("the", "this", "that")), mark="thing")
        it, tense = NP(pronoun="it", refers="thing"), self.tense()
        predicate, degree = self.adjective(good), self.rng.choice(("", "", "really", "quite"))
        first = Clause(predicate, thing, tense=tense, degree=degree)
        roll = self.rng.randrange(4)
        adjective = self.adjective(good)
        if roll == 0 and adjective.entry != predicate.entry:
            second = Clause(adjective, it, tense=tense)
        elif roll == 1:
            verb = self.word(VERBS, "please" if good else "annoy")
            second = Clause(verb, it, self.speaker(), tense=tense)
        else:
            verb = self.word(VERBS, "like" if good else "dislike")
            second = Clause(verb, self.speaker(), it, tense=tense)
        return Linked(first, "and", second)

    def contrast(self, good: bool) -> Linked:
        """Two opposite opinions, of which the main clause's decides."""
        # The two opinions concern different things, or else the sentence contradicts itself.
        about_part = self.composer.chance(0.5)
        main, other = self.plain(good, about_part), self.plain(not good, True)
        if about_part:
            main = self._of_other_part(main)
        other = replace(other, tense=main.tense)
        link = self.rng.choice(("although", "although", "but"))
        if link == "but":
            return Linked(other, "but", main)
        return Linked(main, link, other, self.composer.chance(0.6))

    def _of_other_part(self, clause: Clause) -> Clause:
        slot = "subject" if clause.subject.head == self.part.head else "object"
        phrase, head = getattr(clause, slot), self.other_part.head
        det = phrase.det
        if clause.predicate is HAVE:
            det = "" if head.lemma in UNCOUNTED else "a"
        return replace(clause, **{slot: replace(phrase, head=head, det=det)})


def sst2(composer: Composer, label: int) -> Made:
    """One opinion: negative (0) or positive (1)."""
    critic = Critic(composer)
    patterns = [name for name, weight in PATTERNS[label] for _ in range(weight)]
    said = getattr(critic, composer.rng.choice(patterns))(bool(label))
    if isinstance(said, Clause) and composer.chance(OPENING):
        said = replace(said, opening=composer.rng.choice(OPENINGS))
    return (said,), label, ""
