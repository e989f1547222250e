"""The figures of §4.3: changes of maps by head and layer, Table 1, and what resetting layers costs.

``results`` below is one table of rows, the committed evidence or a run's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .. import plots
from ..glue import TASKS, Task, plain_metric
from ..results import Results
from .measure import COLUMNS

RESET = "change of the score with layers reset"
SIMILARITY = "similarity of maps"
BASELINE = "score of always the same answer"
CHANGE = "change of the score, points"
PAPER = "the paper (BERT-base)"


def similarity_by_head(results: Results) -> Figure:
    """Similarity of every head's maps before and after the first fine-tuning run (Fig 5)."""
    arrays = plots.head_arrays(results.table(SIMILARITY, kind="fine-tuning"))
    lowest = min((np.nanmin(values) for values in arrays.values()), default=0.0)
    limits = float(np.floor(10 * lowest) / 10), 1.0
    return plots.head_grid(arrays, "cosine similarity\n(dark: changed)", limits, "mako")


def similarity_by_layer(results: Results) -> Figure:
    """Similarity by layer, of every fine-tuning run and of a random start, for tasks that have one."""
    table = results.table(SIMILARITY)
    start, tuned = "random initialisation", "pre-trained, mean over runs"
    colours = {tuned: plots.COLOURS["blue"], start: plots.COLOURS["orange"]}
    kinds = [_runs(table), table.kind == "random start"]
    table = table.assign(start=np.select(kinds, [tuned, start], "")).rename(columns={"kind": "run"})
    with_start = table.task[table.start == start].unique()
    table = table[table.task.isin(with_start) & (table.start != "")]
    places = ["task", "start", "run", "layer"]
    table = table.groupby(places, observed=True, as_index=False).value.mean()
    look: dict[str, Any] = {"label": "cosine similarity", "colours": colours, "columns": 4}
    return plots.lines(table, colour="start", panel="task", each="run", **look)


def layers_reset(results: Results) -> Figure:
    """Change of the score with two neighbouring layers reset to their pre-trained weights, by task."""
    table = _pairs(results).rename(columns={"kind": "layers reset"})
    return plots.dots(table, y="layers reset", panel="task", label=CHANGE, columns=4)


def last_two_layers(results: Results) -> Figure:
    """Change of the score with the last two layers reset and with all others, beside the whole gain."""
    table, pairs = results.table(RESET), _pairs(results)
    if pairs.empty:  # layers that share their weights are not reset
        return plots.dots(pairs)
    last = pairs.kind.iloc[-1]
    others = f"1 to {int(last.split(', ')[0]) - 1}"
    names = {last: f"layers {last} reset", others: f"layers {others} reset"}
    table = table[table.kind.isin(names)].assign(layers=table.kind.map(names))
    gains = results.table("gain by fine-tuning").set_index("task").value
    lost = "loss of all that fine-tuning gained"
    table[lost] = -table.task.map(gains).astype(float)
    return plots.dots(table, colour="layers", label=CHANGE, marks={lost: "|"})


def change_and_cost(results: Results) -> Figure:
    """By layer, how much fine-tuning changed the maps, and what the score loses with layers reset."""
    maps = results.table(SIMILARITY)
    maps = maps[_runs(maps)]
    maps = maps.groupby(["task", "layer"], observed=True, as_index=False).value.mean()
    reset, title = _pairs(results), "change of the maps\n(1 − cosine similarity)"
    if reset.empty:
        return plots.dots(reset)
    middle = reset.kind.str.split(", ").map(lambda pair: np.mean([int(one) for one in pair]))
    maps = maps.assign(value=1 - maps.value, panel=title)
    cost = reset.assign(layer=middle, value=-reset.value, panel="points lost with two layers reset")
    table = pd.concat([maps, cost])
    figure = plots.lines(table, panel="panel", each="task", share=False, columns=2)
    figure.axes[1].set_xticks(middle.unique(), reset.kind.unique())
    figure.axes[1].set_xlabel("layers reset")
    return figure


def table1(results: Results) -> Figure:
    """Table 1: accuracy or Pearson's correlation, a panel for each of its columns."""
    tasks = {task.title: task for task in TASKS.values()}
    table = results.table("score", state=list(COLUMNS.values()))
    table = table[table.kind == [plain_metric(tasks[title]) for title in table.task]]
    columns, rows = {state: column for column, state in COLUMNS.items()}, table.itertuples()
    points = [paper_points(tasks[row.task], columns[row.state], row.kind) for row in rows]
    constant, majority = results.table(BASELINE).set_index("task").value, "majority class"
    table = table.assign(**{PAPER: points, majority: table.task.map(constant).astype(float)})
    table["state"] = pd.Categorical(table.state, list(columns))
    titles = [one.replace("normal distr.", "random initialisation") for one in columns]
    table["state"] = table.state.cat.rename_categories(titles)
    marks = {PAPER: "D", majority: "|"}
    return plots.dots(table, panel="state", label="score × 100", marks=marks, columns=3)


def paper_points(task: Task, column: str, metric: str) -> float | None:
    """The paper's number of Table 1 in points (0 to 100); None where it gives none (Spearman)."""
    return dict(zip(task.metrics, getattr(task.table1, column), strict=False)).get(metric)


def _pairs(results: Results) -> pd.DataFrame:
    """What resetting two neighbouring layers changes."""
    table = results.table(RESET)
    return table[table.kind.str.contains(",")]


def _runs(table: pd.DataFrame) -> pd.Series:
    """Which rows compare the pre-trained model with a fine-tuning run."""
    return table.kind.str.startswith("fine-tuning")
