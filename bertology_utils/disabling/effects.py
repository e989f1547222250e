"""Gains of disabled heads and layers from a sweep's outputs: scores, intervals and tests (§4.6).

Everything is paired: the same dev examples with and without the head. A gain is the score without a
head minus the score with it, from 0 to 1; the score is the one that the paper averages, accuracy or
Pearson's correlation. The tests are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from scipy.stats import norm

from ..cache import cached
from ..glue import Task, plain_metric
from ..statistics import (
    ONE_SIDED,
    ROUNDING,
    Bootstrap,
    Seed,
    corrected_p,
    mean_of,
    rank_correlation,
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


def compared_sweeps(lab: Lab, task: Task) -> dict[str, list[Sweep]]:
    """By ablation the sweeps of the task's runs that have all of them, on the same rows; {} if no run has."""
    runs = [at for at in lab.trainings(task) if len(ablations_of(lab, task, at)) > 1]
    sweeps = {name: [sweep_run(lab, task, at, name) for at in runs] for name in ABLATIONS}
    few = lab.drawn(task, COMPARED_ROWS)
    return sweeps | {"uniform": [one.select(few) for one in sweeps["uniform"]]} if runs else {}


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


@dataclass(frozen=True)
class Signed:
    """Gains without each head, and what they would be if each example's gains had a random sign.

    If a head made no difference, an example's two predictions, with and without it, could be
    exchanged, by which what the example adds to the gain has the other sign.

    Attributes:
        value: of every head, shape (heads,).
        error: its standard error over examples, same shape.
        drawn: with random signs, the same for all heads, so that what these have in common stays;
            shape (draws, heads).
        n: examples.
        runs: models of which it is the mean; of several tasks the fewest.
    """

    value: np.ndarray
    error: np.ndarray
    drawn: np.ndarray
    n: int
    runs: int = 1

    @classmethod
    def of(cls, parts: np.ndarray, seed: Seed, runs: int = 1) -> Signed:
        """From gains example by example, shape (examples, heads), means over so many runs."""
        n = len(parts)
        error = parts.std(axis=0, ddof=1) / np.sqrt(n)
        return cls(parts.mean(axis=0), error, signed_sums(parts, seed) / n, n, runs)

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


def in_each(parts: Sequence[Signed]) -> dict[str, np.ndarray]:
    """Whether the model is "better", or "worse", without a head in each of several runs or tasks, or on their mean, as p values.

    The part in which a head gains least, in standard deviations, decides about it. Its gain there is
    compared with the largest gain that random signs give any head in any part (an
    intersection–union test for each head, Berger 1982, within the maximum statistic of Westfall and
    Young, 1993).

    Returns:
        By side, corrected over all heads, shape (heads,) each.
    """
    observed = np.array([part.value / part.scale for part in parts])  # (parts, heads)
    drawn = [part.drawn / part.scale for part in parts]
    largest = np.max([one.max(axis=1) for one in drawn], axis=0)  # (draws,)
    smallest = np.min([one.min(axis=1) for one in drawn], axis=0)
    better, _ = corrected_p(observed.min(axis=0), largest, smallest)
    _, worse = corrected_p(observed.max(axis=0), largest, smallest)
    return {"better": better, "worse": worse}


def largest_by_chance(parts: np.ndarray, seed: Seed) -> np.ndarray:
    """The largest gain of all heads if each example's gains had a random sign, shape (draws,).

    Of heads that are not themselves significantly harmful to disable: one that changes many
    predictions would gain most by chance, too.

    Args:
        parts: gains example by example, shape (examples, heads).
        seed: of the draws.
    """
    gain = Signed.of(parts, seed)
    harmless = in_each([gain])["worse"] >= ONE_SIDED
    if not harmless.any():
        return np.zeros(len(gain.drawn))
    return gain.drawn[:, harmless].max(axis=1)


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


def reliability(values: np.ndarray, seed: Seed) -> Bootstrap:
    """How reliably so many examples order heads by the effect of each, from 0 to 1; heads resampled.

    Their rank correlation between two random halves of the examples, mean over halvings, and by
    Spearman and Brown's formula (1910) that between two samples of all examples' size, 2ρ / (1 +
    ρ). Nothing can correlate with the effects by more than its square root.

    Args:
        values: effects example by example, shape (examples, heads).
        seed: of halving and resampling.
    """
    n, rng, each = len(values), np.random.default_rng(seed), []
    for _ in range(HALVINGS):
        order = rng.permutation(n)
        one, other = values[order[: n // 2]], values[order[n // 2 :]]
        each.append(rank_correlation(one.mean(axis=0), other.mean(axis=0), seed))
    half = mean_of(each)
    # Where no head changes an answer, no correlation is known.
    rho = np.nan_to_num(np.append(half.value, half.draws))
    return Bootstrap.of(2 * rho / (1 + rho), half.n, seed)
