"""What all encoders say together: every claim, and whether they have the same heads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from ...claims.entries import ENTRIES
from ...pretrained import many, same_heads
from ...statistics import Seed
from ..tables import one_estimate
from .runs import Measured

# What stands before an interval, or else a number with decimals, as +0.051: not heads and counts. p values are no effects.
_ESTIMATE = re.compile(r"(?<![\d.])[-+]?\d+(?:\.\d+)?(?= \[)")
_NUMBER = re.compile(r"(?<![\d.])[-+]?\d+\.\d+")
_P = re.compile(r"p [<=] [\d.]+")


def number(told: str) -> float | None:
    """The number that a verdict tells first, in its own unit: of several tasks the one that decides; None if it tells none."""
    first = _P.sub("", one_estimate(told)[0])
    match = _ESTIMATE.search(first) or _NUMBER.search(first)
    return float(match[0]) if match else None


def unit(told: str) -> str:
    """ "points", or "" for weights, shares and correlations."""
    return "points" if re.search(r"\bpoints\b", one_estimate(told)[0]) else ""


def collect(measured: Sequence[Measured], without: Mapping[str, str], seed: Seed) -> dict[str, object]:
    """Everything over all encoders, for the results file.

    Args:
        measured: in their order; at least one.
        without: by title why an encoder is not among them.
        seed: of random orders of heads.
    """
    independent = len({one.candidate.pretraining for one in measured}) == len(measured)
    first = measured[0].results
    return {
        "unit": "pre-training" if independent else "checkpoint",
        "encoders": [_encoder(one) for one in measured],
        "left out": sorted(without),
        "settings": {name: first["settings"][name] for name in ("profile", "data", "tasks", "seed", "max_examples")},
        "annotation": first["annotation"],
        "release": first["release"],
        "versions": first["versions"],
        "claims": claims(measured, independent),
        "heads": heads(measured, independent, seed),
    }


def _encoder(one: Measured) -> dict[str, object]:
    layers, in_each = one.candidate.shape
    return {"name": one.candidate.title, "fingerprint": one.candidate.fingerprint, "layers": layers, "heads": in_each}


def claims(measured: Sequence[Measured], independent: bool) -> dict[str, dict[str, object]]:
    """Each claim and control that is judged of a pre-trained encoder, but for those about heads by their number."""
    by_encoder = {one.candidate.title: {v["id"]: v for v in one.results["verdicts"]} for one in measured}
    found = {}
    for name in ENTRIES:
        said = {title: verdicts[name] for title, verdicts in by_encoder.items() if name in verdicts}
        if not said or name in many.BY_NUMBER:
            continue
        outcomes = {title: verdict["outcome"] for title, verdict in said.items()}
        told = {title: number(verdict["ours"]) for title, verdict in said.items()}
        units = {unit(verdict["ours"]) for title, verdict in said.items() if told[title] is not None}
        numbers = {title: value for title, value in told.items() if value is not None} if len(units) == 1 else {}
        found[name] = many.tally(outcomes, numbers, independent) | {"unit": units.pop() if numbers else ""}
    return found


def heads(measured: Sequence[Measured], independent: bool, seed: Seed) -> list[dict[str, object]]:
    """Of encoders of each shape, two or more: how alike their heads are, by way of matching."""
    found = []
    ordered = sorted(measured, key=lambda one: one.candidate.shape)
    for shape, group in groupby(ordered, key=lambda one: one.candidate.shape):
        values = {one.candidate.title: one.heads for one in group}
        if len(values) < 2:
            continue
        pairs = same_heads.compare_all(values, seed)
        ways: dict[str, dict[str, float | int]] = {}
        for way in same_heads.WAYS:
            ways[way] = same_heads.over_pairs({pair: getattr(likeness, way) for pair, likeness in pairs.items()})
            if not independent:
                del ways[way]["low"], ways[way]["high"]
        found.append({"layers": shape[0], "heads": shape[1], "encoders": list(values), "correlations": ways})
    return found
