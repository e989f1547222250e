"""What a new run says otherwise than an earlier one: printed texts, outputs of notebooks, pictures, published folders.

Numbers in results files are compared by :func:`bertology_utils.results.moved`. Texts are compared as a reader would:
words must be equal, numbers within the rule of their kind. The first rule that matches decides:

=================  ==========================  =====================================
kind               example                     may differ by
=================  ==========================  =====================================
head               (3, 11)                     nothing
value and range    64 [62, 65], 0.81 [0.7, 1]  one unit of the last printed digit
p value            p = 0.03, < 0.01            0.01 (two digits are printed)
count of many      43 of 72                    1, if there are at least 50; else nothing
decimal            0.062, +1.5, 1e-05          one unit of the last printed digit
percentage         88%, 88 %                   one unit of the last printed digit
whole number       320                         nothing
=================  ==========================  =====================================

One unit, because a number on the border of two roundings falls either way. A count may miss one because one of many
items can lie on the border of being counted; notebooks print such counts as "k of n".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from .results import RESULTS, moved, read_results

MANY = 50  # items from which on one of them may lie on a border
SHOWN = 3  # differences of one file that are told
# Of 255. A line or a colour that moves with the sixth decimal changes the pixels on its edge by a few
# levels; a printed digit, a word or another colour by a hundred and more.
VISIBLE = 48
# Matplotlib's layout measures the texts, and ends a few pixels wider on one machine than on another.
CANVAS = 0.01

_NUMBER = r"[+\-−]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_ALONE = rf"(?<![\w.]){_NUMBER}"
_ANY = re.compile(
    rf"\((?P<head>{_NUMBER}, {_NUMBER})\)"
    rf"|(?P<range>{_ALONE} \[{_NUMBER}, {_NUMBER}\])"
    rf"|\b(?P<p>p (?:[=<] )?{_NUMBER})|(?P<small>< {_NUMBER})"
    rf"|(?P<count>{_ALONE} of {_NUMBER})(?![.\d])"
    rf"|(?P<number>{_ALONE}(?: ?%)?)"
)
_PICTURES = ("image/png", "image/svg+xml", "application/pdf")  # compared where they are files


@dataclass(frozen=True)
class Number:
    """A number as printed.

    Attributes:
        text: its characters.
        tolerance: how far another run's may be from it.
        kind: the rule's name.
        line: where it stands, from 1.
    """

    text: str
    tolerance: Decimal
    kind: str
    line: int

    @property
    def value(self) -> Decimal:
        """Its value."""
        return Decimal(self.text.replace("−", "-"))


def masked(text: str) -> tuple[list[str], list[Number]]:
    """A text's lines with every number masked and runs of blanks joined, and its numbers in order."""
    lines: list[str] = []
    numbers: list[Number] = []
    for place, line in enumerate(text.strip().splitlines(), start=1):

        def take(match: re.Match[str], place: int = place) -> str:
            kind = str(match.lastgroup)
            found = re.findall(_NUMBER, match[0])
            numbers.extend(Number(one, _tolerance(kind, one, found, match[0]), kind, place) for one in found)
            # "p < 0.01" and "p = 0.01" are neighbours.
            return {"p": "p #", "small": "#"}.get(kind) or re.sub(_NUMBER, "#", match[0])

        # Blanks and rules follow the width of the numbers.
        lines.append(re.sub(r"[ \t]+", " ", re.sub(r"-{3,}", "---", _ANY.sub(take, line))).strip())
    return lines, numbers


def _tolerance(kind: str, text: str, found: list[str], whole: str) -> Decimal:
    exponent = Decimal(text.replace("−", "-")).as_tuple().exponent
    unit = Decimal(1).scaleb(int(exponent))
    if kind in ("p", "small"):
        return max(unit, Decimal("0.01"))
    if kind == "count":
        return Decimal(text is found[0] and Decimal(found[1]) >= MANY)
    return unit if kind == "range" or (kind == "number" and (unit < 1 or "%" in whole)) else Decimal(0)


def text_differences(expected: str, got: str) -> Iterator[str]:
    """Differences between two texts that their rules do not allow, a sentence each; empty if there are none.

    Args:
        expected: the earlier text.
        got: the new one.
    """
    (lines, numbers), (new_lines, new_numbers) = masked(expected), masked(got)
    if len(lines) != len(new_lines):
        missing = next((line for line in lines if line not in new_lines), None)
        added = next((line for line in new_lines if line not in lines), None)
        which = f"; missing: {missing!r}" if missing else f"; added: {added!r}" if added else ""
        yield f"expected {len(lines)} lines, got {len(new_lines)}{which}"
        return
    for place, (line, new_line) in enumerate(zip(lines, new_lines, strict=True), start=1):
        if line != new_line:
            yield f"line {place}: expected {line!r}, got {new_line!r} (# stands for a number)"
            return
    for old, new in zip(numbers, new_numbers, strict=True):
        if abs(old.value - new.value) > old.tolerance:
            allowed = f"at most {old.tolerance} apart are allowed" if old.tolerance else "they must be equal"
            yield f"line {old.line}: expected {old.text}, got {new.text} ({old.kind}: {allowed})"


# Outputs of notebooks. --------------------------------------------------


def cell_differences(expected: list[dict], got: list[dict]) -> Iterator[str]:
    """What one cell's new outputs change, a sentence each; nothing if they say the same.

    Of an output in several forms the plain text is compared; HTML and LaTeX repeat it.

    Args:
        expected, got: outputs in the notebook format, in their order.
    """
    old, new = _readable(expected), _readable(got)
    kinds = [", ".join(kind for kind, _ in outputs) or "none" for outputs in (old, new)]
    if kinds[0] != kinds[1]:
        yield f"outputs: expected {kinds[0]}, got {kinds[1]}"
        return
    for number, ((kind, before), (_, after)) in enumerate(zip(old, new, strict=True), start=1):
        if kind == "error":
            yield f"output {number}: an error, {after}"
        for difference in text_differences(before, after):
            yield f"output {number} ({kind}), {difference}"


def _readable(outputs: list[dict]) -> list[tuple[str, str]]:
    """Kind and text of each output; neighbouring pieces of one stream are one output."""
    found: list[tuple[str, str]] = []
    for output in outputs:
        kind, text = _form(output)
        if found and kind == found[-1][0] and kind in ("stdout", "stderr"):
            text = found.pop()[1] + text
        found.append((kind, text))
    return found


def _form(output: dict) -> tuple[str, str]:
    if output["output_type"] == "stream":
        return output["name"], "".join(output["text"])
    if output["output_type"] == "error":
        return "error", f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    if any(form in data for form in _PICTURES):
        return "picture", ""
    form = next((form for form in ("text/plain", "text/markdown", "text/html", *data) if form in data), "")
    return (form, "".join(map(str, data[form]))) if form else ("nothing", "")


def unfit(content: dict) -> str | None:
    """Why a committed notebook cannot be compared with a new run of it, in words; None if it can.

    Args:
        content: the notebook as parsed JSON.
    """
    counts = []
    for position, cell in enumerate(content["cells"], start=1):
        if cell["cell_type"] != "code":
            continue
        counts.append(cell.get("execution_count"))
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                return f"cell {position} (In [{counts[-1]}]) ended with an error: {output['ename']}: {output['evalue']}"
    if not any(counts):
        return "no cell has been executed, so there are no outputs to compare with"
    in_order = counts == list(range(1, len(counts) + 1))
    return None if in_order else f"a cell was removed, added, moved or run out of order: they were executed as In {counts}"


def notebook_differences(expected: dict, got: dict) -> list[str]:
    """What a new run of a notebook changes, a sentence each; empty if it says the same.

    Args:
        expected, got: notebooks as parsed JSON.
    """
    if [_source(cell) for cell in expected["cells"]] != [_source(cell) for cell in got["cells"]]:
        return ["its cells have changed"]
    if problem := unfit(expected):
        return [problem]
    return [
        f"In [{cell['execution_count']}], {difference}"
        for cell, new in zip(expected["cells"], got["cells"], strict=True)
        if cell["cell_type"] == "code"
        for difference in cell_differences(cell["outputs"], new["outputs"])
    ]


def _source(cell: dict[str, Any]) -> tuple[str, str]:
    return cell["cell_type"], "".join(cell["source"])


# Pictures, and folders of a run. ----------------------------------------


def picture_difference(expected: Path, got: Path, same_numbers: bool = False) -> str | None:
    """Visible difference between two PNGs, in words; None if there is none.

    Args:
        expected, got: PNG files.
        same_numbers: what is drawn is known to be the same, so that a canvas up to :data:`CANVAS` larger or
            smaller, whose pixels cannot be compared, is another machine's layout and no difference.
    """
    if expected.read_bytes() == got.read_bytes():
        return None
    from PIL import Image

    old, new = (Image.open(path).convert("RGB") for path in (expected, got))
    if old.size != new.size:
        close = all(abs(after - before) <= CANVAS * before for before, after in zip(old.size, new.size, strict=True))
        return None if same_numbers and close else f"{new.width} × {new.height} pixels instead of {old.width} × {old.height}"
    levels = np.abs(np.asarray(old, dtype=int) - np.asarray(new, dtype=int))  # (rows, columns, colours)
    changed = levels.max(axis=-1) > VISIBLE
    return f"{changed.sum()} of {changed.size} pixels look different" if changed.any() else None


def folder_differences(old: Path, new: Path) -> dict[str, str]:
    """What a new run's folder of figures and results changes: a reason for each file, by its name without suffix.

    Args:
        old, new: folders with a results.json, PNG files and their PDF twins.
    """
    reasons = {file.stem: "no longer made" for file in old.iterdir() if not (new / file.name).exists()}
    reasons |= {file.stem: "new" for file in new.iterdir() if not (old / file.name).exists()}
    results = Path(RESULTS).stem
    if all((folder / RESULTS).exists() for folder in (old, new)):
        try:
            found = moved(read_results(old / RESULTS), read_results(new / RESULTS))
        except ValueError:
            found = ["the earlier file could not be read"]
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        reasons |= {results: "; ".join(found[:SHOWN]) + more} if found else {}
    same_numbers = results not in reasons
    for picture in new.glob("*.png"):
        if picture.stem not in reasons and (reason := picture_difference(old / picture.name, picture, same_numbers)):
            reasons[picture.stem] = reason
    return reasons
