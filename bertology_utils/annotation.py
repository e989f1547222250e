"""Annotators: the embedded corpora's gold annotation, a spaCy pipeline's or a CoNLL-U file's, behind one interface."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from .common import listed, opened
from .glue import EMBEDDED, EMBEDDED_TASKS, get_task
from .settings import parse_source, treebank_file

if TYPE_CHECKING:
    from conllu.models import Token, TokenList
    from spacy.tokens import Doc

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
PARAGRAPH = ("newpar", "newdoc")  # comments at which one begins
UPOS = "NOUN PROPN VERB AUX ADJ ADV PRON DET ADP NUM CCONJ SCONJ PART INTJ SYM X PUNCT".split()
# Do heads point along these? Labels of Universal Dependencies, and ClearNLP's where it has another.
RELATIONS = {"nsubj": {"nsubj"}, "obj": {"obj", "dobj"}, "amod": {"amod"}, "det": {"det"}}
_PROBE = "She reads the old letters."
# What must be annotated, and which components of a pipeline do it.
_NEEDED = {
    "POS": "a morphologizer, or a tagger with an attribute_ruler (parts of speech)",
    "DEP": "a parser (dependencies)",
}


@dataclass(frozen=True)
class Word:
    """One word of a sentence, annotated in the manner of Universal Dependencies.

    Attributes:
        form: as it is spelt.
        start, end: the characters of the *text* that it takes up, ``end``
            excluded. A text can have several sentences.
        upos: universal part of speech; "_" for none.
        head: its head's place among the words of the sentence, from 0; -1 for the root.
        deprel: relation to its head.
    """

    form: str
    start: int
    end: int
    upos: str
    head: int
    deprel: str


@dataclass(frozen=True)
class Sentence:
    """One sentence's text and its words in reading order."""

    text: str
    words: tuple[Word, ...]


Annotated = tuple[Sentence, ...]  # of one text, whose characters the words' offsets count


# From texts to the sentences of each; none for an empty text.
Annotator = Callable[[Sequence[str]], list[Annotated]]


@dataclass(frozen=True)
class Treebank:
    """The sentences of a CoNLL-U file that are trees, and why the others are left out.

    Attributes:
        name: the file's.
        texts: the sentences of each text: every sentence is a text, and so is every marked
            paragraph all of whose sentences are there.
        faults: of each sentence that is left out its first faulty line, from 1, and what is wrong.
    """

    name: str
    texts: dict[str, Annotated]
    faults: tuple[tuple[int, str], ...] = ()

    @property
    def sentences(self) -> dict[str, Annotated]:
        """The sentences by their text; of one that stands there twice, one."""
        return {text: parts for text, parts in self.texts.items() if len(parts) == 1}

    @property
    def left_out(self) -> dict[str, int]:
        """How many sentences each kind of fault costs."""
        return dict(Counter(fault for _, fault in self.faults))

    @property
    def lacks_tags(self) -> str:
        """Why its parts of speech say nothing: those of more than one word of a hundred are none of :data:`UPOS`; else empty."""
        words = (word for parts in self.sentences.values() for one in parts for word in one.words)
        tags = Counter(word.upos for word in words)
        others = Counter({tag: count for tag, count in tags.items() if tag not in UPOS})
        if 100 * others.total() <= tags.total():
            return ""
        most = ", ".join(f"{tag!r} {count} times" for tag, count in others.most_common(3))
        return (
            f"the column UPOS of {self.name} has other parts of speech than Universal Dependencies (NOUN,"
            f" VERB, AUX …): {most}; have a tagger write these there"
        )

    def faults_in_words(self) -> str:
        """Each kind of fault with its count and its first line, for messages; empty without faults."""
        first = {fault: line for line, fault in reversed(self.faults)}
        return "; ".join(
            f"{count} left out, {fault} (first in line {first[fault]})"
            for fault, count in self.left_out.items()
        )


def read(path: str | Path) -> Treebank:
    """A CoNLL-U file's sentences.

    A sentence is left out where its IDs do not count 1, 2, 3 …, where it has no FORM, or where
    some HEAD or DEPREL is missing or wrong. Not asked is whether all HEADs together are one tree:
    dependencies are measured one by one, and two roots or a cycle spoil no other arc. Words that
    share one written word ("don't") get their own characters where their forms spell it, else all
    of its characters. Empty nodes are skipped.

    Args:
        path: the file, plain or packed (.conllu.gz).

    Raises:
        ValueError: the file is not CoNLL-U, or no sentence of it is as it should be; the message
            names the line.
    """
    path = treebank_file(path)
    sentences: dict[str, Annotated] = {}
    paragraphs: dict[str, Annotated] = {}
    faults: list[tuple[int, str]] = []
    for blocks in _paragraphs(path):
        text, parts = "", list[Sentence]()
        for tokens, lines in blocks:
            if fault := _fault(tokens, lines):
                faults.append(fault)
                continue
            sentence, spelt = _sentence(tokens)
            sentences[sentence.text] = (sentence,)
            parts.append(moved(sentence, len(text)))
            text += spelt
        if len(parts) == len(blocks):
            paragraphs[text.rstrip(" ")] = tuple(parts)
    bank = Treebank(path.name, sentences | paragraphs, tuple(faults))
    if not sentences:
        why = f" that can be used: {bank.faults_in_words()}" if faults else ""
        raise ValueError(f"{path} has no sentence in it{why}")
    return bank


def sentences_of(path: str | Path, least: int = 0) -> Treebank:
    """A treebank for a page, refused where it has too few arcs, or no parts of speech for rules to go by.

    Args:
        path: as of :func:`read`.
        least: arcs that one of :data:`RELATIONS` must have, or heads cannot be judged along any; 0:
            any number will do.

    Raises:
        FileNotFoundError, ValueError: no such file, or as :func:`read`; or too few arcs, and how
            many there are; or parts of speech that say nothing.
    """
    bank = read(path)
    words = (word for (sentence,) in bank.sentences.values() for word in sentence.words)
    labels = [word.deprel for word in words if word.head >= 0]
    if counted := too_few_arcs(labels, least):
        few = f"too few dependencies ({counted})"
        none = "no sentence with dependencies (columns HEAD and DEPREL)"
        raise ValueError(
            f"treebank={str(path)!r} has {few if labels else none}; wanted are {least} of {', '.join(RELATIONS)} in the"
            " labels of Universal Dependencies: give a larger treebank, or leave treebank empty to measure on the tasks' rows"
            + (f"; of its sentences {bank.faults_in_words()}" if bank.faults else "")
        )
    if why := bank.lacks_tags:
        raise ValueError(f"treebank={str(path)!r}: {why}")
    return bank


def too_few_arcs(labels: Iterable[str], least: int) -> str:
    """How many arcs each of :data:`RELATIONS` has, if none has ``least``: "nsubj 3, obj 0, …"; else empty."""
    counts = Counter(labels)
    arcs = {name: sum(counts[label] for label in named) for name, named in RELATIONS.items()}
    counted = ", ".join(f"{name} {count}" for name, count in arcs.items())
    return counted if max(arcs.values()) < least else ""


def _paragraphs(path: Path) -> list[list[tuple[TokenList, list[int]]]]:
    """Sentences by paragraph, from :func:`_blocks`; up to the first that is marked, each is one."""
    paragraphs: list[list[tuple[TokenList, list[int]]]] = []
    marked = False
    for tokens, lines in _blocks(path):
        begins = any(key.split()[0] in PARAGRAPH for key in tokens.metadata)
        marked = marked or begins
        if begins or not marked:
            paragraphs.append([])
        paragraphs[-1].append((tokens, lines))
    return paragraphs


def _blocks(path: Path) -> Iterator[tuple[TokenList, list[int]]]:
    """The parsed sentences, ID and HEAD as they are written, each with its tokens' lines."""
    import conllu

    as_written = dict.fromkeys(("id", "head"), lambda cells, column: cells[column])
    fields = FIELDS
    with opened(path) as file:
        for blank, block in groupby(enumerate(file, 1), lambda line: not line[1].strip()):
            if blank:
                continue
            numbered = list(block)
            lines = [number for number, line in numbered if not line.lstrip().startswith("#")]
            try:
                (tokens,) = conllu.parse(
                    "".join(line for _, line in numbered), fields, field_parsers=as_written
                )
            except conllu.exceptions.ParseException as error:
                raise ValueError(
                    f"{path} is not a CoNLL-U file: {error} (line {lines[0]} or after)"
                ) from None
            fields = tokens.metadata.get("global.columns", " ".join(fields)).lower().split()
            for token, number in zip(tokens, lines, strict=True):
                if set(FIELDS) - set(token):
                    raise ValueError(
                        f"{path} is not a CoNLL-U file: line {number} lacks a column; wanted: {', '.join(FIELDS)}"
                    )
            if tokens:
                yield tokens, lines


def _fault(tokens: TokenList, lines: Sequence[int]) -> tuple[int, str] | None:
    """The first line at which a sentence is other than Universal Dependencies says, and what is wrong there."""
    words = [pair for pair in zip(tokens, lines, strict=True) if pair[0]["id"].isdecimal()]
    if all(token["form"] == "_" for token in tokens):
        return lines[0], "no FORM"
    read = inside = 0  # the last word, and the last of the written word that it is a part of
    for token, line in zip(tokens, lines, strict=True):
        first, kind, last = _number(token)
        if kind == ".":
            continue  # an empty node
        if first != read + 1 or (kind and not (inside <= read and first <= last <= len(words))):
            return line, "IDs do not count 1, 2, 3 …"
        inside, read = (last, read) if kind else (inside, last)
    if all(token["head"] == "_" for token, _ in words):
        return None  # dependencies are not annotated
    for token, line in words:
        head = token["head"]
        if not head.isdecimal():
            return line, "HEAD is missing or no number"
        if int(head) > len(words):
            return line, "HEAD names no word of the sentence"
        if head == token["id"]:
            return line, "HEAD is the word itself"
        if token["deprel"] in ("", "_"):
            return line, "no DEPREL"
    return None


def _number(token: Token) -> tuple[int, str, int]:
    """An ID in parts: (3, "", 3) of a word, (3, "-", 4) of a written word, (3, ".", 1) of an empty node; zeros if it is none."""
    match = re.fullmatch(r"([0-9]+)(?:([-.])([0-9]+))?", token["id"])
    return (int(match[1]), match[2] or "", int(match[3] or match[1])) if match else (0, "", 0)


def _sentence(tokens: TokenList) -> tuple[Sentence, str]:
    """A sentence without faults, and its characters with the space that follows it."""
    words, text = [token for token in tokens if token["id"].isdecimal()], ""
    spans: list[tuple[int, int]] = []
    for token in tokens:
        first, kind, last = _number(token)
        if kind == "." or first <= len(spans):
            continue  # an empty node, or a part of what was read already
        form = token["form"]
        parts = [word["form"] for word in words[first - 1 : last]]
        starts = [*accumulate(map(len, parts), initial=len(text))]
        apart = "".join(parts) == form
        spans += pairwise(starts) if apart else [(len(text), len(text) + len(form))] * len(parts)
        text += form + " " * ((token["misc"] or {}).get("SpaceAfter") != "No")
    return Sentence(
        text.rstrip(" "), tuple(_word(word, span) for word, span in zip(words, spans, strict=True))
    ), text


def _word(token: Token, span: tuple[int, int]) -> Word:
    return Word(
        token["form"],
        *span,
        "PUNCT" if token["deprel"] == "punct" else token["upos"] or "_",
        int(token["head"]) - 1 if token["head"].isdecimal() else -1,
        token["deprel"] or "dep",
    )


def moved(sentence: Sentence, offset: int) -> Sentence:
    """The sentence as it stands ``offset`` characters farther into a text."""
    words = (
        replace(word, start=word.start + offset, end=word.end + offset) for word in sentence.words
    )
    return Sentence(sentence.text, tuple(words)) if offset else sentence


def load_annotator(annotation: str, tasks: Iterable[str] = EMBEDDED_TASKS) -> Annotator:
    """The annotator that the parameter ``annotation`` names.

    Args:
        annotation: "gold" (the embedded corpora's own, of their dev rows), "spacy:NAME" (an
            installed pipeline or a folder) or "conllu:PATH".
        tasks: names of the tasks whose texts are wanted, for "gold".

    Raises:
        ValueError: as :func:`bertology_utils.settings.parse_source` and :func:`read`; or there are no
            parts of speech, or no dependencies.
        FileNotFoundError: there is no such file or pipeline.
        ConnectionError: see :func:`bertology_utils.settings.parse_source`.
    """
    kind, place = parse_source("annotation", annotation)
    if kind == "gold":
        texts: dict[str, Annotated] = {}
        for task in map(get_task, listed("tasks", tasks)):
            texts |= read(EMBEDDED / task.folder / f"{Path(task.dev_file).stem}.conllu.gz").texts
        return _stored("gold", texts)
    if kind == "conllu":
        bank = read(place)
        if why := bank.lacks_tags:
            raise ValueError(f"annotation={annotation!r}: {why}")
        return _stored(f"CoNLL-U file {bank.name}", bank.texts, bank.faults_in_words())
    return _pipeline(place)


def _stored(name: str, texts: dict[str, Annotated], faults: str = "") -> Annotator:
    """Annotation that is there already, by text; refuses other texts."""

    def annotate(wanted: Sequence[str]) -> list[Annotated]:
        for text in wanted:
            if text and text not in texts:
                raise ValueError(
                    f"{name} has no annotation of {text[:80]!r}{f' (of its sentences {faults})' if faults else ''};"
                    " annotation='spacy:NAME' annotates any text, annotation='conllu:PATH' takes a file in which it stands, and"
                    " treebank='PATH' has notebook 8 measure dependencies on a file's own sentences"
                )
        return [texts[text] if text else () for text in wanted]

    return annotate


def _pipeline(place: str) -> Annotator:
    """A spaCy pipeline, by name or folder; labels of UD and of ClearNLP are both understood downstream."""
    import spacy

    try:
        nlp = spacy.load(place, exclude=["ner", "lemmatizer", "textcat"])
    except OSError:
        raise FileNotFoundError(
            f"no spaCy pipeline {place!r} is installed, nor in such a folder; python -m spacy download {Path(place).name}"
        ) from None
    except (ImportError, ValueError) as error:  # a component or a language that is not installed
        why = " ".join(str(error).split())
        raise ValueError(
            f"the spaCy pipeline {place!r} cannot be loaded here: {why[:300]}"
        ) from None
    probe = nlp(_PROBE)
    missing = [component for layer, component in _NEEDED.items() if not probe.has_annotation(layer)]
    if missing:
        raise ValueError(
            f"the spaCy pipeline {place!r} lacks {' and '.join(missing)}; it has:"
            f" {', '.join(nlp.pipe_names) or 'no component'}"
        )

    def annotate(texts: Sequence[str]) -> list[Annotated]:
        distinct = sorted(set(texts))
        parsed = (tuple(_sentences(document)) for document in nlp.pipe(distinct))
        by_text = dict(zip(distinct, parsed, strict=True))
        return [by_text[text] for text in texts]

    return annotate


def _sentences(doc: Doc) -> list[Sentence]:
    """A parsed document's sentences; tokens of white space are left out, what hangs from them goes to the root."""
    found = []
    for span in doc.sents:
        tokens = [token for token in span if not token.is_space]
        index = {token.i: position for position, token in enumerate(tokens)}
        words = []
        for token in tokens:
            head = -1 if token.head.i == token.i else index.get(token.head.i, -1)
            end = token.idx + len(token.text)
            words.append(Word(token.text, token.idx, end, token.pos_, head, token.dep_))
        if words:
            found.append(Sentence(span.text, tuple(words)))
    return found
