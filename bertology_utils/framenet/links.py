"""Links between a predicate and its core frame elements, by the paper's rules and by those of its code (§4.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .release import Exemplar, Release, Span

SENTENCE_TOKENS, ELEMENT_TOKENS = 12, 3  # the most that a sentence and an element may have
PAPER_SENTENCES, PAPER_UNITS = 473, 13_572  # §4.2; lexical units of release 1.7
EXAMPLE = "He was becoming agitated ."  # of §4.2
# FrameNet's grammatical function of what is no subject ("Ext"), object ("Obj") or noun modified
# ("Head")
COMPLEMENT = "Dep"
_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True)
class Rules:
    """Which sentences and links are kept; tokens are what stands between spaces, punctuation included.

    The defaults are a reading of the paper's text, which speaks of sentences ("we exclude sentences
    where ..."), of links ("the linked objects are less than two tokens apart") and does not say what
    becomes of a sentence with one link of either kind: here it keeps the other link.

    Attributes:
        nearest: fewest tokens from the predicate to an element; 1 for neighbours.
        core_sets: an element is core because the frame declares it in a core set, not by its
            ``coreType``.
        every_element: an element beyond a limit, core or not, costs the whole sentence; else a core
            element costs its own link.
        unbroken: predicates of several spans are left out.
        first_occurrence: a word's position is that of the first equal word of the sentence, as when
            it is searched for as a string.
    """

    nearest: int = 2
    core_sets: bool = False
    every_element: bool = False
    unbroken: bool = False
    first_occurrence: bool = False


PAPER, OFFICIAL = Rules(), Rules(3, True, True, True, True)
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


def extract(release: Release, rules: Rules) -> list[FrameSentence]:
    """The sentences that the rules keep, in the release's order, each with the links that they keep."""
    linked = (_linked(exemplar, rules, release.core_sets) for exemplar in release.exemplars)
    return [sentence for sentence in linked if sentence]


def _linked(
    exemplar: Exemplar, rules: Rules, core_sets: dict[str, tuple[str, ...]]
) -> FrameSentence | None:
    text = exemplar.text
    if len(text.split()) > SENTENCE_TOKENS:  # first: of 150,000 sentences one in seven stays
        return None
    core = core_sets.get(exemplar.frame, ()) if rules.core_sets else exemplar.core
    links = [span for span in exemplar.elements if span.name in core]
    if not links or (rules.unbroken and len(exemplar.target) > 1):
        return None
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

    def fits(span: Span) -> bool:
        is_far = min(abs(a - b) for a in at[span] for b in predicate) >= rules.nearest
        return len(at[span]) <= ELEMENT_TOKENS and is_far

    links = [span for span in links if fits(span)]
    if not links or (rules.every_element and not all(map(fits, exemplar.elements))):
        return None
    if not rules.first_occurrence:
        return FrameSentence(exemplar, exemplar.target, tuple((span,) for span in links))

    def spans(name: str, indices: Sequence[int]) -> tuple[Span, ...]:
        return tuple(Span(name, *tokens[index]) for index in indices)

    elements = tuple(spans(span.name, at[span]) for span in links)
    return FrameSentence(exemplar, spans("Target", predicate), elements)


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
