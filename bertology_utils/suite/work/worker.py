"""One item of a plan, made by a worker: a process on this machine, or one of a cluster that shares the cache folder.

A worker chooses its GPU before torch looks for one.
"""

from __future__ import annotations

import functools
import getpass
import os
import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from ...common.cache import CACHE_VARIABLE
from ...common.disk import is_full
from ...common.environment import environment
from ...common.progress import LOG_VARIABLE

if TYPE_CHECKING:
    from .plan import Item

_OWN_CACHE = os.environ.get(CACHE_VARIABLE)  # before a run sets it
_one_at_a_time = threading.Lock()  # a cluster's worker may have several threads, and torch's random numbers have one state


@dataclass(frozen=True)
class Session:
    """What all workers of one run know.

    Attributes:
        name: of the run; its folder in the cache holds what workers say.
        cache: the cache folder; a cluster's worker that was started with :data:`CACHE_VARIABLE` sees it under that name.
        gpus: of this machine, to be shared out.
        parent: process with which its workers end; None for a cluster's, which outlive a run.
    """

    name: str
    cache: str
    gpus: int = 0
    parent: int | None = None

    @property
    def folder(self) -> Path:
        """Where workers say what they are doing."""
        return Path(self.cache) / "plans" / self.name

    def as_seen_here(self) -> Session:
        """For a worker of a cluster that sees the cache folder under another name."""
        return replace(self, cache=_OWN_CACHE) if self.parent is None and _OWN_CACHE else self

    def in_hand(self) -> list[int]:
        """Numbers of the items that were begun and not ended."""
        return sorted(int(mark.stem) for mark in self.folder.glob("*.in-hand"))

    def drop(self) -> list[int]:
        """Take the marks of items in hand away, after their workers have died; returns their numbers."""
        numbers = self.in_hand()
        for number in numbers:
            (self.folder / f"{number}.in-hand").unlink(missing_ok=True)
        return numbers

    def progress(self, number: int) -> float:
        """Share of an item in hand that is done, as far as its last line of progress tells."""
        try:
            said = (self.folder / f"{number}.log").read_text(encoding="utf-8")
        except OSError:
            return 0.0
        found = re.findall(r"(\d+) of (\d+)", said)
        return min(1.0, int(found[-1][0]) / max(1, int(found[-1][1]))) if found else 0.0


@dataclass(frozen=True)
class Made:
    """How one item went.

    Attributes:
        number: of the item in the plan.
        seconds: it took.
        problem: what went wrong, in a line, or None.
    """

    number: int
    seconds: float
    problem: str | None = None


def make(number: int, item: Item, session: Session) -> Made:
    """Make one item and leave it in the cache; an error is told, not raised, so that the others go on."""
    start, problem = time.monotonic(), None
    session = session.as_seen_here()
    with _one_at_a_time:
        try:
            join(session)
            os.environ[CACHE_VARIABLE] = str(session.folder.parent.parent)
            with _at_work(number, session):
                _make(item, session.name)
        except Exception as error:
            from ..execute import in_words

            problem = in_words(error) if is_full(error) else f"{type(error).__name__}: {error}"
    return Made(number, time.monotonic() - start, problem)


def _make(item: Item, run: str) -> None:
    import torch

    from ..quiet import quiet

    quiet()
    torch.set_num_threads(1)  # a cluster's worker was started by somebody else
    lab = _experiment(item.notebooks[0], item.parameters, run)
    kind, key = lab.entry(item.need)
    others = [name for name in key if key[name] != item.key.get(name)]
    if (kind, others) != (item.kind, []):
        theirs, ours = ({name: key.get(name) for name in others} for key in (key, item.key))
        raise RuntimeError(
            f"the worker on {socket.gethostname()} would make something else than this run needs: it has {theirs}, not {ours};"
            " workers need the same versions of the package and its libraries, the same files, the same kind of processor"
        )
    lab.make(item.need)


@functools.lru_cache(maxsize=2)  # rows and inputs are read once by a worker in each run
def _experiment(notebook: str, parameters: tuple[tuple[str, object], ...], run: str):
    from ..experiment import Experiment

    return Experiment(notebook, **dict(parameters))


@functools.cache
def join(session: Session) -> None:
    """Prepare this process for the items of a run, once."""
    if not session.folder.is_dir():
        raise FileNotFoundError(
            f"the worker on {socket.gethostname()} does not see {session.folder}; all workers need the run's cache folder:"
            f" under the same path, or under another one that their {CACHE_VARIABLE} names"
        )
    if session.parent not in (None, os.getpid()) and session.gpus > 1:  # with one job, the run works itself
        os.environ["CUDA_VISIBLE_DEVICES"] = _free_gpu(session.gpus)


def end_with(parent: int) -> None:
    """End this process when its parent has ended, which tells its workers nothing if it is killed."""
    import psutil

    def watch() -> None:
        while psutil.pid_exists(parent) and (os.name == "nt" or os.getppid() == parent):
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_gpu_locks: list[FileLock] = []  # held as long as this process lives


def _free_gpu(count: int) -> str:
    """The first GPU that no other worker of this person has taken, of those that the run sees."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    for name in seen.split(",") if seen else map(str, range(count)):
        lock = FileLock(Path(tempfile.gettempdir()) / f"bertology-{getpass.getuser()}-gpu-{name}.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            continue
        _gpu_locks.append(lock)
        return name
    raise RuntimeError(f"other workers have taken all {count} GPUs of this machine; wait for them, or start fewer: --jobs")


@contextmanager
def _at_work(number: int, session: Session) -> Iterator[None]:
    """Progress goes to a file of the run's; another one says that the item is in hand."""
    log, mark = session.folder / f"{number}.log", session.folder / f"{number}.in-hand"
    try:
        mark.write_text(socket.gethostname())
        log.write_text("")
    except OSError as error:
        raise PermissionError(
            f"the worker on {socket.gethostname()} cannot write to {session.folder} ({error.strerror});"
            " all workers write to the run's cache folder"
        ) from None
    try:
        with environment({LOG_VARIABLE: str(log)}):
            yield
    finally:
        mark.unlink(missing_ok=True)
