"""What a run says of a claim: computed, never typed in."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .entries import ENTRIES, OURS
from .support import OUTCOMES, UNTESTABLE, Support

if TYPE_CHECKING:
    import pandas as pd

THIS_RUN = "this run"  # what a verdict is about, unless it names another model
PRETRAINED = "pre-trained"  # this run's encoder before any fine-tuning, where claims are mostly about fine-tuned models


@dataclass(frozen=True)
class Verdict:
    """What a run says of one claim.

    Attributes:
        id: its name in the register.
        claim: in our words.
        paper: the paper's number or statement; empty for a control of ours.
        ours: the same from this run, with interval and sample size.
        outcome: one of :data:`bertology_utils.claims.support.OUTCOMES`.
        why: the rule; for what cannot be tested the precondition that fails.
        model: what it is about, if not this run's model.
    """

    id: str
    claim: str
    paper: str
    ours: str
    outcome: str
    why: str
    model: str = THIS_RUN


def judged(name: str, support: Support | str, ours: str, unmet: str = "", model: str = THIS_RUN) -> Verdict:
    """The verdict on a claim.

    Args:
        name: of the claim in the register.
        support: what the data say; or the outcome itself, for a claim that is counted and not estimated.
        ours: this run's number.
        unmet: the precondition that fails, if one does.
        model: what it is about, if not this run's model.

    Raises:
        KeyError: the register has no such claim.
    """
    entry = ENTRIES[name]
    if isinstance(support, Support) and (math.isnan(support.holds) or math.isnan(support.fails)):
        unmet = unmet or "a number: this model, or these data, give none"
    outcome = support.outcome if isinstance(support, Support) else support
    why = f"missing: {unmet}" if unmet else f"holds: {entry.rule}; not: {entry.against}"
    return Verdict(name, entry.claim, entry.paper or "(control)", ours or "–", UNTESTABLE if unmet else outcome, why, model)


def verdict_table(verdicts: list[Verdict]) -> pd.DataFrame:
    """Verdicts as a table for a notebook, one row each."""
    import pandas as pd

    rows = [dataclasses.asdict(verdict) for verdict in verdicts]
    for row in rows:
        row["ours"] = row["ours"] if row["model"] == THIS_RUN else f"{row['model']}: {row['ours']}"
    columns = {
        "claim": "claim",
        "paper": "paper",
        "ours": "this run",
        "outcome": "verdict",
        "why": "rule, or what is missing",
    }
    return pd.DataFrame(rows, columns=list(columns)).rename(columns=columns).set_index("claim")


def outcomes(verdicts: list[Verdict]) -> list[str]:
    """What became of the claims, a sentence for each outcome that occurs, then the same of the controls."""
    ours = {entry.id for entry in OURS}
    groups = {
        "claims": [one for one in verdicts if one.id not in ours],
        "controls": [one for one in verdicts if one.id in ours],
    }
    sentences = []
    for kind, group in groups.items():
        for outcome in OUTCOMES:
            names = [
                one.claim if one.model == THIS_RUN else f"{one.claim} ({one.model})"
                for one in group
                if one.outcome == outcome
            ]
            if names:
                sentences.append(
                    f"{outcome[0].upper()}{outcome[1:]}, {len(names)} of {len(group)} {kind}: {'; '.join(names)}."
                )
    return sentences
