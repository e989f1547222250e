"""Random clauses from the lexicon: who does what to whom, where and when."""

from __future__ import annotations

from .anaphora import possessive_for
from .clauses import GAP, NP, Adverbial, Clause, replace
from .lexicon import Entry, Use, kinds
from .realise import NUMERALS
from .vocabulary import Vocabulary
from .words import PEOPLE

PERSON = kinds(PEOPLE)
# fmt: off
TRANSITIVE = ("goods", "goods", "person", "person", "text", "transport", "dish", "food", "animal", "hunt", "plant",
              "building", "music")
# fmt: on
ADJECTIVES_OF = {
    "person": PERSON,
    "animal": ("mammal", "bird"),
    "dish": ("dish",),
    "produce": ("fruit", "vegetable"),
    "text": ("document", "book"),
    "place": ("building", "room"),
    "colour": ("vehicle", "garment", "flower", "toy"),
    "thing": (
        "vehicle",
        "boat",
        "tool",
        "instrument",
        "garment",
        "device",
        "toy",
        "furniture",
        "jewel",
    ),
}
# How often a person comes "from Paris" or is one "in the red hat", is one "who laughed",
# or owns what the verb is about.
ORIGIN, RELATIVE, POSSESSIVE = 0.1, 0.15, 0.25
# How often a thing is one "that Anna bought".
OBJECT_RELATIVE = 0.1
# How often kin, and how often others, are somebody's ("my aunt"); how often people are counted at
# most.
OWN_KIN, OWN, COUNTED = 0.8, 0.05, 0.07
# How often a person is "I" or the like, and how often an affirmed clause has an adverb of
# manner, or one that opens the sentence.
PRONOUN, MANNER, OPENING = 0.08, 0.12, 0.08
# Nobody prunes an oak in the bedroom.
OUTDOORS = ("transport", "animal", "hunt", "plant", "alone mammal")
PREPOSITIONS = {
    "street": "on",
    "road": "on",
    **dict.fromkeys(
        "market harbour port school academy museum hotel inn theatre shop store bakery".split(),
        "at",
    ),
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December".split()
)
# fmt: off
HOURS = (("at", "", "noon"), ("at", "", "midnight"), ("in", "the", "morning"), ("in", "the", "afternoon"),
         ("after", "", "lunch"), ("before", "", "dinner"), ("after", "the", "meeting"), ("before", "the", "trip"))
PAST_TIMES = (("", "", "yesterday"), ("", "last", "week"), ("", "last", "month"), ("", "last", "year"),
              ("", "this", "morning"))
FUTURE_TIMES = (("", "", "tomorrow"), ("", "next", "week"), ("", "next", "month"), ("", "next", "year"),
                ("", "this", "evening"))
# fmt: on
# What anybody may do anything: quietly, say.
MANNERS = (
    "quietly quickly finally suddenly secretly proudly eagerly reluctantly gladly calmly".split()
)
OPENINGS = "fortunately luckily sadly surprisingly oddly admittedly".split()
TENSES = ("past",) * 14 + (
    "perfect",
    "pluperfect",
    "will",
    "will",
    "can",
    "could",
    "should",
    "present",
)
NEGATIONS = ("n't", "n't", "n't", "not", "never")


def adjective_kind(noun: Entry, vocabulary: Vocabulary) -> str | None:
    """What kind of adjective can describe a noun; None if none can."""
    fitting = [name for name, nouns in ADJECTIVES_OF.items() if noun.base_kind in nouns]
    return vocabulary.rng.choice(fitting) if fitting else None


class Composer:
    """Draws noun phrases and clauses from a vocabulary."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.rng = vocabulary.rng

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.rng.random() < probability

    def name(self) -> NP:
        """A first name; its gender is the kind of its entry."""
        return NP(self.vocabulary.noun((self.rng.choice(("she", "he")),)), det="")

    def phrase(
        self,
        allowed: tuple[str, ...],
        adjective: float = 0.3,
        numeral: float = 0.15,
        plural: float = 0.1,
        indefinite: float = 0.5,
        hypernym: float = 0.0,
    ) -> NP:
        """A noun phrase.

        Args:
            allowed: Kinds of noun to draw from.
            adjective: Probability of an attribute.
            numeral: Probability of a numeral.
            plural: Probability of a plural without numeral ("the", "these", "many").
            indefinite: Probability of "a" rather than "the", "this" or "that" in the singular.
            hypernym: Probability of naming the class above instead of the noun.
        """
        head = self.vocabulary.noun(allowed)
        described = adjective_kind(head.entry, self.vocabulary) if self.chance(adjective) else None
        if self.chance(hypernym):
            head = self.vocabulary.hypernym(head) or head
        adjectives = (self.vocabulary.adjective(described),) if described else ()
        roll = self.rng.random()
        if roll < numeral:
            return NP(head, "pl", self.rng.choice(NUMERALS), adjectives)
        if roll < numeral + plural:
            return NP(
                head,
                "pl",
                self.rng.choice(("the", "the", "the", "these", "those", "many")),
                adjectives,
            )
        det = "a" if self.chance(indefinite) else self.rng.choice(("the",) * 6 + ("this", "that"))
        return NP(head, "sg", det, adjectives)

    def someone(self, names: float = 0.35, **options: float) -> NP:
        """A person: by name, or by profession and the like.

        Args:
            names: Probability of a name.
            **options: Passed on to :meth:`phrase`.
        """
        if self.chance(names):
            return self.name()
        options = {"indefinite": 0.0, "adjective": 0.2, **options}
        phrase = self.phrase(
            PERSON, **{**options, "numeral": min(options.get("numeral", 0.0), COUNTED)}
        )
        if phrase.det in ("the", "a") and self.chance(
            OWN_KIN if phrase.head.entry.base_kind == "relative" else OWN
        ):
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
            return Adverbial("origin", "from", NP(self.vocabulary.noun(("city",)), det=""))
        colour = self.vocabulary.adjective("colour")
        return Adverbial(
            "origin", "in", NP(self.vocabulary.noun(("garment",)), "sg", "the", (colour,))
        )

    def deed(self) -> Clause:
        """What a person did, as a relative clause: "who laughed", "who sold a van"."""
        frame = self.rng.choice(("alone", "alone", "goods", "text", "transport", "music"))
        verb = self.vocabulary.verb((frame,))
        target = (
            self.phrase(verb.entry.objects, adjective=0.1, numeral=0.0)
            if verb.entry.objects
            else None
        )
        return Clause(verb, NP(pronoun="who"), target)

    def treated(self, phrase: NP, frame: str) -> NP:
        """The thing as one "that Anna bought"."""
        if phrase.det not in ("the", "those") or phrase.head.entry.kind.startswith("class"):
            return phrase
        subject = (
            self.name() if self.chance(0.7) else NP(pronoun=self.rng.choice(("I", "we", "they")))
        )
        verb = self.vocabulary.verb((frame,))
        return replace(
            phrase,
            relative=Clause(verb, subject, GAP, tense=self.rng.choice(("past", "pluperfect"))),
        )

    def place(self, frame: str = "") -> Adverbial:
        """A place adverbial that suits a verb's frame."""
        kinds_of_place = (
            ("ground", "city") if frame in OUTDOORS else ("room", "ground", "building", "city")
        )
        return self.at(self.vocabulary.noun((self.rng.choice(kinds_of_place),)))

    def at(self, head: Use) -> Adverbial:
        """The place adverbial around a noun or city."""
        proper = head.entry.pos == "PROPN"
        preposition = PREPOSITIONS.get(head.lemma, "in")
        return Adverbial("place", preposition, NP(head, det="" if proper else "the"))

    def time(self, tense: str) -> Adverbial | None:
        """A time adverbial that goes with the tense, or None."""
        if tense in ("perfect", "pluperfect", "present", "can", "could"):
            return None
        roll = self.rng.randrange(4)
        preposition, det, noun = self.rng.choice(PAST_TIMES if tense == "past" else FUTURE_TIMES)
        if roll == 1:
            preposition, det, noun = "on", "", self.rng.choice(DAYS)
        elif roll == 2:
            preposition, det, noun = "in", "", self.rng.choice(MONTHS)
        elif roll == 3:
            preposition, det, noun = self.rng.choice(HOURS)
        # Words for times are closed classes: nothing is held out among them.
        entry = Entry((noun,), "PROPN" if noun[0].isupper() else "NOUN", "time")
        return Adverbial("time", preposition, NP(Use(entry, noun), det=det))

    def clause(
        self,
        frames: tuple[str, ...] = TRANSITIVE,
        place: float = 0.3,
        time: float = 0.25,
        negation: float = 0.0,
        tenses: tuple[str, ...] = TENSES,
        subject: NP | None = None,
        names: float = 0.35,
        opposed: float = 0.0,
        indefinite_subject: float = 0.15,
        **options: float,
    ) -> Clause:
        """A clause around a verb of one of the frames.

        Args:
            frames: Verb frames to draw from.
            place: Probability of a place adverbial.
            time: Probability of a time adverbial, where the tense allows one.
            negation: Probability of a negated verb group.
            tenses: Tenses to draw from.
            subject: A given subject; otherwise one that suits the verb.
            names: Probability of a name for a person.
            opposed: Probability of insisting on a verb that has an opposite.
            indefinite_subject: Probability of "a" rather than "the" before a singular subject.
            **options: Passed on to :meth:`phrase`.
        """
        verb = self.vocabulary.verb(frames, self.chance(opposed))
        entry = verb.entry
        if subject is None:
            subject = self.participant(
                entry.subjects, names, **{**options, "indefinite": indefinite_subject}
            )
            if entry.subjects == PERSON and self.chance(PRONOUN):
                subject = NP(pronoun=self.rng.choice(("I", "we", "they", "you")))
        recipient = (
            replace(self.someone(names=names), relative=None) if entry.kind == "give" else None
        )
        target = self.participant(entry.objects, names, **options) if entry.objects else None
        for _ in range(9):
            # Nobody helps themselves without a reflexive.
            if target is None or target.head.entry not in (subject.head and subject.head.entry,):
                break
            target = self.participant(entry.objects, names, **options)
        if target and entry.kind in ("goods", "transport", "text"):
            owner = (
                possessive_for(subject) if target.number == "sg" and self.chance(POSSESSIVE) else ""
            )
            if owner and subject.head:
                target = replace(target, det=owner, refers=subject.head.lemma)
                subject = replace(subject, mark=subject.head.lemma)
            elif owner:
                target = replace(target, det=owner, refers=subject.refers)
            elif self.chance(OBJECT_RELATIVE):
                target = self.treated(target, entry.kind)
        tense = self.rng.choice(tenses)
        adverbials = []
        if self.chance(place) and entry.kind != "building":
            adverbials.append(self.place(entry.kind))
        when = self.time(tense) if self.chance(time) else None
        if when:
            adverbials.append(when)
        negated = self.rng.choice(NEGATIONS) if self.chance(negation) else ""
        # "The man who grinned suddenly left": the adverb would belong to either.
        clear = tense in ("past", "perfect", "will") and not subject.relative
        manner = self.rng.choice(MANNERS) if clear and not negated and self.chance(MANNER) else ""
        opening = (
            self.rng.choice(OPENINGS)
            if tense in ("past", "perfect") and self.chance(OPENING)
            else ""
        )
        return Clause(
            verb,
            subject,
            target,
            recipient,
            None,
            tuple(adverbials),
            tense,
            negated,
            manner=manner,
            opening=opening,
        )

    def participant(self, allowed: tuple[str, ...], names: float, **options: float) -> NP:
        """A person or thing of the kinds that a verb selects."""
        if allowed == PERSON:
            return self.someone(names, **options)
        return self.phrase(allowed, **options)

    def state(self, negation: float = 0.0, subject: NP | None = None) -> Clause:
        """A copular clause about a person ("Anna was tired")."""
        subject = subject or self.someone(adjective=0.0)
        negated = self.rng.choice(("n't", "not")) if self.chance(negation) else ""
        return Clause(
            self.vocabulary.adjective("person"),
            subject,
            tense=self.rng.choice(("past", "past", "present")),
            negation=negated,
        )
