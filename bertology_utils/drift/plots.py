"""The figures of §4.3: what the score loses with layers put back, how alike maps are by head and by layer, and Table 1.

``runs`` below are tables of results by whose they are; a figure shows the run on real data beside
this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from .. import plots
from ..common import axis_numbers
from ..glue import TASKS, TITLES, plain_metric
from ..results import Results, Runs
from ..verdicts import THIS_RUN
from .measure import trainings_in
from .scores import COLUMNS, paper_points

PAPER = "the paper"
PUT_BACK = "change of the score with layers put back"
SIMILARITY = "similarity of maps"
ENDS = {"the last two put back": plots.COLOURS["blue"], "all others put back": plots.COLOURS["red"]}


def before_and_after(
    before: np.ndarray, after: np.ndarray, tokens: Sequence[str], title: str
) -> Figure:
    """One head's maps of one input, before and after fine-tuning; the scale ends at the largest weight.

    Args:
        before, after: shape (tokens, tokens).
        tokens: the wordpieces.
        title: above both.
    """
    maps = {f"{title},\npre-trained": before, "fine-tuned": after}
    return plots.token_maps(maps, tokens, float(max(before.max(), after.max())))


def restored(runs: Runs) -> Figure:
    """What putting two neighbouring layers back does to the score: a panel for each task, a row for each pair."""
    pairs = {"kind": {pair: pair for pair in _pairs(runs[THIS_RUN])}}
    panels = plots.panels_of(runs, PUT_BACK, "task", "kind", names=pairs)
    figure = plots.dot_panels(
        panels, "change of the score, points", 100, border=0.0, limits=_limits(panels)
    )
    for ax in figure.axes:
        ax.tick_params(axis="y", length=0, pad=9)  # an arrowhead at the edge needs the room
    for ax in figure.axes[::4]:  # the first of each row
        ax.set_ylabel("layers put back")
    return figure


def change_and_cost(runs: Runs) -> Figure:
    """By layer, how much fine-tuning changed the maps, and what the score loses without it; a row of two panels for each run.

    A thin line is a task, the mean over its trainings; the thick one is the mean over tasks.
    """
    figure, axes = plt.subplots(
        len(runs),
        2,
        figsize=(8.4, 2.5 * len(runs) + 0.3),
        squeeze=False,
        sharex="col",
        sharey="col",
    )
    for row, (name, run) in zip(axes, runs.items(), strict=True):
        changed = {
            task: 1 - np.mean(_by_layer(run, task), axis=0)
            for task in _tasks({name: run}, SIMILARITY)
        }
        cost = {
            task: np.array(
                [
                    -100 * run.find(PUT_BACK, task=task, kind=pair)[0]["value"]
                    for pair in _pairs(run)
                ]
            )
            for task in _tasks({name: run}, PUT_BACK)
        }
        layers = np.array(axis_numbers(len(next(iter(changed.values())))))
        _lines(row[0], layers, changed, "blue")
        _lines(row[1], layers[:-1] + 0.5, cost, "red")
        row[0].set_ylabel(f"{name}\n\nchange of maps")
        row[1].set_ylabel("points lost")
        row[0].set_xticks(layers)
        row[1].set_xticks(layers[:-1] + 0.5, _pairs(run))
    axes[0, 0].set_title("How much the maps change")
    axes[0, 1].set_title("What undoing two layers costs")
    for ax, label in zip(axes[-1], ("layer", "layers put back"), strict=True):
        ax.set_xlabel(label)
    axes[0, 0].legend(loc="upper left")
    return figure


def _lines(ax, at: np.ndarray, by_task: Mapping[str, np.ndarray], colour: str) -> None:
    for number, values in enumerate(by_task.values()):
        ax.plot(
            at,
            values,
            color=plots.COLOURS["grey"],
            lw=0.8,
            label="one task" if not number else None,
        )
    mean = np.mean(list(by_task.values()), axis=0)
    ax.plot(at, mean, "o-", color=plots.COLOURS[colour], lw=2.5, ms=4, label="mean of the tasks")
    ax.axhline(0, color="black", lw=0.6, zorder=0)


def last_two(runs: Runs) -> Figure:
    """What the score loses with the last two layers put back, and with all others, a panel for each run.

    Ticks mark where all that fine-tuning gained is lost: over random classifiers, and, grey, over
    always the same answer.
    """
    pairs = _pairs(runs[THIS_RUN])
    kinds = {"kind": dict(zip((pairs[-1], f"1 to {len(pairs) - 1}"), ENDS, strict=True))}
    panels = plots.panels_of(runs, PUT_BACK, "run", "task", "kind", kinds)
    markers, limits = {"all others put back": "s"}, _limits(panels)
    figure = plots.dot_panels(
        panels, "change of the score, points", 100, ENDS, limits=limits, markers=markers
    )
    for ax, run in zip(figure.axes, runs.values(), strict=True):
        for (label, gains), colour in zip(
            _gains(run).items(), ("black", plots.COLOURS["grey"]), strict=True
        ):
            lost = {
                at: -100 * gains[title]
                for at, title in enumerate(panels[ax.get_title()])
                if title in gains
            }
            ax.plot(list(lost.values()), list(lost), "|", color=colour, ms=12, mew=1.5, label=label)
    figure.legends[0].remove()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _gains(run: Results) -> dict[str, dict[str, float]]:
    """What fine-tuning gained in all, by what it is counted from and by the task's title."""
    over_random = {
        TASKS[name].title: one["value"]
        for name, one in run.by("task", "gain by fine-tuning").items()
    }
    over_constant = {}
    for name, one in run.by("task", "score of always the same answer").items():
        (tuned,) = run.find(
            "score", task=name, kind=plain_metric(TASKS[name]), state=COLUMNS["finetuned"]
        )
        over_constant[TASKS[name].title] = tuned["value"] - one["value"]
    return {
        "all that fine-tuning gained over random classifiers": over_random,
        "the same over always one answer": over_constant,
    }


def heads_changed(runs: Runs) -> Figure:
    """Similarity of every head's maps before and after the first training: a row for each run, one scale (Fig 5)."""
    arrays = {
        (name, TASKS[task].title): run.array(SIMILARITY, task=task, kind="fine-tuning")
        if run.find(SIMILARITY, task=task, kind="fine-tuning")
        else None
        for name, run in runs.items()
        for task in _tasks(runs, SIMILARITY)
    }
    measured = [one for one in arrays.values() if one is not None]
    limits = float(np.floor(10 * min(map(np.min, measured))) / 10), 1.0
    size = 1.75, 0.19 * max(map(len, measured)) + 0.75
    return plots.heatmap_grid(
        arrays, "cosine similarity (dark: changed)", limits, "mako", panel=size
    )


def change_by_layer(runs: Runs, titles: Mapping[str, str]) -> Figure:
    """Mean similarity by layer of every training and of a random start, a panel for each task that has one.

    The scale begins at the lowest value; a line near 1 means that those maps hardly changed.

    Args:
        runs: tables of results by whose they are.
        titles: what this run's tasks are called, by name.
    """
    there = [
        (name, run, task)
        for name, run in runs.items()
        for task in _tasks({name: run}, SIMILARITY, kind="random start")
    ]
    figure, axes = plots.panel_grid(max(1, len(there)), 2.3, 2.5, columns=3, sharey=True)
    for ax, (name, run, task) in zip(axes, there, strict=False):
        for number, values in enumerate(_by_layer(run, task)):
            label = "trainings of the pre-trained model" if not number else None
            ax.plot(
                axis_numbers(len(values)),
                values,
                ".-",
                color=plots.COLOURS["blue"],
                lw=1,
                label=label,
            )
        (start,) = _by_layer(run, task, ["random start"])
        numbers = axis_numbers(len(start))
        ax.plot(numbers, start, "s-", ms=4, color=plots.COLOURS["orange"], label="random start")
        of_task = (titles if name == THIS_RUN else TITLES)[task]
        ax.set(title=f"{of_task}\n{name}", xticks=numbers[:: 1 + len(numbers) // 8], xlabel="layer")
        ax.title.set_fontsize(8.5)
    for ax in axes[::3]:
        ax.set_ylabel("cosine similarity")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=2)
    return figure


def table1_dots(runs: Runs) -> Figure:
    """Table 1: a panel for each column, a row for each task, with accuracy or Pearson's correlation.

    A grey tick is what always the same answer scores: of the run on real data where that is known,
        else of this run.
    """
    tasks = {TASKS[name].title: TASKS[name] for name in _tasks(runs, "score")}
    names = [state.replace("normal distr.", "random start") for state in COLUMNS.values()]
    panels: dict[str, dict[str, dict]] = {name: {title: {} for title in tasks} for name in names}
    for name, (column, state) in zip(names, COLUMNS.items(), strict=True):
        for title, task in tasks.items():
            metric = plain_metric(task)
            points = paper_points(task, column, metric)
            found = {
                of: run.find("score", task=task, kind=metric, state=state)
                for of, run in runs.items()
            }
            known = {} if points is None else {PAPER: points / 100}
            panels[name][title] = known | {of: of_run[0] for of, of_run in found.items() if of_run}
    figure = plots.dot_panels(panels, "score × 100", 100, limits=(-5, 103))
    constant: dict[str, float] = {}
    for run in reversed(list(runs.values())):  # the real one last
        constant |= {
            one["task"]: 100 * one["value"] for one in run.find("score of always the same answer")
        }
    places = [at for at, task in enumerate(tasks.values()) if task.name in constant]
    values = [constant[task.name] for task in tasks.values() if task.name in constant]
    for ax in figure.axes:
        ax.plot(
            values,
            places,
            "|",
            color="grey",
            ms=20,
            mew=1,
            zorder=0,
            label="always the same answer",
        )
        ax.set_xticks(range(0, 101, 20))
    figure.legends[0].remove()
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _tasks(runs: Runs, what: str, **labels: str) -> list[str]:
    """Names of the tasks of which some run has such numbers, in the paper's order."""
    there = {entry["task"] for run in runs.values() for entry in run.find(what, **labels)}
    return [name for name in TASKS if name in there]


def _pairs(run: Results) -> list[str]:
    """What the pairs of neighbouring layers are called, in order."""
    return list(
        dict.fromkeys(entry["kind"] for entry in run.find(PUT_BACK) if "," in entry["kind"])
    )


def _by_layer(run: Results, task: str, kinds: Sequence[str] = ()) -> list[np.ndarray]:
    """Mean similarity by layer, of every training or of these comparisons; each of shape (layers,)."""
    names = kinds or trainings_in(entry["kind"] for entry in run.find(SIMILARITY, task=task))
    return [run.array(SIMILARITY, task=task, kind=name).mean(axis=1) for name in names]


def _limits(panels: Mapping[str, Mapping[str, Mapping[str, Mapping]]]) -> tuple[float, float]:
    """Horizontal limits by what was measured: with two trainings an interval may be wider than any score."""
    points = [
        100 * one["value"]
        for rows in panels.values()
        for row in rows.values()
        for one in row.values()
    ]
    lowest = min(points, default=0.0)
    return 1.25 * min(lowest, -2), max(5, -0.25 * lowest)
