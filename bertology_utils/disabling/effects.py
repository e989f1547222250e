"""How right a model's answers are (§4.6), for notebook 10."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from ..glue import Task


def rightness(task: Task, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability of the right label, shape (…, examples); of a regression 1 minus the distance from the right number.

    Args:
        task: the task.
        outputs: of a classifier, shape (…, examples, labels).
        labels: gold, shape (examples,); of a regression on a scale from 0 to 5.
    """
    if task.is_regression:
        return 1 - np.abs(outputs[..., 0] - labels / 5)
    return softmax(outputs, axis=-1)[..., np.arange(len(labels)), labels]
