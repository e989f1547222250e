"""The tables of §4.5: one number, or one estimate, in a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common import head_name
from ..glue.tasks import Task
from ..statistics import ties
from .claims import PAIRS, Clear
from .dependencies import CLARK, RelationTest, row
from .token_links import TokenLink

if TYPE_CHECKING:
    import pandas as pd

WORDS = {"verbs": "verb and subject", "pronouns": "noun and pronoun"}


def counts(links: Mapping[Task, Sequence[Mapping[str, list[TokenLink]]]]) -> pd.DataFrame:
    """How many links each task has, and how far apart their words are.

    Args:
        links: by task, of every input; both ways of a pair have as many.
    """
    rows = []
    for task, of_task in links.items():
        for words, (name, _) in PAIRS.items():
            own = [link for of_input in of_task for link in of_input[name]]
            apart = np.array([link.distance for link in own])
            rows.append(
                {
                    "task": task.title,
                    "words": WORDS[words],
                    "links": len(own),
                    "with places to compare": sum(len(link.places) > 0 for link in own),
                    "side by side": f"{(apart == 1).mean():.0%}" if own else "–",
                    "median distance in wordpieces": f"{np.median(apart):.0f}" if own else "–",
                }
            )
    return _frame(rows, ["task", "words"])


def heads_above(clear: Mapping[str, Mapping[str, Clear]]) -> pd.DataFrame:
    """How many heads are surely above other inputs' places, and the largest excess.

    Args:
        clear: by state of the model and type of link.
    """
    kinds = list(dict.fromkeys(kind for of_model in clear.values() for kind in of_model))
    rows = [
        {
            "link": kind,
            "model": state,
            "heads above 0.02": ties.count_of(of_model[kind].heads),
            "largest excess": f"{np.nanmax(of_model[kind].plain.means):+.3f}",
            "its head": ties.name_of_largest(of_model[kind].plain.means),
        }
        for kind in kinds
        for state, of_model in clear.items()
    ]
    return _frame(rows, ["link", "model"])


def best_heads(tests: Mapping[str, RelationTest]) -> pd.DataFrame:
    """The head that finds each relation's words most often, beside Clark et al.'s with their numbers."""
    rows = []
    for relation, test in tests.items():
        theirs = CLARK[relation]
        rows.append(
            {
                "relation": relation,
                "looks": test.way,
                "best head": head_name(*test.head),
                "heads that beat the distance": len(test.beats),
                "best distance": f"{test.offset:+d}",
                "Clark et al.'s head": "({}, {})".format(*theirs[0].split("-")) if theirs else "–",
                "finds, %": f"{theirs[1]:.1f}" if theirs else "–",
                "their distance finds, %": f"{theirs[2]:.1f}" if theirs and theirs[2] is not None else "–",
            }
        )
    return _frame(rows, ["relation"])


def pointing(tests: Mapping[str, RelationTest]) -> pd.DataFrame:
    """Every number of the comparison with the best distance, in points with 95 % intervals."""
    rows = [{name: cell for name, cell in row(test).items() if "Clark" not in name} for test in tests.values()]
    return _frame(rows, ["relation"])


def first_types(
    firsts: Mapping[str, Mapping[Task, str]], shares: Mapping[Task, Mapping[str, Sequence[float]]]
) -> pd.DataFrame:
    """What [CLS] attends to most in the last layer, and how often [SEP] and punctuation do so among resamples.

    Args:
        firsts: by state of the model and task, the first type.
        shares: by task and type, of every training.
    """
    rows = [
        {
            "task": task.title,
            **{f"first, {state}": of_state[task] for state, of_state in firsts.items()},
            **{f"{kind} first in": f"{of_trainings[0]:.0%}" for kind, of_trainings in shares[task].items()},
        }
        for task in shares
    ]
    return _frame(rows, ["task"])


def _frame(rows: list[dict], index: list[str]) -> pd.DataFrame:
    """As a table; with its index alone if there are no rows."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(rows[0]) if rows else index).set_index(index)
