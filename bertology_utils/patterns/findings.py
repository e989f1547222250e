"""What came out of §4.1, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, extreme, fair, on_each, on_tasks, part, told
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
    covered, by_lot = fair(results, "coverage"), [share for share in part(results, "coverage_by_lot").values() if share]
    lot = f"; by lot up to {100 * max(by_lot):.0f} %" if by_lot else ""
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
                "A few patterns repeat: on every task two of the five describe more heads than by lot",
                "On some task two of the five patterns describe no more heads than by lot",
                "Undecided whether on every task two of the five patterns describe more heads than by lot",
                extreme(covered, "%") and extreme(covered, "%") + lot,
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
    """Of all tasks the share that lies farthest outside the paper's range; where all lie outside, the nearest to it."""
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
        extreme(shares, "%", most=above != (beyond == len(shares))),
    )
