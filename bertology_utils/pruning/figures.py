"""The figures of notebook 10: the skill that models keep without heads, with half of them, or with layers not fine-tuned.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..results import NUMBERS, Results

SCORES = "score of half of the heads, trained again"
SKILL = "skill kept, %"
SEEN = (-50.0, 150.0)  # wider intervals would hide the lines
WHOLE, BASELINE = "whole model", "majority-class baseline"
GREY = plots.COLOURS["grey"]


def skill_kept(results: Results, what: str, **labels: object) -> pd.DataFrame:
    """Scores, or changes of the score, as the share of the whole model's skill that is kept, in percent.

    The skill of a model is its score above that of always giving the most frequent answer, on all
    dev rows. It is divided by as if it were known exactly.

    Args:
        results: of notebook 10.
        what, labels: see :meth:`bertology_utils.results.Results.table`.
    """
    scores = results.table(SCORES).set_index(["kind", "task"]).value
    table = results.table(what, **labels)
    if table.empty:
        return table
    whole, baseline = (
        table.task.map(scores[kind]).astype(float) for kind in ("all heads", "always one answer")
    )
    nothing = baseline.where(table.unit == "score", baseline - whole)  # no skill: a score, a change
    for name in NUMBERS:
        table[name] = 100 * (table[name] - nothing) / (whole - baseline)
    return table


def heads_figure(results: Results) -> Figure:
    """Skill kept by the number of heads that are removed, ranked and in random orders."""
    names = {"ranked anew": "least important heads first", "random": "random orders"}
    table = skill_kept(results, "gain with heads gone", state=list(names))
    return _lines(table, names, "heads removed")


def layers_figure(results: Results) -> Figure:
    """Skill kept by the number of lowest layers that are reset or frozen."""
    names = {
        "frozen from below": "frozen during fine-tuning",
        "from below": "reset after fine-tuning",
    }
    table = skill_kept(results, "gain with layers not fine-tuned", state=list(names))
    none = table.drop_duplicates(["task", "state"]).assign(kind=0, value=100.0, low=None, high=None)
    return _lines(pd.concat([none, table]), names, "lowest layers reset or frozen")


def _lines(table: pd.DataFrame, names: Mapping[str, str], x: str) -> Figure:
    """Skill kept, a panel for each task, a line for each state by its name."""
    table = table.assign(**{x: pd.to_numeric(table.kind)})
    table["name"] = pd.Categorical(table.state.map(names), list(names.values()))
    for end in ("low", "high"):
        table[end] = table[end].astype(float).fillna(table.value).clip(*SEEN)
    colours = (plots.COLOURS["blue"], plots.COLOURS["orange"])
    figure = plots.lines(
        table, x=x, colour="name", panel="task", label=SKILL, columns=3, colours=colours
    )
    if len(table):
        for ax in figure.axes:
            ax.axhline(100, color=GREY, lw=0.8, zorder=0)
            ax.axhline(0, color=GREY, lw=0.8, zorder=0)
        first = figure.axes[0]  # lines begin at 100 and fall, so that there is room for two names
        where: dict[str, Any] = {
            "transform": first.get_yaxis_transform(),
            "fontsize": 8,
            "color": "#5a5f68",
        }
        first.text(0.99, 102, WHOLE, ha="right", va="bottom", **where)
        first.text(0.03, -3, BASELINE, ha="left", va="top", **where)
    return figure


def halves_figure(results: Results) -> Figure:
    """Skill of models that were fine-tuned with half of their heads, and of a control."""
    names = {
        "good heads": "good half",
        "random heads": "random half",
        "bad heads": "bad half",
        "labels shuffled": "good half,\nshuffled labels",
    }
    table = skill_kept(results, SCORES, kind=list(names), state="trained")
    table["heads kept"] = pd.Categorical(table.kind.map(names), list(names.values()))
    figure = plots.dots(table, y="heads kept", colour="task", label=SKILL, limits=SEEN)
    if len(table):
        ax = figure.axes[0]
        ax.axvline(100, color=GREY, lw=0.8, zorder=0)
        ax.set_xticks(
            [-50, 0, 50, 100, 150], ["−50", f"0\n{BASELINE}", "50", f"100\n{WHOLE}", "150"]
        )
        ax.set_ylabel("")
    return figure
