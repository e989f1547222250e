"""Notebook 2's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..common import Head, head_name
from ..statistics import ONE_SIDED, Seed, bootstrap_mean
from ..statistics.ties import count_of, p_text
from .breakdown import by_element, by_frame
from .controls import MatchedTest, top_heads
from .measure import PLACES, FrameLinkScores, FramePlaces

if TYPE_CHECKING:
    import pandas as pd

MOST = 10  # rows of frame elements, or of frames


def of_heads(
    heads: Sequence[Head], found: Mapping[str, FrameLinkScores], tests: Mapping[str, MatchedTest], seed: Seed
) -> pd.DataFrame:
    """Heads with their score, and with excess and corrected p over either kind of places.

    Args:
        heads: (layer, head) from 0.
        found, tests: by kind of places.
        seed: of the resampling of sentences.
    """
    import pandas as pd

    rows = []
    for head in heads:
        row = {"head": head_name(*head), "score": bootstrap_mean(found["moved"].actual[:, *head], seed).text(1, 3)}
        for kind, name in PLACES.items():
            row[f"excess over {name}"] = bootstrap_mean(found[kind].excess[:, *head], seed).text(1, 3, sign=True)
            row[f"p, {name}"] = p_text(tests[kind].above[head])
        rows.append(row)
    return pd.DataFrame(rows).set_index("head")


def of_counts(models: Mapping[str, Mapping[str, MatchedTest]]) -> pd.DataFrame:
    """How many heads are above and below what they are compared with, for each model and kind of places."""
    import pandas as pd

    rows = [
        {
            "model": model,
            "compared with": PLACES[kind],
            "heads above": count_of(test.above < ONE_SIDED),
            "below": count_of(test.below < ONE_SIDED),
            "largest excess": f"{test.excess.max():+.3f}",
            "mean over heads: links": f"{test.links.mean():.3f}",
            "compared": f"{test.others.mean():.3f}",
        }
        for model, tests in models.items()
        for kind, test in tests.items()
    ]
    return pd.DataFrame(rows).set_index(["model", "compared with"])


def of_ways(found: Mapping[tuple[str, str], FrameLinkScores], means: np.ndarray) -> pd.DataFrame:
    """The two highest heads by direction and pairing, and the rank correlation of all scores with ``means``."""
    import pandas as pd
    from scipy.stats import spearmanr

    rows = []
    for (way, pairing), scores in found.items():
        other = scores.actual.mean(axis=0)
        first, second = top_heads(other, 2)
        row = {"direction": way, "pairs": pairing, "highest": head_name(*first), "score": f"{other[first]:.3f}"}
        row |= {"second": head_name(*second), "its score": f"{other[second]:.3f}"}
        rows.append(row | {"correlation": f"{spearmanr(other.ravel(), means.ravel()).statistic:.2f}"})
    return pd.DataFrame(rows).set_index(["direction", "pairs"])


def of_kinds(placed: Sequence[FramePlaces], scores: FrameLinkScores, heads: Sequence[Head], least: int) -> pd.DataFrame:
    """Mean scores by frame element and by frame, the most frequent with at least ``least`` sentences."""
    import pandas as pd

    parts = {"frame element": by_element, "frame": by_frame}
    tables = {name: pd.DataFrame(make(placed, scores, heads, least)[:MOST]) for name, make in parts.items()}
    return pd.concat({name: table.set_index(name) for name, table in tables.items() if len(table)}, names=["of", "name"])
