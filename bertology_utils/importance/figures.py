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
from ..plots.maps import CELL
from ..results import Results
from .ablations import SINK
from .agreement import DIFFERENT, ENOUGH, SAME
from .components import COMPONENTS, HEAD

RISE, SHARE = "rise of the loss without a head", "share of what heads differ by"
MEASURED = "rank correlation of two runs by examples"
PREDICTED, ANY_NUMBER = f"{MEASURED}, predicted", "any number"
SIZE, SINK_WEIGHT = "size of the effect of a head", "weight on [CLS]"
ABLATIONS = "rank correlation of heads' effects by two ways"
SHARED_TOP = "heads among the five most needed by two ways"
_SHADES = dict(
    zip(COMPONENTS, ("#1f3d5c", "#d9822b", "#8f3b76", "#c99bbb", "#7fa8c9", "#d5d8dc"), strict=True)
)


def by_run(results: Results, tasks: Sequence[str]) -> Figure:
    """What every head costs, a row for each task and a column for each fine-tuning run.

    Each task has a scale of its own, named at its left.

    Args:
        results: of notebook 9.
        tasks: by name; if there are rows of none of them, all that there are.
    """
    measured = list(dict.fromkeys(entry["task"] for entry in results.find(RISE)))
    rises = {
        task: np.array([entry["value"] for entry in results.find(RISE, task=task)])
        for task in [task for task in tasks if task in measured] or measured
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
    """The variance components of heads' effects, a bar for each task, by loss and by score, with the interval of the head's own."""
    table = results.table(SHARE)
    table["measured by"] = "by " + table.state
    label = "share of what heads differ by, %"
    figure = plots.stacked(table, y="task", panel="measured by", label=label, colours=_SHADES)
    own = table[table.kind == HEAD]
    rows = [task for task in own.task.cat.categories if task in set(own.task)]
    for ax, (_, part) in zip(figure.axes, own.groupby("measured by", sort=False), strict=False):
        at = [rows.index(task) + 0.3 for task in part.task]  # in the lower part of each bar
        ax.hlines(at, part.low, part.high, color="white", lw=3)
        ax.hlines(at, part.low, part.high, color="black", lw=1)
    return figure


def by_examples(results: Results) -> Figure:
    """Agreement of two runs by the number of examples: dots measured, lines predicted from the components.

    Dark: both runs are measured on the same examples; light: each on its own. Bars hold nine of ten
    random orders of the examples.
    """
    measured, predicted = results.table(MEASURED), results.table(PREDICTED)
    figure, axes = plots.panel_grid(measured.task.nunique(), 2.7, 2.5, sharey=True)
    looks = {SAME: (plots.COLOURS["blue"], "o"), DIFFERENT: (plots.COLOURS["orange"], "s")}
    for ax, (task, part) in zip(axes, measured.groupby("task", observed=True), strict=True):
        of_task = predicted[predicted.task == task]
        for state, (colour, marker) in looks.items():
            dots, line = part[part.state == state], of_task[of_task.state == state]
            line = line[line.kind != ANY_NUMBER]
            error = np.abs(dots[["low", "high"]].to_numpy().T - dots.value.to_numpy())
            ax.errorbar(
                dots.kind.astype(float), dots.value, error, fmt=marker, ms=4, lw=0.9, color=colour,
                label=f"{state}, measured",
            )  # fmt: skip
            ax.plot(
                line.kind.astype(float),
                line.value,
                color=colour,
                lw=1.2,
                label=f"{state}, predicted",
            )
        limit = of_task[of_task.kind == ANY_NUMBER].value
        ax.axhline(
            limit.iloc[0], color="black", ls="--", lw=0.9, label="with any number of examples"
        )
        ax.axhline(ENOUGH, **plots.charts.BORDER)
        ax.set(xscale="log", title=task, ylim=(-0.35, 1.02), xlabel="examples")
        ticks = [100, 1000, 10_000]
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.set_xlim(80, 13_000)
        ax.minorticks_off()
    for ax in axes[::4]:
        ax.set_ylabel("rank correlation\nof two runs")
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, fontsize=8)
    return figure


def sinks(results: Results, named: int = 2) -> Figure:
    """By how much a head's effect is larger by 1/L than by zero ablation, against its weight on [CLS]; a dot per head and run.

    Effects are in multiples of the root mean square of their task. Orange heads rest on [CLS].

    Args:
        results: of notebook 9.
        named: heads with the largest difference in each panel, whose names are written.
    """
    sizes = {
        (entry["task"], entry["training"], entry["state"]): np.asarray(entry["value"], dtype=float)
        for entry in results.find(SIZE)
    }
    tasks = list(dict.fromkeys(task for task, *_ in sizes))
    figure, axes = plots.panel_grid(len(tasks), 2.7, 2.6)
    for ax, task in zip(axes, tasks, strict=True):
        runs = sorted({run for of, run, _ in sizes if of == task})
        weights = [results.array(SINK_WEIGHT, task=task)] * len(runs)
        more = [sizes[task, run, "uniform"] - sizes[task, run, "zero"] for run in runs]
        x, y = np.array(weights), np.array(more)  # (runs, layers, heads)
        scale = np.sqrt(np.mean([sizes[task, run, "uniform"] ** 2 for run in runs])) or 1.0
        y = y / scale
        for rests, colour in ((False, "grey"), (True, "orange")):
            chosen = (x > SINK) == rests
            ax.plot(x[chosen], y[chosen], "o", ms=3.5, alpha=0.7, color=plots.COLOURS[colour])
        mean = y.mean(axis=0)
        for flat in np.argsort(-np.abs(mean), axis=None)[:named]:
            layer, head = np.unravel_index(flat, mean.shape)
            place = x.mean(axis=0)[layer, head], mean[layer, head]
            ax.annotate(
                head_name(layer, head), place, fontsize=7, xytext=(4, 2), textcoords="offset points"
            )
        ax.axhline(0, **plots.charts.ZERO)
        ax.axvline(SINK, **plots.charts.BORDER)
        ax.set(title=TASKS[task].title, xlabel="weight on [CLS] before fine-tuning", xlim=(0, 1))
    for ax in axes[::4]:
        ax.set_ylabel("effect by 1/L minus by zero")
    return figure


def ablations(results: Results) -> Figure:
    """Rank correlations of heads' effects by two ablations on different halves of the examples, a square for each task.

    On the diagonal an ablation agrees with itself: the ceiling. Below each is the number of heads
    that both have among their five most needed.
    """
    tasks = list(dict.fromkeys(entry["task"] for entry in results.find(ABLATIONS)))
    figure, axes = plots.panel_grid(len(tasks), 2.7, 2.6)
    for ax, task in zip(axes, tasks, strict=True):
        pairs = results.by("kind", ABLATIONS, task=task)
        tops = results.by("kind", SHARED_TOP, task=task)
        names = list(dict.fromkeys(name for pair in pairs for name in pair.split(" and ")))
        square, texts = (pd.DataFrame("", names, names, dtype=object) for _ in range(2))
        for pair, entry in pairs.items():
            one, other = pair.split(" and ")
            for place in ((one, other), (other, one)):
                square.loc[place] = entry["value"]
                texts.loc[place] = f"{entry['value']:.2f}\n{tops[pair]['value']:.1f}"
        ax.imshow(square.astype(float), cmap=plots.GAIN, vmin=-1, vmax=1)
        for at in np.ndindex(square.shape):
            ax.text(at[1], at[0], texts.iloc[at], ha="center", va="center", fontsize=7)
        ax.set_xticks(range(len(names)), names, rotation=40, fontsize=7)
        ax.set_yticks(range(len(names)), names, fontsize=7)
        ax.tick_params(length=0)
        ax.set_title(TASKS[task].title)
    return figure
