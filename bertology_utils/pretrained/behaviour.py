"""What every head of an encoder does, in numbers, on each of two halves of the examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..annotation.inputs import AnnotatedInput
from ..annotation.token_types import LINGUISTIC, TOKEN_TYPES, token_types
from ..attention import Batch, observe
from ..features.flow import DESTINATIONS, Flow, marks
from ..features.measure import Features
from ..statistics import Seed

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Where its attention goes, and what one token of a type of word gets of it.
KINDS = (*(f"to {name}" for name in DESTINATIONS), *(f"to one of the {name}" for name in LINGUISTIC))


def of_examples(model: PreTrainedModel, batches: Sequence[Batch], annotated: Sequence[AnnotatedInput]) -> np.ndarray:
    """Each head's behaviour in each example, by one forward pass.

    Args:
        model: the encoder.
        batches: the examples.
        annotated: the same, by their index.

    Returns:
        Shares of attention, shape (examples, layers, heads, kinds), in the order
        of :data:`KINDS`; NaN where an example has no word of a type.
    """
    seen = observe(
        model,
        batches,
        {"flow": Flow([marks(one) for one in annotated]), "types": Features([token_types(one) for one in annotated])},
    )
    words = seen["types"][:, [TOKEN_TYPES.index(name) for name in LINGUISTIC]]  # (examples, types, layers, heads)
    return np.concatenate([seen["flow"].destinations, np.moveaxis(words, 1, -1)], axis=-1)


def in_halves(tasks: Sequence[np.ndarray], seed: Seed) -> np.ndarray:
    """Means over two halves of the examples, drawn by ``seed``; each task counts the same.

    Args:
        tasks: for each task, from :func:`of_examples`; of two encoders on the same examples the halves are the same.
        seed: of the draw.

    Returns:
        Shape (2, layers, heads, kinds); NaN where a half has no example of a kind in any task.

    Raises:
        ValueError: a task has fewer than two examples.
    """
    if any(len(of_task) < 2 for of_task in tasks):
        raise ValueError("two halves need at least two examples of each task")
    halves = []
    for of_task in tasks:
        order = np.random.default_rng(seed).permutation(len(of_task))
        halves.append([_mean(of_task[part]) for part in np.array_split(order, 2)])
    return _mean(np.array(halves))


def _mean(values: np.ndarray) -> np.ndarray:
    """Over the first axis, of what is there; NaN where nothing is."""
    there = np.isfinite(values)
    count = there.sum(axis=0)
    return np.where(count > 0, np.where(there, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
