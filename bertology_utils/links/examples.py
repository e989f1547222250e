"""One input to look at before any statistic, and its maps (§4.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..annotation.inputs import AnnotatedInput
from ..attention import Batch, attention_maps
from ..glue.tasks import Task
from .token_links import TokenLink

TOKENS = 14  # of an input whose map is legible on a page


def pick(
    inputs: Mapping[Task, Sequence[AnnotatedInput]],
    links: Mapping[Task, Sequence[Mapping[str, list[TokenLink]]]],
    kind: str,
    adjacent: bool,
) -> tuple[Task, int]:
    """The input of about fourteen tokens in which every link of a type is between neighbours, or none is.

    Chosen without a look at any map. If no input is so, one that has such links; if none has, any.

    Args:
        inputs: by task.
        links: by task, of every input; see :func:`bertology_utils.links.token_links.borrow`.
        kind: one of :data:`~bertology_utils.links.token_links.LINK_TYPES`.
        adjacent: True for neighbours only, False for no neighbours.
    """

    def badness(item: tuple[Task, int]) -> tuple[int, int]:
        task, index = item
        of_type = links[task][index][kind]
        fits = all(link.adjacent == adjacent and link.places for link in of_type)
        return (0 if of_type and fits else 1 if of_type else 2), abs(inputs[task][index].length - TOKENS)

    return min(((task, index) for task, of_task in inputs.items() for index in range(len(of_task))), key=badness)


def short_single(inputs: Mapping[Task, Sequence[AnnotatedInput]]) -> tuple[Task, int]:
    """An input of about fourteen tokens of the first task whose inputs are one sentence, or of the first task."""
    task = next((task for task in inputs if len(task.fields) == 1), next(iter(inputs)))
    return task, min(range(len(inputs[task])), key=lambda index: abs(inputs[task][index].length - TOKENS))


def maps_of(model, batches: Sequence[Batch], index: int, weighing: str = "weight") -> np.ndarray:
    """All maps of one input, shape (layers, heads, tokens, tokens).

    Args:
        model: encoder or classifier.
        batches: of the data.
        index: of the input in the data.
        weighing: see :func:`bertology_utils.attention.attention_maps`.

    Raises:
        ValueError: no batch has it.
    """
    batch = next((batch for batch in batches if index in batch.index), None)
    if batch is None:
        raise ValueError(f"no input {index} in these batches; give one from 0 to {sum(len(b.index) for b in batches) - 1}")
    row = batch.index.index(index)
    real = slice(int(batch.starts[row]), int(batch.starts[row] + batch.lengths[row]))
    maps = attention_maps(model, batch.to(model.device), weighing)  # by layer: (inputs, heads, tokens, tokens)
    return np.stack([of_layer[row, :, real, real].cpu().numpy() for of_layer in maps])
