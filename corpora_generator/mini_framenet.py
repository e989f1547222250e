"""A miniature FrameNet: hand-written sentences with frame-semantic annotation (§4.2).

The source is ``mini_framenet.txt``, one annotated sentence a line; its head
explains the notation.  Frame, frame element and lexical unit names, core status
and core sets are those of FrameNet 1.7; the sentences are the project's own, but
for the one that the paper's Figure 3 shows.  :mod:`.framenet_xml` writes it as a
FrameNet release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bertology_utils.framenet.release import Span

SOURCE = Path(__file__).with_suffix(".txt")
TAGS = ("pass", "long", "wide", "near")
NULLS = ("DNI", "INI", "CNI")
# A bracketed element, the starred target, a null element in braces, or a plain token.
_PART = re.compile(r"\[(\w+) ([^\]]+)\]|\*([^*]+)\*|\{(\w+) (\w+)\}|([^\s\[\]*{}]+)")


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
        if not keyword or keyword.startswith("#"):
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
        names = tuple(rest.split())
        if not set(names) <= set(blocks[-1]["core"]):
            raise ValueError(f"a core set holds core elements only, not {rest}")
        blocks[-1]["coresets"].append(names)
    elif keyword == "other":
        for item in rest.split():
            match = re.fullmatch(r"(\w+)(?:\(([\w-]+)\))?", item)
            if match is None:
                raise ValueError(f"{item!r} is neither NAME nor NAME(TYPE)")
            blocks[-1]["other"].append((match[1], match[2] or "Peripheral"))
    elif keyword == "lu":
        blocks[-1]["units"].append((rest, []))
    elif keyword in TAGS:
        blocks[-1]["units"][-1][1].append(_exemplar(keyword, rest, blocks[-1]))
    else:
        raise ValueError(
            f"{keyword!r} is none of frame, core, coreset, other, lu, {', '.join(TAGS)}"
        )


def _exemplar(tag: str, marked: str, block: dict) -> Exemplar:
    text, targets, elements, nulls = "", [], [], []
    stray = _PART.sub("", marked).strip()
    if stray:
        raise ValueError(f"{stray!r} belongs to no [ELEMENT words], *target* or {{ELEMENT TYPE}}")
    known = {*block["core"], *(name for name, _ in block["other"])}
    for name, inside, target, null, kind, plain in _PART.findall(marked):
        if null:
            if null not in block["core"] or kind not in NULLS:
                raise ValueError(
                    f"{{{null} {kind}}} is no core element with one of {', '.join(NULLS)}"
                )
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
    return Frame(
        block["name"], block["core"], tuple(block["coresets"]), tuple(block["other"]), units
    )
