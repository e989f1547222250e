"""The tables of notebook 4: one number in each cell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from ..annotation.token_types import LINGUISTIC, TOKEN_TYPES
from ..common import PROTOCOLS
from ..glue.tasks import Task
from ..statistics.permutation import ONE_SIDED, ManyTest
from ..statistics.ties import count_of, largest, name_of_largest
from .reading import Examples, Reading, over_tasks

ByTask = Mapping[Task, Reading]


def counts(examples: Mapping[Task, Examples]) -> pd.DataFrame:
    """By task how many examples have each type, how long they are, and how many words were cut off."""
    rows = [
        {
            "task": task.title,
            "examples": len(of_task.inputs),
            "wordpieces": f"{of_task.lengths.mean():.1f}",
            "even share": f"{(1 / of_task.lengths).mean():.3f}",
            **{f"with {kind}": count for kind, count in of_task.present.items()},
            "words cut off": sum(annotated.lost for annotated in of_task.inputs),
        }
        for task, of_task in examples.items()
    ]
    return pd.DataFrame(rows).set_index("task")


def pairs(examples: Mapping[Task, Examples]) -> pd.DataFrame:
    """By type how many tokens have a matched word, and how far apart the two are, mean over pairs."""
    rows = []
    for at, kind in enumerate(LINGUISTIC):
        tokens = np.sum([one.matched.tokens[at] for one in examples.values()], axis=0)
        paired = np.array([one.matched.tokens[at, 1] for one in examples.values()])
        apart = np.array([one.matched.distances[at] for one in examples.values()])
        means = np.average(apart[paired > 0], axis=0, weights=paired[paired > 0]) if tokens[1] else np.full(4, np.nan)
        rows.append({"type": kind, "tokens": tokens[0], "paired": tokens[1], "positions apart": f"{means[0]:.1f}",
                     "matched word later by": f"{means[1]:+.1f}", "log10 of frequency apart": f"{means[2]:.2f}",
                     "matched word more frequent by": f"{means[3]:+.2f}"})  # fmt: skip
    return pd.DataFrame(rows).set_index("type")


def highest_heads(models: Mapping[str, ByTask]) -> pd.DataFrame:
    """By type and model the head that gives the type most, and what it gives the more attended of [CLS] and [SEP]."""
    rows = []
    for kind in LINGUISTIC:
        for name, readings in models.items():
            values = over_tasks(readings.values(), kind)
            if np.isfinite(values).all():
                best = largest(values)
                special = max(over_tasks(readings.values(), mark)[best] for mark in ("[CLS]", "[SEP]"))
                rows.append({"type": kind, "model": name, "head": name_of_largest(values), "weight": f"{values[best]:.3f}",
                             "on [CLS] or [SEP]": f"{special:.3f}"})  # fmt: skip
    return pd.DataFrame(rows).set_index(["type", "model"])


def against_matched(excess: Mapping[str, ManyTest], border: float) -> pd.DataFrame:
    """By type and model, how many heads give the type more, or less, than its matched words.

    Args:
        excess: by model, tests against 0 of shape (types, layers, heads); random weights among them.
        border: heads above it, and above any head with random weights, are counted, too.
    """
    rows = []
    for at, kind in enumerate(LINGUISTIC):
        bar = max(float(np.nanmax(excess["random weights"].means[at], initial=border)), border)
        for name, tests in excess.items():
            sure = tests.above[at] < ONE_SIDED
            rows.append({"type": kind, "model": name, "examples": tests.n[at].max(), "more": count_of(sure),
                         "less": count_of(tests.below[at] < ONE_SIDED),
                         f"more by {border}": count_of(sure & (tests.means[at] > bar)),
                         "head": "–" if name == "random weights" else name_of_largest(tests.means[at]),
                         "largest": f"{np.nanmax(tests.means[at], initial=-1):+.3f}"})  # fmt: skip
    return pd.DataFrame(rows).set_index(["type", "model"])


def both_protocols(readings: ByTask, protocol: str) -> pd.DataFrame:
    """By type the mean weight by the paper's text and by its code, and the rank correlation of the two over heads."""
    rows = []
    for kind in TOKEN_TYPES:
        ways = {name: over_tasks(readings.values(), kind, other=name != protocol) for name in PROTOCOLS}
        rank = spearmanr(*(heads.ravel() for heads in ways.values())).statistic
        rows.append({"type": kind, **{f"protocol {name}": f"{heads.mean():.3f}" for name, heads in ways.items()},
                     "rank correlation": f"{rank:.3f}"})  # fmt: skip
    return pd.DataFrame(rows).set_index("type")


def of_published(panels: Mapping[str, np.ndarray], reading: Reading) -> pd.DataFrame:
    """By type, how like our pre-trained heads are to a published panel's.

    Args:
        panels: by type, shape (layers, heads).
        reading: of the same model on the same task.
    """
    rows = []
    for kind, theirs in panels.items():
        rank = spearmanr(theirs.ravel(), reading.heads(kind).ravel()).statistic
        apart = abs(theirs - reading.heads(kind)).mean()
        rows.append({"type": kind, "rank correlation": f"{rank:.2f}", "mean difference": f"{apart:.3f}",
                     "examples": len(reading.lengths)})  # fmt: skip
    return pd.DataFrame(rows).set_index("type")
