"""What came out of notebook 7, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, extreme, fair, told


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 7's ``results.json``, parsed.
    """
    fallen = fair(results, "falls", "[CLS]", "fine-tuned")
    less = fair(results, "less")
    return told(
        results,
        [
            Finding(
                "norm-cls",
                "By norm [CLS] gets much less than by weight, on every task",
                "On some task [CLS] gets as much by norm as by weight",
                "Undecided whether [CLS] gets less by norm than by weight on every task",
                f"after fine-tuning its share is smaller by {extreme(fallen, 'points')}" if fallen else "",
            ),
            Finding(
                "sink-noop",
                "Attention to the sink, the special token that gets most, is idle: cutting it moves answers less than cutting as much from"
                " words",
                "Attention to the sink, the special token that gets most, is not idle: on some task cutting it moves answers more than"
                " cutting as much from words",
                "Undecided whether attention to the sink, the special token that gets most, is idle: whether cutting it moves answers less"
                " than cutting as much from words, on every task",
                f"less by {extreme(less, '', 3, sign=True)}" if less else "",
            ),
            Finding(
                "relations-rank",
                "The heads that follow dependencies keep their rank by norm",
                "Heads that follow some dependency change their rank by norm",
                "Undecided whether heads that follow dependencies keep their rank by norm",
            ),
            Finding(
                "mixing-kept",
                "With residual and normalisation counted, a token mostly keeps itself",
                "With residual and normalisation counted, a token's new vector is mostly of other tokens, on some task",
                "Undecided whether a token mostly keeps itself on every task, with residual and normalisation counted",
            ),
        ],
    )
