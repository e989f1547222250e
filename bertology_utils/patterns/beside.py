"""What stands beside this run's shares: the paper's, and those of a run on real data, from its results file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..claims.findings import fair
from ..claims.register import PAPER_HETEROGENEOUS
from ..figures.dots import Dot
from ..glue.tasks import TASKS, Task
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate
from .labelled_maps import PATTERNS
from .repeats import heads_by_pattern
from .validation import PAPER_F1

PAPER = "the paper"
THIS = "this run"
NOISE = "not fine-tuned, other examples"


def f1_rows(f1: Mapping[str, Mapping[tuple[str, str], Bootstrap]]) -> dict[str, dict[str, Dot]]:
    """F1 on maps drawn at random, by class and over all, for each who names maps; the paper's one number at both averages.

    Args:
        f1: from :func:`bertology_utils.patterns.evidence.f1_by_part`.
    """
    judges = {"cnn": "network", "baseline": "logistic regression", (both := "one labelling against the other"): both}
    rows: dict[str, dict[str, Dot]] = {}
    for name in ("micro F1", "macro F1", *PATTERNS):
        of_paper: dict[str, Dot] = {PAPER: PAPER_F1} if name not in PATTERNS else {}
        rows[name] = of_paper | {title: f1[who]["natural", name] for who, title in judges.items()}
    return rows


def paper_shares() -> dict[str, list[float]]:
    """By task's title what the paper gives in numbers: the heterogeneous share, NaN for the other four."""
    unknown = [float("nan")] * (len(PATTERNS) - 1)
    return {TASKS[task].title: [*unknown, share] for task, share in PAPER_HETEROGENEOUS.items()}


def real_shares(results: Mapping) -> dict[str, list[float]]:
    """By task's title the corrected shares after fine-tuning.

    Args:
        results: notebook 1's ``results.json``, parsed; empty where there is none, here and below.
    """
    found = {task: states["fine-tuned"]["corrected"] for task, states in results.get("shares", {}).items()}
    return {TASKS[task].title: [shares[pattern]["value"] for pattern in PATTERNS] for task, shares in found.items()}


def values(parts: list[Bootstrap]) -> list[float]:
    """The shares without their intervals."""
    return [part.value for part in parts]


def heterogeneous_rows(
    title: str, results: Mapping, counts: Mapping[str, Mapping[Task, Dot]], by_label: Dot, random: Mapping[str, Dot]
) -> dict[str, dict[str, Dot]]:
    """Rows of :func:`bertology_utils.patterns.drawing.heterogeneous`.

    Args:
        title: of the run on real data.
        results: of the same.
        counts: by source and task, this run's estimates.
        by_label: among the labels that were given by eye, to maps of real data.
        random: by row's title, the share with random weights.
    """
    of_paper: dict[str, Dot] = {TASKS[task].title: share for task, share in PAPER_HETEROGENEOUS.items()}
    of_real: dict[str, Dot] = {TASKS[task].title: one for task, one in fair(results, "heterogeneous").items()}
    own = {source: {task.title: one for task, one in found.items()} for source, found in counts.items()}
    rows = _rows({PAPER: of_paper, title: of_real, **own})
    return rows | {"labels of real maps": {title: by_label}} | {name: {THIS: share} for name, share in random.items()}


def real_usual(results: Mapping) -> dict[str, np.ndarray]:
    """By task's title the pattern that each head shows most often after fine-tuning, shape (layers, heads)."""
    by_head = {task: np.array(states["fine-tuned"]) for task, states in results.get("by_head", {}).items()}
    return {TASKS[task].title: shares.argmax(axis=-1) for task, shares in by_head.items()}


def shared_tasks(real: Mapping[str, np.ndarray], title: str, own: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Panels of the tasks that both runs have, the real ones first; three of this run where they share none.

    Args:
        real, own: by task's title.
        title: of the run on real data.
    """
    shared = [task for task in own if task in real][:3]
    upper = {f"{task}, {title.removeprefix('MiniLM, ')}": real[task] for task in shared}
    return upper | {f"{task}, {THIS}": own[task] for task in shared or list(own)[:3]}


def coverage_rows(title: str, results: Mapping, own: Mapping[Task, Estimate]) -> dict[str, dict[str, Dot]]:
    """Share of heads that two patterns cover, by task's title and source; of results without it, from their shares.

    Args:
        title: of the run on real data.
        results: of the same.
        own: this run's, by task.
    """
    of_real: dict[str, Dot] = {TASKS[task].title: one for task, one in fair(results, "coverage").items()}
    for task, found in real_usual(results).items():
        of_real.setdefault(task, float(np.sort(heads_by_pattern(found))[-2:].sum() / found.size))
    return _rows({title: of_real, THIS: {task.title: one for task, one in own.items()}})


def changed_rows(
    title: str, results: Mapping, own: Mapping[Task, Estimate], by_examples: Mapping[Task, Estimate]
) -> dict[str, dict[str, Dot]]:
    """Share of heads that fine-tuning changes, and that other examples change, by task's title and source.

    Args:
        title: of the run on real data.
        results: of the same.
        own, by_examples: this run's, by task.
    """
    of_real: dict[str, Dot] = {TASKS[task].title: one for task, one in fair(results, "changed_heads").items()}
    noise: dict[str, Dot] = {task.title: one for task, one in by_examples.items()}
    return _rows({title: of_real, THIS: {task.title: one for task, one in own.items()}, NOISE: noise})


def _rows(sources: Mapping[str, Mapping[str, Dot]]) -> dict[str, dict[str, Dot]]:
    """From by source and row to by row and source; rows of this run."""
    return {row: {source: found[row] for source, found in sources.items() if row in found} for row in sources[THIS]}
