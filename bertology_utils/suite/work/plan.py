"""A plan of all trainings and sweeps that some notebooks need: what is left to do, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...common.cache import cache_folder, digest, is_finished
from ...disabling.needs import SweepOf
from ...encoders.needs import FineTuning
from ..experiment import Experiment
from ..notebooks import Notebook
from ..parameters import resolve
from . import machine
from .estimates import Estimate, Speeds, estimate
from .needs import Need, needs_of


@dataclass(frozen=True)
class Item:
    """One training or sweep.

    Attributes:
        notebooks: names of those that need it.
        parameters: of the first of them, as (name, value).
        need: what is made.
        title: what it is called in messages.
        kind, key: of its entry in the cache.
        takes: estimated time, memory and disk.
    """

    notebooks: tuple[str, ...]
    parameters: tuple[tuple[str, object], ...]
    need: Need
    title: str
    kind: str
    key: dict
    takes: Estimate

    @property
    def seconds(self) -> float:
        """Estimated time of one worker."""
        return self.takes.seconds

    @property
    def is_finished(self) -> bool:
        """True if the cache has it."""
        return is_finished(self.kind, self.key)


@dataclass(frozen=True)
class Plan:
    """All items, without repetition, trainings first.

    Attributes:
        items: those that are not in the cache yet.
        finished: number of those that are.
        wanted: how many items, finished or not, each notebook needs.
    """

    items: tuple[Item, ...]
    finished: int
    wanted: dict[str, int]

    @property
    def seconds(self) -> float:
        """Estimated time of one worker."""
        return sum(item.seconds for item in self.items)

    @property
    def memory(self) -> float:
        """Estimated peak memory of one worker, in bytes."""
        return max((item.takes.memory for item in self.items), default=0.0)

    def disk(self, jobs: int) -> float:
        """Estimated bytes that the cache grows by at most."""
        passing = max((item.takes.passing for item in self.items), default=0.0)
        return sum(item.takes.kept for item in self.items) + jobs * passing

    def text(self, jobs: int) -> str:
        """Count, time and memory, in a sentence."""
        if not self.items:
            return f"nothing to train; in the cache: {self.finished}"
        trainings = sum(isinstance(item.need, FineTuning) for item in self.items)
        counts = {"trainings": trainings, "sweeps of heads": len(self.items) - trainings}
        seconds = max(self.seconds / jobs, *(item.seconds for item in self.items))
        time_text = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} s"
        return (
            f"to make: {', '.join(f'{count} {word}' for word, count in counts.items())}; in the cache: {self.finished};"
            f" about {time_text} with {jobs} worker{'s' if jobs > 1 else ''} of at most {self.memory / 2**30:.1f} GiB"
            f"{self._on_gpu()}; at most {self.disk(jobs) / 2**30:.1f} GiB of disk,"
            f" {machine.free_disk(cache_folder()) / 2**30:.0f} GiB are free"
        )

    def _on_gpu(self) -> str:
        most, there = max(item.takes.on_gpu for item in self.items), machine.gpu_memory()
        if not there:
            return ""
        short = ", which is too little: choose a smaller model" if most > there else ""
        return f", and {most / 2**30:.1f} of the GPU's {there / 2**30:.1f} GiB{short}"


def plan(notebooks: Iterable[Notebook], values: dict[str, object]) -> Plan:
    """What these notebooks need with these parameters.

    Args:
        notebooks: those that will run.
        values: checked parameters; those that a notebook does not declare are left out.

    Raises:
        ValueError, FileNotFoundError, ConnectionError: rows or a model cannot be read.
    """
    own = {notebook.name: notebook.parameters | notebook.declared(values) for notebook in notebooks}
    training = [name for name, parameters in own.items() if needs_of(name, resolve(**parameters))]
    return plan_of({name: Experiment(name, **own[name]) for name in training}, own)


def plan_of(labs: dict[str, Experiment], parameters: dict[str, dict[str, object]]) -> Plan:
    """The plan of some notebooks' experiments, by notebook, and the parameters that they were made with."""
    wanted: dict[str, tuple[list[str], Need, str, dict]] = {}  # by name in the cache
    for name, lab in labs.items():
        for need in lab.needs:
            kind, key = lab.entry(need)
            wanted.setdefault(f"{kind}/{digest(key)}", ([], need, kind, key))[0].append(name)
    left = [wish for wish in wanted.values() if not is_finished(*wish[2:])]
    speeds = Speeds()

    def item(names: list[str], need: Need, kind: str, key: dict) -> Item:
        lab = labs[names[0]]
        given = tuple(parameters[names[0]].items())
        return Item(tuple(names), given, need, lab.title(need), kind, key, estimate(lab, need, speeds))

    items = sorted((item(*wish) for wish in left), key=lambda item: (isinstance(item.need, SweepOf), -item.seconds))
    return Plan(tuple(items), len(wanted) - len(left), {name: len(lab.needs) for name, lab in labs.items()})


def jobs_for(memory: float, wanted: int = 0) -> int:
    """How many workers run at once: one for each GPU, else for each core, as far as memory reaches.

    Args:
        memory: of one worker, in bytes.
        wanted: a person's number; 0 for as many as fit.

    Raises:
        ValueError: more workers are wanted than memory allows.
    """
    most = machine.fitting(memory)
    if wanted > machine.gpus() > 1:
        raise ValueError(
            f"{wanted} workers and {machine.gpus()} GPUs: each worker takes one; choose --jobs {machine.gpus()}"
        )
    if wanted > most:
        raise ValueError(
            f"{wanted} workers of about {memory / 2**30:.1f} GiB do not fit into the"
            f" {machine.free_memory() / 2**30:.1f} GiB that are free; choose --jobs {most} or fewer"
        )
    return wanted or min(machine.gpus() or machine.cores(), most)
