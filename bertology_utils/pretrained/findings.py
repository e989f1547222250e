"""What came out of notebook 8, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import MOST, Finding, amount, extreme, measured, part, sizes, told
from ..claims.verdict import PRETRAINED, THIS_RUN

_BEATS = "more often than the best fixed distance does"


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 8's ``results.json``, parsed; its verdicts are about the pre-trained encoder.
    """
    verdicts = [one | {"model": THIS_RUN} if one["model"] == PRETRAINED else one for one in results["verdicts"]]
    fall = extreme({task: one for task, one in part(results, "falls", "[CLS]").items() if measured(one)}, "points")
    sentences = told(
        {**results, "verdicts": verdicts},
        [
            Finding(
                "panels-rank",
                "Heads rank as on the published panels of bert-base",
                "On some panel heads do not rank as on the published one of bert-base",
                "Undecided whether heads rank as on the published panels of bert-base",
            ),
            Finding(
                "relations-ahead",
                f"Along each dependency some head points right {_BEATS}",
                f"Along some dependency no head points right {_BEATS}",
                f"Undecided whether along each dependency some head points right {_BEATS}",
            ),
            Finding(
                "clark-heads",
                f"Each head that Clark et al. name points along its dependency here, too, {_BEATS}",
                f"None of the heads that Clark et al. name points along its dependency here {_BEATS}",
                f"Undecided whether the heads that Clark et al. name point along their dependencies {_BEATS}",
            ),
            Finding(
                "sep-half",
                "In each of the layers 6 to 10 [SEP] gets over half of the attention",
                "In some of the layers 6 to 10 [SEP] gets less than half of the attention",
                "Undecided whether [SEP] gets over half of the attention in each of the layers 6 to 10",
            ),
            Finding(
                "norm-cls",
                "By norm [CLS] gets much less than by weight, on every task",
                "On some task [CLS] gets as much by norm as by weight",
                "Undecided whether [CLS] gets less by norm than by weight on every task",
                f"its share is smaller by {fall}" if fall else "",
            ),
        ],
    )
    if sentences and not part(results, "encoder").get(
        "bert-base"
    ):  # Clark et al.'s claim, which is not judged, is still worth a number
        sentences[1:1] = _most_to_sep(part(results, "sep_most"))
    return sentences[:MOST]


def _most_to_sep(most: Mapping) -> list[str]:
    """Where [SEP] gets most, beside what is known of bert-base; nothing if it was not measured."""
    if not measured(most):
        return []
    known = "in bert-base over half in each of the layers 6 to 10 (Clark et al., 2019)"
    return [f"[SEP] gets most in layer {most['layer']}, {amount(most, '%', 1)} of the attention; {known}; {sizes(most)}."]
