"""Inflection: spelling rules and a table of exceptions."""

from __future__ import annotations

PLURALS = {
    "mouse": "mice", "goose": "geese", "sheep": "sheep", "deer": "deer", "wolf": "wolves", "shelf": "shelves",
    "thief": "thieves", "child": "children", "man": "men", "woman": "women", "person": "people", "scarf": "scarves",
    "policeman": "policemen", "fireman": "firemen", "fisherman": "fishermen",
    "potato": "potatoes", "tomato": "tomatoes", "mango": "mangoes", "steak": "steaks", "fish": "fish",
}
# lemma -> (past, participle)
IRREGULAR = {
    "be": ("was", "been"), "have": ("had", "had"), "do": ("did", "done"), "buy": ("bought", "bought"),
    "sell": ("sold", "sold"), "hide": ("hid", "hidden"), "find": ("found", "found"), "lose": ("lost", "lost"),
    "steal": ("stole", "stolen"), "take": ("took", "taken"), "keep": ("kept", "kept"), "choose": ("chose", "chosen"),
    "break": ("broke", "broken"), "read": ("read", "read"), "write": ("wrote", "written"), "tear": ("tore", "torn"),
    "eat": ("ate", "eaten"), "cut": ("cut", "cut"), "meet": ("met", "met"), "forgive": ("forgave", "forgiven"),
    "teach": ("taught", "taught"), "feed": ("fed", "fed"), "catch": ("caught", "caught"), "bite": ("bit", "bitten"),
    "draw": ("drew", "drawn"), "grow": ("grew", "grown"), "leave": ("left", "left"), "shut": ("shut", "shut"),
    "build": ("built", "built"), "weep": ("wept", "wept"), "sleep": ("slept", "slept"), "wake": ("woke", "woken"),
    "sing": ("sang", "sung"), "swim": ("swam", "swum"), "stand": ("stood", "stood"), "sit": ("sat", "sat"),
    "run": ("ran", "run"), "leap": ("leapt", "leapt"), "speak": ("spoke", "spoken"), "give": ("gave", "given"),
    "send": ("sent", "sent"), "show": ("showed", "shown"), "lend": ("lent", "lent"), "bring": ("brought", "brought"),
    "throw": ("threw", "thrown"), "know": ("knew", "known"), "forget": ("forgot", "forgotten"),
    "think": ("thought", "thought"), "go": ("went", "gone"), "make": ("made", "made"), "prove": ("proved", "proven"),
    "upset": ("upset", "upset"), "learn": ("learned", "learned"), "hold": ("held", "held"),
    "say": ("said", "said"), "see": ("saw", "seen"),
}
DOUBLING = frozenset("abhor drop admit regret shred stop hug pet grin trim wrap unwrap chop trip nap".split())
VOWELS = "aeiou"
# Spelled with a vowel but said with a consonant, and the other way round.
A_NOT_AN = ("uni", "used", "use", "eu", "one")
AN_NOT_A = ("honest", "hour", "heir", "unin", "unim")


def _add_s(lemma: str) -> str:
    if lemma.endswith("y") and lemma[-2] not in VOWELS:
        return lemma[:-1] + "ies"
    if lemma.endswith(("s", "x", "z", "ch", "sh")):
        return lemma + "es"
    return lemma + "s"


def plural(lemma: str) -> str:
    """The plural of a noun lemma; in a compound the last word takes it."""
    if lemma in PLURALS:
        return PLURALS[lemma]
    return _add_s(lemma)


def third_person(lemma: str) -> str:
    """The present form for a singular subject ("be" and "have" included)."""
    return {"be": "is", "have": "has", "do": "does", "go": "goes", "echo": "echoes"}.get(lemma) or _add_s(lemma)


def _regular_past(lemma: str) -> str:
    if lemma in DOUBLING:
        return lemma + lemma[-1] + "ed"
    if lemma.endswith("e"):
        return lemma + "d"
    if lemma.endswith("y") and lemma[-2] not in VOWELS:
        return lemma[:-1] + "ied"
    if lemma.endswith("l") and lemma in ("patrol", "quarrel", "compel"):
        return lemma + "led"
    return lemma + "ed"


def past(lemma: str) -> str:
    """The simple past form (singular for "be")."""
    return IRREGULAR[lemma][0] if lemma in IRREGULAR else _regular_past(lemma)


def participle(lemma: str) -> str:
    """The past participle."""
    return IRREGULAR[lemma][1] if lemma in IRREGULAR else _regular_past(lemma)


def article(following: str) -> str:
    """"a" or "an", for the word that follows."""
    lower = following.lower()
    if lower.startswith(AN_NOT_A):
        return "an"
    return "a" if lower.startswith(A_NOT_AN) or lower[0] not in VOWELS else "an"
