"""FrameNet releases: the embedded miniature, a folder, a zip or NLTK's download, each read as a stream (§4.2).

NLTK's ``FramenetCorpusReader`` is the reader of record, and a test holds this one to it; its walk
through a whole release takes minutes, this one's seconds. What was read stays in the cache.
"""

from __future__ import annotations

import json
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from lxml import etree

from ..cache import Lazy, cached, file_sha256
from ..common import track
from ..corpora import FRAMENET
from ..settings import parse_source

NLTK_PACKAGE = "framenet_v17"
INDEXES = ("frameIndex.xml", "luIndex.xml")
# Of an unpacked release, in bytes and files; the real ones have 0.8 GB in 16,000.
LARGEST, MOST = 4 * 2**30, 200_000
FILES_AT_ONCE = 200
NAMESPACE = "{http://framenet.icsi.berkeley.edu}"
UNIT, FRAME, SENTENCE = (NAMESPACE + tag for tag in ("lexUnit", "frame", "sentence"))
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
        units: files of lexical units.
        problems: what had to be left out, with its file.
    """

    name: str
    exemplars: tuple[Exemplar, ...]
    core_sets: dict[str, tuple[str, ...]]
    units: int
    problems: tuple[Problem, ...]


def load_release(source: str, processes: int = 2) -> Release:
    """A release, read, or found read in the cache.

    Args:
        source: "embedded" (the project's own miniature), "folder:PATH", "zip:PATH", or "nltk"
            (release 1.7, downloaded by NLTK if it is not there).
        processes: that read at a time.

    Raises:
        ValueError, FileNotFoundError: no release there, an incomplete one, or a zip that is none or
            would write outside its folder.
        ConnectionError: NLTK cannot download.
    """
    kind, place = parse_source("framenet", source)
    places: dict[str, Callable[[], Path]] = {
        "embedded": lambda: _unpacked(FRAMENET),
        "nltk": from_nltk,
        "folder": lambda: Path(place),
        "zip": lambda: _unpacked(Path(place)),
    }
    folder = find_root(places[kind]().resolve())
    units, frames = sorted(folder.glob("lu/lu*.xml")), sorted(folder.glob("frame/*.xml"))
    hashes = tuple((path.name, file_sha256(path)) for path in (*units, *frames))
    found = cached(_write_content, Lazy(lambda: (units, frames, processes), hashes))
    content = json.loads((found / _CONTENT).read_text(encoding="utf-8"))
    return Release(
        folder.name,
        tuple(_exemplar(row) for row in content["exemplars"]),
        {frame: tuple(names) for frame, names in content["core_sets"].items()},
        len(units),
        tuple(Problem(*row) for row in content["problems"]),
    )


def check_release(source: str) -> None:
    """Refuse a ``framenet`` parameter that names no FrameNet release, without reading its files.

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
        FileNotFoundError: an index or the folder ``lu`` is missing; the message says which.
        ValueError: there are no lexical units.
    """
    wanted = (*INDEXES, "lu", "frame")
    halves: list[str] = []
    candidates: list[Place] = [folder]
    candidates += sorted(
        (path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.name
    )
    for candidate in candidates:
        missing = [name for name in wanted if not (candidate / name).exists()]
        if not missing:
            if not any(
                path.name.startswith("lu") and path.name.endswith(".xml")
                for path in (candidate / "lu").iterdir()
            ):
                raise ValueError(
                    f"{candidate} holds no lexical units (lu/lu*.xml): the release is empty"
                )
            return candidate
        if len(missing) < len(wanted):
            halves.append(f"{candidate} lacks {', '.join(missing)}")
    if halves:
        raise FileNotFoundError(f"not a whole FrameNet release: {'; '.join(halves)}")
    raise FileNotFoundError(f"{folder} is no FrameNet release: it has none of {', '.join(wanted)}")


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
            _check_members(path, archive.infolist())
            yield archive
    except (
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,
        EOFError,
    ) as error:  # damaged, or encrypted
        raise ValueError(
            f"{path} is no zip archive, a damaged or an encrypted one: {error}"
        ) from None


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    for member in members:
        place = PurePosixPath(member.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or ":" in member.filename:
            raise ValueError(
                f"{path} is refused: {member.filename!r} would be written outside its folder"
            )
        if stat.S_ISLNK(member.external_attr >> 16):  # Unix's file mode
            raise ValueError(
                f"{path} is refused: {member.filename!r} is a link, and a release has none"
            )
    size = sum(member.file_size for member in members)
    if size > LARGEST or len(members) > MOST:
        raise ValueError(
            f"{path} is refused: it unpacks to {size / 2**30:.1f} GiB in {len(members):,} files; a FrameNet"
            f" release has less than {LARGEST / 2**30:.0f} GiB in {MOST:,}"
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


def _write_content(files: tuple[Sequence[Path], Sequence[Path], int], target: Path) -> None:
    (target / _CONTENT).write_text(json.dumps(_read(*files), ensure_ascii=False), encoding="utf-8")


def _exemplar(row: list) -> Exemplar:
    *labels, target, elements, core, functions = row
    spans = [tuple(Span(*span) for span in several) for several in (target, elements)]
    parts: list[Any] = [*labels, *spans, tuple(core), tuple(functions)]
    return Exemplar(*parts)


def _read(units: Sequence[Path], frames: Sequence[Path], processes: int) -> dict[str, object]:
    """The content of files of lexical units and of frames: what :class:`Release` holds, by name."""
    core_sets, problems = read_core_sets(frames)
    exemplars: list[Exemplar] = []
    parts = [units[start : start + FILES_AT_ONCE] for start in range(0, len(units), FILES_AT_ONCE)]
    for found, odd in _results(parts, processes):
        exemplars += found
        problems += odd
    return {"exemplars": exemplars, "core_sets": core_sets, "problems": problems}


def _results(parts: list[Sequence[Path]], processes: int) -> list:
    """What :func:`_read_units` gives for every part, in order."""
    names = [part[0].stem for part in parts]

    def tracked(results: Iterable) -> list:
        return [result for _, result in zip(track(names, "reading FrameNet"), results, strict=True)]

    if (
        len(parts) > 1 and processes > 1
    ):  # for few files, starting other processes would take longer
        try:
            # Spawned, not forked: a notebook's process has threads.
            with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
                return tracked(pool.map(_read_units, parts))
        except BrokenProcessPool:
            # called from standard input or an unguarded script, which spawned processes cannot
            # import
            pass
    return tracked(map(_read_units, parts))


def _read_units(paths: Sequence[Path]) -> tuple[list[Exemplar], list[Problem]]:
    read = [read_unit(path) for path in paths]
    return [one for found, _ in read for one in found], [one for _, odd in read for one in odd]


def read_unit(path: Path) -> tuple[list[Exemplar], list[Problem]]:
    """All exemplars of one lexical unit's file.

    Args:
        path: an ``lu*.xml``.

    Returns:
        The exemplars, and what had to be left out: a broken file as a whole, or single annotations
            without a target or with a span outside the sentence.
    """
    exemplars: list[Exemplar] = []
    problems: list[Problem] = []
    unit: dict[str, str] = {}
    core: tuple[str, ...] = ()
    try:
        # No entities and no network: a release is data from outside.
        for event, element in etree.iterparse(
            str(path),
            events=("start", "end"),
            tag=(UNIT, FRAME, SENTENCE),
            resolve_entities=False,
            no_network=True,
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
    except (etree.XMLSyntaxError, OSError, KeyError, TypeError, ValueError) as error:
        return [], [Problem(path.name, f"cannot be read: {type(error).__name__}: {error}")]
    return exemplars, problems


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
        exemplars.append(
            Exemplar(
                unit["name"],
                int(unit["ID"]),
                unit["frame"],
                sentence,
                number,
                text,
                target,
                elements,
                core,
                functions,
            )
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
        if label.get("start") is None:
            continue
        if label.get("end") is None:
            raise ValueError(f"{label.get('name')} starts and does not end")
        name, start, end = (
            label.get("name"),
            int(label.get("start")),
            int(label.get("end")) + 1,
        )  # inclusive in the file
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"{name} spans characters {start} to {end - 1} of a sentence of {len(text)}"
            )
        if not text[start:end].strip():
            raise ValueError(f"{name} spans nothing but spaces, characters {start} to {end - 1}")
        spans.append(Span(name, start, end))
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, span.name)))


def read_core_sets(paths: Iterable[Path]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Elements in a frame's declared core sets, by frame, and the files that could not be read.

    Args:
        paths: the release's ``frame/*.xml``.
    """
    declared: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for path in paths:
        try:
            root = etree.parse(
                str(path), etree.XMLParser(resolve_entities=False, no_network=True)
            ).getroot()
            members = {
                member.attrib["name"]
                for member in root.iterfind(f"{NAMESPACE}FEcoreSet/{NAMESPACE}memberFE")
            }
            name = root.attrib["name"]
        except (etree.XMLSyntaxError, OSError, KeyError) as error:
            problems.append(Problem(path.name, f"cannot be read: {type(error).__name__}: {error}"))
            continue
        if members:
            declared[name] = tuple(sorted(members))
    return declared, problems
