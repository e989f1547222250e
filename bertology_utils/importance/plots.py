"""The figures of notebook 9, from rows of results: ``runs`` are tables by whose they are, as :attr:`Lab.runs` gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .. import plots
from ..common import head_name
from ..glue import TASKS
from ..results import Runs
from .agreement import ENOUGH, STATEMENTS
from .components import COMPONENTS
from .luck import PUBLISHED, Published, largest_gain

RISE, SHARE, AGREEMENT, MEASURED = (
    "rise of the loss without a head",
    "share of what heads differ by",
    "agreement of two measurements",
    "agreement found between trainings",
)
_SHADES = dict(
    zip(COMPONENTS, ("#1f3d5c", "#d9822b", "#8f3b76", "#c99bbb", "#7fa8c9", "#d5d8dc"), strict=True)
)
_OF_TASK = dict(
    zip(
        TASKS,
        ("#2f5d8a", "#d9822b", "#3f8f6b", "#7c5c8e", "#b5483a", "#8a8f98", "#1a1a1a"),
        strict=True,
    )
)
_MARKS = dict(zip(TASKS, "osD^vPX", strict=True))


def by_training(runs: Runs, tasks: Sequence[str]) -> Figure:
    """A figure of what every head costs, a row for each task and a column for each training, of one run.

    Each task has a scale of its own, at its left.

    Args:
        runs: the first that measured some of these tasks is drawn.
        tasks: by name.
    """
    name, found = _rises(runs, tasks)
    columns, (layers, heads) = max(map(len, found.values())), next(iter(found.values())).shape[1:]
    size = 2.0 * columns + 1.4, (0.16 * layers + 0.45) * len(found) + 0.4
    figure, axes = plt.subplots(len(found), columns, figsize=size, squeeze=False)
    for row, (task, several) in zip(axes, found.items(), strict=True):
        scale = float(np.percentile(np.abs(several), 97))
        for ax, costs in zip(row, several, strict=False):
            plots.heatmap(
                ax, costs / scale, limits=(-1, 1), cmap=plots.GAIN.reversed(), colour_bar=False
            )
            ax.collections[0].set_edgecolor("#d5d8dc")
            ax.set(xlabel="", ylabel="")
            ax.set_xticks(
                np.array([1, heads // 2, heads]) - 0.5, ["1", str(heads // 2), str(heads)]
            )
        for ax in row[len(several) :]:
            ax.set_axis_off()
        row[0].set_ylabel(f"{TASKS[task].title}\n(scale ±{scale:.3f})\nlayer", fontsize=9)
    for number, ax in enumerate(axes[0], 1):
        ax.set_title(f"training {number}")
    for ax in axes[-1]:
        ax.set_xlabel("head")
    bar = figure.colorbar(axes[0, 0].collections[0], ax=axes, extend="both", aspect=12 * len(found))
    bar.set_label("change of the loss, on the row's scale")
    figure.suptitle(name)
    bar.set_ticks(
        [-1, 0, 1],
        labels=["loss lower\nwithout it", "no change", "loss higher\nwithout it"],
        fontsize=8,
    )
    return figure


def needed(runs: Runs, tasks: Sequence[str], count: int = 8) -> Figure:
    """A figure of the heads that the first training needs most, and what they cost in every training; runs as above."""
    _, found = _rises(runs, tasks)
    count = min(count, next(iter(found.values()))[0].size)
    figure, axes = plots.panel_grid(len(found), 3.2, 0.25 * count + 1.1)
    for ax, (task, costs) in zip(axes, found.items(), strict=True):
        flat = costs.reshape(len(costs), -1)
        top = np.argsort(-flat[0])[:count]
        names = [head_name(*divmod(int(at), costs.shape[2])) for at in top]
        for other in flat[1:]:
            ax.plot(
                other[top],
                range(count),
                "o",
                ms=5,
                mfc="white",
                color=plots.COLOURS["grey"],
                label="other trainings",
            )
        ax.plot(
            flat[0][top],
            range(count),
            "s",
            ms=5,
            color=plots.COLOURS["orange"],
            label="training 1, which chose them",
        )
        ax.axvline(0, color="black", lw=0.8)
        ax.set_yticks(range(count), names)
        ax.set(ylim=(count - 0.5, -0.5), xlabel="rise of the loss", title=TASKS[task].title)
        ax.xaxis.set_major_locator(MaxNLocator(4))
    _legend(figure, axes[0])
    return figure


def _rises(runs: Runs, tasks: Sequence[str]) -> tuple[str, dict[str, np.ndarray]]:
    """The first run that measured some of these tasks: its name, and by task (trainings, layers, heads)."""
    measured = {
        name: {
            task: np.array([one["value"] for one in entries])
            for task in tasks
            if (entries := run.find(RISE, task=task))
        }
        for name, run in runs.items()
    }
    return next(item for item in measured.items() if item[1])


def stacked(runs: Runs) -> Figure:
    """A figure of the variance components, a bar for each task and run, by loss and by score."""
    panels = {state: f"by {state}" for state in ("loss", "score")}
    rows = [
        (f"{TASKS[task].title}, {name}", run, task)
        for name, run in runs.items()
        for task in dict.fromkeys(entry["task"] for entry in run.find(SHARE))
    ]
    figure, axes = plt.subplots(1, 2, figsize=(11, 0.34 * len(rows) + 1.5), sharey=True)
    for ax, (state, title) in zip(axes, panels.items(), strict=True):
        left = np.zeros(len(rows))
        for part, colour in _SHADES.items():
            found = [run.find(SHARE, task=task, state=state, kind=part) for _, run, task in rows]
            if not any(found):
                continue
            width = np.array([one[0]["value"] if one else 0.0 for one in found])
            ax.barh(range(len(rows)), width, left=left, color=colour, label=part, height=0.78)
            for at in np.flatnonzero(width >= 0.05):
                text = {"color": "white" if part in COMPONENTS[:3:2] else "black", "fontsize": 8}
                ax.text(
                    left[at] + width[at] / 2,
                    at,
                    f"{100 * width[at]:.0f}",
                    ha="center",
                    va="center",
                    zorder=5,
                    **text,
                )
            left += width
        ax.axvline(0.5, color="black", lw=1, ls=":", alpha=0.5)
        ax.set(
            xlim=(0, 1),
            ylim=(len(rows) - 0.5, -0.5),
            title=title,
            xlabel="share of what heads differ by, %",
        )
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
        ax.set_yticks(range(len(rows)), [label for label, *_ in rows])
    _legend(figure, axes[0])
    return figure


def curves(runs: Runs, over: str = "trainings") -> Figure:
    """A figure of agreement by the number of trainings, or of examples, a panel for each statement, of the first run.

    Args:
        runs: as above.
        over: "trainings" or "examples".
    """
    run = next(iter(runs.values()))
    figure, axes = plots.panel_grid(len(STATEMENTS), 2.9, 2.9, sharey=True)
    for ax, statement in zip(axes, STATEMENTS, strict=True):
        for entry in run.find(f"{AGREEMENT}, by {over}", state=statement):
            look: dict[str, Any] = {
                "color": _OF_TASK[entry["task"]],
                "marker": _MARKS[entry["task"]],
                "ms": 4,
            }
            ax.plot(
                [float(kind) for kind in entry["kinds"]],
                _numbers(entry),
                **look,
                label=TASKS[entry["task"]].title,
            )
        for entry in run.find(MEASURED, state=statement) if over == "trainings" else []:
            look = {
                "color": _OF_TASK[entry["task"]],
                "marker": _MARKS[entry["task"]],
                "mfc": "white",
                "ms": 6,
                "ls": "",
            }
            ax.plot([float(kind) for kind in entry["kinds"]], _numbers(entry), **look)
        ax.axhline(ENOUGH, color="black", lw=1, ls=":")
        ax.set(ylim=(-0.5 if over == "trainings" else -0.12, 1.02), title=statement, xlabel=over)
        if over == "trainings":
            ax.set_xticks([1, 2, 3, 4, 5])
        else:
            ax.set_xscale("log")
            ax.set_xticks(
                [100, 200, 400, 1000, 4000], ["100", "200", "400", "1,000", "4,000"], fontsize=8
            )
            ax.minorticks_off()
    axes[0].set_ylabel("agreement of two measurements")
    _legend(figure, axes[0])
    return figure


def ways(runs: Runs, what: str) -> Figure:
    """A figure of the rank correlations between ways of disabling, a panel for each run and task."""
    found = {
        (name, task): run.by("kind", what, task=task)
        for name, run in runs.items()
        for task in dict.fromkeys(entry["task"] for entry in run.find(what))
    }
    figure, axes = plots.panel_grid(len(found), 3.3, 3.0)
    for ax, ((name, task), pairs) in zip(axes, found.items(), strict=True):
        names = list(dict.fromkeys(way for pair in pairs for way in pair.split(" and ")))
        square = np.eye(len(names))
        for pair, entry in pairs.items():
            a, b = (names.index(way) for way in pair.split(" and "))
            square[a, b] = square[b, a] = entry["value"]
        ax.imshow(square, cmap=plots.GAIN, vmin=-1, vmax=1)
        for (a, b), value in np.ndenumerate(square):
            ax.text(
                b,
                a,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if abs(value) > 0.6 else "black",
            )
        ax.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(f"{TASKS[task].title}, {name}", fontsize=9)
    return figure


def luck(runs: Runs, published: Sequence[Published] = PUBLISHED, most: int = 60) -> Figure:
    """A figure of the largest gain of idle heads by how many answers each turns, with published gains and measured rates.

    Args:
        runs: whose heads' rates are drawn below.
        published: a panel for each; put your own here.
        most: answers turned.
    """
    figure, axes = plots.panel_grid(len(published), 5.2, 3.8)
    flips = np.arange(1, most + 1)
    for ax, one in zip(axes, published, strict=True):
        sure = [largest_gain([int(count)], one.among, most) for count in flips]
        low, middle, high = (
            np.array([np.searchsorted(each, at) for each in sure]) for at in (0.05, 0.5, 0.95)
        )
        points = 100 / one.n
        label = f"the luckiest of {one.among} idle {one.what}s: median, and nine cases in ten"
        ax.fill_between(
            flips,
            low * points,
            high * points,
            color=plots.COLOURS["grey"],
            alpha=0.35,
            lw=0,
            step="mid",
        )
        ax.step(flips, middle * points, where="mid", color=plots.COLOURS["grey"], label=label)
        ax.axhline(100 * one.gain, color="black", lw=1.5, label=f"the paper: +{100 * one.gain:.1f}")
        for place, (name, run) in enumerate(runs.items()):
            entries = run.find(f"answers that a {one.what} turns", task=one.task)
            if entries:
                turned = np.concatenate(
                    [one.n * np.ravel(entry["value"]) / entry["n"] for entry in entries]
                )
                height, colour = -0.35 - 0.45 * place, plots.SOURCE_COLOURS.get(name, "black")
                ax.plot(
                    np.minimum(turned, most + 1),
                    np.full(len(turned), height),
                    "|",
                    ms=9,
                    color=colour,
                    alpha=0.5,
                )
                ax.plot(
                    np.median(turned),
                    height,
                    "D",
                    ms=6,
                    color=colour,
                    label=f"{name}: each {one.what}; median",
                )
        title = f"{TASKS[one.task].title}: the best of {one.among} {one.what}s, n = {one.n}"
        ax.set(
            title=title,
            xlabel=f"answers that a {one.what} turns",
            ylabel="largest gain, points",
            xlim=(0, most + 2),
        )
        ax.legend(fontsize=7.5, loc="upper left")
        ax.set_ylim(top=1.45 * max(high[-1] * points, 100 * one.gain))
    return figure


def _numbers(entry: Mapping) -> np.ndarray:
    return np.array(entry["value"], dtype=float)


def _legend(figure: Figure, ax) -> None:
    handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper center", ncols=len(handles)
    )
