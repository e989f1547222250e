"""A number with an interval that knows of examples and, where there are several, of trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .resampling import Bootstrap, rounded


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error.

    Attributes:
        value: the number.
        error: its standard error.
        n: examples.
        trainings: models that were trained alike; 1 where the number is of one model.
        degrees: of freedom of the error; infinite where only examples were resampled.
    """

    value: float
    error: float
    n: int
    trainings: int = 1
    degrees: float = np.inf

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval, from Student's t."""
        from scipy.stats import t

        half = float(t.ppf(0.975, self.degrees)) * self.error if self.error else 0.0  # NaN stays NaN
        return self.value - half, self.value + half

    def p_above(self, least: float = 0.0) -> float:
        """One-sided p value of a number as large as this one if the truth were ``least``."""
        from scipy.stats import t

        if self.error <= 0:
            return 0.0 if self.value > least else 1.0
        return float(t.sf((self.value - least) / self.error, self.degrees))

    def __neg__(self) -> Estimate:
        """The number with the other sign."""
        return Estimate(-self.value, self.error, self.n, self.trainings, self.degrees)

    def text(self, scale: float = 1.0, digits: int = 1, sign: bool = False) -> str:
        """ "87.2 [83.1, 90.9]", each number times ``scale``, with its sign if asked.

        A wide interval has fewer digits: what another machine changes in two
        trainings, their interval multiplies by up to 6.5. "–" for NaN: there is no such number.
        """
        if np.isnan(self.value):
            return "–"
        low, high = self.interval
        while digits and (high - low) * scale / 2 > 100 * 10**-digits:
            digits -= 1
        texts = [rounded(x * scale, digits, sign) for x in (self.value, low, high)]
        return "{} [{}, {}]".format(*texts)

    def summary(self) -> dict[str, float]:
        """Value, interval, examples and trainings, for the results file."""
        low, high = self.interval
        parts = {"value": self.value, "low": low, "high": high}
        return {name: round(part, 6) for name, part in parts.items()} | {"n": self.n, "trainings": self.trainings}


def over_trainings(parts: Sequence[Bootstrap]) -> Estimate:
    """The mean over trainings of a number that each gives on the same examples.

    Its variance is that of the mean over resampled examples plus that between
    trainings divided by their number; the degrees of freedom follow
    Satterthwaite (1946). Two trainings say little of how trainings differ: if
    these two differ by more than the examples explain, the interval is up to
    6.5 times as wide as with many trainings. With one training it knows of the
    examples only.

    Args:
        parts: of every training, resampled with one seed.

    Raises:
        ValueError: none, or not on the same resamples.
    """
    if not parts:
        raise ValueError("no training to estimate from; give at least one")
    total = parts[0]
    for part in parts[1:]:
        total = total - (-part)  # the difference checks that they are paired
    values = np.array([part.value for part in parts])
    of_examples = float((total.draws / len(parts)).var())
    return _of_trainings(values, of_examples, parts[0].n)


def of_same_examples(parts: Sequence[Estimate]) -> Estimate:
    """As :func:`over_trainings`, of numbers whose resamples are not known: their errors are taken to be fully correlated.

    Raises:
        ValueError: none.
    """
    if not parts:
        raise ValueError("no training to estimate from; give at least one")
    of_examples = float(np.mean([part.error for part in parts])) ** 2
    return _of_trainings(np.array([part.value for part in parts]), of_examples, parts[0].n)


def _of_trainings(values: np.ndarray, of_examples: float, n: int) -> Estimate:
    """The mean of one value per training, given the variance of that mean over examples."""
    count = len(values)
    between = float(values.var(ddof=1)) / count if count > 1 else 0.0
    variance = of_examples + between
    degrees = variance**2 / (between**2 / (count - 1)) if between**2 > 0 else np.inf
    return Estimate(float(values.mean()), float(np.sqrt(variance)), n, count, degrees)


def average(parts: Sequence[Estimate]) -> Estimate:
    """Mean of independent estimates, such as one per task; ``n`` is the sum of examples.

    Raises:
        ValueError: none.
    """
    if not parts:
        raise ValueError("nothing to average; give at least one estimate")
    variances = np.array([part.error**2 for part in parts]) / len(parts) ** 2
    total = float(variances.sum())
    spread = sum(float(variance) ** 2 / part.degrees for variance, part in zip(variances, parts, strict=True))
    return Estimate(
        float(np.mean([part.value for part in parts])),
        float(np.sqrt(total)),
        sum(part.n for part in parts),
        min(part.trainings for part in parts),
        total**2 / spread if spread > 0 else np.inf,
    )


def share_interval(shares: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """95 % intervals of shares of independent examples, by Wilson (1927); they hold at 0 and 1, too.

    Args:
        shares: from 0 to 1, of any shape; NaN stays NaN.
        n: examples behind each.
    """
    from scipy.stats import norm

    z = float(norm.ppf(0.975))
    middle = (shares + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(shares * (1 - shares) / n + z**2 / (4 * n**2))
    return np.clip(middle - half, 0, shares), np.clip(middle + half, shares, 1)
