"""Calls in worker processes of this machine, through joblib; each has one thread and ends with its parent."""

from __future__ import annotations

import os
import secrets
import shutil
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ...common.cache import cache_folder, not_writable
from ...common.disk import is_closed
from ...common.locks import lock_beside
from . import machine
from .worker import Session, end_with

FORGOTTEN = 30 * 86400  # seconds: longer than any run


class WorkerDiedError(Exception):
    """A worker ended in the middle of a call; what was in hand has to be done again."""


@contextmanager
def session_of_run(on_cluster: bool = False, place: Path | None = None) -> Iterator[Session]:
    """What the workers of one run share; their folder goes with the run.

    Args:
        on_cluster: the workers are a cluster's.
        place: where the folder is; the cache folder, which workers that make something write to, if it is left out.

    Raises:
        PermissionError: the cache cannot be written to.
    """
    parent = None if on_cluster else os.getpid()
    session = Session(secrets.token_hex(6), str((place or cache_folder()).resolve()), machine.gpus(), parent)
    try:
        session.folder.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock_of(session.folder)
        lock.acquire()  # before the folder is there, so that no other run takes it for a dead one's
        session.folder.mkdir()
    except OSError as error:
        if is_closed(error):
            raise PermissionError(not_writable("something has to be made for this run")) from None
        raise
    try:
        _clear_left(session.folder.parent)
        yield session
    finally:
        shutil.rmtree(session.folder, ignore_errors=True)
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


def _lock_of(folder: Path) -> FileLock:
    """Held as long as a run lives; the folder's own folder exists."""
    return lock_beside(folder.with_name(f"{folder.name}.lock"), timeout=0)


def _clear_left(sessions: Path) -> None:
    """Remove what killed runs left: old by the clock, which may be wrong, and held by nobody, which some disks cannot tell."""
    for left in (path for path in sessions.iterdir() if path.is_dir()):
        if time.time() - left.stat().st_mtime > FORGOTTEN:
            with suppress(Timeout), _lock_of(left) as lock:
                shutil.rmtree(left, ignore_errors=True)
                Path(lock.lock_file).unlink(missing_ok=True)


def run_in_processes(calls: Iterable[tuple], jobs: int) -> Iterator[Any]:
    """Results of calls, as they come.

    Args:
        calls: made by joblib's ``delayed``.
        jobs: processes.

    Raises:
        WorkerDiedError: one was killed, with it the others.
    """
    from joblib import Parallel, parallel_config
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # joblib replaces a worker that has grown, and says so
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    try:
        with parallel_config(backend="loky", inner_max_num_threads=1, initializer=end_with, initargs=(os.getpid(),)):
            yield from Parallel(n_jobs=jobs, batch_size=1, pre_dispatch=jobs, return_as="generator_unordered")(calls)
    except TerminatedWorkerError:
        raise WorkerDiedError from None
    finally:
        if jobs > 1:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)
