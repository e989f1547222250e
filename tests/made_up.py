"""Values that were never measured, to see what is said of them."""

import numpy as np

from bertology_utils.statistics import Bootstrap

# How surely a claim holds, and what is then said of it.
SURE = [(1.0, "agrees"), (0.5, "undecided"), (0.0, "disagrees")]


def around(threshold: float, above: float, apart: float = 0.01, n: int = 100) -> Bootstrap:
    """A statistic that lies above ``threshold`` in a share ``above`` of its 1000 resamples, else below, by ``apart``."""
    draws = threshold + apart * np.where(np.arange(1000) < 1000 * above, 1, -1)
    return Bootstrap(float(draws.mean()), draws, n, 1)
