"""How far two float32 computations of the same quantity may lie apart, from precision and length alone.

A sum of n products of order one, taken in another order or blocking, errs by
about ε·√n, like a random walk of roundings. Through a model these errors add up
from layer to layer; the layer normalisations keep them from growing.
"""

import math

import numpy as np

EPSILON = float(np.finfo(np.float32).eps)  # 1.2e-7, the spacing of float32 at one


def forward_tolerance(model, ways: int = 1) -> float:
    """For attention maps and outputs of two forward passes, in other batches or on other kernels.

    Args:
        model: gives the depth, and the length of the longest sum: the width of the feed-forward
            layer.
        ways: steps that the two compute differently in each layer, such as a correction that is
            added.
    """
    config = model.config
    width = max(config.hidden_size, getattr(config, "intermediate_size", 0) or 0)
    return ways * config.num_hidden_layers * math.sqrt(width) * EPSILON


def sum_tolerance(terms: int) -> float:
    """For sums of ``terms`` weights that add up to at most one: every addition may round once."""
    return terms * EPSILON
