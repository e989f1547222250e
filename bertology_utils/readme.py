"""The README's tables, written from the notebooks' results so that they cannot differ."""

import json
import re
from pathlib import Path

from .cache import write_atomically
from .results import RESULTS
from .table1 import COLUMNS, paper_points
from .tasks import TASKS


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


_TABLES = {"verdicts": verdict_lines, "table1": score_lines}


def with_tables(text: str, root: Path) -> str:
    """The README's text with each table renewed.

    A table stands between ``<!-- KIND: FOLDER -->`` and ``<!-- end -->``;
    KIND is "verdicts" or "table1", FOLDER holds a ``results.json``.

    Args:
        text: the README.
        root: the checkout.
    """

    def renewed(match: re.Match) -> str:
        kind, folder = match.groups()
        results = json.loads((root / folder / RESULTS).read_text(encoding="utf-8"))
        return "\n".join([f"<!-- {kind}: {folder} -->", *_TABLES[kind](results), "<!-- end -->"])

    return re.sub(r"<!-- (verdicts|table1): (\S+) -->.*?<!-- end -->", renewed, text, flags=re.DOTALL)


def update(root: Path) -> None:
    """Renew the tables of the checkout's README."""
    path = root / "README.md"
    write_atomically(path, with_tables(path.read_text(encoding="utf-8"), root).encode())
