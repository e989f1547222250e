"""The figures of notebook 9; each takes the rows of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from .. import plots
from ..common import head_name
from ..glue import TASKS
from ..plots.maps import CELL
from ..results import Results
from .ablations import SINK
from .components import BOTH, DIFFERENT, ENOUGH, EXAMPLES, HEAD, NOISE, SAME, TRAINING, WAY

RISE, SHARE = "rise of the loss without a head", "share of what heads differ by"
SHARE_BY_ABLATION, EVERY_ABLATION = "share by ablation", "all ways"
MEASURED = "rank correlation of two runs by examples"
SIZE, SINK_WEIGHT = "size of the effect of a head", "weight on [CLS]"
ABLATIONS = "rank correlation of heads' effects by two ways"
TOP = 3  # heads that are outlined
OUTLINE: dict[str, Any] = {"fill": False, "lw": 2.2, "ec": plots.COLOURS["orange"]}
_SHADES = {  # of a component, with its name on the page
    HEAD: ("the head", "#1f3d5c"),
    TRAINING: ("head × run", "#d9822b"),
    WAY: ("head × ablation", "#8f3b76"),
    BOTH: ("head × run × ablation", "#c99bbb"),
    EXAMPLES: ("head × examples", "#7fa8c9"),
    NOISE: ("rest", "#d5d8dc"),
}


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


def by_run(results: Results, tasks: Sequence[str]) -> Figure:
    """What every head costs, a row for each task and a column for each of its first three runs.

    Each task has a scale, named at its left. Heads that are among the three most needed in every
    run shown are outlined.

    Args:
        results: of notebook 9.
        tasks: by name; if there are rows of none of them, all that there are.
    """
    rises = {
        task: np.array([entry["value"] for entry in results.find(RISE, task=task)])[:3]
        for task in _measured(results, RISE, tasks)
    }  # (runs, layers, heads)
    columns, (layers, heads) = max(map(len, rises.values())), next(iter(rises.values())).shape[1:]
    size = CELL * heads * columns + 1.9, (CELL * layers + 0.35) * len(rises) + 0.4
    figure, axes = plt.subplots(len(rises), columns, figsize=size, squeeze=False)
    for row, (task, several) in zip(axes, rises.items(), strict=True):
        scale = float(np.percentile(np.abs(several), 97))
        places = [(-costs).argsort(axis=None).argsort().reshape(costs.shape) for costs in several]
        outlined = np.argwhere(np.max(places, axis=0) < TOP)
        for ax, costs in zip(row, several, strict=False):
            mesh = plots.head_map(ax, costs / scale, (-1, 1), plots.GAIN.reversed())
            ax.set(xlabel="head" if row is axes[-1] else "", ylabel="")
            for layer, head in outlined:
                ax.add_patch(Rectangle((head - 0.5, layer - 0.5), 1, 1, **OUTLINE))
        for ax in row[len(several) :]:
            ax.set_axis_off()
        row[0].set_ylabel(f"{TASKS[task].title}\n(scale ±{scale:.3f})\nlayer", fontsize=9)
    for number, ax in enumerate(axes[0], 1):
        ax.set_title(f"run {number}", fontsize=9)
    bar = figure.colorbar(mesh, ax=axes, extend="both", aspect=12 * len(rises))
    bar.set_label("change of the loss, on the row's scale")
    ticks = {-1: "loss lower\nwithout it", 0: "no change", 1: "loss higher\nwithout it"}
    bar.set_ticks(list(ticks), labels=list(ticks.values()), fontsize=8)
    return figure


def _measured(results: Results, what: str, tasks: Sequence[str] = ()) -> list[str]:
    """Those of the tasks of which there are such rows; if there are of none of them, all of which there are."""
    measured = list(dict.fromkeys(entry["task"] for entry in results.find(what)))
    return [task for task in tasks if task in measured] or measured


def by_examples(results: Results) -> Figure:
    """Agreement of two runs by the number of examples, on the same ones and on others.

    Bars hold nine of ten random orders of the examples.
    """
    measured = results.table(MEASURED)
    figure, axes = plots.panel_grid(measured.task.nunique(), 2.7, 2.4, sharey=True)
    looks = {SAME: (plots.COLOURS["blue"], "o"), DIFFERENT: (plots.COLOURS["orange"], "s")}
    for ax, (task, part) in zip(axes, measured.groupby("task", observed=True), strict=True):
        for state, (colour, marker) in looks.items():
            dots = part[part.state == state]
            error = np.abs(dots[["low", "high"]].to_numpy().T - dots.value.to_numpy())
            style: dict[str, Any] = {"marker": marker, "ms": 4, "lw": 1.4, "elinewidth": 0.8}
            ax.errorbar(
                dots.kind.astype(float), dots.value, error, color=colour, label=state, **style
            )
        ax.axhline(ENOUGH, **plots.charts.BORDER)
        ax.axhline(0, **plots.charts.ZERO)
        ax.set(xscale="log", title=task, ylim=(-0.35, 1.02), xlabel="examples")
        ticks = [100, 1000, 10_000]
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        ax.set_xlim(80, max(13_000, 1.3 * measured.kind.astype(float).max()))
        ax.minorticks_off()
    for ax in axes[::4]:
        ax.set_ylabel("rank correlation\nof two runs")
    handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    handles["0.8, the same order"] = Line2D([], [], **plots.charts.BORDER)
    _legend(figure, len(axes), handles)
    return figure


def _legend(figure: Figure, panels: int, handles: dict[str, Any]) -> None:
    """In the place of the first panel that is free, else above them."""
    free = figure.axes[panels:]
    place = "center" if free else "outside upper center"
    (free[0] if free else figure).legend(
        handles.values(), handles, loc=place, ncols=1 if free else 3, fontsize=9
    )


def components(results: Results) -> Figure:
    """Variance components of one measurement of heads, with the interval of the head's own.

    By 1/L on all rows and runs; then, on the fewer rows and runs that have every ablation, by 1/L
    and by all of them.
    """
    by_ablation = results.table(SHARE_BY_ABLATION)
    # Where there is one run, what belongs to it cannot be told from the head.
    by_ablation = by_ablation[by_ablation.task.isin(by_ablation.task[by_ablation.kind == TRAINING])]
    panels = {"1/L, all rows and runs": results.table(SHARE, state="loss")}
    compared = {"uniform": "1/L, the compared rows", EVERY_ABLATION: "every ablation, these rows"}
    panels |= {title: by_ablation[by_ablation.state == one] for one, title in compared.items()}
    panels = {name: table for name, table in panels.items() if len(table)}
    size = (max(4.8, 3.3 * len(panels)), 3.6)
    figure, axes = plt.subplots(1, len(panels), figsize=size, sharey=True, squeeze=False)
    tasks = list(dict.fromkeys(next(iter(panels.values())).task))
    for ax, (name, table) in zip(axes.flat, panels.items(), strict=True):
        ends = np.zeros(len(tasks))
        for kind, (_, colour) in _SHADES.items():
            part = table[table.kind == kind].set_index("task").value.reindex(tasks).fillna(0)
            ax.barh(tasks, part, left=ends, color=colour, height=0.86)
            white = kind in (HEAD, WAY)
            for row, width in enumerate(part):
                if width >= 6:
                    ax.text(
                        ends[row] + width / 2, row - 0.1, f"{width:.0f}", va="center", ha="center",
                        fontsize=8, color="white" if white else "black",
                    )  # fmt: skip
            ends += part.to_numpy()
        own = table[table.kind == HEAD].set_index("task").reindex(tasks)
        for colour, width in ("white", 3.5), ("black", 1.2):
            ax.hlines(np.arange(len(tasks)) + 0.3, own.low, own.high, color=colour, lw=width)
        ax.set(title=f"by {name}", xlim=(0, 100), xlabel="share of the variance, %")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0, 0].invert_yaxis()
    handles: dict[str, Any] = {name: Patch(color=colour) for name, colour in _SHADES.values()}
    handles["95 % interval of the head's part"] = Line2D([], [], color="black", lw=1.2)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=4, fontsize=8)
    return figure


def ablations(results: Results) -> Figure:
    """Rank correlations of heads' effects by two ablations on different halves of the examples, and their ceilings.

    The ceiling is the geometric mean of how each of the two agrees with itself; it is left out
    where one of them does not.
    """
    rows = []
    for task in _measured(results, ABLATIONS):
        pairs = results.by("kind", ABLATIONS, task=task)
        for kind, entry in pairs.items():
            one, other = kind.split(" and ")
            if one != other:
                own = [pairs[f"{each} and {each}"]["value"] for each in (one, other)]
                row = {part: entry[part] for part in ("value", "low", "high")}
                row |= {"ceiling": np.sqrt(np.prod(own)) if min(own) > 0 else np.nan}
                rows.append(row | {"task": TASKS[task].title, "pair": kind})
    table = pd.DataFrame(rows, columns=["task", "pair", "value", "low", "high", "ceiling"])
    return plots.dots(
        table.assign(measured="the two ablations"), colour="measured", panel="pair", columns=3,
        label="rank correlation", colours=[plots.COLOURS["orange"]], marks={"ceiling": "D"},
        limits=(-0.5, 1.0),
    )  # fmt: skip


def sinks(results: Results, tasks: Sequence[str]) -> Figure:
    """The size of every head's effect by uniform weights against its size by zero, means over runs; heads that rest on [CLS] are orange.

    Args:
        results: of notebook 9.
        tasks: by name; if there are rows of none of them, all that there are.
    """
    shown = _measured(results, SIZE, tasks)
    figure, axes = plots.panel_grid(len(shown), 2.7, 2.7)
    for ax, task in zip(axes, shown, strict=True):
        by_zero, by_uniform = (
            np.mean([entry["value"] for entry in results.find(SIZE, task=task, state=way)], axis=0)
            for way in ("zero", "uniform")
        )  # (layers, heads)
        rests = results.array(SINK_WEIGHT, task=task) > SINK
        for chosen, colour in ((~rests, "grey"), (rests, "orange")):
            ax.plot(by_zero[chosen], by_uniform[chosen], "o", ms=4.5, color=plots.COLOURS[colour])
        # The two furthest from the diagonal have names.
        for flat in np.argsort(-np.abs(by_uniform - by_zero), axis=None)[:2]:
            at = np.unravel_index(flat, by_zero.shape)
            above = by_uniform[at] > by_zero[at]  # the name stands where the diagonal is not
            ax.annotate(
                head_name(*at), (by_zero[at], by_uniform[at]), fontsize=8, ha="center",
                va="bottom" if above else "top", xytext=(0, 4 if above else -4),
                textcoords="offset points",
            )  # fmt: skip
        low, high = min(by_zero.min(), by_uniform.min()), max(by_zero.max(), by_uniform.max())
        room = 0.12 * (high - low)  # for names
        ax.plot([low - room, high + room], [low - room, high + room], **plots.charts.ZERO)
        ax.set(title=TASKS[task].title, xlabel="effect, zero", aspect="equal")
        ax.set(xlim=(low - room, high + room), ylim=(low - room, high + room))
        ax.locator_params(nbins=3)
    for ax in axes[::4]:
        ax.set_ylabel("effect, uniform")
    samples = {
        "rests on [CLS]": sample("orange", ms=5),
        "other head": sample("grey", ms=5),
        "equal effects": plots.charts.ZERO,
    }
    return legend(figure, samples, columns=3, fontsize=9)
