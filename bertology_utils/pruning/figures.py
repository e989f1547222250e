"""The figures of notebook 10: the skill that models keep without heads, with half of them, or with layers not fine-tuned.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..results import Results
from .answers import RANDOM_ORDER, RANKED
from .spec import BAD, GOOD, RANDOM

KEPT = "skill kept, %"
SEEN = (-50.0, 150.0)  # wider intervals would hide the lines
ENOUGH = {"nine tenths": 90.0}
WHOLE, BASELINE = "whole model", "majority-class baseline"
GREY = plots.COLOURS["grey"]


def heads_figure(results: Results) -> Figure:
    """Skill kept by the number of heads that are removed, ranked and in random orders."""
    names = {RANKED: "least important heads first", RANDOM_ORDER: "random orders"}
    table = results.table("skill kept with heads removed", state=list(names))
    return _lines(table, names, "heads removed")


def layers_figure(results: Results) -> Figure:
    """Skill kept by the number of lowest layers that are reset, and with the lowest third frozen."""
    reset, frozen = "from below", "frozen from below"
    names = {reset: "reset after fine-tuning", frozen: "frozen during fine-tuning"}
    table = results.table("skill kept with layers not fine-tuned", state=list(names))
    none = table[table.state == reset].drop_duplicates("task")
    none = none.assign(kind=0, value=100.0, low=None, high=None)
    figure = _lines(pd.concat([none, table]), names, "lowest layers reset or frozen")
    ends = table[table.state == frozen].set_index("task")[["kind", "low", "high"]].astype(float)
    for ax in figure.axes:  # a band has no width at the only number of frozen layers
        if ax.get_title() in ends.index:
            ax.vlines(*ends.loc[ax.get_title()].clip(*SEEN), color=plots.COLOURS["orange"], lw=1.8)
    return figure


def _lines(table: pd.DataFrame, names: Mapping[str, str], x: str) -> Figure:
    """Skill kept, a panel for each task, a line for each state by its name."""
    table = table.assign(**{x: pd.to_numeric(table.kind)})
    table["name"] = pd.Categorical(table.state.map(names), list(names.values()))
    for end in ("low", "high"):
        table[end] = table[end].astype(float).fillna(table.value).clip(*SEEN)
    colours = [plots.COLOURS[name] for name in ("blue", "orange")]
    figure = plots.lines(
        table, x=x, colour="name", panel="task", label=KEPT, colours=colours, border=ENOUGH
    )
    if len(table):
        for ax in figure.axes:
            ax.axhline(100, color=GREY, lw=0.8, zorder=0)
            ax.axhline(0, color=GREY, lw=0.8, zorder=0)
        first = figure.axes[0]  # lines begin at 100 and fall, so that there is room for two names
        where: dict[str, Any] = {"fontsize": 8, "color": "#5a5f68"}
        where["transform"] = first.get_yaxis_transform()
        first.text(0.99, 102, WHOLE, ha="right", va="bottom", **where)
        first.text(0.03, -3, BASELINE, ha="left", va="top", **where)
    return figure


def halves_figure(results: Results) -> Figure:
    """Skill of models that were fine-tuned with half of their heads, and of what they are compared with."""
    names = {
        GOOD: "good half",
        RANDOM: "random half",
        BAD: "bad half",
        "random start": "random start,\nall heads",
        "bag of words": "bag of words",
    }
    table = results.table("skill kept by halves of the heads", kind=list(names))
    table["model"] = pd.Categorical(table.kind.map(names), list(names.values()))
    figure = plots.dots(table, y="model", colour="task", label=KEPT, limits=SEEN)
    if len(table):
        ax = figure.axes[0]
        ax.axvline(100, color=GREY, lw=0.8, zorder=0)
        ax.axvline(next(iter(ENOUGH.values())), **plots.BORDER)
        ax.set_xticks(
            [-50, 0, 50, 100, 150], ["−50", f"0\n{BASELINE}", "50", f"100\n{WHOLE}", "150"]
        )
        ax.set_ylabel("")
    return figure
