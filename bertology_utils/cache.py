"""One cache for all finished work: trainings, sweeps, measurements, annotation.

``cached(function, ...)`` gives what the function returned when it was last called with arguments of
this content and with the code that it has now (:mod:`bertology_utils.digest` tells both). An
entry is a folder with a manifest of its files' hashes. It is filled under another name and renamed
when whole, so that a killed process leaves no half of one. Values are SafeTensors and JSON, never
pickle.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import getpass
import hashlib
import importlib
import inspect
import itertools
import json
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from filelock import FileLock, Timeout

from .common import SOURCES, device_name, is_closed

CACHE_VARIABLE = "BERTOLOGY_CACHE"
MANIFEST = "manifest.json"
MADE, MEASURED = (
    "made",
    "measured",
)  # kinds of entries: what takes long, and what is forgotten again
MEASURED_DAYS = 3.0
LIBRARIES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "scipy", "scikit-learn")
Key = Mapping[str, object]  # all that decides an entry's content; JSON values only
logger = logging.getLogger(__name__)

_VALUE = "value.safetensors"
_NAME = re.compile(
    r"[0-9a-f]{32}(\.unfinished|\.damaged-.+)?"
)  # nothing else in the folder is ours to touch


# Calls


@dataclasses.dataclass(frozen=True)
class Lazy:
    """An argument of :func:`cached` that is made only where the value is not in the cache.

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
    folder's path is returned. A call with an argument that cannot be told from others (see
    :func:`bertology_utils.digest.fingerprint`) is made each time.

    Args:
        function: of this package, without side effects; it returns what :func:`pack` takes.
        arguments, options: its own; each may be a :class:`Lazy`.

    Raises:
        ValueError: a function that is not of this package, whose code could be another the next
            time.
        PermissionError: the cache cannot be written to and has no such entry, where that is a
            folder or has a scratch.
    """
    from .digest import UnhashableError

    signature = inspect.signature(function)
    bound = signature.bind_partial(*arguments, **options)
    wanted = signature.parameters.keys() & {"target", "scratch"} - bound.arguments.keys()

    def call(**folders: Path | None) -> Any:
        bound.arguments |= {
            name: each.make() for name, each in bound.arguments.items() if isinstance(each, Lazy)
        }
        return function(*bound.args, **bound.kwargs, **{name: folders[name] for name in wanted})

    try:
        kind, key = cache_key(function, *arguments, **options)
    except UnhashableError:
        if "target" in wanted:
            raise
        return call(scratch=None)
    if "target" in wanted:
        return artefact(kind, key, lambda target, scratch: call(target=target, scratch=scratch))
    return _value(kind, key, lambda scratch: call(scratch=scratch))


def cache_key(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[str, Key]:
    """The kind and the key of the entry that :func:`cached` makes of the same call.

    Raises:
        ValueError: a function that is not of this package.
        UnhashableError: an argument that cannot be told from another.
    """
    from .digest import UnhashableError, code_digest, fingerprint

    signature = inspect.signature(function)
    bound = signature.bind_partial(*arguments, **options)
    bound.apply_defaults()
    try:
        code = code_digest(function)
    except UnhashableError as error:
        raise ValueError(f"{error}; keep what functions of bertology_utils give") from error
    given = {
        name: each for name, each in bound.arguments.items() if name not in ("target", "scratch")
    }
    kind = MADE if signature.parameters.keys() & {"target", "scratch"} else MEASURED
    return kind, _key(function.__qualname__, code, fingerprint(given))


def cached_each(
    function: Callable[..., dict[str, Any]],
    *shared: Any,
    parts: Mapping[str, Any],
    what: object = None,
) -> dict[str, Any]:
    """``function(*shared, parts)``, called for those parts alone that are not in the cache yet.

    Args:
        function: of this package, without side effects; it gives a value for each part, by name.
        shared: its arguments before the parts.
        parts: by name; of no part's value may it matter which others are there.
        what: all of ``shared`` that decides the values; None for ``shared`` itself.
    """
    from .digest import UnhashableError, code_digest, fingerprint

    try:
        seen, code = fingerprint(shared if what is None else what), code_digest(function)
        keys = {
            name: _key(function.__name__, code, fingerprint((seen, part)))
            for name, part in parts.items()
        }
    except UnhashableError:
        return function(*shared, parts)
    missing = {name: part for name, part in parts.items() if not is_finished(MEASURED, keys[name])}
    found = function(*shared, missing) if missing else {}

    def compute(name: str, _: Path | None) -> Any:
        if name not in found:  # it was in the cache, and is damaged
            found.update(function(*shared, {name: parts[name]}))
        return found[name]

    return {
        name: _value(MEASURED, key, functools.partial(compute, name)) for name, key in keys.items()
    }


def _key(name: str, code: str, of_arguments: str) -> Key:
    return {
        "function": name,
        "code": code,
        "arguments": of_arguments,
        "versions": _versions(),
        "device": device_name(),
    }


@functools.cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}


def _value(kind: str, key: Key, compute: Callable[[Path | None], Any]) -> Any:
    """An entry's value, computed if there is none; always as it comes out of the file, so that digits are the same."""

    def fill(target: Path, scratch: Path) -> None:
        (target / _VALUE).write_bytes(pack(compute(scratch)))

    try:
        folder = artefact(kind, key, fill)
        try:
            return unpack((folder / _VALUE).read_bytes())
        except ValueError as error:  # of a record whose class has moved, or is gone
            _set_aside(folder, str(error))
        return unpack((artefact(kind, key, fill) / _VALUE).read_bytes())
    except PermissionError:
        if kind == MADE:
            raise
        return unpack(pack(compute(None)))


# Entries on disk


def cache_folder() -> Path:
    """Root of the cache: $BERTOLOGY_CACHE, else ~/.cache/bertology_utils."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "bertology_utils")


def key_digest(key: Key) -> str:
    """Name of the entry for ``key``: 64 hexadecimal digits that change with any value in it."""
    return hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def artefact(kind: str, key: Key, fill: Callable[[Path, Path], Any]) -> Path:
    """The folder of a finished piece of work, made by ``fill`` if it is not there yet.

    Args:
        kind: first level below the cache's root.
        key: all that decides the content.
        fill: called as ``fill(target, scratch)`` to write the result into the empty folder
            ``target``; ``scratch`` is a folder of the same key that survives a kill, and is removed
            when the entry is finished.

    Returns:
        A folder whose files match the manifest. One that does not is set aside (renamed, with a
        warning) and made again.

    Raises:
        PermissionError: the cache cannot be written to, and has no whole entry for the key.
    """
    folder = _folder(kind, key)
    scratch = folder.with_name(f"{folder.name}.unfinished")
    try:
        scratch.parent.mkdir(parents=True, exist_ok=True)
        held = _lock_of(
            folder, timeout=-1
        ).acquire()  # a second process waits, then finds the entry
    except OSError as error:
        if not is_closed(error):
            raise
        problem = damage(folder) if folder.exists() else "it is not there"
        if problem is None:
            return folder
        raise PermissionError(
            not_writable(f"{kind}/{folder.name} is needed, and {problem}")
        ) from None
    with held:
        if folder.exists():
            problem = damage(folder)
            if problem is None:
                shutil.rmtree(scratch, ignore_errors=True)
                with contextlib.suppress(PermissionError):  # another person's
                    os.utime(folder)  # when it was last used, for `cache prune`
                return folder
            _set_aside(folder, problem)
        target = scratch / "result"
        shutil.rmtree(target, ignore_errors=True)  # what a killed process left of it
        target.mkdir(parents=True)
        fill(target, scratch)
        manifest = {
            "key": key,
            "files": {name: checksum(target / name) for name in _contents(target)},
        }
        write_atomically(
            target / MANIFEST,
            json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode(),
        )
        os.replace(target, folder)
        shutil.rmtree(scratch)
    return folder


def is_finished(kind: str, key: Key) -> bool:
    """True if :func:`artefact` has a folder for this key; whether it is whole is seen when it is read."""
    return (_folder(kind, key) / MANIFEST).is_file()


def damage(folder: Path) -> str | None:
    """Damage of an entry in words, a missing or changed file; None if it is whole."""
    try:
        files = dict(json.loads((folder / MANIFEST).read_text())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest cannot be read"
    if not files or set(_contents(folder)) != set(files):
        return "its files are not those of its manifest"
    changed = [name for name, expected in files.items() if checksum(folder / name) != expected]
    return f"{changed[0]} has changed since it was written" if changed else None


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
        with temporary.open(
            "xb"
        ) as file:  # not mkstemp, whose files only their owner can read, whatever the umask
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def not_writable(why: str) -> str:
    """Message for a cache that cannot be written to, with what to do.

    Args:
        why: what would have to be written.
    """
    return (
        f"the cache folder {cache_folder()} cannot be written to: {why}. Make it writable, or name another folder in"
        f" {CACHE_VARIABLE}; a copy of this one has what is finished"
    )


def _folder(kind: str, key: Key) -> Path:
    return cache_folder() / kind / key_digest(key)[:32]


def _contents(folder: Path) -> list[str]:
    """Files of an entry, without its manifest and hidden ones (which a file browser may leave)."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(
        name for name in names if name != MANIFEST and not name.split("/")[-1].startswith(".")
    )


def _set_aside(folder: Path, problem: str) -> None:
    aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.damaged-", dir=folder.parent))
    os.replace(folder, aside)  # rename onto an empty folder
    logger.warning(
        "cache entry %s is damaged (%s); set aside as %s and computed again",
        folder.name,
        problem,
        aside.name,
    )


# Locks


def lock_beside(path: Path, timeout: float = -1) -> FileLock:
    """A lock that one process at a time holds, and that the system frees when its process ends.

    Where the path's file system has no locks (a network folder, a mounted Drive), it stands in this
    machine's temporary folder: it then keeps processes of one machine apart, not those of several,
    and a warning says so, once.

    Args:
        path: of the lock file; its folder exists.
        timeout: seconds to wait; -1 for as long as it takes.
    """
    if has_locks(path.parent.resolve()):
        return FileLock(path, timeout=timeout)
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    return FileLock(
        Path(tempfile.gettempdir()) / f"bertology-{getpass.getuser()}-{name}.lock", timeout=timeout
    )


@functools.cache
def has_locks(folder: Path) -> bool:
    """True if a folder's file system has locks, or cannot be asked."""
    try:
        import fcntl

        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed below
    except (
        ImportError,
        OSError,
    ):  # Windows, whose locks are of another kind; or nothing can be written there
        return True
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # nobody else can hold a lock of a new file
            logger.warning(
                "the file system of %s has no locks: let one machine at a time work there", folder
            )
            return False
    return True


def _lock_of(folder: Path, timeout: float) -> FileLock:
    return lock_beside(folder.with_name(f"{folder.name.split('.')[0]}.lock"), timeout)


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
    if isinstance(value, (np.ndarray, np.generic)):  # first, as np.float64 is a float, too
        name = str(len(arrays))
        arrays[name] = np.ascontiguousarray(value).reshape(
            np.shape(value)
        )  # which makes an array of a scalar, and back
        return ["scalar" if isinstance(value, np.generic) else "array", name]
    if isinstance(value, (bool, int, float, str, type(None))):
        return ["plain", value]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_describe(part, arrays) for part in value]]
    if isinstance(value, dict):
        return ["dict", [[_describe(part, arrays) for part in pair] for pair in value.items()]]
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith(f"{__package__}."):
        fields = {
            field.name: _describe(getattr(value, field.name), arrays)
            for field in dataclasses.fields(value)
        }
        return [f"{type(value).__module__}:{type(value).__qualname__}", fields]
    raise TypeError(
        f"{type(value).__name__} cannot be kept; arrays, numbers and texts can, and what holds them"
    )


def _restore(described: list[Any], arrays: dict[str, np.ndarray]) -> Any:
    kind, parts = described
    if kind == "plain":
        return parts
    if kind == "array":
        return arrays[parts]
    if kind == "scalar":
        return arrays[parts][()]
    if kind in ("list", "tuple"):
        restored = [_restore(part, arrays) for part in parts]
        return restored if kind == "list" else tuple(restored)
    if kind == "dict":
        return {_restore(key, arrays): _restore(value, arrays) for key, value in parts}
    return _record(kind)(**{name: _restore(part, arrays) for name, part in parts.items()})


def _record(name: str) -> Any:
    """A dataclass of this package, by its name "module:class"."""
    module, _, of_class = name.partition(":")
    ours = module in SOURCES or f"{module}.__init__" in SOURCES
    found = getattr(importlib.import_module(module), of_class, None) if ours else None
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ValueError(
            f"{name} is no dataclass of {__package__}; the file was not written by this version"
        )
    return found


# The command line's part: python -m bertology_utils cache info | prune | clear


def add_to(commands: Any) -> None:
    """Add the command to argparse's sub-commands."""
    text = "what finished work is kept (info), and how to remove old (prune) or all of it (clear)"
    command = commands.add_parser("cache", help=text, description=text)
    command.add_argument("action", choices=("info", "prune", "clear"))
    command.add_argument(
        "--days",
        type=not_negative,
        default=30,
        help="prune: without use, from which on an entry goes (default: 30)",
    )
    command.set_defaults(command=_command)


def not_negative(text: str) -> float:
    """A finite number from 0, for argparse."""
    if not 0 <= float(text) < float("inf"):
        raise ValueError
    return float(text)


not_negative.__name__ = "number from 0"  # what argparse calls it where it refuses a value


def _command(options: Any) -> int:
    if options.action == "info":
        folders = sorted(_entries(), key=_what)
        for what, group in itertools.groupby(folders, _what):
            some = list(group)
            size, days = sum(map(_size, some)) / 2**20, min(map(_age, some))
            print(f"{what:<32} {len(some):5} {size:9.1f} MiB  used {days:.0f} days ago")
        print(
            f"{len(folders)} entries, {sum(map(_size, folders)) / 2**20:.1f} MiB in {cache_folder()}"
        )
    else:
        removed, size, busy = prune(options.days if options.action == "prune" else 0.0)
        print(
            f"{removed} entries removed, {size / 2**20:.1f} MiB; {busy} stay, since they are in use"
        )
    return 0


def prune(days: float, kind: str = "*") -> tuple[int, int, int]:
    """Remove entries; those that another process is working on stay.

    Args:
        days: without use, from which on they go; 0 for all.
        kind: of this kind only.

    Returns:
        How many were removed, their bytes, and how many stay that were to go.
    """
    removed = size = busy = 0
    for folder in _entries(kind):
        if _age(folder) < days:
            continue
        try:
            with _lock_of(folder, timeout=0):  # as artefact() takes it
                size += _size(folder)
                gone = folder.with_name(f"{folder.name.split('.')[0]}.damaged-removed")
                shutil.rmtree(gone, ignore_errors=True)
                os.replace(
                    folder, gone
                )  # under another name first: a kill must not leave half an entry
                shutil.rmtree(gone)
            removed += 1
        except Timeout:
            busy += 1
    return removed, size, busy


def forget_measurements() -> None:
    """Remove measurements that were not looked up for :data:`MEASURED_DAYS`: a change of the code leaves many behind."""
    with contextlib.suppress(OSError):  # a cache that can only be read
        prune(MEASURED_DAYS, MEASURED)


def _entries(kind: str = "*") -> Iterator[Path]:
    return (
        path
        for path in sorted(cache_folder().glob(f"{kind}/*"))
        if _NAME.fullmatch(path.name) and path.is_dir()
    )


def _what(folder: Path) -> str:
    """An entry's kind, the function that made it, and its state if it is not finished; for people."""
    state = folder.name[33:].split("-")[0]  # of a name of 32 digits
    try:
        made_by = json.loads((folder / MANIFEST).read_text())["key"].get("function")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        made_by = None
    return " ".join(filter(None, (folder.parent.name, made_by, state)))


def _age(folder: Path) -> float:
    """Days since it was last used."""
    return max(0.0, time.time() - folder.stat().st_mtime) / 86400


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
