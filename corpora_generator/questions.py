"""The two tasks with questions: qqp and qnli."""

from __future__ import annotations

import random

from . import edits
from .anaphora import insisted
from .clauses import NP, Clause, Linked, replace
from .compose import TRANSITIVE, Composer
from .edits import several
from .realise import NUMERALS, clause, realise, sentence
from .split import Made
from .tree import Node

# intent -> frames that express it; see _frame for what their names mean
INTENTS = {
    "method": (
        ("ask", "manner", "present"),
        ("ask", "manner", "can"),
        ("what", "best", "way"),
        ("ask", "manner", "should"),
    ),
    "place": (("ask", "place", "can"), ("what", "best", "place"), ("what", "good", "place")),
    "time": (("ask", "time", "should"), ("what", "best", "time"), ("what", "right", "time")),
    "reason": (("ask", "reason", "should"), ("what", "main", "reason")),
    "reason against": (
        ("ask", "reason", "should not"),
        ("ask", "reason", "shouldn't"),
        ("what", "main", "reason not"),
    ),
    "duration": (("take", "long", ""), ("need", "time", "")),
    "cost": (("cost", "much", ""), ("need", "money", "")),
    "difficulty": (("is", "difficult", ""), ("is", "hard", "")),
    "safety": (("is", "safe", ""), ("ask", "polar", "can safely")),
    "permission": (("ask", "polar", "may"), ("is", "okay", "")),
}
FRAMES = (
    "goods",
    "goods",
    "goods",
    "transport",
    "text",
    "dish",
    "food",
    "animal",
    "plant",
    "building",
    "music",
)
ASKERS = tuple(NP(pronoun=word) for word in ("I", "I", "I", "you", "we"))
# How often questions that differ ask something else, or nothing but the intent differs,
# and how often two words rather than one differ: these set how hard the tasks are.
OTHER_INTENT, ONLY_INTENT, TWO_CHANGES = 0.4, 0.2, 0.4


def _word(form: str, upos: str, deprel: str, *before: Node) -> Node:
    lemma = {"is": "be", "does": "do"}.get(form, form)
    return Node(form, lemma, upos, deprel, list(before))


def _frame(frame: tuple[str, str, str], action: Clause) -> Node:
    """The tree of a question about an action.

    Args:
        frame: Its kind, followed by two words that fill it.
        action: What is asked about, with the one who asks as subject.
    """
    kind, first, second = frame
    if kind == "ask":
        tense, _, adverb = second.removesuffix("n't").partition(" ")
        if tense == "may" and action.subject.pronoun == "you":
            action = replace(action, subject=NP(pronoun="we"))
        negation = "n't" if second.endswith("n't") else "not" if adverb == "not" else ""
        return clause(
            replace(
                action, tense=tense, ask=first, negation=negation, manner="" if negation else adverb
            )
        )
    to_do = replace(action, infinitive=True)
    if kind == "what":
        det = _word("a" if first == "good" else "the", "DET", "det")
        second, _, negation = second.partition(" ")
        noun = _word(second, "NOUN", "nsubj", det, _word(first, "ADJ", "amod"))
        noun.after.append(clause(replace(to_do, negation=negation), "acl"))
        return Node("what", "what", "PRON", after=[_word("is", "AUX", "cop"), noun])
    it, does = _word("it", "PRON", "expl"), _word("does", "AUX", "aux")
    if kind == "is":
        root = _word(first, "ADJ", "root", _word("is", "AUX", "cop"), it)
        root.after.append(clause(to_do, "csubj"))
    elif kind == "need":
        asked = _word(
            first, "NOUN", "obj", _word("much", "ADJ", "amod", _word("how", "ADV", "advmod"))
        )
        who = _word(action.subject.pronoun, "PRON", "nsubj")
        root = _word("need", "VERB", "root", asked, Node("do", "do", "AUX", "aux"), who)
        root.after.append(clause(to_do, "advcl"))
    else:
        # "How much" asks for what it costs, "how long" for no argument of "take".
        upos, deprel = ("ADJ", "obj") if first == "much" else ("ADV", "advmod")
        root = _word(
            kind,
            "VERB",
            "root",
            _word(first, upos, deprel, _word("how", "ADV", "advmod")),
            does,
            it,
        )
        root.after.append(clause(to_do, "csubj"))
    return root


ACTIONS = (
    ("other object", edits.other_object, 5),
    ("other verb", edits.other_verb, 4),
    ("antonym", edits.opposite, 3),
    ("number", edits.number, 2),
    ("place", edits.place, 3),
    ("other attribute", edits.opposite_attribute, 2),
)


def qqp(composer: Composer, label: int) -> Made:
    """Two questions that ask the same (1) or not (0)."""
    asker = composer.rng.choice(ASKERS)
    action = composer.clause(
        FRAMES,
        subject=asker,
        place=0.2,
        time=0.0,
        tenses=("present",),
        numeral=0.1,
        plural=0.0,
        indefinite=0.8,
        adjective=0.35,
        opposed=0.5,
    )
    intent = composer.rng.choice(tuple(INTENTS))
    if intent == "place":
        action = replace(action, adverbials=())
    second = composer.rng.choice(INTENTS[intent])
    changes, other, asked = [], action, intent
    if label == 0:
        roll = composer.rng.random()
        if roll < OTHER_INTENT:
            asked = composer.rng.choice([name for name in INTENTS if name != intent])
            if asked == "place":
                other = replace(other, adverbials=())
            changes.append("intent")
        if roll > ONLY_INTENT:
            made, other = several(
                ACTIONS, other, composer, 2 if composer.chance(TWO_CHANGES) else 1
            )
            changes += made
        if not changes:
            return None
    first = composer.rng.choice(INTENTS[asked])
    if composer.chance(0.5) and (new := edits.synonyms(other, composer)):
        other = new
        changes.append("synonym")
    if first != second:
        changes.append("frame")
    if not changes:
        return None
    trees = {"question1": _frame(first, other), "question2": _frame(second, action)}
    return {name: [sentence(tree, "?")] for name, tree in trees.items()}, label, ", ".join(changes)


SLOTS = (("subject", 3), ("object", 2), ("which", 3), ("place", 6), ("time", 6), ("number", 5))
# What is not told is mostly a place or a time; the other negatives ask for these less
# often, so that the question word is no sign.
NOT_TOLD, ASK_PLACE_OR_TIME = 0.25, 0.42
# How often a question asks of an event that differs in two respects; with one the task
# is so hard that some trainings learn nothing.
TWO_RESPECTS = 0.9
# How often the sentence of a negative is a denial besides.
DENIED = 0.06
# How often the sentence tells something else as well.
BESIDES = 0.25
# How often it insists on who did it, where it can.
INSISTED = 0.3


def _has(item: Clause, slot: str) -> bool:
    if slot in ("place", "time"):
        return any(a.role == slot for a in item.adverbials)
    if slot == "number":
        return item.object.det in NUMERALS
    if slot == "which":
        return bool(item.object.head.entry.hypernym)
    return slot != "object" or item.object.head.entry.pos == "NOUN"


def _pick(composer: Composer, allowed: list[str]) -> str | None:
    weighted = [slot for slot, weight in SLOTS if slot in allowed for _ in range(weight)]
    return composer.rng.choice(weighted) if weighted else None


def _question(item: Clause, slot: str, composer: Composer) -> Clause:
    if slot == "which":
        item = edits.put(item, ("object",), NP(composer.vocabulary.hypernym(item.object.head)))
    if slot == "subject" and item.object.refers:
        # "Who sold her van?" would ask of somebody else.
        item = edits.put(item, ("object",), replace(item.object, det="the", refers=""))
    if slot == "number":
        item = edits.put(item, ("object", "relative"), None)
    if slot in ("object", "subject", "which") or composer.chance(0.5):
        keep = tuple(a for a in item.adverbials if a.role != slot and composer.chance(0.4))
        item = replace(item, adverbials=keep)
    return replace(item, ask=slot)


OTHER = (
    ("other subject", edits.other_subject, 3),
    ("other verb", edits.other_verb, 3),
    ("antonym", edits.opposite, 2),
    ("other object", edits.other_object, 3),
)


def qnli(composer: Composer, label: int) -> Made:
    """A question and a sentence that answers it (0) or does not (1)."""
    frames = tuple(f for f in TRANSITIVE if f != "building") + ("give",)
    told = composer.clause(
        frames,
        numeral=0.3,
        place=0.55,
        time=0.55,
        tenses=("past", "past", "past", "will"),
        adjective=0.25,
        opposed=0.3,
    )
    present = [slot for slot, _ in SLOTS if _has(told, slot)]
    item, change = told, "answered"
    if label == 0:
        slot = _pick(composer, present)
    else:
        missing = [slot for slot in ("place", "time", "number") if not _has(told, slot)]
        if told.object.number == "sg" or told.object.head.entry.pos == "PROPN":
            missing = [slot for slot in missing if slot != "number"]
        slot = _pick(composer, missing) if composer.chance(NOT_TOLD) else None
        change = "not told"
        if slot is None:
            often = composer.chance(ASK_PLACE_OR_TIME)
            slot = _pick(
                composer, [name for name in present if often or name not in ("place", "time")]
            )
            steps = [
                s
                for s in OTHER
                if not (s[0] == "other subject" and slot == "subject")
                and not (s[0] == "other object" and slot in ("object", "which"))
            ]
            made, item = several(steps, told, composer, 2 if composer.chance(TWO_RESPECTS) else 1)
            if not made:
                return None
            change = ", ".join(made)
            if composer.chance(DENIED):
                # What did not happen answers nothing about what did.
                told, change = edits.negate(told, composer), change + ", negation"
    if composer.chance(0.6):
        item = edits.synonyms(item, composer) or item
    asked = _question(item, slot, composer)
    # What the subject did besides is no answer, whatever the label.
    answer = edits.join(told, composer) if composer.chance(BESIDES) else None
    return (
        {"question": [realise(asked)], "sentence": [realise(_insisting(answer or told))]},
        label,
        change,
    )


def _insisting(item: Clause | Linked) -> Clause | Linked:
    """Now and then "the tailor himself": the only pronouns here that stand beside their noun (§4.5)."""
    if random.Random(repr(item)).random() >= INSISTED:  # a draw of its own: no later row changes
        return item
    if isinstance(item, Linked):
        return replace(item, main=replace(item.main, subject=insisted(item.main.subject)))
    return replace(item, subject=insisted(item.subject))
