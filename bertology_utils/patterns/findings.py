"""What came out of §4.1, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, extreme, fair, on_each, on_tasks, told
from ..claims.register import PAPER_HETEROGENEOUS


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 1's ``results.json``, parsed.
    """
    low, high = PAPER_HETEROGENEOUS.values()
    most = f"{1 - high:.0%}".replace("%", " %")
    usual, changed = fair(results, "first_three"), fair(results, "changed_heads")
    kinds = "of the maps are vertical, diagonal or both"
    few = sum(one["high"] < 1 - high for one in usual.values())
    return told(
        results,
        [
            Finding(
                "first-three",
                f"{on_each(len(usual)).capitalize()} more than {most} {kinds}",
                f"{on_tasks(few, len(usual)).capitalize()} less than {most} {kinds}",
                f"Undecided whether on every task more than {most} {kinds}",
                extreme(usual, "%"),
            ),
            Finding(
                "repeat-heads",
                "The same two patterns are usual for more heads than by chance, on every task",
                "No two patterns are usual for more heads than by chance, on some task",
                "Undecided whether two patterns are usual for more heads than by chance, on every task",
            ),
            _heterogeneous(fair(results, "heterogeneous"), low, high),
            Finding(
                "patterns-change",
                "Fine-tuning gives 2 % of the heads or more another usual pattern, on every task",
                "Fine-tuning gives fewer than 2 % of the heads another usual pattern, on some task",
                "Undecided whether fine-tuning gives 2 % of the heads or more another usual pattern, on every task",
                extreme(changed, "%"),
            ),
        ],
    )


def _heterogeneous(shares: Mapping[str, Mapping], low: float, high: float) -> Finding:
    """Of all tasks the share that lies farthest outside the paper's range."""
    values = [one["value"] for one in shares.values()]
    above = bool(values) and max(values) - high > low - min(values)
    beyond = sum(one["low"] > high if above else one["high"] < low for one in shares.values())
    paper = f"the paper's {100 * low:.0f} to {100 * high:.0f} %"
    where = on_tasks(beyond, len(shares)).capitalize()
    return Finding(
        "heterogeneous",
        f"As in the paper, {100 * low:.0f} to {100 * high:.0f} % of the maps are heterogeneous on every task",
        f"{where} the share of heterogeneous maps is {'above' if above else 'below'} {paper}",
        f"Undecided whether the share of heterogeneous maps lies within {paper} on every task",
        extreme(shares, "%", most=above),
    )
