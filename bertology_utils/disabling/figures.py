"""The figures of §4.6: the best head beside luck, every head's gain (Fig 8), what of it returns, and ways of disabling (Fig 9).

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .. import plots
from ..results import Results
from ..statistics import ONE_SIDED

REACH = 3.0  # points; the scale of single heads ends here
FURTHEST = -36.0  # points; a layer that costs more is drawn at the border
GAIN, BY_LOSS = "gain, points", "gain, % of the loss"
# §4.6: the largest and the smallest best gain over all tasks, and the best layer.
PAPER, PAPER_BEST, PAPER_LAYER = "the paper", {"MRPC": 1.2, "STS-B": 0.1}, {("RTE", 1): 3.2}
# Means over runs: rows, and how they are labelled.
ACROSS = "gain without a head, mean over runs"
P_ACROSS, P_EVERY = (
    f"p of the gain without a head, {which}" for which in ("mean over runs", "in every run")
)
BY_ABLATION = "gain without a head by loss, by ablation"
PLACES = ["task", "layer", "head"]
HELPS, NEEDED, NEITHER = "orange", "blue", "#b8bdc3"
EQUAL: dict[str, Any] = {"ls": ":", "color": "black"}
LAYERS_BY = {"uniform": "equal weights, 1/L", "zero": "zero"}


def sample(colour: str, marker: str = "o", **look: Any) -> dict[str, Any]:
    """How a legend shows a kind of dots; the colour is one of :data:`bertology_utils.plots.COLOURS` or matplotlib's."""
    return {"ls": "", "marker": marker, "color": plots.COLOURS.get(colour, colour)} | look


def legend(
    figure: Figure, samples: Mapping[str, Mapping[str, Any]], columns: int, **options: Any
) -> Figure:
    """A legend above the panels: by name how a line or a kind of dots looks; see :func:`sample`."""
    lines = [Line2D([], [], **look) for look in samples.values()]
    figure.legend(lines, list(samples), loc="outside upper center", ncols=columns, **options)
    return figure


def _compared(ax: Axes, low: float, high: float) -> None:
    """Two gains of the same heads beside each other: equal axes from ``low`` to ``high``, with zero and the diagonal."""
    ax.axline((0, 0), slope=1, lw=1, **EQUAL)
    ax.axhline(0, color=NEITHER, lw=0.8, zorder=0)
    ax.axvline(0, color=NEITHER, lw=0.8, zorder=0)
    ax.set(xlim=(low, high), ylim=(low, high))


def _ring(ax: Axes, x: Any, y: Any, size: float, **look: Any) -> None:
    ax.scatter(x, y, s=size, facecolors="none", zorder=4, **look)


def best_heads(results: Results) -> Figure:
    """A row for each task: the best head's gain in its own run, the luckiest null head's, and the chosen head's in other runs."""
    chance = results.table("largest gain without a head by chance")
    best = results.table("largest gain without a head")
    elsewhere = results.table("gain in other runs without the head chosen in one", state="score")
    tasks = best.task.cat.categories
    elsewhere = elsewhere.set_index("task").reindex(tasks)
    own = best.groupby("task", observed=True).value.agg(["mean", "min", "max"])
    luck = chance.groupby(["task", "kind"], observed=True).value.mean().unstack("kind")
    figure, (ax,) = plots.panel_grid(1, 9.5, 0.62 * len(tasks) + 1.3)
    at = np.arange(len(tasks))
    for shift, colour, marker, label, (value, low, high) in (
        (-0.27, "orange", "s", "the best head, in the run where it was chosen: mean, lowest and highest run",
         (own["mean"], own["min"], own["max"])),
        (0.0, "grey", "o", "the luckiest null head: median, up to the 95th percentile",
         (luck["median"], luck["median"], luck["95 %"])),
        (0.27, "blue", "^", "the head chosen in one run, in the other runs: mean and 95 % interval",
         (elsewhere.value, elsewhere.low, elsewhere.high)),
    ):  # fmt: skip
        colour = plots.COLOURS[colour]
        ax.hlines(at + shift, low, high, colors=colour, lw=1.6)
        ax.plot(value, at + shift, marker, color=colour, ms=6, label=label)
    paper = [(PAPER_BEST[task], row - 0.27) for row, task in enumerate(tasks) if task in PAPER_BEST]
    if paper:
        ax.plot(*zip(*paper, strict=True), "D", color="black", ms=6, label="the paper's best head")
    ax.hlines(at[1:] - 0.5, *ax.get_xlim(), colors="#e6e8eb", lw=0.6)
    ax.axvline(0, color="black", lw=0.8)
    names = [f"{task}\n{n:,.0f} rows" if n > 0 else task for task, n in elsewhere.n.items()]
    ax.set_yticks(at, names)
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel=GAIN, ylim=(len(tasks) - 0.5, -0.5))
    figure.legend(loc="outside upper center", ncols=1)
    return figure


def heads_across(results: Results) -> Figure:
    """The gain in score without every head, mean over the runs of each task, as a map (Fig 8).

    Red is a gain, blue a loss. A + marks a gain and a − a loss that is significant, corrected over
    all heads.
    """
    table = results.table(ACROSS, state="score")
    figure = plots.head_grid(plots.head_arrays(table), GAIN, (-REACH, REACH), plots.GAIN)
    p = results.table(P_ACROSS, state="score")
    for ax, title in zip(figure.axes, table.task.cat.categories, strict=False):
        for side, marker in (("better", "+"), ("worse", "_")):
            sure = p[(p.task == title) & (p.kind == side) & (p.value < ONE_SIDED)]
            at = sure["head"] - 1, sure["layer"] - 1
            ax.plot(*at, marker, ms=9, color="white", mew=3.5)
            ax.plot(*at, marker, ms=7, color="black", mew=1.6)
    return figure


def of_heads(results: Results) -> pd.DataFrame:
    """Every head's mean gain by loss over the runs of each task, and whether it is significant.

    Returns:
        By task, layer and head (from 1): "value", "low" and "high" in percent of the loss;
        "better" and "worse", significant over the runs' mean, and "every", better in every run.
    """
    table = results.table(ACROSS, state="loss").set_index(PLACES)
    for name, what, side in (
        ("better", P_ACROSS, "better"),
        ("worse", P_ACROSS, "worse"),
        ("every", P_EVERY, "better"),
    ):
        p = results.table(what, state="loss", kind=side).set_index(PLACES).value
        table[name] = p.reindex(table.index) < ONE_SIDED
    return table


def _colours(heads: pd.DataFrame) -> np.ndarray:
    """A colour for each head of :func:`of_heads`."""
    colours = [plots.COLOURS[HELPS], plots.COLOURS[NEEDED]]
    return np.select([heads.better, heads.worse], colours, NEITHER)


def ranked_heads(results: Results) -> Figure:
    """All heads of each task in the order of their mean gain by loss over runs, with 95 % intervals.

    Those whose disabling helps significantly (corrected over all heads) are orange, those that are
    needed blue. The best three of the former have names; a diamond is one that is significant in
    every run.
    """
    table = of_heads(results)
    tasks = table.index.get_level_values("task").unique()
    figure, axes = plots.panel_grid(len(tasks), 2.5, 3.1)
    for ax, task in zip(axes, tasks, strict=True):
        heads = table.loc[task].sort_values("value", ascending=False)
        colours, ranks = _colours(heads), np.arange(len(heads))
        ax.hlines(ranks, heads.low, heads.high, colors=colours, lw=0.8)
        ax.scatter(heads.value, ranks, s=8, c=colours, zorder=3)
        every = heads.every.to_numpy()
        ax.scatter(heads.value[every], ranks[every], s=26, c=colours[every], marker="D", zorder=4)
        room = len(heads) / 12  # a name's height, in heads
        for place, (at, head) in enumerate(heads[heads.better].head(3).iterrows()):
            end = head.high, heads.index.get_loc(at)
            look: dict[str, Any] = {"fontsize": 9, "ha": "right", "va": "center"}
            look |= {"xytext": (0.98, place * room), "textcoords": ("axes fraction", "data")}
            look |= {"arrowprops": {"arrowstyle": "-", "lw": 0.5, "color": NEITHER}}
            ax.annotate(f"({at[0]}, {at[1]})", end, **look)
        ax.axvline(0, color="black", lw=0.6)
        low, high, best = heads.low.min(), heads.high.max(), heads.high.iloc[0]
        ax.set_xlim(max(low, -2 * max(best, -heads.value.median(), 1e-9)), high * 2.6)
        ax.set(title=str(task), xlabel=BY_LOSS, yticks=[], ylim=(len(heads), -4))
    for ax in axes[::4]:
        ax.set_ylabel("heads, best to disable on top")
    samples = {
        "the loss is significantly lower without the head": sample(HELPS),
        "significantly lower in every run": sample(HELPS, "D"),
        "significantly higher": sample(NEEDED),
    }
    return legend(figure, samples, columns=3)


def both_studies(results: Results, again: Results) -> pd.DataFrame:
    """:func:`of_heads` of this evidence, for the tasks of another study, with that one's columns as "… again"."""
    return of_heads(results).join(of_heads(again), how="inner", rsuffix=" again")


def returning(both: pd.DataFrame) -> pd.DataFrame:
    """How much of their gain the heads keep in another study that do significant harm in this evidence, or are needed.

    Args:
        both: from :func:`both_studies`.
    """
    named = {"does harm here": both[both.better], "is needed here": both[both.worse]}
    columns = {}
    for name, heads in named.items():
        by_task = heads.groupby("task", observed=False)
        columns[name] = pd.DataFrame(
            {
                "heads": by_task.size(),
                "mean gain here, %": by_task.value.mean(),
                "in the confirmatory study, %": by_task["value again"].mean(),
            }
        )
    table = pd.concat(columns, names=["head"]).swaplevel()
    tasks = both.index.get_level_values("task").unique()
    table = table.loc[pd.MultiIndex.from_product([tasks, list(named)])].round(1)
    return table.astype(object).where(table.notna(), "–")  # of no heads there is no mean


def returning_heads(results: Results, again: Results) -> Figure:
    """Every head's gain by loss in this evidence and in another study, a panel for each task of both.

    Colours are of this evidence, as in :func:`ranked_heads`; rings are heads that do
    significant harm in the other study. Heads that are needed more than the best ones help lie beyond
    the frame.
    """
    table = both_studies(results, again)
    tasks = table.index.get_level_values("task").unique()
    figure, axes = plots.panel_grid(len(tasks), 2.5, 2.7)
    for ax, task in zip(axes, tasks, strict=True):
        heads = table.loc[task].sort_values("better")  # the orange ones in front
        ax.scatter(heads.value, heads["value again"], s=22, c=_colours(heads), zorder=3)
        ringed = heads[heads["better again"]]
        _ring(ax, ringed.value, ringed["value again"], 85, edgecolors="black", linewidths=1.2)
        reach = 1.15 * max(heads.value.max(), heads["value again"].max())
        _compared(ax, -reach, reach)
        ax.set(title=str(task), xlabel="gain here, %", aspect="equal")
    axes[0].set_ylabel("confirmatory gain, %")
    samples = {
        "does significant harm here": sample(HELPS),
        "is needed here": sample(NEEDED),
        "does significant harm in the confirmatory study": sample("black", mfc="none", ms=9),
        "equally much in both": EQUAL,
    }
    return legend(figure, samples, columns=4)


def layers_by_ablation(results: Results) -> Figure:
    """The gain without every layer by equal weights and by zero, mean over runs (Fig 9, by two ways).

    A dotted line is the gain at which a model is no better than always the same answer.
    """
    table = results.table("gain without a layer, by ablation", state=list(LAYERS_BY))
    table[PAPER] = [PAPER_LAYER.get(at, np.nan) for at in zip(table.task, table.layer, strict=True)]
    table["ablation"] = table.state.map(LAYERS_BY)
    look: dict[str, Any] = {"label": GAIN, "marks": {PAPER: "D"}, "limits": (FURTHEST, None)}
    figure = plots.dots(table, y="layer", colour="ablation", panel="task", **look)
    whole = results.table("score of the whole model").groupby("task", observed=True).value.mean()
    floor = results.table("score of always the same answer").set_index("task").value - whole
    for ax, task in zip(figure.axes, table.task.cat.categories, strict=False):
        if floor.get(task, -np.inf) > FURTHEST:
            ax.axvline(floor[task], color="black", lw=1.2, ls=":")
    return figure


def heads_by_ablation(results: Results) -> Figure:
    """Every head's gain by loss by equal weights and by zero, a panel for each task, coloured by the head's weight on [CLS].

    The head on which the two ways disagree most over all tasks is ringed.
    """
    table = results.table(BY_ABLATION, state=list(LAYERS_BY)).set_index([*PLACES, "state"])
    heads = table.value.unstack("state").join(
        results.table("weight on [CLS]").set_index(PLACES).value.rename("rests")
    )
    apart = (heads.uniform - heads.zero).abs()
    apart /= apart.groupby("task", observed=True).transform("max")  # losses of tasks differ
    at = apart.groupby(["layer", "head"]).mean().idxmax()
    tasks = heads.index.get_level_values("task").unique()
    figure, axes = plots.panel_grid(len(tasks), 2.45, 2.6)
    for ax, task in zip(axes, tasks, strict=True):
        own = heads.loc[task]
        dots = ax.scatter(
            own.zero, own.uniform, c=own.rests, cmap=plots.MAP, vmin=0, vmax=1, s=24,
            edgecolors="#8a8f98", linewidths=0.5, zorder=3,
        )  # fmt: skip
        orange = plots.COLOURS["orange"]
        _ring(ax, own.zero[at], own.uniform[at], 90, edgecolors=orange, linewidths=2)
        ends = own[["zero", "uniform"]].to_numpy()
        room = 0.08 * np.ptp(ends)
        _compared(ax, ends.min() - room, ends.max() + room)
        ax.set(title=str(task), xlabel="by zero, %")
    for ax in axes[::4]:
        ax.set_ylabel("by 1/L, %")
    samples = {
        f"head ({at[0]}, {at[1]})": sample("orange", mfc="none", ms=9, mew=2),
        "the same by both ways": EQUAL,
    }
    legend(figure, samples, columns=2)
    figure.colorbar(dots, ax=figure.axes, label="weight on [CLS]", aspect=30, pad=0.01)
    return figure
