"""The README's tables of verdicts, written from the notebooks' results so that they cannot differ."""

import json
import re
from pathlib import Path

from .cache import write_atomically
from .results import RESULTS


def verdict_lines(results: dict) -> str:
    """A Markdown table of one run's verdicts.

    Args:
        results: a notebook's ``results.json``, parsed.
    """
    rows = [f"| {v['claim']} | {v['paper']} | {v['ours']} | **{v['outcome']}** |" for v in results["verdicts"]]
    return "\n".join(["| claim | paper | ours | verdict |", "|---|---|---|---|", *rows])


def with_verdicts(text: str, root: Path) -> str:
    """The README's text with each table renewed.

    A table stands between ``<!-- verdicts: FOLDER -->`` and ``<!-- end -->``,
    where FOLDER holds a ``results.json``.

    Args:
        text: the README.
        root: the checkout.
    """

    def renewed(match: re.Match) -> str:
        results = json.loads((root / match[1] / RESULTS).read_text(encoding="utf-8"))
        return f"<!-- verdicts: {match[1]} -->\n{verdict_lines(results)}\n<!-- end -->"

    return re.sub(r"<!-- verdicts: (\S+) -->.*?<!-- end -->", renewed, text, flags=re.DOTALL)


def update(root: Path) -> None:
    """Renew the tables of the checkout's README."""
    path = root / "README.md"
    write_atomically(path, with_verdicts(path.read_text(encoding="utf-8"), root).encode())
