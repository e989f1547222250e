"""What single maps and the exercises of §4.5 show, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..common import to_people
from ..statistics import ties
from .dependencies import RelationTest
from .token_links import TokenLink


def places_in_words(own: Sequence[TokenLink]) -> str:
    """How many places are drawn, for the description of a map: each of them once."""
    places = {(tuple(rows), tuple(columns)) for link in own for rows, columns in link.places}
    return f"{len(places)} different places of other inputs (some may overlap)"


def without_gain(tests: Mapping[str, RelationTest]) -> str:
    """On which relations no head is surely better than the best fixed distance; empty if on none."""
    none = [relation for relation, test in tests.items() if not test.beats]
    return f"On {', '.join(none)} no head surely finds more than the best fixed distance does." if none else ""


def sep_by_layer(sep: Sequence[float], ahead: Sequence[int]) -> str:
    """In which layer [CLS] gives [SEP] most, and in which it gives it more than any type but itself.

    Args:
        sep: by layer, what [SEP] gets.
        ahead: layers, from 1, in which no other type but [CLS] gets more.
    """
    most = to_people(ties.largest(np.array(sep))[0])
    layers = f"in layer {' and '.join(map(str, ahead))}" if ahead else "in no layer"
    return f"So [SEP] gets most in layer {most}; more than every other type but [CLS] {layers}."


def left_apart(every: float, apart: float) -> str:
    """What a head's score on links that are not adjacent says of it.

    Args:
        every: the score on all links.
        apart: on those that are not adjacent; NaN where there are none.
    """
    if not np.isfinite(apart):
        return "So it cannot be told: every link is between neighbours."
    follows = "it mostly follows its diagonal" if apart < every / 2 else "it mostly follows the link"
    return f"So {max(apart, 0) / every:.0%} of the score is left: {follows}."
