"""The folders of a run: held by one process, filled under another name, cleared of what killed runs left."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import Timeout

from ..common.cache import digest
from ..common.locks import lock_beside
from .results import project_root

STAGING = ".staging-"


def output_folder(values: dict[str, object]) -> Path:
    """Where a run's executed notebooks and report go: in ``runs/``, named by what differs from the default."""
    parts = [str(values.get("profile", "embedded"))]
    parts += [f"{name}-{re.sub(r'[^A-Za-z0-9.]+', '_', str(values[name]))}" for name in values if name != "profile"]
    unique = f"+{digest(values)[:8]}" if values else ""  # two settings may look alike in a folder's name
    return project_root() / "runs" / ("+".join(parts)[:100] + unique)


@contextmanager
def only_run(output: Path, figures: Path) -> Iterator[None]:
    """Hold the folders of a run for this process, and clear away what killed runs left in them.

    Raises:
        BlockingIOError: another run is writing there.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    lock = lock_beside(output.with_name(f".{output.name}.lock"), timeout=0)  # the system frees it when the process ends
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(f"another run is writing to {output}; wait until it ends, or choose other settings") from None
    try:
        _clear_all(output, figures)  # of no living run: that would hold the lock
        yield
    finally:
        _clear_all(output, figures)  # of this run's workers, if they were killed with it
        lock.release()


def _clear_all(output: Path, figures: Path) -> None:
    for staging in figures.glob(f"{STAGING}*"):
        _clear(staging, figures)
    for half in output.glob(".*-*"):  # of write_atomically
        half.unlink()


def _clear(staging: Path, figures: Path) -> None:
    """Remove a staging folder; figures that were set aside in it return if nothing has taken their place."""
    for aside in staging.glob("*.before"):
        if not (figures / aside.stem).exists():
            os.replace(aside, figures / aside.stem)
    shutil.rmtree(staging)
