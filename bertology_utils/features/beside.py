"""The committed run on real GLUE, in the form of this run's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..claims.gates import MIN_EXAMPLES
from ..glue.tasks import Task
from ..statistics.estimate import Estimate
from ..statistics.permutation import ManyTest

REAL, OURS = "MiniLM, real GLUE", "this run"
# Shares of heads, as results.json calls them and as figures do.
STRIPED = {"words": "on a word", "special ahead": "on [CLS] or [SEP], minus that", "kept": "had it before fine-tuning"}
Results = Mapping[str, Mapping]
Rows = dict[str, dict[str, dict[str, float]]]  # by task's title, source and part of an estimate


def rows(ours: Mapping[Task, Estimate], real: Results, least: float = 0.0) -> Rows:
    """Estimates of shares by task and source, for ``figures.dots``; intervals end where no share is beyond.

    Args:
        ours: of this run.
        real: of the committed run, summaries by task's name; what it lacks is left out.
        least: the smallest possible; -1 for differences.
    """
    return {
        task.title: {
            source: {**one, "low": max(one["low"], least), "high": min(one["high"], 1.0)}
            for source, one in ((REAL, real.get(task.name)), (OURS, estimate.summary()))
            if one
        }
        for task, estimate in ours.items()
    }


def stripe_panels(ours: Mapping[str, Mapping[Task, Estimate]], real: Results) -> dict[str, Rows]:
    """Shares of heads with a stripe, a panel for each of :data:`STRIPED`.

    Args:
        ours: by key of :data:`STRIPED`.
        real: the committed run's results.
    """
    theirs = real.get("striped", {})
    return {
        title: rows(ours[key], theirs.get(key, {}), -1.0 if key == "special ahead" else 0.0)
        for key, title in STRIPED.items()
    }


def heads(real: Results, kind: str) -> list[np.ndarray]:
    """What every head of the committed run's fine-tuned models gives one type, a task each: shape (layers, heads)."""
    return [np.array(by_type[kind]) for by_type in real.get("heads", {}).get("fine-tuned", {}).values()]


def changes(
    ours: Mapping[Task, Sequence[ManyTest]], real: Results, key: str, kinds: Mapping[str, int]
) -> dict[str, dict[str, dict[str, np.ndarray]]]:
    """What fine-tuning adds in every head, by type, task and source; where fewer than 30 examples have the type, nothing.

    Args:
        ours: this run's tests, of which the first training is taken.
        real: the committed run's results.
        key: where these are in it.
        kinds: types, and where they stand in the tests.
    """
    found: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for kind, at in kinds.items():
        found[kind] = {}
        for task, (first, *_) in ours.items():
            heads_there = real.get(key, {}).get(task.name, {}).get(kind)
            enough = real.get("examples", {}).get(task.name, {}).get(kind, 0) >= MIN_EXAMPLES
            row = {REAL: np.array(heads_there)} if heads_there and enough else {}
            if first.n[at].max() >= MIN_EXAMPLES:
                row[OURS] = first.means[at]
            found[kind][task.title] = row
    return found
