"""A metric of many predictions under many weightings of the examples at once: what resampling comes down to."""

from collections.abc import Callable

import numpy as np


def weighted_scores(metric: str, predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Scores of many predictions under many weightings.

    Args:
        metric: one of :data:`METRICS`.
        predicted: shape (variants, examples), from :func:`bertology_utils.glue.tasks.predictions`.
        labels: gold, shape (examples,).
        weights: of the examples, such as how often each was drawn, shape (draws, examples).

    Returns:
        Shape (draws, variants), as :func:`bertology_utils.glue.tasks.score` gives
        for examples repeated so often. A correlation with a constant is 0.
    """
    return METRICS[metric](predicted, labels, weights)


def _accuracy(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    # Counted before it is divided: equally many right answers are exactly equal scores.
    return weights @ (predicted == labels).astype(np.float64).T / weights.sum(axis=1, keepdims=True)


def _f1(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of the second class; 0 where it is neither predicted nor there."""
    yes, true = (predicted == 1).astype(np.float64), (labels == 1).astype(np.float64)
    hits = weights @ (yes * true).T  # (draws, variants)
    either = weights @ yes.T + (weights @ true)[:, None]
    return np.divide(2 * hits, either, out=np.zeros_like(hits), where=either > 0)


def _pearson(predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    weights = weights / weights.sum(axis=1, keepdims=True)
    # Centred first, so that the sums below lose no digits.
    x, y = predicted - predicted.mean(axis=1, keepdims=True), labels - labels.mean()
    mean_x, mean_y = weights @ x.T, (weights @ y)[:, None]
    spread_x = np.maximum(weights @ (x**2).T - mean_x**2, 0)
    spread_y = np.maximum((weights @ y**2)[:, None] - mean_y**2, 0)
    product = spread_x * spread_y
    return np.where(product > 1e-30, (weights @ (x * y).T - mean_x * mean_y) / np.sqrt(np.maximum(product, 1e-30)), 0.0)


Metric = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
METRICS: dict[str, Metric] = {"accuracy": _accuracy, "F1": _f1, "Pearson": _pearson}
