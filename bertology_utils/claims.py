"""A page's claims: the paper's number beside ours, for each task, with a mark; and the same of other studies.

✓ the whole 95 % interval lies beyond the least effect; ✗ it lies on the other side; ? neither.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from .stats import shown, told, with_interval

if TYPE_CHECKING:
    from .study import Study

HOLDS, FAILS, UNDECIDED, UNTESTED = "✓", "✗", "?", "not testable"
OTHERS = {"e5": "E5", "e5-again": "E5 again", "minilm": "MiniLM"}


def mark(one: xr.Dataset, least: float = 0.0, sign: int = 1) -> str:
    """✓ where the whole interval lies above the least effect, ✗ where it lies below, else ?; or with the sign −1 the other way round."""
    low, high = sorted(sign * float(end) for end in (one.low, one.high))
    if low > sign * least:
        return HOLDS
    return FAILS if high < sign * least else UNDECIDED


class Claims:
    """The claims of one page of one study."""

    def __init__(self, study: Study):
        self.study = study
        self.rows: dict[str, dict[str, Any]] = {}

    def each(
        self,
        text: str,
        paper: str,
        estimates: xr.Dataset,
        least: float = 0.0,
        form: str = "{:+.1f}",
        sign: int = 1,
    ) -> str:
        """A claim about each task: it holds if it holds on each, and fails if it fails on one, after Bonferroni.

        Args:
            text: the claim.
            paper: its number or words there. "AUTHORS: …" for a claim of others; empty for one of ours.
            estimates: of :func:`bertology_utils.stats.estimate`, with an axis task. One without
                ``error`` keeps its interval, as one that holds for all heads at once.
            least: the smallest effect that counts.
            form: of a number.
            sign: −1 for a claim that something is lower than the least effect.

        Returns:
            The verdict.
        """
        bound = shown(least, form).lstrip("+") if least else "0"
        holds = f"{'above' if sign > 0 else 'below'} {bound}"
        marks, of_tasks, texts = [], {}, told(estimates, form)
        for task in estimates.task.values:
            one = estimates.sel(task=task)
            usual, strict = (
                mark(with_interval(one, level) if "error" in one else one, least, sign)
                for level in (0.95, 1 - 0.05 / estimates.sizes["task"])
            )
            of_tasks[str(task)] = f"{usual} {texts[str(task)]}"
            marks.append((usual, strict))
        if not marks:
            verdict = UNTESTED
        elif all(usual == HOLDS for usual, _ in marks):
            verdict = HOLDS
        else:
            verdict = FAILS if any(strict == FAILS for _, strict in marks) else UNDECIDED
        self.rows[text] = {"paper": paper, "holds if": holds, "verdict": verdict, "tasks": of_tasks}
        return verdict

    def table(self) -> pd.DataFrame:
        """The claims with every task's number, and what the other studies on file say."""
        self.study.keep("claims", self.rows)
        others: dict[str, dict[str, Any]] = {}
        for name in OTHERS:
            path = self.study.committed(name)
            if name != self.study.name and path.exists():
                kept = json.loads(path.read_text(encoding="utf-8"))
                others |= {name: kept["claims"]} if kept.get("claims") else {}
        # Before the other studies, even those that the first claim does not have.
        tasks = dict.fromkeys(task for row in self.rows.values() for task in row["tasks"])
        lines = []
        for text, row in self.rows.items():
            line = {
                "claim": text,
                "the paper": row["paper"] or "–",
                "holds if": row["holds if"],
                "here": row["verdict"],
                **{task: row["tasks"].get(task, "") for task in tasks},
            }
            for name, rows in others.items():
                line[OTHERS[name]] = _beside(rows[text]) if text in rows else ""
            lines.append(line)
        return pd.DataFrame(lines).set_index("claim").fillna("")


def _beside(row: dict[str, Any]) -> str:
    """The numbers of one or two tasks, or the verdict on more."""
    tasks = row["tasks"]
    if len(tasks) not in (1, 2):
        return str(row["verdict"])
    return "; ".join(f"{task} {text}" for task, text in tasks.items())
