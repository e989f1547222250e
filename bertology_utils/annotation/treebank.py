"""Annotation from a CoNLL-U file (https://universaldependencies.org/format.html)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.textfile import opened
from .base import Annotated, Sentence, Word

if TYPE_CHECKING:
    from conllu.models import Token, TokenList

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
PARAGRAPH = ("newpar", "newdoc")  # comments at which one begins
NEGATIVE = {("Polarity", "Neg"), ("PronType", "Neg")}  # in FEATS, of negative words


def read(path: str | Path) -> dict[str, Annotated]:
    """The texts of a CoNLL-U file with their sentences: every sentence is a text, and so is every marked paragraph.

    Words that share one orthographic word ("don't") get their own characters
    where their forms spell it, else all of its characters. Empty nodes are left
    out. In MISC, ``Antecedent=ID`` names the word of the same sentence that a
    pronoun refers to.

    Args:
        path: the file, plain or packed (.conllu.gz).

    Raises:
        ValueError: the file is not CoNLL-U; the message names it.
    """
    sentences: dict[str, Annotated] = {}
    paragraphs: dict[str, Annotated] = {}
    for paragraph in _paragraphs(Path(path)):
        text, placed = "", []
        for tokens in paragraph:
            sentence, spelt = _sentence(tokens)
            sentences[sentence.text] = (sentence,)
            placed.append(_moved(sentence, len(text)))
            text += spelt
        paragraphs[text.rstrip(" ")] = tuple(placed)
    return sentences | paragraphs


def check_treebank(path: str | Path) -> None:
    """Refuse a file that does not begin with a sentence in CoNLL-U; the rest of it is not read.

    Raises:
        FileNotFoundError, ValueError: no such file, or as :func:`read`.
    """
    next(_parsed(Path(path)))


def _paragraphs(path: Path) -> Iterator[list[TokenList]]:
    """The parsed sentences of each paragraph; up to the first that is marked, each sentence is one."""
    paragraph: list[TokenList] = []
    marked = False
    for tokens in _parsed(path):
        begins = any(key.split()[0] in PARAGRAPH for key in tokens.metadata)
        marked = marked or begins
        if paragraph and (begins or not marked):
            yield paragraph
            paragraph = []
        paragraph.append(tokens)
    yield paragraph


def _parsed(path: Path) -> Iterator[TokenList]:
    """The parsed sentences, one after another; at least one."""
    import conllu

    found = False
    try:
        with opened(path.expanduser()) as file:
            for tokens in conllu.parse_incr(file):
                if any(set(FIELDS) - set(token) for token in tokens):
                    text = tokens.metadata.get("text", tokens)
                    raise ValueError(
                        f"{path} is not a CoNLL-U file: a word of {text!r} lacks a column; wanted: {', '.join(FIELDS)}"
                    )
                if tokens:
                    found = True
                    yield tokens
    except conllu.exceptions.ParseException as error:
        raise ValueError(f"{path} is not a CoNLL-U file: {error}") from None
    if not found:
        raise ValueError(f"{path} has no sentence in it")


def _sentence(tokens: TokenList) -> tuple[Sentence, str]:
    """A sentence, and its characters with the space that follows it."""
    text, spans = "", {}
    inside = 0  # the last word of the orthographic word that is being read
    for token in tokens:
        number = token["id"]
        if isinstance(number, int) and number > inside:
            spans[number] = len(text), len(text) + len(token["form"])
        elif isinstance(number, tuple) and number[1] == "-":
            first, _, inside = number
            parts = [part for part in tokens if isinstance(part["id"], int) and first <= part["id"] <= inside]
            spans |= _parts(token["form"], parts, len(text))
        else:
            continue  # a part of what was read already, or an empty node
        text += token["form"]
        if (token["misc"] or {}).get("SpaceAfter") != "No":
            text += " "
    words = [token for token in tokens if isinstance(token["id"], int)]
    index = {word["id"]: position for position, word in enumerate(words)}
    return Sentence(text.rstrip(" "), tuple(_word(word, spans[word["id"]], index) for word in words)), text


def _word(token: Token, span: tuple[int, int], index: dict[int, int]) -> Word:
    antecedent = (token["misc"] or {}).get("Antecedent") or ""
    return Word(
        token["form"],
        token["lemma"] or "",
        *span,
        token["upos"] or "X",
        index.get(token["head"], -1),
        token["deprel"] or "dep",
        not NEGATIVE.isdisjoint((token["feats"] or {}).items()),
        index.get(int(antecedent)) if antecedent.isdecimal() else None,
    )


def _moved(sentence: Sentence, offset: int) -> Sentence:
    """The sentence as it stands ``offset`` characters into a text."""
    words = (replace(word, start=word.start + offset, end=word.end + offset) for word in sentence.words)
    return Sentence(sentence.text, tuple(words)) if offset else sentence


def _parts(form: str, parts: list[Token], start: int) -> dict[int, tuple[int, int]]:
    """Characters of the words of one orthographic word."""
    if "".join(part["form"] for part in parts) != form:
        return {part["id"]: (start, start + len(form)) for part in parts}
    spans = {}
    for part in parts:
        spans[part["id"]] = start, start + len(part["form"])
        start += len(part["form"])
    return spans
