"""The HTML report of a run: one page of verdicts that leads to the executed notebooks' own."""

import html
import json
from pathlib import Path

from ..common.cache import write_atomically
from .results import RESULTS
from .run import Outcome

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;"
    "border-bottom:1px solid #ddd}.holds{color:#2c7a53}.does{color:#a63d2f}.undecided,.not{color:#666}"
)


def write_report(outcomes: list[Outcome], output: Path, figures: Path) -> Path:
    """Write the report and return its path.

    Args:
        outcomes: of the notebooks that ran, failed ones too; their pages lie in the run's folder.
        output: the run's folder.
        figures: where the notebooks' results were published.
    """
    parts = [_section(outcome, figures) for outcome in outcomes]
    title = "Revealing the Dark Secrets of BERT: report of a run"
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{''.join(parts)}</body></html>\n"
    )
    path = output / "report.html"
    write_atomically(path, page.encode())
    return path


def _section(outcome: Outcome, figures: Path) -> str:
    title = html.escape(outcome.notebook.title)
    if outcome.page is not None:
        title = f'<a href="{outcome.page.name}">{title}</a>'
    link = f"<h2>{title}</h2>"
    cost = f"{outcome.seconds:.0f} s, at most {outcome.memory / 2**30:.1f} GiB"
    if outcome.error:
        return f"{link}<p><strong>Failed</strong> after {cost}: {html.escape(outcome.error)}</p>"
    results = figures / outcome.notebook.name / RESULTS
    verdicts = json.loads(results.read_text(encoding="utf-8"))["verdicts"] if results.exists() else []
    rows = "".join(
        f"<tr><td>{html.escape(v['claim'])}</td><td>{html.escape(v['paper'])}</td><td>{html.escape(v['ours'])}</td>"
        f'<td class="{html.escape(v["outcome"].split()[0])}">{html.escape(v["outcome"])}</td></tr>'
        for v in verdicts
    )
    table = f"<table><tr><th>claim</th><th>paper</th><th>this run</th><th>verdict</th></tr>{rows}</table>"
    return f"{link}<p>{cost}</p>{table if verdicts else ''}"
