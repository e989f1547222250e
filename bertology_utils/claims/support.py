"""From p values to a verdict: what speaks for a statement, what against it, and how statements combine.

A statement about every task, or about some head, is a formula over statements
about one; its two p values follow from theirs, corrected for how many there
are. So every claim is judged at one level, whatever its form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..statistics.estimate import Estimate
from ..statistics.permutation import ONE_SIDED, ManyTest
from ..statistics.ties import DRAWS_MARGIN

HOLDS, FAILS, UNDECIDED, UNTESTABLE = "holds here", "does not hold here", "undecided", "not testable here"
DECIDED = ONE_SIDED - DRAWS_MARGIN  # by a margin that rounding cannot cross
OUTCOMES = (HOLDS, FAILS, UNDECIDED, UNTESTABLE)


@dataclass(frozen=True)
class Support:
    """How the data speak about a statement.

    Attributes:
        holds: p value of such data if the statement were false; small speaks for it.
        fails: p value of such data if it were true; small speaks against it.
    """

    holds: float
    fails: float

    def __invert__(self) -> Support:
        """Of the statement's contrary."""
        return Support(self.fails, self.holds)

    @property
    def outcome(self) -> str:
        """Decided at a two-sided level of 5 %, that is 2.5 % on either side, by a margin."""
        return HOLDS if self.holds <= DECIDED else FAILS if self.fails <= DECIDED else UNDECIDED


def above(estimate: Estimate, least: float = 0.0) -> Support:
    """The true value is above ``least``."""
    return Support(estimate.p_above(least), (-estimate).p_above(-least))


def within(estimate: Estimate, low: float, high: float) -> Support:
    """The true value lies between ``low`` and ``high``; undecided while the interval reaches out on either side."""
    return all_of([above(estimate, low), ~above(estimate, high)])


def all_of(parts: Iterable[Support]) -> Support:
    """Each of several statements is true.

    It holds if each one does, without correction (each has to pass); it fails
    if one does at a level divided by their number (Bonferroni; the first step
    of Holm, 1979, which is all that "at least one" needs).
    """
    parts = list(parts)
    if not parts:
        return Support(1.0, 1.0)
    return Support(max(part.holds for part in parts), min(1.0, len(parts) * min(part.fails for part in parts)))


def any_of(parts: Iterable[Support]) -> Support:
    """At least one of several statements is true; the contrary of :func:`all_of` of their contraries."""
    return ~all_of(~part for part in parts)


def some_head(test: ManyTest) -> Support:
    """The mean of some head is above the test's least effect; it fails if every head's is below. Of what was measured."""
    measured = test.n > 0
    if not measured.any():
        return Support(1.0, 1.0)
    return Support(float(test.above[measured].min(initial=1.0)), float(test.below[measured].max(initial=0.0)))
