"""What pruned models answer, from the cache: a fine-tuned model is loaded only where an answer is missing.

A head that is removed gives zero here, as in pruning proper: its weights can then be deleted. By
1/L, as in notebooks 6 and 9, it would go on giving the mean of its values, so that nothing is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..attention import Batch
from ..cache import Lazy, cached
from ..common import Head
from ..disabling.masking import all_heads, disabled, logits_without, replacement
from ..drift.measure import EMBEDDINGS, logits_with_reset
from ..glue import Task, predictions, sample
from ..models import predict_logits
from . import spec
from .spec import Pruning, prunings_of, runs_of

if TYPE_CHECKING:
    from datasets import Dataset

    from ..lab import Lab

EVALUATED = 2000  # rows that are answered, where so many are swept
STEPS = 8  # on the way to a model without heads; the fourth is without half of them
RANDOM_ORDERS = 3
RANKED, RANDOM_ORDER = "ranked again", "random"


def evaluated(lab: Lab, task: Task) -> Dataset:
    """The rows that are answered, on which no run trained: dev rows, which the swept ones begin with, first."""
    swept = lab.rows(task, "swept")
    return swept.select(range(min(EVALUATED, len(swept))))


def inputs_of(lab: Lab, task: Task) -> Lazy:
    """Their model inputs."""
    return lab.lazy_batches(task, evaluated(lab, task))


def answers_of(
    lab: Lab, task: Task, number: int, cut: Pruning | None = None, init: str = "pretrained"
) -> np.ndarray:
    """Answers of a fine-tuning run, whole or pruned before it, shape (rows,)."""
    model = lab.lazy_classifier(task, init, number, cut)
    return predictions(task, cached(predict_logits, model, inputs_of(lab, task)))


def whole_answers(lab: Lab, task: Task) -> np.ndarray:
    """Answers of the whole models, shape (runs, rows)."""
    return np.stack([answers_of(lab, task, number) for number in runs_of(lab, task)])


def pruned_answers(lab: Lab, task: Task, pruning: Pruning) -> np.ndarray:
    """Answers of the runs that are repeated with a pruning, shape (runs, rows)."""
    numbers = [at for at in runs_of(lab, task) if pruning in prunings_of(lab, at)]
    return np.stack([answers_of(lab, task, number, pruning) for number in numbers])


# Layers


def reset_answers(lab: Lab, task: Task) -> np.ndarray:
    """Answers with ever more layers reset to their pre-trained weights, (directions, layers, runs, rows).

    First from below, where the embeddings are reset as well; then from above.
    """
    layers, rows = lab.config.num_hidden_layers, evaluated(lab, task)
    below = [tuple(range(EMBEDDINGS, count)) for count in range(1, layers + 1)]
    above = [tuple(range(layers - count, layers)) for count in range(1, layers + 1)]
    logits = [
        logits_with_reset(lab, task, below + above, number, rows) for number in runs_of(lab, task)
    ]
    answers = predictions(task, np.stack(logits, axis=1))  # (1 + groups, runs, rows)
    return answers[1:].reshape(2, layers, *answers.shape[1:])


# Heads


def counts_of(heads: int) -> list[int]:
    """How many of a model's heads are removed at each of the :data:`STEPS`, from none to all."""
    return sorted({heads_after(step, heads) for step in range(STEPS + 1)})


def heads_after(steps: int, heads: int) -> int:
    """How many of a model's heads are removed after so many of the :data:`STEPS`, rounded."""
    return round(heads * steps / STEPS)


def answers_without_heads(lab: Lab, task: Task, number: int) -> dict[str, np.ndarray]:
    """Answers of a run as heads are removed, by order: (orders, counts of heads, rows)."""
    orders = orders_of(lab, task, number)
    tuned = lab.lazy_classifier(task, seed_offset=number)
    flat = [order for several in orders.values() for order in several]
    counts = counts_of(len(flat[0]))
    logits = cached(logits_without_heads, tuned, inputs_of(lab, task), flat, counts)
    ends = np.cumsum([len(several) for several in orders.values()])[:-1]
    return dict(zip(orders, np.split(predictions(task, logits), ends), strict=True))


def logits_without_heads(
    model, batches: Sequence[Batch], orders: Sequence[Sequence[Head]], counts: Sequence[int]
) -> np.ndarray:
    """Outputs of a classifier whose heads are removed one after the other.

    Args:
        model: classifier in evaluation mode.
        batches: inputs.
        orders: of all its heads.
        counts: how many of each order are removed.

    Returns:
        Shape (orders, counts, examples, labels).
    """
    zeros, known = replacement(model, batches, "zero"), dict[tuple[Head, ...], np.ndarray]()
    for order in orders:
        for count in counts:
            removed = tuple(sorted(order[:count]))  # all orders begin and end alike
            if removed not in known:
                known[removed] = logits_without(model, batches, removed, zeros)
    return np.stack([[known[tuple(sorted(one[:count]))] for count in counts] for one in orders])


def orders_of(lab: Lab, task: Task, number: int) -> dict[str, list[list[Head]]]:
    """Orders in which a run's heads are removed, by name: several only where they are drawn at random."""
    layers, heads = lab.config.num_hidden_layers, lab.config.num_attention_heads
    seed, step = lab.settings.seed, -(-layers * heads // STEPS)
    rows = lab.lazy_batches(task, sample(lab.rows(task, "train"), spec.RANKED_ON, seed))

    def drawn(at: int) -> list[Head]:
        every = np.random.default_rng((seed, number, at)).permutation(layers * heads)
        return [divmod(int(one), heads) for one in every]

    tuned = lab.lazy_classifier(task, seed_offset=number)
    ranked = [(int(layer), int(head)) for layer, head in cached(pruning_order, tuned, rows, step)]
    return {RANKED: [ranked], RANDOM_ORDER: [drawn(at) for at in range(RANDOM_ORDERS)]}


def pruning_order(model, batches: Sequence[Batch], step: int) -> list[Head]:
    """All heads in the order in which they are removed, the least important first.

    So many are removed at a time, then those that are left are ranked again. Importance is by
    gradients, each layer's in its own scale (Michel et al., 2019, §4.1).

    Args:
        model: classifier in evaluation mode.
        batches: with gold labels, not those on which the order is tried.
        step: heads that are removed at a time; as many as there are for one ranking of all.
    """
    gone: list[Head] = []
    zeros = replacement(model, batches, "zero")
    while left := [head for head in all_heads(model) if head not in gone]:
        with disabled(model, gone, zeros):
            importance = spec.importance(model, batches)
        gone += sorted(left, key=lambda head: importance[head])[:step]
    return gone
