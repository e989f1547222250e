"""The two inference tasks: mnli and rte.

A hypothesis is drawn first, without regard to the label; the premise is then
made to suit.  So nothing in the hypothesis tells the label.
"""

from __future__ import annotations

from . import edits, lexicon
from .clauses import NP, Adverbial, Clause, Linked, replace
from .compose import Composer, adjective_kind
from .edits import INDEFINITE, REAL, Edit, first_of, join
from .lexicon import Use
from .realise import POSSESSIVES, realise
from .split import Made

TENSES = ("past",) * 8 + (
    "perfect",
    "pluperfect",
    "will",
    "will",
    "can",
    "could",
    "should",
    "present",
)
# Quantifiers, the weakest first; the last two are alike.
ORDER = ("some", "most", "all the", "every")
# How often the subject of a hypothesis that suits is quantified, and which suit.
QUANTIFIED = 0.25
PROFESSIONS = ("profession", "musician", "athlete", "scientist")
# Frames rich in opposites weigh most, so that contradiction need not lean on negation.
# fmt: off
FRAMES = ("goods",) * 5 + ("person",) * 4 + ("building",) * 2 + (
    "give", "hunt", "text", "transport", "dish", "food", "animal", "plant", "music")
# fmt: on


def hypothesis(composer: Composer, negation: float = 0.25) -> Clause:
    """A short clause with the things that inference turns on."""
    if composer.chance(0.2):
        return composer.state(negation=negation)
    quantified = composer.chance(QUANTIFIED)
    made = composer.clause(
        FRAMES,
        opposed=0.8,
        hypernym=0.45,
        adjective=0.25,
        numeral=0.25,
        place=0.35,
        time=0.15,
        negation=0.0 if quantified else negation,
        tenses=TENSES,
        indefinite_subject=0.0,
    )
    head = made.subject.head
    if (
        quantified
        and head
        and head.entry.kind in PROFESSIONS
        and made.object.det not in POSSESSIVES
    ):
        quantifier = composer.rng.choice(ORDER)
        return replace(made, subject=NP(head, "sg" if quantifier == "every" else "pl", quantifier))
    return made


def _specialise_kind(clause: Clause, composer: Composer) -> Clause | None:
    """Put a hyponym where the class is spoken of ("a scientist", "two birds"), and not a certain one of it."""
    if clause.object is None or clause.object.det not in INDEFINITE:
        return None
    made = _specialise(clause, composer)
    return made if made and made.subject == clause.subject else None


def _specialise(clause: Clause, composer: Composer) -> Clause | None:
    """Put a hyponym for a class noun."""

    def narrower(use: Use) -> Use | None:
        kind = use.entry.base_kind
        if kind == use.entry.kind:
            return None
        own = [e for e in lexicon.nouns().get(kind, ()) if e.hypernym == use.lemma]
        entry = composer.vocabulary.draw(own) if own else None
        return composer.vocabulary.use(entry) if entry else None

    return edits.swap_word(clause, composer, narrower)


def _generalise(clause: Clause, composer: Composer) -> Clause | None:
    """Put the class noun or verb for a word."""
    made = edits.swap_word(clause, composer, composer.vocabulary.hypernym)
    # What holds of every scientist holds of every botanist.
    universal = clause.subject.det in ("all the", "every")
    return None if made is None or (universal and made.subject != clause.subject) else made


def _add(clause: Clause, composer: Composer) -> Clause | None:
    """Add an attribute, a place or a time."""
    target = clause.object
    bare = target is not None and target.head is not None and not target.adjectives
    if clause.negation and bare:
        # "Not the warm building" is still that building.
        bare = target.det in INDEFINITE
    kind = adjective_kind(target.head.entry, composer.vocabulary) if bare else None
    if kind and target.head.entry.pos == "NOUN" and composer.chance(0.5):
        return edits.put(clause, ("object", "adjectives"), (composer.vocabulary.adjective(kind),))
    if (
        not clause.adverbials
        and clause.predicate.entry.pos == "VERB"
        and clause.predicate.entry.kind != "building"
    ):
        when = composer.time(clause.tense)
        added = (
            when if when and composer.chance(0.3) else composer.place(clause.predicate.entry.kind)
        )
        return replace(clause, adverbials=(added,))
    return None


def _drop(clause: Clause, composer: Composer) -> Clause | None:
    """Leave out an attribute, a place or a time."""
    if clause.object and clause.object.adjectives and composer.chance(0.6):
        return edits.put(clause, ("object", "adjectives"), ())
    return replace(clause, adverbials=clause.adverbials[:-1]) if clause.adverbials else None


def _quantify(stronger: bool) -> Edit:
    """Say it of more of them, or of fewer."""

    def edit(clause: Clause, composer: Composer) -> Clause | None:
        here = clause.subject.det
        if here not in ORDER or clause.negation:
            return None
        # "All the" and "every" say the same.
        more = [q for q in ORDER if q != here and ORDER.index(q) >= min(ORDER.index(here), 2)]
        fewer = [q for q in ORDER[:2] if ORDER.index(q) < ORDER.index(here)]
        wanted = more if stronger else fewer
        if not wanted:
            return None
        det = composer.rng.choice(wanted)
        return replace(
            clause, subject=NP(clause.subject.head, "sg" if det == "every" else "pl", det)
        )

    return edit


def _none_of_them(clause: Clause, composer: Composer) -> Clause | None:
    """Deny it of all of them ("none of the pilots")."""
    if clause.negation or clause.subject.head is None:
        return None
    if clause.subject.number == "sg" and clause.subject.det != "every":
        return None
    them = Adverbial("of", "of", NP(clause.subject.head, "pl", "the"))
    return replace(clause, subject=NP(pronoun="none", number="pl", modifier=them))


def _refers(phrase: NP | None) -> bool:
    return phrase is not None and bool(phrase.refers)


def _company(conjunctions: tuple[str, str]) -> Edit:
    """Add somebody to the subject: "and", "either … or", "neither … nor"."""

    def edit(clause: Clause, composer: Composer) -> Clause | None:
        subject = clause.subject
        if (
            clause.negation
            or subject.head is None
            or subject.number == "pl"
            or subject.relative
            or subject.modifier
        ):
            return None
        if (
            subject.det in ("a", "every")
            or clause.predicate.entry.kind == "hunt"
            or _refers(clause.object)
        ):
            return None
        named = subject.head.entry.kind in ("she", "he")
        other = composer.someone(names=0.0, numeral=0.0) if named else composer.name()
        if other.number == "pl" or (clause.object and clause.object.head == other.head):
            return None
        return replace(clause, subject=replace(subject, second=other, conjunctions=conjunctions))

    return edit


def _nothing(clause: Clause, composer: Composer) -> Clause | None:
    """Deny any object ("bought nothing")."""
    if clause.negation or clause.object is None or clause.object.head.entry.pos != "NOUN":
        return None
    if (
        clause.object.number == "pl"
        or clause.predicate.entry.kind in ("person", "give")
        or clause.subject.det in ORDER
    ):
        return None
    return replace(clause, object=NP(pronoun="nothing"))


def _nobody(clause: Clause, composer: Composer) -> Clause | None:
    """Deny it of everybody: against what is affirmed of somebody, and beyond what is denied of somebody."""
    if (
        clause.subject.relative
        or _refers(clause.object)
        or clause.predicate.entry.kind in ("hunt", "alone mammal")
    ):
        return None
    return replace(clause, subject=NP(pronoun="nobody"), negation="")


def _denied(edit: Edit) -> Edit:
    """The edit, for hypotheses with negation only."""
    return lambda clause, composer: edit(clause, composer) if clause.negation else None


def _no_such(clause: Clause, composer: Composer) -> Clause | None:
    """Deny the object in the wider class ("bought no vehicles")."""
    if clause.negation or clause.object is None or clause.object.head.entry.pos != "NOUN":
        return None
    if clause.subject.det in ORDER:
        return None
    head = composer.vocabulary.hypernym(clause.object.head) or clause.object.head
    return replace(clause, object=NP(head, "pl", "no"))


def _opposite(clause: Clause, composer: Composer) -> Clause | None:
    # What can be done and what can be undone are no contradiction; nor are two denials.
    return (
        edits.opposite(clause, composer) if clause.tense in REAL and not clause.negation else None
    )


def _number(clause: Clause, composer: Composer) -> Clause | None:
    return None if clause.negation or clause.tense not in REAL else edits.number(clause, composer)


def _other_event(clause: Clause, composer: Composer) -> Clause | None:
    made = edits.other_event(clause, composer)
    return replace(made, adverbials=()) if composer.chance(0.4) else made


def _possible(clause: Clause, composer: Composer) -> Clause | None:
    """Say that it may be so."""
    if clause.tense not in REAL or any(item.role == "time" for item in clause.adverbials):
        return None
    return replace(clause, tense=composer.rng.choice(("may", "might")))


def _embed(frame: str) -> Edit:
    def edit(clause: Clause, composer: Composer) -> Clause | None:
        if clause.subject.det == "that" or clause.subject.head is None:
            return None  # "that that pilot"
        verb = composer.vocabulary.verb((frame,))
        who = composer.someone(numeral=0.0)
        taken = [
            phrase.head.entry
            for phrase in (clause.subject, clause.object)
            if phrase and phrase.head
        ]
        while who.head.entry in taken:
            who = composer.someone(numeral=0.0)
        past = clause.tense in ("past", "pluperfect", "could", "might")
        return Clause(verb, who, complement=clause, tense="past" if past else "present")

    return edit


def _of_them_all(edit: Edit) -> Edit:
    """The edit, but where it is said of some, many or most: others of them may do otherwise."""
    return lambda clause, composer: (
        None if clause.subject.det in (*ORDER[:2], "many") else edit(clause, composer)
    )


def _affirmed(edit: Edit) -> Edit:
    """The edit, for hypotheses without negation only."""
    return lambda clause, composer: None if clause.negation else edit(clause, composer)


def _by_polarity(affirmed: Edit, denied: Edit) -> Edit:
    """Negation turns round what follows from what."""
    return lambda clause, composer: (denied if clause.negation else affirmed)(clause, composer)


def _other_participant(clause: Clause, composer: Composer) -> Clause | None:
    return edits.other_object(clause, composer) or edits.other_subject(clause, composer)


# What makes a premise, with weights: these set how hard the tasks are.
# fmt: off
ENTAILING = (
    ("hypernym", _affirmed(_specialise), 6), ("modifier", _affirmed(_add), 4), ("quantifier", _quantify(True), 20),
    ("nobody", _denied(_nobody), 4), ("conjoined", _company(("", "and")), 2), ("factive", _embed("factive"), 1),
    ("synonym", edits.synonyms, 3), ("voice", edits.passive, 1),
)
UNDECIDED = (
    ("possible", _possible, 3), ("quantifier", _quantify(False), 16), ("disjoined", _company(("either", "or")), 1),
    ("hypernym", _by_polarity(_generalise, _specialise_kind), 2), ("modifier", _by_polarity(_drop, _add), 5),
    ("other event", _other_event, 4), ("attitude", _embed("attitude"), 1),
)
CONTRARY = (
    ("antonym", _of_them_all(_opposite), 10), ("number", _of_them_all(_number), 16),
    ("negation", _of_them_all(edits.negate), 4), ("nobody", _affirmed(_nobody), 1), ("none such", _no_such, 1),
    ("nothing", _nothing, 1), ("none of them", _none_of_them, 5), ("neither", _company(("neither", "nor")), 1),
)
# fmt: on
# Mostly another event: a premise of two clauses is hard enough without finer differences.
# fmt: off
UNSUPPORTED = (*UNDECIDED, ("other event", _other_event, 16), ("other participant", _other_participant, 5),
               ("antonym", _opposite, 4), ("number", _number, 2), ("negation", edits.negate, 16))
# fmt: on
# The changes that deny without a word at the verb.
DENIALS = ("nobody", "none such", "nothing", "none of them", "neither")
# How often a premise says more besides, or says it in other words, whatever the label.
EXTRA, SYNONYM, VOICE = 0.3, 0.5, 0.2
# How often saying more is all there is to an entailment; the other labels' premises get
# a further clause as often, so that its presence is no sign.
ONLY_MORE, CONJUNCT = 0.15, (0.05, 0.2, 0.2)
# How often a clause is said to be known or believed besides.
KNOWN = 0.08


def _reworded(clause: Clause, composer: Composer, change: str) -> Clause:
    """Synonyms and voice, at the same rates whatever the label; ``change`` is not undone."""
    if composer.chance(SYNONYM) and change != "synonym":
        clause = edits.synonyms(clause, composer) or clause
    if (
        composer.chance(VOICE)
        and change != "voice"
        and clause.subject.pronoun not in ("nobody", "none")
    ):
        clause = edits.passive(clause, composer) or clause
    return clause


def mnli(composer: Composer, label: int) -> Made:
    """Premise and hypothesis: entailment (0), neutral (1) or contradiction (2)."""
    target = hypothesis(composer)
    made = first_of((ENTAILING, UNDECIDED, CONTRARY)[label], target, composer)
    if label == 0 and (made is None or composer.chance(ONLY_MORE)):
        made = ("conjunct", target)
    if made is None:
        return None
    change, core = made
    # Saying more keeps every label, but where it narrows a denial or a number, or undoes what was
    # dropped.
    narrows = (
        bool(core.negation) or change in (*DENIALS, "number") or (label, change) == (1, "modifier")
    )
    if composer.chance(EXTRA) and not narrows and core.complement is None:
        core = _add(core, composer) or core
    core = _reworded(core, composer, change)
    joined = join(core, composer) if composer.chance(CONJUNCT[label]) or core == target else None
    if label == 2 and joined is None and composer.chance(KNOWN):
        core = _embed("factive")(core, composer) or core
    return {"premise": [realise(joined or core)], "hypothesis": [realise(target)]}, label, change


def rte(composer: Composer, label: int) -> Made:
    """A longer premise and a short hypothesis: entailment (0) or not (1)."""
    target = hypothesis(composer, negation=0.15)
    made = first_of((ENTAILING, UNSUPPORTED)[label], target, composer)
    if made is None and label == 1:
        return None
    change, core = made or ("conjunct", target)
    core = _reworded(core, composer, change)
    other = composer.clause(
        ("goods", "text", "dish", "music", "animal", "alone"),
        place=0.3,
        time=0.0,
        adjective=0.1,
        tenses=(core.tense,),
    )
    if other.subject.head and other.subject.head in (
        core.subject.head,
        core.object and core.object.head,
    ):
        return None
    if composer.chance(KNOWN):
        other = _embed(composer.rng.choice(("factive", "attitude")))(other, composer) or other
    order = (core, other) if composer.chance(0.5) else (other, core)
    if composer.chance(0.3):
        opening = realise(order[0])
        premise = [opening, realise(order[1], len(opening.text) + 1)]
    else:
        events = core.tense == "past" and core.predicate.entry.pos == "VERB" and not core.negation
        # Which of the conjunctions it is must not tell whether something is denied.
        links = (
            ("before", "after", "because")
            if events and composer.chance(0.3)
            else ("and", "and", "but")
        )
        joined = join(core, composer, links) if composer.chance(0.4) else None
        premise = [
            realise(
                joined or Linked(order[0], composer.rng.choice(("and", "and", "but")), order[1])
            )
        ]
    return {"sentence1": premise, "sentence2": [realise(target)]}, label, change
