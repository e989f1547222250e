"""What came out of a run, in sentences: one wording for each outcome of a claim, with its number.

The wordings are in the sections' ``findings``; they are chosen by the verdict
and filled from the results file, so that no sentence outlives its number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..glue.tasks import TASKS
from ..statistics.resampling import rounded
from .entries import ENTRIES
from .support import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from .verdict import THIS_RUN

MOST = 3  # sentences about one notebook


@dataclass(frozen=True)
class Finding:
    """What can be said of one claim.

    Attributes:
        claim: its name in the register.
        holds, fails, undecided: the sentence for each outcome, up to the colon before its number.
        number: with interval and sample size; if empty, the verdict's own.
    """

    claim: str
    holds: str
    fails: str
    undecided: str
    number: str = ""

    def sentence(self, verdict: Mapping) -> str:
        """The sentence for a verdict from results.json; empty without a number. Not testable: what is missing."""
        if verdict["outcome"] == UNTESTABLE:
            return f"Not testable here: {_small(verdict['claim'])} ({verdict['why']})."
        number = self.number or verdict["ours"]
        if number in ("", "–") or re.search(r"\b(nan|None)\b", number):
            return ""
        words = {HOLDS: self.holds, FAILS: self.fails, UNDECIDED: self.undecided}[verdict["outcome"]]
        return f"{words}: {number}."


def told(results: Mapping, findings: Iterable[Finding]) -> list[str]:
    """The first sentences of a notebook's findings; what cannot be tested comes last.

    Args:
        results: its ``results.json``, parsed. Claims that it has no verdict on give no sentence.
        findings: in the order of their interest.

    Returns:
        At most :data:`MOST` sentences.
    """
    verdicts = {one["id"]: one for one in results["verdicts"] if one.get("id") in ENTRIES and one["model"] == THIS_RUN}
    pairs = [(finding, verdicts[finding.claim]) for finding in findings if finding.claim in verdicts]
    pairs.sort(key=lambda pair: pair[1]["outcome"] == UNTESTABLE)
    return [sentence for finding, verdict in pairs if (sentence := finding.sentence(verdict))][:MOST]


def part(results: Mapping, *names: str) -> Mapping:
    """What stands under these names in a results file; nothing if it is not there."""
    for name in names:
        results = results.get(name) or {}
    return results


def fair(results: Mapping, *names: str) -> dict[str, Mapping]:
    """Of the estimates by task under these names, those of learned tasks that have all their numbers."""
    learned = part(results, "learned")
    return {task: one for task, one in part(results, *names).items() if learned.get(task) and measured(one)}


def measured(estimate: Mapping) -> bool:
    """Has it a value and an interval? What was not measured is null in a results file."""
    return all(
        isinstance(estimate.get(part), (int, float)) and math.isfinite(estimate[part]) for part in ("value", "low", "high")
    )


def extreme(estimates: Mapping[str, Mapping], unit: str, digits: int = 0, sign: bool = False, most: bool = False) -> str:
    """The lowest of the tasks' estimates, or the highest: "87 % [74, 100] on QNLI, the lowest of 7; n=320".

    Args:
        estimates: by task, from :func:`fair`; shares and scores from 0 to 1 if the unit is "%" or "points".
        unit: behind the number.
        digits: behind the point.
        sign: show it.
        most: the highest.
    """
    if not estimates:
        return ""
    task, one = (max if most else min)(estimates.items(), key=lambda item: item[1]["value"])
    of = f", the {'highest' if most else 'lowest'} of {len(estimates)}" if len(estimates) > 1 else ""
    return f"{amount(one, unit, digits, sign)} on {TASKS[task].title}{of}; {sizes(one)}"


def amount(estimate: Mapping, unit: str, digits: int = 0, sign: bool = False) -> str:
    """ "87 % [74, 100]"."""
    scale = 100 if unit in ("%", "points") else 1
    value, low, high = (rounded(scale * estimate[part], digits, sign) for part in ("value", "low", "high"))
    return f"{value}{f' {unit}' if unit else ''} [{low}, {high}]"


def sizes(estimate: Mapping) -> str:
    """ "n=320, 2 trainings"."""
    trainings = estimate.get("trainings", 1)
    return f"n={estimate['n']}" + (f", {trainings} trainings" if trainings > 1 else "")


def on_each(tasks: int) -> str:
    """ "on each of 7 tasks"."""
    return {0: "on every task", 1: "on the one task"}.get(tasks, f"on each of {tasks} tasks")


def on_tasks(count: int, of: int) -> str:
    """ "on 2 of 7 tasks"; "on some task" for none: by one interval nothing is sure."""
    if not count:
        return "on some task"
    return on_each(of) if count == of else f"on {count} of {of} tasks"


def _small(text: str) -> str:
    """With a small first letter, unless it is a name such as MRPC or [CLS]."""
    return text if text[:2].isupper() or not text[0].isalpha() else text[0].lower() + text[1:]
