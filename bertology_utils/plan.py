"""What notebooks need to have been made before they run: trainings, sweeps of heads, and passes that several share.

:func:`needs_of` is the table of needs by notebook, :func:`plan` what the cache lacks of it,
:func:`carry_out` makes that.
"""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .cache import CACHE_VARIABLE, cache_folder, is_finished, key_digest, not_writable
from .common import emulates, environment, is_closed, is_full, note, quiet
from .glue import Task
from .pruning.cuts import Cut, cuts_of
from .workers import KERNEL, in_words, jobs_for, one_thread, work

if TYPE_CHECKING:
    from .run import Notebook
    from .settings import Settings

ABLATIONS = ("zero", "mean", "interchange")  # compared with the usual one, "uniform"
# Bytes of a worker for each weight: gradient, moments and activations in a training; stacked inputs
# in a sweep.
BYTES = {"FineTuning": 45, "SweepOf": 12, "SetsOf": 12, "PassOf": 12}
SPEED = (
    5e10  # operations a second of one worker: half of what a core of 100 GFLOP/s can do (measured)
)
PROCESS = 2**30  # bytes that the libraries take for themselves
DIED = "its worker died twice; a common cause is too little memory: try fewer --jobs"
_OWN_CACHE = os.environ.get(CACHE_VARIABLE)  # of a cluster's worker, before a run sets it
_one_at_a_time = (
    threading.Lock()
)  # a cluster's worker may have several threads, and torch's random numbers have one state


@dataclass(frozen=True)
class FineTuning:
    """One fine-tuned classifier.

    Attributes:
        task: the task.
        init: what it starts from, "pretrained" or "normal".
        seed_offset: another number is another training of the same kind.
        after: the one with whose encoder it begins.
        cut: what it has to do without.
    """

    task: Task
    init: str = "pretrained"
    seed_offset: int = 0
    after: FineTuning | None = None
    cut: Cut | None = None


@dataclass(frozen=True)
class SweepOf:
    """The outputs of a fine-tuned classifier with every head, and every layer, disabled.

    Attributes:
        training: the classifier.
        ablation: what a disabled head does instead, one of
            :data:`bertology_utils.disabling.switch.ABLATIONS`.
    """

    training: FineTuning
    ablation: str = "uniform"


@dataclass(frozen=True)
class SetsOf:
    """The outputs of a fine-tuned classifier without sets of heads of each layer; see :mod:`bertology_utils.pruning.pairs`.

    Attributes:
        training: the classifier.
    """

    training: FineTuning


@dataclass(frozen=True)
class PassOf:
    """One pass of a model over a task's rows, for all that several notebooks measure in it.

    Attributes:
        model: a fine-tuned classifier; or the bare encoder, "pretrained" or "normal".
        task: whose rows.
        notebooks: (name, parameters) of those that measure; none before it is known who does.
    """

    model: FineTuning | str
    task: Task
    notebooks: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = ()


Need = FineTuning | SweepOf | SetsOf | PassOf


def _made_of(need: Need) -> object:
    """The training without which something cannot be made."""
    return next(
        getattr(need, name) for name in ("training", "model", "after") if hasattr(need, name)
    )


def _turn(need: Need) -> int:
    """What has to be made before what: trainings, those that come after others, and what looks at them."""
    if not isinstance(need, FineTuning):
        return 3
    return 2 if need.cut else 1 if need.after else 0


def order(notebook: str, models: Mapping[str, int]) -> tuple[bool, int]:
    """Sorts notebooks that run side by side: pages first, so that appendices find what these measured; the longest first.

    Args:
        notebook: its name.
        models: how many models notebooks look at, by name.
    """
    return notebook.split("_")[0].endswith("a"), -models.get(notebook, 0)


def compared(tasks: Sequence[Task]) -> Sequence[Task]:
    """The task on whose first training the ways of disabling a head are compared: the first one, three sweeps more."""
    return tasks[:1]


def needs_of(notebook: str, settings: Settings) -> list[Need]:
    """The trainings, sweeps and passes that a notebook needs; [] where nothing is trained.

    Args:
        notebook: its name, which begins with its number.
        settings: what it runs with. A task with a given checkpoint is not trained, and its
            checkpoint is swept once.

    Raises:
        ValueError: notebook 3 is to compare trainings of a task that has one only.
    """
    tasks, number = settings.tasks, notebook.split("_")[0]  # of an appendix "6a"
    if number.rstrip("a") == "3" and min(map(settings.trainings_of, tasks)) < 2:
        raise ValueError(
            "trainings=1: notebook 3 compares trainings of one task; choose trainings 2 or more"
        )
    tuned = [
        _tuned(settings, task, at) for task in tasks for at in range(settings.trainings_of(task))
    ]
    trained = list(dict.fromkeys([training.after for training in tuned if training.after] + tuned))
    random = [
        FineTuning(task, "normal", at)
        for task in tasks
        for at in range(settings.random_starts_of(task))
    ]
    one = next((training for training in tuned if training.task.labels), None)
    sweeps = [SweepOf(training) for training in tuned]
    cut = [
        replace(training, cut=one) for training in tuned for one in cuts_of(training.seed_offset)
    ]
    first = [_tuned(settings, task) for task in compared(tasks)]
    looks = [
        *(PassOf("pretrained", task) for task in tasks),
        *(PassOf(training, training.task) for training in tuned),
    ]
    and_random = [*looks, *(PassOf("normal", task) for task in tasks)]
    needs: Mapping[str, Sequence[Need]] = {
        "0": [training for training in trained if training in (one, one and one.after)],
        "1": [*trained, *looks],
        "3": [*trained, *random],
        "4": [*trained, *and_random],
        "5": [*trained, *and_random],
        "6": [*trained, *sweeps],
        "6a": [
            *trained,
            *sweeps,
            *(SweepOf(training, ablation) for training in first for ablation in ABLATIONS),
        ],
        "7": trained,
        "9": [
            *trained,
            *(
                SweepOf(training, way)
                for training in tuned
                for way in ways_of(settings, training.task, training.seed_offset)
            ),
        ],
        "10": [*trained, *random, *cut, *map(SetsOf, tuned)],
    }
    given = {name for name, _ in settings.checkpoints}
    return [
        need
        for need in needs.get(number, needs.get(number.rstrip("a"), []))
        if not isinstance(need, FineTuning) or need.init == "normal" or need.task.name not in given
    ]


def ways_of(settings: Settings, task: Task, at: int) -> tuple[str, ...]:
    """The ways by which notebook 9 disables a training's heads: 1/L; on the compared task all, or one more where it is cheap.

    Args:
        settings: what it runs with.
        task: one of its tasks.
        at: number of the training.
    """
    if task not in compared(settings.tasks):
        return ("uniform",)
    if at == 0:
        return ("uniform", *ABLATIONS)
    return ("uniform", "zero") if settings.trainings_of(task) == 2 else ("uniform",)


def _tuned(settings: Settings, task: Task, at: int = 0) -> FineTuning:
    """One of the task's trainings from the pre-trained start."""
    before = settings.before(task, at)
    return FineTuning(task, seed_offset=at, after=_tuned(settings, *before) if before else None)


@dataclass(frozen=True)
class Item:
    """One training, sweep or pass that the cache lacks.

    Attributes:
        notebooks: names of those that need it.
        parameters: of the first of them, as (name, value).
        open_lab: makes a lab of a notebook's name and parameters.
        need: what is made.
        title: what it is called in messages.
        entry: kind and key in the cache.
        operations: multiplications and additions that it takes, roughly.
        memory: bytes that one worker takes, roughly.
        disk: bytes of the weights that it leaves in the cache.
    """

    notebooks: tuple[str, ...]
    parameters: tuple[tuple[str, object], ...]
    open_lab: Callable[..., Any]
    need: Need
    title: str
    entry: tuple[str, Any]
    operations: float
    memory: float
    disk: float = 0


@dataclass(frozen=True)
class Plan:
    """The trainings, sweeps and passes that some notebooks need, each once.

    Attributes:
        items: what the cache lacks, trainings first, longest first.
        finished: number of those that it has.
        models: how many classifiers each notebook looks at, trained or not.
    """

    items: tuple[Item, ...]
    finished: int
    models: dict[str, int]

    @property
    def memory(self) -> float:
        """Estimated bytes of one worker, or of a kernel where nothing is to be made."""
        return max((item.memory for item in self.items), default=KERNEL)

    def stages(self, notebooks: Sequence[Notebook]) -> list[tuple[list[Notebook], list[Item]]]:
        """Notebooks to run after each other, with what has to be made before: notebook 0 alone, so that a first result is early.

        Where nothing has to be made, and within the last stage, see :func:`order`.
        """
        ordered = sorted(notebooks, key=lambda notebook: order(notebook.name, self.models))
        first = [
            notebook
            for notebook in ordered
            if notebook.number == "0" and self.items and len(ordered) > 1
        ]
        early = [
            item
            for item in self.items
            if {notebook.name for notebook in first} & set(item.notebooks)
        ]
        late = [item for item in self.items if item not in early]
        return [(first, early)] * bool(first) + [
            ([notebook for notebook in ordered if notebook not in first], late)
        ]

    def text(self, jobs: int) -> str:
        """Counts and about how long, in a sentence."""
        if not self.items:
            return f"nothing to train; in the cache: {self.finished}"
        names = {
            FineTuning: "trainings",
            SweepOf: "sweeps of heads",
            SetsOf: "sweeps of pairs",
            PassOf: "passes over maps",
        }
        counts = {
            name: sum(isinstance(item.need, kind) for item in self.items)
            for kind, name in names.items()
        }
        made = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        each = [item.operations / SPEED / 60 for item in self.items]
        minutes = max(1, round(max(sum(each) / jobs, *each)))
        return (
            f"to make: {made}; in the cache: {self.finished};"
            f" about {minutes} minute{'s' if minutes > 1 else ''} with {jobs} worker{'s' if jobs > 1 else ''}"
        )


@dataclass(frozen=True)
class Failure:
    """An item that was not made, and why, in a line."""

    item: Item
    problem: str


def plan(
    notebooks: Iterable[Notebook], values: dict[str, object], open_lab: Callable[..., Any]
) -> Plan:
    """Plan of what these notebooks need with these checked parameters and the cache lacks.

    Args:
        notebooks: which.
        values: of the parameters.
        open_lab: makes a lab of a notebook's name and parameters; :class:`bertology_utils.lab.Lab`.

    Raises:
        ValueError, FileNotFoundError, ConnectionError: rows or a model cannot be read.
        ValueError: the trainings do not fit on the cache's disk.
    """
    from .settings import resolve

    own = {notebook.name: notebook.parameters | notebook.declared(values) for notebook in notebooks}
    needy = [name for name, parameters in own.items() if needs_of(name, resolve(**parameters))]
    return plan_of({name: open_lab(name, **own[name]) for name in needy}, own)


def plan_of(labs: Mapping[str, Any], parameters: Mapping[str, dict[str, object]]) -> Plan:
    """The plan of experiments, by notebook, and the parameters that they were made with."""
    wanted: dict[str, tuple[list[str], Need]] = {}  # by name in the cache
    needs = {name: needs_of(name, lab.settings) for name, lab in labs.items()}
    for name, need in ((name, need) for name, some in needs.items() for need in some):
        kind, key = labs[name].entry(need)
        wanted.setdefault(f"{kind}/{key_digest(key)}", ([], need))[0].append(name)
    items = []
    finished = 0
    for names, need in wanted.values():
        lab, given = labs[names[0]], {name: tuple(parameters[name].items()) for name in names}
        if isinstance(need, PassOf):
            if len(names) == 1:  # it makes its passes itself
                continue
            need = replace(need, notebooks=tuple(given.items()))
        entry = lab.entry(need)
        if is_finished(*entry):
            finished += 1
        else:
            items.append(
                Item(
                    tuple(names),
                    given[names[0]],
                    type(lab),
                    need,
                    lab.title(need),
                    entry,
                    *_estimate(lab, need),
                )
            )
    items.sort(key=lambda item: (not isinstance(item.need, FineTuning), -item.operations))
    _check_room(items)
    models = {
        name: sum(isinstance(need, FineTuning) for need in some) for name, some in needs.items()
    }
    trained = any(isinstance(item.need, FineTuning) for item in items)
    if trained and any(emulates(lab.settings.profile.recipe.on_cpu) for lab in labs.values()):
        note(
            "this processor has no instructions for bf16, in which this profile trains: it takes longer than float32 would"
        )
    return Plan(tuple(items), finished, models)


def _check_room(items: Sequence[Item]) -> None:
    """Refuse trainings whose weights do not fit on the cache's disk, before the first of them."""
    wanted, folder = sum(item.disk for item in items), cache_folder().resolve()
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    if wanted > free:
        raise ValueError(
            f"what is to be trained takes {wanted / 2**30:.1f} GiB, and the disk of the cache folder {folder} has"
            f" {free / 2**30:.1f} free; remove what was not used for a day (python -m bertology_utils cache prune --days 1),"
            f" or name a folder on another disk in {CACHE_VARIABLE}"
        )


def prepare(lab: Any, notebook: str, parameters: dict[str, object]) -> None:
    """Make what one notebook needs, in workers; where the cache has it, nothing is done.

    Raises:
        RuntimeError: something cannot be made; the message says what and why.
    """
    todo = plan_of({notebook: lab}, {notebook: parameters})
    if todo.items:
        jobs = jobs_for(todo.memory)
        note(todo.text(jobs))
        if failures := carry_out(todo.items, jobs):
            raise RuntimeError(
                "; ".join(f"{failure.item.title}: {failure.problem}" for failure in failures)
            )


def _estimate(lab: Any, need: Need) -> tuple[float, float, float]:
    """Operations, bytes of one worker and bytes on the disk, roughly.

    A weight takes two operations a token forward, and four backward.
    """
    config, recipe = lab.config, lab.settings.profile.recipe
    layers = 12 * config.num_hidden_layers * config.hidden_size**2
    if isinstance(need, (SweepOf, SetsOf)):
        rows, task = lab.swept_rows(need.training.task), need.training.task
        variants = config.num_attention_heads + 1
        if isinstance(need, SetsOf):
            rows, variants = (
                lab.paired_rows(task),
                variants * (variants + 2) // 2,
            )  # pairs of heads, too
        passes = variants * config.num_hidden_layers / 2  # layers below are shared
    elif isinstance(need, PassOf):
        rows, task, passes = lab.dev_rows(need.task), need.task, 3  # with what is measured
    else:
        from .finetune import check_rows

        rows, task = lab.train_rows(need.task), need.task
        check_rows(task, rows)  # refused before any time is spent
        passes = 3 * lab.settings.profile.recipe_of(need.init).epochs
    some = rows[: min(200, len(rows))]
    tokens = (
        sum(len(text) for field in task.fields for text in some[field])
        / max(1, len(some[task.fields[0]]))
        / 4.5
        + 3
    )
    operations = 2 * layers * passes * len(rows) * min(tokens, recipe.max_length)
    weights = layers + config.vocab_size * config.hidden_size
    return (
        operations,
        PROCESS + BYTES[type(need).__name__] * weights,
        4 * weights * isinstance(need, FineTuning),
    )


def carry_out(items: Sequence[Item], jobs: int, scheduler: str = "") -> list[Failure]:
    """Make these items, trainings before sweeps; what is finished stays in the cache, whatever happens.

    Args:
        items: what to make.
        jobs: workers on this machine, or of the cluster.
        scheduler: address of a Dask scheduler, whose workers are taken instead.

    Returns:
        The items that failed; the others are finished nevertheless.

    Raises:
        ConnectionError: no scheduler at the address, or it went away.
        PermissionError: the cache folder cannot be written to.
    """
    if items:
        check_writable()
    make_one = partial(
        make,
        run=secrets.token_hex(4),
        cluster_cache=str(cache_folder().resolve()) if scheduler else "",
    )
    failures: list[Failure] = []
    count = 0

    def worthwhile(some: Iterable[Item]) -> Iterator[Item]:
        nonlocal count
        for item in some:
            failed = [failure.item.need for failure in failures]
            if _made_of(item.need) in failed:
                count += 1
                failures.append(Failure(item, "the training that it needs failed"))
            else:
                yield item

    def attempt(some: Iterable[Item], workers: int, alone: bool = False) -> list[Item]:
        nonlocal count
        died = []
        with closing(work(make_one, worthwhile(some), workers, scheduler, alone)) as ended:
            for item, made in ended:
                if made is None and not alone:
                    died.append(item)
                    note(f"a worker died; {item.title} is begun again, alone")
                    continue
                seconds, problem = made or (0, DIED)
                problem = problem or (None if is_finished(*item.entry) else _UNSEEN)
                count += 1
                note(
                    f"[{count}/{len(items)}] {item.title}: {f'failed, {problem}' if problem else f'{seconds:.0f} s'}"
                )
                failures.extend([Failure(item, problem)] if problem else [])
        return died

    for turn in sorted({_turn(item.need) for item in items}):
        for item in attempt([item for item in items if _turn(item.need) == turn], jobs):
            attempt([item], 1, alone=True)
    return failures


_UNSEEN = "it was made and is not in the cache folder; do all workers see the same one?"


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


def make(item: Item, run: str = "", cluster_cache: str = "") -> tuple[float, str | None]:
    """Make one item and leave it in the cache.

    Args:
        item: what to make.
        run: name of the run, in which a worker reads rows once.
        cluster_cache: the run's cache folder, for a cluster's worker that names none of its own.

    Returns:
        Seconds it took, and what went wrong, in a line, or None: an error stops no other item.
    """
    from . import finetune

    start = time.monotonic()
    changes = {finetune.PREPARED: ""} | (
        {CACHE_VARIABLE: _OWN_CACHE or cluster_cache} if cluster_cache else {}
    )
    with _one_at_a_time, one_thread(), environment(changes):
        try:
            lab = _lab(item.open_lab, item.notebooks[0], item.parameters, run)
            if lab.entry(item.need) != item.entry:
                raise RuntimeError(
                    f"the worker on {socket.gethostname()} would make something else than this run needs; workers need the"
                    " same versions of the package and its libraries, the same files, the same kind of processor"
                )
            lab.make(item.need)
        except Exception as error:
            return time.monotonic() - start, in_words(error) if is_full(
                error
            ) else f"{type(error).__name__}: {error}"
    return time.monotonic() - start, None


@functools.lru_cache(maxsize=2)
def _lab(
    open_lab: Callable[..., Any],
    notebook: str,
    parameters: tuple[tuple[str, object], ...],
    run: str,
) -> Any:
    quiet()
    return open_lab(notebook, **dict(parameters))
