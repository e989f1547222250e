"""What came out of §4.5, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, told


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 5's ``results.json``, parsed.
    """
    return told(
        results,
        [
            _indistinct("verbs", "between verb and subject"),
            Finding(
                "subjects-distance",
                "No head points from verb to subject, or back, more often than the best fixed distance",
                "A head points from verb to subject, or back, more often than the best fixed distance",
                "Undecided whether a head points from verb to subject, or back, more often than the best fixed distance",
            ),
            _diagonal("verbs", "between verb and subject"),
            _indistinct("pronouns", "between noun and pronoun"),
            Finding(
                "cls-reads-sep",
                "In the last layer [CLS] attends most to [SEP], on the tasks that the paper says so of",
                "In the last layer [CLS] does not attend most to [SEP] on all tasks that the paper says so of",
                "Undecided whether [CLS] attends most to [SEP] in the last layer",
            ),
            _diagonal("pronouns", "between noun and pronoun"),
        ],
    )


def _indistinct(words: str, between: str) -> Finding:
    return Finding(
        f"{words}-indistinct",
        f"No head attends {between} more than positions explain",
        f"Some head attends {between} more than positions explain",
        f"Undecided whether some head attends {between} more than positions explain",
    )


def _diagonal(words: str, between: str) -> Finding:
    return Finding(
        f"{words}-diagonal",
        f"The heads that attend most {between} are those that attend to neighbours",
        f"The heads that attend most {between} are not those that attend to neighbours",
        f"Undecided whether the heads that attend most {between} are those that attend to neighbours",
    )
