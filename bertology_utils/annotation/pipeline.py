"""Annotation by a spaCy pipeline, kept in the cache by text and pipeline version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common import cache
from .base import Annotated, Sentence, Word

if TYPE_CHECKING:
    from spacy.tokens import Doc

_PROBE = "She reads the old letters."
_FILE = "sentences.json"
# What must be annotated, and which components of a pipeline do it.
_NEEDED = {"POS": "a morphologizer, or a tagger with an attribute_ruler (parts of speech)", "DEP": "a parser (dependencies)"}


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
        missing = [component for layer, component in _NEEDED.items() if not probe.has_annotation(layer)]
        if missing:
            there = ", ".join(self._nlp.pipe_names) or "no component"
            raise ValueError(f"the spaCy pipeline {place!r} lacks {' and '.join(missing)}; it has: {there}")
        meta = self._nlp.meta
        self.name = f"spaCy {meta['lang']}_{meta['name']} {meta['version']}"
        # Two pipelines can bear one version number; their weights tell them apart.
        self._fingerprint = {
            "pipeline": self.name,
            "spacy": spacy.__version__,
            "weights": hashlib.sha256(self._nlp.to_bytes(exclude=["vocab"])).hexdigest(),
        }

    def annotate(self, texts: Sequence[str]) -> list[Annotated]:
        """See :class:`bertology_utils.annotation.annotators.Annotator`."""
        distinct = sorted(set(texts))
        listing = hashlib.sha256(json.dumps(distinct, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()

        def fill(target: Path, scratch: Path) -> None:
            parsed = [[asdict(sentence) for sentence in _sentences(doc)] for doc in self._nlp.pipe(distinct)]
            (target / _FILE).write_text(json.dumps(parsed))

        key = self._fingerprint | {"texts": listing, "code": cache.code_digest(_sentences, Sentence, Word)}
        folder = cache.entry("annotations", key, fill)
        parsed = json.loads((folder / _FILE).read_text())
        by_text = {
            text: tuple(_sentence(**sentence) for sentence in sentences)
            for text, sentences in zip(distinct, parsed, strict=True)
        }
        return [by_text[text] for text in texts]


def _sentence(text: str, words: list[dict[str, Any]]) -> Sentence:
    return Sentence(text, tuple(Word(**word) for word in words))


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
            words.append(Word(token.text, token.lemma_, token.idx, end, token.pos_, head, token.dep_))
        if words:
            found.append(Sentence(span.text, tuple(words)))
    return found
