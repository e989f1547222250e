"""What came out of §4.6 and §5, in sentences."""

from __future__ import annotations

from collections.abc import Mapping

from ..claims.findings import Finding, measured, part, told


def findings(results: Mapping) -> list[str]:
    """At most three sentences, the first the most telling.

    Args:
        results: notebook 6's ``results.json``, parsed.
    """
    return told(
        results,
        [
            _best_heads(results),
            Finding(
                "gain-elsewhere",
                "A head chosen for its gain gains on other examples, too, on every task",
                "A head chosen for its gain loses on other examples, on some task",
                "Undecided whether a head chosen for its gain gains on other examples, too",
            ),
            Finding(
                "several-heads-harmless",
                "Half of the heads can go for less than a point, on every task",
                "Half of the heads cannot go for less than a point, on some task",
                "Undecided whether half of the heads can go for less than a point, on every task",
            ),
            Finding(
                "some-layer-helps",
                "Disabling some layer raises the score, on some task",
                "Disabling no layer raises the score by a point, on any task",
                "Undecided whether disabling some layer raises the score, on some task",
            ),
        ],
    )


def _best_heads(results: Mapping) -> Finding:
    """What the best head of every model gains, and whether that is more than luck."""
    learned, effects = part(results, "learned"), part(results, "effects")
    best = [part(effects, key, "heads", "best") for key in effects if learned.get(key.split(",")[0])]
    gains = [100 * one["value"] for one in best if measured(one)]
    number = ""
    if gains and len(gains) == len(best):
        counts = sorted({one["n"] for one in best})
        n = f"n={counts[0]}" if len(counts) == 1 else f"n={counts[0]} to {counts[-1]}"
        spread = f"{min(gains):+.1f} to {max(gains):+.1f} points"
        number = f"with its best head off, a model's score changes by {spread} ({len(gains)} models; {n})"
    return Finding(
        "some-head-helps",
        "On every task some head's disabling raises the score by more than chance",
        "On some task no head's disabling raises the score by a point",
        "Undecided whether on every task some head's disabling raises the score by more than chance",
        number,
    )
