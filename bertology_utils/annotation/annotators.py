"""Annotators: the embedded corpora's gold annotation, a spaCy pipeline's or a CoNLL-U file's, behind one interface."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .. import cache
from ..common import opened
from ..corpora import GLUE
from ..glue import TASKS, get_task
from ..settings import parse_source

if TYPE_CHECKING:
    from conllu.models import Token, TokenList
    from spacy.language import Language
    from spacy.tokens import Doc

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
PARAGRAPH = ("newpar", "newdoc")  # comments at which one begins
NEGATIVE = {("Polarity", "Neg"), ("PronType", "Neg")}  # in FEATS, of negative words
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
        lemma: its base form.
        start, end: the characters of the *text* that it takes up, ``end``
            excluded. A text can have several sentences.
        upos: universal part of speech.
        head: its head's place among the words of the sentence, from 0; -1 for the root.
        deprel: relation to its head.
        negation: True for a negative word ("not", "nobody", "didn't" as one word).
        antecedent: place of the word that a pronoun refers to, in the same
            sentence; None where there is none, or none is known.
    """

    form: str
    lemma: str
    start: int
    end: int
    upos: str
    head: int
    deprel: str
    negation: bool = False
    antecedent: int | None = None


@dataclass(frozen=True)
class Sentence:
    """One sentence's text and its words in reading order."""

    text: str
    words: tuple[Word, ...]


Annotated = tuple[
    Sentence, ...
]  # the sentences of one text; word offsets count the text's characters


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


def sentences_of(path: str | Path, least: int = 0) -> dict[str, Annotated]:
    """A treebank's own sentences, each by its text; of one that stands there twice, one.

    Args:
        path: as of :func:`read`.
        least: arcs that one of :data:`RELATIONS` must have, or heads cannot be judged along any; 0:
            it is not asked.

    Raises:
        FileNotFoundError, ValueError: no such file, or as :func:`read`; or too few arcs, and how
            many there are.
    """
    found: dict[str, Annotated] = {
        text: sentences for text, sentences in read(path).items() if len(sentences) == 1
    }
    labels = Counter(
        word.deprel for (sentence,) in found.values() for word in sentence.words if word.head >= 0
    )
    arcs = {
        name: sum(labels[label] for label in of_relation) for name, of_relation in RELATIONS.items()
    }
    if max(arcs.values()) < least:
        counted = (
            f"too few dependencies ({', '.join(f'{name} {count}' for name, count in arcs.items())})"
        )
        raise ValueError(
            f"treebank={str(path)!r} has {counted if labels else 'no sentence with dependencies (columns HEAD and DEPREL)'};"
            f" wanted are {least} of {', '.join(arcs)} in the labels of Universal Dependencies: give a larger treebank, or"
            " leave treebank empty to measure on the tasks' rows"
        )
    return found


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
            parts = [
                part
                for part in tokens
                if isinstance(part["id"], int) and first <= part["id"] <= inside
            ]
            spans |= _parts(token["form"], parts, len(text))
        else:
            continue  # a part of what was read already, or an empty node
        text += token["form"]
        if (token["misc"] or {}).get("SpaceAfter") != "No":
            text += " "
    words = [token for token in tokens if isinstance(token["id"], int)]
    index = {word["id"]: position for position, word in enumerate(words)}
    return Sentence(
        text.rstrip(" "), tuple(_word(word, spans[word["id"]], index) for word in words)
    ), text


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
    words = (
        replace(word, start=word.start + offset, end=word.end + offset) for word in sentence.words
    )
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


class Annotator(Protocol):
    """Gives every text its sentences.

    Attributes:
        name: for people, with a version where there is one.
        antecedents: True if pronouns know what they refer to.
    """

    name: str
    antecedents: bool

    def annotate(self, texts: Sequence[str]) -> list[Annotated]:
        """The sentences of each text; none for an empty text."""


class StoredAnnotation:
    """Annotation that is there already, by text.

    Args:
        name: see :class:`Annotator`.
        sentences: by text.
        antecedents: see :class:`Annotator`.
    """

    def __init__(self, name: str, sentences: dict[str, Annotated], antecedents: bool):
        self.name = name
        self.antecedents = antecedents
        self._sentences = sentences

    def annotate(self, texts: Sequence[str]) -> list[Annotated]:
        """See :class:`Annotator`.

        Raises:
            ValueError: a text is not among those annotated.
        """
        for text in texts:
            if text and text not in self._sentences:
                raise ValueError(
                    f"{self.name} has no annotation of {text[:80]!r}; annotation='spacy:NAME' annotates any text with a"
                    " spaCy pipeline, annotation='conllu:PATH' takes a CoNLL-U file in which it stands, and"
                    " treebank='PATH' has notebooks 5a and 8 measure dependencies on a CoNLL-U file's own sentences"
                )
        return [self._sentences[text] if text else () for text in texts]


def gold(tasks: Iterable[str] = TASKS) -> StoredAnnotation:
    """The embedded corpora's own annotation of their dev rows.

    Args:
        tasks: names of the tasks whose texts are wanted.
    """
    sentences: dict[str, Annotated] = {}
    for task in map(get_task, tasks):
        sentences |= read(GLUE / task.folder / f"{Path(task.dev_file).stem}.conllu.gz")
    return StoredAnnotation("gold", sentences, antecedents=True)


def load_annotator(annotation: str, tasks: Iterable[str] = TASKS) -> Annotator:
    """The annotator that the parameter ``annotation`` names.

    Args:
        annotation: "gold", "spacy:NAME" (or a folder) or "conllu:PATH".
        tasks: for "gold".

    Raises:
        ValueError, FileNotFoundError: see :func:`bertology_utils.settings.parse_source`,
            :class:`bertology_utils.annotation.annotators.Pipeline` and
            :func:`bertology_utils.annotation.annotators.read`.
        ConnectionError: see :func:`bertology_utils.settings.parse_source`.
    """
    kind, place = parse_source("annotation", annotation)
    if kind == "gold":
        return gold(tasks)
    if kind == "conllu":
        sentences = read(place)
        antecedents = any(
            word.antecedent is not None
            for annotated in sentences.values()
            for sentence in annotated
            for word in sentence.words
        )
        return StoredAnnotation(f"CoNLL-U file {Path(place).name}", sentences, antecedents)
    return Pipeline(place)


class Pipeline:
    """A spaCy pipeline with parts of speech and dependencies.

    Universal Dependencies and ClearNLP labels are both understood downstream.

    Args:
        place: an installed pipeline's name, or a pipeline's folder.

    Raises:
        ValueError: the pipeline lacks what is needed; the message names it.
        FileNotFoundError: there is no such pipeline.
    """

    antecedents = False

    def __init__(self, place: str):
        import spacy

        try:
            self._nlp = spacy.load(place, exclude=["ner", "lemmatizer", "textcat"])
        except OSError:
            raise FileNotFoundError(
                f"no spaCy pipeline {place!r}: neither installed nor a folder with a pipeline in it."
                f" To install it: python -m spacy download {Path(place).name}"
            ) from None
        probe = self._nlp(_PROBE)
        missing = [
            component for layer, component in _NEEDED.items() if not probe.has_annotation(layer)
        ]
        if missing:
            there = ", ".join(self._nlp.pipe_names) or "no component"
            raise ValueError(
                f"the spaCy pipeline {place!r} lacks {' and '.join(missing)}; it has: {there}"
            )
        meta = self._nlp.meta
        self.name = f"spaCy {meta['lang']}_{meta['name']} {meta['version']}"
        # Two pipelines can bear one version number; their weights tell them apart.
        weights = hashlib.sha256(self._nlp.to_bytes(exclude=["vocab"])).hexdigest()
        self._parser = cache.Lazy(lambda: self._nlp, (self.name, spacy.__version__, weights))

    def annotate(self, texts: Sequence[str]) -> list[Annotated]:
        """See :class:`Annotator`."""
        distinct = sorted(set(texts))
        by_text = dict(zip(distinct, cache.cached(_annotated, self._parser, distinct), strict=True))
        return [by_text[text] for text in texts]


def _annotated(
    parser: Language, texts: Sequence[str], scratch: Path | None = None
) -> list[Annotated]:
    """The sentences of each text; ``scratch`` is not needed, and has the cache keep them until they are pruned."""
    return [tuple(_sentences(document)) for document in parser.pipe(texts)]


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
            words.append(
                Word(token.text, token.lemma_, token.idx, end, token.pos_, head, token.dep_)
            )
        if words:
            found.append(Sentence(span.text, tuple(words)))
    return found
