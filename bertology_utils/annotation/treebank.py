"""Annotation from a CoNLL-U file (https://universaldependencies.org/format.html)."""

from __future__ import annotations

from pathlib import Path

from ..corpora import Sentence, Word
from .annotators import Annotated

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def read(path: str | Path) -> dict[str, Annotated]:
    """All sentences of a CoNLL-U file, each under its text.

    Words that share one orthographic word ("don't") get their own characters
    where their forms spell it, else all of its characters. Empty nodes are left out.

    Raises:
        ValueError: the file is not CoNLL-U; the message names it.
    """
    import conllu

    try:
        parsed = conllu.parse(Path(path).read_text(encoding="utf-8-sig"))
    except (conllu.exceptions.ParseException, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CoNLL-U file: {error}") from None
    sentences = [tokens for tokens in parsed if len(tokens)]
    if not sentences:
        raise ValueError(f"{path} has no sentence in it")
    for tokens in sentences:
        if any(set(FIELDS) - set(token) for token in tokens):
            text = tokens.metadata.get("text", tokens)
            raise ValueError(f"{path} is not a CoNLL-U file: a word of {text!r} lacks a column; wanted: {', '.join(FIELDS)}")
    return {sentence.text: (sentence,) for sentence in map(_sentence, sentences)}


def _sentence(tokens) -> Sentence:
    text, spans = "", {}
    inside = 0  # the last word of the orthographic word that is being read
    for token in tokens:
        number = token["id"]
        if isinstance(number, int) and number > inside:
            spans[number] = len(text), len(text) + len(token["form"])
        elif isinstance(number, tuple) and number[1] == "-":
            first, _, inside = number
            parts = [one for one in tokens if isinstance(one["id"], int) and first <= one["id"] <= inside]
            spans |= _parts(token["form"], parts, len(text))
        else:
            continue  # a part of what was read already, or an empty node
        text += token["form"]
        if (token["misc"] or {}).get("SpaceAfter") != "No":
            text += " "
    words = [token for token in tokens if isinstance(token["id"], int)]
    index = {word["id"]: position for position, word in enumerate(words)}
    return Sentence(text.rstrip(" "), tuple(
        Word(word["form"], word["lemma"] or "", *spans[word["id"]], word["upos"] or "X", index.get(word["head"], -1),
             word["deprel"] or "dep")
        for word in words))


def _parts(form: str, parts: list, start: int) -> dict[int, tuple[int, int]]:
    """Characters of the words of one orthographic word."""
    if "".join(part["form"] for part in parts) != form:
        return {part["id"]: (start, start + len(form)) for part in parts}
    spans = {}
    for part in parts:
        spans[part["id"]] = start, start + len(part["form"])
        start += len(part["form"])
    return spans
