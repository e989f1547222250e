"""Frames as a FrameNet release: the files and XML of release 1.7.

NLTK's ``FramenetCorpusReader`` reads the result like a real release.  What a
release has beyond frames, lexical units and their annotated sentences is left
out: definitions, grammatical functions and phrase types, parts of speech,
valence tables, relations between frames, full texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as xml  # noqa: N813

from .mini_framenet import Exemplar, Frame, LexicalUnit

NAMESPACE = "http://framenet.icsi.berkeley.edu"
# Identifiers of this release's own; FrameNet's are far smaller.
FIRST_ID = 9_000_000
POS = {"v": "V", "n": "N", "a": "A"}
# Dates and definitions that the layout has a place for and this release does not give.
_DATE = "01/01/2026 00:00:00 UTC Thu"
_NO_DEFINITION = "See FrameNet."


def documents(frames: Sequence[Frame]) -> dict[str, bytes]:
    """The release's files by name: those that NLTK's reader needs.

    These are the indexes of frames and lexical units, one file for each of
    either, and three more indexes that hold next to nothing.
    """
    numbers = iter(range(FIRST_ID, 2 * FIRST_ID))
    indexes = {
        name: _root(name) for name in ("frameIndex", "luIndex", "frameRelations", "fulltextIndex")
    }
    made: dict[str, bytes] = {}
    for frame in frames:
        made |= _frame_documents(frame, indexes, numbers)
    for name, root in indexes.items():
        made[f"{'frRelation' if name == 'frameRelations' else name}.xml"] = _bytes(root)
    return made | {"semTypes.xml": _bytes(_types(numbers))}


def _frame_documents(
    frame: Frame, indexes: dict[str, xml.Element], numbers: Iterator[int]
) -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    ids = {"": next(numbers), **{name: next(numbers) for name in frame.elements}}
    xml.SubElement(indexes["frameIndex"], "frame", ID=str(ids[""]), name=frame.name, mDate=_DATE)
    listed = _frame_file(frame, ids)
    for unit in frame.units:
        number = next(numbers)
        common = {"ID": str(number), "name": unit.name, "status": "Finished_Initial"}
        xml.SubElement(
            indexes["luIndex"],
            "lu",
            common,
            frameName=frame.name,
            frameID=str(ids[""]),
            hasAnnotation="true",
        )
        item = xml.SubElement(listed, "lexUnit", common, POS=_pos(unit), cDate=_DATE, cBy="mini")
        xml.SubElement(item, "definition").text = _NO_DEFINITION
        xml.SubElement(
            item,
            "sentenceCount",
            total=str(len(unit.exemplars)),
            annotated=str(len(unit.exemplars)),
        )
        _lexeme(item, unit)
        made[f"lu/lu{number}.xml"] = _bytes(_unit_file(frame, unit, number, ids, numbers))
    return made | {f"frame/{frame.name}.xml": _bytes(listed)}


def _types(numbers: Iterator[int]) -> xml.Element:
    # An empty list would send NLTK's reader into an endless recursion.
    root = _root("semTypes")
    item = xml.SubElement(
        root, "semType", name="Sentient", abbrev="Sentient", ID=str(next(numbers))
    )
    xml.SubElement(item, "definition").text = _NO_DEFINITION
    return root


def _pos(unit: LexicalUnit) -> str:
    return POS[unit.name.rpartition(".")[2]]


def _root(tag: str, **attributes: str) -> xml.Element:
    return xml.Element(tag, {**attributes, "xmlns": NAMESPACE})


def _bytes(root: xml.Element) -> bytes:
    xml.indent(root)
    return xml.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _lexeme(parent: xml.Element, unit: LexicalUnit) -> None:
    lemma = unit.name.rpartition(".")[0]
    xml.SubElement(
        parent,
        "lexeme",
        order="1",
        headword="false",
        breakBefore="false",
        POS=_pos(unit),
        name=lemma,
    )


def _element(
    parent: xml.Element, name: str, kind: str, kind_attribute: str, **more: str
) -> xml.Element:
    colours = {"bgColor": "0000FF" if kind == "Core" else "808080", "fgColor": "FFFFFF"}
    return xml.SubElement(
        parent, "FE", {**colours, kind_attribute: kind, "abbrev": name, "name": name, **more}
    )


def _frame_file(frame: Frame, ids: dict[str, int]) -> xml.Element:
    root = _root("frame", ID=str(ids[""]), name=frame.name, cDate=_DATE, cBy="mini")
    xml.SubElement(root, "definition").text = _NO_DEFINITION
    for name, kind in frame.elements.items():
        item = _element(root, name, kind, "coreType", ID=str(ids[name]), cDate=_DATE, cBy="mini")
        xml.SubElement(item, "definition").text = _NO_DEFINITION
    for names in frame.coresets:
        declared = xml.SubElement(root, "FEcoreSet")
        for name in names:
            xml.SubElement(declared, "memberFE", ID=str(ids[name]), name=name)
    return root


def _unit_file(
    frame: Frame, unit: LexicalUnit, number: int, ids: dict[str, int], numbers: Iterator[int]
) -> xml.Element:
    root = _root(
        "lexUnit",
        ID=str(number),
        name=unit.name,
        POS=_pos(unit),
        frame=frame.name,
        frameID=str(ids[""]),
        status="Finished_Initial",
        totalAnnotated=str(len(unit.exemplars)),
    )
    header = xml.SubElement(xml.SubElement(root, "header"), "frame")
    for name, kind in frame.elements.items():
        _element(header, name, kind, "type")
    xml.SubElement(root, "definition").text = _NO_DEFINITION
    _lexeme(root, unit)
    xml.SubElement(root, "valences")
    corpus = xml.SubElement(root, "subCorpus", name="mini")
    for order, exemplar in enumerate(unit.exemplars):
        sentence = xml.SubElement(corpus, "sentence", sentNo=str(order), ID=str(next(numbers)))
        xml.SubElement(sentence, "text").text = exemplar.text
        _annotate(sentence, exemplar, ids, numbers)
    return root


def _annotate(
    sentence: xml.Element, exemplar: Exemplar, ids: dict[str, int], numbers: Iterator[int]
) -> None:
    bare = xml.SubElement(
        sentence, "annotationSet", status="UNANN", ID=str(next(numbers)), cDate=_DATE
    )
    xml.SubElement(
        bare, "layer", rank="1", name="PENN"
    )  # without it NLTK could not print the sentence
    marked = xml.SubElement(
        sentence, "annotationSet", status="MANUAL", ID=str(next(numbers)), cDate=_DATE
    )
    layers = {
        name: xml.SubElement(marked, "layer", rank="1", name=name)
        for name in ("FE", "GF", "PT", "Target")
    }
    for name, spans in (("FE", exemplar.elements), ("Target", (exemplar.target,))):
        for span in spans:
            # FrameNet's ends are inclusive.
            label = xml.SubElement(
                layers[name], "label", name=span.name, start=str(span.start), end=str(span.end - 1)
            )
            if name == "FE":
                label.set("feID", str(ids[span.name]))
    for name, kind in exemplar.nulls:
        xml.SubElement(layers["FE"], "label", name=name, itype=kind, feID=str(ids[name]))
