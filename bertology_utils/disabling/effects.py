"""Gains of disabled heads and layers from a sweep's outputs: scores, intervals and tests (§4.6).

Everything is paired: the same dev examples with and without the head. A gain is the score without a head minus the score
with it, from 0 to 1; the score is the one that the paper averages, accuracy or Pearson's correlation. The tests are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special, stats

from ..claims import SCORE, TENTH, WEIGHT
from ..common import Head, head_name, one_based
from ..glue import Task, plain_metric, scale_of
from ..judge import Support, above, all_of, some_head
from ..results import GAIN, MEASURED, P_VALUE, text_of
from ..statistics import (
    ONE_SIDED,
    RESAMPLES,
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    bootstrap_weights,
    corrected_p,
    many_test,
    mean_over_seeds,
    weighted_scores,
    whole_and_resampled,
)
from ..statistics.estimates import of_same_examples
from ..statistics.permutation import MARGIN, by_size, heads_by_size, p_is
from .switch import answers, scores_of

if TYPE_CHECKING:
    from .sweep import Sweep

PERMUTATIONS, SPLITS = 4000, 200  # so many that a p of 0.025 is known to a tenth of itself
HALVINGS = 5  # of the examples, where every one costs a pass
FEW = 5  # heads of a model that count as its most needed
ALIKE = 0.1  # difference of rank correlations below which tasks' profiles count as one


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

    exchange = swapped.astype(np.float64)  # (permutations, examples)
    centre = labels.mean()
    before, after, gold = baseline - centre, (disabled - centre).T, labels - centre  # (examples, variants) for those after
    with_head = _correlations(before[:, None], after, exchange, gold)
    return _correlations(after, before[:, None], exchange, gold) - with_head


def _correlations(own: np.ndarray, other: np.ndarray, exchange: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Pearson's correlation with the labels where the other's prediction stands instead of one's own in exchanged examples.

    Args:
        own, other: predictions, shape (examples, variants), or (examples, 1) for the same of all variants.
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
    return np.divide(products, np.sqrt(np.maximum(spread, 1e-30)), out=np.zeros_like(products), where=spread > 1e-20)


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
        scale: see :func:`bertology_utils.glue.scale_of`.
    """

    shape: tuple[int, ...]
    gains: list[Bootstrap]
    test: GainTest
    selected: SelectedGain
    mcnemar: np.ndarray | None
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
        harm: by how much it raises the loss of an example, of every head, against 0. A loss moves with every example,
            a score only with those whose answer turns.
    """

    baseline: float
    heads: Variants
    layers: Variants
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
        raise ValueError("some labels are missing; a gain is one of the score, which needs them all")
    baseline = answers(task, sweep.baseline)

    def variants(outputs: np.ndarray) -> Variants:
        predicted = answers(task, outputs)
        shape, predicted = predicted.shape[:-1], predicted.reshape(-1, len(labels))
        arguments = task, baseline, predicted, labels, seed
        p = None if task.is_regression else mcnemar(baseline, predicted, labels)
        return Variants(shape, gains(*arguments), gain_test(*arguments), selected_gain(*arguments), p, scale_of(task, score))

    score = float(scores_of(task, baseline[None], labels)[0])
    raised = losses(task, sweep.heads, labels) - losses(task, sweep.baseline, labels)  # (layers, heads, examples)
    harm = many_test(np.moveaxis(raised, -1, 0), 0.0, seed)
    return Effects(score, variants(sweep.heads), variants(sweep.layers), harm)


def losses(task: Task, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Loss of each example: minus the logarithm of the right label's probability, or the squared error of a regression.

    Args:
        task: the task.
        outputs: of a classifier, shape (…, examples, labels).
        labels: gold, shape (examples,).

    Returns:
        Shape (…, examples).
    """
    if task.is_regression:
        return (outputs[..., 0] - labels) ** 2
    right = np.take_along_axis(outputs, np.broadcast_to(labels[:, None], (*outputs.shape[:-1], 1)), axis=-1)[..., 0]
    return special.logsumexp(outputs, axis=-1) - right


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


def shared(first: Variants, second: Variants) -> Bootstrap:
    """How many of the :data:`FEW` heads that either of two models needs most both need, examples resampled (§5).

    None where all heads of either tie, so that it needs none most. Models of one task are resampled together.
    """
    needed = [_needed(one) for one in (first, second)]
    both = (needed[0] & needed[1]).sum(axis=1).astype(float)  # (1 + resamples,)
    return Bootstrap.of(both, first.gains[0].n, (first.gains[0].seed, second.gains[0].seed))


def _needed(one: Variants) -> np.ndarray:
    """True for the heads needed most, of the examples as they are and of each resample, shape (1 + resamples, heads)."""
    gains = np.stack([np.append(gain.value, gain.draws) for gain in one.gains], axis=1)  # (1 + resamples, heads)
    found = np.zeros(gains.shape, dtype=bool)
    if np.ptp(gains[0]) > MARGIN:
        np.put_along_axis(found, np.argsort(gains, axis=1, kind="stable")[:, :FEW], True, axis=1)
        found[0] = False
        found[0, [int(np.ravel_multi_index(head, one.shape)) for head in most_needed(one.values)]] = True
    return found


def needs_alike(found: Mapping[Task, Sequence[Variants]], chosen: Sequence[tuple[Task, Task]]) -> Bootstrap:
    """Of the heads needed most, how many more two models share whose tasks are chosen than two of other tasks.

    Means over all pairs of models of two tasks (or of one, for a task paired with itself), and over all pairs of
    different tasks that are not chosen: what heads have in common whatever the task goes away.

    Args:
        found: of every training.
        chosen: pairs of tasks.
    """
    models = [(task, _needed(one).astype(float)) for task, several in found.items() for one in several]
    alike: list[np.ndarray] = []
    others: list[np.ndarray] = []
    for (one, needed), (other, needed_too) in combinations(models, 2):
        is_chosen = (one, other) in chosen or (other, one) in chosen
        if is_chosen or one is not other:
            (alike if is_chosen else others).append((needed * needed_too).sum(axis=1))
    sizes = {task: several[0].gains[0].n for task, several in found.items()}
    seeds = tuple(several[0].gains[0].seed for several in found.values())
    return Bootstrap.of(np.mean(alike, axis=0) - np.mean(others, axis=0), sum(sizes.values()), seeds)


def profiles_apart(found: Mapping[Task, Sequence[Variants]], seed: Seed) -> Support:
    """Support for the heads' effects being more alike, in their order, within a task than between tasks.

    The statistic is the mean rank correlation of two models of one task minus that of two tasks'. It holds by a
    permutation of which model is of which task; it fails if, heads resampled, it is surely below :data:`ALIKE`.

    Args:
        found: of every training.
        seed: of the draws.
    """
    tasks = np.array([at for at, several in enumerate(found.values()) for _ in several])
    profiles = np.stack([one.values.ravel() for several in found.values() for one in several])  # (models, heads)
    if np.bincount(tasks).max(initial=0) < 2 or len(found) < 2:
        return Support(1.0, 1.0)
    first, second = np.triu_indices(len(tasks), 1)

    def statistic(rho: np.ndarray, tasks: np.ndarray) -> float:
        within = tasks[first] == tasks[second]
        return float(rho[within].mean() - rho[~within].mean())

    def correlations(heads: np.ndarray) -> np.ndarray:
        ranks = stats.rankdata(profiles[:, heads], axis=1)
        with np.errstate(invalid="ignore"):  # a model whose heads all do the same
            return np.nan_to_num(np.corrcoef(ranks))[first, second]

    rng, everything = np.random.default_rng(seed), np.arange(profiles.shape[1])
    rho = correlations(everything)
    observed = statistic(rho, tasks)
    drawn = np.array([statistic(rho, rng.permutation(tasks)) for _ in range(PERMUTATIONS)])
    resampled = [statistic(correlations(rng.choice(everything, len(everything))), tasks) for _ in range(RESAMPLES)]
    low, high = np.percentile(resampled, [2.5, 97.5])
    holds = (1 + (drawn >= observed - 1e-9).sum()) / (1 + PERMUTATIONS)
    against = Estimate(observed, float(np.std(resampled)), len(everything))
    number = f"{observed:+.2f} [{low:+.2f}, {high:+.2f}], {p_is(holds)}; {len(tasks)} models of {len(found)} tasks"
    return Support(float(holds), (-against).p_above(-ALIKE), number)


def several_off(
    task: Task, without: Callable[[Sequence[Head]], np.ndarray], sweep: Sweep, labels: np.ndarray, seed: Seed, share: float
) -> Bootstrap:
    """The gain with the best heads of one half of the examples disabled together, on the other half; mean over splits.

    Args:
        task: the task.
        without: gives a classifier's outputs, shape (examples, labels), with some heads disabled.
        sweep: of the same classifier.
        labels: gold, shape (examples,).
        seed: of resampling and splits.
        share: of the heads that are disabled; the paper disabled at most a layer, a twelfth.
    """
    count = max(1, round(share * sweep.heads.shape[0] * sweep.heads.shape[1]))
    weights, rng = whole_and_resampled(len(labels), seed), np.random.default_rng(seed)  # (1 + resamples, examples)
    whole, gains = answers(task, sweep.baseline), []
    for _ in range(HALVINGS):
        half = rng.permutation(len(labels)) < len(labels) // 2
        off = answers(task, without(heads_by_score(task, sweep, labels, half)[:count]))
        rest = np.stack([whole, off])[:, ~half]
        scores = weighted_scores(plain_metric(task), rest, labels[~half], weights[:, ~half])  # (1 + resamples, 2)
        gains.append(scores[:, 1] - scores[:, 0])
    return Bootstrap.of(np.mean(gains, axis=0), len(labels), seed)


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


def estimates_of_claims(
    found: Mapping[Task, Sequence[Effects]], learned: Mapping[Task, bool], seed: Seed
) -> dict[str, dict[Any, Any]]:
    """What claims about single heads and layers are judged on, by claim: by task (or pair of tasks) an estimate or a support.

    Args:
        found: of every training.
        learned: by task.
        seed: of permutations.
    """
    heads = {task: [one.heads for one in several] for task, several in found.items()}
    layers = {task: [one.layers for one in several] for task, several in found.items()}
    means = {task: mean_over_seeds([one.mean for one in several], several[0].scale) for task, several in heads.items()}
    known = {task: several for task, several in heads.items() if learned[task]}
    needing = {task: many for task, many in known.items() if len(many) > 1}
    pair = tuple(task for task in known if task.name in ("stsb", "rte"))
    return {
        "some-head-helps": {task: some_gain(several) for task, several in heads.items()},
        "some-head-hurts": {task: [one.harm for one in several] for task, several in found.items()},
        "gain-elsewhere": {task: of_same_examples([one.selected.estimate for one in many]) for task, many in heads.items()},
        "impact-differs": {"": profiles_apart(known, seed)} if len(known) > 1 else {},
        "random-head-helps": means,
        "some-layer-helps": {task: some_gain(several) for task, several in layers.items()},
        "first-layer-rte": {task: gain_of(several, 0) for task, several in layers.items()},
        "worst-layer-small": {task: no_harm(several, range(several[0].shape[0])) for task, several in layers.items()},
        "shared-pair": {"": needs_alike(known, [pair])} if len(pair) == 2 and len(known) > 2 else {},
        "trainings-agree": {"": needs_alike(known, [(task, task) for task in needing])}
        if needing and len(known) > 1
        else {},
    }


def gain_of(several: Sequence[Variants], place: int | Head) -> Estimate:
    """The gain of one layer, from 0, or head, (layer, head) from 0, mean over trainings."""
    return mean_over_seeds([one.gain(place) for one in several], several[0].scale)


def some_gain(several: Sequence[Variants]) -> Support:
    """Support for some head's (or layer's) disabling raising the score in every training.

    It holds in a training at a p corrected over all heads; it fails if none raises the score by a tenth of a point, the
    least gain that the paper reports.
    """
    parts = []
    for one in several:
        below = max((-mean_over_seeds([gain])).p_above(-TENTH) for gain in one.gains)
        parts.append(Support(float(one.p("better").min()), below))
    least = min(several, key=lambda one: one.gains[one.best].value)
    gain, p = least.gains[least.best], float(least.p("better").flat[least.best])
    support = all_of(parts)
    return Support(support.holds, support.fails, f"{text_of(gain.summary() | {'unit': 'gain'})} ({p_is(p)}); n={gain.n}")


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
