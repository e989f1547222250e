"""What [CLS] looks at in the last layer, by type of token (§4.5, Fig 7): means, and which type comes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..annotation.inputs import AnnotatedInput
from ..annotation.token_types import TOKEN_TYPES
from ..glue.tasks import Task
from ..statistics import Seed
from .compare import ahead
from .flow import DESTINATIONS

Found = Mapping[str, Any]  # what one pass found, by measurement

OTHERS = [at for at, kind in enumerate(TOKEN_TYPES) if kind != "[CLS]"]
NONE = "no type"


def last_layer(values: np.ndarray) -> np.ndarray:
    """Mean over the heads of the last layer, shape (examples, types).

    Args:
        values: what [CLS] gives each type, shape (examples, types, layers, heads); see
            :class:`bertology_utils.features.Features`.
    """
    return values[:, :, -1].mean(axis=2)


def type_means(by_task: Iterable[np.ndarray]) -> np.ndarray:
    """Mean over the examples that have a type, shape (tasks, types); NaN where none has.

    Args:
        by_task: of each task shape (examples, types), NaN where an example lacks the type.
    """
    with np.errstate(invalid="ignore"):
        return np.stack([np.nansum(values, axis=0) / np.isfinite(values).sum(axis=0) for values in by_task])


def first_type(values: np.ndarray) -> str:
    """The type that gets more than every other but [CLS], each compared in the examples that have both.

    As :func:`bertology_utils.features.ahead` says it of the data as they are.

    Args:
        values: shape (examples, types), NaN where an example lacks the type.

    Returns:
        Its name; "no type" if none is ahead of all others.
    """

    def more(kind: int, rival: int) -> bool:
        both = np.isfinite(values[:, kind] + values[:, rival])
        return not both.any() or bool(values[both, kind].mean() > values[both, rival].mean())

    there = [at for at in OTHERS if np.isfinite(values[:, at]).any()]
    first = (at for at in there if all(more(at, rival) for rival in there if rival != at))
    return TOKEN_TYPES[at] if (at := next(first, None)) is not None else NONE


def last_layers(found: Mapping[str, Mapping[Task, Found]]) -> dict[str, dict[Task, np.ndarray]]:
    """By state of the model and task, :func:`last_layer`.

    Args:
        found: by state and task what one pass found, under "from [CLS]" what :class:`bertology_utils.features.Features` did.
    """
    return {
        state: {task: last_layer(one["from [CLS]"]) for task, one in of_state.items()} for state, of_state in found.items()
    }


def means_by_name(last: Mapping[str, Mapping[Task, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """Figure 7's numbers for the results file: by state and the task's name, shape (types,)."""
    return {
        state: dict(zip((task.name for task in by_task), type_means(by_task.values()), strict=True))
        for state, by_task in last.items()
    }


def first_types(last: Mapping[str, Mapping[Task, np.ndarray]]) -> dict[str, dict[Task, str]]:
    """By state and task, :func:`first_type`."""
    return {state: {task: first_type(values) for task, values in by_task.items()} for state, by_task in last.items()}


def shares_first(
    tuned: Mapping[Task, Sequence[Found]], kinds: Sequence[str], seed: Seed
) -> dict[Task, dict[str, list[float]]]:
    """By task and type, the share of the resamples in which the type is ahead of every other but [CLS], in each training."""
    return {
        task: {
            kind: [ahead(last_layer(one["from [CLS]"]), TOKEN_TYPES.index(kind), OTHERS, seed)[1] for one in trainings]
            for kind in kinds
        }
        for task, trainings in tuned.items()
    }


def sep_in_even_shares(found: Mapping[Task, Found], inputs: Mapping[Task, Sequence[AnnotatedInput]]) -> float:
    """What one [SEP] gets from the average token, in multiples of an even share; mean over heads, examples and tasks.

    Args:
        found: by task, under "flow" what :class:`bertology_utils.features.flow.Flow` found.
        inputs: by task.
    """
    at = DESTINATIONS.index("[SEP]")
    by_task = [
        np.mean(
            one["flow"].destinations[..., at].mean(axis=(1, 2))
            / len(task.fields)
            * np.array([annotated.length for annotated in inputs[task]])
        )
        for task, one in found.items()
    ]
    return float(np.mean(by_task))


def first_by_length(last: Mapping[Task, np.ndarray], inputs: Mapping[Task, Sequence[AnnotatedInput]]) -> dict[Task, str]:
    """:func:`first_type` if each example's weights are divided by its length as well, which the paper does."""
    return {
        task: first_type(values / np.array([[annotated.length] for annotated in inputs[task]]))
        for task, values in last.items()
    }
