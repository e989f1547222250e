"""Is a head's score about meaning, or about one syntactic role? Scores by frame element, role and frame (§4.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from ..numbering import head_name
from ..statistics import Seed, bootstrap_mean
from .scores import LinkScores, Placed

PRONOUNS = frozenset("i you he she it we they who me him her us them this that these those".split())
ROLES = ("pronoun before", "other before", "after")
Head = tuple[int, int]


def role(one: Placed) -> str:
    """What a sentence's first linked element is: a pronoun before the predicate, anything else before it, or after it."""
    spans = one.sentence.elements[0]
    before = spans[0].start < one.sentence.target[0].start
    words = " ".join(one.sentence.exemplar.text[span.start : span.end] for span in spans)
    return "after" if not before else "pronoun before" if words.lower() in PRONOUNS else "other before"


def by_element(placed: Sequence[Placed], scores: LinkScores, heads: Sequence[Head], least: int) -> list[dict]:
    """Mean score by the element's name, of sentences with one link; the most frequent names first."""
    return _by(placed, scores, heads, least, "frame element", lambda one: one.sentence.elements[0][0].name)


def by_frame(placed: Sequence[Placed], scores: LinkScores, heads: Sequence[Head], least: int) -> list[dict]:
    """Mean score by frame, of sentences with one link; the most frequent frames first."""
    return _by(placed, scores, heads, least, "frame", lambda one: one.sentence.exemplar.frame)


def by_role(placed: Sequence[Placed], scores: LinkScores, heads: Sequence[Head], seed: Seed) -> list[dict]:
    """Score and excess over the same cells elsewhere, by :func:`role`, of sentences with one link.

    Returns:
        A row for each role and head, with intervals over sentences.
    """
    groups = _groups(placed, role)
    rows = []
    for name in ROLES:
        for head in heads:
            members = [scores.shifted[index] for index in groups.get(name, ())]
            excess = np.array([one[0][head] - one[1:, head[0], head[1]].mean() for one in members if len(one) > 1])
            score = np.array([one[0][head] for one in members])
            rows.append({"element": name, "head": head_name(*head), "n": len(score),
                         "score": bootstrap_mean(score, seed).text(1, 3) if len(score) else "–",
                         "excess": bootstrap_mean(excess, seed).text(1, 3, sign=True) if len(excess) else "–"})
    return rows


def without_pronouns(placed: Sequence[Placed], scores: LinkScores) -> LinkScores:
    """The scores of sentences with one link whose element is no pronoun before the predicate."""
    groups = _groups(placed, role)
    chosen = sorted(index for name in ROLES[1:] for index in groups.get(name, ()))
    return LinkScores(tuple(scores.shifted[index] for index in chosen))


def _groups(placed: Sequence[Placed], name: Callable[[Placed], str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(placed):
        if len(one.elements) == 1:  # else the largest weight may be another link's
            groups[name(one)].append(index)
    return groups


def _by(placed: Sequence[Placed], scores: LinkScores, heads: Sequence[Head], least: int, column: str,
        name: Callable[[Placed], str]) -> list[dict]:
    groups = [(group, rows) for group, rows in _groups(placed, name).items() if len(rows) >= least]
    groups.sort(key=lambda item: (-len(item[1]), item[0]))
    return [{column: group, "n": len(rows),
             **{f"head {head_name(*head)}": f"{np.mean([scores.shifted[row][0][head] for row in rows]):.3f}" for head in heads}}
            for group, rows in groups]
