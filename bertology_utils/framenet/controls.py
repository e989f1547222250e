"""Do heads follow frame-semantic links, or the distance at which these stand? (§4.2, controls of ours)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..statistics import Bootstrap, Seed, bootstrap_mean, corrected_p
from ..statistics.ties import heads_by_size
from .measure import DIRECTIONS, PAIRINGS, PLACES, FrameLinkAttention, FrameLinkScores, FramePlaces

DRAWS = 1000


def compared(placed: Sequence[FramePlaces], direction: str, seed: int) -> dict[str, FrameLinkAttention]:
    """Measurements of the links beside either kind of places; see :class:`FrameLinkAttention`."""
    return {kind: FrameLinkAttention(placed, direction, elsewhere=kind, seed=seed) for kind in PLACES}


def ways(placed: Sequence[FramePlaces]) -> dict[tuple[str, str], FrameLinkAttention]:
    """Measurements of the links in every direction, with either pairing of wordpieces."""
    return {(way, pairing): FrameLinkAttention(placed, way, pairing) for way in DIRECTIONS for pairing in PAIRINGS}


def other_way(direction: str) -> str:
    """The direction opposite to the measured one; of both, the one that the paper's text does not have."""
    return "predicate to element" if direction == "element to predicate" else "element to predicate"


@dataclass(frozen=True)
class MatchedTest:
    """Links against other cells.

    Attributes:
        links: mean score of the links, shape (layers, heads).
        others: mean score of the other places, shape (layers, heads).
        above, below: permutation p-values of links > others and links < others,
            corrected over all heads by the maximum statistic, shape (layers, heads).
        sentences: sentences with at least one other place.
    """

    links: np.ndarray
    others: np.ndarray
    above: np.ndarray
    below: np.ndarray
    sentences: int

    @property
    def excess(self) -> np.ndarray:
        """Links minus others, shape (layers, heads)."""
        return self.links - self.others


def matched_test(scores: FrameLinkScores, seed: Seed, draws: int = DRAWS) -> MatchedTest:
    """Is the annotated place special among all the places it is compared with?

    If a head follows position alone, it scores as high on a sentence's other
    places. Under that hypothesis the annotated place is a random one among
    them, which gives the test: draw a place for every sentence, standardise
    every head's mean by its mean and standard deviation over such draws, and
    compare with the largest (and the smallest) over all heads in each draw
    (Westfall and Young, 1993).

    Args:
        scores: from :class:`bertology_utils.framenet.measure.FrameLinkAttention`.
        seed: of the permutations.
        draws: how many.

    Raises:
        ValueError: no sentence has a second place.
    """
    places = [sentence.reshape(len(sentence), -1).astype(np.float64) for sentence in scores.places if len(sentence) > 1]
    if not places:
        raise ValueError("no sentence has a second place for its links, so there is nothing to compare with")
    shape = scores.places[0].shape[1:]
    flat, counts = np.concatenate(places), np.array([len(sentence) for sentence in places])  # flat: (all places, all heads)
    starts = np.cumsum(counts) - counts
    expected = np.mean([sentence.mean(axis=0) for sentence in places], axis=0)  # under the hypothesis, (all heads,)
    error = np.maximum(np.sqrt(np.sum([sentence.var(axis=0) for sentence in places], axis=0)) / len(places), 1e-12)

    def standardised(rows: np.ndarray) -> np.ndarray:
        return (flat[rows].mean(axis=0) - expected) / error

    rng = np.random.default_rng(seed)
    drawn = np.array([(z.max(), z.min()) for z in (standardised(starts + rng.integers(0, counts)) for _ in range(draws))])
    above, below = corrected_p(standardised(starts), *drawn.T)
    others = np.mean([sentence[1:].mean(axis=0) for sentence in places], axis=0)
    links = flat[starts].mean(axis=0)
    links, others, above, below = (part.reshape(shape) for part in (links, others, above, below))
    return MatchedTest(links, others, above, below, len(places))


def fixed_offset_baseline(placed: Sequence[FramePlaces], direction: str, seed: Seed) -> tuple[int, Bootstrap]:
    """How often a head that always points a fixed number of wordpieces away would point at a link.

    To be compared with :attr:`bertology_utils.framenet.measure.FrameLinkScores.hits`.

    Args:
        placed: the sentences.
        direction: see :meth:`FramePlaces.pairs`.
        seed: of the resampling of sentences.

    Returns:
        The best offset (column minus row), and the share of sentences in which it hits.
    """
    offsets = [{int(offset) for offset in np.subtract(*place.pairs(direction)[::-1])} for place in placed]
    best, _ = max(
        Counter(offset for of_sentence in offsets for offset in of_sentence).items(),
        key=lambda item: (item[1], -abs(item[0])),
    )
    return best, bootstrap_mean(np.array([float(best in of_sentence) for of_sentence in offsets]), seed)


def top_heads(means: np.ndarray, count: int) -> list[tuple[int, int]]:
    """The ``count`` heads of the highest means, (layer, head) from 0, the highest first."""
    return heads_by_size(means)[:count]
