"""The measurements of §4.5 over the examples of all tasks together, every example weighing the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..claims.register import WEIGHT
from ..statistics import Seed, many_test
from .claims import Clear
from .dependencies import RELATIONS, Arcs, joined
from .token_links import LINK_TYPES

Found = Mapping[str, Any]  # what one pass over one task's inputs found, by measurement
AS_IS, POPULARITY_OFF = "links", "centred"  # the two ways in which links are measured
WAYS = (AS_IS, POPULARITY_OFF)


def of_links(found: Iterable[Found], part: str, way: str = AS_IS) -> np.ndarray:
    """One part of :class:`~bertology_utils.links.measure.TokenLinkScores`, shape (examples, types, layers, heads).

    Args:
        found: of every task.
        part: its attribute.
        way: "links" as they are, or "centred", with each word's popularity taken off.
    """
    return np.concatenate([getattr(of_task[way], part) for of_task in found])


def examples(found: Iterable[Found]) -> dict[str, int]:
    """Examples with a link of each type, for the types that the data have."""
    counts = np.isfinite(of_links(found, "actual")[:, :, 0, 0]).sum(axis=0)
    return {name: int(n) for name, n in zip(LINK_TYPES, counts, strict=True) if n}


def scores(found: Iterable[Found], types: Iterable[str]) -> dict[str, np.ndarray]:
    """The weight along links of every head by type, shape (layers, heads) each."""
    actual = of_links(found, "actual")
    return {name: np.nanmean(actual[:, LINK_TYPES.index(name)], axis=0) for name in types}


def differences(found: Iterable[Found], kind: str, way: str = AS_IS) -> np.ndarray:
    """Along links of a type minus at other inputs' places, shape (examples, layers, heads); NaN without such places."""
    found = list(found)
    at = LINK_TYPES.index(kind)
    return of_links(found, "matched", way)[:, at] - of_links(found, "elsewhere", way)[:, at]


def clear(found: Iterable[Found], types: Iterable[str], seed: Seed) -> dict[str, Clear]:
    """By type of link, the tests of every head's excess against the least effect, as it is and without popularity."""
    found = list(found)
    return {name: Clear(*(many_test(differences(found, name, way), WEIGHT, seed) for way in WAYS)) for name in types}


def by_model(before: Mapping[str, Clear], after: Sequence[Mapping[str, Clear]]) -> dict[str, dict[str, list[Clear]]]:
    """The tests before fine-tuning, and of every training after it, by model and type of link."""
    return {
        "pre-trained": {kind: [one] for kind, one in before.items()},
        "fine-tuned": {kind: [of_training[kind] for of_training in after] for kind in before},
    }


def excess(found: Mapping[str, Clear], way: str = AS_IS) -> dict[str, np.ndarray]:
    """The mean excess of every head by type, shape (layers, heads) each."""
    return {name: (one.plain if way == AS_IS else one.centred).means for name, one in found.items()}


def neighbour_shares(found: Iterable[Found]) -> np.ndarray:
    """Attention to the previous or to the next token, the larger of the two, shape (layers, heads)."""
    shares = np.concatenate([of_task["flow"].neighbours for of_task in found])
    return shares.mean(axis=0)[..., [0, 2]].max(axis=-1)


def arcs(found: Sequence[Found]) -> dict[str, Arcs]:
    """The arcs of all tasks by relation, examples numbered through."""
    return {relation: joined([of_task["pointing"][relation] for of_task in found]) for relation in RELATIONS}
