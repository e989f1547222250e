"""What a new run says otherwise than an earlier one: printed texts, outputs of notebooks, pictures, published folders.

Numbers in results files are compared by :func:`bertology_utils.results.moved`. Texts are compared
as a reader would: words must be equal, numbers within the rule of their kind. The first rule that
matches decides:

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

One unit, because a number on the border of two roundings falls either way. A count may miss one
because one of many items can lie on the border of being counted; notebooks print such counts as "k
of n".
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from .results import RESULTS, moved, read_results

MANY = 50  # items from which on one of them may lie on a border
SHOWN = 3  # differences of one file that are told
# of 255 levels; an edge that moves with the sixth decimal changes by fewer, a printed digit by a
# hundred
VISIBLE = 48
BLOCK = 16  # pixels, across and down
MARKER = 12  # points, of the largest marker
# Matplotlib's layout measures the texts, and ends a few pixels wider on one machine than on
# another.
CANVAS = 0.01

_NUMBER = r"[+\-−]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_ALONE = rf"(?<![\w.]){_NUMBER}"
_ANY = re.compile(
    rf"\((?P<head>{_NUMBER}, {_NUMBER})\)"
    rf"|(?P<range>{_ALONE}(?: ?%)? \[{_NUMBER}, {_NUMBER}\])"
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


def masked(text: str, whole: int = 0) -> tuple[list[str], list[Number]]:
    """A text's lines with every number masked and runs of blanks joined, and its numbers in order.

    Args:
        text: any.
        whole: by how much whole numbers may differ.
    """
    lines: list[str] = []
    numbers: list[Number] = []
    for place, line in enumerate(text.strip().splitlines(), start=1):

        def take(match: re.Match[str], place: int = place) -> str:
            kind = str(match.lastgroup)
            found = re.findall(_NUMBER, match[0])
            numbers.extend(
                Number(one, _tolerance(kind, one, found, match[0], whole), kind, place)
                for one in found
            )
            # "p < 0.01" and "p = 0.01" are neighbours.
            return {"p": "p #", "small": "#"}.get(kind) or re.sub(_NUMBER, "#", match[0])

        # Blanks and rules follow the width of the numbers.
        lines.append(re.sub(r"[ \t]+", " ", re.sub(r"-{3,}", "---", _ANY.sub(take, line))).strip())
    return lines, numbers


def _tolerance(kind: str, text: str, found: list[str], match: str, whole: int) -> Decimal:
    exponent = Decimal(text.replace("−", "-")).as_tuple().exponent
    unit = Decimal(1).scaleb(int(exponent))
    if kind in ("p", "small"):
        return max(unit, Decimal("0.01"))
    if kind == "count":
        return Decimal(text is found[0] and Decimal(found[1]) >= MANY)
    if kind == "range" or (kind == "number" and (unit < 1 or "%" in match)):
        return unit
    return Decimal(whole if kind == "number" else 0)


def text_differences(expected: str, got: str, whole: int = 0) -> Iterator[str]:
    """Differences between two texts that their rules do not allow, a sentence each; empty if there are none.

    Args:
        expected: the earlier text.
        got: the new one.
        whole: by how much whole numbers may differ, where they are known to be rounded ones.
    """
    (lines, numbers), (new_lines, new_numbers) = masked(expected, whole), masked(got)
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
            allowed = (
                f"at most {old.tolerance} apart are allowed"
                if old.tolerance
                else "they must be equal"
            )
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
    form = next(
        (form for form in ("text/plain", "text/markdown", "text/html", *data) if form in data), ""
    )
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
    return (
        None
        if in_order
        else f"a cell was removed, added, moved or run out of order: they were executed as In {counts}"
    )


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


_PDF_STREAM = re.compile(rb" obj\n((?:(?!endobj).)*?)>>\nstream\n", re.DOTALL)
_PDF_TOKEN = re.compile(r"\((?:\\.|[^\\)])*\)|[^\s\[\]()]+", re.DOTALL)
_PDF_STATE = {
    "g": "fill",
    "rg": "fill",
    "G": "line",
    "RG": "line",
    "w": "width",
    "d": "dashes",
    "gs": "alpha",
    "Tf": "font",
}


def drawn(pdf: Path) -> list[str]:
    """What a PDF by matplotlib draws, in its order: a line for each text, shape, marker and image.

    It says what it is, its look and its place, each number in steps of which one is what another
        machine may change: 0.1 is 0.5 % of the page, 2.5 % of a colour's scale, half a point of a
        marker's outline.

    Args:
        pdf: the file.
    """
    content = pdf.read_bytes()
    page = re.findall(rb"/MediaBox \[ 0 0 (\S+) (\S+) \]", content)[0]
    lines = re.findall(r"/CA \S+ /ca \S+", content.decode("latin-1"))
    for found in _PDF_STREAM.finditer(content):
        if size := re.search(rb"/Subtype /Image /Width (\d+) /Height (\d+)", found[1]):
            width, height = (int(pixels) / 50 for pixels in size.groups())
            lines.append(f"image {width:.1f} × {height:.1f}")  # how it looks is the PNG's
            continue
        stream = zlib.decompressobj().decompress(content[found.end() :]).decode("latin-1")
        if " d1\n" not in stream and "begincmap" not in stream:  # of fonts
            lines += _shapes(stream, float(page[0]), float(page[1]))
    return lines


def _shapes(stream: str, width: float, height: float) -> Iterator[str]:
    """The lines of one stream of a PDF: states are followed, each painting operator is a line."""
    now: dict[str, str] = {}
    at, kept, operands, path = (0.0, 0.0), [], [], []
    for token in _PDF_TOKEN.findall(stream):
        if not token[0].isalpha():
            operands.append(token)
            continue
        if token == "q":
            kept.append((now.copy(), at))
        elif token == "Q":
            now, at = kept.pop()
        elif token == "cm":
            at = (at[0] + float(operands[-2]), at[1] + float(operands[-1]))
        elif token in ("m", "l", "c", "h"):
            path.append((token, *map(float, operands[-2:])))
        elif token in (
            "rg",
            "RG",
            "g",
            "G",
        ):  # near grey one machine writes one level and another three
            now[_PDF_STATE[token]] = " ".join(
                f"{4 * float(level):.1f}" for level in (operands * 3)[:3]
            )
        elif token in _PDF_STATE:
            now[_PDF_STATE[token]] = " ".join(operands)
        elif token in ("f", "B", "S", "Do", "TJ", "Tj"):
            x, y = (a + b for a, b in zip(at, path[0][1:] if path else (0.0, 0.0), strict=True))
            text = "".join(operand[1:-1] for operand in operands if operand[0] == "(")
            what = _outline(path) if path else text or " ".join(operands)
            yield f"{token} {what}; {now}; place {20 * x / width:.1f} {20 * y / height:.1f}"
        if token in ("f", "B", "S", "n"):
            path = []
        operands = []


def _outline(path: list[tuple]) -> str:
    """Kinds of a path's steps, without their number, which follows the data; of a closed one of a marker's size its corners."""
    steps = re.sub(r"(.)\1+", r"\1", "".join(kind for kind, *_ in path))
    points = np.array([place for _, *place in path if place])
    if "h" not in steps or np.ptp(points, axis=0).max() > MARKER:
        return steps
    return " ".join([steps, *(f"{step:.1f}" for step in ((points[1:] - points[0]) / 5).flat)])


def picture_difference(expected: Path, got: Path, same_numbers: bool = False) -> str | None:
    """What is drawn otherwise in one of two pictures, in words; None if it is only rounding.

    Both are read as PDFs, where a changed letter, colour, line width or marker is a changed line,
    however small. Counts of pixels do not tell these from rounding: in 28 of the suite's figures,
    data moved by 1e-5 of an axis change up to 79 pixels visibly, by 0.1 % up to 4350; another
    colour of one line from 0, another marker from 31, a letter from 68. Of what is drawn, data
    moved by 0.1 % change no line, each of the others that a PNG shows one at least. What a PDF
    keeps as an image is seen in the PNG.

    Args:
        expected, got: PNG files; their PDFs stand beside them.
        same_numbers: what is drawn is known to be the same by rules that pass more than rounding.
            Then a whole number may be the next one, as a share of 40.5 is printed as either, places
            may move by 0.5 % and the canvas by :data:`CANVAS` of its size, which is another
            machine's layout, and the PNGs are compared by blocks: another map of colours changes
            some by 104 levels and more, data moved by 0.1 % by 21 at most. Otherwise by pixels.
    """
    if expected.read_bytes() == got.read_bytes():
        return None
    from PIL import Image

    old, new = (Image.open(path).convert("RGB") for path in (expected, got))
    close = all(
        abs(after - before) <= CANVAS * before
        for before, after in zip(old.size, new.size, strict=True)
    )
    if not (old.size == new.size or (same_numbers and close)):
        return f"{new.width} × {new.height} pixels instead of {old.width} × {old.height}"
    of_pdfs = [
        drawn(path.with_suffix(".pdf")) if path.with_suffix(".pdf").exists() else []
        for path in (expected, got)
    ]
    for before, after in zip_longest(*of_pdfs, fillvalue="nothing"):
        if any(text_differences(before, after, whole=int(same_numbers))):
            return f"drawn is {after!r} instead of {before!r}"
    if same_numbers and of_pdfs[0] and not any(line.startswith("image ") for line in of_pdfs[0]):
        return None  # the PDFs tell all; another digit may look different in a block
    size = (max(1, old.width // BLOCK), max(1, old.height // BLOCK)) if same_numbers else old.size
    # Each (rows, columns, colours).
    levels = [np.asarray(one.resize(size, Image.Resampling.BOX), dtype=int) for one in (old, new)]
    changed = np.abs(levels[0] - levels[1]).max(axis=-1) > VISIBLE
    kind = "blocks" if same_numbers else "pixels"
    return f"{changed.sum()} of {changed.size} {kind} look different" if changed.any() else None


def folder_differences(old: Path, new: Path) -> dict[str, str]:
    """What a new run's folder of figures and results changes: a reason for each file, by its name without suffix.

    Args:
        old, new: folders with a results.json, PNG files and their PDF twins.
    """
    reasons = {
        file.stem: "no longer made" for file in old.iterdir() if not (new / file.name).exists()
    }
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
        if picture.stem not in reasons and (
            reason := picture_difference(old / picture.name, picture, same_numbers)
        ):
            reasons[picture.stem] = reason
    return reasons
