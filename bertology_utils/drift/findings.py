"""What came out of §4.3, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, amount, extreme, fair, measured, on_each, part, sizes, told
from ..claims.support import FAILS, HOLDS
from ..glue.tasks import TASKS


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 3's ``results.json``, parsed.
    """
    tuning, pretraining = (part(results, "gains", name) for name in ("fine-tuning", "pre-training"))
    started = on_each(len(part(results, "random_start_learned")))
    return told(
        results,
        [
            _last_layers({task: lead for task, lead in fair(results, "leads").items() if task != "qqp"}),
            Finding(
                "pretraining-helps",
                f"Fine-tuned from random weights the model scores lower {started}",
                f"Fine-tuned from random weights the model does not score lower by a point {started}",
                f"Undecided whether the model scores lower by a point {started} if fine-tuned from random weights",
                f"pre-training is worth {_average(pretraining)}{_beside(results)}" if measured(pretraining) else "",
            ),
            Finding(
                "last-layers-gain",
                "Giving the last two layers their old weights back costs a point more than any other two, on every task",
                "Giving the last two layers their old weights back does not cost most on every task",
                "Undecided whether giving the last two layers their old weights back costs most on every task",
                _another_pair(fair(results, "put_back_leads")),
            ),
            Finding(
                "tuned-above-untuned",
                "Fine-tuning raises the score on every task",
                "Fine-tuning does not raise the score by a point on every task",
                "Undecided whether fine-tuning raises the score by a point on every task",
                f"its gain is {_average(tuning)}" if measured(tuning) else "",
            ),
        ],
    )


def _last_layers(leads: Mapping[str, Mapping]) -> Finding:
    """How far the last two layers change more than any other; without QQP, the paper's exception."""
    first = sum(lead["low"] > 0 for lead in leads.values())
    behind = sum(lead["high"] < 0 for lead in leads.values())
    number, side = extreme(leads, "in cosine similarity", 3), "ahead of"
    if min((lead["value"] for lead in leads.values()), default=0) < 0:
        number, side = extreme(_backwards(leads), "in cosine similarity", 3, most=True), "behind"
    count = f"surely on {first} of {len(leads)}, surely not on {behind}; without QQP, the paper's exception"
    return Finding(
        "last-layers",
        f"The last two layers change most {on_each(len(leads))}",
        f"The last two layers do not change most on every task ({count})",
        f"Undecided whether the last two layers change most on every task ({count})",
        f"they are {side} the others by {number}" if number else "",
    )


def _another_pair(leads: Mapping[str, Mapping]) -> str:
    """Where another two layers most surely cost more than the last two; empty if they cost more nowhere."""
    if min((lead["value"] for lead in leads.values()), default=0) >= 0:
        return ""
    task, lead = max(_backwards(leads).items(), key=lambda item: item[1]["low"])
    return f"on {TASKS[task].title} another pair costs {_more(lead)}; {sizes(lead)}"


def _more(lead: Mapping) -> str:
    return amount(lead, "points").replace(" points", " points more")


def _backwards(leads: Mapping[str, Mapping]) -> dict[str, dict]:
    """The same with the other sign."""
    return {
        task: {**lead, "value": -lead["value"], "low": -lead["high"], "high": -lead["low"]} for task, lead in leads.items()
    }


def _beside(results: Mapping) -> str:
    """What the random start learned, and what fine-tuning is worth: the other numbers of Table 1."""
    learned, tuning = part(results, "random_start_learned"), part(results, "gains", "fine-tuning")
    outcome = next((one["outcome"] for one in results["verdicts"] if one.get("id") == "tuned-above-untuned"), None)
    words = {HOLDS: "raises", FAILS: "does not raise"}
    text = f"; the random start learned {sum(map(bool, learned.values()))} of {len(learned)} tasks" if learned else ""
    if outcome in words and measured(tuning):
        gain = amount(tuning, "points", 1, sign=True).replace(" points", "")
        text += f". Fine-tuning {words[outcome]} each score: {gain} on average"
    return text


def _average(gain: Mapping) -> str:
    return f"{amount(gain, 'points', 1, sign=True)} on average; {sizes(gain)}"
