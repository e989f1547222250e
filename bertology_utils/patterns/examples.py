"""One plain example of each of the five patterns (§4.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .baseline import STATISTICS, map_statistics
from .labelled_maps import LabelledMap, load_maps

SHORTEST, LONGEST = 20, 40  # wordpieces: enough for a pattern, and few enough for its lines to show on a small picture

Statistics = dict[str, float]


def _column(of: Statistics) -> float:
    return of["strongest column"]


def _band(of: Statistics) -> float:
    return of["attention to itself"] + of["to the previous token"] + of["to the next token"]


# By pattern: what a map that shows it plainly has much of.
_PLAINNESS: dict[str, Callable[[Statistics], float]] = {
    "vertical": _column,
    "diagonal": _band,
    "vertical+diagonal": lambda of: min(_column(of), _band(of)),
    "block": lambda of: of["same sentence, above chance"],
    "heterogeneous": lambda of: -max(_column(of), _band(of)),
}


def plainest_maps() -> dict[str, LabelledMap]:
    """For each pattern the labelled map that shows it most plainly.

    Of the maps that were drawn at random, have two sentences and 20 to 40
    wordpieces, and got the same label twice: the one with the strongest column
    (vertical), the most attention to itself and to both neighbours (diagonal),
    the most of whichever is less (vertical+diagonal), the most attention within
    a sentence (block), or the least of column and diagonal (heterogeneous).
    """
    found: dict[str, LabelledMap] = {}
    for pattern, plainness in _PLAINNESS.items():
        own = [one for one in load_maps() if one.pattern == one.first == one.second == pattern and _fits(one)]
        found[pattern] = max(own, key=lambda one: plainness(_statistics(one)))
    return found


def _fits(one: LabelledMap) -> bool:
    return one.part == "natural" and len(one.separators) == 2 and SHORTEST <= len(one.weights) <= LONGEST


def _statistics(one: LabelledMap) -> Statistics:
    separators = np.isin(np.arange(len(one.weights)), one.separators)
    return dict(zip(STATISTICS, map_statistics(one.weights, separators).tolist(), strict=True))
