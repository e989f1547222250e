"""Sentences under the solved exercises, under the stored run's dots and in the appendix, each computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..common import Head, head_name
from ..glue.tasks import Task
from ..statistics import Bootstrap
from ..statistics.correlation import rank_of, rank_text
from ..statistics.estimate import over_trainings
from ..statistics.ties import MARGIN, largest
from .cumulative import half_of, loss_of_half
from .measure import Variants
from .summary import THIS_RUN, Models, task_of


def of_stored(models: Mapping[str, Models]) -> str:
    """Which tasks the stored run on real data has, of those of this run; "" if there is none.

    Args:
        models: runs by whose they are, see :func:`bertology_utils.disabling.summary.beside`.
    """
    tasks = {name: list(dict.fromkeys(map(task_of, run))) for name, run in models.items()}
    parts = []
    for name, found in tasks.items():
        missing = [task.title for task in tasks[THIS_RUN] if task not in found]
        if name != THIS_RUN:
            parts.append(f"{name}: a stored run on the real benchmark" + (f", without {', '.join(missing)}" * bool(missing)))
    return "; ".join(parts)


def of_answers(changes: np.ndarray, gains: np.ndarray, count: int = 5) -> str:
    """Do heads that matter to one example matter to the score?

    Args:
        changes: of the right answer's probability, by head, shape (layers, heads).
        gains: of the score over all examples, from 0 to 1, same shape.
        count: how many of the largest changes are looked at.
    """
    most = np.argsort(-np.abs(changes).ravel(), kind="stable")[:count]
    same = int((changes.flat[most] * gains.flat[most] > 0).sum())
    rank = rank_of(np.abs(changes), np.abs(gains))
    return (
        f"{same} of these {len(most)} move the score the same way as this answer; over all {changes.size} heads the sizes of the"
        f" two have {_a_rank(rank)}. One example does not tell what a head is worth."
    )


def of_sizes(found: Mapping[int, Sequence[tuple[float, float]]]) -> list[str]:
    """What the number of examples does to the best head's gain and to luck's.

    Args:
        found: by number of examples, for each draw of them the best head's gain and the median of luck's, in points.
    """
    means = {n: np.mean(draws, axis=0) for n, draws in found.items()}
    lines = [
        f"{n} examples{f', mean of {len(found[n])} draws' * (len(found[n]) > 1)}: the best head {best:+.2f} points, by luck {luck:+.2f}"
        for n, (best, luck) in means.items()
    ]
    most, few = max(means), min(means)
    best, luck = means[few] - means[most]
    concluding = (
        f"From {most} to {few} examples the best head's gain changes by {best:+.2f} points, that of luck by {luck:+.2f}."
        + " A gain on few examples has to be larger to mean the same." * bool(luck > 0)
    )
    return [*lines, concluding]


def of_two(alone: float, together: float) -> str:
    """Do two layers cost more together than the sum of each alone?

    Args:
        alone: sum of the two gains, in points.
        together: the gain without both, in points.
    """
    if abs(together - alone) <= 100 * MARGIN:
        return f"Together they change the score by as much as the sum, {alone:+.2f} points."
    less, why = (
        ("more", "each may stand in for the other")
        if together < alone
        else ("less", "part of what either does may need the other")
    )
    return f"Together they cost {less} than the sum ({together:+.2f} beside {alone:+.2f} points): {why}."


def of_half(curves: Mapping[Task, Mapping[int, Bootstrap]]) -> str:
    """What every task's score changes by when half of the heads are gone, and what a step and an example are.

    Args:
        curves: by task, number of disabled heads → score.
    """
    losses = loss_of_half(curves)
    parts = [f"{task.title} {over_trainings([-loss]).text(100, 1, sign=True)}" for task, loss in losses.items()]
    curve = next(iter(curves.values()))
    n = min(one.n for one in losses.values())
    return (
        f"Without half of the heads ({half_of(curve)} of {max(curve)}) the score changes by: {', '.join(parts)} points."
        f"\nA step is {sorted(curve)[1]} heads; of {n} examples one is {100 / n:.1f} points of accuracy."
    )


def of_ways(found: Mapping[tuple[Task, str], Variants]) -> list[str]:
    """How much the other ways of disabling a head have to do with making its attention even.

    Args:
        found: by task and way of disabling, "uniform" among them.
    """
    sentences = []
    for task in dict.fromkeys(task for task, _ in found):
        even = found[task, "uniform"].values
        others = {way: heads.values for (of, way), heads in found.items() if of == task and way != "uniform"}
        ranks = {way: rank_of(values, even) for way, values in others.items()}
        agree = [rank >= 0.5 for rank in ranks.values() if not np.isnan(rank)]
        so = "They mostly agree." if all(agree) else "Which head matters hangs on the choice."
        sentences.append(
            f"{task.title}: with even attention a head changes the score by {100 * even.mean():+.2f} points on average; with "
            + ", with ".join(f"{way} by {100 * values.mean():+.2f}" for way, values in others.items())
            + ". The order of the heads has a rank correlation with that of even attention of "
            + ", ".join(f"{rank_text(rank)} ({way})" for way, rank in ranks.items())
            + (f". {so}" if agree else ".")
        )
    return sentences


def of_search(changes: Mapping[Task, Mapping[str, Bootstrap]], few: int) -> list[str]:
    """What a few heads chosen together cost on other examples, beside the same number chosen alone, or at random.

    Args:
        changes: of the score, from 0 to 1, by task and by how the heads were chosen: "search", "each alone", and any others.
        few: how many heads.
    """
    sentences = []
    for task, found in changes.items():
        drawn = [100 * change.value for way, change in found.items() if way not in ("search", "each alone")]
        sentences.append(
            f"{task.title}, without {few} heads, on the examples that did not choose them: by the search"
            f" {found['search'].text(100, 1, sign=True)} points, by each head alone"
            f" {found['each alone'].text(100, 1, sign=True)}, at random {min(drawn):+.1f} to {max(drawn):+.1f};"
            f" n={found['search'].n}."
        )
    return sentences


def _a_rank(rank: float) -> str:
    """ "a rank correlation of +0.4", or that there is none."""
    if np.isnan(rank):
        return "no rank correlation, since all heads change it alike"
    return f"a rank correlation of {rank_text(rank)}"


def of_row(weights: np.ndarray, tokens: Sequence[str], row: int, head: Head) -> str:
    """Where one token of a map looks.

    Args:
        weights: shape (tokens, tokens).
        tokens: the wordpieces.
        row: of the token, from 0.
        head: whose map it is, (layer, head) from 0.
    """
    (at,) = largest(weights[row])
    return f"In head {head_name(*head)} “{tokens[row]}” attends most to “{tokens[at]}”, with weight {weights[row, at]:.2f}."
