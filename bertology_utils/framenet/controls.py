"""Do heads follow frame-semantic links, or the distance at which these stand? (§4.2, controls of ours)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..statistics import Bootstrap, Seed, bootstrap_mean
from .scores import LinkScores, Placed

DRAWS = 1000


@dataclass(frozen=True)
class MatchedTest:
    """Links against the same cells elsewhere in the same sentences.

    Attributes:
        links: mean score of the links, shape (layers, heads).
        matched: mean score of the moved cells, shape (layers, heads).
        p: permutation p-value of links > matched, corrected over all heads by
            the maximum statistic, shape (layers, heads).
        sentences: sentences with at least one other place for their links.
    """

    links: np.ndarray
    matched: np.ndarray
    p: np.ndarray
    sentences: int

    @property
    def excess(self) -> np.ndarray:
        """Links minus matched, shape (layers, heads)."""
        return self.links - self.matched


def matched_test(scores: LinkScores, seed: Seed, draws: int = DRAWS) -> MatchedTest:
    """Is the annotated place special among all places of the same distances?

    If a head only looks a fixed number of tokens away, it scores as high where
    the links' cells are moved along the sentence. Under that hypothesis the
    annotated place is a random one among a sentence's places, which gives the
    test: draw a place for every sentence, standardise every head's mean by its
    mean and standard deviation over such draws, and compare with the largest
    over all heads in each draw (Westfall and Young, 1993).

    Args:
        scores: from :class:`bertology_utils.framenet.scores.Links`.
        seed: of the permutations.
        draws: how many.

    Raises:
        ValueError: no sentence has a second place.
    """
    movable = scores.movable.shifted
    if not movable:
        raise ValueError("no sentence has a second place for its links, so there is nothing to compare with")
    shape = movable[0].shape[1:]
    counts = np.array([len(one) for one in movable])
    flat = np.concatenate([one.reshape(len(one), -1) for one in movable]).astype(np.float64)  # (places, all heads)
    starts = np.cumsum(counts) - counts
    expected = np.mean([one.reshape(len(one), -1).mean(axis=0) for one in movable], axis=0)  # under the hypothesis
    variance = np.sum([one.reshape(len(one), -1).var(axis=0, dtype=np.float64) for one in movable], axis=0)
    error = np.maximum(np.sqrt(variance) / len(movable), 1e-12)  # (all heads,)
    observed = (flat[starts].mean(axis=0) - expected) / error
    rng = np.random.default_rng(seed)
    largest = np.array([
        ((flat[starts + rng.integers(0, counts)].mean(axis=0) - expected) / error).max() for _ in range(draws)])
    p = (1 + (largest[:, None] >= observed).sum(axis=0)) / (1 + draws)
    matched = np.mean([one[1:].reshape(len(one) - 1, -1).mean(axis=0) for one in movable], axis=0)
    return MatchedTest(flat[starts].mean(axis=0).reshape(shape), matched.reshape(shape), p.reshape(shape), len(movable))


def best_offset(placed: Sequence[Placed], direction: str, seed: Seed) -> tuple[int, Bootstrap]:
    """The score of the best head that knows positions only.

    A head that puts all its attention a fixed number of wordpieces away scores
    1 in the sentences with a link at that distance and 0 in the others.

    Args:
        placed: the sentences.
        direction: see :meth:`Placed.pairs`.
        seed: of the resampling of sentences.

    Returns:
        The best offset (column minus row), and its mean score.
    """
    offsets = [{int(offset) for offset in np.subtract(*one.pairs(direction)[::-1])} for one in placed]
    best, _ = max(Counter(offset for some in offsets for offset in some).items(), key=lambda item: (item[1], -abs(item[0])))
    return best, bootstrap_mean(np.array([float(best in some) for some in offsets]), seed)


def top_heads(means: np.ndarray, count: int) -> list[tuple[int, int]]:
    """The ``count`` heads of the highest means, (layer, head) from 0, the highest first."""
    return [divmod(int(index), means.shape[1]) for index in np.argsort(-means, axis=None, kind="stable")[:count]]
