"""Numbers in sentences that are written by hand: each names what it is, and a test compares both.

A comment, which no reader sees, stands behind the number. On a page of its own, ``0.64<!-- best_gain -->``
is a number that the page keeps by ``study.say(best_gain=…)``. In any other document,
``<!-- = e5 4 | cls_weight -->`` names the study and the page as well; in a table, whose cells a bar
would split, ``<!-- = e5 4 cls_weight -->``. Whole numbers up to twelve may be words.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from bertology_utils.common import one_of
from bertology_utils.settings import KEPT
from docs.pages import told

WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()
_MARK = re.compile(
    rf"(?:(?P<number>[-+−]?\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(WORDS)}|none)\b)[ *_]*(?:%|points?)?[ *_]*)?"
    r"<!-- (?:= (?P<study>\S+) (?P<page>\d+)(?: \|)? )?(?P<name>\w+) -->",
    re.IGNORECASE,
)


def prose(page: Path) -> str:
    """A page's text; of a notebook its Markdown cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")


def wrong_numbers(page: Path, root: Path) -> list[str]:
    """The marked numbers of a page that are not what ``results/`` has, a line for each.

    Args:
        page: a Markdown file, or a notebook, whose own numbers need no study and page.
        root: the checkout.
    """
    own = ("e5", page.stem.split("_")[0]) if page.suffix == ".ipynb" else None
    return wrong_in(prose(page), root, own, page.name)


def wrong_in(
    text: str, root: Path, own: tuple[str, str] | None = None, called: str = "the text"
) -> list[str]:
    """The same of a text; ``own`` is the study and the number of the page that it stands on."""
    wrong = []
    for match in _MARK.finditer(text):
        place = (match["study"], match["page"]) if match["study"] else own
        if place is None:  # another comment, such as that of a recipe
            continue
        try:
            said = told(root, one_of("study", place[0], KEPT), place[1]).get("said", {})
            complaint = _differs(match["number"], said[one_of("number", match["name"], said)])
        except ValueError as error:
            complaint = str(error)
        if complaint:
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.end()]
            sentence = re.sub("<!--.*?-->", "", line).strip()
            wrong.append(f"{called}, {match['name']}: {complaint}, in: {sentence}")
    return wrong


def _differs(number: str | None, value: float) -> str:
    """What is wrong with a number that is written for a value, with as many digits as it has; "" if it is right."""
    if number is None:
        return "no number stands before it"
    written = number.replace("−", "-").replace(",", "").lower().replace("none", "no")
    if written in WORDS:
        written = str(WORDS.index(written))
    digits = len(written.partition(".")[2])
    near = abs(float(written) - value) <= 0.5 * 10**-digits + 1e-6
    return "" if near else f"{number} is {value:.{digits + 2}f}"
