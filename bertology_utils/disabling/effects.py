"""Gains of disabled heads and layers from a sweep's outputs: scores, intervals and tests (§4.6).

Everything is paired: the same dev examples with and without the head. A gain is the score without a
head minus the score with it, from 0 to 1; the score is the one that the paper averages, accuracy or
Pearson's correlation. The tests are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import softmax

from ..cache import cached
from ..common import Head
from ..glue import Task, plain_metric, predictions, scale_of
from ..statistics import (
    DRAWS,
    ONE_SIDED,
    ROUNDING,
    Bootstrap,
    Estimate,
    Seed,
    by_size,
    corrected_p,
    mean_of,
    rank_correlation,
    rank_of,
    resampled_scores,
    signed_sums,
    weighted_scores,
)
from .masking import ABLATIONS
from .sweep import Sweep, sweep

if TYPE_CHECKING:
    from ..lab import Lab

SPLITS = 200  # of the examples: a head is chosen on one half and measured on the other
COMPARED_ROWS = 1000  # on which ablations are compared
HALVINGS = 20  # of the examples, for a correlation between halves


def sweep_call(
    lab: Lab, task: Task, seed_offset: int = 0, ablation: str = "uniform"
) -> tuple[Any, ...]:
    """The call, for the cache, that sweeps a fine-tuning run over the swept rows (§4.6).

    By 1/L over all of them, by other ablations over :data:`COMPARED_ROWS`.
    """
    model = lab.lazy_classifier(task, seed_offset=seed_offset)
    rows = lab.rows(task, "swept", 0 if ablation == "uniform" else COMPARED_ROWS)
    return sweep, model, lab.lazy_batches(task, rows), ablation


def sweep_run(lab: Lab, task: Task, seed_offset: int = 0, ablation: str = "uniform") -> Sweep:
    """Outputs of a fine-tuning run with every head and every layer disabled in turn (§4.6).

    Args:
        lab: its lab.
        task: the task.
        seed_offset: number of the run.
        ablation: one of :data:`bertology_utils.disabling.masking.ABLATIONS`.
    """
    return cached(*sweep_call(lab, task, seed_offset, ablation))


def ablations_of(lab: Lab, task: Task, number: int) -> tuple[str, ...]:
    """The ablations by which a run is swept: 1/L, and in a task's first two runs all of them.

    The small run, which is no evidence, has them of the first task's first run.
    """
    small = lab.settings.is_small
    every = task == lab.tasks[0] and number == 0 if small else number < 2
    return ABLATIONS if every else ABLATIONS[:1]


def compared_sweeps(lab: Lab, task: Task) -> dict[tuple[int, str], Sweep]:
    """Sweeps of a task's runs that have all ablations, on the same rows, by (number of the run, ablation)."""
    at = lab.drawn(task, COMPARED_ROWS)
    return {
        (number, ablation): sweep_run(lab, task, number).select(at)
        if ablation == "uniform"
        else sweep_run(lab, task, number, ablation)
        for number in lab.trainings(task)
        if len(ablations_of(lab, task, number)) > 1
        for ablation in ABLATIONS
    }


def compared_labels(lab: Lab, task: Task) -> np.ndarray:
    """Gold labels of the rows on which ablations are compared."""
    return lab.labels(task, "swept", COMPARED_ROWS)


def scores_of(task: Task, predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Scores, shape (variants,), of predictions (variants, examples), given gold labels (examples,)."""
    return weighted_scores(plain_metric(task), predicted, labels, np.ones((1, len(labels))))[0]


def rightness(task: Task, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability of the right label, shape (…, examples); of a regression 1 minus the distance from the right number.

    Args:
        task: the task.
        outputs: of a classifier, shape (…, examples, labels).
        labels: gold, shape (examples,); of a regression on a scale from 0 to 5.
    """
    if task.is_regression:
        return 1 - np.abs(outputs[..., 0] - labels / 5)
    return softmax(outputs, axis=-1)[..., np.arange(len(labels)), labels]


def losses(task: Task, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Loss of each example: minus the logarithm of the right label's probability, or the squared error of a regression.

    Args:
        task: the task.
        outputs: of a classifier, shape (…, examples, labels).
        labels: gold, shape (examples,); of a regression on a scale from 0 to 5.

    Returns:
        Shape (…, examples).
    """
    right = rightness(task, outputs, labels)
    if task.is_regression:
        return (1 - right) ** 2
    return -np.log(np.maximum(right, np.finfo(right.dtype).tiny))


def gains(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed
) -> list[Bootstrap]:
    """Score with each variant minus the score of the whole model, from 0 to 1, with paired bootstraps.

    Args:
        task: the task.
        baseline: predictions of the whole model, shape (examples,).
        disabled: of every variant, shape (variants, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    predicted = np.vstack([baseline, disabled])
    whole, *others = resampled_scores(plain_metric(task), predicted, labels, seed)
    return [one - whole for one in others]


class GainTest(NamedTuple):
    """Gains of all variants against what chance alone would give.

    Attributes:
        better, worse: permutation p-values, corrected over all variants by the
            maximum statistic, shape (variants,).
        best_by_chance: the largest gain in each permutation among the
            variants that are not themselves worse at a corrected p below
            0.025, shape (permutations,). One that changes many predictions
            would gain most by chance, too.
    """

    better: np.ndarray
    worse: np.ndarray
    best_by_chance: np.ndarray


def gain_test(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed
) -> GainTest:
    """A permutation test of whether any variant changes the score more than chance would.

    If a head made no difference, an example's two predictions, with and
    without it, could be exchanged, by which what the example adds to the gain has
    the other sign. Each permutation exchanges those of a random half of the
    examples, the same ones for all variants, so that what the variants have in
    common stays; a gain is compared with the largest standardised one over all
    variants (Westfall and Young, 1993).

    Args:
        task, baseline, disabled, labels: as for :func:`gains`.
        seed: of the permutations.
    """
    parts = gain_parts(task, baseline, disabled, labels).T  # (examples, variants)
    null, observed = signed_sums(parts, seed) / len(parts), parts.mean(axis=0)
    error = np.sqrt((null**2).mean(axis=0))  # its mean is 0 by construction
    scale = np.where(error > 0, error, np.inf)  # a head that changes no prediction
    drawn = null / scale
    better, worse = corrected_p(observed / scale, drawn.max(axis=1), drawn.min(axis=1))
    harmless = worse >= ONE_SIDED
    chance = null[:, harmless].max(axis=1) if harmless.any() else np.zeros(DRAWS)
    return GainTest(better, worse, chance)


def gain_parts(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """What each example adds to a gain in score: values whose mean is the gain, shape (variants, examples).

    Of an accuracy: 1 where an answer becomes right, −1 where it becomes wrong. Of a correlation: the
    difference of its pseudo-values, r plus the influence of an example on r, by which the mean has
    the right standard error, too (the infinitesimal jackknife; Efron, 1982).

    Args:
        task, baseline, disabled, labels: as for :func:`gains`.
    """
    if plain_metric(task) == "accuracy":
        return (disabled == labels).astype(float) - (baseline == labels)
    return _pseudo_values(disabled, labels) - _pseudo_values(baseline[None], labels)


def _pseudo_values(predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Values whose mean is Pearson's r, shape (variants, examples); 0 where a prediction is constant.

    With standardised x and y an example's influence on r is xy − r (x² + y²) / 2.
    """

    def standardised(values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=-1, keepdims=True)
        spread = centred.std(axis=-1, keepdims=True)
        is_constant = spread <= ROUNDING * np.maximum(1, np.abs(values).max(axis=-1, keepdims=True))
        return centred / np.where(is_constant, np.inf, spread)

    x, y = standardised(predicted), standardised(labels)
    r = (x * y).mean(axis=1, keepdims=True)
    return r + x * y - r * (x**2 + y**2) / 2


def chosen_gain(
    chosen_by: np.ndarray, measured_by: np.ndarray, seed: Seed, share: float = 0.5
) -> Estimate:
    """The gain of the best variant on a part of the examples, measured on the others, over and over.

    The best of 144 heads on a dev set is partly the luckiest. On examples that
    had no say in the choice, luck does not count. Of several that tie the mean
    is taken. The splits share their examples, so more of them do not make the
    error smaller without end (Nadeau and Bengio, 2003).

    Args:
        chosen_by: gains by which it is chosen, example by example, shape (examples, variants).
        measured_by: those that are measured, of the same model or of others, same shape.
        seed: of the splits.
        share: of the examples by which it is chosen.

    Raises:
        ValueError: fewer than four examples.
    """
    n, rng = len(chosen_by), np.random.default_rng(seed)
    if n < 4:
        raise ValueError(f"{n} examples cannot be halved; at least 4 are needed")
    choosing = np.zeros((SPLITS, n))
    for part in choosing:
        part[rng.permutation(n)[: int(share * n)]] = 1
    first = choosing @ chosen_by / choosing.sum(axis=1, keepdims=True)
    second = (1 - choosing) @ measured_by / (1 - choosing).sum(axis=1, keepdims=True)
    # Few answers change, so many heads tie; the first of them would be one of the lowest layers.
    best = first >= first.max(axis=1, keepdims=True) - ROUNDING
    gained = (second * best).sum(axis=1) / best.sum(axis=1)  # (splits,)
    error = gained.std(ddof=1) * np.sqrt(1 / SPLITS + (1 - share) / share)
    return Estimate(float(gained.mean()), float(error), n)


def on_halves(values: np.ndarray, seed: Seed) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Means of all variants on a random half of the examples, and on the other half, each (variants,), over and over.

    Args:
        values: shape (examples, variants).
        seed: of the :data:`HALVINGS`.
    """
    n, rng = len(values), np.random.default_rng(seed)
    for _ in range(HALVINGS):
        order = rng.permutation(n)
        yield values[order[: n // 2]].mean(axis=0), values[order[n // 2 :]].mean(axis=0)


def split_half(values: np.ndarray, seed: Seed) -> float:
    """The value of :func:`reliability` alone, which takes a thousandth of the time."""
    rho = np.nan_to_num(np.mean([rank_of(*both) for both in on_halves(values, seed)]))
    return float(2 * rho / (1 + rho))


def reliability(values: np.ndarray, seed: Seed) -> Bootstrap:
    """How reliably so many examples order heads by the effect of each, from 0 to 1; heads resampled.

    Their rank correlation between two random halves of the examples, mean over halvings, and by
    Spearman and Brown's formula (1910) that between two samples of all examples' size, 2ρ / (1 +
    ρ). Nothing can correlate with the effects by more than its square root.

    Args:
        values: effects example by example, shape (examples, heads).
        seed: of halving and resampling.
    """
    half = mean_of([rank_correlation(*both, seed) for both in on_halves(values, seed)])
    # Where no head changes an answer, no correlation is known.
    rho = np.nan_to_num(np.append(half.value, half.draws))
    return Bootstrap.of(2 * rho / (1 + rho), half.n, seed)


@dataclass(frozen=True)
class Variants:
    """Effect of disabling on the score, for all heads (in the order of layers, then heads) or all layers.

    Attributes:
        shape: (layers, heads) or (layers,).
        gains: score with the variant minus score of the whole model, from 0 to 1, one per variant.
        test: against chance; see :func:`gain_test`.
        scale: see :func:`bertology_utils.glue.scale_of`.
    """

    shape: tuple[int, ...]
    gains: list[Bootstrap]
    test: GainTest
    scale: float = 1.0

    @property
    def values(self) -> np.ndarray:
        """Gains without their uncertainty, in :attr:`shape`."""
        return np.array([gain.value for gain in self.gains]).reshape(self.shape)

    @property
    def best(self) -> int:
        """The variant of the largest gain, the first of those that tie."""
        return int(by_size(self.values)[0])

    @property
    def largest(self) -> Bootstrap:
        """Its gain."""
        return self.gains[self.best]

    def gain(self, place: int | Head) -> Bootstrap:
        """The gain without one layer, from 0, or head, (layer, head) from 0."""
        return self.gains[int(np.ravel_multi_index(np.atleast_1d(place), self.shape))]

    def p(self, side: str) -> np.ndarray:
        """Corrected p values of being "better" or "worse", in :attr:`shape`."""
        return getattr(self.test, side).reshape(self.shape)


@dataclass(frozen=True)
class Effects:
    """The effects of disabling in one model.

    Attributes:
        baseline: the whole model's score, from 0 to 1: accuracy, or Pearson's correlation.
        heads, layers: what disabling one of them does.
        held_out: the gain of a head that was chosen on the other half of the examples.
        held_out_tenth: that of one that was chosen on nine tenths, on the rest.
    """

    baseline: float
    heads: Variants
    layers: Variants
    held_out: Estimate
    held_out_tenth: Estimate


def effects(task: Task, sweep: Sweep, labels: np.ndarray, seed: Seed) -> Effects:
    """Gains and tests of a sweep.

    Args:
        task: the task.
        sweep: the classifier's outputs.
        labels: gold, shape (examples,).
        seed: of resampling, permutations and splits.

    Raises:
        ValueError: fewer than four examples, or missing labels.
    """
    if not np.isfinite(np.asarray(labels, dtype=float)).all():
        raise ValueError(
            "some labels are missing; a gain is one of the score, which needs them all"
        )
    baseline = predictions(task, sweep.baseline)
    score = float(scores_of(task, baseline[None], labels)[0])

    def variants(outputs: np.ndarray) -> tuple[np.ndarray, Variants]:
        predicted = predictions(task, outputs)  # (layers, heads, examples) or (layers, examples)
        shape, predicted = predicted.shape[:-1], predicted.reshape(-1, len(labels))
        parts = task, baseline, predicted, labels, seed
        return predicted, Variants(shape, gains(*parts), gain_test(*parts), scale_of(task, score))

    without_head, heads = variants(sweep.heads)
    parts = gain_parts(task, baseline, without_head, labels).T  # (examples, heads)
    held_out, tenth = (chosen_gain(parts, parts, seed, share) for share in (0.5, 0.9))
    return Effects(score, heads, variants(sweep.layers)[1], held_out, tenth)
