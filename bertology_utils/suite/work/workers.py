"""A plan carried out by several workers: processes of this machine (joblib), or a Dask cluster."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from .bar import Bar
from .plan import Item, Plan
from .processes import WorkerDiedError, run_in_processes, session_of_run
from .worker import Made, Session, make

STRIKES = 3  # deaths of its worker after which an item is given up
Numbered = tuple[int, Item]
Runner = Callable[[Iterable[Numbered], Session], Iterator[Made]]


@dataclass(frozen=True)
class Failure:
    """An item that was not made, and why."""

    item: Item
    problem: str


def carry_out(plan: Plan, jobs: int, scheduler: str = "") -> list[Failure]:
    """Make everything in the plan; what is finished stays in the cache, whatever happens.

    Args:
        plan: what is to do.
        jobs: workers on this machine.
        scheduler: address of a Dask scheduler, whose workers are taken instead.

    Returns:
        The items that failed; the others are finished nevertheless.

    Raises:
        ConnectionError: no scheduler at the address, or it went away.
        ModuleNotFoundError: a scheduler is given, and Dask Distributed is not installed.
        OSError: the cache folder cannot be written to.
    """
    if not plan.items:
        return []
    runner: Runner = partial(_on_cluster, scheduler) if scheduler else partial(_on_this_machine, jobs)
    failed: dict[int, str] = {}
    strikes: Counter[int] = Counter()

    def worthwhile(todo: list[Numbered]) -> Iterator[Numbered]:
        for number, item in todo:
            # joblib asks from a thread of its own, while items go on failing: hence the list
            if any(plan.items[other].key == item.key.get("training") for other in list(failed)):
                failed[number] = "the training that it is a sweep of failed"
                bar.finish(Made(number, 0, failed[number]))
            else:
                yield number, item

    with session_of_run(on_cluster=bool(scheduler)) as session, Bar(plan.items, session) as bar:
        while left := [(n, item) for n, item in enumerate(plan.items) if n not in failed and not item.is_finished]:
            # What was in hand when a worker died is tried alone, so that none but the culprit is given up.
            todo = [pair for pair in left if strikes[pair[0]]][:1] or left
            try:
                for made in runner(worthwhile(todo), session):
                    problem = made.problem or _unseen(plan.items[made.number])
                    if problem:
                        failed[made.number] = problem
                    bar.finish(replace(made, problem=problem))
            except WorkerDiedError:
                in_hand = session.drop() or [number for number, _ in todo]  # it may have died before it began
                strikes.update(in_hand)
                for number in in_hand:
                    if strikes[number] < STRIKES:
                        bar.say(f"a worker died; {plan.items[number].title} is begun again")
                    else:
                        failed[number] = f"its worker died {STRIKES} times; a common cause is too little memory"
                        bar.finish(Made(number, 0, failed[number]))
    return [Failure(plan.items[number], failed[number]) for number in sorted(failed)]


def _unseen(item: Item) -> str | None:
    return None if item.is_finished else "it was made and is not in the cache folder; do all workers see the same one?"


def _on_this_machine(jobs: int, items: Iterable[Numbered], session: Session) -> Iterator[Made]:
    from joblib import delayed

    yield from run_in_processes((delayed(make)(number, item, session) for number, item in items), jobs)


def _on_cluster(address: str, items: Iterable[Numbered], session: Session) -> Iterator[Made]:
    with cluster(address) as client:
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        futures = [client.submit(make, number, item, session, pure=False, priority=-number) for number, item in items]
        try:
            ended = as_completed(futures, loop=client.loop)
            while not ended.is_empty():
                if not ended.has_ready():
                    time.sleep(0.5)
                    _check_alive(client, address)
                    continue
                future = next(ended)
                if future.status == "finished":
                    yield future.result()
                    continue
                if future.status != "error":  # cancelled or lost: the scheduler is gone
                    raise ConnectionError(_GONE.format(address))
                if isinstance(future.exception(), KilledWorker):
                    raise WorkerDiedError
                raise RuntimeError(f"a worker of {address} cannot carry out the plan: {future.exception()}")
        finally:
            if client.status == "running":
                client.cancel(futures)


def _check_alive(client, address: str) -> None:
    try:
        # a client that has just given up reconnecting knows nothing, not even that there are no workers
        workers = client.scheduler_info().get("workers", {})
    except (OSError, TimeoutError):
        raise ConnectionError(_GONE.format(address)) from None
    if client.status in ("closing", "closed"):
        raise ConnectionError(_GONE.format(address))
    if client.status == "running" and not workers:
        raise ConnectionError(f"all workers of the Dask scheduler at {address} went away; {_KEPT}")


def cluster_size(address: str) -> int:
    """Number of workers of a Dask scheduler; raises as :func:`cluster`."""
    with cluster(address) as client:
        return len(client.scheduler_info()["workers"])


_KEPT = "what was finished is in the cache, and a new run goes on from there"
_GONE = "the Dask scheduler at {0} went away; " + _KEPT


@contextmanager
def cluster(address: str):
    """A client of the Dask scheduler at ``address``.

    Raises:
        ConnectionError: there is none.
        ModuleNotFoundError: Dask Distributed is not installed.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ModuleNotFoundError("--scheduler needs Dask Distributed: pip install -e '.[cluster]'") from None
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler at {address} ({error}); start one: dask scheduler") from None
    try:
        if not client.scheduler_info()["workers"]:
            raise ConnectionError(f"the Dask scheduler at {address} has no workers; start some: dask worker {address}")
        yield client
    finally:
        client.close(timeout=2)
