"""Is the change due to the task? Two trainings, and trainings on two tasks (§4.3, controls of ours)."""

from __future__ import annotations

import numpy as np

from ..statistics import Bootstrap, Seed, bootstrap_mean


def mean_over_heads(cosines: np.ndarray, seed: Seed) -> Bootstrap:
    """Mean over layers and heads, examples resampled; what did not move does not count.

    Args:
        cosines: shape (examples, layers, heads), from :func:`bertology_utils.drift.comparisons.drifts`.
        seed: of the resampling.
    """
    by_example = np.nanmean(cosines.reshape(len(cosines), -1), axis=1)
    return bootstrap_mean(by_example[np.isfinite(by_example)], seed)
