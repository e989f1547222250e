"""FrameNet releases, and which of their sentences have a link, by the paper's rules or those of its code (§4.2).

A release is the embedded miniature, a folder, a zip or NLTK's download.
NLTK's ``FramenetCorpusReader`` is the reader of record, and a test holds this one to it; its walk
through a whole release takes minutes, this one's seconds.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree

from .common import one_of, track
from .settings import parse_source

MINIATURE = Path(__file__).parent / "corpora" / "mini_framenet.zip"
NLTK_PLACE = "corpora/framenet_v17"
WANTED = ("luIndex.xml", "lu", "frame")
NAMESPACE = "{http://framenet.icsi.berkeley.edu}"
Place = Path | zipfile.Path
SENTENCE_TOKENS, ELEMENT_TOKENS = 12, 3  # the most that a sentence and an element may have
# FrameNet's names of grammatical functions; Ext, the external argument, is a verb's subject, or that
# of the verb that supports a noun or an adjective.
FUNCTIONS = {"Ext": "subject", "Obj": "object", "Dep": "dependent"}
_TOKEN = re.compile(r"\S+")


class Span(NamedTuple):
    """A labelled stretch of a sentence.

    Attributes:
        name: the label.
        start, end: its characters, ``end`` excluded.
        function: a frame element's grammatical function ("Ext" for a subject, "Obj", "Dep", …); "" for none.
    """

    name: str
    start: int
    end: int
    function: str = ""


class Exemplar(NamedTuple):
    """One annotated sentence of a lexical unit.

    Attributes:
        unit: the lexical unit ("address.v").
        frame: the frame that it evokes.
        text: the sentence, its tokens with spaces between.
        target: where the predicate stands; several spans if it is broken.
        elements: the expressed frame elements of the first rank, by position.
        core: names of the frame's elements whose ``coreType`` is "Core".
    """

    unit: str
    frame: str
    text: str
    target: tuple[Span, ...]
    elements: tuple[Span, ...]
    core: tuple[str, ...]

    @property
    def part_of_speech(self) -> str:
        """The predicate's: "v", "n", "a", "prep", …."""
        return self.unit.rpartition(".")[2]


@dataclass(frozen=True)
class Release:
    """A release as it was read.

    Attributes:
        exemplars: all annotated sentences of its lexical units.
        core_sets: elements in declared core sets, by frame; frames that declare none are left out.
        problems: files and annotations that had to be left out, and why, a line each.
    """

    exemplars: tuple[Exemplar, ...]
    core_sets: dict[str, tuple[str, ...]]
    problems: tuple[str, ...] = ()


def load_release(source: str) -> Release:
    """A release; ``problems`` tells what of it cannot be used.

    Args:
        source: "embedded" (the project's own miniature), "folder:PATH", "zip:PATH", or "nltk"
            (release 1.7, downloaded by NLTK if it is not there).

    Raises:
        ValueError, FileNotFoundError: there is no release, it has no annotated sentence, or the zip
            cannot be unpacked.
        ConnectionError: NLTK cannot download.
    """
    kind, place = parse_source("framenet", source)
    path = {"embedded": MINIATURE}.get(kind) or (from_nltk() if kind == "nltk" else Path(place))
    try:
        # A zip is read where it is, and nothing unpacked.
        return _read(find_root(zipfile.Path(path) if path.is_file() else path.resolve()))
    # It is damaged, has a password, or is packed in a way that Python does not know.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        advice = "get it again, or unpack it yourself and give framenet='folder:PATH'"
        raise ValueError(f"{path} cannot be unpacked: {error}; {advice}") from None


def find_root(folder: Place) -> Place:
    """The folder of a release, which may lie one level deeper than named.

    Raises:
        FileNotFoundError: there is none; the message says what is missing.
    """
    inner: list[Any] = sorted((one for one in folder.iterdir() if one.is_dir()), key=str)
    lacking = {
        one: [name for name in WANTED if not (one / name).exists()] for one in (folder, *inner)
    }
    root = min(lacking, key=lambda one: len(lacking[one]))
    if lacking[root]:
        raise FileNotFoundError(
            f"{root} is no FrameNet release: it lacks {', '.join(lacking[root])}"
        )
    return root


def from_nltk() -> Path:
    """NLTK's release, downloaded by NLTK if it is not there; raises as :func:`load_release`."""
    nltk = check_nltk()
    try:
        place = nltk.data.find(NLTK_PLACE)
    except LookupError:
        if not nltk.download(Path(NLTK_PLACE).name, quiet=True):
            raise ConnectionError(
                "NLTK cannot download FrameNet; name a release: framenet='folder:PATH' or 'zip:PATH'"
            ) from None
        place = nltk.data.find(NLTK_PLACE)
    # NLTK may leave a package packed, and then names a place inside the zip.
    return Path(place.zipfile.filename if hasattr(place, "zipfile") else str(place))


def check_nltk() -> Any:
    """NLTK's module.

    Raises:
        ValueError: it is not installed.
    """
    try:
        import nltk
    except ImportError:
        raise ValueError(
            "framenet='nltk' needs NLTK: pip install nltk; or name a folder: framenet='folder:PATH'"
        ) from None
    return nltk


# Reading it


def _read(root: Place) -> Release:
    problems: list[str] = []

    def read_each(folder: str, read: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
        paths: list[Any] = [one for one in (root / folder).iterdir() if one.name.endswith(".xml")]
        for path in track(sorted(paths, key=str), f"reading FrameNet, {folder}"):
            try:
                yield path.name, read(path)
            except (OSError, KeyError, TypeError, ValueError) as error:
                problems.append(f"{path.name} cannot be read: {type(error).__name__}: {error}")

    core_sets = dict(core_set for _, core_set in read_each("frame", read_core_sets) if core_set[1])
    exemplars: list[Exemplar] = []
    numbers: set[str] = set()
    for name, (number, annotated, odd) in read_each("lu", read_unit):
        if number in numbers:
            problems.append(f"{name} is a second file of unit {number}")
            continue
        numbers.add(number)
        exemplars += annotated
        problems += odd
    if not exemplars:
        why = f" ({problems[0]})" if problems else ""
        raise ValueError(f"{root} holds no annotated sentence{why}")
    named = {unit.attrib["ID"] for unit in _parse(root / WANTED[0]).iter(NAMESPACE + "lu")}
    if missing := len(named - numbers):
        problems.append(f"{missing} of {len(named)} units that luIndex.xml names have no file")
    return Release(tuple(exemplars), core_sets, tuple(problems))


def _parse(path: Place) -> Any:
    """The root of an XML file; a release is data from outside, so no entity is followed."""
    try:
        with path.open("rb") as file:
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            return etree.parse(file, parser).getroot()
    except etree.XMLSyntaxError as error:
        raise ValueError(f"{path.name} is no XML, or is cut off: {error}") from None


def read_unit(path: Place) -> tuple[str, list[Exemplar], list[str]]:
    """The number of a lexical unit, all its exemplars, and which annotations had to be left out, and why.

    Args:
        path: an ``lu*.xml``.

    Raises:
        ValueError, KeyError, OSError, lxml.etree.XMLSyntaxError: it is no file of a lexical unit.
    """
    root = _parse(path)
    if root.tag != NAMESPACE + "lexUnit":
        raise ValueError(f'it begins with {root.tag}, not with <lexUnit xmlns="{NAMESPACE[1:-1]}">')
    elements = root.iterfind(f"{NAMESPACE}header/{NAMESPACE}frame/{NAMESPACE}FE")
    core = tuple(sorted({fe.attrib["name"] for fe in elements if fe.attrib["type"] == "Core"}))
    unit, frame = root.attrib["name"], root.attrib["frame"]
    exemplars: list[Exemplar] = []
    problems = []
    for sentence in root.iter(NAMESPACE + "sentence"):
        text = sentence.findtext(NAMESPACE + "text") or ""
        for annotation in sentence.iterfind(NAMESPACE + "annotationSet"):
            if annotation.get("status") == "UNANN" or "cxnID" in annotation.attrib:
                continue  # parts of speech only, or a construction
            layers = annotation.iterfind(NAMESPACE + "layer")
            # Rank 2 and 3 annotate the same words a second time.
            labels = {
                one.get("name"): [*one.iterfind(NAMESPACE + "label")]
                for one in layers
                if one.get("rank", "1") == "1"
            }
            functions = {
                (one.get("start"), one.get("end")): one.get("name") for one in labels.get("GF", ())
            }
            try:
                target, elements = (
                    _spans(labels.get(name, ()), text, functions) for name in ("Target", "FE")
                )
                if not target:
                    raise ValueError("the target is not marked")
            except ValueError as error:
                where = f"sentence {sentence.get('ID')}, annotation {annotation.get('ID')}"
                problems.append(f"{path.name}: {where}: {error}")
                continue
            exemplars.append(Exemplar(unit, frame, text, target, elements, core))
    return root.attrib["ID"], exemplars, problems


def _spans(
    labels: Iterable[Any], text: str, functions: Mapping[tuple[str, str], str]
) -> tuple[Span, ...]:
    """The expressed labels of a layer, with their functions by place; those without a place are null instantiations."""
    spans = []
    for label in labels:
        name, first, last = label.get("name"), label.get("start"), label.get("end")
        if first is None:
            continue
        if last is None:
            raise ValueError(f"{name} starts and does not end")
        start, end = int(first), int(last) + 1  # the last character is named in the file
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"{name} spans characters {first} to {last} of a sentence of {len(text)}"
            )
        if not text[start:end].strip():
            raise ValueError(f"{name} spans nothing but spaces, characters {first} to {last}")
        spans.append(Span(name, start, end, functions.get((first, last), "")))
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, span.name)))


def read_core_sets(path: Place) -> tuple[str, tuple[str, ...]]:
    """A frame's name and the elements in its declared core sets, from its file."""
    root = _parse(path)
    members = root.iterfind(f"{NAMESPACE}FEcoreSet/{NAMESPACE}memberFE")
    return root.attrib["name"], tuple(sorted({member.attrib["name"] for member in members}))


# Links between a predicate and its core frame elements


RULES = PAPER, OFFICIAL = "paper", "official"


@dataclass(frozen=True)
class FrameSentence:
    """A sentence whose predicate has at least one link to a core frame element.

    Attributes:
        exemplar: the annotated sentence.
        target: the characters of the predicate.
        elements: the core frame elements that are linked to it, each with its spans.
    """

    exemplar: Exemplar
    target: tuple[Span, ...]
    elements: tuple[tuple[Span, ...], ...]


def extract(release: Release, rules: str) -> list[FrameSentence]:
    """The sentences that rules keep, in the release's order, each with the links that they keep.

    The paper's text ("paper") speaks of sentences ("we exclude sentences where ...") and of links
    ("the linked objects are less than two tokens apart"), and does not say what becomes of a sentence
    with one link of either kind: here it keeps the other link. In the published code ("official")
    three tokens must lie between, not two; an element is core because the frame declares it in a
    core set, not by its ``coreType``; an element beyond a limit, core or not, costs the whole
    sentence; predicates of several spans are left out; and a word's position is that of the first
    equal word of the sentence, as when it is searched for as a string. Tokens are what stands between
    spaces, punctuation included.
    """
    official = one_of("rules", rules, RULES) == OFFICIAL
    linked = (_linked(exemplar, official, release.core_sets) for exemplar in release.exemplars)
    return [sentence for sentence in linked if sentence]


def _linked(
    exemplar: Exemplar, official: bool, core_sets: dict[str, tuple[str, ...]]
) -> FrameSentence | None:
    text, nearest = exemplar.text, 3 if official else 2
    if len(text.split()) > SENTENCE_TOKENS:  # first: of 150,000 sentences one in seven stays
        return None
    core = core_sets.get(exemplar.frame, ()) if official else exemplar.core
    links = [span for span in exemplar.elements if span.name in core]
    if not links or (official and len(exemplar.target) > 1):
        return None
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    words = [text[start:end] for start, end in tokens]
    # Of each token its own position, or that of the first token equal to it.
    position = [words.index(word) for word in words] if official else range(len(words))
    at = {
        span: [
            position[index]
            for index, (start, end) in enumerate(tokens)
            if start < span.end and span.start < end
        ]
        for span in (*exemplar.target, *exemplar.elements)
    }
    predicate = sorted({index for span in exemplar.target for index in at[span]})

    def fits(span: Span) -> bool:
        is_far = min(abs(a - b) for a in at[span] for b in predicate) >= nearest
        return len(at[span]) <= ELEMENT_TOKENS and is_far

    links = [span for span in links if fits(span)]
    if not links or (official and not all(map(fits, exemplar.elements))):
        return None
    if not official:
        return FrameSentence(exemplar, exemplar.target, tuple((span,) for span in links))

    def found(span: Span, indices: Sequence[int]) -> tuple[Span, ...]:
        return tuple(Span(span.name, *tokens[index], span.function) for index in indices)

    elements = tuple(found(span, at[span]) for span in links)
    return FrameSentence(exemplar, found(exemplar.target[0], predicate), elements)


def grammar(sentence: FrameSentence) -> str:
    """What a sentence's linked elements are in grammar: "subject", "object", "dependent" or "other"; "several" if they differ.

    By FrameNet's own annotation. Other are possessors and modified nouns, for instance, and all
    elements of a release without grammatical functions, as the miniature is.
    """
    own = {FUNCTIONS.get(spans[0].function, "other") for spans in sentence.elements}
    return own.pop() if len(own) == 1 else "several"
