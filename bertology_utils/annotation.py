"""Annotators: the embedded corpora's gold annotation, a spaCy pipeline's or a CoNLL-U file's, behind one interface."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import listed, opened
from .glue import EMBEDDED, EMBEDDED_TASKS, get_task
from .settings import parse_source, treebank_file

if TYPE_CHECKING:
    from spacy.tokens import Doc

PARAGRAPH = ("newpar", "newdoc")  # comments at which one begins
# The columns of CoNLL-U, and what its lines become: cells by column, the ``line`` and its ID in parts as ``number``.
FIELDS = "id form lemma upos xpos feats head deprel deps misc".split()
Token = dict[str, Any]
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


Sentence = tuple[Word, ...]  # in reading order
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
        faults: what is wrong with sentences that are left out, and the line, from 1, at which that
            is seen in each.
    """

    name: str
    texts: dict[str, Annotated]
    faults: Mapping[str, Sequence[int]]

    @property
    def sentences(self) -> dict[str, Annotated]:
        """The sentences by their text; of one that stands there twice, one."""
        return {text: parts for text, parts in self.texts.items() if len(parts) == 1}

    @property
    def left_out(self) -> dict[str, int]:
        """How many sentences each kind of fault costs."""
        return {fault: len(lines) for fault, lines in self.faults.items()}

    @property
    def lacks_tags(self) -> str:
        """Why its parts of speech say nothing: those of more than one word of a hundred are none of :data:`UPOS`; else empty."""
        words = (word for parts in self.sentences.values() for one in parts for word in one)
        tags = Counter(word.upos for word in words)
        others = Counter({tag: count for tag, count in tags.items() if tag not in UPOS})
        if 100 * others.total() <= tags.total():
            return ""
        most = ", ".join(f"{tag!r} {count} times" for tag, count in others.most_common(3))
        return (
            f"the column UPOS of {self.name} has other parts of speech than Universal Dependencies (NOUN,"
            f" VERB, AUX …): {most}; have a tagger write these there"
        )

    def losses(self, left_out: Mapping[str, int]) -> str:
        """In parentheses how many sentences are left out for each reason, for messages; empty where none is."""
        first = {fault: f", first in line {lines[0]}" for fault, lines in self.faults.items()}
        told = [f"{count} left out, {why}{first.get(why, '')}" for why, count in left_out.items()]
        return f" ({'; '.join(told)})" if told else ""


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
    faults = defaultdict[str, list[int]](list)
    for blocks in _paragraphs(path):
        text, parts = "", []
        for tokens in blocks:
            if found := _fault(tokens):
                line, fault = found
                faults[fault].append(line)
                continue
            alone, spelt = _sentence(tokens)
            sentences[spelt.rstrip(" ")] = (alone,)
            parts.append(_sentence(tokens, len(text))[0])
            text += spelt
        if len(parts) == len(blocks):
            paragraphs[text.rstrip(" ")] = tuple(parts)
    bank = Treebank(path.name, sentences | paragraphs, dict(faults))
    if not sentences:
        raise ValueError(f"{path} has no sentence in it{bank.losses(bank.left_out)}")
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
    words = (word for (sentence,) in bank.sentences.values() for word in sentence)
    if counted := too_few_arcs((word.deprel for word in words if word.head >= 0), least):
        raise ValueError(
            f"treebank={str(path)!r} has too few dependencies ({counted}){bank.losses(bank.left_out)}; wanted are {least} of"
            f" {', '.join(RELATIONS)} in the labels of Universal Dependencies (columns HEAD and DEPREL): give a larger treebank,"
            " or leave treebank empty to measure on the tasks' rows"
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


def _paragraphs(path: Path) -> list[list[list[Token]]]:
    """Sentences by paragraph; up to the first paragraph that is marked, each sentence is one."""
    import conllu

    paragraphs: list[list[list[Token]]] = []
    as_written = dict.fromkeys(("id", "head", "misc"), lambda cells, column: cells[column])
    fields, marked = FIELDS, False
    with opened(path) as file:
        for blank, block in groupby(enumerate(file, 1), lambda line: not line[1].strip()):
            if blank:
                continue
            numbered = list(block)
            lines = [number for number, line in numbered if not line.lstrip().startswith("#")]
            text = "".join(line for _, line in numbered)
            try:
                (tokens,) = conllu.parse(text, fields, field_parsers=as_written)
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
                token.update(line=number, number=_number(token["id"]))
            begins = any(key.split()[0] in PARAGRAPH for key in tokens.metadata)
            if tokens:
                marked = marked or begins
                if begins or not marked:
                    paragraphs.append([])
                paragraphs[-1].append([*tokens])
    return paragraphs


def _number(text: str) -> tuple[int, str, int]:
    """An ID in parts: (3, "", 3) of a word, (3, "-", 4) of a written word, (3, ".", 1) of an empty node; zeros if it is none."""
    match = re.fullmatch(r"([0-9]+)(?:([-.])([0-9]+))?", text)
    return (int(match[1]), match[2] or "", int(match[3] or match[1])) if match else (0, "", 0)


def _fault(tokens: Sequence[Token]) -> tuple[int, str] | None:
    """The first line at which a sentence is other than Universal Dependencies says, and what is wrong there."""
    words = [token for token in tokens if not token["number"][1]]
    if all(token["form"] == "_" for token in tokens):
        return tokens[0]["line"], "no FORM"
    read = inside = 0  # the last word, and the last of the written word that it is a part of
    for token in tokens:
        first, kind, last = token["number"]
        if kind == ".":
            continue  # an empty node
        if first != read + 1 or (kind and not (inside <= read and first <= last <= len(words))):
            return token["line"], "IDs do not count 1, 2, 3 …"
        inside, read = (last, read) if kind else (inside, last)
    if all(word["head"] == "_" for word in words):
        return None  # dependencies are not annotated
    for word in words:
        head = word["head"]
        if not head.isdecimal():
            return word["line"], "HEAD is missing or no number"
        if int(head) > len(words):
            return word["line"], "HEAD names no word of the sentence"
        if head == word["id"]:
            return word["line"], "HEAD is the word itself"
        if word["deprel"] in ("", "_"):
            return word["line"], "no DEPREL"
    return None


def _sentence(tokens: Sequence[Token], start: int = 0) -> tuple[Sentence, str]:
    """A sentence without faults that begins so far into a text, and its characters with the space that follows it."""
    words, text = [token for token in tokens if not token["number"][1]], ""
    spans: list[tuple[int, int]] = []
    for token in tokens:
        first, kind, last = token["number"]
        if kind == "." or first <= len(spans):
            continue  # an empty node, or a part of what was read already
        form, begin = token["form"], start + len(text)
        parts = [word["form"] for word in words[first - 1 : last]]
        apart = pairwise(accumulate(map(len, parts), initial=begin))
        spans += apart if "".join(parts) == form else [(begin, begin + len(form))] * len(parts)
        text += form if "SpaceAfter=No" in token["misc"].split("|") else f"{form} "
    return tuple(
        Word(
            word["form"],
            *span,
            "PUNCT" if word["deprel"] == "punct" else word["upos"] or "_",
            int(word["head"]) - 1 if word["head"].isdecimal() else -1,
            word["deprel"] or "dep",
        )
        for word, span in zip(words, spans, strict=True)
    ), text


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
        return _stored(f"CoNLL-U file {bank.name}{bank.losses(bank.left_out)}", bank.texts)
    return _pipeline(place)


def _stored(name: str, texts: dict[str, Annotated]) -> Annotator:
    """Annotation that is there already, by text; refuses other texts."""

    def annotate(wanted: Sequence[str]) -> list[Annotated]:
        for text in wanted:
            if text and text not in texts:
                raise ValueError(
                    f"{name} has no annotation of {text[:80]!r};"
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
    except (OSError, ImportError, ValueError) as error:  # it is none, or a part is not installed
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
            found.append(tuple(words))
    return found
