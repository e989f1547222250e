"""All measurements of §4.4 on one task's examples, from one pass per model, and what was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..annotation.inputs import AnnotatedInput
from ..annotation.token_types import LINGUISTIC, MARKS, TOKEN_TYPES, token_types
from ..attention import Measurement
from ..common import PROTOCOLS, one_of
from ..statistics import Seed
from . import controls, flow
from .measure import Features, disregard


@dataclass(frozen=True)
class Reading:
    """One model's attention on one task's examples.

    Attributes:
        weights: what the largest token of each of :data:`TOKEN_TYPES` gets from the average token, shape
            (examples, types, layers, heads); NaN where an example lacks the type.
        by_other: the same by the other protocol.
        above_matched: what paired tokens of each of :data:`LINGUISTIC` get minus what their matched words get,
            shape (examples, types, layers, heads).
        flow: how attention divides.
        lengths: of the examples, in wordpieces.
        seed: of everything that is resampled.
    """

    weights: np.ndarray
    by_other: np.ndarray
    above_matched: np.ndarray
    flow: flow.FlowShares
    lengths: np.ndarray
    seed: Seed

    def of(self, kind: str) -> np.ndarray:
        """What one type gets, shape (examples, layers, heads)."""
        return self.weights[:, TOKEN_TYPES.index(kind)]

    def heads(self, kind: str) -> np.ndarray:
        """Its mean over the examples that have it, shape (layers, heads); NaN if none has."""
        return _mean(self.of(kind))

    def heads_by_other(self, kind: str) -> np.ndarray:
        """The same by the other protocol."""
        return _mean(self.by_other[:, TOKEN_TYPES.index(kind)])

    @property
    def even_shares(self) -> np.ndarray:
        """``weights`` in multiples of what every token of the input would get if all got the same."""
        return self.weights * self.lengths[:, None, None, None]

    def to(self, destination: str) -> np.ndarray:
        """The share of all attention that one of ``flow.DESTINATIONS`` gets, shape (examples, layers, heads)."""
        return self.flow.destinations[..., flow.DESTINATIONS.index(destination)]


def _mean(values: np.ndarray) -> np.ndarray:
    return np.nanmean(values, axis=0) if np.isfinite(values).any() else np.full(values.shape[1:], np.nan)


class Examples:
    """One task's examples, prepared for :meth:`measurements`.

    Args:
        inputs: the task's, in the order of the data.
        protocol: which words count; see :func:`bertology_utils.annotation.token_types.token_types`.
        seed: of the lots that matching draws, and of all resampling.
    """

    def __init__(self, inputs: Sequence[AnnotatedInput], protocol: str, seed: Seed):
        self.inputs, self.protocol, self.seed = inputs, one_of("protocol", protocol, PROTOCOLS), seed
        self.other = next(name for name in PROTOCOLS if name != protocol)
        self.types, self.other_types = ([token_types(one, name) for one in inputs] for name in (protocol, self.other))
        self.matched = controls.match(inputs, seed)
        self.lengths = np.array([annotated.length for annotated in inputs])

    @property
    def present(self) -> dict[str, int]:
        """By type, how many examples have it."""
        return dict(zip(TOKEN_TYPES, np.array([mask.any(axis=1) for mask in self.types]).sum(axis=0), strict=True))

    def places(self, at: int) -> dict[str, np.ndarray]:
        """Of one example, which wordpieces are of each type, and which are "a word" at all; each of shape (wordpieces,)."""
        of_type = dict(zip(TOKEN_TYPES, self.types[at], strict=True))
        return {**of_type, "a word": ~np.any([of_type[kind] for kind in MARKS], axis=0)}

    def measurements(self) -> dict[str, Measurement]:
        """What one pass feeds."""
        return {
            "types": Features(self.types),
            "other protocol": Features(self.other_types),
            "matched": Features(self.matched.masks),
            "flow": flow.Flow([flow.marks(annotated) for annotated in self.inputs]),
        }

    def read(self, found: dict) -> Reading:
        """What :func:`bertology_utils.attention.observe` made of :meth:`measurements`."""
        pairs, words = found["matched"], len(LINGUISTIC)
        return Reading(
            disregard(found["types"], self.protocol),
            disregard(found["other protocol"], self.other),
            pairs[:, :words] - pairs[:, words:],
            found["flow"],
            self.lengths,
            self.seed,
        )


def over_tasks(readings: Iterable[Reading], kind: str, other: bool = False) -> np.ndarray:
    """What every head gives one type, mean over the tasks that have it: shape (layers, heads); NaN if none has.

    Args:
        readings: one for each task.
        kind: the type.
        other: by the other protocol.
    """
    each = [one.heads_by_other(kind) if other else one.heads(kind) for one in readings]
    there = [heads for heads in each if np.isfinite(heads).all()]
    return np.mean(there, axis=0) if there else np.full(each[0].shape, np.nan)


def pooled(readings: Iterable[Reading], kind: str) -> np.ndarray:
    """Mean over heads of every example of all tasks that has the type, shape (examples,)."""
    values = np.concatenate([one.of(kind).mean(axis=(1, 2)) for one in readings])
    return values[np.isfinite(values)]


def in_even_shares(readings: Iterable[Reading], kind: str) -> float:
    """What one type gets, in multiples of an even share, mean over heads, examples and then tasks."""
    at = TOKEN_TYPES.index(kind)
    return float(np.mean([np.nanmean(one.even_shares[:, at]) for one in readings]))
