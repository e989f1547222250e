"""Do the heads that matter most show a clearer pattern by norm than by weight?"""

from __future__ import annotations

import numpy as np

from ..common import Head
from ..disabling.measure import gains, most_needed
from ..disabling.reference import Sweep
from ..glue.tasks import Task, predictions
from ..patterns.labelled_maps import PATTERNS
from ..statistics import Bootstrap, Seed, bootstrap_mean

HETEROGENEOUS = PATTERNS.index("heterogeneous")
MATTER = 5  # heads of a model whose disabling costs most


def heads_that_matter(task: Task, sweep: Sweep, labels: np.ndarray, seed: Seed) -> list[Head]:
    """The heads whose disabling costs most, (layer, head) from 0.

    Args:
        task: the task.
        sweep: outputs with each head disabled.
        labels: gold, shape (examples,).
        seed: of the resampling of examples.
    """
    layers, heads = sweep.heads.shape[:2]
    disabled = np.stack([predictions(task, logits) for of_layer in sweep.heads for logits in of_layer])
    losses = gains(task, predictions(task, sweep.baseline), disabled, labels, seed)
    return most_needed(np.array([gain.value for gain in losses]).reshape(layers, heads), MATTER)


def clearer(by_weight: np.ndarray, by_norm: np.ndarray, heads: list[Head], seed: Seed) -> Bootstrap:
    """Share of the heads' maps that show one of the paper's patterns, by norm minus by weight.

    Args:
        by_weight, by_norm: patterns of every example and head, indices into ``PATTERNS``, shape (examples, layers, heads).
        heads: (layer, head) from 0.
        seed: of the resampling of examples.
    """
    layers, numbers = map(list, zip(*heads, strict=True))
    clear = [(patterns[:, layers, numbers] != HETEROGENEOUS).mean(axis=1) for patterns in (by_weight, by_norm)]
    return bootstrap_mean(clear[1] - clear[0], seed)
