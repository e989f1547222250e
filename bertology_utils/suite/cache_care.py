"""Look after the cache: what is in it, whether it is whole, and what can go (``python -m bertology_utils cache``)."""

import contextlib
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from ..common.cache import MANIFEST, cache_folder
from ..common.locks import lock_beside
from ..common.packing import KIND

MEASURED_DAYS = 3.0
STATES = ("finished", "unfinished", "damaged")
_NAME = re.compile(r"[0-9a-f]{32}(\.unfinished|\.damaged-.+)?")  # nothing else in the folder is ours to touch
_TELLING = ("task", "init", "seed", "ablation", "pipeline", "measured")  # parts of a key that say to people what an entry is


@dataclass(frozen=True)
class Entry:
    """One folder of the cache.

    Attributes:
        path: the folder.
        state: "finished", "unfinished" (a killed run can go on from it) or "damaged" (was set aside).
        size: of its files, in bytes.
        used: when it was last read or written, in seconds since the epoch.
    """

    path: Path
    state: str
    size: int
    used: float

    @property
    def kind(self) -> str:
        """First level of the cache ("classifiers")."""
        return self.path.parent.name

    @property
    def days(self) -> float:
        """Days since it was last used."""
        return max(0.0, time.time() - self.used) / 86400

    def what(self) -> str:
        """The telling parts of its key, for people; "" if it has none."""
        try:
            key = dict(json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))["key"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        training = key.get("training")
        key |= training if isinstance(training, dict) else {}
        return ", ".join(f"{name} {key[name]}" for name in _TELLING if key.get(name) is not None)


def entries(kind: str = "*") -> list[Entry]:
    """Folders of the cache, all or of one kind, by kind and name."""
    folders = sorted(path for path in cache_folder().glob(f"{kind}/*") if _NAME.fullmatch(path.name) and path.is_dir())
    return [Entry(path, _state(path), _size(path), path.stat().st_mtime) for path in folders]


def forget_measurements() -> None:
    """Remove what was measured and not looked up for :data:`MEASURED_DAYS`: each change of the code leaves half a GiB."""
    with contextlib.suppress(OSError):  # a cache that can only be read
        prune(MEASURED_DAYS, KIND)


def prune(older_than: float | None, kind: str = "*") -> tuple[list[Entry], list[Entry]]:
    """Remove entries; those that another process is working on stay.

    Args:
        older_than: days without use; None for all entries.
        kind: of this kind only.

    Returns:
        The entries that were removed, and those in use that were to be.
    """
    removed, busy = [], []
    for entry in entries(kind):
        if older_than is not None and entry.days < older_than:
            continue
        name = entry.path.name.split(".")[0]
        try:
            with lock_beside(entry.path.with_name(f"{name}.lock"), timeout=0):  # as cache.entry takes it
                gone = entry.path
                if entry.state == "finished":  # under another name first: a kill must not leave half an entry
                    gone = entry.path.with_name(f"{name}.damaged-removed")
                    shutil.rmtree(gone, ignore_errors=True)
                    os.replace(entry.path, gone)
                shutil.rmtree(gone)
            removed.append(entry)
        except Timeout:
            busy.append(entry)
    return removed, busy


def _state(path: Path) -> str:
    return "unfinished" if path.name.endswith(".unfinished") else "damaged" if ".damaged-" in path.name else "finished"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
