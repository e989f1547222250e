"""Are they the same heads in every pre-training? Matched by what they do on one half of the examples, compared on the other.

The heads of one layer can be exchanged without changing what a BERT computes
(their rows of query, key and value, and columns of the output matrix, move
along), so a head's number means nothing in another pre-training. Layers cannot
be exchanged. So each head is matched with a head of the same layer, one to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..statistics import Seed

DRAWS = 200  # random orders of heads
# The ways of pairing heads, as people read them; attributes of Likeness.
WAYS = {
    "matched": "matched by what they do on the other half of the examples",
    "other_layer": "matched in the same way with heads of another layer",
    "same_number": "of the same number",
    "random": "in a random order within their layer",
    "repeated": "an encoder's own, one half of the examples against the other",
}


@dataclass(frozen=True)
class Likeness:
    """How alike the heads of two encoders are: correlations over heads and kinds of behaviour, from -1 to 1.

    Attributes:
        matched: of heads matched on the other half.
        same_number: of heads with the same number in their layer.
        random: of heads in a random order within their layer, mean over draws.
        other_layer: of heads matched in the same way with those of another layer, mean over all such
            pairings; NaN for an encoder of one layer.
        repeated: of an encoder's heads with themselves, one half against the other: how stable what is measured is.
    """

    matched: float
    same_number: float
    random: float
    other_layer: float
    repeated: float


def standardised(values: np.ndarray) -> np.ndarray:
    """Behaviours on one scale: each kind without its layer's mean, in standard deviations over all heads.

    Layers differ in what they do, and so would heads at random from the same layer seem alike.

    Args:
        values: shape (layers, heads, kinds).
    """
    apart = values - values.mean(axis=1, keepdims=True)
    spread = apart.std(axis=(0, 1))
    return apart / np.where(spread > 0, spread, 1.0)  # a kind that does not vary stays 0


def match(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """For each head of one encoder the head of the other that does most nearly the same, one to one within layers.

    The sum of squared distances is the smallest possible (``scipy.optimize.linear_sum_assignment``).

    Args:
        one, other: standardised behaviours, shape (layers, heads, kinds).

    Returns:
        Heads of ``other`` from 0, shape (layers, heads).
    """
    from scipy.optimize import linear_sum_assignment

    distances = ((one[:, :, None] - other[:, None]) ** 2).sum(axis=-1)  # (layers, heads of one, heads of other)
    return np.array([linear_sum_assignment(of_layer)[1] for of_layer in distances])


def agreement(one: np.ndarray, other: np.ndarray, order: np.ndarray | None = None) -> float:
    """Correlation over heads and kinds.

    Args:
        one, other: standardised behaviours, shape (layers, heads, kinds).
        order: of the heads of ``other``, shape (layers, heads); as they are by default.
    """
    if order is not None:
        other = np.take_along_axis(other, order[:, :, None], axis=1)
    size = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return float((one * other).sum()) / size if size > 0 else float("nan")  # their means are 0


def compare(one: np.ndarray, other: np.ndarray, seed: Seed) -> Likeness:
    """Compare two encoders of one shape.

    Each half serves once for matching and once for comparing.

    Args:
        one, other: from :func:`bertology_utils.pretrained.behaviour.in_halves`, shape (2, layers, heads, kinds),
            on the same examples.
        seed: of the random orders.

    Raises:
        ValueError: of two shapes.
    """
    if one.shape != other.shape:
        raise ValueError(f"heads of {one.shape} and {other.shape} (halves, layers, heads, kinds) cannot be matched")
    known = np.isfinite(one).all(axis=(0, 1, 2)) & np.isfinite(other).all(axis=(0, 1, 2))
    ours, theirs = ([standardised(half[..., known]) for half in of] for of in (one, other))
    layers, heads = one.shape[1:3]
    drawn = np.random.default_rng(seed).permuted(np.tile(np.arange(heads), (DRAWS, layers, 1)), axis=2)

    def crossed(shift: int = 0) -> float:
        """Matched on one half, compared on the other; with the layers of ``other`` shifted."""
        moved = [np.roll(half, shift, axis=0) for half in theirs]
        return float(np.mean([agreement(ours[b], moved[b], match(ours[a], moved[a])) for a, b in ((0, 1), (1, 0))]))

    return Likeness(
        matched=crossed(),
        same_number=float(np.mean([agreement(*halves) for halves in zip(ours, theirs, strict=True)])),
        random=float(np.mean([agreement(a, b, order) for a, b in zip(ours, theirs, strict=True) for order in drawn])),
        other_layer=float(np.mean([crossed(shift) for shift in range(1, layers)])) if layers > 1 else float("nan"),
        repeated=float(np.mean([agreement(*ours), agreement(*theirs)])),
    )


def compare_all(encoders: Mapping[str, np.ndarray], seed: Seed) -> dict[tuple[str, str], Likeness]:
    """Every pair of encoders of one shape."""
    return {(a, b): compare(encoders[a], encoders[b], seed) for a, b in combinations(encoders, 2)}


def over_pairs(values: Mapping[tuple[str, str], float]) -> dict[str, float | int]:
    """Mean over pairs, with a 95 % interval that knows that pairs share encoders.

    The interval is Student's, by leaving out one encoder after the other (jackknife), cut at -1 and 1; NaN for fewer than three.

    Args:
        values: correlations by pair of encoders, all pairs.
    """
    from scipy.stats import t

    names = sorted({name for pair in values for name in pair})
    mean, n = _mean(list(values.values())), len(names)
    half = float("nan")
    if n > 2:
        without = np.array([_mean([value for pair, value in values.items() if name not in pair]) for name in names])
        half = float(t.ppf(0.975, n - 1) * np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    return {
        "mean": mean,
        "low": max(mean - half, -1.0) if n > 2 else half,
        "high": min(mean + half, 1.0) if n > 2 else half,
        "least": min(values.values()),
        "most": max(values.values()),
        "pairs": len(values),
        "encoders": n,
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
