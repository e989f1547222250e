"""Links between a predicate and its core frame elements, found by the paper's filters and by its code's (§4.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from ..common import one_of
from .release import Exemplar, Release, Span

CORE = ("type", "sets")
SCOPES = ("link", "sentence", "every element")
TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class Rules:
    """Which sentences and links are kept; tokens are what stands between spaces, punctuation included.

    The defaults are a reading of the paper's text.

    Attributes:
        sentence_tokens: most tokens of a sentence.
        element_tokens: most tokens of a frame element.
        nearest: fewest tokens from the predicate to an element; 1 for neighbours.
        core: an element is core by its ``coreType`` ("type"), or because the
            frame declares it in a core set ("sets").
        scope: what an element beyond a limit costs. "link": a core element its
            own link; "sentence": a core element the whole sentence; "every
            element": any element, core or not, the whole sentence.
        unbroken: predicates of several spans are left out.
        first_occurrence: a word's position is that of the first equal word of
            the sentence, as when it is searched for as a string.
    """

    sentence_tokens: int = 12
    element_tokens: int = 3
    nearest: int = 2
    core: str = "type"
    scope: str = "link"
    unbroken: bool = False
    first_occurrence: bool = False

    def __post_init__(self):
        one_of("core", self.core, CORE)
        one_of("scope", self.scope, SCOPES)
        for name in ("sentence_tokens", "element_tokens", "nearest"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; it is 1 or more")


# The text speaks of sentences ("we exclude sentences where ..."), of links ("the linked objects are
# less than two tokens apart") and does not say what becomes of a sentence with one link of either
# kind. Here it keeps the other link.
PAPER = Rules()
# What the published code does otherwise.
OFFICIAL = Rules(
    nearest=3, core="sets", scope="every element", unbroken=True, first_occurrence=True
)
RULES = {"paper": PAPER, "official": OFFICIAL}
PAPER_SENTENCES, PAPER_UNITS = 473, 13_572  # §4.2; lexical units of release 1.7
EXAMPLE = "He was becoming agitated ."  # of §4.2


def rules(
    protocol: str, sentence_tokens: int = 0, element_tokens: int = 0, nearest: int = 0
) -> Rules:
    """A protocol's rules, with limits changed where a number other than 0 is given."""
    of_protocol = RULES[one_of("protocol", protocol, RULES)]
    return replace(
        of_protocol,
        sentence_tokens=sentence_tokens or of_protocol.sentence_tokens,
        element_tokens=element_tokens or of_protocol.element_tokens,
        nearest=nearest or of_protocol.nearest,
    )


@dataclass(frozen=True)
class FrameSentence:
    """A sentence whose predicate has at least one link to a core frame element.

    Attributes:
        exemplar: the annotated sentence.
        target: the characters of the predicate.
        elements: the core frame elements that are linked to it, each with its spans.
    """

    exemplar: Exemplar
    target: tuple[Span, ...]
    elements: tuple[tuple[Span, ...], ...]


@dataclass(frozen=True)
class Step:
    """A filter of the funnel: what it asks, and how many sentences and frame elements are left after it."""

    name: str
    sentences: int
    elements: int


def tokens(text: str) -> list[tuple[int, int]]:
    """Characters of each token: (start, end), ``end`` excluded."""
    return [match.span() for match in TOKEN.finditer(text)]


def extract(release: Release, rules: Rules) -> tuple[list[FrameSentence], list[Step]]:
    """The sentences that the rules keep, and how many each filter leaves.

    Args:
        release: all annotated sentences.
        rules: the filters.

    Returns:
        The sentences in the release's order, and the funnel.
    """
    candidates = [_Candidate(exemplar) for exemplar in release.exemplars]
    steps = [
        Step(
            "annotated sentences",
            len(candidates),
            sum(len(candidate.links) for candidate in candidates),
        )
    ]

    def keep(name: str, wanted) -> None:
        candidates[:] = [candidate for candidate in candidates if wanted(candidate)]
        steps.append(
            Step(name, len(candidates), sum(len(candidate.links) for candidate in candidates))
        )

    # The length first, and counted in passing: of 150,000 sentences one in seven stays.
    keep(
        f"at most {rules.sentence_tokens} tokens",
        lambda candidate: len(candidate.exemplar.text.split()) <= rules.sentence_tokens,
    )
    for candidate in candidates:
        candidate.place(rules)
    if rules.unbroken:
        keep("the predicate in one piece", lambda candidate: len(candidate.exemplar.target) == 1)
    keep(
        {"type": "a core element (by coreType)", "sets": "a core element (by declared core sets)"}[
            rules.core
        ],
        lambda candidate: candidate.choose(release, rules),
    )
    which = {
        "link": "a core element",
        "sentence": "all core elements",
        "every element": "all elements",
    }[rules.scope]
    keep(
        f"{which} of at most {rules.element_tokens} tokens",
        lambda candidate: candidate.limit(
            rules, lambda span: len(candidate.at(span)) <= rules.element_tokens
        ),
    )
    keep(
        f"{which} {rules.nearest} or more tokens from the predicate",
        lambda candidate: candidate.limit(
            rules, lambda span: candidate.distance(span) >= rules.nearest
        ),
    )
    return [
        FrameSentence(candidate.exemplar, *candidate.characters(rules)) for candidate in candidates
    ], steps


class _Candidate:
    """A sentence on its way through the funnel."""

    def __init__(self, exemplar: Exemplar):
        self.exemplar = exemplar
        self.links: list[Span] = list(exemplar.elements)
        self.tokens: list[tuple[int, int]] = []

    def place(self, rules: Rules) -> None:
        """Find the tokens, and where the predicate stands among them."""
        self.tokens = tokens(self.exemplar.text)
        self.words = [self.exemplar.text[start:end] for start, end in self.tokens]
        self.first_occurrence = rules.first_occurrence
        self.predicate = sorted({index for span in self.exemplar.target for index in self.at(span)})

    def at(self, span: Span) -> list[int]:
        """Positions of the tokens that a span touches, or of the first tokens equal to them."""
        inside = [
            index
            for index, (start, end) in enumerate(self.tokens)
            if start < span.end and span.start < end
        ]
        return (
            [self.words.index(self.words[index]) for index in inside]
            if self.first_occurrence
            else inside
        )

    def distance(self, span: Span) -> int:
        """Tokens from the predicate to the element; 0 if they share one."""
        return min(abs(a - b) for a in self.at(span) for b in self.predicate)

    def choose(self, release: Release, rules: Rules) -> bool:
        """Keep the links to core elements; False if there is none."""
        exemplar = self.exemplar
        core = exemplar.core if rules.core == "type" else release.core_sets.get(exemplar.frame, ())
        self.links = [span for span in exemplar.elements if span.name in core]
        return bool(self.links)

    def limit(self, rules: Rules, fits) -> bool:
        """Apply a limit to the links, or to the sentence; False if nothing is left."""
        bound = {"link": [], "sentence": self.links, "every element": self.exemplar.elements}[
            rules.scope
        ]
        if not all(fits(span) for span in bound):
            return False
        self.links = [span for span in self.links if fits(span)]
        return bool(self.links)

    def characters(self, rules: Rules) -> tuple[tuple[Span, ...], tuple[tuple[Span, ...], ...]]:
        """Predicate and elements as stretches of characters."""
        if not rules.first_occurrence:
            return self.exemplar.target, tuple((span,) for span in self.links)
        target = tuple(Span("Target", *self.tokens[index]) for index in self.predicate)
        return target, tuple(
            tuple(Span(span.name, *self.tokens[index]) for index in self.at(span))
            for span in self.links
        )


@dataclass(frozen=True)
class Difference:
    """The number of sentences with one difference between two sets of rules.

    Attributes:
        name: the rule and its new value.
        alone: sentences left when it alone is switched on.
        together: when it and all before it are.
        without: when all but it are.
    """

    name: str
    alone: int
    together: int
    without: int


def one_at_a_time(release: Release, start: Rules, goal: Rules) -> Iterator[Difference]:
    """The differences between two sets of rules, each with the sentences that it leaves; the wider scope step by step.

    Args:
        release: all annotated sentences.
        start, goal: the rules to go from and to.
    """

    def count(rules: Rules) -> int:
        return len(extract(release, rules)[0])

    together = start
    for field in fields(Rules):
        before, after = getattr(start, field.name), getattr(goal, field.name)
        values = (
            [after]
            if field.name != "scope"
            else SCOPES[SCOPES.index(before) + 1 : SCOPES.index(after) + 1]
        )
        previous = before
        for value in values if before != after else ():
            change: dict[str, Any] = {field.name: value}
            together = replace(together, **change)
            yield Difference(
                f"{field.name.replace('_', ' ')}: {value}",
                count(replace(start, **change)),
                count(together),
                count(replace(goal, **(change | {field.name: previous}))),
            )
            previous = value
