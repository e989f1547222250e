"""Markdown tables of single result files."""

import json
from pathlib import Path

from ..drift.table1 import COLUMNS, paper_points
from ..glue.tasks import TASKS
from .results import RESULTS


def scores(results: dict) -> list[str]:
    """Table 1: ours in points with 95 % intervals, the paper's in brackets.

    Args:
        results: notebook 3's ``results.json``, parsed.
    """
    rows = []
    for name, columns in results["table1"].items():
        for metric in TASKS[name].metrics:
            cells = []
            for column in COLUMNS:
                ours, paper = columns[column][metric], paper_points(TASKS[name], column, metric)
                text = "{value:.1f} [{low:.1f}, {high:.1f}]".format(**{k: 100 * ours[k] for k in ("value", "low", "high")})
                cells.append(text if paper is None else f"{text} ({paper:.1f})")
            rows.append([TASKS[name].title, metric, *cells, columns[column][metric]["n"]])
    return table(["task", "metric", *COLUMNS.values(), "dev examples"], rows)


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


TABLES = {"table1": scores, "pointing": pointing, "speed": speed, "parsed": parsed}


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
    return [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines]
