"""Numbers per head, out of results.json files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...glue.tasks import TASKS
from ...patterns.labelled_maps import PATTERNS
from ..committed import Committed, read_committed


@dataclass(frozen=True)
class Measure:
    """One number per head.

    Attributes:
        name: what is measured, with the unit.
        values: shape (layers, heads); NaN where it was not measured.
        topic: heading under which it is found.
        data: what it was measured on ("GLUE · MRPC").
        low: lower ends of the 95 % intervals, of the same shape; None without.
        high: their upper ends.
        signed: values fall on both sides of 0, which is white.
        n: examples behind each value, if known.
    """

    name: str
    values: np.ndarray
    topic: str = "measures"
    data: str = ""
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    signed: bool = False
    n: int | None = None


@dataclass(frozen=True)
class _Source:
    """Where a results.json has numbers per head.

    ``path``: names of nested values; what stands in braces may be any name and
    goes into ``name``, but "{task}", which tells on what was measured. With
    "{pattern}" in ``name`` the numbers have a last axis, the five patterns.
    What is shown is ``offset`` + ``factor`` × the number. ``count``: path of the
    number of examples.
    """

    notebook: int
    path: str
    name: str
    count: str = ""
    signed: bool = False
    factor: float = 1.0
    offset: float = 0.0


_TOPICS = {
    1: "Patterns (§4.1)",
    2: "FrameNet links (§4.2)",
    3: "What fine-tuning changes (§4.3)",
    4: "Types of words, [CLS] and [SEP] (§4.4)",
    5: "Links between words (§4.5)",
    6: "Switching a head off (§4.6)",
    7: "What attention weighs",
}
# fmt: off
_SOURCES = (
    _Source(1, "by_head/{task}/{model}", "share of maps: {pattern}, {model}", "shares/{task}/{model}/predicted/vertical/n"),
    _Source(2, "scores", "weight of frame links, pre-trained", "sentences"),
    _Source(2, "random_weights", "weight of frame links, random weights", "sentences"),
    _Source(2, "pointing", "share of sentences where it points along the frame link, pre-trained", "sentences"),
    _Source(2, "compared/{other}/excess", "weight of frame links above that of {other}, pre-trained",
            "sentences", signed=True),
    _Source(2, "compared/{other}/above", "frame links above {other}: p, corrected over heads", "sentences"),
    _Source(3, "drift/{task}/fine-tuning", "change of maps by fine-tuning (1 − cosine), training 1",
            "rows/{task}/dev", factor=-1, offset=1),
    _Source(3, "drift/{task}/fine-tuning again", "change of maps by fine-tuning (1 − cosine), training 2",
            "rows/{task}/dev", factor=-1, offset=1),
    _Source(3, "drift/{task}/another seed", "difference of maps of two trainings (1 − cosine)",
            "rows/{task}/dev", factor=-1, offset=1),
    _Source(3, "drift/{task}/random start", "change of maps by fine-tuning random weights (1 − cosine)",
            "rows/{task}/dev", factor=-1, offset=1),
    _Source(3, "drift/{task}/same way", "cosine of the changes of two trainings", "rows/{task}/dev", signed=True),
    _Source(3, "drift/{task}/other task", "cosine of the changes of two tasks", "rows/{task}/dev", signed=True),
    _Source(4, "heads/{model}/{task}/{type}", "weight on {type}, {model}", "examples/{task}/{type}"),
    _Source(4, "changes/{task}/{type}", "weight on {type}, fine-tuned minus pre-trained",
            "examples/{task}/{type}", signed=True),
    _Source(4, "excess/{model}/{type}", "weight on {type} above that on matched words, {model}",
            "matched_examples/{type}", signed=True),
    _Source(5, "scores/{model}/{link}", "weight {link}, {model}", "examples/{link}"),
    _Source(5, "excess/{model}, links/{link}", "weight {link} above that elsewhere, {model}", signed=True),
    _Source(5, "neighbours/{model}", "weight on neighbouring words, {model}"),
    _Source(6, "effects/{task}, training {n}/heads/values", "gain in points without the head, training {n}",
            "examples/{task}", signed=True, factor=100),
    _Source(6, "effects/{task}, training {n}/heads/better", "better without the head: p, training {n}", "examples/{task}"),
    _Source(6, "effects/{task}, training {n}/heads/worse", "worse without the head: p, training {n}", "examples/{task}"),
    _Source(6, "other_ways/{task}, {way}", "gain in points without the head, which gives instead: {way}",
            signed=True, factor=100),
    _Source(7, "by_head/{way}/{task}", "share of attention to [CLS] by {way}, pre-trained", "examples/{task}"),
)
# fmt: on


def read_measures(root: Path) -> tuple[list[Measure], list[str]]:
    """All numbers per head of the committed results, and what is missing and how to make it.

    Args:
        root: the checkout.
    """
    measures: list[Measure] = []
    missing: list[str] = []
    for one in read_committed(root):
        found, lacks = _of_one(one) if not one.problem else ([], [one.missing])
        if any(measure.values.shape != (measures or found)[0].values.shape for measure in found):
            other = replace(one, problem="is of a model with other heads than the results before it")
            found, lacks = [], [other.missing]
        measures, missing = measures + found, missing + lacks
    return measures, missing


def _of_one(one: Committed) -> tuple[list[Measure], list[str]]:
    measures: list[Measure] = []
    lacks: list[str] = []
    for source in (source for source in _SOURCES if source.notebook == one.notebook):
        found = [
            measure
            for names, values in _matching(one.content, source.path.split("/"))
            for measure in _measures(source, one.place.data, names, values, _count(source, one.content, names))
        ]
        measures += found
        if not found:
            lacks.append(
                f"`{one.file}` has no numbers per head in `{source.path}`. To make them: `{one.place.command(one.notebook)}`"
            )
    return measures, lacks


def _matching(value: Any, path: list[str], names: dict[str, str] | None = None) -> Iterator[tuple[dict[str, str], Any]]:
    """Values at a path, with what stands for the names in braces."""
    if not path:
        yield names or {}, value
    elif isinstance(value, dict):
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(path[0]))
        for key, inner in value.items():
            if match := re.fullmatch(pattern, key):
                yield from _matching(inner, path[1:], {**(names or {}), **match.groupdict()})


def _count(source: _Source, content: dict[str, Any], names: dict[str, str]) -> int | None:
    """How many examples a run measured, which is at most what it was told to."""
    value: Any = content
    for name in source.count.format(**names).split("/"):
        value = value.get(name) if isinstance(value, dict) else None
    most = content.get("settings", {}).get("max_examples", 0) if source.notebook == 3 else 0  # there all rows are counted
    return min(value, most or value) if isinstance(value, int) else None


def _measures(source: _Source, place: str, names: dict[str, str], values: Any, n: int | None) -> Iterator[Measure]:
    """One measure, or one for each pattern; none if these are no numbers per head."""
    try:
        array = source.offset + source.factor * np.array(values, dtype=float)  # null is NaN
    except (TypeError, ValueError):
        return
    last = {"pattern": PATTERNS} if "{pattern}" in source.name else {}
    if array.shape[2:] != tuple(map(len, last.values())) or array.ndim < 2:
        return
    task = names.get("task")
    data = f"{place} · {TASKS[task].title if task in TASKS else task}" if task else f"{place} · all tasks"
    for at in np.ndindex(array.shape[2:]):
        name = source.name.format(
            **names, **{axis: kinds[index] for index, (axis, kinds) in zip(at, last.items(), strict=True)}
        )
        yield Measure(
            name, array[(slice(None), slice(None), *at)], _TOPICS[source.notebook], data, signed=source.signed, n=n
        )
