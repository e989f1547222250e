"""Finished work on disk: keyed by all that determines it, written atomically, checked when read.

An entry is a folder named by the SHA-256 of its key, with a manifest of its
files' hashes. It is filled under another name and renamed when whole, so a
killed process leaves no half-written entry.
"""

import ast
import contextlib
import functools
import hashlib
import inspect
import json
import logging
import os
import secrets
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from .disk import is_closed
from .locks import lock_beside

CACHE_VARIABLE = "BERTOLOGY_CACHE"
MANIFEST = "manifest.json"
Key = Mapping[str, object]  # everything that determines an entry's content; JSON values only
logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Root of the cache: $BERTOLOGY_CACHE, else ~/.cache/bertology_utils."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "bertology_utils")


def digest(key: Key) -> str:
    """Name of the entry for ``key``: 64 hexadecimal digits that change with any value in it."""
    return hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def entry(kind: str, key: Key, fill: Callable[[Path, Path], None]) -> Path:
    """The folder of a finished piece of work, computed by ``fill`` if it is not there yet.

    Args:
        kind: first level below the cache's root ("classifiers").
        key: everything that determines the content.
        fill: called as ``fill(target, scratch)`` to write the result into the
            empty folder ``target``; ``scratch`` is a folder of the same key that
            survives a kill, for what a resumed run can use. It is removed
            when the entry is finished.

    Returns:
        A folder whose files match the manifest. An entry that does not is set
        aside (renamed, with a warning) and computed again.

    Raises:
        PermissionError: the cache cannot be written to, and has no whole entry for the key.
    """
    name = digest(key)[:32]
    folder, scratch = cache_folder() / kind / name, cache_folder() / kind / f"{name}.unfinished"
    try:
        scratch.parent.mkdir(parents=True, exist_ok=True)
        held = lock_beside(folder.with_name(f"{name}.lock")).acquire()  # a second process waits, then finds the entry
    except OSError as error:
        if not is_closed(error):
            raise
        return _only_read(folder)
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
        _write_manifest(target, key)
        os.replace(target, folder)
        shutil.rmtree(scratch)
    return folder


def _only_read(folder: Path) -> Path:
    """An entry of a cache that cannot be written to."""
    problem = damage(folder) if folder.exists() else "it is not there"
    if problem is None:
        return folder
    raise PermissionError(not_writable(f"{folder.parent.name}/{folder.name} is needed, and {problem}"))


def not_writable(why: str) -> str:
    """What to do with a cache that cannot be written to, in words.

    Args:
        why: what would have to be written.
    """
    return (
        f"the cache folder {cache_folder()} cannot be written to: {why}. Make it writable, or name another folder in"
        f" {CACHE_VARIABLE}; a copy of this one has what is finished"
    )


def is_finished(kind: str, key: Key) -> bool:
    """True if :func:`entry` has a folder for this key; whether it is whole is seen when it is read."""
    return (cache_folder() / kind / digest(key)[:32] / MANIFEST).is_file()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.cache
def code_digest(*parts: Callable[..., object] | type | ModuleType) -> str:
    """SHA-256 of the code of functions, classes or modules, for keys that change with the code that decides a result.

    Comments, docstrings, layout, imports and the annotations of arguments do not count: they decide nothing.
    """
    trees = (ast.parse(textwrap.dedent(inspect.getsource(part))) for part in parts)
    return hashlib.sha256("\n".join(ast.unparse(_Bare().visit(tree)) for tree in trees).encode()).hexdigest()


class _Bare(ast.NodeTransformer):
    """Takes away what decides nothing."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [part for part in body if not _is_remark(part)] or [ast.Pass()]
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        return node


def _is_remark(node: ast.AST) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text or isinstance(node, (ast.Import, ast.ImportFrom))


def damage(folder: Path) -> str | None:
    """What is wrong with an entry: a missing or changed file; None if it is whole."""
    try:
        files = dict(json.loads((folder / MANIFEST).read_text())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest cannot be read"
    if not files:
        return "its manifest names no file"
    unlisted = sorted(set(_contents(folder)) - set(files))
    if unlisted:
        return f"{unlisted[0]} is not in its manifest"
    for name, expected in files.items():
        if not (folder / name).is_file():
            return f"{name} is missing"
        if file_sha256(folder / name) != expected:
            return f"{name} has changed since it was written"
    return None


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees either the old content or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:  # not mkstemp, whose files only their owner can read, whatever the umask
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _contents(folder: Path) -> list[str]:
    """Files of an entry, without its manifest and hidden ones (which a file browser may leave)."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in names if name != MANIFEST and not name.split("/")[-1].startswith("."))


def _write_manifest(folder: Path, key: Key) -> None:
    files = {name: file_sha256(folder / name) for name in _contents(folder)}
    manifest = json.dumps({"key": key, "files": files}, indent=1, sort_keys=True, ensure_ascii=False)
    write_atomically(folder / MANIFEST, manifest.encode())


def _set_aside(folder: Path, problem: str) -> None:
    aside = Path(tempfile.mkdtemp(prefix=f"{folder.name}.damaged-", dir=folder.parent))
    os.replace(folder, aside)  # rename onto an empty folder
    logger.warning("cache entry %s is damaged (%s); set aside as %s and computed again", folder.name, problem, aside.name)
