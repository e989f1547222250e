"""Links between a predicate and its core frame elements, found by the paper's filters and by its code's (§4.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
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
    given = {
        "sentence_tokens": sentence_tokens,
        "element_tokens": element_tokens,
        "nearest": nearest,
    }
    changed: dict[str, Any] = {name: limit for name, limit in given.items() if limit}
    return replace(RULES[one_of("protocol", protocol, RULES)], **changed)


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
    steps: list[Step] = []

    def keep(name: str, fits: Callable[[_Candidate], bool]) -> None:
        candidates[:] = filter(fits, candidates)
        steps.append(Step(name, len(candidates), sum(len(one.links) for one in candidates)))

    keep("annotated sentences", lambda one: True)
    # The length first, and counted in passing: of 150,000 sentences one in seven stays.
    limit = rules.sentence_tokens
    keep(f"at most {limit} tokens", lambda one: len(one.exemplar.text.split()) <= limit)
    for candidate in candidates:
        candidate.place(rules)
    if rules.unbroken:
        keep("the predicate in one piece", lambda one: len(one.exemplar.target) == 1)
    by = {"type": "coreType", "sets": "declared core sets"}[rules.core]
    keep(f"a core element (by {by})", lambda one: one.choose(release, rules))
    every = {"link": "a core element", "sentence": "all core elements"}
    which = every.get(rules.scope, "all elements")
    keep(
        f"{which} of at most {rules.element_tokens} tokens",
        lambda one: one.limit(rules, lambda span: len(one.at(span)) <= rules.element_tokens),
    )
    keep(
        f"{which} {rules.nearest} or more tokens from the predicate",
        lambda one: one.limit(rules, lambda span: one.distance(span) >= rules.nearest),
    )
    return [one.sentence(rules) for one in candidates], steps


class _Candidate:
    """A sentence on its way through the funnel."""

    def __init__(self, exemplar: Exemplar):
        self.exemplar = exemplar
        self.links: list[Span] = list(exemplar.elements)

    def place(self, rules: Rules) -> None:
        """Find the tokens, and where the predicate stands among them."""
        self.tokens = tokens(self.exemplar.text)
        words = [self.exemplar.text[start:end] for start, end in self.tokens]
        # of each token its own position, or that of the first token equal to it
        self.position = [words.index(word) for word in words] if rules.first_occurrence else None
        self.predicate = sorted({index for span in self.exemplar.target for index in self.at(span)})

    def at(self, span: Span) -> list[int]:
        """Positions of the tokens that a span touches, or of the first tokens equal to them."""
        inside = [
            index
            for index, (start, end) in enumerate(self.tokens)
            if start < span.end and span.start < end
        ]
        return [self.position[index] for index in inside] if self.position else inside

    def distance(self, span: Span) -> int:
        """Tokens from the predicate to the element; 0 if they share one."""
        return min(abs(a - b) for a in self.at(span) for b in self.predicate)

    def choose(self, release: Release, rules: Rules) -> bool:
        """Keep the links to core elements; False if there is none."""
        exemplar = self.exemplar
        core = exemplar.core if rules.core == "type" else release.core_sets.get(exemplar.frame, ())
        self.links = [span for span in exemplar.elements if span.name in core]
        return bool(self.links)

    def limit(self, rules: Rules, fits: Callable[[Span], bool]) -> bool:
        """Apply a limit to the links, or to the sentence; False if nothing is left."""
        bound = {"link": (), "sentence": self.links}.get(rules.scope, self.exemplar.elements)
        kept = [span for span in self.links if fits(span)] if all(map(fits, bound)) else []
        self.links = kept
        return bool(kept)

    def sentence(self, rules: Rules) -> FrameSentence:
        """The sentence with its links, predicate and elements as stretches of characters."""
        if not rules.first_occurrence:
            links = tuple((span,) for span in self.links)
            return FrameSentence(self.exemplar, self.exemplar.target, links)

        def spans(name: str, positions: Iterable[int]) -> tuple[Span, ...]:
            return tuple(Span(name, *self.tokens[index]) for index in positions)

        elements = tuple(spans(span.name, self.at(span)) for span in self.links)
        return FrameSentence(self.exemplar, spans("Target", self.predicate), elements)


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
    for name in (field.name for field in fields(Rules)):
        before, after = getattr(start, name), getattr(goal, name)
        values = [before, after]
        if name == "scope":
            values = list(SCOPES[SCOPES.index(before) : SCOPES.index(after) + 1])
        for previous, value in pairwise(values) if before != after else ():
            change: dict[str, Any] = {name: value}
            together = replace(together, **change)
            yield Difference(
                f"{name.replace('_', ' ')}: {value}",
                count(replace(start, **change)),
                count(together),
                count(replace(goal, **{name: previous})),
            )
