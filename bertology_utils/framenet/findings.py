"""What came out of §4.2, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, told

_MORE = "attends along frame-semantic links, more than other sentences' positions explain"


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 2's ``results.json``, parsed.
    """
    return told(
        results,
        [
            Finding("frame-links", f"Some head {_MORE}", f"No head {_MORE}", f"Undecided whether some head {_MORE}"),
            Finding(
                "frame-two-heads",
                "Two heads stand out from the rest, the second above the third by more than 0.02",
                "No two heads stand out from the rest: the second is above the third by less than 0.02",
                "Undecided whether two heads stand out from the rest",
            ),
            Finding(
                "frame-example",
                "In the paper's sentence both of the highest heads look from “agitated” to “he”",
                "In the paper's sentence the two highest heads do not both look from “agitated” to “he”",
                "Undecided whether in the paper's sentence both of the highest heads look from “agitated” to “he”",
            ),
            Finding(
                "frame-count",
                "The paper's rules leave as many sentences as the paper says",
                "The paper's rules leave another number of sentences than the paper says",
                "Undecided how many sentences the paper's rules leave",
            ),
        ],
    )
