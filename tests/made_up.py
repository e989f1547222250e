"""Values that were never measured, to see what is said of them."""

import numpy as np
from scipy.stats import norm

from bertology_utils.statistics import Bootstrap, Estimate, ManyTest

QUANTILES = norm.ppf((np.arange(1000) + 0.5) / 1000)
SURE = 5.0  # standard errors from a rule's border, on the side that speaks for the claim


def estimate(z: float, border: float = 0.0, error: float = 0.01) -> Estimate:
    """So many standard errors above the border."""
    return Estimate(border + z * error, error, 100, 2)


def resampled(
    z: float, border: float = 0.0, error: float = 0.01, n: int = 100, seed=1
) -> Bootstrap:
    """The same as a bootstrap."""
    value = border + z * error
    return Bootstrap(value, value + error * QUANTILES, n, seed)


def many(z: float, shape=(2, 3)) -> ManyTest:
    """One head so many standard errors above the least effect, the others surely below."""
    above, below, means = np.ones(shape), np.zeros(shape), np.full(shape, -0.1)
    above.flat[0], below.flat[0], means.flat[0] = norm.sf(z), norm.cdf(z), 0.02 + 0.01 * z
    return ManyTest(means, above, below, np.full(shape, 100), below)
