"""Links between a predicate and its core frame elements, by the paper's rules and by those of its code (§4.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..common import one_of
from .release import Exemplar, Release, Span

SENTENCE_TOKENS, ELEMENT_TOKENS = 12, 3  # the most that a sentence and an element may have
CORE = ("type", "sets")
SCOPES = ("link", "sentence", "every element")
PAPER_SENTENCES, PAPER_UNITS = 473, 13_572  # §4.2; lexical units of release 1.7
EXAMPLE = "He was becoming agitated ."  # of §4.2
# FrameNet's grammatical function of what is no subject ("Ext"), object ("Obj") or noun modified
# ("Head")
COMPLEMENT = "Dep"
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class Rules:
    """Which sentences and links are kept; tokens are what stands between spaces, punctuation included.

    The defaults are a reading of the paper's text.

    Attributes:
        nearest: fewest tokens from the predicate to an element; 1 for neighbours.
        core: an element is core by its ``coreType`` ("type"), or because the frame declares it in a
            core set ("sets").
        scope: what an element beyond a limit costs. "link": a core element its own link;
            "sentence": a core element the whole sentence; "every element": any element, core or
            not, the whole sentence.
        unbroken: predicates of several spans are left out.
        first_occurrence: a word's position is that of the first equal word of the sentence, as when
            it is searched for as a string.
    """

    nearest: int = 2
    core: str = "type"
    scope: str = "link"
    unbroken: bool = False
    first_occurrence: bool = False

    def __post_init__(self):
        one_of("core", self.core, CORE)
        one_of("scope", self.scope, SCOPES)


# The text speaks of sentences ("we exclude sentences where ..."), of links ("the linked objects are
# less than two tokens apart") and does not say what becomes of a sentence with one link of either
# kind. Here it keeps the other link.
PAPER = Rules()
# What the published code does otherwise, one difference after the other.
DIFFERENCES: tuple[dict[str, Any], ...] = (
    {"nearest": 3},
    {"core": "sets"},
    {"scope": "sentence"},
    {"scope": "every element"},
    {"unbroken": True},
    {"first_occurrence": True},
)
OFFICIAL = Rules(3, "sets", "every element", unbroken=True, first_occurrence=True)
RULES = {"paper": PAPER, "official": OFFICIAL}


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


def extract(release: Release, rules: Rules) -> tuple[list[FrameSentence], dict[str, int]]:
    """The sentences that the rules keep, in the release's order, and how many each filter leaves."""
    by = {"type": "coreType", "sets": "declared core sets"}[rules.core]
    which = {"link": "a core element", "sentence": "all core elements"}.get(rules.scope)
    which = which or "all elements"
    names = (
        "annotated sentences",
        f"at most {SENTENCE_TOKENS} tokens",
        f"a core element (by {by})",
        f"{which} of at most {ELEMENT_TOKENS} tokens",
        f"{which} {rules.nearest} or more tokens from the predicate",
    )
    results = [_filtered(exemplar, rules, release.core_sets) for exemplar in release.exemplars]
    left = {name: sum(passed > at for passed, _ in results) for at, name in enumerate(names)}
    return [sentence for _, sentence in results if sentence], left


def _filtered(
    exemplar: Exemplar, rules: Rules, core_sets: dict[str, tuple[str, ...]]
) -> tuple[int, FrameSentence | None]:
    """How many of the filters a sentence passes, and what the last of them leaves of it."""
    text = exemplar.text
    if len(text.split()) > SENTENCE_TOKENS:  # first: of 150,000 sentences one in seven stays
        return 1, None
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    words = [text[start:end] for start, end in tokens]
    # Of each token its own position, or that of the first token equal to it.
    position = (
        [words.index(word) for word in words] if rules.first_occurrence else range(len(words))
    )
    at = {
        span: [
            position[index]
            for index, (start, end) in enumerate(tokens)
            if start < span.end and span.start < end
        ]
        for span in (*exemplar.target, *exemplar.elements)
    }
    predicate = sorted({index for span in exemplar.target for index in at[span]})

    core = exemplar.core if rules.core == "type" else core_sets.get(exemplar.frame, ())
    links = [span for span in exemplar.elements if span.name in core]
    if not links or (rules.unbroken and len(exemplar.target) > 1):
        return 2, None

    def is_short(span: Span) -> bool:
        return len(at[span]) <= ELEMENT_TOKENS

    def is_far(span: Span) -> bool:
        return min(abs(a - b) for a in at[span] for b in predicate) >= rules.nearest

    for passed, fits in enumerate((is_short, is_far), start=3):
        bound = {"link": (), "sentence": links}.get(rules.scope, exemplar.elements)
        links = [span for span in links if fits(span)] if all(map(fits, bound)) else []
        if not links:
            return passed, None
    if not rules.first_occurrence:
        return 5, FrameSentence(exemplar, exemplar.target, tuple((span,) for span in links))

    def spans(name: str, indices: Sequence[int]) -> tuple[Span, ...]:
        return tuple(Span(name, *tokens[index]) for index in indices)

    elements = tuple(spans(span.name, at[span]) for span in links)
    return 5, FrameSentence(exemplar, spans("Target", predicate), elements)


def towards_official(release: Release) -> dict[str, int]:
    """Sentences that are left as the paper's rules become those of its code, one difference after the other."""
    rules, left = PAPER, {}
    for change in DIFFERENCES:
        rules = replace(rules, **change)
        ((name, value),) = change.items()
        left[f"{name.replace('_', ' ')}: {value}"] = len(extract(release, rules)[0])
    return left


def only_complements(sentences: Sequence[FrameSentence]) -> list[FrameSentence]:
    """Sentences whose linked elements are all complements: neither subjects nor objects of their predicate.

    By FrameNet's own grammatical functions; a release without these, as the mini-FrameNet, leaves
    none.
    """

    def functions(sentence: FrameSentence) -> set[str]:
        exemplar = sentence.exemplar
        by_element = zip(exemplar.elements, exemplar.functions, strict=True)
        by_name = {span.name: function for span, function in by_element}
        return {by_name[spans[0].name] for spans in sentence.elements}

    return [sentence for sentence in sentences if functions(sentence) == {COMPLEMENT}]
