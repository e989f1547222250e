"""A sweep's outputs turned into scores, gains and tests, for heads and for layers (§4.6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import hypergeom

from ..common import Head
from ..glue.tasks import Task, plain_metric, predictions, score
from ..statistics import Bootstrap, Seed, bootstrap_weights
from ..statistics.permutation import ONE_SIDED
from ..statistics.ties import MARGIN, by_size, heads_by_size
from ..statistics.weighted import weighted_scores
from .controls import GainTest, SelectedGain, gain_test, mcnemar, scores_of, selected_gain
from .reference import Sweep


def gains(task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed) -> list[Bootstrap]:
    """Score with each variant minus the score of the whole model, from 0 to 1, with paired bootstraps.

    Args:
        task: the task.
        baseline: predictions of the whole model, shape (examples,).
        disabled: of every variant, shape (variants, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    both, metric = np.vstack([baseline, disabled]), plain_metric(task)
    draws = weighted_scores(metric, both, labels, bootstrap_weights(len(labels), seed))  # (resamples, 1 + variants)
    values = scores_of(metric, both, labels)
    return [
        Bootstrap(float(values[row] - values[0]), draws[:, row] - draws[:, 0], len(labels), seed)
        for row in range(1, len(both))
    ]


@dataclass(frozen=True)
class Variants:
    """What disabling does to the score, for all heads (in the order of layers, then heads) or all layers.

    Attributes:
        shape: (layers, heads) or (layers,).
        gains: score with the variant minus score of the whole model, from 0 to 1, one per variant.
        test: against chance; see :func:`bertology_utils.disabling.controls.gain_test`.
        selected: the gain of the variant chosen for its gain.
        mcnemar: exact p-values, uncorrected, shape (variants,); None for a regression.
    """

    shape: tuple[int, ...]
    gains: list[Bootstrap]
    test: GainTest
    selected: SelectedGain
    mcnemar: np.ndarray | None

    @property
    def values(self) -> np.ndarray:
        """Gains without their uncertainty, in :attr:`shape`."""
        return np.array([gain.value for gain in self.gains]).reshape(self.shape)

    @property
    def best(self) -> int:
        """The variant of the largest gain, the first of those that tie."""
        return int(by_size(self.values)[0])

    @property
    def mean(self) -> Bootstrap:
        """The gain of a variant drawn at random."""
        draws = np.mean([gain.draws for gain in self.gains], axis=0)
        return Bootstrap(float(self.values.mean()), draws, self.gains[0].n, self.gains[0].seed)

    @property
    def least(self) -> int:
        """The variant of the smallest gain, that is the largest loss, the first of those that tie."""
        return int(by_size(-self.values)[0])

    def significant(self, side: str = "better", level: float = ONE_SIDED) -> np.ndarray:
        """True where a variant is "better" or "worse" at a corrected p, in :attr:`shape`."""
        return (getattr(self.test, side) < level).reshape(self.shape)


@dataclass(frozen=True)
class Effects:
    """All of one sweep.

    Attributes:
        baseline: the whole model's score, from 0 to 1: accuracy, or Pearson's correlation.
        heads, layers: what disabling one of them does.
    """

    baseline: float
    heads: Variants
    layers: Variants


def effects(task: Task, sweep: Sweep, labels: np.ndarray, seed: Seed) -> Effects:
    """Scores and tests of a sweep.

    Args:
        task: the task.
        sweep: the classifier's outputs.
        labels: gold, shape (examples,).
        seed: of resampling, permutations and splits.

    Raises:
        ValueError: fewer than four examples, or missing labels.
    """
    if not np.isfinite(np.asarray(labels, dtype=float)).all():
        raise ValueError("some labels are missing; a gain is one of the score, which needs them all")
    baseline = predictions(task, sweep.baseline)
    metric = plain_metric(task)

    def variants(outputs: np.ndarray) -> Variants:
        shape = outputs.shape[:-2]
        predicted = np.stack([predictions(task, logits) for logits in outputs.reshape(-1, *outputs.shape[-2:])])
        arguments = task, baseline, predicted, labels, seed
        p = None if task.is_regression else mcnemar(baseline, predicted, labels)
        return Variants(shape, gains(*arguments), gain_test(*arguments), selected_gain(*arguments), p)

    return Effects(score(task, baseline, labels, metric)[metric], variants(sweep.heads), variants(sweep.layers))


def most_needed(gains: np.ndarray, count: int) -> list[Head]:
    """The heads whose disabling costs most, (layer, head) from 0.

    Args:
        gains: shape (layers, heads).
        count: how many.
    """
    return heads_by_size(-gains)[:count]


def shared_heads(gains: np.ndarray, others: np.ndarray, count: int = 5) -> tuple[int, float]:
    """Do two models need the same heads (§5)?

    Args:
        gains, others: shape (layers, heads).
        count: how many most needed heads of either are compared.

    Returns:
        How many are in both lists, and the probability of as many by chance (hypergeometric); 0 and 1 where all heads of
        either tie, so that it needs none more than others.
    """
    if min(np.ptp(gains), np.ptp(others)) <= MARGIN:
        return 0, 1.0
    common = len(set(most_needed(gains, count)) & set(most_needed(others, count)))
    return common, float(hypergeom.sf(common - 1, gains.size, count, count))


def need_others(a: Variants, b: Variants) -> bool:
    """True if both models have heads whose disabling costs at a corrected p, and none of these in common."""
    mine, theirs = a.significant("worse"), b.significant("worse")
    return bool(mine.any() and theirs.any() and not (mine & theirs).any())
