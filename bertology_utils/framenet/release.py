"""Where FrameNet comes from: the embedded miniature, a folder, a zip or NLTK's downloader."""

from __future__ import annotations

import json
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import TypeVar

from ..common import cache, track
from ..common.cache import file_sha256
from ..corpora import FRAMENET
from . import exemplars as reader
from .exemplars import Exemplar, Problem, Span, read_core_sets, read_unit
from .sources import check_framenet

NLTK_PACKAGE = "framenet_v17"
INDEXES = ("frameIndex.xml", "luIndex.xml")
# Of an unpacked release, in bytes and files; the real ones have 0.8 GB in 16,000.
LARGEST, MOST = 4 * 2**30, 200_000
FILES_AT_ONCE = 200
Place = TypeVar("Place", Path, zipfile.Path)


@dataclass(frozen=True)
class Release:
    """What was read of a release.

    Attributes:
        name: what it is called in tables.
        exemplars: all annotated sentences of its lexical units.
        core_sets: elements in declared core sets, by frame.
        units: files of lexical units.
        problems: what had to be left out, with its file.
    """

    name: str
    exemplars: tuple[Exemplar, ...]
    core_sets: dict[str, tuple[str, ...]]
    units: int
    problems: tuple[Problem, ...]


def load_release(source: str, processes: int = 2) -> Release:
    """Read a release, or find it read in the cache.

    Args:
        source: "embedded" (the project's own miniature), "folder:PATH",
            "zip:PATH", or "nltk" (release 1.7, downloaded by NLTK if it is not there).
        processes: that read at a time.

    Raises:
        ValueError, FileNotFoundError: no release there, an incomplete one, or
            a zip that is none or would write outside its folder.
        ConnectionError: NLTK cannot download.
    """
    check_framenet(source)
    kind, path = _kind_and_path(source)
    places: dict[str, Callable[[], Path]] = {
        "embedded": lambda: _unpacked(FRAMENET),
        "nltk": _from_nltk,
        "folder": lambda: path,
        "zip": lambda: _unpacked(path),
    }
    folder = find_root(places[kind]().resolve())
    units, frames = sorted(folder.glob("lu/lu*.xml")), sorted(folder.glob("frame/*.xml"))
    files = [[path.name, file_sha256(path)] for path in (*units, *frames)]
    key = {"code": cache.code_digest(reader, _write), "files": cache.digest({"files": files})}
    found = cache.entry("framenet", key, lambda target, scratch: _write(target, _read(units, frames, processes)))
    return _from_json(json.loads((found / "release.json").read_text()), folder.name, len(units))


def check_release(source: str) -> None:
    """Refuse a ``framenet`` parameter that names no FrameNet release, without reading its files.

    Whether NLTK can download is not tried.

    Raises:
        ValueError, FileNotFoundError: as :func:`load_release`.
    """
    check_framenet(source)
    kind, path = _kind_and_path(source)
    if kind == "folder":
        find_root(path.resolve())
    elif kind == "zip":
        with _archive(path) as archive:
            find_root(zipfile.Path(archive))
    elif kind == "nltk" and find_spec("nltk") is None:
        raise ValueError(_NO_NLTK)


def _kind_and_path(source: str) -> tuple[str, Path]:
    kind, _, path = source.partition(":")
    return kind, Path(path).expanduser()


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
    candidates += sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: path.name)
    for candidate in candidates:
        missing = [name for name in wanted if not (candidate / name).exists()]
        if not missing:
            if not any(path.name.startswith("lu") and path.name.endswith(".xml") for path in (candidate / "lu").iterdir()):
                raise ValueError(f"{candidate} holds no lexical units (lu/lu*.xml): the release is empty")
            return candidate
        if len(missing) < len(wanted):
            halves.append(f"{candidate} lacks {', '.join(missing)}")
    if halves:
        raise FileNotFoundError(f"not a whole FrameNet release: {'; '.join(halves)}")
    raise FileNotFoundError(f"{folder} is no FrameNet release: it has none of {', '.join(wanted)}")


def _read(units: list[Path], frames: list[Path], processes: int) -> dict:
    core_sets, problems = read_core_sets(frames)
    exemplars: list[Exemplar] = []
    parts = [units[start : start + FILES_AT_ONCE] for start in range(0, len(units), FILES_AT_ONCE)]
    for found, odd in _results(parts, processes):
        exemplars += found
        problems += odd
    return {"exemplars": exemplars, "core_sets": core_sets, "problems": problems}


def _results(parts: list[list[Path]], processes: int) -> list:
    """What :func:`_read_units` gives for every part, in order."""

    def tracked(results) -> list:
        return [
            result for _, result in zip(track([part[0].stem for part in parts], "reading FrameNet"), results, strict=True)
        ]

    if len(parts) > 1 and processes > 1:  # for few files, starting other processes would take longer
        try:
            # Spawned, not forked: a notebook's process has threads.
            with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
                return tracked(pool.map(_read_units, parts))
        except BrokenProcessPool:
            pass  # called from standard input or an unguarded script, which spawned processes cannot import
    return tracked(map(_read_units, parts))


def _read_units(paths: list[Path]) -> tuple[list[Exemplar], list[Problem]]:
    exemplars: list[Exemplar] = []
    problems: list[Problem] = []
    for path in paths:
        found, odd = read_unit(path)
        exemplars += found
        problems += odd
    return exemplars, problems


def _write(target: Path, content: dict) -> None:
    """Rows without names: a whole release is 170,000 sentences."""

    def spans(some):
        return [[span.name, span.start, span.end] for span in some]

    cores: dict[tuple[str, ...], int] = {}
    rows = [
        [
            exemplar.unit,
            exemplar.unit_id,
            exemplar.frame,
            exemplar.sentence_id,
            exemplar.set_id,
            exemplar.text,
            spans(exemplar.target),
            spans(exemplar.elements),
            cores.setdefault(exemplar.core, len(cores)),
        ]
        for exemplar in content["exemplars"]
    ]
    text = json.dumps(
        {
            "rows": rows,
            "cores": list(cores),
            "core_sets": content["core_sets"],
            "problems": [asdict(problem) for problem in content["problems"]],
        },
        ensure_ascii=False,
    )
    (target / "release.json").write_text(text, encoding="utf-8")


def _from_json(content: dict, name: str, units: int) -> Release:
    cores = [tuple(core) for core in content["cores"]]

    def spans(some):
        return tuple(Span(*span) for span in some)

    exemplars = tuple(
        Exemplar(unit, unit_id, frame, sentence_id, set_id, text, spans(target), spans(elements), cores[core])
        for unit, unit_id, frame, sentence_id, set_id, text, target, elements, core in content["rows"]
    )
    core_sets = {frame: tuple(names) for frame, names in content["core_sets"].items()}
    return Release(name, exemplars, core_sets, units, tuple(Problem(**problem) for problem in content["problems"]))


def _unpacked(path: Path) -> Path:
    with _archive(path) as archive:
        wanted = [name for name in archive.namelist() if name.endswith(".xml")]
        return cache.entry(
            "framenet_zip", {"sha256": file_sha256(path)}, lambda target, scratch: archive.extractall(target, wanted)
        )


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """An open zip whose members may be unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(path, archive.infolist())
            yield archive
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as error:  # damaged, or encrypted
        raise ValueError(f"{path} is no zip archive, a damaged or an encrypted one: {error}") from None


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    for member in members:
        place = PurePosixPath(member.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or ":" in member.filename:
            raise ValueError(f"{path} is refused: {member.filename!r} would be written outside its folder")
        if stat.S_ISLNK(member.external_attr >> 16):  # Unix's file mode
            raise ValueError(f"{path} is refused: {member.filename!r} is a link, and a release has none")
    size = sum(member.file_size for member in members)
    if size > LARGEST or len(members) > MOST:
        raise ValueError(
            f"{path} is refused: it unpacks to {size / 2**30:.1f} GiB in {len(members):,} files; a FrameNet"
            f" release has less than {LARGEST / 2**30:.0f} GiB in {MOST:,}"
        )


_NO_NLTK = "framenet='nltk' needs NLTK: pip install nltk; or name a folder: framenet='folder:PATH'"


def _from_nltk() -> Path:
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
    return _unpacked(Path(place.zipfile.filename)) if hasattr(place, "zipfile") else Path(str(place))
