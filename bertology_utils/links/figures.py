"""The figures of §4.5: links and neighbours, heads above position and rivals, and [CLS] (Fig 7).

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from .. import plots
from ..annotation.inputs import TOKEN_TYPES
from ..common import head_name
from ..glue import TASKS
from ..plots import COLOURS
from ..plots.charts import BORDER, ZERO
from ..results import Results
from ..verdicts import CLAIMS, WEIGHT
from . import measure

# What a link is compared with, each with its name, colour and marker.
CONTROLS = {
    measure.ABOVE_PLACES: ("over position", "blue", "o"),
    measure.CENTRED: ("over position, mean attention received subtracted", "green", "D"),
    measure.ABOVE_RIVALS: ("over rivals", "orange", "s"),
}
HIGHEST = 5  # heads of a type of link that are drawn
# The tasks on which [CLS] attends most to punctuation, says the paper; on the others to [SEP].
PUNCTUATION = [TASKS[name].title for name in CLAIMS["cls-reads-punctuation"].tasks]


def _heads(results: Results, kind: str) -> pd.DataFrame:
    """A row for each pre-trained head, with its name and a column for each kind of number along one type of link."""
    numbers = [measure.ALONG, measure.NEIGHBOURS, *CONTROLS]
    table = results.table(numbers, state=measure.BEFORE, kind=kind)
    table = table.pivot(index=["layer", "head"], columns="what", values="value")
    table = table.reindex(columns=numbers).reset_index()
    return table.assign(name=[head_name(at.layer - 1, at.head - 1) for at in table.itertuples()])


def links_and_neighbours(results: Results, kinds: Sequence[str]) -> Figure:
    """Attention along links against attention to neighbours: a dot for each pre-trained head.

    The two heads that attend most along a type of link carry their names; above each panel stands
    the rank correlation of the two numbers.

    Args:
        results: see above.
        kinds: types of link, a panel each.
    """
    figure, axes = plots.panel_grid(len(kinds), 4.1, 3.3)
    for ax, kind in zip(axes, kinds, strict=True):
        table = _heads(results, kind)
        rho = results.table(measure.RHO, state=measure.BEFORE, kind=kind)
        neighbour, along = table[measure.NEIGHBOURS], table[measure.ALONG]
        ax.loglog(neighbour, along, "o", ms=5, mew=0, alpha=0.6, c=COLOURS["blue"])
        for head in table.nlargest(2, measure.ALONG).itertuples():
            at = neighbour[head.Index], along[head.Index]
            look: dict[str, Any] = {"fontsize": 9, "ha": "right", "va": "bottom"}
            ax.annotate(head.name, at, (-4, 2), textcoords="offset points", **look)
        correlated = "".join(f" (ρ = {one:.2f})" for one in rho.value)
        ax.set(title=f"{kind}{correlated}", xlabel="attention to the neighbour")
        ax.set_ylabel(f"attention from {kind.replace('→', 'to')}")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 3)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
    return figure


def above_controls(results: Results, kinds: Sequence[str]) -> Figure:
    """The five pre-trained heads that are farthest above other inputs' places, against every control.

    A dotted line is at the least effect, 0.02: a head follows the link if all its marks are on the
    right of it.

    Args:
        results: see above.
        kinds: types of link, a panel each.
    """
    figure, axes = plots.panel_grid(len(kinds), 3.2, 2.6)
    for ax, kind in zip(axes, kinds, strict=True):
        table = _heads(results, kind).nlargest(HIGHEST, measure.ABOVE_PLACES)
        table = table.iloc[::-1]  # the largest at the top
        for number, (what, (name, colour, marker)) in enumerate(CONTROLS.items()):
            rows = np.arange(len(table)) + 0.2 * (1 - number)
            ax.plot(table[what], rows, marker, color=COLOURS[colour], ms=6, label=name)
        ax.axvline(WEIGHT, **BORDER)
        ax.axvline(0, **ZERO)
        ax.set_yticks(range(len(table)), table.name)
        ax.set(
            title=kind, xlabel=f"excess {results.weight} along the link", ylim=(-0.6, HIGHEST - 0.4)
        )
        ax.grid(axis="y", color="#e6e8eb", lw=0.6)
        ax.tick_params(axis="y", length=0)
    for ax in axes[1:]:
        ax.sharex(axes[0])
    figure.legend(handles=axes[0].lines[: len(CONTROLS)], loc="outside upper center", ncols=3)
    return figure


def from_cls(tokens: Sequence[str], weights: np.ndarray, title: str) -> Figure:
    """What [CLS] gives every token of one input, a bar each; the dotted line is a uniform weight.

    Args:
        tokens: the wordpieces.
        weights: shape (tokens,), summing to 1.
        title: above.
    """
    figure, ax = plt.subplots(figsize=(1.5 + 0.45 * len(tokens), 2.4))
    ax.bar(range(len(tokens)), weights, color=COLOURS["blue"])
    ax.axhline(1 / len(tokens), color=COLOURS["grey"], ls=":")
    ax.set_xticks(range(len(tokens)), tokens, rotation=40, ha="right", fontsize=8)
    ax.set(ylabel="weight from [CLS]", title=title)
    return figure


def last_layer(results: Results) -> Figure:
    """What [CLS] gives each type of token in the last layer of fine-tuned models (Fig 7).

    The type that the paper's text names is outlined.
    """
    table = results.table(measure.FROM_CLS, state=measure.TUNED)
    values = table.pivot(index="task", columns="kind", values="value").reindex(
        index=list(table.task.cat.categories), columns=list(TOKEN_TYPES)
    )
    figure, ax = plt.subplots(figsize=(7.6, 0.36 * len(values) + 1.5))
    plots.table_map(ax, values, (0, float(table.value.max())))
    for row, title in enumerate(values.index):
        column = TOKEN_TYPES.index("punctuation" if title in PUNCTUATION else "[SEP]")
        look = {"fill": False, "edgecolor": COLOURS["orange"], "lw": 2}
        corner = column + 0.05, row + 0.08
        ax.add_patch(plt.Rectangle(corner, 0.9, 0.84, label="most attended in the paper", **look))
    figure.legend(handles=ax.patches[:1], loc="outside upper right")
    return figure
