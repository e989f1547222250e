"""The README's tables, written from the notebooks' results so that they cannot differ."""

import json
import re
from pathlib import Path

from ..claims.register import CLAIMS, CONTROLS, ENTRIES
from ..claims.support import UNTESTABLE
from ..common.cache import write_atomically
from ..drift.table1 import COLUMNS, paper_points
from ..glue.tasks import TASKS
from .results import RESULTS

CONTROL_IDS = {entry.id for entry in CONTROLS}


def verdict_lines(results: dict) -> list[str]:
    """Rows of a Markdown table of one run's verdicts on the paper's claims, and one of our controls.

    Args:
        results: a notebook's ``results.json``, parsed.
    """
    claims, controls = ([v for v in results["verdicts"] if (v["id"] in CONTROL_IDS) == ours] for ours in (False, True))
    rows = [f"| {v['claim']} | {v['paper']} | {_ours(v)} | **{v['outcome']}** |" for v in claims]
    extra = [f"| {v['claim']} | {_ours(v)} | {v['outcome']} |" for v in controls]
    tables = ["| claim | paper | ours | verdict |", "|---|---|---|---|", *rows]
    if extra:
        tables += ["", "| control of ours | ours | verdict |", "|---|---|---|", *extra]
    return tables


def _ours(verdict: dict) -> str:
    """This run's number, whose it is if not this run's, or what is missing."""
    if verdict["outcome"] == UNTESTABLE:
        return verdict["why"]
    return verdict["ours"] if verdict["model"] == "this run" else f"{verdict['model']}: {verdict['ours']}"


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


def register_lines(root: Path, places: str) -> list[str]:
    """Rows of a Markdown table of every claim of the paper: what is said of it with bert-base, on GLUE, and embedded.

    Args:
        root: the checkout.
        places: the folders of the embedded results and of those on GLUE, with "+" between.
    """
    embedded: dict[tuple, str] = {}
    glue: dict[tuple, str] = {}
    for found, folder in zip((embedded, glue), places.split("+"), strict=True):
        for path in sorted((root / folder).glob(f"*/{RESULTS}")):
            for verdict in json.loads(path.read_text(encoding="utf-8"))["verdicts"]:
                key = verdict.get("id"), verdict.get("model") == "this run"
                found[key] = verdict["outcome"]
    lines = ["| § | claim | the paper | bert-base | MiniLM on GLUE | MiniLM, embedded |", "|---|---|---|---|---|---|"]
    for entry in CLAIMS:
        outcomes = embedded.get((entry.id, False)), glue.get((entry.id, True)), embedded.get((entry.id, True))
        bert, real, own = (outcome or "not run" for outcome in outcomes)
        bert += " (published panel)" if outcomes[0] else ""
        lines.append(f"| {entry.section} | {entry.claim} | {entry.paper} | {bert} | {real} | {own} |")
    return lines


_TABLES = {"verdicts": verdict_lines, "table1": score_lines, "pointing": pointing_lines, "speed": speed_lines}


def with_tables(text: str, root: Path) -> str:
    """The README's text with each table renewed.

    A table stands between ``<!-- KIND: PLACE -->`` and ``<!-- end -->``; KIND
    is one of :data:`_TABLES`, PLACE a JSON file or a folder with a
    ``results.json``; or KIND is "register", see :func:`register_lines`.

    Args:
        text: the README.
        root: the checkout.

    Raises:
        ValueError: results of another version; names them.
    """

    def renewed(match: re.Match) -> str:
        kind, place = match.groups()
        if kind == "register":
            return "\n".join([f"<!-- {kind}: {place} -->", *register_lines(root, place), "<!-- end -->"])
        path = root / place if place.endswith(".json") else root / place / RESULTS
        results = json.loads(path.read_text(encoding="utf-8"))
        if kind == "verdicts" and any(verdict.get("id") not in ENTRIES for verdict in results["verdicts"]):
            raise ValueError(f"{place} has verdicts of another version; run its notebook anew")
        return "\n".join([f"<!-- {kind}: {place} -->", *_TABLES[kind](results), "<!-- end -->"])

    return re.sub(rf"<!-- ({'|'.join((*_TABLES, 'register'))}): (\S+) -->.*?<!-- end -->", renewed, text, flags=re.DOTALL)


def update(root: Path) -> None:
    """Renew the tables of the checkout's README."""
    path = root / "README.md"
    write_atomically(path, with_tables(path.read_text(encoding="utf-8"), root).encode())
