"""Frames as a FrameNet release: the files and the XML of release 1.7.

NLTK's ``FramenetCorpusReader`` reads the result like a real release. What a release has beyond
frames, lexical units and their annotated sentences is left out: definitions, grammatical functions
and phrase types, parts of speech, valence tables, relations between frames, full texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from xml.etree import ElementTree as xml  # noqa: N813

from .mini_framenet import Exemplar, Frame, LexicalUnit

# Far above FrameNet's own identifiers.
FIRST_ID = 9_000_000
# Dates and authors that the layout has a place for.
DATE = {"cDate": "01/01/2026 00:00:00 UTC Thu"}
MADE = {**DATE, "cBy": "mini"}


def documents(frames: Sequence[Frame]) -> dict[str, bytes]:
    """The release's files by name: a file for each frame and lexical unit, and the indexes.

    Indexes that NLTK's reader needs, but that nothing here belongs into, are left empty.
    """
    numbers = count(FIRST_ID)
    made: dict[str, bytes] = {}
    frame_index, unit_index = [], []
    for frame in frames:
        number, ids = next(numbers), {name: next(numbers) for name in frame.elements}
        changed = {"mDate": DATE["cDate"]}
        frame_index.append(_node("frame", {"ID": number, "name": frame.name, **changed}))
        units = []
        for unit in frame.units:
            unit_number, pos = next(numbers), unit.name[-1].upper()
            common = {"ID": unit_number, "name": unit.name, "status": "Finished_Initial"}
            place = {"frameName": frame.name, "frameID": number, "hasAnnotation": "true"}
            unit_index.append(_node("lu", common | place))
            size = len(unit.exemplars)
            counts = _node("sentenceCount", {"total": size, "annotated": size})
            parts = _definition(), counts, _lexeme(unit)
            units.append(_node("lexUnit", {**common, "POS": pos, **MADE}, *parts))
            about = {"ID": unit_number, "name": unit.name, "POS": pos, "frame": frame.name}
            about |= {"frameID": number, "status": "Finished_Initial", "totalAnnotated": size}
            content = _unit(frame, unit, ids, numbers)
            made[f"lu/lu{unit_number}.xml"] = _bytes("lexUnit", about, *content)
        about = {"ID": number, "name": frame.name, **MADE}
        content = [_definition(), *_elements(frame, ids), *units]
        made[f"frame/{frame.name}.xml"] = _bytes("frame", about, *content)
    # An empty list of types would send NLTK's reader into an endless recursion.
    sentient = {"name": "Sentient", "abbrev": "Sentient", "ID": next(numbers)}
    return made | {
        "frameIndex.xml": _bytes("frameIndex", {}, *frame_index),
        "luIndex.xml": _bytes("luIndex", {}, *unit_index),
        "frRelation.xml": _bytes("frameRelations", {}),
        "fulltextIndex.xml": _bytes("fulltextIndex", {}),
        "semTypes.xml": _bytes("semTypes", {}, _node("semType", sentient, _definition())),
    }


def _node(tag: str, attributes: dict[str, object], *content: xml.Element | str) -> xml.Element:
    node = xml.Element(tag, {name: str(value) for name, value in attributes.items()})
    for item in content:
        if isinstance(item, str):
            node.text = item
        else:
            node.append(item)
    return node


def _bytes(tag: str, attributes: dict[str, object], *content: xml.Element) -> bytes:
    namespace = {"xmlns": "http://framenet.icsi.berkeley.edu"}
    root = _node(tag, attributes | namespace, *content)
    xml.indent(root)
    return xml.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _definition() -> xml.Element:
    return _node("definition", {}, "See FrameNet.")


def _lexeme(unit: LexicalUnit) -> xml.Element:
    lemma, _, pos = unit.name.rpartition(".")
    order = {"order": 1, "headword": "false", "breakBefore": "false"}
    return _node("lexeme", {**order, "POS": pos.upper(), "name": lemma})


def _element(name: str, kind: str, attribute: str) -> dict[str, object]:
    colours = {"bgColor": "0000FF" if kind == "Core" else "808080", "fgColor": "FFFFFF"}
    return {**colours, attribute: kind, "abbrev": name, "name": name}


def _elements(frame: Frame, ids: dict[str, int]) -> Iterator[xml.Element]:
    """A frame's elements and core sets."""
    for name, kind in frame.elements.items():
        about = {**_element(name, kind, "coreType"), "ID": ids[name], **MADE}
        yield _node("FE", about, _definition())
    for names in frame.coresets:
        members = [_node("memberFE", {"ID": ids[name], "name": name}) for name in names]
        yield _node("FEcoreSet", {}, *members)


def _unit(
    frame: Frame, unit: LexicalUnit, ids: dict[str, int], numbers: Iterator[int]
) -> Iterator[xml.Element]:
    """The content of a lexical unit's file."""
    listed = [_node("FE", _element(*item, "type")) for item in frame.elements.items()]
    yield _node("header", {}, _node("frame", {}, *listed))
    yield _definition()
    yield _lexeme(unit)
    yield _node("valences", {})
    sentences = []
    for order, exemplar in enumerate(unit.exemplars):
        about = {"sentNo": order, "ID": next(numbers)}
        # Without this layer NLTK could not print the sentence.
        parts = _node("layer", {"rank": 1, "name": "PENN"})
        bare = _node("annotationSet", {"status": "UNANN", "ID": next(numbers), **DATE}, parts)
        layers = _layers(exemplar, ids)
        marked = _node("annotationSet", {"status": "MANUAL", "ID": next(numbers), **DATE}, *layers)
        text = _node("text", {}, exemplar.text)
        sentences.append(_node("sentence", about, text, bare, marked))
    yield _node("subCorpus", {"name": "mini"}, *sentences)


def _layers(exemplar: Exemplar, ids: dict[str, int]) -> Iterator[xml.Element]:
    labels: dict[str, list[dict[str, object]]] = {"FE": [], "GF": [], "PT": [], "Target": []}
    for layer, spans in (("FE", exemplar.elements), ("Target", (exemplar.target,))):
        for span in spans:
            about = {"name": span.name, "start": span.start, "end": span.end - 1}  # inclusive
            labels[layer].append(about | ({"feID": ids[span.name]} if layer == "FE" else {}))
    for name, kind in exemplar.nulls:
        labels["FE"].append({"name": name, "itype": kind, "feID": ids[name]})
    for layer, items in labels.items():
        content = [_node("label", about) for about in items]
        yield _node("layer", {"rank": 1, "name": layer}, *content)
