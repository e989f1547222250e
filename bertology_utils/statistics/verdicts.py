"""What is said of a claim of the paper: "agrees", "disagrees" or "undecided", computed from resamples."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .ties import DRAWS_MARGIN

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Verdict:
    """What a run says of one claim of the paper; computed, never typed in.

    Attributes:
        claim: the paper's claim, in our words.
        paper: the paper's number or statement.
        ours: the same from this run, with interval and sample size.
        outcome: "agrees", "disagrees" or "undecided".
        why: how sure, and by which rule.
    """

    claim: str
    paper: str
    ours: str
    outcome: str
    why: str


def outcome(share: float, sure: float = 0.95) -> str:
    """ "agrees" if a claim holds in more than ``sure`` of the resamples, "disagrees" if in less than 1 − ``sure``.

    By a margin, so that a verdict does not hang on rounding; else "undecided".
    """
    if np.isnan(share):
        return "undecided"
    least = sure + DRAWS_MARGIN
    return "agrees" if share >= least else "disagrees" if share <= 1 - least else "undecided"


def every(shares: Iterable[float], sure: float = 0.95) -> str:
    """Outcome of a claim about every task: it agrees if each does, disagrees if at least one does; undecided for none."""
    outcomes = {outcome(share, sure) for share in shares}
    if outcomes == {"agrees"}:
        return "agrees"
    return "disagrees" if "disagrees" in outcomes else "undecided"


def verdict_table(verdicts: list[Verdict]) -> pd.DataFrame:
    """Verdicts as a table for a notebook, one row each."""
    import pandas as pd

    columns = {"claim": "claim", "paper": "paper", "ours": "this run", "outcome": "verdict", "why": "rule"}
    table = pd.DataFrame([dataclasses.asdict(verdict) for verdict in verdicts], columns=list(columns))
    return table.rename(columns=columns).set_index("claim")
