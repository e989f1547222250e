"""A miniature FrameNet: hand-written sentences in FrameNet's own XML (§4.2).

The source is ``mini_framenet.txt``, one annotated sentence a line; its head
explains the notation.  :func:`write` turns it into the folder layout of
FrameNet's data releases, so that NLTK's reader reads either alike.  Frame, frame
element and lexical unit names, core status and core sets are FrameNet's
(releases 1.5 and 1.7, which agree on them); the sentences are the project's
own, but for the one that the paper's Figure 3 shows.  What the releases have
beyond that is left out: definitions, grammatical functions and phrase types,
parts of speech, valence tables, relations between frames, full texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree as xml

SOURCE = Path(__file__).with_suffix(".txt")
NAMESPACE = "http://framenet.icsi.berkeley.edu"
TAGS = ("pass", "long", "wide", "near")
NULLS = ("DNI", "INI", "CNI")
# Identifiers of this release's own; FrameNet's are far smaller.
FIRST_ID = 9_000_000
POS = {"v": "V", "n": "N", "a": "A"}
# A bracketed element, the starred target, a null element in braces, or a plain token.
_PART = re.compile(r"\[(\w+) ([^\]]+)\]|\*([^*]+)\*|\{(\w+) (\w+)\}|([^\s\[\]*{}]+)")


@dataclass(frozen=True)
class Span:
    """A frame element (or the target) with its characters ``start`` to ``end``, ``end`` excluded."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Exemplar:
    """One annotated sentence.

    Args:
        text: Its tokens with single spaces between, punctuation included, as in FrameNet.
        target: The word that evokes the frame.
        elements: The expressed frame elements, in order.
        nulls: Core elements that are not expressed, with their type of null instantiation.
        expected: ``"pass"`` if it is written to pass the paper's filters, or the one that it
            is written to fail: ``"long"``, ``"wide"`` (its core elements) or ``"near"``.
    """

    text: str
    target: Span
    elements: tuple[Span, ...]
    nulls: tuple[tuple[str, str], ...]
    expected: str


@dataclass(frozen=True)
class LexicalUnit:
    """A lemma with its part of speech ("buy.v") in one frame."""

    name: str
    exemplars: tuple[Exemplar, ...]


@dataclass(frozen=True)
class Frame:
    """A frame with the names of its core elements, its core sets, and other elements by core type."""

    name: str
    core: tuple[str, ...]
    coresets: tuple[tuple[str, ...], ...]
    other: tuple[tuple[str, str], ...]
    units: tuple[LexicalUnit, ...]

    @property
    def elements(self) -> dict[str, str]:
        """Core type by element name."""
        return {**dict.fromkeys(self.core, "Core"), **dict(self.other)}


@lru_cache(maxsize=1)
def frames() -> tuple[Frame, ...]:
    """The source table, read.

    Raises:
        ValueError: A line of it breaks the notation; the message names the line.
    """
    blocks: list[dict] = []
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        keyword, _, rest = line.strip().partition(" ")
        if not keyword or keyword == "#" or keyword.startswith("#"):
            continue
        try:
            _take(blocks, keyword, rest)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{SOURCE.name}, line {number}: {error}") from error
    return tuple(_frame(block) for block in blocks)


def _take(blocks: list[dict], keyword: str, rest: str) -> None:
    if keyword == "frame":
        blocks.append({"name": rest, "core": (), "coresets": [], "other": [], "units": []})
    elif keyword == "core":
        blocks[-1]["core"] = tuple(rest.split())
    elif keyword == "coreset":
        blocks[-1]["coresets"].append(tuple(rest.split()))
    elif keyword == "other":
        parts = (re.fullmatch(r"(\w+)(?:\(([\w-]+)\))?", item).groups() for item in rest.split())
        blocks[-1]["other"] += [(name, kind or "Peripheral") for name, kind in parts]
    elif keyword == "lu":
        blocks[-1]["units"].append((rest, []))
    elif keyword in TAGS:
        blocks[-1]["units"][-1][1].append(_exemplar(keyword, rest, blocks[-1]))
    else:
        raise ValueError(f"{keyword!r} is none of frame, core, coreset, other, lu, {', '.join(TAGS)}")


def _exemplar(tag: str, marked: str, block: dict) -> Exemplar:
    text, targets, elements, nulls = "", [], [], []
    known = {*block["core"], *(name for name, _ in block["other"])}
    for name, inside, target, null, kind, plain in _PART.findall(marked):
        if null:
            if null not in block["core"] or kind not in NULLS:
                raise ValueError(f"{{{null} {kind}}} is no core element with one of {', '.join(NULLS)}")
            nulls.append((null, kind))
            continue
        start = len(text) + (1 if text else 0)
        text = f"{text} {inside or target or plain}".strip()
        if name:
            if name not in known:
                raise ValueError(f"{block['name']} lists no element {name!r}")
            elements.append(Span(name, start, len(text)))
        elif target:
            targets.append(Span("Target", start, len(text)))
    if len(targets) != 1 or not elements:
        raise ValueError("a sentence needs one target and at least one element")
    return Exemplar(text, targets[0], tuple(elements), tuple(nulls), tag)


def _frame(block: dict) -> Frame:
    units = tuple(LexicalUnit(name, tuple(exemplars)) for name, exemplars in block["units"])
    return Frame(block["name"], block["core"], tuple(block["coresets"]), tuple(block["other"]), units)


def write(folder: Path) -> None:
    """Write the release into an empty or missing folder.

    The files are those that NLTK's ``FramenetCorpusReader`` needs: the indexes
    of frames and lexical units, one file for each of either, and the three
    further indexes, which are empty.

    Args:
        folder: Where to.

    Raises:
        FileExistsError: The folder is not empty.
    """
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; name another folder or empty it")
    for name in ("frame", "lu", "fulltext"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    numbers = iter(range(FIRST_ID, 2 * FIRST_ID))
    frame_index, unit_index = _root("frameIndex"), _root("luIndex")
    for frame in frames():
        ids = {"": next(numbers), **{name: next(numbers) for name in frame.elements}}
        xml.SubElement(frame_index, "frame", ID=str(ids[""]), name=frame.name, mDate=_DATE)
        listed = _frame_file(frame, ids)
        for unit in frame.units:
            number = next(numbers)
            common = {"ID": str(number), "name": unit.name, "status": "Finished_Initial"}
            xml.SubElement(unit_index, "lu", common, frameName=frame.name, frameID=str(ids[""]), hasAnnotation="true")
            item = xml.SubElement(listed, "lexUnit", common, POS=POS[unit.name.rpartition(".")[2]], cDate=_DATE, cBy="mini")
            xml.SubElement(item, "definition").text = _NO_DEFINITION
            xml.SubElement(item, "sentenceCount", total=str(len(unit.exemplars)), annotated=str(len(unit.exemplars)))
            _lexeme(item, unit)
            _save(_unit_file(frame, unit, number, ids, numbers), folder / "lu" / f"lu{number}.xml")
        _save(listed, folder / "frame" / f"{frame.name}.xml")
    types = _root("semTypes")
    # An empty list would send NLTK's reader into an endless recursion.
    xml.SubElement(xml.SubElement(types, "semType", name="Sentient", abbrev="Sentient", ID=str(next(numbers))),
                   "definition").text = _NO_DEFINITION
    for root in (frame_index, unit_index, types, _root("frameRelations"), _root("fulltextIndex")):
        name = "frRelation" if root.tag == "frameRelations" else root.tag
        _save(root, folder / f"{name}.xml")


# Dates and definitions that the layout has a place for and this release does not give.
_DATE = "01/01/2026 00:00:00 UTC Thu"
_NO_DEFINITION = "See FrameNet."


def _root(tag: str, **attributes: str) -> xml.Element:
    return xml.Element(tag, {**attributes, "xmlns": NAMESPACE})


def _save(root: xml.Element, path: Path) -> None:
    xml.indent(root)
    path.write_bytes(xml.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n")


def _lexeme(parent: xml.Element, unit: LexicalUnit) -> None:
    lemma, _, pos = unit.name.rpartition(".")
    xml.SubElement(parent, "lexeme", order="1", headword="false", breakBefore="false", POS=POS[pos], name=lemma)


def _element(parent: xml.Element, name: str, kind: str, kind_attribute: str, **more: str) -> xml.Element:
    colours = {"bgColor": "0000FF" if kind == "Core" else "808080", "fgColor": "FFFFFF"}
    return xml.SubElement(parent, "FE", {**colours, kind_attribute: kind, "abbrev": name, "name": name, **more})


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


def _unit_file(frame: Frame, unit: LexicalUnit, number: int, ids: dict[str, int], numbers) -> xml.Element:
    root = _root("lexUnit", ID=str(number), name=unit.name, POS=POS[unit.name.rpartition(".")[2]], frame=frame.name,
                 frameID=str(ids[""]), status="Finished_Initial", totalAnnotated=str(len(unit.exemplars)))
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


def _annotate(sentence: xml.Element, exemplar: Exemplar, ids: dict[str, int], numbers) -> None:
    bare = xml.SubElement(sentence, "annotationSet", status="UNANN", ID=str(next(numbers)), cDate=_DATE)
    xml.SubElement(bare, "layer", rank="1", name="PENN")  # without it NLTK could not print the sentence
    marked = xml.SubElement(sentence, "annotationSet", status="MANUAL", ID=str(next(numbers)), cDate=_DATE)
    layers = {name: xml.SubElement(marked, "layer", rank="1", name=name) for name in ("FE", "GF", "PT", "Target")}
    for name, spans in (("FE", exemplar.elements), ("Target", (exemplar.target,))):
        for span in spans:
            # FrameNet's ends are inclusive.
            label = xml.SubElement(layers[name], "label", name=span.name, start=str(span.start), end=str(span.end - 1))
            if name == "FE":
                label.set("feID", str(ids[span.name]))
    for name, kind in exemplar.nulls:
        xml.SubElement(layers["FE"], "label", name=name, itype=kind, feID=str(ids[name]))
