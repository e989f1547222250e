"""Tokens to compare a type's tokens with: of the same input, near in position and frequency (§4.4, a control of ours)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..annotation.inputs import AnnotatedInput, mask
from ..annotation.token_types import LINGUISTIC, is_punctuation, token_types
from ..statistics import Seed

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
        seed: of the lots.
    """
    counts = Counter(piece for annotated in inputs for piece in annotated.ids)
    rng = np.random.default_rng(seed)
    masks: list[np.ndarray] = []
    distances: list[list[tuple[float, ...]]] = [[] for _ in LINGUISTIC]
    tokens = np.zeros((len(LINGUISTIC), 2), dtype=int)
    for annotated in inputs:
        places_of_words = [at for word, pieces in annotated.words if not is_punctuation(word) for at in pieces]
        words = mask(annotated.length, places_of_words)
        rarity = np.log10([counts[piece] for piece in annotated.ids])
        both = np.zeros((2 * len(LINGUISTIC), annotated.length), dtype=bool)
        for number, of_type in enumerate(token_types(annotated)[: len(LINGUISTIC)]):
            own, others = np.flatnonzero(of_type), np.flatnonzero(words & ~of_type)
            tokens[number] += len(own), min(len(own), len(others))
            places = others - own[:, None]  # (tokens of the type, others)
            frequencies = rarity[others] - rarity[own][:, None]
            lots = 1e-6 * rng.random(places.shape)
            chosen = linear_sum_assignment(np.abs(places) / PLACES_PER_DECADE + np.abs(frequencies) + lots)
            both[number, own[chosen[0]]] = both[len(LINGUISTIC) + number, others[chosen[1]]] = True
            apart = places[chosen], frequencies[chosen]
            distances[number] += zip(*(part for signed in apart for part in (np.abs(signed), signed)), strict=True)
        masks.append(both)
    means = [np.mean(pairs, axis=0) if pairs else np.full(4, np.nan) for pairs in distances]
    return Matched(masks, np.array(means), tokens)
