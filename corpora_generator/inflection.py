"""Inflection: spelling rules, and tables of exceptions."""

from __future__ import annotations

PLURALS = """mouse:mice goose:geese sheep:sheep deer:deer wolf:wolves shelf:shelves thief:thieves
    scarf:scarves policeman:policemen fireman:firemen fisherman:fishermen potato:potatoes
    tomato:tomatoes mango:mangoes steak:steaks fish:fish"""
# lemma, past and, where it is another form, participle
IRREGULAR = """be:was:been have:had do:did:done buy:bought sell:sold hide:hid:hidden find:found
    lose:lost steal:stole:stolen take:took:taken keep:kept choose:chose:chosen break:broke:broken
    read:read write:wrote:written tear:tore:torn eat:ate:eaten cut:cut meet:met
    forgive:forgave:forgiven teach:taught feed:fed catch:caught bite:bit:bitten draw:drew:drawn
    grow:grew:grown leave:left shut:shut build:built weep:wept sleep:slept wake:woke:woken
    sing:sang:sung swim:swam:swum stand:stood sit:sat run:ran:run leap:leapt speak:spoke:spoken
    give:gave:given send:sent show:showed:shown lend:lent bring:brought throw:threw:thrown
    upset:upset"""
_PLURALS = dict(pair.split(":") for pair in PLURALS.split())
_IRREGULAR = {lemma: forms for lemma, *forms in (verb.split(":") for verb in IRREGULAR.split())}
DOUBLING = "abhor drop regret shred hug grin trim wrap unwrap chop trip patrol quarrel".split()
VOWELS = "aeiou"
# Spelled with a vowel but said with a consonant, and the reverse.
A_NOT_AN = ("uni", "used", "use", "eu", "one")
AN_NOT_A = ("honest", "hour", "heir", "unin", "unim")


def _add_s(lemma: str) -> str:
    if lemma.endswith("y") and lemma[-2] not in VOWELS:
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "z", "ch", "sh")) else "s")


def plural(lemma: str) -> str:
    """The plural of a noun."""
    return _PLURALS.get(lemma) or _add_s(lemma)


def third_person(lemma: str) -> str:
    """The present form of a verb other than "be" for a singular subject."""
    return {"have": "has", "do": "does"}.get(lemma) or _add_s(lemma)


def _regular_past(lemma: str) -> str:
    if lemma in DOUBLING:
        return lemma + lemma[-1] + "ed"
    if lemma.endswith("e"):
        return lemma + "d"
    if lemma.endswith("y") and lemma[-2] not in VOWELS:
        return lemma[:-1] + "ied"
    return lemma + "ed"


def past(lemma: str) -> str:
    """The simple past of a verb (for a singular subject in the case of "be")."""
    return _IRREGULAR[lemma][0] if lemma in _IRREGULAR else _regular_past(lemma)


def participle(lemma: str) -> str:
    """The past participle of a verb."""
    return _IRREGULAR[lemma][-1] if lemma in _IRREGULAR else _regular_past(lemma)


def article(following: str) -> str:
    """The indefinite article before the word that follows."""
    lower = following.lower()
    if lower.startswith(AN_NOT_A):
        return "an"
    return "a" if lower.startswith(A_NOT_AN) or lower[0] not in VOWELS else "an"
