"""What came out of §4.3, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, amount, extreme, fair, measured, on_each, part, sizes, told


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 3's ``results.json``, parsed.
    """
    of_tuning, of_pretraining = (_average(part(results, "gains", name)) for name in ("fine-tuning", "pre-training"))
    return told(
        results,
        [
            _last_layers({task: lead for task, lead in fair(results, "leads").items() if task != "qqp"}),
            Finding(
                "pretraining-helps",
                "Fine-tuned from random weights the model scores lower on every task",
                "Fine-tuned from random weights the model does not score lower by a point on every task",
                "Undecided whether the model scores lower by a point on every task if fine-tuned from random weights",
                f"what pre-training is worth is {of_pretraining}" if of_pretraining else "",
            ),
            Finding(
                "last-layers-gain",
                "Putting the last two layers back costs a point more than any other two, on every task",
                "Putting the last two layers back does not cost most, on some task: other two cost more",
                "Undecided whether putting the last two layers back costs a point more than any other two, on every task",
            ),
            Finding(
                "tuned-above-untuned",
                "Fine-tuning raises the score on every task",
                "Fine-tuning does not raise the score by a point on every task",
                "Undecided whether fine-tuning raises the score by a point on every task",
                f"its gain is {of_tuning}" if of_tuning else "",
            ),
        ],
    )


def _last_layers(leads: Mapping[str, Mapping]) -> Finding:
    """How far the last two layers change more than any other; without QQP, the paper's exception."""
    first = sum(lead["low"] > 0 for lead in leads.values())
    behind = sum(lead["high"] < 0 for lead in leads.values())
    number = extreme(leads, "in cosine similarity", 3, sign=True)
    count = f"surely on {first} of {len(leads)}, surely not on {behind}"
    return Finding(
        "last-layers",
        f"The last two layers change most {on_each(len(leads))}",
        f"The last two layers do not change most on every task ({count})",
        f"Undecided whether the last two layers change most on every task ({count})",
        f"they lead the others by {number}" if number else "",
    )


def _average(gain: Mapping) -> str:
    return f"{amount(gain, 'points', 1, sign=True)} on average; {sizes(gain)}" if measured(gain) else ""
