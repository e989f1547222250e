"""Heads followed across runs and tasks: their mean effects, and whether one head helps or harms in each of them (§4.6).

All is in gains, positive where the model is better without the head: of the score, of the loss, and
of the loss when the model's confidence is fitted anew. Losses are shares of the whole model's loss,
so that tasks can be set side by side and each counts alike. Runs of a task share their examples,
and a draw of the tests gives an example one sign in all heads and runs; tasks have their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from ..common import head_name
from ..glue import Task, predictions
from ..results import GAIN, P_VALUE, text_of
from ..statistics import ROUNDING, Estimate, Seed, of_same_examples, p_is
from ..verdicts import SCORE, TENTH, Support
from .effects import (
    Signed,
    chosen_gain,
    compared_labels,
    compared_sweeps,
    gain_parts,
    in_each,
    losses,
)
from .sweep import Sweep

if TYPE_CHECKING:
    from ..lab import Lab

# What is measured, with the unit and the least gain that counts: of a score the smallest gain that
# the paper reports, of a loss a hundredth of it, as a point is of the score.
LEAST = {"score": TENTH, "loss": SCORE, "loss, recalibrated": SCORE}
UNITS = {"score": "gain", "loss": "share of the loss", "loss, recalibrated": "share of the loss"}
NEWTON = 12  # steps to a temperature; from 1, eight are enough for six digits
FURTHEST = 4.0  # factor by which a step changes it at most


def mean_over_tasks(parts: Sequence[Signed]) -> Signed:
    """The mean over tasks, each counted alike, of which no two share examples."""
    value, drawn = (
        sum(getattr(part, name) for part in parts) / len(parts) for name in ("value", "drawn")
    )
    error = np.sqrt(np.sum([part.error**2 for part in parts], axis=0)) / len(parts)
    return Signed(
        value, error, drawn, sum(part.n for part in parts), min(part.runs for part in parts)
    )


@dataclass(frozen=True)
class Followed:
    """The heads of a task in all of its runs, by one measure.

    Attributes:
        runs: gains in every run.
        mean: the mean over these runs.
        by_example: the same of every example, shape (examples, heads).
        chosen: of the head that is best in one run on half of the examples, the gain in the other
            runs on the other half; None of a single run.
    """

    runs: Sequence[Signed]
    mean: Signed
    by_example: np.ndarray
    chosen: Estimate | None


def follow(
    task: Task, sweeps: Sequence[Sweep], labels: np.ndarray, seed: Seed
) -> dict[str, Followed]:
    """The gains of all runs of a task, by each measure of :data:`LEAST`.

    Args:
        task: the task.
        sweeps: of every run, on the same examples.
        labels: gold, shape (examples,).
        seed: of the draws, and of halving the examples.
    """
    parts, wholes = zip(*(gains_of(task, one, labels, seed) for one in sweeps), strict=True)
    followed = {}
    for name in LEAST:
        whole = np.mean([one[name] for one in wholes])
        each = [one[name] / np.float32(whole) for one in parts]  # (examples, heads), of every run
        total, chosen = np.mean(each, axis=0), None
        if len(each) > 1:
            others = [(total * len(each) - one) / (len(each) - 1) for one in each]
            pairs = zip(each, others, strict=True)
            chosen = of_same_examples([chosen_gain(*both, seed) for both in pairs])
        runs, mean = [Signed.of(one, seed) for one in each], Signed.of(total, seed, len(each))
        followed[name] = Followed(runs, mean, total, chosen)
    return followed


def gains_of(
    task: Task, sweep: Sweep, labels: np.ndarray, seed: Seed
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Gains without each head of a run, example by example, and what the whole model has to be divided by, by measure.

    Args:
        task, labels, seed: as for :func:`follow`.
        sweep: the run's outputs.

    Returns:
        Arrays of shape (examples, heads), the mean of which is the gain; and the whole model's mean
        losses, or 1 for the score, whose gains are points already.
    """
    shape = (-1, *sweep.heads.shape[2:])  # (heads, examples, labels)
    outputs = np.concatenate([sweep.baseline[None], sweep.heads.reshape(shape)])
    predicted = predictions(task, outputs)
    gains, whole = {"score": gain_parts(task, predicted[0], predicted[1:], labels)}, {"score": 1.0}
    for name, lost in (
        ("loss", losses(task, outputs, labels)),
        ("loss, recalibrated", recalibrated_losses(task, outputs, labels, seed)),
    ):
        gains[name], whole[name] = lost[0] - lost[1:], float(lost[0].mean())
    return {name: one.T.astype(np.float32) for name, one in gains.items()}, whole


def recalibrated_losses(
    task: Task, outputs: np.ndarray, labels: np.ndarray, seed: Seed
) -> np.ndarray:
    """Each example's loss by outputs whose scale was fitted on the other half of the examples.

    Of a classifier one temperature (Guo et al., 2017), of a regression a straight line: what is lost
    when the model knows how sure it may be.

    Args:
        task: the task.
        outputs: shape (models, examples, labels); each model is fitted by itself.
        labels: gold, shape (examples,).
        seed: of the halves.

    Returns:
        Shape (models, examples).
    """
    half = np.random.default_rng(seed).permutation(len(labels)) < len(labels) // 2
    lost = np.empty(outputs.shape[:2])
    for part in (half, ~half):
        fit, use = outputs[:, ~part], outputs[:, part]
        if task.is_regression:
            x, y = fit[:, :, 0], labels[~part] / 5
            x_mean, y_mean = x.mean(axis=1, keepdims=True), y.mean()
            spread = np.maximum(((x - x_mean) ** 2).sum(axis=1), ROUNDING**2)
            slope = ((x - x_mean) @ (y - y_mean) / spread)[:, None]
            fitted = y_mean + slope * (use[:, :, 0] - x_mean)
            lost[:, part] = (fitted - labels[part] / 5) ** 2
        else:
            fitted = use * inverse_temperatures(fit, labels[~part])[:, None, None]
            lost[:, part] = losses(task, fitted, labels[part])
    return lost


def inverse_temperatures(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """By what each model's outputs are to be multiplied for the smallest loss, shape (models,); by Newton's method.

    Args:
        outputs: shape (models, examples, labels).
        labels: gold, shape (examples,).
    """
    right = outputs[:, np.arange(len(labels)), labels]
    factor = np.ones(len(outputs))
    for _ in range(NEWTON):
        p = softmax(outputs * factor[:, None, None], axis=2)
        mean = (p * outputs).sum(axis=2)
        slope = (mean - right).mean(axis=1)
        curve = ((p * outputs**2).sum(axis=2) - mean**2).mean(axis=1)
        step = factor - slope / np.maximum(curve, ROUNDING**2)
        factor = np.clip(step, factor / FURTHEST, factor * FURTHEST)
    return np.clip(factor, 1 / 100, 100)


# What claims are judged on


def some_in_each(
    parts: Sequence[Signed],
    p: np.ndarray,
    measure: str,
    names: Sequence[str],
    n: int,
    side: str = "better",
) -> Support:
    """Support for some head's (or layer's) gain being above 0 (or below) in each of several parts; the surest head in words.

    It fails if each head's gain is below the least that counts (or above its negative) in some part.

    Args:
        parts: one mean, or every run or task.
        p: of the same, of that side; see :func:`in_each`.
        measure: one of :data:`LEAST`.
        names: of all heads.
        n: examples of all parts, for the words.
        side: "better" without the head, or "worse".
    """
    sign = 1 if side == "better" else -1
    towards = [part if sign == 1 else -part for part in parts]
    below = len(parts) * np.min([part.below(LEAST[measure]) for part in towards], axis=0)
    value = np.min([part.value for part in towards], axis=0)
    at = int(np.lexsort((-value, p))[0])  # of those that are as sure the largest
    how = "" if len(parts) == 1 else " at least" if sign == 1 else " at most"
    words = text_of({"value": sign * float(value[at]), "unit": UNITS[measure]})
    number = f"{names[at]}{how} {words} ({p_is(float(p[at]))}); n={n}"
    return Support(float(p.min()), min(1.0, float(below.max())), number)


# What is recorded and judged


# Claims about some head: in what its gain is tested, and by which measure and side.
AVERAGE, EVERY = "mean over runs", "in every run"
OVER_TASKS, ALL_TASKS = "mean over tasks", "on every task"
SOME_HEAD = {
    "some-head-helps": (AVERAGE, "score", "better"),
    "some-head-helps-loss": (AVERAGE, "loss", "better"),
    "some-head-hurts": (AVERAGE, "loss", "worse"),
    "same-head-helps": (EVERY, "score", "better"),
    "same-head-helps-loss": (EVERY, "loss", "better"),
    "same-head-helps-recalibrated": (EVERY, "loss, recalibrated", "better"),
    "same-head-needed": (EVERY, "loss", "worse"),
    "head-helps-over-tasks": (OVER_TASKS, "loss", "better"),
    "head-helps-all-tasks": (ALL_TASKS, "loss", "better"),
    "head-needed-by-all-tasks": (ALL_TASKS, "loss", "worse"),
}
# About the head that is best in one run, by measure.
CHOSEN = {"chosen-head-helps": "score", "chosen-head-helps-loss": "loss"}


def record_across(lab: Lab, followed: Mapping[Task, Mapping[str, Followed]]) -> None:
    """Every head's gain, mean over runs and over tasks, its tests, and what a head chosen in one run gains in the others."""
    shape = lab.config.num_hidden_layers, lab.config.num_attention_heads
    names = [f"head {head_name(*head)}" for head in np.ndindex(shape)]
    supports: dict[str, dict[Any, Support]] = {claim: {} for claim in SOME_HEAD}

    def test(which: str, measure: str, parts: Sequence[Signed], **labels: Task) -> None:
        """Record every head's p values, and keep what they say of each claim."""
        p = in_each(parts)
        by_side = {side: of.reshape(shape) for side, of in p.items()}
        options: dict[str, Any] = {"state": measure, "unit": "p", "tolerance": P_VALUE} | labels
        lab.record(f"p of the gain without a head, {which}", by_side, ("kind",), **options)
        for claim, (where, by, side) in SOME_HEAD.items():
            if (where, by) == (which, measure):
                n = sum(part.n for part in parts) if which == ALL_TASKS else parts[0].n
                found = some_in_each(parts, p[side], measure, names, n, side)
                supports[claim][labels.get("task", "")] = found

    for (task, measures), name in product(followed.items(), LEAST):
        one, unit = measures[name], UNITS[name]
        test(AVERAGE, name, [one.mean], task=task)
        test(EVERY, name, one.runs, task=task)
        what = f"gain without a head, {AVERAGE}"
        record_gains(lab, what, one.mean, task=task, state=name, unit=unit)
    chosen = {
        name: {task: one[name].chosen for task, one in followed.items() if one[name].chosen}
        for name in LEAST
    }
    for name, by_task in chosen.items():
        what = "gain in other runs without the head chosen in one"
        lab.record(what, by_task, ("task",), state=name, unit=UNITS[name], tolerance=GAIN)
    learned = [measures for task, measures in followed.items() if lab.learned[task]]
    for name in LEAST if len(learned) > 1 else ():
        means = [measures[name].mean for measures in learned]
        test(OVER_TASKS, name, [mean_over_tasks(means)])
        test(ALL_TASKS, name, means)
    for claim, support in supports.items():
        lab.judge(claim, support)
    for claim, name in CHOSEN.items():
        lab.judge(claim, chosen[name], unit=UNITS[name])


def record_by_ablation(lab: Lab) -> None:
    """Every head's gain by loss, by each ablation in the same runs and on the same examples: is 1/L alone what helps?"""
    for task in lab.tasks:
        labels, seed = compared_labels(lab, task), lab.resampling_seed(task)
        for ablation, runs in compared_sweeps(lab, task).items():
            each = [gains_of(task, one, labels, seed) for one in runs]
            shares = [gains["loss"] / whole["loss"] for gains, whole in each]
            mean = Signed.of(np.mean(shares, axis=0), seed, len(runs))
            what = "gain without a head by loss, by ablation"
            record_gains(lab, what, mean, task=task, state=ablation, unit=UNITS["loss"])


def record_gains(lab: Lab, what: str, one: Signed, **labels: Any) -> None:
    """Record every head's gain with its interval."""
    low, high = one.interval
    shape = lab.config.num_hidden_layers, lab.config.num_attention_heads
    arrays = {"value": one.value, "low": low, "high": high}
    numbers = {name: of.astype(float).reshape(shape) for name, of in arrays.items()}
    counts = {"n": one.n, "trainings": one.runs}
    lab.record(what, numbers | counts, tolerance=GAIN, **labels)
