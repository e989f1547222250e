"""What notebooks need to have been made before they run: fine-tuning runs.

:data:`NEEDS` has a line for each notebook. :func:`plan_jobs` finds what the cache lacks of it, and
:func:`prepare` or the runner carries it out, side by side (:mod:`bertology_utils.workers`).
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from . import finetune
from .cache import (
    CACHE_VARIABLE,
    Key,
    cache_folder,
    cache_key,
    cached,
    is_finished,
    key_digest,
    not_writable,
)
from .common import environment, is_closed, quiet
from .finetune import Training
from .glue import Task
from .lab import Lab
from .settings import check_notebook, page_number
from .workers import KERNEL, connect, count_workers, describe_error, one_thread, run_tasks
from .workers import Task as WorkerTask

if TYPE_CHECKING:
    from .run import Notebook

# Bytes of a worker for each weight: gradient, moments and activations in fine-tuning.
TRAINING_BYTES = 45
PROCESS = 2**30  # bytes that the libraries take for themselves
TRAINING = "fine-tuning runs"
# A cluster's worker may have several threads, and torch's random numbers have one state.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Job:
    """A call whose value the cache keeps, since several notebooks read it or since it takes long.

    Attributes:
        title: names it in messages; unique among the jobs of a notebook.
        kind: :data:`TRAINING`.
        call: the function and its arguments.
        needs: what has to be made before.
    """

    title: str
    kind: str
    call: tuple[Any, ...]
    needs: tuple[Job, ...] = ()

    @cached_property
    def place(self) -> tuple[str, Key]:
        """Kind and key of its value in the cache."""
        return cache_key(*self.call)

    @property
    def name(self) -> str:
        """Name of its value in the cache."""
        kind, key = self.place
        return f"{kind}/{key_digest(key)}"


# Jobs of a lab


def training_job(training: Training) -> Job:
    """The job of a fine-tuning run, with those of the runs that it reads."""
    needs = (training_job(training.after),) if training.after else ()
    return Job(training.name, TRAINING, (finetune.train, training), needs)


def run_jobs(lab: Lab, task: Task, seed_offset: int) -> tuple[Job, ...]:
    """The job of one run of a task; none where a checkpoint was given for it."""
    given = lab.checkpoint(task, "pretrained", seed_offset)
    return () if given else (training_job(lab.training(task, seed_offset=seed_offset)),)


def runs_of(lab: Lab) -> list[tuple[Task, int]]:
    """Every run of the lab's tasks: (task, number)."""
    return [(task, number) for task in lab.tasks for number in lab.trainings(task)]


def all_runs(lab: Lab) -> list[Job]:
    """Jobs of all runs from the pre-trained encoder."""
    return [job for run in runs_of(lab) for job in run_jobs(lab, *run)]


def first_run(lab: Lab) -> list[Job]:
    """Job of the first run of the first task with labels."""
    tasks = [task for task in lab.tasks if task.labels]
    return [job for task in tasks[:1] for job in run_jobs(lab, task, 0)]


def random_starts(lab: Lab) -> list[Job]:
    """Jobs of the runs from random weights."""
    return [
        training_job(lab.training(task, "normal", number))
        for task in lab.tasks
        for number in range(lab.settings.random_starts_of(task))
    ]


# A line for each notebook: what gives its jobs.
NEEDS: Mapping[str, Sequence[Callable[[Lab], list[Job]]]] = {
    "0": (first_run,),
}
# The section of each notebook: a module or package of this package with a function ``run(lab)``.
SECTIONS: dict[str, str] = {}


def jobs_of(lab: Lab) -> list[Job]:
    """The jobs that a notebook needs; empty where nothing is fine-tuned.

    Raises:
        ValueError: the notebook cannot run with these parameters; the message says what it needs.
    """
    check_notebook(lab.notebook, lab.settings)
    makers = NEEDS.get(page_number(lab.notebook), ())
    return [job for maker in makers for job in maker(lab)]


# The plan


@dataclass(frozen=True)
class Order:
    """A job as it is sent to a worker, which opens the lab again.

    Attributes:
        title, kind, place: of the job.
        lab: notebook and parameters of the first that needs it.
        needs: places of the orders that have to be carried out before.
    """

    title: str
    kind: str
    place: tuple[str, Key]
    lab: tuple[str, tuple[tuple[str, object], ...]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What the cache lacks of what some notebooks need, each once.

    Attributes:
        orders: by their name in the cache, each after those that it needs.
        notebooks: names of the orders that each notebook needs, and of those that they need.
        finished: number of jobs whose value the cache has.
        memory: bytes that one worker takes, roughly.
    """

    orders: dict[str, Order]
    notebooks: dict[str, set[str]]
    finished: int
    memory: float

    def describe(self) -> str:
        """Counts in a sentence."""
        if not self.orders:
            return f"nothing to fine-tune; in the cache: {self.finished}"
        return f"to make: {len(self.orders)} {TRAINING}; in the cache: {self.finished}"

    def turn_of(self, notebook: Notebook) -> tuple[bool, int]:
        """Sorts notebooks: number 0 first, so that a first result is early; then the longest first."""
        return notebook.number != "0", -len(self.notebooks.get(notebook.name, ()))

    def tasks(self) -> dict[str, WorkerTask]:
        """The orders as tasks of workers, which use this process's cache folder.

        Raises:
            PermissionError: the cache folder cannot be written to.
        """
        if self.orders:
            check_writable()
        folder = str(cache_folder().resolve())
        return {
            name: WorkerTask(make, (order, folder), order.needs)
            for name, order in self.orders.items()
        }


def plan_jobs(notebooks: Iterable[Notebook], values: Mapping[str, object]) -> Plan:
    """Plan what these notebooks need with checked parameters and the cache lacks.

    Raises:
        ValueError, FileNotFoundError, ConnectionError: rows or a model cannot be read, a notebook
            cannot run with these parameters, or the runs do not fit on the cache's disk.
    """
    labs = [
        Lab(notebook.name, **notebook.parameters | notebook.declared(dict(values)))
        for notebook in notebooks
        if page_number(notebook.name) in NEEDS
    ]
    return plan_labs(labs)


def plan_labs(labs: Sequence[Lab]) -> Plan:
    """The plan of these labs' notebooks."""
    orders: dict[str, Order] = {}
    notebooks: dict[str, set[str]] = {lab.notebook: set() for lab in labs}
    finished: set[str] = set()
    for lab in labs:
        where = lab.notebook, tuple(lab.parameters.items())
        for job in with_needs(jobs_of(lab)):
            if is_finished(*job.place):
                finished.add(job.name)
                continue
            if job.kind == TRAINING:
                finetune.check_rows(job.call[1].task, job.call[1].rows)
            needs = tuple(need.name for need in job.needs)
            orders.setdefault(job.name, Order(job.title, job.kind, job.place, where, needs))
            notebooks[lab.notebook].add(job.name)
    trained = sum(order.kind == TRAINING for order in orders.values())
    weights = max((_weights(lab) for lab in labs), default=0)
    _check_room(4 * weights * trained)
    memory = max(KERNEL, PROCESS + TRAINING_BYTES * weights) if orders else KERNEL
    return Plan(orders, notebooks, len(finished), memory)


def _weights(lab: Lab) -> int:
    config = lab.config
    layers = 12 * config.num_hidden_layers * config.hidden_size**2
    return layers + config.vocab_size * config.hidden_size


def _check_room(wanted: float) -> None:
    """Refuse runs whose weights do not fit on the cache's disk, before the first of them."""
    folder = cache_folder().resolve()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if wanted > free:
        raise ValueError(
            f"what is to be fine-tuned takes {wanted / 2**30:.1f} GiB, and the disk of the cache"
            f" folder {folder} has {free / 2**30:.1f} free; make room, or name a folder on another"
            f" disk in {CACHE_VARIABLE}"
        )


def check_writable() -> None:
    """Refuse a cache folder that cannot be written to, before any work.

    Raises:
        PermissionError: says what to do.
    """
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=cache_folder()).close()
    except OSError as error:
        if is_closed(error):
            raise PermissionError(not_writable("something has to be made for this run")) from None
        raise


# Carrying it out


def make(order: Order, cache: str) -> float:
    """Carry out an order, and return the seconds that it took.

    Args:
        order: what to make.
        cache: the run's cache folder.

    Raises:
        RuntimeError: it cannot be made; says why in words, whatever the error was.
    """
    start = time.monotonic()
    tqdm.set_lock(threading.RLock())  # its own is a semaphore, which a killed worker leaves
    with _one_at_a_time, one_thread(), environment({CACHE_VARIABLE: cache}):
        try:
            job = find_job(order)
            if job is None:  # a cluster's worker may have opened it before a file changed
                open_lab.cache_clear()
                job = find_job(order)
            if job is None:
                raise RuntimeError(
                    f"the worker on {socket.gethostname()} would make something else than this run"
                    " needs; workers need the same versions of the package and its libraries, the"
                    " same files, the same kind of processor"
                )
            cached(*job.call)
        except Exception as error:
            raise RuntimeError(describe_error(error)) from None
    return time.monotonic() - start


def find_job(order: Order) -> Job | None:
    """The job of an order, as its lab, opened here, has it; None if that has another."""
    jobs = with_needs(jobs_of(open_lab(*order.lab)))
    return next(
        (job for job in jobs if job.title == order.title and job.place == order.place), None
    )


def with_needs(jobs: Iterable[Job]) -> Iterator[Job]:
    """Jobs, each after what it needs."""
    for job in jobs:
        yield from with_needs(job.needs)
        yield job


@lru_cache(maxsize=4)
def open_lab(notebook: str, parameters: tuple[tuple[str, object], ...]) -> Lab:
    """A lab that was opened before, with the rows and annotation that it has read."""
    quiet()
    return Lab(notebook, **dict(parameters))


def explain(plan: Plan, name: str, error: Exception | None) -> str | None:
    """What went wrong with an order, in a line; None if its value is in the cache."""
    if error is not None:
        return describe_error(error)
    if is_finished(*plan.orders[name].place):
        return None
    return "it was made and is not in the cache folder; do all workers see the same one?"


def run_section(lab: Lab) -> None:
    """Prepare a notebook, and record all that its section measures."""
    prepare(lab)
    import_module(f"{__package__}.{SECTIONS[page_number(lab.notebook)]}").run(lab)


def prepare(lab: Lab) -> None:
    """Make all that a notebook needs, side by side; where the cache has it, nothing is done.

    Raises:
        RuntimeError: something cannot be made; the message says what and why.
    """
    plan = plan_labs([lab])
    if not plan.orders:
        return
    workers = count_workers(plan.memory)
    print(plan.describe())
    problems = []
    with connect(min(workers, len(plan.orders))) as client:
        for name, _, error in run_tasks(plan.tasks(), client):
            if problem := explain(plan, name, error):
                problems.append(f"{plan.orders[name].title}: {problem}")
    open_lab.cache_clear()  # with one worker, labs were opened in this process
    if problems:
        raise RuntimeError("; ".join(problems))
