"""Heads followed across runs and tasks: their mean effects, and whether one head helps or harms in each of them (§4.6).

All is in gains, positive where the model is better without the head: of the score, of the loss, and
of the loss when the model's confidence is fitted anew. Losses are shares of the whole model's loss,
so that tasks can be set side by side and each counts alike. Runs of a task share their examples,
and a draw of the tests gives an example one sign in all heads and runs; tasks have their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from ..common import head_name
from ..glue import Task, predictions
from ..results import GAIN, P_VALUE, text_of
from ..statistics import (
    ROUNDING,
    Estimate,
    Seed,
    corrected_p,
    of_same_examples,
    p_is,
    signed_sums,
)
from ..verdicts import SCORE, TENTH, Support
from .effects import (
    chosen_gain,
    compared_labels,
    compared_sweeps,
    gain_parts,
    losses,
    split_half,
    sweep_run,
)
from .sweep import Sweep

if TYPE_CHECKING:
    from ..lab import Lab

# What is measured, with the unit and the least gain that counts: of a score the smallest gain that
# the paper reports, of a loss a hundredth of it, as a point is of the score.
LEAST = {"score": TENTH, "loss": SCORE, "loss, recalibrated": SCORE}
UNITS = {"score": "gain", "loss": "share of the loss", "loss, recalibrated": "share of the loss"}
SIDES = ("better", "worse")  # without the head
NEWTON = 12  # steps to a temperature; from 1, eight are enough for six digits
FURTHEST = 4.0  # factor by which a step changes it at most


@dataclass(frozen=True)
class Signed:
    """Gains without each head, and what they would be if each example's gains had a random sign.

    Attributes:
        value: of every head, shape (heads,).
        error: its standard error over examples, same shape.
        drawn: with random signs, shape (draws, heads).
        n: examples.
        runs: models of which it is the mean; of several tasks the fewest.
    """

    value: np.ndarray
    error: np.ndarray
    drawn: np.ndarray
    n: int
    runs: int = 1

    @classmethod
    def of(cls, parts: np.ndarray, seed: Seed) -> Signed:
        """From gains example by example, shape (examples, heads)."""
        n = len(parts)
        drawn = signed_sums(parts, seed) / n
        return cls(parts.mean(axis=0), parts.std(axis=0, ddof=1) / np.sqrt(n), drawn, n)

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of the draws, by which heads become comparable; infinite for one that changes nothing."""
        spread = np.sqrt((self.drawn.astype(float) ** 2).mean(axis=0))
        return np.where(spread > ROUNDING**2, spread, np.inf)

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """95 % interval of every head's gain, not corrected."""
        half = norm.ppf(0.975) * self.error
        return self.value - half, self.value + half

    def __neg__(self) -> Signed:
        """With the other sign."""
        return replace(self, value=-self.value, drawn=-self.drawn)

    def below(self, least: float) -> np.ndarray:
        """One-sided p values of gains so small if they were ``least``; not corrected, shape (heads,)."""
        apart = self.value - least
        certain = np.where(apart < 0, -np.inf, np.inf)  # of a head that changes nothing
        return norm.cdf(np.divide(apart, self.error, out=certain, where=self.error > 0))


def mean_signed(parts: Sequence[Signed], error: np.ndarray | None = None) -> Signed:
    """The mean over runs of one task, or over tasks, each counted alike.

    Args:
        parts: of every run or task.
        error: of the mean; by default that of independent parts, such as tasks.
    """
    if error is None:
        error = np.sqrt(np.sum([part.error**2 for part in parts], axis=0)) / len(parts)
        n, runs = sum(part.n for part in parts), min(part.runs for part in parts)
    else:
        n, runs = parts[0].n, len(parts)
    value, drawn = (
        sum(getattr(part, name) for part in parts) / len(parts) for name in ("value", "drawn")
    )
    return Signed(value, error, drawn, n, runs)


@dataclass(frozen=True)
class Sides:
    """p values of heads, corrected over all of them, that the model is better or worse without each; shape (heads,)."""

    better: np.ndarray
    worse: np.ndarray


def in_each(parts: Sequence[Signed]) -> Sides:
    """Whether a head's gain is above 0 in each of several runs or tasks, or below 0 in each; of one mean, whether that is.

    The statistic of a head is its smallest standardised gain. It has to beat the largest one of all
    heads in any part: in the part in which a head does nothing it would be one of those (an
    intersection–union test for each head, Berger 1982, within the maximum statistic of Westfall and
    Young, 1993).
    """
    observed = np.array([part.value / part.scale for part in parts])  # (parts, heads)
    drawn = [part.drawn / part.scale for part in parts]
    largest = np.max([one.max(axis=1) for one in drawn], axis=0)  # (draws,)
    smallest = np.min([one.min(axis=1) for one in drawn], axis=0)
    better, _ = corrected_p(observed.min(axis=0), largest, smallest)
    _, worse = corrected_p(observed.max(axis=0), largest, smallest)
    return Sides(better, worse)


@dataclass(frozen=True)
class Followed:
    """The heads of a task in all of its runs, by one measure.

    Attributes:
        runs: gains in every run.
        mean: the mean over these runs.
        by_example: the same of every example, shape (examples, heads).
        reliable: of every run, how alike two samples of so many examples order its heads; see
            :func:`bertology_utils.disabling.effects.reliability`.
        chosen: of the head that is best in one run on half of the examples, the gain in the other
            runs on the other half; None of a single run.
    """

    runs: Sequence[Signed]
    mean: Signed
    by_example: np.ndarray
    reliable: Sequence[float]
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
        total = np.mean(each, axis=0)
        runs = [Signed.of(one, seed) for one in each]
        error = total.std(axis=0, ddof=1) / np.sqrt(len(total))
        others = [(total * len(each) - one) / max(1, len(each) - 1) for one in each]
        chosen = [chosen_gain(*both, seed) for both in zip(each, others, strict=True)]
        followed[name] = Followed(
            runs,
            mean_signed(runs, error),
            total,
            [split_half(one, seed) for one in each],
            of_same_examples(chosen) if len(each) > 1 else None,
        )
    return followed


def layers_on_average(
    task: Task, sweeps: Sequence[Sweep], labels: np.ndarray, seed: Seed
) -> Signed:
    """Gains of the score without each layer, mean over runs; arguments as for :func:`follow`."""
    each = []
    for one in sweeps:
        whole, without = predictions(task, one.baseline), predictions(task, one.layers)
        each.append(gain_parts(task, whole, without, labels))
    mean = Signed.of(np.mean(each, axis=0).T, seed)
    return replace(mean, runs=len(sweeps))


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
    side: str = "better",
) -> Support:
    """Support for some head's (or layer's) gain being above 0 (or below) in each of several parts; the surest head in words.

    It fails if each head's gain is below the least that counts (or above its negative) in some part.

    Args:
        parts: one mean, or every run or task.
        p: of the same, of that side; see :func:`in_each`.
        measure: one of :data:`LEAST`.
        names: of all heads.
        side: "better" without the head, or "worse".
    """
    sign = 1 if side == "better" else -1
    towards = [part if sign == 1 else -part for part in parts]
    below = len(parts) * np.min([part.below(LEAST[measure]) for part in towards], axis=0)
    value = np.min([part.value for part in towards], axis=0)
    at = int(np.lexsort((-value, p))[0])  # of those that are as sure the largest
    how = "" if len(parts) == 1 else " at least" if sign == 1 else " at most"
    words = text_of({"value": sign * float(value[at]), "unit": UNITS[measure]})
    n = parts[0].n if len({part.n for part in parts}) == 1 else sum(part.n for part in parts)
    number = f"{names[at]}{how} {words} ({p_is(float(p[at]))}); n={n}"
    return Support(float(p.min()), min(1.0, float(below.max())), number)


# What is recorded and judged


def follow_heads(lab: Lab) -> dict[Task, dict[str, Followed]]:
    """Every task's heads in all of its runs, by each measure."""
    return {
        task: follow(
            task, sweeps_of(lab, task), lab.labels(task, "swept"), lab.resampling_seed(task)
        )
        for task in lab.tasks
    }


def sweeps_of(lab: Lab, task: Task) -> list[Sweep]:
    """The sweeps by 1/L of all runs of a task."""
    return [sweep_run(lab, task, number) for number in lab.trainings(task)]


# Claims about the mean over runs, about every run, and about the head that is best in one run, by
# measure and side.
ON_AVERAGE = {
    "some-head-helps": ("score", "better"),
    "some-head-helps-loss": ("loss", "better"),
    "some-head-hurts": ("loss", "worse"),
}
IN_EVERY_RUN = {
    "same-head-helps": ("score", "better"),
    "same-head-helps-loss": ("loss", "better"),
    "same-head-helps-recalibrated": ("loss, recalibrated", "better"),
    "same-head-needed": ("loss", "worse"),
}
IN_OTHER_RUNS = {"chosen-head-helps": "score", "chosen-head-helps-loss": "loss"}
# About the mean over tasks, or about each of them.
OVER_TASKS = {"head-helps-over-tasks": ("loss", "better")}
ON_EVERY_TASK = {
    "head-helps-all-tasks": ("loss", "better"),
    "head-needed-by-all-tasks": ("loss", "worse"),
}
Tested = tuple[Sequence[Signed], Sides]


def record_across(lab: Lab, followed: Mapping[Task, Mapping[str, Followed]]) -> None:
    """Every head's gain, mean over runs and over tasks, its tests, and what a head chosen in one run gains in the others."""
    for claims, which in ((ON_AVERAGE, "mean over runs"), (IN_EVERY_RUN, "in every run")):
        tested = {
            (task, name): record_tested(
                lab, which, name, [one.mean] if claims is ON_AVERAGE else one.runs, task=task
            )
            for task, measures in followed.items()
            for name, one in measures.items()
        }
        for claim, (name, side) in claims.items():
            lab.judge(
                claim, {task: supported(lab, name, side, *tested[task, name]) for task in followed}
            )
    for (task, measures), name in product(followed.items(), LEAST):
        one = measures[name]
        options: dict[str, Any] = {"state": name, "unit": UNITS[name]}
        record_gains(lab, "gain without a head, mean over runs", one.mean, options, task=task)
        options["tolerance"] = GAIN
        if name == "loss":
            runs = {task: [run.value.reshape(shape_of_heads(lab)) for run in one.runs]}
            lab.record("gain without a head, by loss", runs, ("task", "training"), **options)
        if one.chosen:
            what = "gain in other runs without the head chosen in one"
            lab.record(what, {task: one.chosen}, ("task",), **options)
    for claim, name in IN_OTHER_RUNS.items():
        chosen = {task: one[name].chosen for task, one in followed.items() if one[name].chosen}
        lab.judge(claim, chosen, unit=UNITS[name])

    parts = {
        name: [measures[name].mean for task, measures in followed.items() if lab.learned[task]]
        for name in LEAST
    }
    several = len(parts["score"]) > 1
    for claims, which in ((OVER_TASKS, "mean over tasks"), (ON_EVERY_TASK, "on every task")):
        over = {}
        for name, means in parts.items() if several else ():
            whole = mean_signed(means)
            over[name] = record_tested(lab, which, name, [whole] if claims is OVER_TASKS else means)
            if claims is OVER_TASKS:
                options = {"state": name, "unit": UNITS[name]}
                record_gains(lab, f"gain without a head, {which}", whole, options)
        for claim, (name, side) in claims.items():
            lab.judge(claim, {"": supported(lab, name, side, *over[name])} if several else {})


def record_by_ablation(lab: Lab) -> None:
    """Every head's gain by loss, by each ablation in the same runs and on the same examples: is 1/L alone what helps?"""
    for task in lab.tasks:
        labels, seed = compared_labels(lab, task), lab.resampling_seed(task)
        by_ablation: dict[str, list[np.ndarray]] = {}
        for (_, ablation), one in compared_sweeps(lab, task).items():
            gains, whole = gains_of(task, one, labels, seed)
            by_ablation.setdefault(ablation, []).append(gains["loss"] / whole["loss"])
        for ablation, runs in by_ablation.items():
            mean = replace(Signed.of(np.mean(runs, axis=0), seed), runs=len(runs))
            options = {"state": ablation, "unit": UNITS["loss"]}
            record_gains(lab, "gain without a head by loss, by ablation", mean, options, task=task)


def shape_of_heads(lab: Lab) -> tuple[int, int]:
    """Layers, and heads in each."""
    return lab.config.num_hidden_layers, lab.config.num_attention_heads


def record_gains(
    lab: Lab, what: str, one: Signed, options: Mapping[str, Any], **labels: Any
) -> None:
    """Record every head's gain with its interval."""
    low, high = one.interval
    arrays = {"value": one.value, "low": low, "high": high}
    numbers = {name: of.astype(float).reshape(shape_of_heads(lab)) for name, of in arrays.items()}
    counts = {"n": one.n, "trainings": one.runs}
    lab.record(what, numbers | counts, tolerance=GAIN, **options, **labels)


def record_tested(
    lab: Lab, which: str, measure: str, parts: Sequence[Signed], **labels: Any
) -> Tested:
    """Record the p values of every head on both sides, and give them with what was tested."""
    sides = in_each(parts)
    arrays = {side: getattr(sides, side).reshape(shape_of_heads(lab)) for side in SIDES}
    options: dict[str, Any] = {"state": measure, "unit": "p", "tolerance": P_VALUE}
    lab.record(f"p of the gain without a head, {which}", arrays, ("kind",), **options, **labels)
    return parts, sides


def supported(lab: Lab, measure: str, side: str, parts: Sequence[Signed], sides: Sides) -> Support:
    """Support for some head being so in all of these parts."""
    names = [f"head {head_name(*head)}" for head in np.ndindex(*shape_of_heads(lab))]
    return some_in_each(parts, getattr(sides, side), measure, names, side)
