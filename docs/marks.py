"""Numbers in sentences that are written by hand: each names the row of results that it is, and a test compares both.

A comment, which no reader sees, stands behind the number::

    0.98<!-- = real 6 | largest gain without a head | task=mrpc | training=1 -->

First comes the run: ``real``, the committed evidence, with a notebook's number unless it is the
page's own; or a results file below the checkout. Then come what was measured and the labels of the
row, with layers and heads counted from 1. ``part=`` chooses ``low``, ``high``, ``n`` or
``trainings``; ``lowest`` or ``highest`` of several rows; of a claim, on how many tasks it
``holds``, ``fails`` or is ``undecided``. ``as=loss`` is the number with the other sign, for a change
that a sentence calls a loss or a cost. Numbers up to twelve may be words.

Of a study that computes on measurements, ``<!-- = e5 4 | cls_weight -->`` names a number that page 4
keeps under this name.

``<!-- = real | fact frame_head -->`` stands behind a fact, such as "(4, 2)". A sentence that states
a verdict ends with ``<!-- = real | several-heads-harmless: undecided -->``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from bertology_utils.common import one_of
from bertology_utils.results import Results, factor_of, read_results, tidy
from bertology_utils.studies import KEPT
from bertology_utils.verdicts import CLAIMS, OUTCOMES, THIS_RUN
from docs.pages import evidence

WORDS = "no one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER = rf"[-+−]?\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(WORDS)}|none)\b"
_MARK = re.compile(
    rf"(?:(?P<fact>\([^()]*\))|(?P<number>{_NUMBER}))?[ *]*(?:%|points?)?[*_]*<!-- = (?P<row>[^\n]*?) -->",
    re.IGNORECASE,
)
_PARTS = (
    "value",
    "low",
    "high",
    "n",
    "trainings",
    "lowest",
    "highest",
    "holds",
    "fails",
    "undecided",
)


def prose(page: Path) -> str:
    """A page's text; of a notebook its Markdown cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")


def wrong_numbers(page: Path, root: Path) -> list[str]:
    """The marked numbers, facts and verdicts of a page that are not what the results say.

    Args:
        page: a Markdown file, or a notebook, whose own evidence ``real`` is.
        root: the checkout.

    Returns:
        A line for each, which names the page, the row and the sentence.
    """
    text, wrong = prose(page), []
    own = page.stem.split("_")[0] if page.suffix == ".ipynb" else ""
    for match in _MARK.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.end()]
        try:
            complaint = _complaint(match, root, own)
        except ValueError as error:
            complaint = str(error)
        if complaint:
            sentence = re.sub("<!--.*?-->", "", line).strip()
            wrong.append(f"{page.name}, {match['row']!r}: {complaint}, in: {sentence}")
    return wrong


def _complaint(match: re.Match[str], root: Path, own: str) -> str:
    """What is wrong with a mark; "" if it is right."""
    place, what, *labels = match["row"].split(" | ")
    kind, _, number = place.partition(" ")
    if kind in KEPT:
        (page,) = (root / "results" / kind / "pages").glob(f"{number}_*.json")
        said = json.loads(page.read_text(encoding="utf-8"))["said"]
        return _differs(match["number"], said[one_of("number", what, said)])
    run = evidence(root, number or own) if kind == "real" else read_results(root / place)
    claim, _, outcome = what.partition(": ")
    if claim in CLAIMS and outcome:
        short = [one.removesuffix(" here") for one in OUTCOMES]
        actual = _verdict(run, claim)["outcome"]
        right = actual.startswith(one_of("outcome", outcome, short))
        return "" if right else f"{claim} is {actual!r}"
    if what.startswith("fact "):
        actual = str(run.content["facts"].get(what.removeprefix("fact ")))
        stated = match["fact"] or match["number"] or ""
        right = re.findall(r"\w+", stated) == re.findall(r"\w+", actual)
        return "" if right else f"{stated} is {actual}"
    if match["number"] is None:
        raise ValueError("no number stands before it")
    return _differs(
        match["number"], _number(run, what, dict(label.split("=", 1) for label in labels))
    )


def _differs(number: str, value: float) -> str:
    """What is wrong with a number that is written for a value, with as many digits as it has; "" if it is right."""
    written = number.replace("−", "-").replace(",", "").lower().replace("none", "no")
    if written in WORDS:
        written = str(WORDS.index(written))
    digits = len(written.partition(".")[2])
    same = f"{round(value, digits) + 0.0:.{digits}f}" == f"{float(written):.{digits}f}"
    return "" if same else f"{number} is {value:.{digits + 1}f}"


def _verdict(run: Results, claim: str) -> Mapping[str, str]:
    """The verdict on this run's model; where there is none on it, the only one."""
    by_model = {model: one for (name, model), one in run.verdicts.items() if name == claim}
    if THIS_RUN not in by_model and len(by_model) != 1:
        count = len(by_model) or "no"
        raise ValueError(f"{run.content['notebook']} has {count} verdicts on {claim!r}")
    return by_model.get(THIS_RUN) or next(iter(by_model.values()))


def _number(run: Results, what: str, options: dict[str, str]) -> float:
    """One number of a run, as people read it."""
    part = one_of("part", options.pop("part", "value"), _PARTS)
    sign = -1 if one_of("as", options.pop("as", "gain"), ("gain", "loss")) == "loss" else 1
    if part in ("holds", "fails", "undecided"):
        tally = _verdict(run, one_of("claim", what, CLAIMS))["tally"]
        if not tally:
            raise ValueError(f"the verdict on {what!r} has no tally")
        return tally[part]
    chosen = {
        name: str(int(value) - 1) if name in ("layer", "head") else value
        for name, value in options.items()
    }
    rows = [
        one
        for one in tidy(run.find(what)).to_dict("records")
        if all(str(one.get(name)) in (value, f"{value}.0") for name, value in chosen.items())
    ]
    several = part in ("lowest", "highest")
    column = "value" if several else part
    numbers = [float(one[column]) for one in rows if one[column] == one[column]]
    if not numbers or (len(numbers) > 1 and not several):
        raise ValueError(f"the results have {len(numbers)} such numbers; one is wanted")
    factor = factor_of(rows[0]) if column in ("value", "low", "high") else 1
    return sign * factor * (min if part == "lowest" else max)(numbers)
