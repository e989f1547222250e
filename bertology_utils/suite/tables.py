"""Markdown tables of single result files, with one estimate in a cell."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from ..drift.table1 import COLUMNS, paper_points
from ..glue.tasks import TASKS, plain_metric
from .markdown import plain
from .results import RESULTS

_PART = re.compile(r"; |(?<=\d\d), (?=\(\d)| (?=\([^)\d])")  # of a verdict's number: what another may follow
_NUMBER = re.compile(r"[-+]?\d+\.\d+")


def one_estimate(text: str) -> tuple[str, list[str]]:
    """A verdict's number, or a finding, in two parts: its first estimate with its sizes, and the other estimates.

    Args:
        text: such as "κ 0.67 [0.63, 0.71]; n=2280 (pre-trained 0.80)".
    """
    kept, others = "", []
    seen = False
    for between, part in zip(["", *_PART.findall(text)], _PART.split(text), strict=True):
        estimated = bool(_NUMBER.search(re.sub(r"p [<=] [\d.]+", "", part)))
        if estimated and seen:
            others.append(re.sub(r"^\(([^\d].*)\)$", r"\1", part))
        else:
            kept, seen = kept + between + part, seen or estimated
    return kept, others


def further(numbers: Iterable[tuple[str, str]]) -> list[str]:
    """What verdicts have beside their first estimates, a line each, below a heading; nothing if none has more.

    Args:
        numbers: (of what, a verdict's number).
    """
    lines = [plain(f"- {name}: {'; '.join(others)}") for name, text in numbers if (others := one_estimate(text)[1])]
    return ["Beside these numbers:", "", *lines] if lines else []


def scores(results: dict) -> list[str]:
    """Table 1 in points: below our numbers, with 95 % intervals, the paper's.

    Args:
        results: notebook 3's ``results.json``, parsed.
    """
    rows = []
    for name, columns in results["table1"].items():
        for metric in TASKS[name].metrics:
            cells = [_points(columns[column][metric]) if column in columns else "–" for column in COLUMNS]
            rows.append([TASKS[name].title, metric, "here", *cells, columns["finetuned"][metric]["n"]])
            paper = [paper_points(TASKS[name], column, metric) for column in COLUMNS]
            if any(points is not None for points in paper):
                rows.append(["", "", "the paper", *("–" if one is None else f"{one:.1f}" for one in paper), "–"])
    return table(["task", "metric", "whose", *COLUMNS.values(), "dev examples"], rows)


def pointing(results: dict) -> list[str]:
    """The best heads for dependencies, beside Clark et al.'s.

    Args:
        results: ``ud_heads.json``, parsed.
    """
    rows = results["relations"]["pretrained"]
    beaten = sum(row["heads that beat it"] for row in results["relations"]["normal"])
    below = f"{results['sentences']} distinct sentences. With random weights, heads that beat the best distance: {beaten}."
    return [*table(list(rows[0]), [list(row.values()) for row in rows]), "", below]


def speed(results: dict) -> list[str]:
    """The sweep's time beside that of plainer ways.

    Args:
        results: ``sweep_speed_….json``, parsed.
    """
    examples = f"{results['examples']} examples of {TASKS[results['task']].title}"
    title = f"{results['shape']}, {examples}, {results['mean length']:.0f} wordpieces"
    head = [title, "seconds", "the sweep is faster", "largest difference of an output", "predictions that differ"]
    rows = []
    for name, seconds in results["seconds"].items():
        faster = results["times faster than"].get(name)
        differ, of = results["predictions that differ from the sweep's"][name]
        largest = f"{results['largest difference from the sweep'][name]:.0e}"
        rows.append([name, f"{seconds:.1f}", f"{faster:.1f} times" if faster else "–", largest, f"{differ} of {of}"])
    return table(head, rows)


def parsed(results: dict) -> list[str]:
    """How little §4.4's heatmaps change if a parser annotates instead of the corpora, by type of token.

    Args:
        results: ``annotation_heatmaps.json``, parsed.
    """
    head = ["type of token", "correlation over heads", "same wordpieces (F1)", "wordpieces"]
    rows = [
        [kind, f"{one['Pearson']:.3f}", f"{100 * one['F1 of wordpieces']:.0f} %", one["wordpieces"]]
        for kind, one in results["types"].items()
    ]
    return table(head, rows)


def trainings(results: dict) -> list[str]:
    """How far apart the trainings of a task are, in points.

    Args:
        results: ``glue_trainings.json``, parsed.
    """
    head = ["task", "metric", "mean", "lowest", "highest", "trainings", "always the same answer", "learned", "rows scored"]
    rows = []
    for name, one in results.items():
        task = TASKS[name]
        metric = plain_metric(task)
        each = one["each"][metric]
        least, most, same = (f"{100 * score:.1f}" for score in (min(each), max(each), one["always the same"]))
        told = "yes" if one["learned"] else "no"
        rows.append(
            [task.title, metric, _points(one["scores"][metric]), least, most, one["trainings"], same, told, one["n"]]
        )
    return table(head, rows)


def recipes(results: dict) -> list[str]:
    """Ways of training one task, in points of accuracy, the best first.

    Args:
        results: ``glue_recipes.json``, parsed.
    """
    found = sorted(results.values(), key=lambda one: -one["scores"]["accuracy"]["value"])
    rows = []
    for one in found:
        same = f"{100 * one['always the same']:.1f}"
        rows.append([one["recipe"], _points(one["scores"]["accuracy"]), same, one["trainings"], one["n"]])
    return table(["recipe", "accuracy", "always the same answer", "trainings", "rows scored"], rows)


def needed(results: dict) -> list[str]:
    """What disabling heads, and the first layer, does to models that learned; what the best head is worth on other examples.

    Args:
        results: ``glue_heads.json``, parsed.
    """
    head = ["task", "heads that cost", "heads that help", "best head, points", "on other examples", "mean head", "layer 1"]
    rows = []
    for name, one in results["tasks"].items():
        if one["learned"]:
            counts = [_range(one[which]) for which in ("heads that cost", "heads that help")]
            gains = [_points(one[which], "+") for which in ("best head", "on other examples", "mean head", "first layer")]
            rows.append([TASKS[name].title, *counts, *gains, one["trainings"], one["n"]])
    return table([*head, "trainings", "rows scored"], rows)


def _range(counts: list[int]) -> str:
    """Of several counts the least and the most."""
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(counts[0])


def _points(one: dict, sign: str = "") -> str:
    """A score and its interval, in points; a gain with its sign."""
    value, low, high = (f"{100 * one[part]:{sign}.1f}" for part in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


TABLES = {
    "table1": scores,
    "trainings": trainings,
    "recipes": recipes,
    "needed": needed,
    "pointing": pointing,
    "speed": speed,
    "parsed": parsed,
}


def read(path: Path) -> dict:
    """A results file.

    Raises:
        ValueError: it cannot be read; says where it belongs.
    """
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(results, dict):
            raise ValueError("not an object")
        return results
    except (OSError, ValueError) as error:
        reason = "it is missing" if isinstance(error, FileNotFoundError) else "it is damaged"
        raise ValueError(f"{name_of(path)} cannot be read: {reason}; {maker_of(path)} anew") from error


def name_of(path: Path) -> str:
    """A results file in a message, without the place of the checkout."""
    return "/".join(path.parts[-2 if path.parent.name == "benchmarks" else -3 :])


def maker_of(path: Path) -> str:
    """What makes a results file."""
    return f"run the notebook {path.parent.name}" if path.name == RESULTS else "run the script of that name in benchmarks/"


def table(head: list, rows: list[list]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(plain(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
