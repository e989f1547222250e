"""What the parameter ``annotation`` can name, checked before anything heavy is imported."""

from importlib.util import find_spec
from pathlib import Path

from ..common import one_of

ANNOTATIONS = ("gold", "spacy:NAME", "conllu:PATH")


def parse_annotation(annotation: str) -> tuple[str, str]:
    """Read the ``annotation`` parameter: its kind, and the pipeline or file that it names.

    Raises:
        ValueError: neither "gold" nor "spacy:NAME" nor "conllu:PATH".
        FileNotFoundError: no such pipeline or file.
    """
    kind, _, place = annotation.partition(":")
    place = str(Path(place).expanduser()) if place else place
    if kind not in ("spacy", "conllu") or not place:
        one_of("annotation", annotation, ANNOTATIONS)
    elif kind == "conllu" and not Path(place).is_file():
        raise FileNotFoundError(f"annotation={annotation!r}: there is no file {place}")
    elif kind == "spacy" and not (Path(place).is_dir() or (place.isidentifier() and find_spec(place))):
        raise FileNotFoundError(
            f"annotation={annotation!r}: no spaCy pipeline {place!r}, neither installed nor a folder."
            f" To install it: python -m spacy download {Path(place).name}"
        )
    return kind, place
