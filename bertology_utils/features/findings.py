"""What came out of §4.4, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, extreme, fair, on_each, on_tasks, told


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 4's ``results.json``, parsed.
    """
    ahead, on_words, before = (fair(results, "striped", name) for name in ("special ahead", "words", "kept"))
    behind = sum(one["high"] < 0 for one in ahead.values())
    lead, same = extreme(ahead, "%", sign=True), extreme(before, "%")
    return told(
        results,
        [
            Finding(
                "stripes-special",
                f"{on_each(len(ahead)).capitalize()} more heads have a stripe on [CLS] or [SEP] than on words",
                f"{on_tasks(behind, len(ahead)).capitalize()} fewer heads have a stripe on [CLS] or [SEP] than on words",
                "Undecided whether more heads have a stripe on [CLS] or [SEP] than on words, on every task",
                f"the difference is {lead.replace(' %', ' % of heads', 1)}" if lead else "",
            ),
            Finding(
                "stripes-exclusive",
                "Hardly any head has a stripe on a word",
                "Some heads have a stripe on words, too",
                "Undecided whether more than 2 % of the heads have a stripe on words",
                extreme(on_words, "%", most=True),
            ),
            Finding(
                "stripes-pretraining",
                "Most heads with such a stripe had it before fine-tuning",
                "Most heads with such a stripe got it from fine-tuning, on some task",
                "Undecided whether most heads with such a stripe had it before fine-tuning",
                same,
            ),
            Finding(
                "words-negligible",
                "What words get is negligible beside [CLS] and [SEP], less than a tenth",
                "What words get is not negligible beside [CLS] and [SEP], more than a tenth on some task",
                "Undecided whether what words get is less than a tenth of what [CLS] or [SEP] get",
                extreme(fair(results, "ratios"), "%", most=True),
            ),
        ],
    )
