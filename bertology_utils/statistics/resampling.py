"""The bootstrap over examples: a statistic with its interval, and paired comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1000
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
        n: examples.
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
        self._check_paired(other)
        return Bootstrap(self.value - other.value, self.draws - other.draws, self.n, self.seed)

    def __truediv__(self, other: Bootstrap) -> Bootstrap:
        """Paired ratio; raises as the difference does."""
        self._check_paired(other)
        return Bootstrap(self.value / other.value, self.draws / other.draws, self.n, self.seed)

    def _check_paired(self, other: Bootstrap) -> None:
        mine, its = ((b.n, len(b.draws), b.seed) for b in (self, other))
        if mine != its:
            raise ValueError(f"not paired: (examples, resamples, seed) are {mine} and {its}")

    def __neg__(self) -> Bootstrap:
        """The statistic with the other sign."""
        return Bootstrap(-self.value, -self.draws, self.n, self.seed)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % percentile interval."""
        low, high = np.percentile(self.draws, [2.5, 97.5])
        return float(low), float(high)

    def share_above(self, threshold: float = 0.0) -> float:
        """Share of the resamples in which the statistic is above ``threshold``."""
        return float(np.mean(self.draws > threshold))

    def text(self, scale: float = 1.0, digits: int = 1, sign: bool = False) -> str:
        """ "87.2 [83.1, 90.9]", each number times ``scale``, with its sign if asked; "–" for NaN: there is no such number."""
        if np.isnan(self.value):
            return "–"
        value, low, high = (rounded(x * scale, digits, sign) for x in (self.value, *self.interval))
        return f"{value} [{low}, {high}]"

    def summary(self) -> dict[str, float]:
        """Value, interval and sample size, for the results file."""
        low, high = self.interval
        return {"value": round(self.value, 6), "low": round(low, 6), "high": round(high, 6), "n": self.n}


def lead(one: Bootstrap, others: Sequence[Bootstrap]) -> Bootstrap:
    """A statistic minus the largest of the others, all of independent examples: above 0 if it is ahead of every one.

    Args:
        one: with as many resamples as the others.
        others: at least one.
    """
    rivals = np.stack([np.append(other.value, other.draws) for other in others]).max(axis=0)
    leads = np.append(one.value, one.draws) - rivals
    n, seeds = one.n + sum(other.n for other in others), (one.seed, *(other.seed for other in others))
    return Bootstrap.of(leads, n, seeds)


def bootstrap(statistic: Callable[[np.ndarray], float], n: int, seed: Seed, resamples: int = RESAMPLES) -> Bootstrap:
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
    return Bootstrap(float(values.mean()), resampled_means(values, seed, resamples), len(values), seed)


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
    means = bootstrap_weights(n, seed, resamples) @ values.reshape(n, -1) / n  # (resamples, everything else)
    return means.reshape(resamples, *values.shape[1:])


def bootstrap_weights(n: int, seed: Seed, resamples: int = RESAMPLES) -> np.ndarray:
    """How often each of ``n`` examples is in each resample, shape (resamples, n)."""
    return np.stack([np.bincount(rows, minlength=n) for rows in resampled_rows(n, seed, resamples)])


def whole_and_resampled(n: int, seed: Seed) -> np.ndarray:
    """Weights of ``n`` examples: one for each as they are, then those of :func:`bootstrap_weights`; (1 + resamples, n)."""
    return np.vstack([np.ones(n), bootstrap_weights(n, seed)])


def resampled_rows(n: int, seed: Seed, count: int) -> Iterator[np.ndarray]:
    """The one source of resamples: ``count`` times ``n`` indices of examples, drawn with replacement."""
    if n < 1:
        raise ValueError("a bootstrap needs at least one example")
    rng = np.random.default_rng(seed)
    return (rng.integers(0, n, size=n) for _ in range(count))


def rounded(x: float, digits: int, sign: bool) -> str:
    """A number as it is printed, with its sign if asked."""
    return f"{round(x, digits) + 0.0:{'+' if sign else ''}.{digits}f}"  # + 0.0 turns −0.0 into 0.0
