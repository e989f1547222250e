"""A plan of all trainings and sweeps that some notebooks need: what is left to do, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...attention.batches import tokenize
from ...common.cache import digest, is_finished
from ...disabling.needs import SweepOf
from ...disabling.sweep import TOKENS_AT_ONCE
from ...encoders import cost
from ...encoders.finetune import check_rows
from ...encoders.needs import FineTuning
from ...glue.loading import sample
from ..experiment import Experiment
from ..notebooks import Notebook
from ..parameters import resolve
from . import machine
from .needs import Need, needs_of

# What of the speed of a product of matrices a training and a sweep reach, roughly (seen on two kinds of processors).
TRAINING_SHARE, SWEEP_SHARE = 0.6, 0.5
STARTUP = 3.0  # seconds to read rows and weights, and to write the result
_SAMPLED = 200  # rows whose wordpieces are counted


@dataclass(frozen=True)
class Item:
    """One training or sweep.

    Attributes:
        notebooks: names of those that need it.
        parameters: of the first of them, as (name, value).
        need: what is made.
        title: what it is called in messages.
        kind, key: of its entry in the cache.
        seconds: estimated time of one worker.
        memory: estimated peak memory of its worker, in bytes.
    """

    notebooks: tuple[str, ...]
    parameters: tuple[tuple[str, object], ...]
    need: Need
    title: str
    kind: str
    key: dict
    seconds: float
    memory: float

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
        return max((item.memory for item in self.items), default=0.0)

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
        )


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
    speed = machine.operations_per_second() if left else 0.0

    def item(names: list[str], need: Need, kind: str, key: dict) -> Item:
        lab = labs[names[0]]
        given = tuple(parameters[names[0]].items())
        return Item(tuple(names), given, need, lab.title(need), kind, key, *_cost(lab, need, speed))

    items = sorted((item(*wish) for wish in left), key=lambda item: (isinstance(item.need, SweepOf), -item.seconds))
    return Plan(tuple(items), len(wanted) - len(left), {name: len(lab.needs) for name, lab in labs.items()})


def _cost(lab: Experiment, need: Need, speed: float) -> tuple[float, float]:
    recipe, size = lab.settings.profile.recipe, cost.Size.of(lab.config)
    if isinstance(need, SweepOf):
        task = need.training.task
        rows = lab.swept_rows(task)
        device = "cuda" if machine.gpus() else "cpu"
        estimate, share = cost.of_sweep(size, len(rows), _tokens(lab, task, rows), TOKENS_AT_ONCE[device]), SWEEP_SHARE
    else:
        rows, share = lab.train_rows(need.task), TRAINING_SHARE
        check_rows(need.task, rows)
        tokens = _tokens(lab, need.task, rows)
        longest = recipe.max_length
        estimate = cost.of_training(size, len(rows), tokens, recipe.epochs, recipe.batch_size, longest)
    memory = cost.WITH_GPU if machine.gpus() else estimate.memory
    return STARTUP + estimate.operations / (speed * share), memory


def _tokens(lab: Experiment, task, rows) -> float:
    """Wordpieces of an input, on average over some."""
    inputs = tokenize(sample(rows, _SAMPLED, 0), task, lab.tokenizer, lab.settings.profile.recipe.max_length)
    return sum(map(len, inputs["input_ids"])) / len(inputs)


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
