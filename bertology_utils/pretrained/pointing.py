"""Heads that point along dependencies, beside those of Clark et al. (2019) on bert-base and newspaper text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..common import Head, head_name, to_code
from ..links.dependencies import RelationTest
from ..statistics.estimate import over_trainings


@dataclass(frozen=True)
class Published:
    """A row of Clark et al.'s Table 1: bert-base-uncased on the Wall Street Journal part of the Penn Treebank.

    Attributes:
        layer, head: of the best head, from 1.
        accuracy: its share of right arcs, in percent.
        offset: that of the best fixed distance.
    """

    layer: int
    head: int
    accuracy: float
    offset: float

    @property
    def at(self) -> Head:
        """The head, (layer, head) from 0."""
        return to_code(self.layer, 12), to_code(self.head, 12, "head")


CLARK = {
    "nsubj": Published(8, 2, 58.5, 45.5),
    "obj": Published(8, 10, 86.8, 40.0),
    "amod": Published(4, 10, 75.6, 68.3),
    "det": Published(8, 11, 94.3, 51.7),
}
MEANINGS = {"nsubj": "subject of a verb", "obj": "object", "amod": "adjective at a noun", "det": "article at a noun"}


def row(test: RelationTest) -> dict[str, object]:
    """One relation's line of the table beside Clark et al.'s, one estimate in a cell, in percent."""
    theirs = CLARK[test.relation]
    return {
        "relation": test.relation,
        "best head": head_name(*test.head),
        "its arcs right": test.accuracy.text(100),
        "best distance": test.baseline.text(100),
        "arcs": test.arcs,
        "Clark: head": head_name(*theirs.at),
        "Clark: right": f"{theirs.accuracy:.1f}",
        "Clark: distance": f"{theirs.offset:.1f}",
    }


def dots(tests: Mapping[str, RelationTest]) -> dict[str, dict[str, float | dict[str, float]]]:
    """Rows of a figure: the best head's lead over the best distance, here and in Clark et al.; shares."""
    return {
        f"{name}: {MEANINGS[name]}": {
            "bert-base, published figure": (CLARK[name].accuracy - CLARK[name].offset) / 100,
            "this run": over_trainings([test.difference]).summary(),
        }
        for name, test in tests.items()
    }
