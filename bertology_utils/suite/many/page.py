"""Results over many pre-trainings as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from ...claims.entries import ENTRIES, OURS
from ...pretrained.same_heads import WAYS
from ...statistics.resampling import rounded
from ..results import RESULTS
from ..tables import read, table

FIGURE = "claims.png"
COMMAND = "make pretrainings MODELS=multiberts KEEP=1"


def over_pretrainings(root: Path, place: str) -> str:
    """The part of a page: the tables, or how to make them.

    Args:
        root: the checkout.
        place: folder of the results, below it.

    Raises:
        ValueError: results that cannot be read, or of another version.
    """
    path = root / place / RESULTS
    if not path.exists():
        return f"\nNot run yet: `{COMMAND}` makes this table.\n"
    results = read(path)
    try:
        found = lines(results)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{place}/{RESULTS} is of another version (no {error}); make it anew: {COMMAND}") from error
    figure = f"![Claims by pre-trainings, coloured by outcome, and each claim's number]({place}/{FIGURE})"
    return "\n".join(["", *found, *(["", figure] if (root / place / FIGURE).exists() else []), ""])


def lines(results: Mapping) -> list[str]:
    """Both tables, with what they are of above them.

    Args:
        results: from :func:`bertology_utils.suite.many.collected.collect`.
    """
    encoders, what = results["encoders"], results["unit"]
    by_shape: dict[str, list[str]] = {}
    for one in encoders:
        by_shape.setdefault(f"{one['layers']} × {one['heads']}", []).append(one["name"])
    names = "; ".join(f"{', '.join(of_shape)} ({shape})" for shape, of_shape in by_shape.items())
    without = f" Left out: {', '.join(results['left out'])}." if results["left out"] else ""
    several = (
        "" if what == "pre-training" else " Some are checkpoints of one pre-training, so there are no intervals over them."
    )
    head = ["rule of notebook", "claim", "holds", "does not", "undecided", "not testable", "share that holds"]
    head += ["its number, mean", "least to most"]
    rows = [_claim(name, one) for name, one in results["claims"].items() if name in ENTRIES]
    title = f"{len(encoders)} {what}{'s' * (len(encoders) != 1)}"
    return [f"{title}: {names}.{without}{several}", "", *table(head, rows), *_heads(results["heads"], what)]


def _claim(name: str, one: Mapping) -> list:
    counts = [one["counts"][outcome] for outcome in (HOLDS, FAILS, UNDECIDED, UNTESTABLE)]
    share, told = one.get("share"), one.get("number")
    text = f"{counts[0]} of {share['n']}" if share else "–"
    if share and "low" in share:
        text += f" [{100 * share['low']:.0f}, {100 * share['high']:.0f}] %"
    spread = _spread(told, one["unit"]) if told else ["–", "–"]
    entry = ENTRIES[name]
    return [entry.notebook, f"{'control of ours: ' if entry in OURS else ''}{entry.claim}", *counts, text, *spread]


def _spread(one: Mapping, unit: str) -> list[str]:
    """Mean with its interval; the ends."""
    digits = 1 if unit else 3
    told = {name: rounded(value, digits, sign=True) for name, value in one.items() if isinstance(value, float)}
    within = f" [{told['low']}, {told['high']}]" if "low" in told else ""
    return [f"{told['mean']}{within}{f' {unit}' if unit else ''}; n={one['n']}", f"{told['least']} to {told['most']}"]


def _heads(shapes: list, what: str) -> list[str]:
    """Is it the same heads? A table for each shape."""
    found = []
    for shape in shapes:
        rows = [[text, *_correlation(shape["correlations"][way])] for way, text in WAYS.items()]
        title = f"{shape['layers']} × {shape['heads']}, {len(shape['encoders'])} {what}s"
        head = [f"heads of two encoders ({title})", "correlation of what they do, mean of pairs", "least to most"]
        found += ["", *table(head, rows)]
    return found


def _correlation(one: Mapping) -> list[str]:
    if one["mean"] is None:
        return ["–", "–"]
    told = {name: rounded(value, 2, sign=False) for name, value in one.items() if isinstance(value, float)}
    within = f" [{told['low']}, {told['high']}]" if "low" in told else ""
    return [f"{told['mean']}{within}; {one['pairs']} pairs", f"{told['least']} to {told['most']}"]
