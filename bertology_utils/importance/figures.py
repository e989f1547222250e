"""The figures of notebook 9; each takes the rows of one run."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..common import head_name
from ..glue import TASKS
from ..plots.charts import SERIES
from ..plots.maps import CELL
from ..results import Results
from .agreement import ENOUGH
from .components import COMPONENTS
from .luck import PUBLISHED, Published, largest_gain

RISE, SHARE = "rise of the loss without a head", "share of what heads differ by"
EXPECTED = "agreement of two measurements, by trainings"
COUNTED = "agreement found between trainings"
ABLATIONS = "rank correlation of heads' effects by two ways"
_SHADES = dict(
    zip(COMPONENTS, ("#1f3d5c", "#d9822b", "#8f3b76", "#c99bbb", "#7fa8c9", "#d5d8dc"), strict=True)
)


def by_run(results: Results, tasks: Sequence[str]) -> Figure:
    """What every head costs, a row for each task and a column for each fine-tuning run.

    Each task has a scale of its own, named at its left.

    Args:
        results: of notebook 9.
        tasks: by name.
    """
    rises = {
        task: np.array([entry["value"] for entry in results.find(RISE, task=task)])
        for task in tasks
    }  # (runs, layers, heads)
    columns, (layers, heads) = max(map(len, rises.values())), next(iter(rises.values())).shape[1:]
    size = CELL * heads * columns + 1.9, (CELL * layers + 0.35) * len(rises) + 0.4
    figure, axes = plt.subplots(len(rises), columns, figsize=size, squeeze=False)
    for row, (task, several) in zip(axes, rises.items(), strict=True):
        scale = float(np.percentile(np.abs(several), 97))
        for ax, costs in zip(row, several, strict=False):
            mesh = plots.head_map(ax, costs / scale, (-1, 1), plots.GAIN.reversed())
            ax.set(xlabel="head" if row is axes[-1] else "", ylabel="")
        for ax in row[len(several) :]:
            ax.set_axis_off()
        row[0].set_ylabel(f"{TASKS[task].title}\n(scale ±{scale:.3f})\nlayer", fontsize=9)
    for number, ax in enumerate(axes[0], 1):
        ax.set_title(f"run {number}", fontsize=9)
    bar = figure.colorbar(mesh, ax=axes, extend="both", aspect=12 * len(rises))
    bar.set_label("change of the loss, on the row's scale")
    bar.set_ticks(
        [-1, 0, 1],
        labels=["loss lower\nwithout it", "no change", "loss higher\nwithout it"],
        fontsize=8,
    )
    return figure


def needed(results: Results, count: int = 8) -> Figure:
    """The heads that the first run of each task needs most, and what they cost in every run."""
    rows = results.table(RISE)
    first = rows[rows.training == 1].sort_values("value", ascending=False)
    first = first.groupby("task", observed=True).head(count)
    first = first.assign(rank=first.groupby("task", observed=True).cumcount() + 1)
    table = rows.merge(first[["task", "layer", "head", "rank"]], on=["task", "layer", "head"])
    chooser = "run 1, which chose them"
    table["run"] = np.where(table.training == 1, chooser, "other runs")
    names = {
        (task, rank): head_name(layer - 1, head - 1)
        for task, rank, layer, head in zip(
            first.task, first["rank"], first.layer, first["head"], strict=True
        )
    }
    figure, axes = plots.panel_grid(table.task.nunique(), 3.2, 0.25 * count + 0.9, columns=3)
    for ax, (task, part) in zip(axes, table.groupby("task", observed=True), strict=True):
        for run, colour, marker in (
            ("other runs", plots.COLOURS["grey"], "o"),
            (chooser, plots.COLOURS["orange"], "s"),
        ):
            dots = part[part["run"] == run]
            ax.plot(dots.value, dots["rank"], marker, ms=5, color=colour, alpha=0.8, label=run)
        ranks = sorted(part["rank"].unique())
        ax.set_yticks(ranks, [names[task, rank] for rank in ranks])
        ax.axvline(0, color="black", lw=0.8)
        ax.set(ylim=(count + 0.5, 0.5), title=task, xlabel="rise of the loss")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def components(results: Results) -> Figure:
    """The variance components of heads' effects, a bar for each task, by loss and by score."""
    table = results.table(SHARE)
    table["measured by"] = "by " + table.state
    label = "share of what heads differ by, %"
    return plots.stacked(table, y="task", panel="measured by", label=label, colours=_SHADES)


def reliability(results: Results) -> Figure:
    """Agreement of two measurements by the number of runs: lines expected from the components, hollow signs counted."""
    table = results.table(EXPECTED)
    table = table.assign(runs=table.kind.astype(float))
    colours = dict(zip(table.task.cat.categories, SERIES, strict=False))
    figure = plots.lines(
        table,
        x="runs",
        colour="task",
        panel="state",
        label="agreement of two measurements",
        colours=colours,
        border={f"an agreement of {ENOUGH}": ENOUGH},
    )
    counted = results.table(COUNTED)
    for ax, statement in zip(figure.axes, dict.fromkeys(table.state), strict=True):
        for task, part in counted[counted.state == statement].groupby("task", observed=True):
            at = part.kind.astype(float)
            ax.plot(at, part.value, "o", ms=6, mfc="none", color=colours[task])
        ax.set(ylim=(-0.5, 1.02), xlabel="fine-tuning runs")
    return figure


def ablations(results: Results) -> Figure:
    """Rank correlations of heads' effects by two ablations, the pairs as a square."""
    pairs = results.by("kind", ABLATIONS)
    if not pairs:  # the first task was not learned
        return plots.dots(results.table(ABLATIONS))
    names = list(dict.fromkeys(name for pair in pairs for name in pair.split(" and ")))
    square = pd.DataFrame(np.eye(len(names)), names, names)
    for pair, entry in pairs.items():
        one, other = pair.split(" and ")
        square.loc[one, other] = square.loc[other, one] = entry["value"]
    figure, ax = plt.subplots(figsize=(4.2, 3.4))
    task = TASKS[next(iter(pairs.values()))["task"]].title
    plots.table_map(ax, square, (-1, 1), f"{task}, one run", plots.GAIN)
    return figure


def luck(results: Results, published: Sequence[Published] = PUBLISHED, most: int = 60) -> Figure:
    """The largest gain of idle heads by how many answers each flips, with published gains and measured rates.

    Args:
        results: of notebook 9, whose heads' rates are drawn below.
        published: a panel for each; put your own here.
        most: answers flipped.
    """
    figure, axes = plots.panel_grid(len(published), 4.9, 3.6)
    flips = np.arange(1, most + 1)
    for ax, one in zip(axes, published, strict=True):
        sure = [largest_gain([int(count)], one.among, most) for count in flips]
        low, middle, high = (
            np.array([np.searchsorted(each, at) for each in sure]) for at in (0.05, 0.5, 0.95)
        )
        points, grey = 100 / one.n, plots.COLOURS["grey"]
        label = f"the luckiest of {one.among} idle {one.what}s: median, and nine cases in ten"
        ax.fill_between(
            flips, low * points, high * points, color=grey, alpha=0.35, lw=0, step="mid"
        )
        ax.step(flips, middle * points, where="mid", color=grey, label=label)
        ax.axhline(100 * one.gain, color="black", lw=1.5, label=f"the paper: +{100 * one.gain:.1f}")
        if entries := results.find(f"answers that a {one.what} turns", task=one.task):
            flipped = np.concatenate(
                [one.n * np.ravel(entry["value"]) / entry["n"] for entry in entries]
            )
            blue, height = plots.COLOURS["blue"], np.full(len(flipped), -0.5)
            ax.plot(np.minimum(flipped, most + 1), height, "|", ms=9, color=blue, alpha=0.5)
            label = f"MiniLM: each {one.what}; median"
            ax.plot(np.median(flipped), -0.5, "D", ms=6, color=blue, label=label)
        ax.set(
            title=f"{TASKS[one.task].title}: the best of {one.among} {one.what}s, n = {one.n}",
            xlabel=f"answers that a {one.what} flips",
            ylabel="largest gain, points",
            xlim=(0, most + 2),
        )
        ax.legend(fontsize=7.5, loc="upper left")
        ax.set_ylim(top=1.45 * max(high[-1] * points, 100 * one.gain))
    return figure
