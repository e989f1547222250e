"""A run's results.json against an earlier one's, each number within the tolerance of its kind.

A tolerance is above what other processors, thread counts and a start moved by
one part in a million have been seen to change (``make test-machines`` measures
it), and below the smallest effect that a notebook claims from the number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from .texts import differences as text_differences

SENTENCES = "verdicts/*/ours"  # they repeat numbers, rounded


@dataclass(frozen=True)
class Rule:
    """How far numbers of one kind may move.

    Attributes:
        kind: what they are.
        places: patterns of their places in results.json, "*" for anything.
        tolerance: absolute, for fractions of 1.
        smallest: the smallest effect that is claimed from such a number.
        claim: where it is claimed.
        alike_from: from here on all are alike.
    """

    kind: str
    places: tuple[str, ...]
    tolerance: float
    smallest: float
    claim: str
    alike_from: float = math.inf

    def allows(self, expected: float, got: float) -> bool:
        """Is the one within the tolerance of the other?"""
        return abs(min(expected, self.alike_from) - min(got, self.alike_from)) <= self.tolerance


DISABLED = ("effects", "other_ways", "cumulative", "random_orders", "framenet_gains")

# The first rule that fits decides.
# fmt: off
RULES = (
    Rule("p value", ("*/better/*", "*/worse/*", "compared/*/above/*", "compared/*/below/*"), 0.01, 0.05,
         "the level of every test; nothing hangs on one of twice the level", alike_from=0.1),
    Rule("share of resamples", ("from_cls_first/*",), 0.01, 0.05, "the level of every verdict"),
    Rule("cosine of movements", ("drift/*/same way/*", "drift/*/other task/*"), 0.005, 0.02,
         "notebook 3: a difference of 0.02 counts; where a map hardly moves, its direction hangs on rounding"),
    Rule("rank correlation with gains", ("between_seeds/*", "predicted_by/*"), 0.05, 0.3,
         "notebook 6: one of 0.3 predicts; heads whose gains tie change many ranks when one example leaves the tie"),
    Rule("end of an interval over trainings", ("*/low", "*/high"), 0.005, 0.01,
         "an effect of a point; with two trainings an end moves up to 6.5 times as far as they do"),
    Rule("share of maps", ("by_head/*", "shares/*", "random_weights/*", "classifier_errors/*", "by_label/*", "first_three/*",
                          "heterogeneous/*", "heterogeneous_by_regression/*", "coverage/*", "changed_heads/*",
                          "changed_by_examples/*", "by_norm/*", "striped/*"), 0.005, 0.02,
         "notebook 1: shares are given in whole percent"),
    Rule("gain of a disabled head in correlation", tuple(f"{place}/stsb*" for place in DISABLED), 0.0005, 0.002,
         "notebook 6: gains of 0.2 points on STS-B"),
    Rule("gain of a disabled head in accuracy", tuple(f"{place}/*" for place in DISABLED), 0.0035, 0.01,
         "notebook 6: gains of a point; among its 200,000 answers some lie on the border, and one of 320 is 0.0031"),
    Rule("measurement", ("*",), 0.0005, 0.001, "scores, weights and similarities are printed with three digits at most"),
)
# fmt: on


def rule_of(place: str) -> Rule:
    """The rule for the number at a place such as "table1/rte/finetuned/accuracy/value"."""
    return next(rule for rule in RULES if any(fnmatchcase(place, pattern) for pattern in rule.places))


@dataclass(frozen=True)
class Difference:
    """A value that another run has otherwise.

    Attributes:
        place: where in results.json.
        expected, got: the two values.
        rule: of a number, else None: the values must be equal.
    """

    place: str
    expected: object
    got: object
    rule: Rule | None = None

    def __str__(self) -> str:
        allowed = f"; a {self.rule.kind} may differ by {self.rule.tolerance}" if self.rule else ""
        return f"{self.place}: {self.expected!r} became {self.got!r}{allowed}"


def differences(expected: dict, got: dict) -> list[Difference]:
    """What a new run changes by more than rounding; empty if it says the same.

    Settings, names, verdicts, versions and most counts must be equal, sentences
    but for their numbers (see :mod:`~bertology_utils.regression.texts`).

    Args:
        expected, got: ``results.json`` of two runs, parsed.
    """
    return [found for found in moved(expected, got) if not _within(found)]


def _within(found: Difference) -> bool:
    expected, got, rule = found.expected, found.got, found.rule
    if isinstance(expected, str) and isinstance(got, str):
        return fnmatchcase(found.place, SENTENCES) and not list(text_differences(expected, got))
    if rule is None or not isinstance(expected, int | float) or not isinstance(got, int | float):
        return False
    return rule.allows(expected, got)


def moved(expected, got, place: str = "") -> Iterator[Difference]:
    """Every value that is not exactly the same, however little it moved."""
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() == got.keys():
        for key in expected:
            yield from moved(expected[key], got[key], f"{place}/{key}".lstrip("/"))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (old, new) in enumerate(zip(expected, got, strict=True)):
            yield from moved(old, new, f"{place}/{index}")
    elif expected != got:
        yield _difference(place, expected, got)


def _difference(place: str, expected, got) -> Difference:
    if isinstance(expected, float) and isinstance(got, int | float) and not place.startswith("settings/"):
        return Difference(place, expected, got, rule_of(place))
    if isinstance(expected, dict | list) and isinstance(got, dict | list):
        return Difference(place, _extent(expected), _extent(got))
    return Difference(place, expected, got)


def _extent(value: dict | list) -> str:
    return f"entries {', '.join(map(str, value))}" if isinstance(value, dict) else f"{len(value)} entries"


def read_results(path: Path) -> dict:
    """A results.json.

    Raises:
        ValueError: it is no JSON object with settings, versions and verdicts; names the file and what to do.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        missing = {"notebook", "settings", "versions", "verdicts"} - set(content)
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a run's results ({error}); run its notebook anew") from None
    if missing:
        raise ValueError(f"{path} lacks {', '.join(sorted(missing))}: it is of another version; run its notebook anew")
    return content
