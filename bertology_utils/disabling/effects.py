"""Gains of disabled heads and layers from a sweep's outputs: scores, intervals and tests (§4.6).

Everything is paired: the same dev examples with and without the head. A gain is the score without a
    head minus the score with it, from 0 to 1; the score is the one that the paper averages,
    accuracy or Pearson's correlation. The tests are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from scipy import stats

from ..cache import cached
from ..common import Head
from ..glue import Task, plain_metric, scale_of
from ..results import GAIN, MEASURED, P_VALUE
from ..statistics.estimates import (
    ROUNDING,
    Bootstrap,
    Estimate,
    Seed,
    mean_of,
    resampled_scores,
    weighted_scores,
)
from ..statistics.permutation import (
    DRAWS,
    ONE_SIDED,
    ManyTest,
    by_size,
    corrected_p,
    many_test,
    rank_correlation,
)
from .sweep import Sweep, sweep
from .masking import answers, rightness, scores_of

if TYPE_CHECKING:
    from ..lab import Lab

SPLITS = 200
HALVINGS = 20  # of the examples, for a correlation between halves


def heads_by_score(
    task: Task,
    sweep: Sweep,
    labels: np.ndarray,
    rows: np.ndarray | slice = slice(None),
    lots: Generator | None = None,
) -> list[Head]:
    """Heads, (layer, head) from 0, by the score without each, that of the largest gain first.

    Args:
        task: the task.
        sweep: a classifier's outputs.
        labels: gold, shape (examples,).
        rows: True for the examples that order, shape (examples,); all by default.
        lots: draws the order of heads that tie, of which many change no answer; without it the
            lowest layer is first.
    """
    scores = np.stack(
        [scores_of(task, said[:, rows], labels[rows]) for said in answers(task, sweep.heads)]
    )
    drawn = np.arange(scores.size) if lots is None else lots.permutation(scores.size)
    order = drawn[by_size(scores.ravel()[drawn])]
    return [(int(at) // scores.shape[1], int(at) % scores.shape[1]) for at in order]


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
    whole, *others = resampled_scores(
        plain_metric(task), np.vstack([baseline, disabled]), labels, seed
    )
    return [one - whole for one in others]


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
    task: Task,
    baseline: np.ndarray,
    disabled: np.ndarray,
    labels: np.ndarray,
    seed: Seed,
    permutations: int = DRAWS,
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
    better, worse = corrected_p(
        observed / scale, (null / scale).max(axis=1), (null / scale).min(axis=1)
    )
    harmless = worse >= ONE_SIDED
    chance = null[:, harmless].max(axis=1) if harmless.any() else np.zeros(permutations)
    return GainTest(observed, better, worse, chance)


def _swapped_gains(
    task: Task, baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray, swapped: np.ndarray
) -> np.ndarray:
    """Gains with each variant's and the whole model's predictions exchanged where ``swapped``, (permutations, variants)."""
    if (
        plain_metric(task) == "accuracy"
    ):  # one product instead of large arrays of predictions; sums of 1 and −1 are exact
        differences = (disabled == labels).astype(np.float64) - (
            baseline == labels
        )  # (variants, examples)
        return np.where(swapped, -1.0, 1.0) @ differences.T / len(labels)

    exchange = swapped.astype(np.float64)  # (permutations, examples)
    centre = labels.mean()
    before, after, gold = (
        baseline - centre,
        (disabled - centre).T,
        labels - centre,
    )  # (examples, variants) for those after
    with_head = _correlations(before[:, None], after, exchange, gold)
    return _correlations(after, before[:, None], exchange, gold) - with_head


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
    return np.divide(
        products,
        np.sqrt(np.maximum(spread, 1e-30)),
        out=np.zeros_like(products),
        where=spread > 1e-20,
    )


def mcnemar(baseline: np.ndarray, disabled: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Exact two-sided McNemar p-value of each variant of a classifier, not corrected, shape (variants,)."""
    right = baseline == labels
    p = []
    for predicted in disabled:
        lost, won = (
            int((right & (predicted != labels)).sum()),
            int((~right & (predicted == labels)).sum()),
        )
        p.append(stats.binomtest(won, lost + won).pvalue if lost + won else 1.0)
    return np.array(p)


@dataclass(frozen=True)
class SelectedGain:
    """The gain of a head that was chosen for its gain.

    Attributes:
        naive: on the half on which it was chosen, shape (splits,).
        honest: on the other half, mean over the heads that tie on the first, shape (splits,).
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
    task: Task,
    baseline: np.ndarray,
    disabled: np.ndarray,
    labels: np.ndarray,
    seed: Seed,
    splits: int = SPLITS,
) -> SelectedGain:
    """The gain of the best variant on one half of the examples, measured on the other half, over and over.

    The best of 144 heads on a dev set is partly the luckiest. On examples that
    had no say in the choice, luck does not count. Of several that tie the mean
    is taken.

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
    first, second = _on_halves(task, baseline, disabled, labels, seed, splits)
    naive = first.max(axis=1)
    # Few answers change, so many heads tie; the first of them would be one of the lowest layers.
    best = first >= naive[:, None] - ROUNDING
    return SelectedGain(naive, (second * best).sum(axis=1) / best.sum(axis=1), n)


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
    whole, disabled = (
        answers(task, sweep.baseline),
        answers(task, sweep.heads).reshape(-1, len(labels)),
    )
    first, second = _on_halves(task, whole, disabled, labels, seed, HALVINGS)
    half = mean_of([rank_correlation(*both, seed) for both in zip(first, second, strict=True)])
    rho = np.nan_to_num(
        np.append(half.value, half.draws)
    )  # where no head changes an answer, none is known
    return Bootstrap.of(2 * rho / (1 + rho), half.n, seed)


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
        return mean_of(self.gains)

    def gain(self, place: int | Head) -> Bootstrap:
        """The gain without one layer, from 0, or head, (layer, head) from 0."""
        return self.gains[int(np.ravel_multi_index(np.atleast_1d(place), self.shape))]

    def p(self, side: str) -> np.ndarray:
        """Corrected p values of being "better" or "worse", in :attr:`shape`."""
        return getattr(self.test, side).reshape(self.shape)

    def significant(self, side: str = "better") -> np.ndarray:
        """True where a variant is surely "better" or "worse", corrected, in :attr:`shape`."""
        return self.p(side) < ONE_SIDED


@dataclass(frozen=True)
class Effects:
    """The effects of disabling in one model.

    Attributes:
        baseline: the whole model's score, from 0 to 1: accuracy, or Pearson's correlation.
        heads, layers: what disabling one of them does.
        harm: by how much it raises the loss of an example, of every head, against 0. A loss moves
            with every example, a score only with those whose answer turns.
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
        raise ValueError(
            "some labels are missing; a gain is one of the score, which needs them all"
        )
    baseline = answers(task, sweep.baseline)

    def variants(outputs: np.ndarray) -> Variants:
        predicted = answers(task, outputs)
        shape, predicted = predicted.shape[:-1], predicted.reshape(-1, len(labels))
        arguments = task, baseline, predicted, labels, seed
        p = None if task.is_regression else mcnemar(baseline, predicted, labels)
        return Variants(
            shape,
            gains(*arguments),
            gain_test(*arguments),
            selected_gain(*arguments),
            p,
            scale_of(task, score),
        )

    score = float(scores_of(task, baseline[None], labels)[0])
    raised = losses(task, sweep.heads, labels) - losses(
        task, sweep.baseline, labels
    )  # (layers, heads, examples)
    harm = many_test(np.moveaxis(raised, -1, 0), 0.0, seed)
    return Effects(score, variants(sweep.heads), variants(sweep.layers), harm)


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
    return (
        (1 - right) ** 2
        if task.is_regression
        else -np.log(np.maximum(right, np.finfo(right.dtype).tiny))
    )


# Numbers for the table of results. -------------------------------------


def tolerance(task: Task) -> float:
    """Tolerance of a gain between processors: an answer on the border is a part of an accuracy only."""
    return MEASURED if task.is_regression else GAIN


def sweep_call(
    lab: Lab, task: Task, seed_offset: int = 0, ablation: str = "uniform"
) -> tuple[Any, ...]:
    """The call, for the cache, that sweeps a fine-tuning run over the swept rows (§4.6)."""
    model = lab.lazy_classifier(task, seed_offset=seed_offset)
    return sweep, model, lab.lazy_batches(task, lab.rows(task, "swept")), 0, None, ablation


def sweep_run(lab: Lab, task: Task, seed_offset: int = 0, ablation: str = "uniform") -> Sweep:
    """Outputs of a fine-tuning run with every head and every layer disabled in turn (§4.6).

    Args:
        lab: its lab.
        task: the task.
        seed_offset: number of the run.
        ablation: one of :data:`bertology_utils.disabling.masking.ABLATIONS`.
    """
    return cached(*sweep_call(lab, task, seed_offset, ablation))


def of_lab(lab: Lab) -> dict[Task, list[Effects]]:
    """The effects of every training of a lab's tasks, from its sweeps."""
    return {
        task: [
            effects(
                task,
                sweep_run(lab, task, number),
                lab.labels(task, "swept"),
                lab.resampling_seed(task),
            )
            for number in lab.trainings(task)
        ]
        for task in lab.tasks
    }


def rows_of(found: Mapping[Task, Sequence[Effects]]) -> Iterator[dict[str, Any]]:
    """Arguments of :meth:`bertology_utils.record.Record.record` for all effects, of every training by task."""
    for task, several in found.items():

        def of(what: str, values: list[Any], task: Task = task, **options: Any) -> dict[str, Any]:
            labels = {"by": ("task", "training"), "tolerance": tolerance(task), "unit": "gain"}
            return labels | {"what": what, "values": {task: values}} | options

        yield of("score of the whole model", [one.baseline for one in several], unit="score")
        for name in ("head", "layer"):
            parts: list[Variants] = [getattr(one, f"{name}s") for one in several]
            whole = [one.values if name == "head" else with_intervals(one.gains) for one in parts]
            yield of(f"gain without a {name}", whole)
            yield of(f"mean gain without a {name}", [one.mean for one in parts])
            yield of(f"largest gain without a {name}", [one.gains[one.best] for one in parts])
            yield of(
                f"gain without the chosen {name}, on other examples",
                [one.selected for one in parts],
            )
            sure = [int(np.count_nonzero(one.significant())) for one in parts]
            yield of(f"{name}s that surely gain", sure, unit="count", tolerance=1)
            chance = [np.percentile(one.test.best_by_chance, [50, 95]) for one in parts]
            what = f"largest gain without a {name} by chance"
            yield of(what, chance, over=("kind",), kinds=("median", "95 %"))
            p = [{side: one.p(side) for side in ("better", "worse")} for one in parts]
            by = ("task", "training", "kind")
            yield of(f"p of the gain without a {name}", p, by=by, unit="p", tolerance=P_VALUE)


def with_intervals(parts: Sequence[Bootstrap]) -> dict[str, Any]:
    """Values with the ends of their intervals, as arrays, and the examples, for the table of results."""
    low, high = np.transpose([one.interval for one in parts])
    return {
        "value": np.array([one.value for one in parts]),
        "low": low,
        "high": high,
        "n": parts[0].n,
    }
