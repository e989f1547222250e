"""A miniature FrameNet: hand-written sentences with frame-semantic annotation (§4.2).

The source is ``mini_framenet.txt``, one annotated sentence a line; its head explains the notation.
The names of frames, frame elements and lexical units, core status and core sets are those of
FrameNet 1.7. The sentences are the project's own, except for the one that the paper's Figure 3
shows. :mod:`.framenet_xml` writes it as a FrameNet release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
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


@dataclass
class LexicalUnit:
    """A lemma with its part of speech ("buy.v") in one frame."""

    name: str
    exemplars: list[Exemplar] = field(default_factory=list)


@dataclass
class Frame:
    """A frame: its core elements, its core sets, and its other elements by core type."""

    name: str
    core: list[str] = field(default_factory=list)
    coresets: list[list[str]] = field(default_factory=list)
    other: dict[str, str] = field(default_factory=dict)
    units: list[LexicalUnit] = field(default_factory=list)

    @property
    def elements(self) -> dict[str, str]:
        """Core type by element name."""
        return {**dict.fromkeys(self.core, "Core"), **self.other}


@cache
def frames() -> list[Frame]:
    """The source table, read.

    Raises:
        ValueError: A line of it breaks the notation; the message names the line.
    """
    read: list[Frame] = []
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        keyword, _, rest = line.strip().partition(" ")
        if not keyword or keyword.startswith("#"):
            continue
        try:
            if keyword == "frame":
                read.append(Frame(rest))
            else:
                _take(read[-1], keyword, rest)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{SOURCE.name}, line {number}: {error}") from error
    return read


def _take(frame: Frame, keyword: str, rest: str) -> None:
    if keyword == "core":
        frame.core = rest.split()
    elif keyword == "coreset":
        if not {*rest.split()} <= {*frame.core}:
            raise ValueError(f"a core set holds core elements only, not {rest}")
        frame.coresets.append(rest.split())
    elif keyword == "other":  # NAME, or NAME(TYPE)
        for name, kind in re.findall(r"([^\s()]+)(?:\(([\w-]+)\))?", rest):
            frame.other[name] = kind or "Peripheral"
    elif keyword == "lu":
        frame.units.append(LexicalUnit(rest))
    elif keyword in TAGS:
        frame.units[-1].exemplars.append(_exemplar(keyword, rest, frame))
    else:
        allowed = ("frame", "core", "coreset", "other", "lu", *TAGS)
        raise ValueError(f"{keyword!r} is none of {', '.join(allowed)}")


def _exemplar(tag: str, marked: str, frame: Frame) -> Exemplar:
    text, targets, elements, nulls = "", [], [], []
    stray = _PART.sub("", marked).strip()
    if stray:
        raise ValueError(f"{stray!r} belongs to no [ELEMENT words], *target* or {{ELEMENT TYPE}}")
    for name, inside, target, null, kind, plain in _PART.findall(marked):
        if null:
            if null not in frame.core or kind not in NULLS:
                allowed = ", ".join(NULLS)
                raise ValueError(f"{{{null} {kind}}} is no core element with one of {allowed}")
            nulls.append((null, kind))
            continue
        start = len(text) + (1 if text else 0)
        text = f"{text} {inside or target or plain}".strip()
        if name and name not in frame.elements:
            raise ValueError(f"{frame.name} lists no element {name!r}")
        if name:
            elements.append(Span(name, start, len(text)))
        elif target:
            targets.append(Span("Target", start, len(text)))
    if len(targets) != 1 or not elements:
        raise ValueError("a sentence needs one target and at least one element")
    return Exemplar(text, targets[0], tuple(elements), tuple(nulls), tag)
