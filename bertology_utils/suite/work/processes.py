"""Calls in worker processes of this machine, through joblib; each has one thread and ends with its parent."""

from __future__ import annotations

import os
import secrets
import shutil
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...common.cache import cache_folder
from . import machine
from .worker import Session, end_with

FORGOTTEN = 30 * 86400  # seconds: longer than any run


class WorkerDiedError(Exception):
    """A worker ended in the middle of a call; what was in hand has to be done again."""


@contextmanager
def session_of_run(on_cluster: bool = False) -> Iterator[Session]:
    """What the workers of one run share; their folder goes with the run."""
    parent = None if on_cluster else os.getpid()
    session = Session(secrets.token_hex(6), str(cache_folder().resolve()), machine.gpus(), parent)
    session.folder.mkdir(parents=True)
    for left in session.folder.parent.iterdir():  # by a killed run
        if time.time() - left.stat().st_mtime > FORGOTTEN:
            shutil.rmtree(left, ignore_errors=True)
    try:
        yield session
    finally:
        shutil.rmtree(session.folder, ignore_errors=True)


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
