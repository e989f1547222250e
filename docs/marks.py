"""Numbers in sentences that were written by hand: each names the row of results that it is, and a test compares both.

A comment, which no reader sees, stands behind the number: ``0.98<!-- = real 6 | largest gain
    without a head | task=mrpc | training=1 -->``. First comes the run: ``real``, the committed
    evidence, with a notebook's number unless it is the page's own, or a results file below the checkout. Then what
    was measured, and labels of the row, layers and heads counted from 1; of one number in an array
    also those. ``part=`` chooses ``low``, ``high``, ``n``, ``trainings``; ``lowest`` or ``highest``
    of several rows; of a claim,
on how many tasks it holds: ``holds``, ``fails``, ``open``. Numbers to twelve may be words.

``<!-- = real | fact frame_head -->`` stands behind a fact, such as "(4, 2)". A sentence that tells
of a verdict ends with ``<!-- = real | several-heads-harmless: undecided -->``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from bertology_utils.common import one_of
from bertology_utils.record import EVIDENCE
from bertology_utils.results import Results, factor_of, read_results, tidy
from bertology_utils.verdicts import CLAIMS, OUTCOMES, THIS_RUN

WORDS = (
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_NUMBER = rf"[-+−]?\d[\d,]*(?:\.\d+)?|\b(?:{'|'.join(WORDS)}|none)\b"
_MARK = re.compile(
    rf"(?:(?P<fact>\([^()]*\))|(?P<number>{_NUMBER}))?[ *]*(?:%|points?)?[*_]*<!-- = (?P<row>[^\n]*?) -->",
    re.IGNORECASE,
)
_PARTS = ("value", "low", "high", "n", "trainings", "lowest", "highest", "holds", "fails", "open")


def wrong_numbers(text: str, root: Path, notebook: str = "") -> list[str]:
    """The marked numbers, facts and verdicts of a page that are not what the results say, a line for each with its sentence.

    Args:
        text: the page.
        root: the checkout.
        notebook: whose page it is, by name ("6_disabling_heads"); "" for another page.
    """
    wrong = []
    for match in _MARK.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.end()]
        where = f"in: {re.sub('<!--.*?-->', '', line).strip()}"
        try:
            if complaint := _complaint(match, root, notebook):
                wrong.append(f"{complaint}, {where}")
        except ValueError as error:
            wrong.append(f"{match['row']!r}: {error}, {where}")
    return wrong


def _complaint(match: re.Match[str], root: Path, notebook: str) -> str:
    """What is wrong with a mark; "" if it is right."""
    place, what, *labels = match["row"].split(" | ")
    run = _run(place, root, notebook)
    claim, _, outcome = what.partition(": ")
    if claim in CLAIMS and outcome:
        found = _verdict(run, claim)["outcome"]
        return (
            ""
            if found.startswith(
                one_of("outcome", outcome, [one.removesuffix(" here") for one in OUTCOMES])
            )
            else (f"{claim} is {found!r}")
        )
    if what.startswith("fact "):
        found = str(run.content["facts"].get(what.removeprefix("fact ")))
        told = match["fact"] or match["number"] or ""
        return "" if re.findall(r"\w+", told) == re.findall(r"\w+", found) else f"{told} is {found}"
    if match["number"] is None:
        raise ValueError("no number stands before it")
    number = _number(run, what, dict(label.split("=", 1) for label in labels))
    written = match["number"].replace("−", "-").replace(",", "").lower().replace("none", "no")
    if written in WORDS:
        written = str(WORDS.index(written))
    digits = len(written.partition(".")[2])
    same = f"{round(number, digits) + 0.0:.{digits}f}" == f"{float(written):.{digits}f}"
    return "" if same else f"{match['number']} is {number:.{digits + 1}f} in {match['row']!r}"


def _run(place: str, root: Path, notebook: str) -> Results:
    """The results that a mark is about."""
    kind, _, number = place.partition(" ")
    if kind != "real":
        return read_results(root / place)
    number = number or notebook.split("_")[0]
    folder = root / "results" / EVIDENCE.get(number, "glue")
    paths = sorted(folder.glob(f"{number}_*.json")) if number else []
    if not paths:
        raise ValueError(f"{folder.name} has no results of notebook {number or '(which?)'}")
    return read_results(paths[0])


def _verdict(run: Results, claim: str) -> Mapping[str, str]:
    """The verdict on this run's model; where there is none on it, the only one."""
    found = {model: one for (name, model), one in run.verdicts.items() if name == claim}
    if THIS_RUN not in found and len(found) != 1:
        raise ValueError(
            f"{run.content['notebook']} has {len(found) or 'no'} verdicts on {claim!r}"
        )
    return found.get(THIS_RUN) or next(iter(found.values()))


def _number(run: Results, what: str, options: dict[str, str]) -> float:
    """One number of a run, as people read it."""
    part = one_of("part", options.pop("part", "value"), _PARTS)
    if part in ("holds", "fails", "open"):
        tally = _verdict(run, one_of("claim", what, CLAIMS))["tally"]
        if not tally:
            raise ValueError(f"the verdict on {what!r} has no tally")
        return tally[part]
    at = {
        name: str(int(number) - 1) for name, number in options.items() if name in ("layer", "head")
    }
    chosen = options | at
    rows = [
        one
        for one in tidy(run.find(what)).to_dict("records")
        if all(str(one.get(name)) in (value, f"{value}.0") for name, value in chosen.items())
    ]
    several = part in ("lowest", "highest")
    column = "value" if several else part
    numbers = [float(one[column]) for one in rows if one[column] == one[column]]
    if not numbers or (len(numbers) > 1 and not several):
        raise ValueError(f"there are {len(numbers)} such numbers; one is wanted")
    factor = factor_of(rows[0]) if column in ("value", "low", "high") else 1
    return factor * (min if part == "lowest" else max)(numbers)
