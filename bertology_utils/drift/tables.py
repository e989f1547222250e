"""The tables of notebook 3, one estimate in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common import axis_numbers, to_people
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.estimate import Estimate
from .table1 import COLUMNS, paper_points
from .wording import changed_most

if TYPE_CHECKING:
    import pandas as pd

Scores = Mapping[Task, Mapping[str, Mapping[str, Bootstrap]]]  # by task, column (if it was run) and metric


def beside_paper(scores: Scores) -> pd.DataFrame:
    """Table 1 in points, the paper's numbers and this run's."""
    import pandas as pd

    rows = {}
    for task, columns in scores.items():
        for metric in task.metrics:
            cells = {}
            for column, title in COLUMNS.items():
                points = paper_points(task, column, metric)
                cells[title, "paper"] = "–" if points is None else f"{points:.1f}"
                cells[title, "here"] = f"{100 * columns[column][metric].value:.1f}" if column in columns else "–"
            rows[task.title, metric] = cells
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["task", "metric"])
    return table.set_axis(pd.MultiIndex.from_tuples(table.columns), axis="columns")


def with_intervals(scores: Scores) -> pd.DataFrame:
    """Table 1 in points, with 95 % intervals over examples."""
    return _by_task(
        {
            (task, metric): {
                title: columns[column][metric].text(100) if column in columns else "–" for column, title in COLUMNS.items()
            }
            for task, columns in scores.items()
            for metric in task.metrics
        },
        "metric",
    )


def gains(by_name: Mapping[str, Mapping[Task, Estimate]]) -> pd.DataFrame:
    """Differences in points, by name and task."""
    import pandas as pd

    columns = {
        name: {task.title: of_task[task].text(100, sign=True) for task in of_task} for name, of_task in by_name.items()
    }
    return pd.DataFrame(columns, dtype=str).fillna("–").rename_axis("task")


def by_layer(similarity: Mapping[Task, Mapping[str, np.ndarray]], trainings: Sequence[str]) -> pd.DataFrame:
    """Mean similarity by layer, a row for each task and training, with the two layers that changed most."""
    return _by_task({
        (task, number): _layers(similarity[task][name].mean(axis=(0, 2)), "changed most")
        for task in similarity for number, name in enumerate(trainings, start=1)
    }, "training")  # fmt: skip


def readings(of: Mapping[Task, Mapping[str, np.ndarray]]) -> pd.DataFrame:
    """Mean similarity by layer, a row for each task and protocol."""
    names = {"paper": "real tokens", "official": "with padding"}
    return _by_task(
        {(task, names[name]): _layers(values, "changed most") for task, both in of.items() for name, values in both.items()},
        "rows of the map",
    )


def movements(similarity: Mapping[Task, Mapping[str, np.ndarray]], names: Mapping[str, str]) -> pd.DataFrame:
    """Mean cosine of two changes by layer, a row for each task and comparison; ``names``: what comparisons are called."""
    return _by_task({
        (task, title): _layers(np.nanmean(similarity[task][name], axis=(0, 2)))
        for task in similarity for name, title in names.items()
    }, "with")  # fmt: skip


def put_back(changes: Mapping[Task, Sequence[Estimate]], groups: Sequence[Sequence[int]]) -> pd.DataFrame:
    """Change of the score in points, a column for each group of layers, counted from 0."""
    import pandas as pd

    names = [f"{to_people(group[0])} to {to_people(group[-1])}" for group in groups]
    rows = {task.title: dict(zip(names, (one.text(100, 1, sign=True) for one in of_task), strict=True))
            for task, of_task in changes.items()}  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")


def _layers(values: np.ndarray, most: str = "") -> dict[str, str]:
    numbers = {f"layer {number}": f"{value:.2f}" for number, value in zip(axis_numbers(len(values)), values, strict=True)}
    return numbers | ({most: changed_most(values)} if most else {})


def _by_task(rows: Mapping[tuple[Task, object], Mapping[str, str]], second: str) -> pd.DataFrame:
    import pandas as pd

    named = {(task.title, other): cells for (task, other), cells in rows.items()}
    return pd.DataFrame.from_dict(named, orient="index").rename_axis(["task", second])
