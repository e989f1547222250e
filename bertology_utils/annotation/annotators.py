"""Where annotation comes from: one interface, three sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..corpora import GLUE
from ..glue.tasks import TASKS, get_task
from . import treebank
from .base import Annotated, Annotator
from .sources import parse_annotation


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


def gold(tasks: Iterable[str] = TASKS) -> Known:
    """The embedded corpora's own annotation of their dev rows.

    Args:
        tasks: names of the tasks whose texts are wanted.
    """
    sentences: dict[str, Annotated] = {}
    for task in map(get_task, tasks):
        sentences |= treebank.read(GLUE / task.folder / f"{Path(task.dev_file).stem}.conllu.gz")
    return Known("gold", sentences, antecedents=True)


def load_annotator(annotation: str, tasks: Iterable[str] = TASKS) -> Annotator:
    """The annotator that the parameter ``annotation`` names.

    Args:
        annotation: "gold", "spacy:NAME" (or a folder) or "conllu:PATH".
        tasks: for "gold".

    Raises:
        ValueError, FileNotFoundError: see :func:`bertology_utils.annotation.sources.parse_annotation`,
            :class:`bertology_utils.annotation.pipeline.Pipeline` and
            :func:`bertology_utils.annotation.treebank.read`.
    """
    kind, place = parse_annotation(annotation)
    if kind == "gold":
        return gold(tasks)
    if kind == "conllu":
        sentences = treebank.read(place)
        antecedents = any(
            word.antecedent is not None
            for annotated in sentences.values()
            for sentence in annotated
            for word in sentence.words
        )
        return Known(f"CoNLL-U file {Path(place).name}", sentences, antecedents)
    from .pipeline import Pipeline

    return Pipeline(place)
