"""The figures of notebook 10: skill kept without heads, by halves of them, without layers or weights.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..results import Results
from .answers import ANOTHER_RUN, RANDOM_ORDER, RANKED
from .spec import ANY, SMALLEST

LIMIT = {"limit of the claim": 90.0}
KEPT = "skill kept, %"


def heads_figure(results: Results) -> Figure:
    """Skill kept by the number of heads that are removed, ranked by gradients: all tasks in one panel."""
    table = results.table("skill kept with heads removed", state=RANKED)
    table = table.assign(**{"heads removed": pd.to_numeric(table.kind)})
    return plots.lines(table, x="heads removed", colour="task", label=KEPT, border=LIMIT)


def orders_figure(results: Results) -> Figure:
    """Skill kept by the number of heads that are removed, in three orders."""
    names = {RANKED: "ranked again at each step", RANDOM_ORDER: "random orders"}
    names[ANOTHER_RUN] = "another run's order"
    return _kept(results, "skill kept with heads removed", names, "heads removed")


def halves_figure(results: Results) -> Figure:
    """Skill kept by halves of the heads that are trained again, and by what they are compared with."""
    table = results.table("skill kept by halves of the heads")
    table = table.rename(columns={"kind": "model"})
    return plots.dots(table, y="model", colour="task", label=KEPT, border=LIMIT)


def layers_figure(results: Results) -> Figure:
    """Skill kept by the number of layers that are reset or frozen."""
    names = {"from below": "reset, from below", "from above": "reset, from above"}
    names["frozen from below"] = "frozen, from below"
    return _kept(results, "skill kept with layers not fine-tuned", names, "layers")


def weights_figure(results: Results) -> Figure:
    """Skill kept by the share of weights that are set to zero, by which and when."""
    names = {f"{kind}, after": f"{kind}, after fine-tuning" for kind in (SMALLEST, ANY)}
    names[f"{SMALLEST}, before"] = f"{SMALLEST}, before fine-tuning"
    return _kept(results, "skill kept with weights set to zero", names, "weights set to zero, %")


def _kept(results: Results, what: str, names: Mapping[str, str], x: str) -> Figure:
    """Shares of the skill, a panel for each task, a line for each state by its name."""
    table = results.table(what, state=list(names))
    table = table.assign(**{x: pd.to_numeric(table.kind)})
    table["name"] = pd.Categorical(table.state.map(names), list(names.values()))
    table[["low", "high"]] = table[["low", "high"]].clip(-40, 140)  # wider bands hide the lines
    return plots.lines(table, x=x, colour="name", panel="task", label=KEPT, border=LIMIT, columns=4)
