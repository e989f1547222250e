"""What came out of §4.4, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, extreme, fair, on_each, on_tasks, told
from ..claims.verdict import THIS_RUN


def findings(results: Mapping) -> list[str]:
    """At most three sentences: on stripes, on words that fine-tuning makes heads attend to, on where stripes come from.

    Args:
        results: notebook 4's ``results.json``, parsed.
    """
    ahead, on_words, before = (_shares(fair(results, "striped", name)) for name in ("special ahead", "words", "kept"))
    behind = sum(one["high"] < 0 for one in ahead.values())
    lead, same = extreme(ahead, "%", sign=True), extreme(before, "%")
    most = f"; on words at most {max(one['value'] for one in on_words.values()):.0%} of heads have one" if on_words else ""
    others = _others(results)
    return told(
        results,
        [
            Finding(
                "stripes-special",
                f"{on_each(len(ahead)).capitalize()} more heads have a stripe on [CLS] or [SEP] than on words",
                f"{on_tasks(behind, len(ahead)).capitalize()} fewer heads have a stripe on [CLS] or [SEP] than on words",
                "Undecided whether more heads have a stripe on [CLS] or [SEP] than on words, on every task",
                f"the difference is {lead.replace(' %', ' percentage points', 1)}{most.replace('%', ' %')}" if lead else "",
            ),
            Finding(
                "more-nouns",
                f"Fine-tuning makes some head attend more to nouns on each of the paper's tasks{others}",
                f"Fine-tuning makes no head attend more to nouns on some of the paper's tasks{others}",
                f"Undecided whether fine-tuning makes some head attend more to nouns on each of the paper's tasks{others}",
            ),
            Finding(
                "stripes-pretraining",
                "Most heads with a stripe on [CLS] or [SEP] had it before fine-tuning",
                "Most heads with a stripe on [CLS] or [SEP] got it from fine-tuning, on some task",
                "Undecided whether most heads with a stripe on [CLS] or [SEP] had it before fine-tuning",
                same,
            ),
            Finding(
                "stripes-exclusive",
                "Hardly any head has a stripe on a word",
                "Some heads have a stripe on words, too",
                "Undecided whether more than 2 % of the heads have a stripe on words",
                extreme(on_words, "%", most=True),
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


def _others(results: Mapping) -> str:
    """What became of the claims on objects and negation: " (objects: does not hold here; negation: not testable here)"."""
    mine = {one.get("id"): one["outcome"] for one in results["verdicts"] if one["model"] == THIS_RUN}
    found = [f"{kind}: {mine[f'more-{kind}']}" for kind in ("objects", "negation") if f"more-{kind}" in mine]
    return f" ({'; '.join(found)})" if found else ""


def _shares(estimates: Mapping[str, Mapping]) -> dict[str, Mapping]:
    """With intervals that end at 100 %, beyond which no share is."""
    return {task: {**one, "high": min(one["high"], 1.0)} for task, one in estimates.items()}
