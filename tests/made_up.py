"""Values that were never measured, to see what is said of them."""

import numpy as np
from scipy.stats import norm

from bertology_utils.disabling.controls import GainTest, SelectedGain
from bertology_utils.disabling.measure import Effects, Variants
from bertology_utils.statistics import Bootstrap, Estimate, ManyTest

QUANTILES = norm.ppf((np.arange(1000) + 0.5) / 1000)
SURE = 5.0  # standard errors from a rule's border, on the side that speaks for the claim


def estimate(z: float, border: float = 0.0, error: float = 0.01) -> Estimate:
    """So many standard errors above the border."""
    return Estimate(border + z * error, error, 100, 2)


def resampled(z: float, border: float = 0.0, error: float = 0.01, n: int = 100, seed=1) -> Bootstrap:
    """The same as a bootstrap."""
    value = border + z * error
    return Bootstrap(value, value + error * QUANTILES, n, seed)


def many(z: float, shape=(2, 3)) -> ManyTest:
    """One head so many standard errors above the least effect, the others surely below."""
    above, below, means = np.ones(shape), np.zeros(shape), np.full(shape, -0.1)
    above.flat[0], below.flat[0], means.flat[0] = norm.sf(z), norm.cdf(z), 0.02 + 0.01 * z
    return ManyTest(means, above, below, np.full(shape, 100))


def variants(z: float, border: float = 0.0, side: str = "better", error: float = 0.02, shape=(2, 3)) -> Variants:
    """One head (or layer) so many standard errors better, or worse, than the border; the others change nothing."""
    sign = 1 if side == "better" else -1
    count = int(np.prod(shape))
    gains = [resampled(sign * z, sign * border, error), *[resampled(0, 0, 1e-6) for _ in range(count - 1)]]
    p = np.ones(count)
    p[0] = norm.sf(z + border / error)
    values = np.array([gain.value for gain in gains])
    sides = {"better": np.ones(count), "worse": np.ones(count)} | {side: p}
    honest = 0.01 * sign * z + 0.01 * QUANTILES
    test = GainTest(values, sides["better"], sides["worse"], np.zeros(10))
    return Variants(shape, gains, test, SelectedGain(honest, honest), None)


def effects(heads: Variants, layers: Variants | None = None) -> Effects:
    """Of one training."""
    return Effects(0.8, heads, layers or variants(0, shape=(3,)))
