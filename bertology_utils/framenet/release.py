"""FrameNet releases: the embedded miniature, a folder, a zip or NLTK's download, each read as a stream (§4.2).

NLTK's ``FramenetCorpusReader`` is the reader of record, and a test holds this one to it; its walk
through a whole release takes minutes, this one's seconds. What was read stays in the cache.
"""

from __future__ import annotations

import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lxml import etree

from ..cache import Lazy, cached, file_sha256
from ..common import track
from ..corpora import FRAMENET
from ..settings import parse_source

NLTK_PACKAGE = "framenet_v17"
WANTED = ("frameIndex.xml", "luIndex.xml", "lu", "frame")
# Of an unpacked release, in bytes and files; the real ones have 0.8 GB in 16,000.
LARGEST, MOST = 4 * 2**30, 200_000
NAMESPACE = "{http://framenet.icsi.berkeley.edu}"
UNIT, FRAME, SENTENCE = (NAMESPACE + tag for tag in ("lexUnit", "frame", "sentence"))
_SAFE = {"resolve_entities": False, "no_network": True}  # a release is data from outside
_UNREADABLE = (etree.XMLSyntaxError, OSError, KeyError, TypeError, ValueError)
_NO_NLTK = "framenet='nltk' needs NLTK: pip install nltk; or name a folder: framenet='folder:PATH'"
_CONTENT = "release.json"
Place = TypeVar("Place", Path, zipfile.Path)


class Span(NamedTuple):
    """A labelled stretch of a sentence: characters ``start`` to ``end``, ``end`` excluded."""

    name: str
    start: int
    end: int


class Exemplar(NamedTuple):
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
        functions: each element's grammatical function ("Ext" for a subject, "Obj", "Dep", …); ""
            where none is given.
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
    functions: tuple[str, ...] = ()


class Problem(NamedTuple):
    """Something in a release that cannot be used: where, and what."""

    file: str
    what: str


@dataclass(frozen=True)
class Release:
    """A release as it was read.

    Attributes:
        name: what it is called in tables.
        exemplars: all annotated sentences of its lexical units.
        core_sets: elements in declared core sets, by frame; frames that declare none are left out.
        units: lexical units that have a file.
        problems: what had to be left out, with its file.
    """

    name: str
    exemplars: tuple[Exemplar, ...]
    core_sets: dict[str, tuple[str, ...]]
    units: int
    problems: tuple[Problem, ...]


def load_release(source: str) -> Release:
    """A release, read, or found read in the cache.

    What cannot be used is left out and told in the release's ``problems``: units and frames that
    an index names and that have no file, second files of a unit, files that cannot be read, and
    single annotations.

    Args:
        source: "embedded" (the project's own miniature), "folder:PATH", "zip:PATH", or "nltk"
            (release 1.7, downloaded by NLTK if it is not there).

    Raises:
        ValueError, FileNotFoundError: no release there, one without indexes, units or frames, XML
            without FrameNet's namespace, or a zip that is none or would write outside its folder.
        ConnectionError: NLTK cannot download.
    """
    kind, place = parse_source("framenet", source)
    if kind == "nltk":
        folder = from_nltk()
    else:
        path = FRAMENET if kind == "embedded" else Path(place)
        folder = path if kind == "folder" else _unpacked(path)
    folder = find_root(folder.resolve())
    files = [*folder.glob("*Index.xml"), *folder.glob("lu/lu*.xml"), *folder.glob("frame/*.xml")]
    hashes = tuple((str(path.relative_to(folder)), file_sha256(path)) for path in sorted(files))
    read = cached(_write_content, Lazy(lambda: folder, hashes))
    content = json.loads((read / _CONTENT).read_text(encoding="utf-8"))
    return Release(
        folder.name,
        tuple(_exemplar(row) for row in content["exemplars"]),
        {frame: tuple(names) for frame, names in content["core_sets"].items()},
        content["units"],
        tuple(Problem(*row) for row in content["problems"]),
    )


def check_release(source: str) -> None:
    """Refuse a ``framenet`` parameter that names no FrameNet release, without reading all its files.

    Whether NLTK can download is not tried.

    Raises:
        ValueError, FileNotFoundError: as :func:`load_release`.
    """
    kind, place = parse_source("framenet", source)
    if kind == "folder":
        find_root(Path(place).resolve())
    elif kind == "zip":
        with _archive(Path(place)) as archive:
            find_root(zipfile.Path(archive))
    elif kind == "nltk" and find_spec("nltk") is None:
        raise ValueError(_NO_NLTK)


def find_root(folder: Place) -> Place:
    """The folder of a release, which may lie one level deeper than named.

    Args:
        folder: a Path, or a ``zipfile.Path``.

    Raises:
        FileNotFoundError: an index or the folder of units or frames is missing; the message says
            which.
        ValueError: there are no lexical units, or an index or the first unit is no XML in
            FrameNet's namespace.
    """
    inner: list[Any] = [path for path in folder.iterdir() if path.is_dir()]
    inner.sort(key=lambda path: path.name)
    candidates = [(one, [n for n in WANTED if not (one / n).exists()]) for one in (folder, *inner)]
    root, missing = min(candidates, key=lambda candidate: len(candidate[1]))
    if len(missing) == len(WANTED):
        raise FileNotFoundError(
            f"{folder} is no FrameNet release: it has none of {', '.join(WANTED)}"
        )
    if missing:
        raise FileNotFoundError(f"not a whole FrameNet release: {root} lacks {', '.join(missing)}")
    units = [path for path in (root / "lu").iterdir() if re.fullmatch(r"lu.*\.xml", path.name)]
    if not units:
        raise ValueError(f"{root} holds no lexical units (lu/lu*.xml): the release is empty")
    for name in WANTED[:2]:
        _check_namespace(root / name, name.removesuffix(".xml"))
    _check_namespace(min(units, key=lambda path: path.name), "lexUnit", may_be_damaged=True)
    return root


def _check_namespace(path: Path | zipfile.Path, tag: str, may_be_damaged: bool = False) -> None:
    try:
        with path.open("rb") as file:
            found = next(etree.iterparse(file, events=("start",), **_SAFE))[1].tag
    except (etree.XMLSyntaxError, StopIteration) as error:
        found = NAMESPACE + tag if may_be_damaged else f"no XML ({error})"
    if found != NAMESPACE + tag:
        raise ValueError(
            f"{path} is not of a FrameNet release: it begins with {found}; wanted is"
            f' <{tag} xmlns="{NAMESPACE[1:-1]}">'
        )


# Where a release lies


def _unpacked(path: Path) -> Path:
    return cached(_unpack, Lazy(lambda: path, (file_sha256(path),)))


def _unpack(path: Path, target: Path) -> None:
    with _archive(path) as archive:
        archive.extractall(target, [name for name in archive.namelist() if name.endswith(".xml")])


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """An open zip whose members may be unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            if reason := _refusal(archive.infolist()):
                raise ValueError(f"{path} is refused: {reason}")
            yield archive
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path} is no zip archive, a damaged or an encrypted one: {error}"
        ) from None


def _refusal(members: list[zipfile.ZipInfo]) -> str:
    """Why an archive's members may not be unpacked; empty if they may."""
    for member in members:
        name = member.filename.replace("\\", "/")
        if name.startswith("/") or ":" in name or ".." in name.split("/"):
            return f"{member.filename!r} would be written outside its folder"
        if stat.S_ISLNK(member.external_attr >> 16):  # Unix's file mode
            return f"{member.filename!r} is a link, and a release has none"
    size = sum(member.file_size for member in members)
    if size <= LARGEST and len(members) <= MOST:
        return ""
    return (
        f"it unpacks to {size / 2**30:.1f} GiB in {len(members):,} files; a FrameNet release has less"
        f" than {LARGEST / 2**30:.0f} GiB in {MOST:,}"
    )


def from_nltk() -> Path:
    """NLTK's release, downloaded by NLTK if it is not there; raises as :func:`load_release`."""
    try:
        import nltk
    except ImportError:
        raise ValueError(_NO_NLTK) from None
    try:
        place = nltk.data.find(f"corpora/{NLTK_PACKAGE}")
    except LookupError:
        if not nltk.download(NLTK_PACKAGE, quiet=True):
            raise ConnectionError(
                f"NLTK cannot download {NLTK_PACKAGE}; get a release elsewhere and name it: framenet='folder:PATH' or 'zip:PATH'"
            ) from None
        place = nltk.data.find(f"corpora/{NLTK_PACKAGE}")
    # NLTK may leave a package packed, and then names a place inside the zip.
    return (
        _unpacked(Path(place.zipfile.filename)) if hasattr(place, "zipfile") else Path(str(place))
    )


# Reading it


def _write_content(folder: Path, target: Path) -> None:
    (target / _CONTENT).write_text(json.dumps(_read(folder), ensure_ascii=False), encoding="utf-8")


def _exemplar(row: list) -> Exemplar:
    *labels, target, elements, core, functions = row
    spans = [tuple(Span(*span) for span in several) for several in (target, elements)]
    parts: list[Any] = [*labels, *spans, tuple(core), tuple(functions)]
    return Exemplar(*parts)


def _read(folder: Path) -> dict[str, object]:
    """What :class:`Release` holds, by name."""
    paths, frames = sorted(folder.glob("lu/lu*.xml")), sorted(folder.glob("frame/*.xml"))
    core_sets, problems = read_core_sets(frames)
    parts = {paths[at].stem: paths[at : at + 200] for at in range(0, len(paths), 200)}
    files = [read_unit(path) for name in track(parts, "reading FrameNet") for path in parts[name]]
    names: dict[int, str] = {}  # of each unit its one file
    for number, name, *_ in files:
        if number not in names or name == f"lu{number}.xml":
            names[number] = name
    exemplars: list[Exemplar] = []
    second = 0
    for number, name, found, odd in files:
        if number and names[number] != name:
            second += 1
            problems.append(Problem(name, f"is a second file of unit {number}: {names[number]}"))
        else:
            exemplars += found
            problems += odd
    if not exemplars:
        told = f" ({problems[0].file}: {problems[0].what})" if problems else ""
        raise ValueError(f"{folder} holds no annotated sentence{told}")
    units = {path.stem.removeprefix("lu") for path in paths} | {str(number) for number in names}
    problems += _without_file(folder / "luIndex.xml", "lu", "ID", units, "units")
    of_frames = {path.stem for path in frames}
    problems += _without_file(folder / "frameIndex.xml", "frame", "name", of_frames, "frames")
    return {
        "exemplars": exemplars,
        "core_sets": core_sets,
        "units": len(files) - second,
        "problems": problems,
    }


def _without_file(
    index: Path, tag: str, attribute: str, there: set[str], what: str
) -> list[Problem]:
    """What an index names and the release lacks."""
    try:
        elements = etree.iterparse(str(index), tag=NAMESPACE + tag, **_SAFE)
        named = {element.attrib[attribute] for _, element in elements}
    except _UNREADABLE as error:
        return [_unreadable(index, error)]
    if missing := len(named - there):
        told = f"{missing} of {len(named)} {what} that {index.name} names have no file"
        return [Problem(index.name, told)]
    return []


def _unreadable(path: Path, error: Exception) -> Problem:
    return Problem(path.name, f"cannot be read: {type(error).__name__}: {error}")


class UnitFile(NamedTuple):
    """What a file of a lexical unit holds.

    Attributes:
        number: the unit's; 0 if the file cannot be read.
        name: the file's.
        exemplars: the annotated sentences.
        problems: what had to be left out: a broken file as a whole, or single annotations without
            a target or with a span outside the sentence.
    """

    number: int
    name: str
    exemplars: list[Exemplar]
    problems: list[Problem]


def read_unit(path: Path) -> UnitFile:
    """All exemplars of one lexical unit's file, an ``lu*.xml``."""
    exemplars: list[Exemplar] = []
    problems: list[Problem] = []
    unit: dict[str, str] = {}
    core: tuple[str, ...] = ()
    try:
        for event, element in etree.iterparse(
            str(path), events=("start", "end"), tag=(UNIT, FRAME, SENTENCE), **_SAFE
        ):
            if event == "start":
                unit = dict(element.attrib) if element.tag == UNIT else unit
                continue
            if element.tag == FRAME:
                elements = element.iterfind(NAMESPACE + "FE")
                core = tuple(
                    sorted({fe.attrib["name"] for fe in elements if fe.attrib["type"] == "Core"})
                )
            elif element.tag == SENTENCE:
                _read_sentence(element, unit, core, path.name, exemplars, problems)
            element.clear()
        if not unit:
            raise ValueError(f'it has no <lexUnit xmlns="{NAMESPACE[1:-1]}">')
        return UnitFile(int(unit["ID"]), path.name, exemplars, problems)
    except _UNREADABLE as error:
        return UnitFile(0, path.name, [], [_unreadable(path, error)])


def _read_sentence(
    element, unit: dict, core: tuple[str, ...], file: str, exemplars: list, problems: list
) -> None:
    text = element.findtext(NAMESPACE + "text") or ""
    sentence = int(element.attrib["ID"])
    for annotation in element.iterfind(NAMESPACE + "annotationSet"):
        if annotation.get("status") == "UNANN" or "cxnID" in annotation.attrib:
            continue  # parts of speech only, or a construction
        layers = {
            (layer.get("name"), layer.get("rank", "1")): layer
            for layer in annotation.iterfind(NAMESPACE + "layer")
        }
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
        functions = _functions(layers.get(("GF", "1")), elements)
        of_unit = unit["name"], int(unit["ID"]), unit["frame"]
        exemplars.append(
            Exemplar(*of_unit, sentence, number, text, target, elements, core, functions)
        )


def _functions(layer, elements: Sequence[Span]) -> tuple[str, ...]:
    """What the layer of grammatical functions calls each element; the two have the same places."""
    labels = () if layer is None else layer.iterfind(NAMESPACE + "label")
    by_place = {(label.get("start"), label.get("end")): label.get("name") for label in labels}
    return tuple(by_place.get((str(span.start), str(span.end - 1)), "") for span in elements)


def _spans(layer, text: str) -> tuple[Span, ...]:
    """The expressed labels of a layer; those without a place are null instantiations."""
    if layer is None:
        return ()
    spans = []
    for label in layer.iterfind(NAMESPACE + "label"):
        name, start, last = label.get("name"), label.get("start"), label.get("end")
        if start is None:
            continue
        if last is None:
            raise ValueError(f"{name} starts and does not end")
        first, end = int(start), int(last) + 1  # the last character is named in the file
        if not 0 <= first < end <= len(text):
            raise ValueError(
                f"{name} spans characters {first} to {last} of a sentence of {len(text)}"
            )
        if not text[first:end].strip():
            raise ValueError(f"{name} spans nothing but spaces, characters {first} to {last}")
        spans.append(Span(name, first, end))
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, span.name)))


def read_core_sets(
    paths: Sequence[Path],
) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Elements in a frame's declared core sets, by frame, and the files that could not be read.

    Args:
        paths: the release's ``frame/*.xml``.
    """
    declared: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            root = etree.parse(str(path), etree.XMLParser(**_SAFE)).getroot()
            sets = root.iterfind(f"{NAMESPACE}FEcoreSet/{NAMESPACE}memberFE")
            if members := {member.attrib["name"] for member in sets}:
                declared[root.attrib["name"]] = tuple(sorted(members))
        except _UNREADABLE as error:
            problems.append(_unreadable(path, error))
    return declared, problems
