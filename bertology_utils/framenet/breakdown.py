"""Is a head's score about meaning, or about one syntactic role? Scores by frame element, role and frame (§4.2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from ..common import Head, head_name
from ..statistics import Seed, bootstrap_mean
from .measure import FrameLinkScores, FramePlaces

PRONOUN_FORMS = frozenset("i you he she it we they who me him her us them this that these those".split())
ROLES = ("pronoun before", "other before", "after")
FEWEST, FEW = 10, "few"  # sentences for an interval, and what stands there else


def role(place: FramePlaces, element: int = 0) -> str:
    """What a linked element is: a pronoun before the predicate, anything else before it, or after it."""
    spans = place.sentence.elements[element]
    before = spans[0].start < place.sentence.target[0].start
    words = " ".join(place.sentence.exemplar.text[span.start : span.end] for span in spans)
    return "after" if not before else "pronoun before" if words.lower() in PRONOUN_FORMS else "other before"


def by_element(placed: Sequence[FramePlaces], scores: FrameLinkScores, heads: Sequence[Head], least: int) -> list[dict]:
    """Mean score by the element's name, of sentences with one link; the most frequent names first."""
    return _by(placed, scores, heads, least, "frame element", lambda place: place.sentence.elements[0][0].name)


def by_frame(placed: Sequence[FramePlaces], scores: FrameLinkScores, heads: Sequence[Head], least: int) -> list[dict]:
    """Mean score by frame, of sentences with one link; the most frequent frames first."""
    return _by(placed, scores, heads, least, "frame", lambda place: place.sentence.exemplar.frame)


def excess_by_role(placed: Sequence[FramePlaces], scores: FrameLinkScores) -> dict[str, np.ndarray]:
    """Excess of every sentence with one link by :func:`role`, each of shape (sentences, layers, heads).

    Kinds with fewer sentences than :data:`FEWEST` that have other places are left out.
    """
    groups = _groups(placed, role)
    parts = {name: scores.of([row for row in groups.get(name, []) if len(scores.places[row]) > 1]) for name in ROLES}
    return {name: part.excess for name, part in parts.items() if len(part.places) >= FEWEST}


def by_role(placed: Sequence[FramePlaces], scores: FrameLinkScores, heads: Sequence[Head], seed: Seed) -> list[dict]:
    """Score and excess over the same cells elsewhere, by :func:`role`, of sentences with one link.

    Returns:
        A row for each role and head, with intervals over sentences; no
        numbers for fewer than :data:`FEWEST`.
    """
    groups = _groups(placed, role)
    rows = []
    for name in ROLES:
        for head in heads:
            part = scores.of(groups.get(name, []))
            with_others = sum(len(places) > 1 for places in part.places)
            row = {"element": name, "head": head_name(*head), "n": len(part.places), "score": FEW, "excess": FEW}
            if with_others >= FEWEST:
                row |= {
                    "score": bootstrap_mean(part.actual[:, *head], seed).text(1, 3),
                    "excess": bootstrap_mean(part.excess[:, *head], seed).text(1, 3, sign=True),
                }
            rows.append(row)
    return rows


def without_pronouns(placed: Sequence[FramePlaces], scores: FrameLinkScores) -> FrameLinkScores:
    """The scores of sentences where no linked element is a pronoun before the predicate."""
    return scores.of(
        [
            index
            for index, place in enumerate(placed)
            if ROLES[0] not in {role(place, element) for element in range(len(place.elements))}
        ]
    )


def _groups(placed: Sequence[FramePlaces], name: Callable[[FramePlaces], str]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for index, place in enumerate(placed):
        if len(place.elements) == 1:  # else the largest weight may be another link's
            groups[name(place)].append(index)
    return groups


def _by(
    placed: Sequence[FramePlaces],
    scores: FrameLinkScores,
    heads: Sequence[Head],
    least: int,
    column: str,
    name: Callable[[FramePlaces], str],
) -> list[dict]:
    groups = [(group, rows) for group, rows in _groups(placed, name).items() if len(rows) >= least]
    groups.sort(key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            column: group,
            "n": len(rows),
            **{
                f"head {head_name(*head)}": f"{np.mean([scores.places[row][0][head] for row in rows]):.3f}" for head in heads
            },
        }
        for group, rows in groups
    ]
