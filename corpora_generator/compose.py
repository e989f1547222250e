"""Random clauses from the lexicon: who does what to whom, where and when."""

from __future__ import annotations

from .clauses import GAP, NP, NUMERALS, POSSESSIVES, Adverbial, Clause, replace, third_person
from .lexicon import DESCRIBED, OBJECTS, PERSON, Entry, Use, Vocabulary

TRANSITIVE = (
    *("goods", "goods", "person", "person", "text", "transport", "dish", "food"),
    *("animal", "hunt", "plant", "building", "music"),
)
# How often a person comes "from Paris" or is one "in the red hat", is one "who laughed", or owns
# the object; how often a thing is one "that Anna bought".
ORIGIN, RELATIVE, POSSESSIVE, OBJECT_RELATIVE = 0.1, 0.15, 0.25, 0.1
# How often kin, and how often others, are somebody's ("my aunt"); how often people are counted.
OWN_KIN, OWN, COUNTED = 0.8, 0.05, 0.07
# How often a person is "I" or the like, and how often an affirmed clause has an adverb of
# manner, or one that opens the sentence.
PRONOUN, MANNER, OPENING = 0.08, 0.12, 0.08
# Nobody prunes an oak in the bedroom.
OUTDOORS = ("transport", "animal", "hunt", "plant")
AT = "market harbour port school academy museum hotel inn theatre shop store bakery".split()
PREPOSITIONS = {"street": "on", "road": "on", **dict.fromkeys(AT, "at")}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November
    December""".split()
HOURS = """at noon, at midnight, in the morning, in the afternoon, after lunch, before dinner,
    after the meeting, before the trip""".split(",")
PAST_TIMES = "yesterday, last week, last month, last year, this morning".split(",")
FUTURE_TIMES = "tomorrow, next week, next month, next year, this evening".split(",")
# Anybody may do anything like this.
MANNERS = """quietly quickly finally suddenly secretly proudly eagerly reluctantly gladly
    calmly""".split()
OPENINGS = "fortunately luckily sadly surprisingly oddly admittedly".split()
TENSES = ("past",) * 14 + tuple("perfect pluperfect will will can could should present".split())
NEGATIONS = ("n't", "n't", "n't", "not", "never")


class Composer(Vocabulary):
    """Draws noun phrases and clauses."""

    def name(self) -> NP:
        """A first name."""
        return NP(self.noun((self.rng.choice(("she", "he")),)), det="")

    def phrase(
        self,
        kinds: tuple[str, ...],
        adjective: float = 0.3,
        numeral: float = 0.15,
        indefinite: float = 0.5,
    ) -> NP:
        """A noun phrase.

        Args:
            kinds: The kinds of noun to draw from.
            adjective: Probability of an attribute.
            numeral: Probability of a numeral.
            indefinite: Probability of "a" rather than "the", "this" or "that" in the singular.
        """
        head = self.noun(kinds)
        fitting = [group for group, nouns in DESCRIBED.items() if head.entry.kind in nouns]
        group = self.rng.choice(fitting) if self.chance(adjective) and fitting else None
        self.rng.random()  # unused, but without it all later draws, and so the rows, would change
        adjectives = (self.adjective(group),) if group else ()
        roll = self.rng.random()
        if roll < numeral:
            return NP(head, "pl", self.rng.choice(NUMERALS), adjectives)
        if roll < numeral + 0.1:
            det = self.rng.choice(("the", "the", "the", "these", "those", "many"))
            return NP(head, "pl", det, adjectives)
        det = "a" if self.chance(indefinite) else self.rng.choice(("the",) * 6 + ("this", "that"))
        return NP(head, "sg", det, adjectives)

    def someone(self, numeral: float = 0.0, indefinite: float = 0.0) -> NP:
        """A person: by name, or by profession and the like."""
        if self.chance(0.35):
            return self.name()
        phrase = self.phrase(PERSON, 0.2, numeral, indefinite)
        owned = OWN_KIN if phrase.head.entry.kind == "relative" else OWN
        if phrase.det in ("the", "a") and self.chance(owned):
            phrase = replace(phrase, det=self.rng.choice(("my", "my", "our", "your", "their")))
        if phrase.det not in ("the", "a", "that", "those", "many"):
            return phrase
        if phrase.number == "sg" and self.chance(ORIGIN):
            return replace(phrase, modifier=self.badge())
        if self.chance(RELATIVE):
            return replace(phrase, relative=self.deed())
        return phrase

    def badge(self) -> Adverbial:
        """What tells a person from others: where from, or what they wear."""
        if self.chance(0.5):
            return Adverbial("origin", "from", NP(self.noun(("city",)), det=""))
        colour = self.adjective("colour")
        return Adverbial("origin", "in", NP(self.noun(("garment",)), adjectives=(colour,)))

    def deed(self) -> Clause:
        """What a person did, as a relative clause: "who laughed", "who sold a van"."""
        frame = self.rng.choice(("alone", "alone", "goods", "text", "transport", "music"))
        verb = self.verb((frame,))
        kinds = OBJECTS.get(frame)
        target = self.phrase(kinds, adjective=0.1, numeral=0.0) if kinds else None
        return Clause(verb, NP(pronoun="who"), target)

    def treated(self, phrase: NP, frame: str) -> NP:
        """The thing as one "that Anna bought"."""
        if phrase.det not in ("the", "those"):
            return phrase
        named = self.chance(0.7)
        subject = self.name() if named else NP(pronoun=self.rng.choice(("I", "we", "they")))
        verb, tense = self.verb((frame,)), self.rng.choice(("past", "pluperfect"))
        return replace(phrase, relative=Clause(verb, subject, GAP, tense=tense))

    def place(self, frame: str) -> Adverbial:
        """A place adverbial that suits a verb's frame."""
        outdoors = frame in OUTDOORS
        kinds = ("ground", "city") if outdoors else ("room", "ground", "building", "city")
        return self.at(self.noun((self.rng.choice(kinds),)))

    def at(self, head: Use) -> Adverbial:
        """The place adverbial around a noun or city."""
        phrase = NP(head, det="" if head.entry.pos == "PROPN" else "the")
        return Adverbial("place", PREPOSITIONS.get(head.lemma, "in"), phrase)

    def time(self, tense: str) -> Adverbial | None:
        """A time adverbial that goes with the tense, or None."""
        if tense in ("perfect", "pluperfect", "present", "can", "could"):
            return None
        roll = self.rng.randrange(4)
        text = self.rng.choice(PAST_TIMES if tense == "past" else FUTURE_TIMES)
        if roll == 1:
            text = "on " + self.rng.choice(DAYS)
        elif roll == 2:
            text = "in " + self.rng.choice(MONTHS)
        elif roll == 3:
            text = self.rng.choice(HOURS)
        *before, noun = text.split()
        dets = [word for word in before if word in ("the", "last", "next", "this")]
        preposition = before[0] if before and before[0] not in dets else ""
        # Words for times are a closed class: nothing is held out among them.
        use = Use(Entry((noun,), "PROPN" if noun[0].isupper() else "NOUN", "time"), noun)
        return Adverbial("time", preposition, NP(use, det="".join(dets)))

    def participant(self, kinds: tuple[str, ...], numeral: float, counted: float) -> NP:
        """What the verb is about: a person or a thing."""
        return self.someone(counted) if kinds == PERSON else self.phrase(kinds, numeral=numeral)

    def clause(
        self,
        frames: tuple[str, ...] = TRANSITIVE,
        place: float = 0.3,
        time: float = 0.25,
        negation: float = 0.0,
        numeral: float = 0.15,
        counted: float = COUNTED,
        opposed: float = 0.0,
        tenses: tuple[str, ...] = TENSES,
        subject: NP | None = None,
    ) -> Clause:
        """A clause around a verb of one of the frames.

        Args:
            frames: The verb frames to draw from.
            place: Probability of a place adverbial.
            time: Probability of a time adverbial, where the tense allows one.
            negation: Probability of a negated verb group.
            numeral: Probability of a numeral before a thing.
            counted: Probability of a numeral before a person.
            opposed: Probability of insisting on a verb that has an opposite.
            tenses: The tenses to draw from.
            subject: A given subject; otherwise one that suits the verb.
        """
        verb = self.verb(frames, self.chance(opposed))
        frame = verb.entry.kind
        if subject is None and frame == "hunt":
            subject = self.phrase(("mammal",), numeral=numeral, indefinite=0.15)
        elif subject is None:
            subject = self.someone(counted, 0.15)
            if self.chance(PRONOUN):
                subject = NP(pronoun=self.rng.choice(("I", "we", "they", "you")))
        recipient = replace(self.someone(), relative=None) if frame == "give" else None
        target, kinds = None, OBJECTS.get(frame)
        if kinds:
            target = self.participant(kinds, numeral, counted)
            # Nobody helps themselves without a reflexive.
            while subject.head and target.head.entry == subject.head.entry:
                target = self.participant(kinds, numeral, counted)
        if frame in ("goods", "transport", "text"):
            owner = ""
            if target.number == "sg" and self.chance(POSSESSIVE):
                owner = possessive_for(subject)
            if owner:
                mark = subject.head.lemma if subject.head else subject.refers
                target = replace(target, det=owner, refers=mark)
                subject = replace(subject, mark=mark)
            elif self.chance(OBJECT_RELATIVE):
                target = self.treated(target, frame)
        tense = self.rng.choice(tenses)
        adverbials: tuple[Adverbial, ...] = ()
        if self.chance(place) and frame != "building":
            adverbials = (self.place(frame),)
        if self.chance(time) and (when := self.time(tense)):
            adverbials = (*adverbials, when)
        negated = self.rng.choice(NEGATIONS) if self.chance(negation) else ""
        # "The man who grinned suddenly left": the adverb would belong to either.
        clear = tense in ("past", "perfect", "will") and not subject.relative
        manner = self.rng.choice(MANNERS) if clear and not negated and self.chance(MANNER) else ""
        opened = tense in ("past", "perfect") and self.chance(OPENING)
        opening = self.rng.choice(OPENINGS) if opened else ""
        return Clause(
            verb,
            subject,
            target,
            recipient,
            adverbials,
            tense,
            negated,
            manner=manner,
            opening=opening,
        )


def possessive_for(phrase: NP) -> str:
    """The possessive for what the phrase owns; ``""`` where an edit could belie it."""
    if phrase.head is None:
        return POSSESSIVES.get(phrase.pronoun, "")
    if phrase.number == "pl" or phrase.second or phrase.head.entry.kind == "relative":
        return ""
    return POSSESSIVES[third_person(phrase)]
