"""Annotated example sentences of a FrameNet release, read as a stream (§4.2).

NLTK's ``FramenetCorpusReader`` is the reader of record, and a test holds this
one to it; its walk through a whole release takes minutes, this one's seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

NAMESPACE = "{http://framenet.icsi.berkeley.edu}"
UNIT, FRAME, SENTENCE = (NAMESPACE + tag for tag in ("lexUnit", "frame", "sentence"))


@dataclass(frozen=True)
class Span:
    """A labelled stretch of a sentence: characters ``start`` to ``end``, ``end`` excluded."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Exemplar:
    """One annotated sentence of a lexical unit.

    Attributes:
        unit: the lexical unit ("address.v").
        unit_id: its number, which names its file.
        frame: the frame that it evokes.
        sentence_id, set_id: the release's numbers of the sentence and its annotation.
        text: the sentence, its tokens with spaces between.
        target: where the predicate stands; several spans if it is broken.
        elements: the expressed frame elements of the first rank, by position.
        core: names of the frame's elements whose ``coreType`` is "Core".
    """

    unit: str
    unit_id: int
    frame: str
    sentence_id: int
    set_id: int
    text: str
    target: tuple[Span, ...]
    elements: tuple[Span, ...]
    core: tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """Something in a release that cannot be used: where, and what."""

    file: str
    what: str


def read_unit(path: Path) -> tuple[list[Exemplar], list[Problem]]:
    """All exemplars of one lexical unit's file.

    Args:
        path: an ``lu*.xml``.

    Returns:
        The exemplars, and what had to be left out: a broken file as a whole, or
        single annotations without a target or with a span outside the sentence.
    """
    exemplars: list[Exemplar] = []
    problems: list[Problem] = []
    unit: dict[str, str] = {}
    core: tuple[str, ...] = ()
    try:
        # No entities and no network: a release is data from outside.
        for event, element in etree.iterparse(
            str(path), events=("start", "end"), tag=(UNIT, FRAME, SENTENCE), resolve_entities=False, no_network=True
        ):
            if event == "start":
                unit = dict(element.attrib) if element.tag == UNIT else unit
                continue
            if element.tag == FRAME:
                elements = element.iterfind(NAMESPACE + "FE")
                core = tuple(sorted({fe.attrib["name"] for fe in elements if fe.attrib["type"] == "Core"}))
            elif element.tag == SENTENCE:
                _read_sentence(element, unit, core, path.name, exemplars, problems)
            element.clear()
    except (etree.XMLSyntaxError, OSError, KeyError, TypeError, ValueError) as error:
        return [], [Problem(path.name, f"cannot be read: {type(error).__name__}: {error}")]
    return exemplars, problems


def _read_sentence(element, unit: dict, core: tuple[str, ...], file: str, exemplars: list, problems: list) -> None:
    text = element.findtext(NAMESPACE + "text") or ""
    sentence = int(element.attrib["ID"])
    for annotation in element.iterfind(NAMESPACE + "annotationSet"):
        if annotation.get("status") == "UNANN" or "cxnID" in annotation.attrib:
            continue  # parts of speech only, or a construction
        layers = {(layer.get("name"), layer.get("rank", "1")): layer for layer in annotation.iterfind(NAMESPACE + "layer")}
        number = int(annotation.attrib["ID"])
        try:
            target = _spans(layers.get(("Target", "1")), text)
            # Rank 2 and 3 annotate the same words a second time.
            elements = _spans(layers.get(("FE", "1")), text)
            if not target:
                raise ValueError("the target is not marked")
        except ValueError as error:
            problems.append(Problem(file, f"sentence {sentence}, annotation {number}: {error}"))
            continue
        exemplars.append(
            Exemplar(unit["name"], int(unit["ID"]), unit["frame"], sentence, number, text, target, elements, core)
        )


def _spans(layer, text: str) -> tuple[Span, ...]:
    """The expressed labels of a layer; those without a place are null instantiations."""
    if layer is None:
        return ()
    spans = []
    for label in layer.iterfind(NAMESPACE + "label"):
        if label.get("start") is None:
            continue
        if label.get("end") is None:
            raise ValueError(f"{label.get('name')} starts and does not end")
        name, start, end = label.get("name"), int(label.get("start")), int(label.get("end")) + 1  # inclusive in the file
        if not 0 <= start < end <= len(text):
            raise ValueError(f"{name} spans characters {start} to {end - 1} of a sentence of {len(text)}")
        if not text[start:end].strip():
            raise ValueError(f"{name} spans nothing but spaces, characters {start} to {end - 1}")
        spans.append(Span(name, start, end))
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, span.name)))


def read_core_sets(paths: Iterable[Path]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Elements in a frame's declared core sets, by frame; frames that declare none are left out.

    Args:
        paths: the release's ``frame/*.xml``.

    Returns:
        The elements, and the files that could not be read.
    """
    declared: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            root = etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
            members = {member.attrib["name"] for member in root.iterfind(f"{NAMESPACE}FEcoreSet/{NAMESPACE}memberFE")}
            name = root.attrib["name"]
        except (etree.XMLSyntaxError, OSError, KeyError) as error:
            problems.append(Problem(path.name, f"cannot be read: {type(error).__name__}: {error}"))
            continue
        if members:
            declared[name] = tuple(sorted(members))
    return declared, problems
