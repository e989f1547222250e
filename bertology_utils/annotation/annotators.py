"""Where annotation comes from: one interface, three sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..corpora import MAKERS, Sentence, generate
from ..glue.sources import parse_annotation

Annotated = tuple[Sentence, ...]  # the sentences of one text; word offsets count the text's characters


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


class Known:
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
                    " spaCy pipeline, and annotation='conllu:PATH' takes a CoNLL-U file in which it stands"
                )
        return [self._sentences[text] if text else () for text in texts]


def gold(tasks: Iterable[str] = MAKERS) -> Known:
    """The embedded corpora's own annotation.

    Args:
        tasks: names of the tasks whose texts are wanted.
    """
    rows = (row for task in tasks for split in generate(task).values() for row in split)
    sentences = {text: row.sentences[field] for row in rows for field, text in row.text.items()}
    return Known("gold", sentences, antecedents=True)


def load(annotation: str, tasks: Iterable[str] = MAKERS) -> Annotator:
    """The annotator that the parameter ``annotation`` names.

    Args:
        annotation: "gold", "spacy:NAME" (or a folder) or "conllu:PATH".
        tasks: for "gold".

    Raises:
        ValueError, FileNotFoundError: see :func:`bertology_utils.glue.sources.parse_annotation`,
            :class:`bertology_utils.annotation.pipeline.Pipeline` and
            :func:`bertology_utils.annotation.treebank.read`.
    """
    kind, place = parse_annotation(annotation)
    if kind == "gold":
        return gold(tasks)
    if kind == "conllu":
        from .treebank import read

        return Known(f"CoNLL-U file {place.rsplit('/', 1)[-1]}", read(place), antecedents=False)
    from .pipeline import Pipeline

    return Pipeline(place)
