"""The figure over many pre-trainings."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from ..claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from ..claims.entries import ENTRIES, OURS
from ..figures import COLOURS

# Told apart by lightness and by their signs, too.
SHOWN = {
    HOLDS: (COLOURS["blue"], "+", "white"),
    FAILS: (COLOURS["orange"], "−", "black"),
    UNDECIDED: ("#d5d8dc", "?", "black"),
    UNTESTABLE: ("#ffffff", "·", COLOURS["grey"]),
}


def claims(results: Mapping):
    """Left: claims × encoders, coloured by outcome. Right: each claim's number, a dot for each encoder, and their mean.

    Args:
        results: over all encoders, parsed; see :func:`bertology_utils.suite.many.collected.collect`.

    Returns:
        The figure.
    """
    found = {name: one for name, one in results["claims"].items() if name in ENTRIES}
    encoders = [one["name"] for one in results["encoders"]]
    width, height = 4.6 + 0.3 * len(encoders) + 3.4, 0.3 * len(found) + 2.2
    shares = {"width_ratios": [0.3 * len(encoders) + 0.4, 3.4]}
    figure, (left, right) = plt.subplots(1, 2, figsize=(width, height), sharey=True, gridspec_kw=shares)
    for row, one in enumerate(found.values()):
        for column, encoder in enumerate(encoders):
            _cell(left, column, row, one["outcomes"].get(encoder, UNTESTABLE))
        _numbers(right, row, one, encoders)
    left.set(xlim=(-0.5, len(encoders) - 0.5), ylim=(len(found) - 0.5, -0.5))
    left.set_yticks(range(len(found)), [_label(name) for name in found], fontsize=8)
    left.set_xticks(range(len(encoders)), encoders, rotation=90, fontsize=7)
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    right.axvline(0, color=COLOURS["grey"], lw=0.8)
    right.tick_params(axis="y", length=0)
    right.set_xlabel("each claim's number (points as shares):\ndots encoders, bar mean and 95 % interval", fontsize=8)
    right.grid(axis="y", color="#eceef0")
    right.set_axisbelow(True)
    handles = [
        Patch(facecolor=colour, edgecolor=COLOURS["grey"], label=f"{sign}  {name}")
        for name, (colour, sign, _) in SHOWN.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, fontsize=8)
    return figure


def _label(name: str) -> str:
    entry = ENTRIES[name]
    return f"control: {entry.claim}" if entry in OURS else entry.claim


def _cell(ax, column: int, row: int, outcome: str) -> None:
    colour, sign, of_sign = SHOWN[outcome]
    ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=1))
    ax.text(column, row, sign, ha="center", va="center", fontsize=8, color=of_sign)


def _numbers(ax, row: int, one: Mapping, encoders: list[str]) -> None:
    """A dot for each encoder in which the claim was judged; a tick for their mean, with its interval if it has one."""
    scale = 0.01 if one["unit"] == "points" else 1.0
    told = [scale * one["numbers"][name] for name in encoders if _is_judged(one, name)]
    ax.plot(told, np.full(len(told), row - 0.14), "o", ms=5, alpha=0.6, mew=0, color=COLOURS["blue"])
    number = one.get("number")
    if number:
        ax.plot(scale * number["mean"], row + 0.2, "|", ms=7, mew=1.6, color="black")
        if number.get("low") is not None:
            ax.plot([scale * number["low"], scale * number["high"]], [row + 0.2, row + 0.2], lw=1.2, color="black")


def _is_judged(one: Mapping, encoder: str) -> bool:
    return encoder in one["numbers"] and one["outcomes"][encoder] != UNTESTABLE
