"""Numbers with their intervals: the bootstrap over examples, and estimates that know of several trainings, too."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..glue import TASKS

RESAMPLES = 1000
ROUNDING = 1e-6  # what is equal in single precision counts as equal: other machines round otherwise
PRIOR = 2  # degrees of freedom that other tasks' variance between runs counts for; see moderated
Seed = int | tuple[int, ...] | None
Seeds = Seed | tuple["Seeds", ...]  # of a mean: those of its parts


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
        return _text(self, scale, digits, sign)

    def summary(self) -> dict[str, float]:
        """Value, interval and sample size, for the results file."""
        low, high = self.interval
        return {
            "value": round(self.value, 6),
            "low": round(low, 6),
            "high": round(high, 6),
            "n": self.n,
        }


def apart(one: Bootstrap, other: Bootstrap) -> Bootstrap:
    """A statistic minus another's, of independent examples; with as many resamples."""
    return Bootstrap(
        one.value - other.value, one.draws - other.draws, one.n + other.n, (one.seed, other.seed)
    )


def mean_of(parts: Sequence[Bootstrap]) -> Bootstrap:
    """Mean of paired statistics.

    Raises:
        ValueError: none, or not on the same resamples.
    """
    if not parts:
        raise ValueError("nothing to take the mean of; give at least one")
    total = parts[0]
    for part in parts[1:]:
        total = total - (-part)  # the difference checks that they are paired
    return Bootstrap(total.value / len(parts), total.draws / len(parts), total.n, total.seed)


def bootstrap(
    statistic: Callable[[np.ndarray], float], n: int, seed: Seed, resamples: int = RESAMPLES
) -> Bootstrap:
    """Bootstrap a statistic of ``n`` examples.

    Args:
        statistic: called with indices of examples, shape (n,), repeats allowed.
        n: number of examples.
        seed: of the resampling.
        resamples: how many.

    Raises:
        ValueError: no examples.
    """
    draws = np.array([statistic(rows) for rows in resampled_rows(n, seed, resamples)])
    return Bootstrap(float(statistic(np.arange(n))), draws, n, seed)


def bootstrap_mean(values: np.ndarray, seed: Seed, resamples: int = RESAMPLES) -> Bootstrap:
    """Bootstrap the mean of one value per example, shape (examples,)."""
    return Bootstrap(
        float(values.mean()), resampled_means(values, seed, resamples), len(values), seed
    )


def resampled_means(values: np.ndarray, seed: Seed, resamples: int = RESAMPLES) -> np.ndarray:
    """Means over resampled examples, for arrays of many values per example.

    Args:
        values: shape (examples, …).
        seed: of the resampling.
        resamples: how many.

    Returns:
        Shape (resamples, …).
    """
    n = len(values)
    means = (
        bootstrap_weights(n, seed, resamples) @ values.reshape(n, -1) / n
    )  # (resamples, everything else)
    return means.reshape(resamples, *values.shape[1:])


@lru_cache(maxsize=8)  # many measures of one task ask for the same
def bootstrap_weights(n: int, seed: Seed, resamples: int = RESAMPLES) -> np.ndarray:
    """Number of times that each of ``n`` examples is in each resample, shape (resamples, n); read-only."""
    drawn = [
        np.bincount(rows, minlength=n).astype(np.int32)
        for rows in resampled_rows(n, seed, resamples)
    ]
    weights = np.stack(drawn)
    weights.setflags(write=False)
    return weights


def whole_and_resampled(n: int, seed: Seed) -> np.ndarray:
    """Weights of ``n`` examples: one for each as they are, then those of :func:`bootstrap_weights`; (1 + resamples, n)."""
    return np.vstack([np.ones(n), bootstrap_weights(n, seed)])


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
    scores = weighted_scores(
        metric, predicted, labels, whole_and_resampled(len(labels), seed)
    )  # (1 + resamples, sets)
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


def resampled_rows(n: int, seed: Seed, count: int) -> Iterator[np.ndarray]:
    """The one source of resamples: ``count`` times ``n`` indices of examples, drawn with replacement."""
    if n < 1:
        raise ValueError("a bootstrap needs at least one example")
    rng = np.random.default_rng(seed)
    return (rng.integers(0, n, size=n) for _ in range(count))


def _text(one: Bootstrap | Estimate, scale: float, digits: int, sign: bool) -> str:
    if np.isnan(one.value):
        return "–"
    rounded = (
        round(x * scale, digits) + 0.0 for x in (one.value, *one.interval)
    )  # + 0.0 turns −0.0 into 0.0
    return "{} [{}, {}]".format(*(f"{x:{'+' if sign else ''}.{digits}f}" for x in rounded))


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

        half = (
            float(t.ppf(0.975, self.degrees)) * self.error if self.error else 0.0
        )  # NaN stays NaN
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
        return replace(
            self, value=self.value - constant, each=tuple(value - constant for value in self.each)
        )

    @property
    def between(self) -> float:
        """Variance between trainings, in units of :attr:`scale`; 0 where there is one training."""
        return float(np.var(self.each, ddof=1)) / self.scale**2 if len(self.each) > 1 else 0.0

    def text(self, scale: float = 1.0, digits: int = 1, sign: bool = False) -> str:
        """ "87.2 [83.1, 90.9]", each number times ``scale``, with its sign if asked.

        A wide interval has fewer digits: what another machine changes in two
        trainings, their interval multiplies by up to 6.5. "–" for NaN: there is no such number.
        """
        low, high = self.interval
        while digits and (high - low) * scale / 2 > 100 * 10**-digits:
            digits -= 1
        return _text(self, scale, digits, sign)

    def summary(self) -> dict[str, float]:
        """Value, interval, examples and trainings, for the results file."""
        low, high = self.interval
        parts = {"value": self.value, "low": low, "high": high}
        each: dict[str, Any] = (
            {"each": [round(value, 6) for value in self.each]} if len(self.each) > 1 else {}
        )
        return (
            {name: round(part, 6) for name, part in parts.items()}
            | {"n": self.n, "trainings": self.trainings}
            | each
        )


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
        ValueError: none, or not on the same resamples.
    """
    if not parts:
        raise ValueError("no training to estimate from; give at least one")
    return _of_trainings(
        [part.value for part in parts], float(mean_of(parts).draws.var()), parts[0].n, scale
    )


def of_same_examples(parts: Sequence[Estimate]) -> Estimate:
    """As :func:`mean_over_seeds`, of numbers whose resamples are not known: their errors are taken to be fully correlated.

    Raises:
        ValueError: none.
    """
    if not parts:
        raise ValueError("no training to estimate from; give at least one")
    of_examples = float(np.mean([part.error for part in parts])) ** 2
    return _of_trainings([part.value for part in parts], of_examples, parts[0].n)


def _of_trainings(
    values: Sequence[float], of_examples: float, n: int, scale: float = 1.0
) -> Estimate:
    """The mean of one value per training, given the variance of that mean over examples."""
    plain = Estimate(
        float(np.mean(values)),
        0.0,
        n,
        len(values),
        each=tuple(values),
        of_examples=of_examples,
        scale=scale,
    )
    return _with_between(plain, plain.between, len(values) - 1)


def _with_between(one: Estimate, between: float, degrees: float) -> Estimate:
    """The estimate with that variance between trainings, which is known by so many degrees of freedom."""
    of_trainings = between * one.scale**2 / one.trainings
    variance = one.of_examples + of_trainings
    known = (
        variance**2 / (of_trainings**2 / degrees) if of_trainings**2 > 0 else np.inf
    )  # Satterthwaite's
    return replace(one, error=float(np.sqrt(variance)), degrees=known)


def pooled(estimates: Mapping[Any, Any], prior: float = PRIOR) -> dict[Any, Any]:
    """Estimates whose variance between runs is moderated by that of the other tasks.

    A key that is a task, or the name of one, says which task an estimate is of, wherever it stands
    among nested keys or in a tuple; all other keys say of what kind it is. Only estimates of one
    kind are pooled, over tasks. What has no task among its keys stays as it is, and so does what is
    no estimate of several runs.

    Args:
        estimates: nested mappings, to any depth.
        prior: see :func:`moderated`.
    """
    by_kind: dict[tuple[Hashable, ...], dict[tuple[Hashable, ...], Estimate]] = {}
    for at, one in leaves(estimates):
        kind = tuple(key for key in at if getattr(key, "name", key) not in TASKS)
        if kind != at and isinstance(one, Estimate):
            by_kind.setdefault(kind, {})[at] = one
    known = {at: one for kind in by_kind.values() for at, one in moderated(kind, prior).items()}

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
    own = {at: len(one.each) - 1 for at, one in estimates.items() if len(one.each) > 1}
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
    return pooled(
        {
            task: mean_over_seeds([measure(task, one) for one in several])
            for task, several in models.items()
        }
    )


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
    """Mean of independent estimates, such as one per task; ``n`` is the sum of examples.

    Raises:
        ValueError: none.
    """
    if not parts:
        raise ValueError("nothing to average; give at least one estimate")
    variances = np.array([part.error**2 for part in parts]) / len(parts) ** 2
    total = float(variances.sum())
    spread = sum(
        float(variance) ** 2 / part.degrees for variance, part in zip(variances, parts, strict=True)
    )
    return Estimate(
        float(np.mean([part.value for part in parts])),
        float(np.sqrt(total)),
        sum(part.n for part in parts),
        min(part.trainings for part in parts),
        total**2 / spread if spread > 0 else np.inf,
    )


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
    product = spread_x * spread_y
    return np.where(
        product > 1e-30,
        (weights @ (x * y).T - mean_x * mean_y) / np.sqrt(np.maximum(product, 1e-30)),
        0.0,
    )


Metric = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
METRICS: dict[str, Metric] = {"accuracy": _accuracy, "F1": _f1, "Pearson": _pearson}
