"""The figures of notebook 10: pairs of heads; the score without layers, heads or weights.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from .. import plots
from ..common import one_based
from ..patterns.labels import PATTERNS
from ..results import Results
from .pairs import Pairs

LIMIT = "limit of the claim"


def interactions(pairs: Pairs, patterns: np.ndarray, layer: int) -> Figure:
    """One layer's interactions, a square for each pair of heads.

    The heads stand in the order of their patterns; lines part these.

    Args:
        pairs: of one run.
        patterns: usual pattern of each head, shape (layers, heads).
        layer: from 0.
    """
    order = np.argsort(patterns[layer], kind="stable")
    square = np.full((pairs.heads, pairs.heads), np.nan)
    a, b = pairs.pairs.T
    square[a, b] = square[b, a] = 1000 * pairs.interactions[layer].mean(axis=1)
    heads = [one_based(int(head)) for head in order]
    names = [f"{PATTERNS[patterns[layer, at]]} {one_based(int(at))}" for at in order]
    table = pd.DataFrame(np.tril(square[np.ix_(order, order)]), names, heads)
    figure, (ax,) = plots.panel_grid(1, 6.2, 4.6)
    upper = ~np.tri(pairs.heads, dtype=bool)
    sns.heatmap(table, mask=upper, ax=ax, cmap=plots.GAIN.reversed(), center=0, linewidths=0.4)
    for border in (1 + np.flatnonzero(np.diff(patterns[layer, order]))).tolist():
        corner = [0, border, border], [border, border, pairs.heads]
        ax.plot(*corner, color=plots.COLOURS["grey"], lw=1.2)
    ax.tick_params(length=0, labelsize=8, rotation=0)
    ax.set(xlabel="head", ylabel="pattern and head")
    ax.set_title(f"interaction in layer {one_based(layer)}, thousandths of the loss")
    return figure


def pairs_figure(results: Results) -> Figure:
    """How much more pairs of one pattern, and of like maps, interact than matched ones."""
    table = results.table("interaction above matched pairs")
    return plots.dots(table, colour="kind", label="interaction above matched pairs, thousandths")


def layers_figure(results: Results) -> Figure:
    """Change of the score by the number of layers that are reset or frozen."""
    names = {"from below": "reset, from below", "from above": "reset, from above"}
    names["frozen from below"] = "frozen, from below"
    return _changes(results, "gain with layers not fine-tuned", names, "layers", -2.0)


def heads_figure(results: Results) -> Figure:
    """Change of the score by the number of heads that are removed, in three orders."""
    names = {"ranked anew": "ranked again at each step", "random": "random orders"}
    names["another training's"] = "another run's order"
    return _changes(results, "gain with heads gone", names, "heads removed", -1.0)


def weights_figure(results: Results) -> Figure:
    """Change of the score by the share of weights that are set to zero, by which and when."""
    names = {
        f"{which}, {when}": f"{which}, {when} fine-tuning"
        for which in ("smallest weights", "random weights")
        for when in ("before", "after")
    }
    return _changes(results, "gain with weights gone", names, "weights set to zero, %", -1.0)


def _changes(
    results: Results, what: str, names: Mapping[str, str], x: str, border: float
) -> Figure:
    """Changes of the score in points, a panel for each task, a line for each state by its name."""
    table = results.table(what, state=list(names))
    table = table.assign(**{x: pd.to_numeric(table.kind)})
    figure = plots.lines(
        table.assign(name=pd.Categorical(table.state.map(names), list(names.values()))),
        x=x,
        colour="name",
        panel="task",
        label="change of the score, points",
        border={LIMIT: border},
        columns=3,
    )
    if len(table):  # bands may go on beyond
        room = max(0.25 * float(np.ptp(table.value)), 4.0)
        figure.axes[0].set_ylim(table.value.min() - room, max(table.value.max(), 0.0) + room)
    return figure


def halves_figure(results: Results) -> Figure:
    """Scores of runs with halves of the heads, and of what they are compared with."""
    table = results.table("score of half of the heads, trained again", state="trained")
    constant = results.table("score of half of the heads, trained again", state="compared with")
    constant = constant.set_index("task").value
    table["always one answer"] = table.task.map(constant).astype(float)
    return plots.dots(
        table.rename(columns={"kind": "heads kept"}),
        y="heads kept",
        panel="task",
        label="score × 100",
        marks={"always one answer": "|"},
        columns=3,
    )
