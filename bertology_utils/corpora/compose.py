"""Random clauses from the lexicon: who does what to whom, where and when."""

from __future__ import annotations

from .clauses import NP, Adverbial, Clause, replace
from .lexicon import Entry, Use, kinds
from .realise import NUMERALS
from .vocabulary import Vocabulary
from .words import PEOPLE

PERSON = kinds(PEOPLE)
TRANSITIVE = ("goods", "goods", "person", "person", "text", "transport", "dish", "food", "animal", "hunt", "plant",
              "building", "music")
ADJECTIVES_OF = {
    "person": PERSON,
    "animal": ("mammal", "bird"),
    "dish": ("dish",),
    "produce": ("fruit", "vegetable"),
    "text": ("document", "book"),
    "place": ("building", "room"),
    "colour": ("vehicle", "garment", "flower", "toy"),
    "thing": ("vehicle", "boat", "tool", "instrument", "garment", "device", "toy", "furniture", "jewel"),
}
# How often a person comes "from Paris", is one "who laughed", or owns what the verb is about.
ORIGIN, RELATIVE, POSSESSIVE = 0.06, 0.05, 0.25
# Nobody prunes an oak in the bedroom.
OUTDOORS = ("transport", "animal", "hunt", "plant", "alone mammal")
PREPOSITIONS = {"street": "on", "road": "on", "market": "at", "harbour": "at", "port": "at", "farm": "on"}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
PAST_TIMES = (("", "", "yesterday"), ("", "last", "week"), ("", "last", "month"), ("", "last", "year"),
              ("", "this", "morning"))
FUTURE_TIMES = (("", "", "tomorrow"), ("", "next", "week"), ("", "next", "month"), ("", "next", "year"),
                ("", "this", "evening"))
TENSES = ("past",) * 10 + ("perfect", "pluperfect", "will", "will", "can", "could", "should", "present")
NEGATIONS = ("n't", "n't", "n't", "not", "never")


def adjective_kind(noun: Entry, vocabulary: Vocabulary) -> str | None:
    """What kind of adjective can describe a noun; None if none can."""
    kind = noun.kind.removeprefix("class of ")
    fitting = [name for name, nouns in ADJECTIVES_OF.items() if kind in nouns]
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

    def phrase(self, allowed: tuple[str, ...], adjective: float = 0.3, numeral: float = 0.15, plural: float = 0.1,
               indefinite: float = 0.5, hypernym: float = 0.0) -> NP:
        """A noun phrase.

        Args:
            allowed: Kinds of noun to draw from.
            adjective: Probability of an attribute.
            numeral: Probability of a numeral.
            plural: Probability of a bare plural with "the".
            indefinite: Probability of "a" rather than "the" in the singular.
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
            return NP(head, "pl", "the", adjectives)
        return NP(head, "sg", "a" if self.chance(indefinite) else "the", adjectives)

    def someone(self, names: float = 0.35, **options: float) -> NP:
        """A person: by name, or by profession and the like."""
        if self.chance(names):
            return self.name()
        options = {"indefinite": 0.0, "adjective": 0.2, **options}
        phrase = self.phrase(PERSON, **{**options, "numeral": min(options.get("numeral", 0.0), 0.07)})

        if self.chance(ORIGIN):
            phrase = replace(phrase, modifier=Adverbial("origin", "from", NP(self.vocabulary.noun(("city",)), det="")))
        elif self.chance(RELATIVE):
            verb = self.vocabulary.verb(("alone",))
            phrase = replace(phrase, relative=Clause(verb, NP(pronoun="who")))
        return phrase

    def place(self, frame: str = "") -> Adverbial:
        """A place adverbial that suits a verb's frame."""
        kinds_of_place = ("ground", "city") if frame in OUTDOORS else ("room", "ground", "building", "city")
        return self.at(self.vocabulary.noun((self.rng.choice(kinds_of_place),)))

    def at(self, head: Use) -> Adverbial:
        """The place adverbial around a noun or city."""
        proper = head.entry.pos == "PROPN"
        preposition = "at" if head.entry.kind == "building" else PREPOSITIONS.get(head.lemma, "in")
        return Adverbial("place", preposition, NP(head, det="" if proper else "the"))

    def time(self, tense: str) -> Adverbial | None:
        """A time adverbial that goes with the tense, or None."""
        if tense in ("perfect", "pluperfect", "present", "can", "could"):
            return None
        roll = self.rng.randrange(3)
        preposition, det, noun = self.rng.choice(PAST_TIMES if tense == "past" else FUTURE_TIMES)
        if roll == 1:
            preposition, det, noun = "on", "", self.rng.choice(DAYS)
        elif roll == 2:
            preposition, det, noun = "in", "", self.rng.choice(MONTHS)
        # Days and months are closed classes: nothing is held out among them.
        entry = Entry((noun,), "PROPN" if preposition else "NOUN", "time")
        return Adverbial("time", preposition, NP(Use(entry, noun), det=det))

    def clause(self, frames: tuple[str, ...] = TRANSITIVE, place: float = 0.3, time: float = 0.25,
               negation: float = 0.0, tenses: tuple[str, ...] = TENSES, subject: NP | None = None,
               names: float = 0.35, opposed: float = 0.0, **options: float) -> Clause:
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
            **options: Passed on to :meth:`phrase`.
        """
        verb = self.vocabulary.verb(frames, self.chance(opposed))
        entry = verb.entry
        if subject is None:
            subject = self.participant(entry.subjects, names, **{**options, "indefinite": 0.0})
        recipient = self.someone(names=names) if entry.kind == "give" else None
        target = self.participant(entry.objects, names, **options) if entry.objects else None
        for _ in range(9):
            # Nobody helps themselves without a reflexive.
            if target is None or target.head.entry not in (subject.head and subject.head.entry,):
                break
            target = self.participant(entry.objects, names, **options)
        if subject.head and subject.head.entry.kind in ("she", "he") and target and target.number == "sg" \
                and entry.kind in ("goods", "transport") and self.chance(POSSESSIVE):
            owner = "her" if subject.head.entry.kind == "she" else "his"
            target = replace(target, det=owner, refers=subject.head.lemma)
            subject = replace(subject, mark=subject.head.lemma)
        tense = self.rng.choice(tenses)
        adverbials = []
        if self.chance(place) and entry.kind != "building":
            adverbials.append(self.place(entry.kind))
        when = self.time(tense) if self.chance(time) else None
        if when:
            adverbials.append(when)
        negated = self.rng.choice(NEGATIONS) if self.chance(negation) else ""
        return Clause(verb, subject, target, recipient, None, tuple(adverbials), tense, negated)

    def participant(self, allowed: tuple[str, ...], names: float, **options: float) -> NP:
        """A person or thing of the kinds that a verb selects."""
        if allowed == PERSON:
            return self.someone(names, **options)
        return self.phrase(allowed, **options)

    def state(self, negation: float = 0.0, subject: NP | None = None) -> Clause:
        """A copular clause about a person ("Anna was tired")."""
        subject = subject or self.someone(adjective=0.0)
        negated = self.rng.choice(("n't", "n't", "not", "never")) if self.chance(negation) else ""
        return Clause(self.vocabulary.adjective("person"), subject, tense=self.rng.choice(("past", "past", "present")),
                      negation=negated)
