"""What came out of §4.5, in sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from ..claims import Verdict
from ..claims.findings import Finding, amount, measured, part, told
from ..claims.verdict import THIS_RUN
from ..common import head_name


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 5's ``results.json``, parsed.
    """
    return told(results, _told(results).values())


def in_short(results: Mapping) -> list[str]:
    """One sentence for each of five claims, in the order in which the notebook comes to them; arguments as before."""
    order = ("cls-reads-sep", "verbs-diagonal", "verbs-indistinct", "pronouns-indistinct", "subjects-distance")
    return [sentence for claim in order for sentence in told(results, [_told(results)[claim]])]


def of_verdicts(verdicts: Iterable[Verdict]) -> dict[str, list[dict]]:
    """Verdicts as a results file has them."""
    return {"verdicts": [dataclasses.asdict(verdict) for verdict in verdicts]}


def _told(results: Mapping) -> dict[str, Finding]:
    """What can be said of each claim, the most telling first."""
    every = (
        _indistinct("verbs", "between verb and subject", results),
        Finding(
            "subjects-distance",
            "No head points from verb to subject, or back, more often than the best fixed distance",
            "A head points from verb to subject, or back, more often than the best fixed distance",
            "Undecided whether a head points from verb to subject, or back, more often than the best fixed distance",
            _pointing(results),
        ),
        _diagonal("verbs", "between verb and subject", _but(results)),
        _indistinct("pronouns", "between noun and pronoun", results),
        Finding(
            "cls-reads-sep",
            "In the last layer [CLS] attends most to [SEP], on the tasks that the paper says so of",
            "In the last layer [CLS] does not attend most to [SEP] on all tasks that the paper says so of",
            "Undecided whether [CLS] attends most to [SEP] in the last layer",
        ),
        _diagonal("pronouns", "between noun and pronoun"),
    )
    return {finding.claim: finding for finding in every}


def _indistinct(words: str, between: str, results: Mapping) -> Finding:
    return Finding(
        f"{words}-indistinct",
        f"No head attends {between} more than positions explain",
        f"Some head attends {between} more than positions explain",
        f"Undecided whether some head attends {between} more than positions explain",
        _excess(results, words),
    )


def _diagonal(words: str, between: str, number: str = "") -> Finding:
    return Finding(
        f"{words}-diagonal",
        f"The heads that attend most {between} are those that attend to neighbours",
        f"The heads that attend most {between} are not those that attend to neighbours",
        f"Undecided whether the heads that attend most {between} are those that attend to neighbours",
        number,
    )


def _ours(results: Mapping, claim: str) -> str:
    return next((one["ours"] for one in results["verdicts"] if one.get("id") == claim and one["model"] == THIS_RUN), "")


def _excess(results: Mapping, words: str) -> str:
    """The excess with its direction, unit and interval, if the verdict is about this pre-trained head; else empty."""
    one = part(results, "furthest", words)
    if not measured(one) or not _ours(results, f"{words}-indistinct").startswith(f"{one['kind']}: {one['head']} "):
        return ""
    more = amount(one, "", 3, sign=True)
    return f"{one['kind']}, head {one['head']}, {more} of a token's attention (which sums to 1); n={one['n']} examples"


def _pointing(results: Mapping) -> str:
    """The best head's lead over the best distance, with its direction; empty without the numbers."""
    one = part(results, "pointing", "nsubj")
    if not measured(part(one, "difference")):
        return ""
    way = "subject → verb" if one["way"].startswith("dependent") else "verb → subject"
    lead = one["difference"]
    return f"{way}, head {one['head']}, {amount(lead, 'points', 1, sign=True)}; n={lead['n']} examples"


def _but(results: Mapping) -> str:
    """The verdict's own number, and that the head of :func:`_excess` is not one of these; empty if it is, or none is."""
    if not _excess(results, "verbs") or not part(results, "neighbours"):
        return ""
    name = results["furthest"]["verbs"]["head"]
    shares = {head_name(*at): share for at, share in np.ndenumerate(np.array(results["neighbours"]["pre-trained"]))}
    rank = 1 + sum(share > shares[name] for share in shares.values())
    if rank <= len(shares) / 4:
        return ""
    return (
        f"{_ours(results, 'verbs-diagonal')}; but {name} is not a neighbour head"
        f" (rank {rank} of {len(shares)} in attention to neighbours)"
    )
