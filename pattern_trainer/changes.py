"""Random changes that keep a map's pattern, to make more of few labelled maps."""

from __future__ import annotations

import numpy as np

from bertology_utils.patterns.labels import SHORTEST, Picture


def augmented(picture: Picture, rng: np.random.Generator) -> Picture:
    """One random change of each kind, each with probability one half; the reversal last, as others look for [CLS] first."""
    for change in (swapped_sentences, merged_tokens, sharpened, with_ground, reversed_tokens):
        if rng.random() < 0.5:
            picture = change(picture, rng)
    return picture


def reordered(picture: Picture, order: np.ndarray) -> Picture:
    """The map with its tokens in another order."""
    weights, separators = picture
    return weights[np.ix_(order, order)], separators[order]


def reversed_tokens(picture: Picture, rng: np.random.Generator) -> Picture:
    """From last to first: a column stays a column, the previous token becomes the next, blocks stay blocks."""
    return reordered(picture, np.arange(len(picture[0]))[::-1])


def swapped_sentences(picture: Picture, rng: np.random.Generator) -> Picture:
    """The two sentences, each with its [SEP], change places; one sentence stays as it is."""
    weights, separators = picture
    ends = np.flatnonzero(separators)
    if len(ends) != 2:
        return picture
    first, second = ends
    order = [
        0,
        *range(first + 1, second + 1),
        *range(1, first + 1),
        *range(second + 1, len(weights)),
    ]
    return reordered(picture, np.array(order))


def merged_tokens(picture: Picture, rng: np.random.Generator, most: float = 0.2) -> Picture:
    """Up to a fifth of the tokens become one with the next, as wordpieces become a word; never [CLS] and [SEP].

    The merged token attends as its parts do on average, and is attended to as
    much as they are together (Clark et al., 2019, §4.1). Leaving tokens out
    instead could remove the column that makes the pattern.
    """
    weights, separators = picture
    apart = rng.random(len(weights)) >= rng.uniform(0, most)
    apart |= separators
    apart[:2] = True  # [CLS] and what follows it
    apart[1:] |= separators[:-1]
    member = np.cumsum(apart) - 1  # (tokens,): the merged token that each becomes part of
    if member[-1] + 1 < SHORTEST:
        return picture
    # (merged, tokens)
    joins = (member == np.arange(member[-1] + 1)[:, None]).astype(weights.dtype)
    merged = joins / joins.sum(axis=1, keepdims=True) @ weights @ joins.T  # (merged, merged)
    return merged, separators[apart]


def sharpened(picture: Picture, rng: np.random.Generator) -> Picture:
    """Weights to a power from 0.8 to 1.25, as if the softmax had another temperature."""
    weights, separators = picture
    sharp = weights ** np.exp(rng.uniform(np.log(0.8), np.log(1.25)))
    return sharp / sharp.sum(axis=1, keepdims=True), separators


def with_ground(picture: Picture, rng: np.random.Generator, most: float = 0.15) -> Picture:
    """A little uniform attention mixed in."""
    weights, separators = picture
    share = rng.uniform(0, most)
    return (1 - share) * weights + share / len(weights), separators
