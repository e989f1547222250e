"""What one training or sweep takes of this machine: time, memory, memory of the GPU, and disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...attention.batches import tokenize
from ...common.devices import precision
from ...disabling.needs import SweepOf
from ...disabling.sweep import TOKENS_AT_ONCE
from ...encoders import cost
from ...encoders.finetune import check_rows
from ...glue.loading import sample
from . import machine
from .needs import Need

if TYPE_CHECKING:
    from datasets import Dataset

    from ...glue.tasks import Task
    from ..experiment import Experiment

# What of the speed of a product of matrices a training and a sweep reach, roughly (seen on two kinds of processors).
TRAINING_SHARE, SWEEP_SHARE = 0.6, 0.5
# Seconds that a step takes on any GPU, however few its rows: some thousand kernels are started one after the other.
STEP_ON_GPU = 0.06
STARTUP = 3.0  # seconds to read rows and weights, and to write the result
_SAMPLED = 200  # rows whose wordpieces are counted


@dataclass(frozen=True)
class Estimate:
    """What one item takes.

    Attributes:
        seconds: of one worker.
        memory: peak of its worker's main memory, in bytes.
        on_gpu: peak of the GPU's, in bytes; 0 without one.
        kept: bytes in the cache afterwards.
        passing: bytes in the cache meanwhile: two points to resume from, as one is written before the other goes.
    """

    seconds: float
    memory: float
    on_gpu: float = 0.0
    kept: float = 0.0
    passing: float = 0.0


class Speeds:
    """How fast this machine multiplies matrices, each measured when it is first asked for."""

    @cached_property
    def sweep(self) -> float:
        """In float32."""
        return machine.operations_per_second()

    @cached_property
    def training(self) -> float:
        """In the precision of trainings."""
        return self.sweep if precision() == "float32" else machine.operations_per_second(precision=precision())


def of_cost(size: cost.Size, found: cost.Cost, speed: float, share: float, steps: int = 0, on_gpu: bool = False) -> Estimate:
    """What a cost comes to.

    Args:
        size: of the encoder.
        found: its operations and memory.
        speed, share: operations per second of a product of matrices, and what of it is reached.
        steps: of a training; 0 for a sweep.
        on_gpu: it is computed on a GPU.
    """
    seconds = found.operations / (speed * share)
    if on_gpu:
        seconds = max(seconds, steps * STEP_ON_GPU)
    weights = cost.NUMBER * size.weights if steps else 0
    return Estimate(
        STARTUP + seconds,
        cost.WITH_GPU if on_gpu else found.memory,
        cost.ON_GPU + found.held if on_gpu else 0.0,
        kept=weights,
        passing=2 * 3 * weights,  # weights and two moments of the optimizer
    )


def estimate(lab: Experiment, need: Need, speeds: Speeds) -> Estimate:
    """What a training or sweep takes.

    Raises:
        ValueError: rows from which nothing can be learnt.
    """
    size, on_gpu = cost.Size.of(lab.config), bool(machine.gpus())
    if isinstance(need, SweepOf):
        task = need.training.task
        rows = lab.swept_rows(task)
        at_once = TOKENS_AT_ONCE["cuda" if on_gpu else "cpu"]
        swept = cost.of_sweep(size, len(rows), _tokens(lab, task, rows), at_once)
        return of_cost(size, swept, speeds.sweep, SWEEP_SHARE, on_gpu=on_gpu)
    rows, recipe = lab.train_rows(need.task), lab.settings.profile.recipe_of(need.init)
    check_rows(need.task, rows)
    mixed = precision() != "float32"
    found = cost.of_training(
        size, len(rows), _tokens(lab, need.task, rows), recipe.epochs, recipe.batch_size, recipe.max_length, mixed
    )
    steps = -(-len(rows) // recipe.batch_size) * recipe.epochs
    return of_cost(size, found, speeds.training, TRAINING_SHARE, steps, on_gpu)


def _tokens(lab: Experiment, task: Task, rows: Dataset) -> float:
    """Wordpieces of an input, on average over some."""
    inputs = tokenize(sample(rows, _SAMPLED, 0), task, lab.tokenizer, lab.settings.profile.recipe.max_length)
    return sum(map(len, inputs["input_ids"])) / len(inputs)
