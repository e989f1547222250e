"""Gains of disabled heads and layers from a sweep's outputs: scores, intervals and tests (§4.6).

Everything is paired: the same dev examples with and without the head. A gain is the score without a
head minus the score with it, from 0 to 1; the score is the one that the paper averages, accuracy or
Pearson's correlation. The tests are ours.
"""

from __future__ import annotations

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
    ManyTest,
    Seed,
    by_size,
    corrected_p,
    many_test,
    mean_of,
    rank_correlation,
    resampled_scores,
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
    without it, could be exchanged. Each permutation exchanges them for a random
    half of the examples, the same ones for all variants, so that what the
    variants have in common stays; a gain is compared with the largest
    standardised one over all variants (Westfall and Young, 1993).

    Args:
        task, baseline, disabled, labels: as for :func:`gains`.
        seed: of the permutations.
    """
    swapped = np.random.default_rng(seed).random((DRAWS, len(labels))) < 0.5
    null = _swapped_gains(task, baseline, disabled, labels, swapped)
    observed = scores_of(task, disabled, labels) - scores_of(task, baseline[None], labels)
    error = np.sqrt((null**2).mean(axis=0))  # its mean is 0 by construction
    scale = np.where(error > 0, error, np.inf)  # a head that changes no prediction
    drawn = null / scale
    better, worse = corrected_p(observed / scale, drawn.max(axis=1), drawn.min(axis=1))
    harmless = worse >= ONE_SIDED
    chance = null[:, harmless].max(axis=1) if harmless.any() else np.zeros(DRAWS)
    return GainTest(better, worse, chance)


def _swapped_gains(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, swapped: np.ndarray
) -> np.ndarray:
    """Gains with each variant's and the whole model's predictions exchanged where ``swapped``, (permutations, variants)."""
    if plain_metric(task) == "accuracy":
        # One product instead of large arrays of predictions; sums of 1 and −1 are exact.
        change = (disabled == labels).astype(float) - (baseline == labels)  # (variants, examples)
        return np.where(swapped, -1.0, 1.0) @ change.T / len(labels)
    # Of a correlation: (permutations, examples), (examples, 1), (examples, variants), (examples,)
    exchange, centre = swapped.astype(float), labels.mean()
    before, after, gold = baseline[:, None] - centre, (disabled - centre).T, labels - centre
    with_head = _correlations(before, after, exchange, gold)
    return _correlations(after, before, exchange, gold) - with_head


def _correlations(
    own: np.ndarray, other: np.ndarray, exchange: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Pearson's correlation with the labels where the other's prediction stands instead of one's own in exchanged examples.

    Args:
        own, other: predictions, shape (examples, variants), or (examples, 1) for the same of all
            variants.
        exchange: 1 where they are exchanged, shape (permutations, examples).
        labels: of mean 0, shape (examples,).

    Returns:
        Shape (permutations, variants); 0 where a prediction is constant.
    """

    def total(one: np.ndarray, instead: np.ndarray) -> np.ndarray:
        return one.sum(axis=0) + exchange @ (instead - one)  # (permutations, variants)

    sums, squares = total(own, other), total(own**2, other**2)
    products, n = total(own * labels[:, None], other * labels[:, None]), len(labels)
    spread = (squares - sums**2 / n) * (labels**2).sum()
    correlations = products / np.sqrt(np.maximum(spread, 1e-30))
    return np.where(spread > 1e-20, correlations, 0.0)


def held_out_gain(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed
) -> Estimate:
    """The gain of the best variant on one half of the examples, measured on the other half, over and over.

    The best of 144 heads on a dev set is partly the luckiest. On examples that
    had no say in the choice, luck does not count. Of several that tie the mean
    is taken. The splits share their examples, so more of them do not make the
    error smaller without end (Nadeau and Bengio, 2003).

    Args:
        task, baseline, disabled, labels: as for :func:`gains`.
        seed: of the splits.

    Raises:
        ValueError: fewer than four examples.
    """
    n = len(labels)
    if n < 4:
        raise ValueError(f"{n} examples cannot be halved; at least 4 are needed")
    first, second = _on_halves(task, baseline, disabled, labels, seed, SPLITS)
    # Few answers change, so many heads tie; the first of them would be one of the lowest layers.
    best = first >= first.max(axis=1, keepdims=True) - ROUNDING
    gained = (second * best).sum(axis=1) / best.sum(axis=1)  # (splits,)
    return Estimate(float(gained.mean()), float(gained.std(ddof=1) * np.sqrt(1 / SPLITS + 1)), n)


def _on_halves(
    task: Task,
    baseline: np.ndarray,
    disabled: np.ndarray,
    labels: np.ndarray,
    seed: Seed,
    splits: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Gains of all variants on a random half of the examples, and on the other half, each of shape (splits, variants)."""
    n, rng = len(labels), np.random.default_rng(seed)
    chosen = np.zeros((splits, n), dtype=bool)
    for half in chosen:
        half[rng.permutation(n)[: n // 2]] = True
    both = np.vstack([baseline, disabled])
    first, second = (
        weighted_scores(plain_metric(task), both, labels, half.astype(float))
        for half in (chosen, ~chosen)
    )
    return first[:, 1:] - first[:, :1], second[:, 1:] - second[:, :1]


def reliability(task: Task, sweep: Sweep, labels: np.ndarray, seed: Seed) -> Bootstrap:
    """How reliably so many examples order heads by the loss without each, from 0 to 1; heads resampled.

    Their rank correlation between two random halves of the examples, mean over halvings, and by
    Spearman and Brown's formula (1910) that between two samples of all examples' size, 2ρ / (1 +
    ρ). Nothing can correlate with the losses by more than its square root.

    Args:
        task: the task.
        sweep: a classifier's outputs.
        labels: gold, shape (examples,).
        seed: of halving and resampling.
    """
    whole = predictions(task, sweep.baseline)
    disabled = predictions(task, sweep.heads).reshape(-1, len(labels))
    halves = _on_halves(task, whole, disabled, labels, seed, HALVINGS)
    half = mean_of([rank_correlation(*both, seed) for both in zip(*halves, strict=True)])
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
        held_out: the gain of a head that was chosen on other examples.
        harm: by how much it raises the loss of an example, of every head, against 0. A loss moves
            with every example, a score only with those whose answer turns.
    """

    baseline: float
    heads: Variants
    layers: Variants
    held_out: Estimate
    harm: ManyTest


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
    held_out = held_out_gain(task, baseline, without_head, labels, seed)
    raised = losses(task, sweep.heads, labels) - losses(task, sweep.baseline, labels)
    harm = many_test(np.moveaxis(raised, -1, 0), 0.0, seed)  # of (examples, layers, heads)
    return Effects(score, heads, variants(sweep.layers)[1], held_out, harm)
