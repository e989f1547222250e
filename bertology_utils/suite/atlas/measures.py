"""Numbers per head, out of results.json files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...claims.register import NOTEBOOKS
from ...glue.tasks import TASKS
from ...patterns.labelled_maps import PATTERNS
from ...statistics.estimate import share_interval
from ..committed import BY_NORM, Committed, read_committed, read_one
from ..results import RESULTS
from ..tables import read
from .places import NUMBERS, TOPICS, Numbers

ALL_TASKS = "all tasks"


@dataclass(frozen=True)
class Measure:
    """One number per head.

    Attributes:
        name: what is measured, with the unit.
        values: shape (layers, heads); NaN where it was not measured.
        topic: heading under which it is found.
        data: what it was measured on ("GLUE").
        task: on which of its tasks ("MRPC").
        low: lower ends of the 95 % intervals, of the same shape; None without.
        high: their upper ends.
        lacks: why there are no intervals.
        signed: values fall on both sides of 0, which is white.
        n: examples behind each value, if known.
    """

    name: str
    values: np.ndarray
    topic: str = "measures"
    data: str = ""
    task: str = ALL_TASKS
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    lacks: str = "none was given"
    signed: bool = False
    n: int | None = None


def read_measures(root: Path) -> tuple[list[Measure], list[str]]:
    """All numbers per head of the committed results, by weight and by norm, and what is missing and how to make it.

    Args:
        root: the checkout.
    """
    measures: list[Measure] = []
    missing: list[str] = []
    by_norm = [read_one(root, place, number) for place in BY_NORM for number in place.notebooks]
    for one in (*read_committed(root), *by_norm):
        found, lacks = _of_one(one) if not one.problem else ([], [one.missing])
        if any(measure.values.shape != (measures or found)[0].values.shape for measure in found):
            other = replace(one, problem="is of a model with other heads than the results before it")
            found, lacks = [], [other.missing]
        measures, missing = measures + found, missing + lacks
    return measures, missing


def measures_of(path: str | Path) -> list[Measure]:
    """The numbers per head of one's own run.

    Args:
        path: a notebook's ``results.json``, or a folder with several below it.

    Raises:
        ValueError: no such file, one that cannot be read or is no notebook's, or nothing per head in any; says what to run.
    """
    path = Path(path)
    files = sorted(path.rglob(RESULTS)) if path.is_dir() else [path]
    measures = [measure for file in files for measure in _of_file(read(file))]
    if not measures:
        run = "run a notebook of this version: python -m bertology_utils run --only 3"
        raise ValueError(f"nothing was measured for single heads in {path.name}; {run}")
    return measures


def _of_file(content: dict[str, Any]) -> list[Measure]:
    numbers = {name: number for number, name in NOTEBOOKS.items()}
    kind = str(content.get("settings", {}).get("data", ""))
    data = {"embedded": "embedded data", "hub": "GLUE"}.get(kind, kind)
    return [
        measure
        for source in NUMBERS
        if source.notebook == numbers.get(content.get("notebook", ""))
        for measure in _from(source, content, data)
    ]


def _of_one(one: Committed) -> tuple[list[Measure], list[str]]:
    measures: list[Measure] = []
    lacks: list[str] = []
    for source in (source for source in NUMBERS if source.notebook == one.notebook):
        found = list(_from(source, one.content, one.place.data))
        measures += found
        if not found:
            command = one.place.command(one.notebook)
            lacks.append(f"`{one.file}` has no numbers per head in `{source.path}`. To make them: `{command}`")
    return measures, lacks


def _from(source: Numbers, content: dict[str, Any], data: str) -> Iterator[Measure]:
    by_norm = content.get("settings", {}).get("weighing") == "norm"
    for names, values in _matching(content, source.path.split("/")):
        for measure in _measures(source, data, names, values, _count(source, content, names)):
            yield replace(measure, name=f"{measure.name}, by norm") if by_norm else measure


def _matching(value: Any, path: list[str], names: dict[str, str] | None = None) -> Iterator[tuple[dict[str, str], Any]]:
    """Values at a path, with what stands for the names in braces."""
    if not path:
        yield names or {}, value
    elif isinstance(value, dict):
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(path[0]))
        for key, inner in value.items():
            if match := re.fullmatch(pattern, key):
                yield from _matching(inner, path[1:], {**(names or {}), **match.groupdict()})


def _count(source: Numbers, content: dict[str, Any], names: Mapping[str, str]) -> int | None:
    """How many examples a run measured, which is at most what it was told to."""
    value: Any = content
    for name in source.count.format(**names).split("/"):
        value = value.get(name) if isinstance(value, dict) else None
    most = content.get("settings", {}).get("max_examples", 0) if source.notebook == 3 else 0  # there all rows are counted
    return min(value, most or value) if isinstance(value, int) else None


def _measures(source: Numbers, data: str, names: Mapping[str, str], values: Any, n: int | None) -> Iterator[Measure]:
    """One measure, or one for each pattern; none if these are no numbers per head."""
    try:
        array = source.offset + source.factor * np.array(values, dtype=float)  # null is NaN
    except (TypeError, ValueError):
        return
    last = {"pattern": PATTERNS} if "{pattern}" in source.name else {}
    if array.shape[2:] != tuple(map(len, last.values())) or array.ndim < 2:
        return
    task = names.get("task", ALL_TASKS)
    title = TASKS[task].title if task in TASKS else task
    low, high = share_interval(array, n) if not source.lacks and n else (None, None)
    lacks = source.lacks or ("" if n else "the number of examples is not in the results")
    for at in np.ndindex(array.shape[2:]):
        kinds = {axis: all_of[index] for index, (axis, all_of) in zip(at, last.items(), strict=True)}
        here = (slice(None), slice(None), *at)
        yield Measure(
            source.name.format(**names, **kinds),
            array[here],
            TOPICS[source.notebook],
            data,
            title,
            None if low is None else low[here],
            None if high is None else high[here],
            lacks,
            source.signed,
            n,
        )
