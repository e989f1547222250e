"""Statistics: intervals by the bootstrap, estimates that know of several trainings, and permutation tests.

Another processor changes a measurement in its fourth digit at most, a p value
or a share of resamples by a few draws. Whatever is chosen or decided by less
than that would differ from machine to machine: it is a tie, and a tie is said.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .common import Head
from .glue import TASKS

RESAMPLES = 1000
ROUNDING = 1e-6  # what is equal in single precision counts as equal: other machines round otherwise
PRIOR = 2  # degrees of freedom that other tasks' variance between runs counts for; see moderated
Seed = int | tuple[int, ...] | None
Seeds = Seed | tuple["Seeds", ...]  # of a mean: those of its parts
LEVEL = 0.05  # of everything that is decided, two-sided
ONE_SIDED = LEVEL / 2  # of a p value that looks to one side
MARGIN = 0.0005  # of a score, a weight or a similarity, each a fraction of 1
BLOCK = 500  # draws at a time
DRAWS = 4000  # of a permutation test: so many that a p of 0.025 is known to a tenth of itself


# Intervals and estimates


@dataclass(frozen=True)
class Bootstrap:
    """A statistic of ``n`` examples and its values on resampled examples.

    Two of them made with the same seed and ``n`` come from the same resamples,
    so their difference is a paired comparison.

    Attributes:
        value: on the data as they are.
        draws: on each resample, shape (resamples,).
        n: examples, or what else was resampled.
        seed: of the resampling.
    """

    value: float
    draws: np.ndarray
    n: int
    seed: Seeds = None

    @classmethod
    def of(cls, values: np.ndarray, n: int, seed: Seeds) -> Bootstrap:
        """From the statistic of the data as they are, followed by that of each resample: shape (1 + resamples,)."""
        return cls(float(values[0]), values[1:], n, seed)

    def __sub__(self, other: Bootstrap) -> Bootstrap:
        """Paired difference; raises ValueError if the two cannot come from the same resamples."""
        mine, its = ((b.n, len(b.draws), b.seed) for b in (self, other))
        if mine != its:
            raise ValueError(f"not paired: (examples, resamples, seed) are {mine} and {its}")
        return Bootstrap(self.value - other.value, self.draws - other.draws, self.n, self.seed)

    def __neg__(self) -> Bootstrap:
        """The statistic with the other sign."""
        return Bootstrap(-self.value, -self.draws, self.n, self.seed)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % percentile interval."""
        low, high = np.percentile(self.draws, [2.5, 97.5])
        return float(low), float(high)

    def text(self, scale: float = 1.0, digits: int = 1, sign: bool = False) -> str:
        """ "87.2 [83.1, 90.9]", each number times ``scale``, with its sign if asked; "–" for NaN: there is no such number."""
        if np.isnan(self.value):
            return "–"
        # + 0.0 turns −0.0 into 0.0
        rounded = (round(x * scale, digits) + 0.0 for x in (self.value, *self.interval))
        return "{} [{}, {}]".format(*(f"{x:{'+' if sign else ''}.{digits}f}" for x in rounded))

    def summary(self) -> dict[str, Any]:
        """Value, interval and sample size, for the results file."""
        return _summary(self) | {"n": self.n}


def apart(one: Bootstrap, other: Bootstrap) -> Bootstrap:
    """A statistic minus another's, of independent examples; with as many resamples."""
    return Bootstrap(
        one.value - other.value, one.draws - other.draws, one.n + other.n, (one.seed, other.seed)
    )


def mean_of(parts: Sequence[Bootstrap]) -> Bootstrap:
    """Mean of one or more paired statistics.

    Raises:
        ValueError: not on the same resamples.
    """
    total = parts[0]
    for part in parts[1:]:
        total = total - (-part)  # the difference checks that they are paired
    return Bootstrap(total.value / len(parts), total.draws / len(parts), total.n, total.seed)


def bootstrap(statistic: Callable[[np.ndarray], float], n: int, seed: Seed) -> Bootstrap:
    """Bootstrap a statistic of ``n`` examples.

    Args:
        statistic: called with indices of examples, shape (n,), repeats allowed.
        n: number of examples.
        seed: of the resampling.

    Raises:
        ValueError: no examples.
    """
    draws = np.array([statistic(rows) for rows in resampled_rows(n, seed)])
    return Bootstrap(float(statistic(np.arange(n))), draws, n, seed)


def bootstrap_mean(values: np.ndarray, seed: Seed) -> Bootstrap:
    """Bootstrap the mean of one value per example, shape (examples,)."""
    return Bootstrap.of(means_with_gaps(values, seed), len(values), seed)


@lru_cache(maxsize=8)  # many measures of one task ask for the same
def whole_and_resampled(n: int, seed: Seed) -> np.ndarray:
    """How often each of ``n`` examples counts, shape (1 + resamples, n): once as they are, then as often as drawn; read-only."""
    drawn = [np.bincount(rows, minlength=n) for rows in resampled_rows(n, seed)]
    weights = np.vstack([np.ones(n), *drawn])
    weights.setflags(write=False)
    return weights


def resampled_scores(
    metric: str, predicted: np.ndarray, labels: np.ndarray, seed: Seed
) -> list[Bootstrap]:
    """The score of each of several sets of predictions, on the same resamples.

    Args:
        metric: see :func:`weighted_scores`.
        predicted: shape (sets, examples).
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    weights = whole_and_resampled(len(labels), seed)
    scores = weighted_scores(metric, predicted, labels, weights)  # (1 + resamples, sets)
    return [Bootstrap.of(one, len(labels), seed) for one in scores.T]


def means_with_gaps(values: np.ndarray, seed: Seed) -> np.ndarray:
    """Means over the examples that say something, for the data as they are and for resamples of all examples.

    Args:
        values: shape (examples, …), NaN where an example says nothing.
        seed: of the resampling of examples.

    Returns:
        Shape (1 + resamples, …), the data as they are first; NaN where no example says anything.
    """
    weights = whole_and_resampled(len(values), seed)  # (1 + resamples, examples)
    flat = values.reshape(len(values), -1)
    with np.errstate(invalid="ignore"):
        means = weights @ np.nan_to_num(flat) / (weights @ np.isfinite(flat))
    return means.reshape(-1, *values.shape[1:])


def resampled_rows(n: int, seed: Seed) -> Iterator[np.ndarray]:
    """The one source of resamples: :data:`RESAMPLES` times ``n`` indices of examples, drawn with replacement."""
    if n < 1:
        raise ValueError("a bootstrap needs at least one example")
    rng = np.random.default_rng(seed)
    return (rng.integers(0, n, size=n) for _ in range(RESAMPLES))


def _summary(one: Bootstrap | Estimate) -> dict[str, float]:
    parts = zip(("value", "low", "high"), (one.value, *one.interval), strict=True)
    return {name: round(part, 6) for name, part in parts}


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error.

    Attributes:
        value: the number.
        error: its standard error.
        n: examples, or what else was resampled.
        trainings: models that were trained alike; 1 where the number is of one model.
        degrees: of freedom of the error; infinite where only examples were resampled.
        each: one value for each training; () where they are not known.
        of_examples: variance of the mean of these over resampled examples.
        scale: in units of which trainings differ alike on all tasks, such as that of a logit.
    """

    value: float
    error: float
    n: int
    trainings: int = 1
    degrees: float = np.inf
    each: tuple[float, ...] = ()
    of_examples: float = 0.0
    scale: float = 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval, from Student's t."""
        from scipy.stats import t

        # NaN stays NaN.
        half = float(t.ppf(0.975, self.degrees)) * self.error if self.error else 0.0
        return self.value - half, self.value + half

    def p_above(self, least: float = 0.0) -> float:
        """One-sided p value of a number as large as this one if the truth were ``least``."""
        from scipy.stats import t

        if self.error <= ROUNDING:  # as if each of n examples spoke for it
            return 0.5**self.n if self.value > least + ROUNDING else 1.0
        return float(t.sf((self.value - least) / self.error, self.degrees))

    def __neg__(self) -> Estimate:
        """The number with the other sign."""
        return replace(self, value=-self.value, each=tuple(-value for value in self.each))

    def __sub__(self, constant: float) -> Estimate:
        """The number minus one that is known."""
        each = tuple(value - constant for value in self.each)
        return replace(self, value=self.value - constant, each=each)

    @property
    def between(self) -> float:
        """Variance between trainings, in units of :attr:`scale`; 0 where there is one training."""
        return float(np.var(self.each, ddof=1)) / self.scale**2 if len(self.each) > 1 else 0.0

    def summary(self) -> dict[str, Any]:
        """Value, interval, examples and trainings, for the results file."""
        each = [round(value, 6) for value in self.each]
        counts = {"n": self.n, "trainings": self.trainings}
        return _summary(self) | counts | ({"each": each} if len(each) > 1 else {})


def mean_over_seeds(parts: Sequence[Bootstrap], scale: float = 1.0) -> Estimate:
    """The mean over trainings of a number that each gives on the same examples.

    Its variance is that of the mean over resampled examples plus that between
    trainings divided by their number; the degrees of freedom follow
    Satterthwaite (1946). Two trainings say little of how trainings differ: of
    several tasks, :func:`pooled` has the better interval. With one training it
    knows of the examples only.

    Args:
        parts: of every training, resampled with one seed.
        scale: see :class:`Estimate`.

    Raises:
        ValueError: not on the same resamples.
    """
    of_examples = float(mean_of(parts).draws.var())
    return _of_trainings([part.value for part in parts], of_examples, parts[0].n, scale)


def _of_trainings(
    values: Sequence[float], of_examples: float, n: int, scale: float = 1.0
) -> Estimate:
    """The mean of one value per training, given the variance of that mean over examples."""
    options: dict[str, Any] = {"each": tuple(values), "of_examples": of_examples, "scale": scale}
    plain = Estimate(float(np.mean(values)), 0.0, n, len(values), **options)
    return _with_between(plain, plain.between, len(values) - 1)


def _with_between(one: Estimate, between: float, degrees: float) -> Estimate:
    """The estimate with that variance between trainings, which is known by so many degrees of freedom."""
    of_trainings = between * one.scale**2 / one.trainings
    variance = one.of_examples + of_trainings
    # Satterthwaite's.
    known = variance**2 / (of_trainings**2 / degrees) if of_trainings**2 > 0 else np.inf
    return replace(one, error=float(np.sqrt(variance)), degrees=known)


def pooled(estimates: Mapping[Any, Any]) -> dict[Any, Any]:
    """Estimates whose variance between runs is moderated by that of the other tasks.

    A key that is a task, or the name of one, says which task an estimate is of, wherever it stands
    among nested keys or in a tuple; all other keys say of what kind it is. Only estimates of one
    kind are pooled, over tasks. What has no task among its keys stays as it is, and so does what is
    no estimate of several runs.

    Args:
        estimates: nested mappings, to any depth.
    """
    by_kind: dict[tuple[Hashable, ...], dict[tuple[Hashable, ...], Estimate]] = {}
    for at, one in leaves(estimates):
        kind = tuple(key for key in at if getattr(key, "name", key) not in TASKS)
        if kind != at and isinstance(one, Estimate):
            by_kind.setdefault(kind, {})[at] = one
    known = {at: one for kind in by_kind.values() for at, one in moderated(kind).items()}

    def rebuilt(part: Any, at: tuple[Hashable, ...]) -> Any:
        if isinstance(part, Mapping):
            return {key: rebuilt(inner, (*at, *_keys(key))) for key, inner in part.items()}
        return known.get(at, part)

    return rebuilt(estimates, ())


def moderated(estimates: Mapping[Any, Estimate], prior: float = PRIOR) -> dict[Any, Estimate]:
    """Estimates of one kind, each with the variance between runs that it and all of them suggest.

    The variance between an estimate's runs counts with its own degrees of freedom, the mean over
    all estimates with ``prior``, as in Smyth's (2004) moderated t; and the error has no more degrees
    than the other estimates bring. The number is fixed: estimated from three to seven variances of
    one degree it is mostly infinite, and the interval then too narrow. benchmarks/calibration.py
    compares it with others, by simulation. One alone, or one of a single run, stays as it is.

    Args:
        estimates: of one kind, by what each is of: tasks, or rivals of one task.
        prior: degrees of freedom that the mean over all estimates counts for.
    """
    several = {at: one for at, one in estimates.items() if len(one.each) > 1}
    # One that is NaN stays so, and says nothing of the others.
    own = {at: len(one.each) - 1 for at, one in several.items() if np.isfinite(one.between)}
    if len(own) < 2:
        return dict(estimates)
    total = sum(own.values())
    mean = sum(degrees * estimates[at].between for at, degrees in own.items()) / total
    return dict(estimates) | {
        at: _with_between(
            estimates[at],
            (prior * mean + degrees * estimates[at].between) / (prior + degrees),
            max(degrees, min(prior + degrees, total - degrees)),
        )
        for at, degrees in own.items()
    }


def over_trainings(
    models: Mapping[Any, Sequence[Any]], measure: Callable[[Any, Any], Bootstrap]
) -> dict[Any, Estimate]:
    """A number of every training, by task: the mean over trainings, pooled over tasks.

    Args:
        models: by task, what was found of each training.
        measure: of the task and of one training.
    """
    found = {}
    for task, several in models.items():
        found[task] = mean_over_seeds([measure(task, one) for one in several])
    return pooled(found)


def leaves(found: Any, at: tuple[Hashable, ...] = ()) -> Iterator[tuple[tuple[Hashable, ...], Any]]:
    """Whatever is no mapping, with the keys on the way to it; of a tuple each part is a key."""
    if isinstance(found, Mapping):
        for key, part in found.items():
            yield from leaves(part, (*at, *_keys(key)))
    else:
        yield at, found


def _keys(key: Hashable) -> tuple[Hashable, ...]:
    return key if isinstance(key, tuple) else (key,)


def average(parts: Sequence[Estimate]) -> Estimate:
    """Mean of independent estimates, such as one per task; ``n`` is the sum of examples."""
    variances = np.array([part.error**2 for part in parts]) / len(parts) ** 2
    total = float(variances.sum())
    spread = float((variances**2 / [part.degrees for part in parts]).sum())
    degrees = total**2 / spread if spread > 0 else np.inf
    mean, n = float(np.mean([part.value for part in parts])), sum(part.n for part in parts)
    return Estimate(mean, float(np.sqrt(total)), n, min(p.trainings for p in parts), degrees)


def weighted_scores(
    metric: str, predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Scores of many predictions under many weightings.

    Args:
        metric: one of :data:`METRICS`.
        predicted: shape (variants, examples), from :func:`bertology_utils.glue.predictions`.
        labels: gold, shape (examples,).
        weights: of the examples, such as how often each was drawn, shape (draws, examples).

    Returns:
        Shape (draws, variants), from 0 to 1, or −1 to 1, as scikit-learn and scipy give
        for examples repeated so often. A correlation with a constant is 0.
    """
    return METRICS[metric](predicted, labels, weights)


def _accuracy(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    # Counted before it is divided: equally many right answers are exactly equal scores.
    return weights @ (predicted == labels).astype(np.float64).T / weights.sum(axis=1, keepdims=True)


def _f1(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """F1 of the second class; 0 where it is neither predicted nor there."""
    yes, true = (predicted == 1).astype(np.float64), (labels == 1).astype(np.float64)
    hits = weights @ (yes * true).T  # (draws, variants)
    either = weights @ yes.T + (weights @ true)[:, None]
    return np.divide(2 * hits, either, out=np.zeros_like(hits), where=either > 0)


def _pearson(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    weights = weights / weights.sum(axis=1, keepdims=True)
    # Centred first, so that the sums below lose no digits. Predictions that only rounding tells
    # apart are a constant.
    x, y = predicted - predicted.mean(axis=1, keepdims=True), labels - labels.mean()
    size = np.maximum(np.abs(predicted).max(axis=1, keepdims=True), 1)
    x = np.where(np.abs(x).max(axis=1, keepdims=True) > ROUNDING * size, x, 0)
    mean_x, mean_y = weights @ x.T, (weights @ y)[:, None]
    spread_x = np.maximum(weights @ (x**2).T - mean_x**2, 0)
    spread_y = np.maximum((weights @ y**2)[:, None] - mean_y**2, 0)
    product, common = spread_x * spread_y, weights @ (x * y).T - mean_x * mean_y
    return np.where(product > 1e-30, common / np.sqrt(np.maximum(product, 1e-30)), 0.0)


METRICS: dict[str, Callable[..., np.ndarray]]
METRICS = {"accuracy": _accuracy, "F1": _f1, "Pearson": _pearson}


# Permutation tests, rank correlations and ties


@lru_cache(maxsize=1)  # many tests of the same examples follow each other
def _signs(seed: Seed, draws: int, examples: int) -> np.ndarray:
    """1 or −1 for every example, by draw, shape (draws, examples); read-only."""
    rng, signs = np.random.default_rng(seed), np.ones((draws, examples), dtype=np.int8)
    for block in np.array_split(signs, -(-draws // BLOCK)):
        block[rng.random(block.shape) < 0.5] = -1
    signs.setflags(write=False)
    return signs


def signed_sums(values: np.ndarray, seed: Seed, draws: int = DRAWS) -> np.ndarray:
    """Sums over examples whose signs are drawn at random, the same for all statistics, shape (draws, statistics).

    Args:
        values: shape (examples, statistics).
        seed: of the draws; with it and as many examples the signs are the same.
        draws: how many.
    """
    signs = _signs(seed, draws, len(values))
    sums = np.empty((draws, values.shape[1]), dtype=values.dtype)
    for at in range(0, draws, BLOCK):  # so that few signs at a time are numbers of many bytes
        sums[at : at + BLOCK] = signs[at : at + BLOCK].astype(values.dtype) @ values
    return sums


def corrected_p(
    observed: np.ndarray, largest: np.ndarray, smallest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Permutation p-values corrected over many statistics (Westfall and Young, 1993).

    Args:
        observed: standardised statistics, shape (statistics,).
        largest, smallest: of all of them in each draw, shape (draws,).

    Returns:
        p-values of "above" and of "below", each of shape (statistics,).
    """
    draws = len(largest)
    above = (1 + (largest[:, None] >= observed - ROUNDING).sum(axis=0)) / (1 + draws)
    below = (1 + (smallest[:, None] <= observed + ROUNDING).sum(axis=0)) / (1 + draws)
    return above, below


@dataclass(frozen=True)
class ManyTest:
    """Means of many paired differences against a least effect.

    Attributes:
        means: over the examples that say something, shape (…); NaN where none does.
        above, below: p values, one-sided, that a mean is above, or below, the
            least effect; corrected over all of them, same shape.
        n: examples that say something, same shape.
        below_alone: as ``below``, not corrected: for the claim that *every* mean is below, which
            needs no correction, since all of them have to pass (an intersection–union test; Berger,
            1982).
    """

    means: np.ndarray
    above: np.ndarray
    below: np.ndarray
    n: np.ndarray
    below_alone: np.ndarray

    def __getitem__(self, at: Any) -> ManyTest:
        """Some of the tests, corrected over all as before."""
        return ManyTest(*(getattr(self, part.name)[at] for part in fields(self)))


def many_test(differences: np.ndarray, least: float, seed: Seed, draws: int = DRAWS) -> ManyTest:
    """Permutation tests of many paired differences at once against a least effect, corrected by the maximum statistic.

    If nothing made a difference, an example's differences could as well have
    the other sign. Each draw flips the signs of a random half of the examples,
    for all statistics alike, so that what they have in common stays; a mean is
    compared with the largest standardised one of each draw (Westfall and
    Young, 1993).

    Args:
        differences: shape (examples, …); NaN where an example says nothing.
        least: the smallest effect that counts.
        seed: of the draws.
        draws: how many.
    """
    n = np.isfinite(differences).sum(axis=0)
    means = np.nansum(differences, axis=0) / np.where(n, n, np.nan)
    flat = np.nan_to_num((differences - least).reshape(len(differences), -1))
    flat = np.where(np.abs(flat) > ROUNDING, flat, 0)  # (examples, statistics)
    spread = np.sqrt((flat**2).sum(axis=0))
    scale = np.where(spread > 0, spread, np.inf)  # a statistic without any difference
    observed = flat.sum(axis=0) / scale  # standardised means
    drawn = signed_sums(flat, seed, draws) / scale  # those with random signs, by draw
    corrected = corrected_p(observed, drawn.max(axis=1), drawn.min(axis=1))
    alone = (1 + (drawn <= observed + ROUNDING).sum(axis=0)) / (1 + draws)
    above, below, below_alone = (np.where(n, p.reshape(n.shape), 1.0) for p in (*corrected, alone))
    return ManyTest(means, above, below, n, below_alone)


def rank_correlation(x: np.ndarray, y: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's rank correlation of two properties of items, items resampled, such as heads.

    The interval is about a rule for heads of this kind, of which those of one model are a sample.
    Examples are not resampled: what they leave uncertain makes the correlation smaller, not the
    interval wider. Where one property of given heads is measured in two ways, see
    :func:`rank_agreement`.

    Args:
        x, y: shape (items,).
        seed: of the resampling.

    Returns:
        With the items as its ``n``.
    """
    # (1 + resamples, items)
    rows = np.vstack([np.arange(len(x)), *resampled_rows(len(x), seed)])
    return Bootstrap.of(rank_correlations(x[rows], y[rows]), len(x), seed)


def rank_agreement(first: np.ndarray, second: np.ndarray, seed: Seed) -> Bootstrap:
    """Spearman's rank correlation of items that examples measure in two ways, examples resampled.

    The interval is about these items, such as all heads of a model, on other examples; as that of a
    kappa. Both ways see the same examples, so that noise hardly makes the correlation smaller.

    Args:
        first, second: shape (examples, sets, items); of several sets of items, such as heads by
            direction, each is ranked by itself, and the mean of their correlations taken.
        seed: of the resampling.
    """
    means = [means_with_gaps(values, seed) for values in (first, second)]
    # Of every resample and set.
    rho = rank_correlations(*(of.reshape(-1, of.shape[2]) for of in means))
    return Bootstrap.of(rho.reshape(len(means[0]), -1).mean(axis=1), len(first), seed)


def rank_correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of every row of one array with that of another; NaN where those of either are all alike.

    Args:
        x, y: shape (rows, items).
    """
    a, b = _centred_ranks(x), _centred_ranks(y)
    with np.errstate(invalid="ignore"):
        return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def rank_of(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation of all values of two arrays of one shape; NaN where those of either are all alike."""
    return float(rank_correlations(np.ravel(x)[None], np.ravel(y)[None])[0])


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    # Equal but for rounding is a tie, in units of each row's largest value.
    size = np.abs(values).max(axis=1, keepdims=True, initial=0)
    units = ROUNDING * np.where(size > 0, size, 1)
    ranks = rankdata(np.round(values / units), axis=1)
    return ranks - ranks.mean(axis=1, keepdims=True)


def by_size(values: np.ndarray) -> np.ndarray:
    """Flat indices, the largest value first; values within :data:`MARGIN` of a larger one count as equal to it.

    Equal ones keep their order, so that it does not hang on their last digits.

    Args:
        values: of any shape; NaN comes last.
    """
    flat = np.nan_to_num(np.asarray(values, dtype=float).ravel(), nan=-np.inf)
    order, leader = np.argsort(-flat, kind="stable"), np.inf
    groups: list[list[int]] = []
    for index in order:
        if flat[index] < leader - MARGIN or not groups:
            leader = flat[index]
            groups.append([])
        groups[-1].append(int(index))
    return np.array([index for group in groups for index in sorted(group)], dtype=int)


def heads_by_size(values: np.ndarray) -> list[Head]:
    """Every (layer, head) from 0, that of the largest value first; see :func:`by_size`.

    Args:
        values: shape (layers, heads).
    """
    return [divmod(int(index), values.shape[1]) for index in by_size(values)]


def largest(values: np.ndarray) -> tuple[int, ...]:
    """Index of the largest value, the first of those that tie with it."""
    place = np.unravel_index(by_size(values)[0], np.shape(values))
    return tuple(map(int, place))


def p_text(p: float) -> str:
    """A p value as it is printed: two digits, since the draws do not give more."""
    return "< 0.01" if p < 0.01 else f"{p:.2f}"


def p_is(p: float) -> str:
    """ "p < 0.01" or "p = 0.03"."""
    return f"p {p_text(p)}" if p < 0.01 else f"p = {p_text(p)}"
