"""The README's tables, written from the notebooks' results so that they cannot differ."""

import json
import re
from pathlib import Path

from ..common.cache import write_atomically
from ..drift.table1 import COLUMNS, paper_points
from ..glue.tasks import TASKS
from .results import RESULTS


def verdict_lines(results: dict) -> list[str]:
    """Rows of a Markdown table of one run's verdicts.

    Args:
        results: a notebook's ``results.json``, parsed.
    """
    rows = [f"| {v['claim']} | {v['paper']} | {v['ours']} | **{v['outcome']}** |" for v in results["verdicts"]]
    return ["| claim | paper | ours | verdict |", "|---|---|---|---|", *rows]


def score_lines(results: dict) -> list[str]:
    """Rows of a Markdown table in the form of Table 1: ours with 95 % intervals, the paper's in brackets, in points.

    Args:
        results: notebook 3's ``results.json``, parsed.
    """
    lines = [f"| task | metric | {' | '.join(COLUMNS.values())} | dev examples |", "|---|---|---|---|---|---|"]
    for name, columns in results["table1"].items():
        for metric in TASKS[name].metrics:
            cells = []
            for column in COLUMNS:
                ours, paper = columns[column][metric], paper_points(TASKS[name], column, metric)
                text = "{value:.1f} [{low:.1f}, {high:.1f}]".format(**{k: 100 * ours[k] for k in ("value", "low", "high")})
                cells.append(text if paper is None else f"{text} ({paper:.1f})")
            lines.append(f"| {TASKS[name].title} | {metric} | {' | '.join(cells)} | {columns[column][metric]['n']} |")
    return lines


def pointing_lines(results: dict) -> list[str]:
    """Rows of a Markdown table of the best heads for dependencies, beside Clark et al.'s.

    Args:
        results: ``ud_heads.json``, parsed.
    """
    rows = results["relations"]["pretrained"]
    lines = [" | ".join(map(str, row.values())) for row in ({name: name for name in rows[0]}, *rows)]
    return [f"| {lines[0]} |", "|---" * len(rows[0]) + "|", *[f"| {line} |" for line in lines[1:]]]


def speed_lines(results: dict) -> list[str]:
    """Rows of a Markdown table of the sweep's time beside that of plainer ways.

    Args:
        results: ``sweep_speed_….json``, parsed.
    """
    title = f"{results['shape']}, {results['examples']} examples of {results['task'].upper()}, {results['mean length']:.0f} wordpieces"
    lines = [
        f"| {title} | seconds | the sweep is faster | largest difference of an output | predictions that differ |",
        "|---|---|---|---|---|",
    ]
    for name, seconds in results["seconds"].items():
        faster = results["times faster than"].get(name)
        differ, of = results["predictions that differ from the sweep's"][name]
        lines.append(
            f"| {name} | {seconds:.1f} | {f'{faster:.1f} times' if faster else '–'}"
            f" | {results['largest difference from the sweep'][name]:.0e} | {differ} of {of} |"
        )
    return lines


_TABLES = {"verdicts": verdict_lines, "table1": score_lines, "pointing": pointing_lines, "speed": speed_lines}


def with_tables(text: str, root: Path) -> str:
    """The README's text with each table renewed.

    A table stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``; KIND
    is one of :data:`_TABLES`, PLACE a JSON file or a folder with a
    ``results.json``.

    Args:
        text: the README.
        root: the checkout.
    """

    def renewed(match: re.Match) -> str:
        kind, place = match.groups()
        path = root / place if place.endswith(".json") else root / place / RESULTS
        results = json.loads(path.read_text(encoding="utf-8"))
        return "\n".join([f"<!-- {kind}: {place} -->", *_TABLES[kind](results), "<!-- end -->"])

    return re.sub(rf"<!-- ({'|'.join(_TABLES)}): (\S+) -->.*?<!-- end -->", renewed, text, flags=re.DOTALL)


def update(root: Path) -> None:
    """Renew the tables of the checkout's README."""
    path = root / "README.md"
    write_atomically(path, with_tables(path.read_text(encoding="utf-8"), root).encode())
