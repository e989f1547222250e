"""Notebook 7's numbers for the results file."""

from __future__ import annotations

from collections.abc import Mapping

from ..common import head_name
from ..glue.tasks import Task
from ..statistics.estimate import Estimate
from .claims import AFTER, BEFORE
from .heads import Agreement


def of_pair(pair: tuple[Mapping[Task, Estimate], Mapping[Task, Estimate]]) -> dict[str, dict[str, object]]:
    """Estimates before and after fine-tuning, by state and task."""
    return {state: of_tasks(found) for state, found in zip((BEFORE, AFTER), pair, strict=True)}


def of_tasks(found: Mapping[Task, Estimate]) -> dict[str, object]:
    """Estimates by task."""
    return {task.name: estimate.summary() for task, estimate in found.items()}


def of_agreement(found: Agreement) -> dict[str, object]:
    """How heads agree; heads from 1."""
    return {
        "rank": found.rank.summary(),
        "best by weight": head_name(*found.first),
        "best by the other": head_name(*found.second),
        "held out": found.held_out.summary(),
    }
