"""One task's examples: matched words to compare types with, one pass over the maps, and what was read from it (§4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..annotation.inputs import (
    LINGUISTIC,
    MARKS,
    TOKEN_TYPES,
    AnnotatedInput,
    is_punctuation,
    mask,
    token_types,
)
from ..attention import Measurement
from ..common import PROTOCOLS, Head, one_of
from ..statistics import Seed, largest
from .measure import DESTINATIONS, Features, Flow, FlowShares, disregard, marks

PLACES_PER_DECADE = 5  # so many positions weigh as much as a factor of ten in frequency


@dataclass(frozen=True)
class Matched:
    """Tokens of each linguistic type and as many of no such type, paired within an input.

    Attributes:
        masks: per input shape (2 · types, wordpieces): the paired tokens of
            each of :data:`LINGUISTIC`, then their controls.
        distances: between the paired, per type the means of: positions without
            and with sign, log10 of frequencies without and with sign; signs are
            control minus token; shape (types, 4).
        tokens: tokens of each type, and how many of them are paired, shape (types, 2).
    """

    masks: list[np.ndarray]
    distances: np.ndarray
    tokens: np.ndarray


def match(inputs: Sequence[AnnotatedInput], seed: Seed) -> Matched:
    """Pair every token of a type with a word's token that is not of the type.

    Pairs are chosen so that the sum of their distances is smallest. Where
    there are fewer others than tokens of the type, the best pairs are kept.
    Equals are drawn by lot.

    Args:
        inputs: the inputs; frequencies are counted over all of them.
        seed: of the random numbers that break ties.
    """
    counts = Counter(piece for annotated in inputs for piece in annotated.ids)
    rng = np.random.default_rng(seed)
    masks: list[np.ndarray] = []
    distances: list[list[tuple[float, ...]]] = [[] for _ in LINGUISTIC]
    tokens = np.zeros((len(LINGUISTIC), 2), dtype=int)
    for annotated in inputs:
        places_of_words = [
            at for word, pieces in annotated.words if not is_punctuation(word) for at in pieces
        ]
        words = mask(annotated.length, places_of_words)
        rarity = np.log10([counts[piece] for piece in annotated.ids])
        both = np.zeros((2 * len(LINGUISTIC), annotated.length), dtype=bool)
        for number, of_type in enumerate(token_types(annotated)[: len(LINGUISTIC)]):
            own, others = np.flatnonzero(of_type), np.flatnonzero(words & ~of_type)
            tokens[number] += len(own), min(len(own), len(others))
            places = others - own[:, None]  # (tokens of the type, others)
            frequencies = rarity[others] - rarity[own][:, None]
            jitter = 1e-6 * rng.random(places.shape)
            chosen = linear_sum_assignment(
                np.abs(places) / PLACES_PER_DECADE + np.abs(frequencies) + jitter
            )
            both[number, own[chosen[0]]] = both[len(LINGUISTIC) + number, others[chosen[1]]] = True
            apart = places[chosen], frequencies[chosen]
            distances[number] += zip(
                *(part for signed in apart for part in (np.abs(signed), signed)), strict=True
            )
        masks.append(both)
    means = [np.mean(pairs, axis=0) if pairs else np.full(4, np.nan) for pairs in distances]
    return Matched(masks, np.array(means), tokens)


@dataclass(frozen=True)
class Reading:
    """One model's attention on one task's examples.

    Attributes:
        weights: what the largest token of each of :data:`TOKEN_TYPES` gets from the average token,
            shape (examples, types, layers, heads); NaN where an example lacks the type.
        by_other: the same by the other protocol.
        above_matched: what paired tokens of each of :data:`LINGUISTIC` get minus what their matched
            words get, shape (examples, types, layers, heads).
        flow: how attention divides.
        lengths: of the examples, in wordpieces.
        seed: of everything that is resampled.
    """

    weights: np.ndarray
    by_other: np.ndarray
    above_matched: np.ndarray
    flow: FlowShares
    lengths: np.ndarray
    seed: Seed

    def of(self, kind: str) -> np.ndarray:
        """Weight that one type gets, shape (examples, layers, heads)."""
        return self.weights[:, TOKEN_TYPES.index(kind)]

    def heads(self, kind: str, other: bool = False) -> np.ndarray:
        """Its mean over the examples that have it, shape (layers, heads); NaN if none has. With ``other`` by that protocol."""
        values = (self.by_other if other else self.weights)[:, TOKEN_TYPES.index(kind)]
        return (
            np.nanmean(values, axis=0)
            if np.isfinite(values).any()
            else np.full(values.shape[1:], np.nan)
        )

    @property
    def even_shares(self) -> np.ndarray:
        """``weights`` in multiples of what every token of the input would get if all got the same."""
        return self.weights * self.lengths[:, None, None, None]

    def to(self, destination: str) -> np.ndarray:
        """The share of all attention that one of ``DESTINATIONS`` gets, shape (examples, layers, heads)."""
        return self.flow.destinations[..., DESTINATIONS.index(destination)]


class Examples:
    """One task's examples, prepared for :meth:`measurements`.

    Args:
        inputs: the task's, in the order of the data.
        protocol: which words count; see :func:`bertology_utils.annotation.inputs.token_types`.
        seed: of the random numbers that break ties in matching, and of all resampling.
    """

    def __init__(self, inputs: Sequence[AnnotatedInput], protocol: str, seed: Seed):
        self.inputs, self.protocol, self.seed = (
            inputs,
            one_of("protocol", protocol, PROTOCOLS),
            seed,
        )
        self.other = next(name for name in PROTOCOLS if name != protocol)
        self.types, self.other_types = (
            [token_types(one, name) for one in inputs] for name in (protocol, self.other)
        )
        self.matched = match(inputs, seed)
        self.lengths = np.array([annotated.length for annotated in inputs])

    @property
    def present(self) -> dict[str, int]:
        """By type, how many examples have it."""
        return dict(
            zip(
                TOKEN_TYPES,
                np.array([mask.any(axis=1) for mask in self.types]).sum(axis=0),
                strict=True,
            )
        )

    def places(self, at: int) -> dict[str, np.ndarray]:
        """Of one example, which wordpieces are of each type, and which are "a word" at all; each of shape (wordpieces,)."""
        of_type = dict(zip(TOKEN_TYPES, self.types[at], strict=True))
        return {**of_type, "a word": ~np.any([of_type[kind] for kind in MARKS], axis=0)}

    def measurements(self) -> dict[str, Measurement]:
        """The measurements that one pass feeds, by name."""
        return {
            "types": Features(self.types),
            "other protocol": Features(self.other_types),
            "matched": Features(self.matched.masks),
            "flow": Flow([marks(annotated) for annotated in self.inputs]),
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
    each = [one.heads(kind, other) for one in readings]
    there = [heads for heads in each if np.isfinite(heads).all()]
    return np.mean(there, axis=0) if there else np.full(each[0].shape, np.nan)


def pooled(readings: Iterable[Reading], kind: str) -> np.ndarray:
    """Mean over heads of every example of all tasks that has the type, shape (examples,)."""
    values = np.concatenate([one.of(kind).mean(axis=(1, 2)) for one in readings])
    return values[np.isfinite(values)]


def type_in_even_shares(readings: Iterable[Reading], kind: str) -> float:
    """What one type gets, in multiples of an even share, mean over heads, examples and then tasks."""
    at = TOKEN_TYPES.index(kind)
    return float(np.mean([np.nanmean(one.even_shares[:, at]) for one in readings]))


def darkest(maps: np.ndarray, places: np.ndarray) -> tuple[Head, float]:
    """Of one input's heads the one whose column is darkest at some of the tokens, and that column's mean in even shares.

    Args:
        maps: shape (layers, heads, tokens, tokens).
        places: which tokens, shape (tokens,).
    """
    columns = maps.mean(axis=2)[..., places].max(axis=2)  # (layers, heads)
    layer, head = largest(columns)
    return (layer, head), float(columns[layer, head] * len(places))


def typical(values: np.ndarray, lengths: np.ndarray, longest: int) -> int:
    """Of the examples that fit on a picture, the one whose value is nearest to the mean over all examples.

    Args:
        values: shape (examples,), NaN where an example has none.
        lengths: in wordpieces, same shape.
        longest: that fits; if none does, all count.
    """
    there = np.isfinite(values)
    fits = there & (lengths <= longest)
    apart = np.abs(values - np.nanmean(values))
    return largest(np.where(fits if fits.any() else there, -apart, np.nan))[0]
