"""The figures of §4.6: every head's gain (Fig 8), the best head's beside chance, and every layer's (Fig 9).

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .. import plots
from ..results import Results
from ..statistics import ONE_SIDED
from ..verdicts import SCORE

REACH = 3.0  # points; the scale of single heads ends here
FURTHEST = -17.0  # points; a layer that costs more is drawn at the border
GAIN = "gain, points"
# §4.6: the largest and the smallest best gain over all tasks, and the best layer.
PAPER, PAPER_BEST, PAPER_LAYER = "the paper", {"MRPC": 1.2, "STS-B": 0.1}, {("RTE", 1): 3.2}
BEST = {
    "largest gain without a head by chance": ("the best by luck, median to 95 %", "grey"),
    "largest gain without a head": ("the best head", "orange"),
    "gain without the chosen head, on other examples": (
        "chosen on one half, measured on the other",
        "blue",
    ),
}


def heads_figure(results: Results) -> Figure:
    """The gain without every head in the first run of each task (Fig 8).

    Red is a gain, blue a loss; what is beyond the scale is hatched. ▲ is a gain and ▼ a loss that
    is significant, corrected over all heads.
    """
    arrays = plots.head_arrays(results.table("gain without a head", training=1))
    figure = plots.head_grid(arrays, GAIN, (-REACH, REACH), plots.GAIN)
    p = results.table("p of the gain without a head", training=1)
    for ax, (title, gains) in zip(figure.axes, arrays.items(), strict=False):
        for layer, head in np.argwhere(np.abs(gains) > REACH):
            place = head - 0.5, layer - 0.5
            ax.add_patch(Rectangle(place, 1, 1, fill=False, hatch="////", edgecolor="white", lw=0))
        for side, marker in (("better", "^"), ("worse", "v")):
            sure = p[(p.task == title) & (p.kind == side) & (p.value < ONE_SIDED)]
            at = sure["head"] - 1, sure["layer"] - 1
            ax.plot(*at, marker, ms=6, color="black", mec="white", mew=0.8)
    return figure


def best_heads(results: Results) -> Figure:
    """Of every run the best head's gain, the largest by chance, and the gain on examples without a say in the choice."""
    table = results.table(list(BEST))
    places = ["task", "training"]
    chance = table[table.kind.notna()].set_index([*places, "kind"]).value.unstack("kind")
    luck = chance.assign(value=chance["median"], low=chance["median"], high=chance["95 %"])
    luck = luck.reset_index().assign(what=next(iter(BEST)))
    table = pd.concat([luck, table[table.kind.isna()]], ignore_index=True)
    # Of the best of many an interval says nothing.
    table.loc[table.what == "largest gain without a head", ["low", "high"]] = np.nan
    table = table.sort_values(places, kind="stable")
    table[PAPER] = table.task.astype(str).map(PAPER_BEST).where(table.training == 1)
    return plots.dots(
        table.assign(
            run=table.training.astype(int),
            what=table.what.map({what: name for what, (name, _) in BEST.items()}),
        ),
        y="run",
        colour="what",
        panel="task",
        label=GAIN,
        colours={name: plots.COLOURS[colour] for name, colour in BEST.values()},
        marks={PAPER: "D"},
    )


def layers_figure(results: Results) -> Figure:
    """The gain without every layer in the first run of each task (Fig 9)."""
    table = results.table("gain without a layer", training=1)
    table[PAPER] = [PAPER_LAYER.get(at, np.nan) for at in zip(table.task, table.layer, strict=True)]
    return plots.dots(
        table, y="layer", panel="task", label=GAIN, marks={PAPER: "D"}, limits=(FURTHEST, None)
    )


def twelfth_figure(results: Results) -> Figure:
    """The gain with a twelfth of the heads disabled, by task."""
    table = results.table("gain with a twelfth of the heads off")
    border = {"a loss of one point": -100 * SCORE}
    return plots.dots(table, label=GAIN, border=border, limits=(table.low.min(), table.high.max()))
