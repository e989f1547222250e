"""Parallel execution by Dask's distributed: processes of this machine, or the workers of a cluster.

:func:`run_tasks` carries out a graph of tasks and yields each as it ends; :func:`count_workers`
says how many processes fit into this machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from .common import SILENT, device, is_full

if TYPE_CHECKING:
    from distributed import Client

# Bytes that a notebook's kernel takes at most with the embedded model (measured: 2.2 GiB).
KERNEL = 2.5 * 2**30
RESUME = "what was finished is in the cache, and a new run goes on from there"
# Seconds for which a cluster may be without any worker, since one that died is started again.
WITHOUT_WORKERS = 60.0
# One thread, however many cores there are: sums of floats depend on it in their last digits.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_CONFIG = {
    "distributed.scheduler.allowed-failures": 0,  # run_tasks begins them again, alone
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.daemon": False,  # a task may start processes of its own
    # Dask's own environment has malloc give memory back at once, by which fine-tuning takes a third
    # longer; its profiler, which looks into a worker a hundred times a second, a fourteenth.
    "distributed.nanny.pre-spawn-environ": ONE_THREAD,
    "distributed.worker.profile.enabled": False,
    # On a busy machine a worker that died takes a minute to be there again.
    "distributed.deploy.lost-worker-timeout": "600s",
    "distributed.comm.timeouts.connect": "120s",
    "distributed.scheduler.worker-ttl": None,  # a run that pauses goes on
}


@dataclass(frozen=True)
class Task:
    """One call in a graph of tasks.

    Attributes:
        function: may be sent to another process.
        arguments: its own.
        needs: names of the tasks that have to end well before; those of another graph count as
            ended.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    needs: tuple[str, ...] = ()


class NeedFailedError(RuntimeError):
    """A task was not begun, since one that it needs failed."""


def describe_error(error: BaseException) -> str:
    """Say in one line what an error means for a run."""
    if is_full(error):
        where = getattr(error, "filename", None) or "nothing more can be written"
        return f"the disk is full ({where}); free some space and run again: {RESUME}"
    if type(error).__name__ == "KilledWorker":
        return (
            "each worker that took it died; a common cause is too little memory: try fewer --jobs"
        )
    worded = isinstance(error, (ConnectionError, RuntimeError)) or (
        isinstance(error, OSError) and error.errno is None
    )
    return str(error) if worded else f"{type(error).__name__}: {error}"


@contextmanager
def connect(jobs: int, scheduler: str = "") -> Iterator[Client | None]:
    """Give a Dask client of a cluster's scheduler, or of ``jobs`` processes of this machine.

    Args:
        jobs: processes, each with one thread and, where there are GPUs, with one of them; with one
            job there is no client, and tasks run in this process.
        scheduler: address of a Dask scheduler; empty for this machine.

    Raises:
        ConnectionError: no scheduler answers at the address, or it has no workers.
    """
    if jobs == 1 and not scheduler:
        yield None
        return
    import dask
    from distributed import Client, Nanny, Scheduler, SpecCluster

    with dask.config.set(_CONFIG):
        if scheduler:
            try:
                client = Client(scheduler, timeout=10, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ConnectionError(
                    f"no Dask scheduler at {scheduler} ({error}); start one: dask scheduler"
                ) from None
            try:
                if not client.scheduler_info()["workers"]:
                    raise ConnectionError(
                        f"the Dask scheduler at {scheduler} has no workers; start some:"
                        f" dask worker {scheduler}"
                    )
                yield client
            finally:
                client.close(timeout=2)
            return
        gpus = [{"CUDA_VISIBLE_DEVICES": name} for name in visible_gpus()][:jobs] or [{}] * jobs
        options = {"nthreads": 1, "memory_limit": 0, "silence_logs": 50, "dashboard_address": None}
        workers = {
            number: {"cls": Nanny, "options": options | {"env": {**ONE_THREAD, SILENT: "1", **gpu}}}
            for number, gpu in enumerate(gpus)
        }
        own = {"dashboard": False, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
        here = {"cls": Scheduler, "options": own}
        with (
            SpecCluster(workers, here, silence_logs=50) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client


def run_tasks(tasks: Mapping[str, Task], client: Client | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, result, error) of every task as it ends, one of the two being None.

    What was in hand when a worker died is begun once more, alone, and given up if its worker dies
    again. What needs a failed task is not begun and ends with a :class:`NeedFailedError`.

    Args:
        tasks: by name, the most urgent first, each after those that it needs.
        client: of :func:`connect`; without one tasks run here, one after the other.

    Raises:
        RuntimeError: the scheduler, or all workers of a cluster, went away.
    """
    waiting, suspects, retried = list(tasks), list[str](), set[str]()
    succeeded, failed = set[str](), set[str]()
    in_hand: dict[str, Any] = {}  # futures of Dask or, in this process, of concurrent.futures
    ended: Queue[str] = Queue()
    size = 1 if client is None else max(1, len(client.scheduler_info()["workers"]))
    last_seen = time.monotonic()

    def begin(name: str) -> None:
        task = tasks[name]
        submit = _call_here if client is None else partial(client.submit, pure=False)
        in_hand[name] = submit(task.function, *task.arguments)
        in_hand[name].add_done_callback(lambda _: ended.put(name))

    while waiting or suspects or in_hand:
        if suspects and not in_hand:
            begin(suspects.pop(0))
        for name in () if suspects or retried & set(in_hand) else list(waiting):
            if failed.intersection(tasks[name].needs):
                waiting.remove(name)
                failed.add(name)
                yield name, None, NeedFailedError("what it needs failed")
            elif len(in_hand) < size and succeeded.issuperset(tasks.keys() & tasks[name].needs):
                waiting.remove(name)
                begin(name)
        if not in_hand:
            continue
        try:
            name = ended.get(timeout=1)
        except Empty:
            last_seen = _check_cluster(client, last_seen)
            continue
        future, last_seen = in_hand.pop(name), time.monotonic()
        if future.cancelled():
            raise RuntimeError(f"the Dask scheduler went away; {RESUME}")
        error = future.exception()
        result = future.result() if error is None else None
        del future  # or Dask would make the result again if its worker died later
        if error is None:
            succeeded.add(name)
            yield name, result, None
        elif type(error).__name__ == "KilledWorker" and name not in retried:
            retried.add(name)
            suspects.append(name)
        else:
            failed.add(name)
            yield name, None, error


def _call_here(function: Callable[..., Any], *arguments: Any) -> Future:
    """Call a function in this process, and give its outcome as a future that is done."""
    future: Future = Future()
    try:
        future.set_result(function(*arguments))
    except Exception as error:
        future.set_exception(error)
    return future


def _check_cluster(client: Any, last_seen: float) -> float:
    """Return when a worker was last seen; raise RuntimeError where none comes back."""
    try:
        workers = client.scheduler_info()["workers"] if client.status == "running" else None
    except (OSError, TimeoutError):
        workers = None
    if workers is None:
        raise RuntimeError(f"the Dask scheduler went away; {RESUME}")
    if workers:
        return time.monotonic()
    if time.monotonic() - last_seen > WITHOUT_WORKERS:
        raise RuntimeError(f"all workers of the Dask scheduler went away; {RESUME}")
    return last_seen


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread; afterwards with as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def visible_gpus() -> list[str]:
    """Names of the GPUs that this process sees and is to use, for CUDA_VISIBLE_DEVICES."""
    import torch

    count = torch.cuda.device_count() if device().type == "cuda" else 0
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else [str(number) for number in range(count)]


def free_memory() -> int:
    """Bytes of memory that can still be taken, at most a container's limit."""
    import psutil
    from distributed.system import memory_limit

    return min(psutil.virtual_memory().available, memory_limit())


def count_workers(memory: float, wanted: int = 0) -> int:
    """Say how many workers run at once: one for each GPU, else for each core, as memory allows.

    Args:
        memory: of one worker, in bytes.
        wanted: a person's number; 0 for as many as fit.

    Raises:
        ValueError: more workers are wanted than there are GPUs, or than memory allows.
    """
    free, gpus = free_memory(), len(visible_gpus())
    most = max(1, int(free // memory))
    if wanted > gpus > 0:
        raise ValueError(
            f"{wanted} workers and {gpus} GPU(s): each worker takes one; choose --jobs {gpus}"
        )
    if wanted > most:
        raise ValueError(
            f"{wanted} workers of about {memory / 2**30:.1f} GiB do not fit into the"
            f" {free / 2**30:.1f} GiB that are free; choose --jobs {most} or fewer"
        )
    from dask.system import CPU_COUNT

    return wanted or min(gpus or CPU_COUNT, most)
