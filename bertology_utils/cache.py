"""One cache for all finished work: trainings, sweeps, measurements, annotation.

``cached(function, ...)`` gives what the function returned when it was last called with arguments of
this content and with the code that it has now (:mod:`bertology_utils.digest` hashes both). An entry
is a folder with a manifest of its files' hashes. It is filled under another name and renamed when
whole, so that a killed process leaves no half of one. Values are SafeTensors and JSON, never
pickle.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from filelock import FileLock, Timeout

from .common import SOURCES, device_name, is_closed

CACHE_VARIABLE = "BERTOLOGY_CACHE"
MANIFEST = "manifest.json"
MADE, MEASURED = "made", "measured"  # expensive artefacts, and measurements, which are evicted
FOLDERS = {"target", "scratch"}  # parameters that the cache gives
MEASURED_BYTES = 4 * 2**30  # of measurements, above which those not used for longest are evicted
LIBRARIES = "torch transformers accelerate tokenizers numpy scipy scikit-learn".split()
Key = Mapping[str, object]  # all that decides an entry's content; JSON values only
logger = logging.getLogger(__name__)

_VALUE = "value.safetensors"


# Calls


@dataclasses.dataclass(frozen=True)
class Lazy:
    """An argument of :func:`cached`, or a part of one, that is made only where the value is not in the cache.

    Attributes:
        make: gives the argument.
        what: all that decides it, functions among it.
    """

    make: Callable[[], Any]
    what: tuple[object, ...]

    def depends_on(self) -> tuple[object, ...]:
        """For the key."""
        return self.what


def cached(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """``function(*arguments, **options)``, from the cache if it was called before with the same content and code.

    A parameter ``scratch`` of the function is given a folder that survives a kill, for what a
    resumed call can use. A parameter ``target`` is given an empty folder to fill, and the finished
    folder's path is returned. A call of another package's function, or with an argument that has no
    stable hash (see :func:`bertology_utils.digest.fingerprint`), is made each time.

    Args:
        function: of this package, without side effects; it returns what :func:`pack` takes.
        arguments, options: its own; each may be a :class:`Lazy`, or a list or dict of some.

    Raises:
        PermissionError: the cache cannot be written to and has no such entry, where that is a
            folder or has a scratch.
    """
    from .digest import UnhashableError

    bound = inspect.signature(function).bind_partial(*arguments, **options)
    wanted = FOLDERS & bound.signature.parameters.keys() - bound.arguments.keys()

    def call(target: Path | None = None, scratch: Path | None = None) -> Any:
        bound.arguments.update(_made(bound.arguments, {}))
        folders = {"target": target, "scratch": scratch}
        return function(*bound.args, **bound.kwargs, **{name: folders[name] for name in wanted})

    try:
        kind, key = cache_key(function, *arguments, **options)
    except UnhashableError:
        if "target" in wanted:
            raise
        return call()
    return (artefact if "target" in wanted else _value)(kind, key, call)


def _made(given: Any, made: dict[int, Any]) -> Any:
    """An argument with what is lazy in it made; a :class:`Lazy` that stands there twice is made once."""
    if isinstance(given, Lazy):
        if id(given) not in made:
            made[id(given)] = given.make()
        return made[id(given)]
    if type(given) is dict:
        return {name: _made(part, made) for name, part in given.items()}
    if type(given) in (list, tuple):
        return type(given)(_made(part, made) for part in given)
    return given


def cache_key(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[str, Key]:
    """The kind and the key of the entry that :func:`cached` makes of the same call.

    Raises:
        UnhashableError: a function that is not of this package, or an argument without a stable hash.
    """
    bound = inspect.signature(function).bind_partial(*arguments, **options)
    bound.apply_defaults()
    given = {name: each for name, each in bound.arguments.items() if name not in FOLDERS}
    return MADE if bound.signature.parameters.keys() & FOLDERS else MEASURED, _key(function, given)


def cached_each(
    function: Callable[..., dict[str, Any]],
    shared: tuple[Any, ...],
    what: object,
    parts: Mapping[str, Any],
) -> dict[str, Any]:
    """``function(*shared, parts)``, called for those parts alone that are not in the cache yet.

    Args:
        function: of this package, without side effects; it gives a value for each part, by name.
        shared: its arguments before the parts; each may be a :class:`Lazy`.
        what: all of ``shared`` that decides the values.
        parts: by name; of no part's value may it matter which others are there.
    """
    from .digest import UnhashableError, fingerprint

    code: set[Any] = set()
    try:
        hashed = fingerprint(what, code)
        keys = {name: _key(function, (hashed, part), code) for name, part in parts.items()}
    except UnhashableError:
        return function(*_made(shared, {}), parts)
    missing = {name: part for name, part in parts.items() if not is_finished(MEASURED, keys[name])}
    values = function(*_made(shared, {}), missing) if missing else {}

    def compute(name: str, *_: Path) -> Any:
        if name not in values:  # it was in the cache, and is damaged
            values.update(function(*_made(shared, {}), {name: parts[name]}))
        return values[name]

    return {
        name: _value(MEASURED, key, functools.partial(compute, name)) for name, key in keys.items()
    }


def _key(function: Callable[..., Any], content: object, code: set[Any] | None = None) -> Key:
    from .digest import code_digest, fingerprint

    classes = set(code or ())
    return {
        "function": function.__qualname__,
        "arguments": fingerprint(content, classes),
        "code": code_digest(function, frozenset(classes)),
        "versions": _versions(),
        "device": device_name(),
    }


@functools.cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _value(kind: str, key: Key, compute: Callable[..., Any]) -> Any:
    """An entry's value, computed if there is none; always as it comes out of the file, so that digits are the same."""

    def fill(target: Path, scratch: Path) -> None:
        (target / _VALUE).write_bytes(pack(compute(None, scratch)))

    try:
        return artefact(kind, key, fill, lambda at: unpack((verified(at) / _VALUE).read_bytes()))
    except PermissionError:
        if kind == MADE:
            raise
        return unpack(pack(compute()))


# Entries on disk


def cache_folder() -> Path:
    """Root of the cache: $BERTOLOGY_CACHE, else ~/.cache/bertology_utils."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "bertology_utils")


def key_digest(key: Key) -> str:
    """Name of the entry for ``key``: 64 hexadecimal digits that change with any value in it."""
    return hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def verified(folder: Path) -> Path:
    """The folder of an entry, if its files match its manifest.

    Raises:
        ValueError: a missing or changed file, in words.
    """
    try:
        files = dict(json.loads((folder / MANIFEST).read_text())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        there = folder.exists()
        raise ValueError("its manifest cannot be read" if there else "it is not there") from None
    now = _checksums(folder)
    if not files:
        raise ValueError("its manifest names no file")
    if changed := [name for name in files | now if files.get(name) != now.get(name)]:
        raise ValueError(f"{changed[0]} has changed since it was written")
    return folder


def _checksums(folder: Path) -> dict[str, str]:
    """Hashes of an entry's files, without its manifest and hidden ones (which a file browser may leave)."""
    paths = set(filter(Path.is_file, folder.rglob("[!.]*"))) - {folder / MANIFEST}
    return {path.relative_to(folder).as_posix(): checksum(path) for path in paths}


def artefact(
    kind: str,
    key: Key,
    fill: Callable[[Path, Path], Any],
    read: Callable[[Path], Any] = verified,
) -> Any:
    """What is read of a finished piece of work, made by ``fill`` if it is not there yet.

    Args:
        kind: first level below the cache's root.
        key: all that decides the content.
        fill: called as ``fill(target, scratch)`` to write the result into the empty folder
            ``target``; ``scratch`` is a folder of the same key that survives a kill, and is removed
            when the entry is finished.
        read: gives what is returned of the entry's folder, by default the folder itself. Where it
            raises ValueError, since the entry is damaged, this is set aside (renamed, with a
            warning) and made again.

    Raises:
        PermissionError: the cache cannot be written to, and has no whole entry for the key.
    """
    folder = cache_folder() / kind / key_digest(key)[:32]
    try:  # without a lock: an entry gets its name when it is whole
        value = read(folder)
        with contextlib.suppress(OSError):  # another person's, or a cache that is only read
            os.utime(folder)  # the time of its last use, by which entries are removed
        return value
    except (ValueError, FileNotFoundError) as error:  # the latter, if it is being removed
        needed = f"{kind}/{folder.name} is needed, and {error}"
    with locked(folder, why=needed):
        try:  # another process may have made it meanwhile
            return read(folder)
        except (ValueError, FileNotFoundError) as error:
            if folder.exists():
                warning = "cache entry %s is damaged (%s); set aside as %s and computed again"
                logger.warning(warning, folder.name, error, _set_aside(folder).name)
        scratch = folder.with_name(f"{folder.name}.unfinished")
        target = scratch / "result"
        shutil.rmtree(target, ignore_errors=True)  # what a killed process left of it
        target.mkdir(parents=True)
        fill(target, scratch)
        manifest = json.dumps({"key": key, "files": _checksums(target)}, indent=1, sort_keys=True)
        (target / MANIFEST).write_text(manifest)
        os.replace(target, folder)
        shutil.rmtree(scratch, ignore_errors=True)  # the entry is whole
        return read(folder)


def _set_aside(folder: Path) -> Path:
    """Rename an entry, so that a kill leaves no half of it under its name."""
    name = folder.name.split(".")[0]
    aside = Path(tempfile.mkdtemp(prefix=f"{name}.damaged-", dir=folder.parent))
    return folder.rename(aside)  # onto an empty folder


def is_finished(kind: str, key: Key) -> bool:
    """True if :func:`artefact` has a folder for this key; whether it is whole is seen when it is read."""
    return (cache_folder() / kind / key_digest(key)[:32] / MANIFEST).is_file()


def checksum(path: Path, algorithm: Any = xxhash.xxh3_128) -> str:
    """A file's hash in hexadecimal digits; by XXH3 to tell damage, as SHA-256 of a model takes as long as loading it.

    Args:
        path: the file.
        algorithm: as of :func:`hashlib.file_digest`.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    return checksum(path, "sha256")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees either the old content or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(
            content
        )  # mkstemp's files only their owner can read, whatever the umask
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def not_writable(why: str) -> str:
    """Message for a cache that cannot be written to, with what to do.

    Args:
        why: what would have to be written.
    """
    return (
        f"the cache folder {cache_folder()} cannot be written to: {why}. Make it writable, or name another folder in"
        f" {CACHE_VARIABLE}; a copy of this one has what is finished"
    )


# Locks


@contextlib.contextmanager
def locked(
    folder: Path, timeout: float = -1, why: str = "nothing can be removed"
) -> Iterator[None]:
    """Hold an entry's lock; its file goes when the work is done. After a failure it stays, as unfinished work does."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Where a file system has no locks, filelock takes the file's existence for one, and warns.
        lock = FileLock(folder.with_name(f"{folder.name.split('.')[0]}.lock"), timeout)
        held = lock.acquire()
    except OSError as error:
        raise PermissionError(not_writable(why)) if is_closed(error) else error from None
    with held:
        yield
        with contextlib.suppress(OSError):
            # While it is held; who opened it before, and locks it only now, tries again (filelock).
            Path(lock.lock_file).unlink()


# Values as files


def pack(value: object) -> bytes:
    """The content of a file that holds arrays, numbers and texts, in lists, tuples, dicts and this package's dataclasses.

    It is a SafeTensors file of the arrays, one of which is the text (JSON) of how all hangs
    together.

    Raises:
        TypeError: something else is in it.
    """
    from safetensors.numpy import save

    arrays: dict[str, np.ndarray] = {}
    described = json.dumps(_describe(value, arrays))
    return save(arrays | {"described": np.frombuffer(described.encode(), dtype=np.uint8)})


def unpack(content: bytes) -> Any:
    """The value that :func:`pack` packed.

    Raises:
        ValueError: it names a class that is no dataclass of this package.
    """
    from safetensors.numpy import load

    arrays = load(content)
    return _restore(json.loads(arrays.pop("described").tobytes()), arrays)


def _describe(value: Any, arrays: dict[str, np.ndarray]) -> list[Any]:
    """[kind, parts]; what is an array goes into ``arrays``."""

    def inner(parts: Iterable[Any]) -> list[Any]:
        return [_describe(part, arrays) for part in parts]

    kind = type(value)
    if isinstance(value, (np.ndarray, np.generic)):  # first, as np.float64 is a float, too
        name = str(len(arrays))
        # ascontiguousarray makes an array of a scalar, and reshape a scalar again.
        arrays[name] = np.ascontiguousarray(value).reshape(np.shape(value))
        return ["scalar" if isinstance(value, np.generic) else "array", name]
    if isinstance(value, (bool, int, float, str, type(None))):
        return ["plain", value]
    if kind in (list, tuple):
        return [kind.__name__, inner(value)]
    if isinstance(value, dict):
        return ["dict", [inner(pair) for pair in value.items()]]
    if dataclasses.is_dataclass(value) and kind.__module__.startswith(f"{__package__}."):
        names = [field.name for field in dataclasses.fields(value)]
        fields = zip(names, inner(getattr(value, name) for name in names), strict=True)
        return [f"{kind.__module__}:{kind.__qualname__}", dict(fields)]
    what = "cannot be kept; arrays, numbers and texts can, and what holds them"
    raise TypeError(f"{kind.__name__} {what}")


def _restore(described: list[Any], arrays: dict[str, np.ndarray]) -> Any:
    kind, parts = described
    if kind == "plain":
        return parts
    if kind in ("array", "scalar"):
        return arrays[parts] if kind == "array" else arrays[parts][()]
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(_restore(part, arrays) for part in parts)
    if kind == "dict":
        return {_restore(key, arrays): _restore(value, arrays) for key, value in parts}
    return _record(kind)(**{name: _restore(part, arrays) for name, part in parts.items()})


def _record(name: str) -> Any:
    """A dataclass of this package, by its name "module:class"."""
    module, _, kind = name.partition(":")
    ours = module in SOURCES or f"{module}.__init__" in SOURCES
    record = getattr(importlib.import_module(module), kind, None) if ours else None
    if isinstance(record, type) and dataclasses.is_dataclass(record):
        return record
    text = f"no dataclass of {__package__}; the file was not written by this version"
    raise ValueError(f"{name} is {text}")


# What is not used any more


def evict_measurements() -> None:
    """Remove measurements not used for longest where all take more than :data:`MEASURED_BYTES`; none used today."""
    total = 0
    with contextlib.suppress(OSError):  # a cache that can only be read
        folders = filter(Path.is_dir, cache_folder().glob(f"{MEASURED}/*"))
        for folder in sorted(folders, key=_age):
            total += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            if total > MEASURED_BYTES and _age(folder) > 1:
                with contextlib.suppress(Timeout), locked(folder, timeout=0):
                    shutil.rmtree(_set_aside(folder))


def _age(folder: Path) -> float:
    """Days since it was last used."""
    return (time.time() - folder.stat().st_mtime) / 86400
