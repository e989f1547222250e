"""Notebook 6's tables: one estimate in a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ..common import Head, head_name, to_people
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.correlation import rank_of, rank_text
from ..statistics.ties import DRAWS_MARGIN, count_of, name_of_largest, p_text
from .measure import Effects, Variants
from .needed import EffectsByTraining, Shared


def answers(changes: np.ndarray, gains: np.ndarray, count: int = 5) -> pd.DataFrame:
    """The heads that move one example's right answer most, beside what they do to all.

    Args:
        changes: of the right answer's probability, by head, shape (layers, heads).
        gains: of the score over all examples, from 0 to 1, same shape.
        count: how many heads.
    """
    order = np.argsort(-np.abs(changes).ravel(), kind="stable")[:count]
    rows = [
        {
            "head": head_name(*divmod(int(at), changes.shape[1])),
            "right answer moves by (0 to 1)": f"{changes.flat[at]:+.2f}",
            "gain over all examples, points": f"{100 * gains.flat[at]:+.2f}",
        }
        for at in order
    ]
    return pd.DataFrame(rows).set_index("head")


def shared(trainings: Mapping[Task, Sequence[Shared]], tasks: Mapping[tuple[Task, Task], Shared]) -> pd.DataFrame:
    """What pairs of models share: first two trainings of a task, then two tasks."""
    pairs = [(f"{task.title}, two trainings", one) for task, several in trainings.items() for one in several]
    pairs += [(f"{a.title} and {b.title}", one) for (a, b), one in tasks.items()]
    rows = [
        {"models": name, "shared of five": one.heads, "p": p_text(one.p), "rank correlation": rank_text(one.rank)}
        for name, one in pairs
    ]
    return pd.DataFrame(rows, columns=["models", "shared of five", "p", "rank correlation"]).set_index("models")


def models(effects: EffectsByTraining) -> pd.DataFrame:
    """Everything of every model, a column each."""
    columns = {f"{task.title}, {to_people(number)}": _model(effect) for (task, number), effect in effects.items()}
    return pd.DataFrame(columns).rename_axis("task, training")


def _model(effect: Effects) -> dict[str, object]:
    heads, layers = effect.heads, effect.layers
    sharpest = -heads.test.better.reshape(heads.shape)
    return {
        "score, points": f"{100 * effect.baseline:.1f}",
        "examples": heads.gains[0].n,
        "heads that raise it": f"{(heads.values > 0).sum()} of {heads.values.size}",
        "best head": name_of_largest(heads.values),
        "its gain": _points(heads, heads.best),
        "its p, corrected": p_text(heads.test.better[heads.best]),
        "its p alone (McNemar, two-sided)": "–" if heads.mcnemar is None else p_text(heads.mcnemar[heads.best]),
        "smallest corrected p": p_text(-sharpest.max()),
        "its head": name_of_largest(sharpest, DRAWS_MARGIN),
        "best by luck, median": f"{100 * np.median(heads.test.best_by_chance):+.2f}",
        "gain where it was chosen": f"{100 * heads.selected.naive.mean():+.2f}",
        "gain on the other half": f"{100 * heads.selected.honest.mean():+.2f}",
        "heads that gain beyond chance": count_of(heads.significant()),
        "heads that cost beyond chance": count_of(heads.significant("worse")),
        "best layer": name_of_largest(layers.values),
        "the best layer’s gain": _points(layers, layers.best),
        "the best layer’s p, corrected": p_text(layers.test.better[layers.best]),
        "worst layer": name_of_largest(-layers.values),
        "the worst layer’s gain": _points(layers, layers.least),
    }


def _points(variants: Variants, at: int) -> str:
    return f"{100 * variants.gains[at].value:+.2f}"


def ways(found: Mapping[tuple[Task, str], Variants]) -> pd.DataFrame:
    """What a disabled head gives instead: even attention, nothing, or its mean.

    Args:
        found: by task and way; of every task the way "uniform", too.
    """
    rows = []
    for (task, way), heads in found.items():
        rows.append(
            {
                "task": task.title,
                "instead": way,
                "best gain": f"{100 * heads.values.max():+.2f}",
                "mean gain": heads.mean.text(100, 2, sign=True),
                "heads that gain beyond chance": count_of(heads.significant()),
                "heads that cost beyond chance": count_of(heads.significant("worse")),
                "rank correlation with even attention": rank_text(rank_of(heads.values, found[task, "uniform"].values)),
            }
        )
    return pd.DataFrame(rows).set_index(["task", "instead"])


def search(changes: Mapping[Task, Mapping[str, Bootstrap]], orders: Mapping[Task, Mapping[str, Sequence[Head]]]):
    """A few heads disabled together, by how they were chosen.

    Args:
        changes: of the score, from 0 to 1, by task and way.
        orders: the heads, (layer, head) from 0, in the order of their choice.
    """
    rows = [
        {"task": task.title, "chosen by": way, "heads": names(orders[task][way]), "gain": change.text(100, 1, sign=True)}
        for task, found in changes.items()
        for way, change in found.items()
    ]
    return pd.DataFrame(rows).set_index(["task", "chosen by"])


def names(heads: Sequence[Head]) -> str:
    """ "(3, 8), (4, 10)", or "no head"."""
    return ", ".join(head_name(*head) for head in heads) or "no head"
