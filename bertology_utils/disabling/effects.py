"""Gains of disabled heads and layers from a sweep's outputs: scores, intervals and tests (§4.6).

Everything is paired: the same dev examples with and without the head. A gain is the score without a head minus the score
with it, from 0 to 1; the score is the one that the paper averages, accuracy or Pearson's correlation. The tests are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.stats import hypergeom

from ..claims import SCORE, WEIGHT
from ..common import Head, head_name, one_based
from ..glue import Task, plain_metric
from ..judge import Support, above, all_of, some_head
from ..results import GAIN, MEASURED, P_VALUE, text_of
from ..statistics import (
    ONE_SIDED,
    Bootstrap,
    Estimate,
    Seed,
    bootstrap_weights,
    corrected_p,
    many_test,
    mean_over_seeds,
    weighted_scores,
)
from ..statistics.estimates import of_same_examples
from ..statistics.permutation import MARGIN, by_size, heads_by_size, p_is, rank_of
from .switch import answers, scores_of

if TYPE_CHECKING:
    from .sweep import Sweep

PERMUTATIONS, SPLITS = 1000, 200
FEW = 5  # heads of a model that count as its most needed


def heads_by_score(task: Task, sweep: Sweep, labels: np.ndarray, rows: np.ndarray | slice = slice(None)) -> list[Head]:
    """Heads, (layer, head) from 0, by the score without each, that of the largest gain first.

    Args:
        task: the task.
        sweep: a classifier's outputs.
        labels: gold, shape (examples,).
        rows: True for the examples that order, shape (examples,); all by default.
    """
    return heads_by_size(np.stack([scores_of(task, said[:, rows], labels[rows]) for said in answers(task, sweep.heads)]))


def gains(task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed) -> list[Bootstrap]:
    """Score with each variant minus the score of the whole model, from 0 to 1, with paired bootstraps.

    Args:
        task: the task.
        baseline: predictions of the whole model, shape (examples,).
        disabled: of every variant, shape (variants, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    both = np.vstack([baseline, disabled])
    draws = weighted_scores(plain_metric(task), both, labels, bootstrap_weights(len(labels), seed))
    values = scores_of(task, both, labels)
    return [
        Bootstrap(float(values[row] - values[0]), draws[:, row] - draws[:, 0], len(labels), seed)
        for row in range(1, len(both))
    ]


@dataclass(frozen=True)
class GainTest:
    """Gains of all variants against what chance alone would give.

    Attributes:
        gains: shape (variants,), from 0 to 1.
        better, worse: permutation p-values, corrected over all variants by the
            maximum statistic, shape (variants,).
        best_by_chance: the largest gain in each permutation among the
            variants that are not themselves worse at a corrected p below
            0.025, shape (permutations,). One that changes many predictions
            would gain most by chance, too.
    """

    gains: np.ndarray
    better: np.ndarray
    worse: np.ndarray
    best_by_chance: np.ndarray


def gain_test(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed, permutations: int = PERMUTATIONS
) -> GainTest:
    """A permutation test of whether any variant changes the score more than chance would.

    If a head made no difference, its example's two predictions, with and
    without it, could be exchanged. Each permutation exchanges them for a random
    half of the examples, the same ones for all variants, so that what the
    variants have in common stays; a gain is compared with the largest
    standardised one over all variants (Westfall and Young, 1993).

    Args:
        task, baseline, disabled, labels: as for :func:`gains`.
        seed: of the permutations.
        permutations: how many.
    """
    swapped = np.random.default_rng(seed).random((permutations, len(labels))) < 0.5
    null = _swapped_gains(task, baseline, disabled, labels, swapped)
    observed = scores_of(task, disabled, labels) - scores_of(task, baseline[None], labels)
    error = np.sqrt((null**2).mean(axis=0))  # its mean is 0 by construction
    scale = np.where(error > 0, error, np.inf)  # a head that changes no prediction
    better, worse = corrected_p(observed / scale, (null / scale).max(axis=1), (null / scale).min(axis=1))
    harmless = worse >= ONE_SIDED
    chance = null[:, harmless].max(axis=1) if harmless.any() else np.zeros(permutations)
    return GainTest(observed, better, worse, chance)


def _swapped_gains(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, swapped: np.ndarray
) -> np.ndarray:
    """Gains with each variant's and the whole model's predictions exchanged where ``swapped``, (permutations, variants)."""
    if plain_metric(task) == "accuracy":  # one product instead of large arrays of predictions; sums of 1 and −1 are exact
        differences = (disabled == labels).astype(np.float64) - (baseline == labels)  # (variants, examples)
        return np.where(swapped, -1.0, 1.0) @ differences.T / len(labels)

    def gain(predicted: np.ndarray) -> np.ndarray:
        with_head, without = np.where(swapped, predicted, baseline), np.where(swapped, baseline, predicted)
        return scores_of(task, without, labels) - scores_of(task, with_head, labels)  # (permutations,)

    return np.stack([gain(predicted) for predicted in disabled], axis=1)


def mcnemar(baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Exact two-sided McNemar p-value of each variant of a classifier, not corrected, shape (variants,)."""
    right = baseline == labels
    p = []
    for predicted in disabled:
        lost, won = int((right & (predicted != labels)).sum()), int((~right & (predicted == labels)).sum())
        p.append(stats.binomtest(won, lost + won).pvalue if lost + won else 1.0)
    return np.array(p)


@dataclass(frozen=True)
class SelectedGain:
    """The gain of a head that was chosen for its gain.

    Attributes:
        naive: on the half on which it was chosen, shape (splits,).
        honest: on the other half, shape (splits,).
        n: examples, both halves.
    """

    naive: np.ndarray
    honest: np.ndarray
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean honest gain.

        The splits share their examples, so more of them do not make it
        narrower without end (Nadeau and Bengio, 2003).
        """
        half = 1.96 * self.honest.std(ddof=1) * np.sqrt(1 / len(self.honest) + 1)
        return float(self.honest.mean() - half), float(self.honest.mean() + half)

    @property
    def estimate(self) -> Estimate:
        """The mean honest gain with its standard error."""
        low, high = self.interval
        return Estimate(float(self.honest.mean()), (high - low) / 2 / 1.96, self.n)

    def summary(self) -> dict[str, float]:
        """Mean honest gain, its interval and the examples, for the table of results."""
        low, high = self.interval
        return {"value": float(self.honest.mean()), "low": low, "high": high, "n": self.n}


def selected_gain(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, seed: Seed, splits: int = SPLITS
) -> SelectedGain:
    """The gain of the best variant on one half of the examples, measured on the other half, over and over.

    The best of 144 heads on a dev set is partly the luckiest. On examples that
    had no say in the choice, luck does not count.

    Args:
        task, baseline, disabled, labels: as for :func:`gains`.
        seed: of the splits.
        splits: how many.

    Raises:
        ValueError: fewer than four examples.
    """
    n = len(labels)
    if n < 4:
        raise ValueError(f"{n} examples cannot be halved; at least 4 are needed")
    rng = np.random.default_rng(seed)
    chosen = np.zeros((splits, n), dtype=bool)
    for half in chosen:
        half[rng.permutation(n)[: n // 2]] = True
    both = np.vstack([baseline, disabled])
    first, second = (weighted_scores(plain_metric(task), both, labels, half.astype(float)) for half in (chosen, ~chosen))
    first, second = first[:, 1:] - first[:, :1], second[:, 1:] - second[:, :1]  # (splits, variants)
    best = first.argmax(axis=1)
    rows = np.arange(splits)
    return SelectedGain(first[rows, best], second[rows, best], n)


@dataclass(frozen=True)
class Variants:
    """Effect of disabling on the score, for all heads (in the order of layers, then heads) or all layers.

    Attributes:
        shape: (layers, heads) or (layers,).
        gains: score with the variant minus score of the whole model, from 0 to 1, one per variant.
        test: against chance; see :func:`gain_test`.
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
    def least(self) -> int:
        """The variant of the smallest gain, that is the largest loss, the first of those that tie."""
        return int(by_size(-self.values)[0])

    @property
    def mean(self) -> Bootstrap:
        """The gain of a variant drawn at random."""
        draws = np.mean([gain.draws for gain in self.gains], axis=0)
        return Bootstrap(float(self.values.mean()), draws, self.gains[0].n, self.gains[0].seed)

    def gain(self, place: int | Head) -> Bootstrap:
        """The gain without one layer, from 0, or head, (layer, head) from 0."""
        return self.gains[int(np.ravel_multi_index(np.atleast_1d(place), self.shape))]

    def p(self, side: str) -> np.ndarray:
        """Corrected p values of being "better" or "worse", in :attr:`shape`."""
        return getattr(self.test, side).reshape(self.shape)

    def significant(self, side: str = "better", level: float = ONE_SIDED) -> np.ndarray:
        """True where a variant is "better" or "worse" at a corrected p, in :attr:`shape`."""
        return self.p(side) < level


@dataclass(frozen=True)
class Effects:
    """The effects of disabling in one model.

    Attributes:
        baseline: the whole model's score, from 0 to 1: accuracy, or Pearson's correlation.
        heads, layers: what disabling one of them does.
    """

    baseline: float
    heads: Variants
    layers: Variants


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
        raise ValueError("some labels are missing; a gain is one of the score, which needs them all")
    baseline = answers(task, sweep.baseline)

    def variants(outputs: np.ndarray) -> Variants:
        predicted = answers(task, outputs)
        shape, predicted = predicted.shape[:-1], predicted.reshape(-1, len(labels))
        arguments = task, baseline, predicted, labels, seed
        p = None if task.is_regression else mcnemar(baseline, predicted, labels)
        return Variants(shape, gains(*arguments), gain_test(*arguments), selected_gain(*arguments), p)

    return Effects(float(scores_of(task, baseline[None], labels)[0]), variants(sweep.heads), variants(sweep.layers))


# Numbers for the table of results. -------------------------------------


def tolerance(task: Task) -> float:
    """Tolerance of a gain between processors: an answer on the border is a part of an accuracy only."""
    return MEASURED if task.is_regression else GAIN


def rows_of(found: Mapping[Task, Sequence[Effects]]) -> Iterator[dict[str, Any]]:
    """Arguments of :meth:`bertology_utils.record.Record.record` for all effects, of every training by task."""
    for task, several in found.items():
        shared: dict[str, Any] = {"by": ("task", "training"), "tolerance": tolerance(task)}
        yield shared | {
            "what": "score of the whole model",
            "values": {task: [one.baseline for one in several]},
            "unit": "score",
        }
        for name in ("head", "layer"):
            parts: list[Variants] = [getattr(one, f"{name}s") for one in several]
            of_parts = {
                f"gain without a {name}": [one.values if name == "head" else with_intervals(one.gains) for one in parts],
                f"mean gain without a {name}": [one.mean for one in parts],
                f"largest gain without a {name}": [one.gains[one.best] for one in parts],
                f"gain without the chosen {name}, on other examples": [one.selected for one in parts],
            }
            for what, values in of_parts.items():
                yield shared | {"what": what, "values": {task: values}, "unit": "gain"}
            yield shared | {
                "what": f"largest gain without a {name} by chance",
                "values": {task: [np.percentile(one.test.best_by_chance, [50, 95]) for one in parts]},
                "over": ("kind",),
                "kinds": ("median", "95 %"),
                "unit": "gain",
            }
            yield {
                "what": f"p of the gain without a {name}",
                "values": {task: [{side: one.p(side) for side in ("better", "worse")} for one in parts]},
                "by": ("task", "training", "kind"),
                "unit": "p",
                "tolerance": P_VALUE,
            }


def with_intervals(parts: Sequence[Bootstrap]) -> dict[str, Any]:
    """Values with the ends of their intervals, as arrays, and the examples, for the table of results."""
    low, high = np.transpose([one.interval for one in parts])
    return {"value": np.array([one.value for one in parts]), "low": low, "high": high, "n": parts[0].n}


class Shared(NamedTuple):
    """The most needed heads that two models share.

    Attributes:
        heads: of the :data:`FEW` that either needs most, how many both do.
        p: the probability of as many by chance (hypergeometric).
        rank: rank correlation, over all heads, of what disabling does; NaN where it does the same for all.
    """

    heads: int
    p: float
    rank: float


def shared(first: np.ndarray, second: np.ndarray) -> Shared:
    """What two models have in common; no head, and p = 1, where all heads of either tie, so that it needs none most (§5).

    Args:
        first, second: gains, shape (layers, heads).
    """
    rank = rank_of(first, second)
    if min(np.ptp(first), np.ptp(second)) <= MARGIN:
        return Shared(0, 1.0, rank)
    common = len(set(most_needed(first)) & set(most_needed(second)))
    return Shared(common, float(hypergeom.sf(common - 1, first.size, FEW, FEW)), rank)


def most_needed(gains: np.ndarray, count: int = FEW) -> list[Head]:
    """The heads whose disabling costs most, (layer, head) from 0.

    Args:
        gains: shape (layers, heads).
        count: how many.
    """
    return heads_by_size(-gains)[:count]


def needed_by_all(found: Sequence[Sequence[Effects]]) -> list[Head]:
    """Heads among the most needed of each of some tasks, in some training; (layer, head) from 0.

    Args:
        found: of every training of every task.
    """
    of_tasks = [{head for one in several for head in most_needed(one.heads.values)} for several in found]
    return sorted(set.intersection(*of_tasks)) if of_tasks else []


def estimates_of_claims(found: Mapping[Task, Sequence[Effects]], learned: Mapping[Task, bool]) -> dict[str, dict[Any, Any]]:
    """What claims about single heads and layers are judged on, by claim: by task (or pair of tasks) an estimate or a support.

    Args:
        found: of every training.
        learned: by task.
    """
    heads = {task: [one.heads for one in several] for task, several in found.items()}
    layers = {task: [one.layers for one in several] for task, several in found.items()}
    means = {task: mean_over_seeds([one.mean for one in several]) for task, several in heads.items()}
    known = {task: several for task, several in heads.items() if learned[task]}
    needing = {task: many for task, many in known.items() if all(one.significant("worse").any() for one in many)}
    seeds = [pair for several in needing.values() for pair in combinations(several, 2)]
    named = {task.name: several for task, several in known.items() if task.name in ("stsb", "rte")}
    pairs = list(zip(*named.values(), strict=False)) if len(named) == 2 else []  # as many as both have
    return {
        "some-head-helps": {task: some_gain(several) for task, several in heads.items()},
        "some-head-hurts": {task: some_gain(several, "worse") for task, several in heads.items()},
        "gain-elsewhere": {task: of_same_examples([one.selected.estimate for one in many]) for task, many in heads.items()},
        "impact-differs": {f"{a.title} and {b.title}": _apart(means[a], means[b]) for a, b in combinations(known, 2)},
        "random-head-helps": means,
        "some-layer-helps": {task: some_gain(several) for task, several in layers.items()},
        "first-layer-rte": {task: gain_of(several, 0) for task, several in layers.items()},
        "worst-layer-small": {task: no_harm(several, range(several[0].shape[0])) for task, several in layers.items()},
        "shared-pair": {"": _share_heads(pairs)} if pairs else {},
        "trainings-agree": {" and ".join(task.title for task in needing): _share_heads(seeds)} if seeds else {},
    }


def gain_of(several: Sequence[Variants], place: int | Head) -> Estimate:
    """The gain of one layer, from 0, or head, (layer, head) from 0, mean over trainings."""
    return mean_over_seeds([one.gain(place) for one in several])


def some_gain(several: Sequence[Variants], side: str = "better") -> Support:
    """Support for some head's (or layer's) disabling changing the score for the better, or the worse, in every training.

    It holds in a training at a p corrected over all heads; it fails if none changes the score by a point.
    """
    sign = 1 if side == "better" else -1
    parts, ends = [], []
    for one in several:
        against = [mean_over_seeds([gain if sign > 0 else -gain]) for gain in one.gains]
        parts.append(Support(float(one.p(side).min()), max((-change).p_above(-SCORE) for change in against)))
        at = one.best if sign > 0 else one.least
        ends.append((sign * one.gains[at].value, one.gains[at], float(one.p(side).flat[at])))
    _, gain, p = min(ends, key=lambda end: end[0])
    number = text_of(gain.summary() | {"unit": "gain"})
    support = all_of(parts)
    return Support(support.holds, support.fails, f"{number} ({p_is(p)}); n={gain.n}")


def some_above(differences: np.ndarray, heads: Sequence[Head], seed: Seed) -> Support:
    """Support for some of these heads' mean difference of weights being above the least that counts; the highest in words.

    Args:
        differences: shape (examples, layers, heads); NaN where an example says nothing.
        heads: (layer, head) from 0, named beforehand.
        seed: of the permutations.
    """
    test = many_test(np.stack([differences[:, layer, head] for layer, head in heads], axis=1), WEIGHT, seed)
    support, at = some_head(test), int(np.nanargmax(test.means))
    return Support(support.holds, support.fails, f"{head_name(*heads[at])} {test.means[at]:+.3f}; n={int(test.n[at])}")


def no_harm(several: Sequence[Variants], places: Sequence[int] | Sequence[Head]) -> Support:
    """Support for each of some heads (or layers) costing less than a point, mean over trainings; the least sure in words.

    Args:
        several: of every training.
        places: layers from 0, or heads, (layer, head) from 0.
    """
    changes = {at: gain_of(several, at) for at in places}
    parts = {at: above(change, -SCORE) for at, change in changes.items()}
    if not parts:
        return Support(1.0, 1.0)
    at = max(parts, key=lambda at: parts[at].holds)
    support, name = all_of(parts.values()), f"layer {one_based(at)}" if isinstance(at, int) else head_name(*at)
    number = text_of(changes[at].summary() | {"unit": "gain"}, sizes=True)
    return Support(support.holds, support.fails, f"{name} {number}")


def _apart(first: Estimate, second: Estimate) -> Estimate:
    """The difference of two tasks' estimates, of independent examples."""
    error = float(np.hypot(first.error, second.error))
    degrees, trainings = min(first.degrees, second.degrees), min(first.trainings, second.trainings)
    return Estimate(first.value - second.value, error, first.n + second.n, trainings, degrees)


def _share_heads(pairs: Sequence[tuple[Variants, Variants]]) -> Support:
    """Support for the most needed heads of every pair of models having more in common than by chance.

    It fails if all have heads that cost at a corrected p, and none of these in common.
    """
    common = [shared(first.values, second.values) for first, second in pairs]
    least = min(common)
    against = 0.0 if all(_need_others(*pair) for pair in pairs) else 1.0
    number = f"{least.heads} of {FEW} shared ({p_is(least.p)}), the least of {len(pairs)} pairs"
    return Support(max(one.p for one in common), against, number)


def _need_others(a: Variants, b: Variants) -> bool:
    """True if both models have heads whose disabling costs at a corrected p, and none of these in common."""
    mine, theirs = a.significant("worse"), b.significant("worse")
    return bool(mine.any() and theirs.any() and not (mine & theirs).any())
