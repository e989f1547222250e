"""Printed texts compared as a reader would: words must be equal, numbers within the rule of their kind.

The rules, from the most special to the most general; the first that matches decides:

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

One unit, because a number on the border of two roundings falls either way. A
count may miss one because one of many items can lie on the border of being
counted; notebooks print such counts as "k of n".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

MANY = 50  # items from which on one of them may lie on a border

_NUMBER = r"[+\-−]?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_ALONE = rf"(?<![\w.]){_NUMBER}"
_KINDS = {
    "head": rf"\((?P<head>{_NUMBER}, {_NUMBER})\)",
    "range": rf"(?P<range>{_ALONE} \[{_NUMBER}, {_NUMBER}\])",
    "p value": rf"\b(?P<p>p (?:[=<] )?{_NUMBER})|(?P<small>< {_NUMBER})",
    "count": rf"(?P<count>{_ALONE} of {_NUMBER})(?![.\d])",
    "number": rf"(?P<number>{_ALONE}(?: ?%)?)",
}
_ANY = re.compile("|".join(_KINDS.values()))


@dataclass(frozen=True)
class Number:
    """A number as printed.

    Attributes:
        text: its characters.
        value: its value.
        tolerance: how far another run's may be from it.
        kind: the rule's name.
        line: where it stands, from 1.
    """

    text: str
    value: Decimal
    tolerance: Decimal
    kind: str
    line: int


def read(text: str) -> tuple[list[str], list[Number]]:
    """A text's lines with every number masked and runs of blanks joined, and its numbers in order."""
    lines: list[str] = []
    numbers: list[Number] = []
    for place, line in enumerate(text.strip().splitlines(), start=1):
        masked = _ANY.sub(lambda match: _take(match, place, numbers), line)
        # Blanks and rules follow the width of the numbers.
        lines.append(re.sub(r"[ \t]+", " ", re.sub(r"-{3,}", "---", masked)).strip())
    return lines, numbers


def _take(match: re.Match[str], line: int, numbers: list[Number]) -> str:
    """Append the numbers of one match; returns what stands for them in the masked line."""
    kind = match.lastgroup
    assert kind is not None  # every kind's pattern has a named group
    found = re.findall(_NUMBER, match[0])
    numbers += [Number(text, _value(text), _tolerance(kind, text, found, match[0]), kind, line) for text in found]
    # "p < 0.01" and "p = 0.01" are neighbours.
    return {"p": "p #", "small": "#"}.get(kind) or re.sub(_NUMBER, "#", match[0])


def _value(text: str) -> Decimal:
    return Decimal(text.replace("−", "-"))


def _tolerance(kind: str, text: str, found: list[str], whole: str) -> Decimal:
    exponent = _value(text).as_tuple().exponent
    assert isinstance(exponent, int)  # digits alone match, neither NaN nor infinity
    unit = Decimal(1).scaleb(exponent)
    if kind == "range":
        return unit
    if kind in ("p", "small"):
        return max(unit, Decimal("0.01"))
    if kind == "count":
        return Decimal(1) if text is found[0] and _value(found[1]) >= MANY else Decimal(0)
    if kind == "number" and (unit < 1 or "%" in whole):
        return unit
    return Decimal(0)


def differences(expected: str, got: str) -> Iterator[str]:
    """What differs by more than its rule, a sentence each; nothing if the texts are the same.

    Args:
        expected: the earlier text.
        got: the new one.
    """
    (lines, numbers), (new_lines, new_numbers) = read(expected), read(got)
    if lines != new_lines:
        yield _first_other_line(lines, new_lines)
        return
    for old, new in zip(numbers, new_numbers, strict=True):
        if abs(old.value - new.value) > old.tolerance:
            allowed = f"at most {old.tolerance} apart are allowed" if old.tolerance else "they must be equal"
            yield f"line {old.line}: expected {old.text}, got {new.text} ({old.kind}: {allowed})"


def _first_other_line(lines: list[str], new_lines: list[str]) -> str:
    if len(lines) != len(new_lines):
        missing = next((line for line in lines if line not in new_lines), None)
        added = next((line for line in new_lines if line not in lines), None)
        which = f"; missing: {missing!r}" if missing else f"; added: {added!r}" if added else ""
        return f"expected {len(lines)} lines, got {len(new_lines)}{which}"
    place, (old, new) = next(
        (at, pair) for at, pair in enumerate(zip(lines, new_lines, strict=False), start=1) if pair[0] != pair[1]
    )
    return f"line {place}: expected {old!r}, got {new!r} (# stands for a number)"
