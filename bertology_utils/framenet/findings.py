"""What came out of §4.2, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, measured, part, told
from ..claims.register import WEIGHT
from ..statistics import ONE_SIDED
from ..statistics.resampling import rounded
from ..statistics.ties import p_is

_MORE = "attends along frame-semantic links, more than other sentences' positions explain"


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 2's ``results.json``, parsed.
    """
    largest = part(results, "largest_excess")
    links = excess_and_p(largest, "the least that counts") if measured(largest) else ""
    return told(
        results,
        [
            Finding("frame-links", f"Some head {_MORE}", f"No head {_MORE}", f"Undecided whether some head {_MORE}", links),
            Finding(
                "frame-two-heads",
                "Two heads stand out from the rest, the second by score above the third by more than 0.02",
                "No two heads stand out from the rest: the second by score is above the third by less than 0.02",
                "Undecided whether two heads stand out from the rest, the second by score above the third",
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


def excess_and_p(one: Mapping, border: str = str(WEIGHT)) -> str:
    """ "(4, 2) +0.073 [+0.043, +0.105], n=173: not surely above 0.02 (p = 0.05, corrected over 72 heads)".

    Args:
        one: from :func:`bertology_utils.framenet.preference.largest_excess`.
        border: how to call what it is tested against; in a table's cell, which holds one estimate, in words.
    """
    value, low, high = (rounded(one[name], 3, True) for name in ("value", "low", "high"))
    sure = "surely" if one["p_above_least"] < ONE_SIDED else "not surely"
    corrected = f"{p_is(one['p_above_least'])}, corrected over {one['heads']} heads"
    return f"{one['head']} {value} [{low}, {high}], n={one['n']}: {sure} above {border} ({corrected})"
