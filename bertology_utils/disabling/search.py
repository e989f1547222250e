"""Which few heads can go together? A search that measures the rest anew after each choice (§4.6 allows any number of heads)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attention import Batch
from ..common import Head
from ..glue.tasks import Task, plain_metric, predictions
from ..statistics.ties import largest
from .controls import scores_of
from .switch import logits_without


def searched_order(
    task: Task, model, batches: Sequence[Batch], labels: np.ndarray, candidates: Sequence[Head], count: int
) -> list[Head]:
    """Heads in the order of a greedy search: at each step the one that, together with those before, leaves the best score.

    Args:
        task: the task.
        model: its classifier, in evaluation mode.
        batches, labels: the examples that choose, which should not be those that score the choice; labels (examples,).
        candidates: heads to choose from, (layer, head) from 0; of those that tie the first is taken.
        count: how many are chosen.

    Raises:
        ValueError: fewer candidates than are to be chosen.
    """
    if count > len(candidates):
        raise ValueError(f"{count} heads are to be chosen from {len(candidates)}; give more candidates, or choose fewer")
    chosen: list[Head] = []
    for _ in range(count):
        rest = [head for head in candidates if head not in chosen]
        answers = np.stack([predictions(task, logits_without(model, batches, [*chosen, head])) for head in rest])
        scores = scores_of(plain_metric(task), answers, labels)  # (rest,)
        chosen.append(rest[largest(scores)[0]])
    return chosen
