"""The picture at the head of RESULTS.md: every claim for which the paper gives a number on our scale.

python -m docs.forest        draws figures/claims.png from the evidence in results/
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from bertology_utils import plots
from bertology_utils.record import project_root
from bertology_utils.results import Entry, factor_of
from bertology_utils.verdicts import CLAIMS, FAILS, HOLDS, THIS_RUN, UNDECIDED
from docs.pages import evidence

COLOURS = {
    outcome: plots.COLOURS[name]
    for outcome, name in ((HOLDS, "green"), (FAILS, "orange"), (UNDECIDED, "grey"))
}
# Panel: title, and of each line the claim, its words, the paper's number or range, the row that is
# ours, its labels, and which of its layers or heads counts.
Line = tuple[str, str, tuple[float, ...], str, dict[str, str], Callable[[np.ndarray], int] | None]
HIGHEST, LOWEST, FIRST = np.argmax, np.argmin, lambda values: 0
PANELS: dict[str, list[Line]] = {
    "attention maps, in %": [
        (
            "heterogeneous",
            "unstructured maps",
            (32, 61),
            "share of maps: heterogeneous, corrected",
            {},
            None,
        ),
    ],
    "score, in points": [
        ("tuned-above-untuned", "gain by fine-tuning", (35.9,), "gain by fine-tuning", {}, None),
        ("pretraining-helps", "gain by pre-training", (26.4,), "gain by pre-training", {}, None),
    ],
    "change of the score, in points": [
        (
            "some-head-helps",
            "without the best head",
            (0.1, 1.2),
            "gain without a head, mean over runs",
            {"state": "score"},
            HIGHEST,
        ),
        (
            "some-layer-helps",
            "without the best layer",
            (3.2,),
            "gain without a layer, mean over runs",
            {},
            HIGHEST,
        ),
        (
            "first-layer-rte",
            "without the first layer (RTE)",
            (3.2,),
            "gain without a layer, mean over runs",
            {"task": "rte"},
            FIRST,
        ),
        (
            "worst-layer-small",
            "without the worst layer (QNLI, MNLI)",
            (-0.2,),
            "gain without a layer, mean over runs",
            {},
            LOWEST,
        ),
    ],
}


def number_of(row: Entry, choose: Callable[[np.ndarray], int] | None) -> tuple[float, float, float]:
    """Value and ends of the interval of a row as people read them, or of one of its layers or heads."""
    values = [np.ravel(row[name]).astype(float) for name in ("value", "low", "high")]
    at = choose(values[0]) if choose else 0
    numbers = np.array([one[at] for one in values])
    if row["unit"] == "share":
        numbers = numbers.clip(0, 1)  # corrected shares may lie outside
    value, low, high = (numbers * factor_of(row)).tolist()
    return value, low, high


def draw(root: Path) -> Figure:
    """The claims with a number of the paper's: its number or range, and ours for every task."""
    plots.set_style()
    heights = [len(lines) for lines in PANELS.values()]
    figure, axes = plt.subplots(
        len(PANELS),
        figsize=(9, 0.5 + 0.72 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
    )
    for ax, (unit, lines) in zip(axes, PANELS.items(), strict=True):
        for at, (name, _, published, what, labels, choose) in enumerate(lines):
            claim = CLAIMS[name]
            run = evidence(root, str(claim.notebook))
            outcome = run.verdicts[name, THIS_RUN]["outcome"]
            rows = [
                row
                for row in run.find(what, **labels)
                if not claim.tasks or row["task"] in claim.tasks
            ]
            for place, row in zip(np.linspace(-0.25, 0.25, len(rows) + 2)[1:-1], rows, strict=True):
                value, low, high = number_of(row, choose)
                colour = COLOURS[outcome]
                ax.plot([low, high], [at + place] * 2, color=colour, lw=1)
                ax.plot(value, at + place, "o", color=colour, ms=4)
            ax.plot(published, [at] * len(published), "-", color="black", lw=1, alpha=0.5)
            ax.plot(published, [at] * len(published), "D", color="black", mfc="white", ms=7)
        ax.set_yticks(range(len(lines)), [line[1] for line in lines])
        ax.set_ylim(len(lines) - 0.5, -0.5)
        ax.axvline(0, color="0.8", lw=1, zorder=0)
        ax.set_xlabel(unit)
        ax.locator_params(axis="x", integer=True)
        ax.grid(False)
    handles = [plt.Line2D([], [], marker="D", ls="", color="black", mfc="white", label="the paper")]
    handles += [
        plt.Line2D(
            [],
            [],
            marker="o",
            color=colour,
            label=f"one task here; claim {outcome.removesuffix(' here')}",
        )
        for outcome, colour in COLOURS.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


if __name__ == "__main__":
    target = project_root() / "figures" / "claims.png"
    draw(project_root()).savefig(target, dpi=150)
    print(target.name, "drawn")
