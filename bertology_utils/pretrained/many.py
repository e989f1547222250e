"""A claim over many pre-trainings: in how many it holds, and how large its number is; a pre-training is the unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE

# Of bert-base's own heads, by their numbers, which mean nothing in another pre-training.
BY_NUMBER = ("panels-rank", "clark-heads")


def share(successes: int, n: int) -> dict[str, float | int]:
    """In how many of ``n``, with the exact 95 % interval of Clopper and Pearson (1934)."""
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(0.95, method="exact")
    return {"value": successes / n, "low": float(interval.low), "high": float(interval.high), "n": n}


def spread(values: Sequence[float]) -> dict[str, float | int]:
    """Mean with Student's 95 % interval (NaN for fewer than two), the least and the most.

    Args:
        values: one for each pre-training.
    """
    from scipy.stats import t

    n = len(values)
    mean = float(np.mean(values))
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return {"mean": mean, "low": mean - half, "high": mean + half, "least": min(values), "most": max(values), "n": n}


def tally(outcomes: Mapping[str, str], numbers: Mapping[str, float], independent: bool) -> dict[str, object]:
    """What several encoders say of one claim.

    Args:
        outcomes: by encoder.
        numbers: by encoder, the verdict's number; of those that have one.
        independent: each encoder is another pre-training. Checkpoints of one are not, and have no intervals.

    Returns:
        For the results file. "share" and "number" are of the encoders in which the claim could be tested.
    """
    tested = [name for name, outcome in outcomes.items() if outcome != UNTESTABLE]
    told = [numbers[name] for name in tested if name in numbers]
    counts = {name: list(outcomes.values()).count(name) for name in (HOLDS, FAILS, UNDECIDED, UNTESTABLE)}
    found: dict[str, object] = {"outcomes": dict(outcomes), "counts": counts, "numbers": dict(numbers)}
    if tested:
        found["share"] = share(counts[HOLDS], len(tested)) if independent else {"n": len(tested)}
    if told:
        number = spread(told)
        found["number"] = number if independent else {k: v for k, v in number.items() if k not in ("low", "high")}
    return found
