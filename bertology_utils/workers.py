"""Who does the work: processes of this machine (loky), or a Dask cluster, both through concurrent.futures.

:func:`work` is the one way in which anything runs side by side here; :func:`jobs_for` says how many
processes fit. joblib's own Dask backend is not taken: it never calls back for a task whose worker
was killed, so that a run would hang.
"""

from __future__ import annotations

import getpass
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .common import SILENT, device, is_full

KERNEL = (
    2.5 * 2**30
)  # bytes that a notebook's kernel takes at most with the embedded model (measured: 2.2 GiB)
KEPT = "what was finished is in the cache, and a new run goes on from there"


def in_words(error: BaseException) -> str:
    """What an error, of the operating system say, means for a run."""
    if is_full(error):
        where = getattr(error, "filename", None) or "nothing more can be written"
        return f"the disk is full ({where}); free some space and run again, which goes on from what is finished"
    worded = isinstance(error, (ConnectionError, RuntimeError)) or (
        isinstance(error, OSError) and error.errno is None
    )
    return str(error) if worded else f"{type(error).__name__}: {error}"


def work(
    function: Callable, items: Iterable, jobs: int, scheduler: str = "", alone: bool = False
) -> Generator[tuple[Any, Any], None, None]:
    """Pairs of an item and ``function(item)``, as they end; None for an item that was in hand when its worker died.

    Items are asked for one by one, and at most ``jobs`` are in hand, so that it is known which
    these are.

    Args:
        function: may be pickled.
        items: what is worked through.
        jobs: how many at once; 1 is this process itself.
        scheduler: address of a Dask scheduler, whose workers are taken instead.
        alone: in a process of its own also where ``jobs`` is 1.

    Raises:
        ConnectionError: no scheduler at the address, or it, or all its workers, went away.
        Exception: of ``function``.
    """
    if jobs == 1 and not (scheduler or alone):
        yield from ((item, function(item)) for item in items)
        return
    queue, broken = iter(items), True
    in_hand: dict[Future, Any] = {}
    while broken:  # by a dead worker, with which loky gives up the others
        broken = False
        with _executor(jobs, scheduler) as (executor, check):
            while True:
                while (
                    len(in_hand) < jobs and not broken and (item := next(queue, None)) is not None
                ):
                    in_hand[executor.submit(function, item)] = item
                if not in_hand:
                    break
                ended, _ = wait(in_hand, timeout=1, return_when=FIRST_COMPLETED)
                check()
                for future in ended:
                    item = in_hand.pop(future)
                    if future.cancelled():
                        raise ConnectionError(
                            f"the Dask scheduler at {scheduler} went away; {KEPT}"
                        )
                    error = future.exception()
                    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
                        broken = broken or isinstance(error, BrokenExecutor)
                        yield item, None
                    else:
                        yield item, future.result()


@contextmanager
def _executor(jobs: int, scheduler: str) -> Iterator[tuple[Executor, Callable[[], None]]]:
    """Who works, and a function that raises ConnectionError where they went away."""
    if scheduler:
        with cluster(scheduler) as client:
            executor = client.get_executor(pure=False)
            try:
                yield executor, partial(_check_alive, client, scheduler)
            finally:
                executor.shutdown(wait=False)
    else:
        from joblib.externals.loky import get_reusable_executor

        warnings.filterwarnings(
            "ignore", message="A worker stopped while some jobs were given"
        )  # one that had grown
        environment = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        if "IPython" in sys.modules and SILENT not in os.environ:
            environment[SILENT] = "1"  # or a notebook would show it
        executor = get_reusable_executor(
            jobs, timeout=None, initializer=_begin, initargs=(os.getpid(),), env=environment
        )
        stop = True
        try:
            yield executor, lambda: None
            stop = False
        finally:
            executor.shutdown(wait=True, kill_workers=stop)


def _begin(parent: int) -> None:
    """Take a GPU, leave Ctrl-C to the parent, and end with it: one that is killed tells its workers nothing."""
    import psutil
    from tqdm import tqdm

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tqdm.set_lock(
        threading.RLock()
    )  # its own is a semaphore, of which a worker that is stopped with its run leaves one
    _take_gpu()

    def watch() -> None:
        while psutil.pid_exists(parent) and (os.name == "nt" or os.getppid() == parent):
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_held: list[Any] = []  # locks of GPUs, as long as this process lives


def _take_gpu() -> None:
    """Choose a GPU that no other worker has, of those that the run sees, before torch looks for one."""
    from filelock import FileLock, Timeout

    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    for name in seen.split(",") if seen else map(str, range(gpus())):
        lock = FileLock(
            Path(tempfile.gettempdir()) / f"bertology-{getpass.getuser()}-gpu-{name}.lock",
            timeout=0,
        )
        try:
            lock.acquire()
        except Timeout:
            continue
        _held.append(lock)
        os.environ["CUDA_VISIBLE_DEVICES"] = name
        return


@contextmanager
def cluster(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at ``address``.

    Raises:
        ConnectionError: there is none, or it has no workers.
        ModuleNotFoundError: Dask Distributed is not installed.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "--scheduler needs Dask Distributed: pip install -e '.[cluster]'"
        ) from None
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler at {address} ({error}); start one: dask scheduler"
        ) from None
    try:
        if not client.scheduler_info()["workers"]:
            raise ConnectionError(
                f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
            )
        yield client
    finally:
        client.close(timeout=2)


def cluster_size(address: str) -> int:
    """Number of workers of a Dask scheduler; raises as :func:`cluster`."""
    with cluster(address) as client:
        return len(client.scheduler_info()["workers"])


def _check_alive(client: Any, address: str) -> None:
    try:
        alone = not client.scheduler_info().get("workers") and client.status == "running"
    except (OSError, TimeoutError):
        raise ConnectionError(f"the Dask scheduler at {address} went away; {KEPT}") from None
    if alone or client.status in ("closing", "closed"):
        raise ConnectionError(
            f"{'all workers of ' if alone else ''}the Dask scheduler at {address} went away; {KEPT}"
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, as sums of floats depend on their number; afterwards with as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def gpus() -> int:
    """Number of GPUs that this process sees, and is to use."""
    import torch

    return torch.cuda.device_count() if device().type == "cuda" else 0


def free_memory() -> int:
    """Bytes that can still be taken, limits of a container included."""
    import psutil

    free, group = psutil.virtual_memory().available, Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return min(
            free, max(0, limit - used + int(statistics["inactive_file"]))
        )  # counted as used, and given up
    except (OSError, ValueError, KeyError):  # no such limit: "max"
        return free


def jobs_for(memory: float, wanted: int = 0) -> int:
    """How many workers run at once: one for each GPU, else for each core, as far as memory reaches.

    Args:
        memory: of one worker, in bytes.
        wanted: a person's number; 0 for as many as fit.

    Raises:
        ValueError: more workers are wanted than there are GPUs, or than memory allows.
    """
    import joblib

    free, there = free_memory(), gpus()
    most = max(1, int(free // memory))
    if wanted > there > 1:
        raise ValueError(
            f"{wanted} workers and {there} GPUs: each worker takes one; choose --jobs {there}"
        )
    if wanted > most:
        raise ValueError(
            f"{wanted} workers of about {memory / 2**30:.1f} GiB do not fit into the {free / 2**30:.1f} GiB that are"
            f" free; choose --jobs {most} or fewer"
        )
    return wanted or min(there or joblib.cpu_count(), most)
