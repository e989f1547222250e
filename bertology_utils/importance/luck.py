"""The largest gain of many heads that do nothing: each turns a few answers, for better or worse as a coin falls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from ..glue import Task, predictions
from ..statistics import ONE_SIDED
from ..verdicts import Support


@dataclass(frozen=True)
class Published:
    """A gain that the paper reports (§4.6).

    Attributes:
        task: its name.
        what: was disabled, "head" or "layer".
        gain: from 0 to 1.
        among: heads or layers of which it is the largest.
        n: examples of the dev set.
    """

    task: str
    what: str
    gain: float
    among: int
    n: int

    @property
    def answers(self) -> int:
        """By how many more of the answers are right."""
        return round(self.gain * self.n)


# STS-B's +0.1 is left out: it is of a correlation, which no single answer turns.
PUBLISHED = (Published("mrpc", "head", 0.012, 144, 408), Published("rte", "layer", 0.032, 12, 277))


def largest_gain(flips: Sequence[int] | np.ndarray, among: int, most: int) -> np.ndarray:
    """The distribution of the largest gain, in answers, of so many independent idle heads: P(largest ≤ k), k = 0 … most.

    A head that turns f answers gains 2 B − f, where B of them become right: binomial with f and ½.
    The largest of several is at most k if each is. Heads that turn the same examples, as those of
    one layer may, count for fewer heads.

    Args:
        flips: answers that each of some heads turns; their heads stand for all.
        among: how many heads there are.
        most: the largest k.
    """
    turned = np.asarray(flips)[:, None]
    each = binom.cdf((np.arange(most + 1) + turned) // 2, turned, 0.5)  # (heads, k)
    return np.prod(each, axis=0) ** (among / len(turned))


def chance_of(published: Published, flips: Sequence[int] | np.ndarray, among: int = 0) -> float:
    """The probability that the largest of idle heads gains at least what was published.

    Args:
        published: the gain.
        flips: answers of its ``n`` that each of some heads turns.
        among: another number of heads than the published.
    """
    return float(
        1 - largest_gain(flips, among or published.among, published.answers)[published.answers - 1]
    )


def turned(
    task: Task, whole: np.ndarray, without: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many answers become right or wrong without each head or layer, and which are not surely harmful, so may be idle.

    Each of shape (heads,).

    Args:
        task: with labels; a regression has no answer that is right or wrong.
        whole: outputs of the whole model, shape (examples, labels).
        without: outputs without each, shape (…, examples, labels).
        labels: gold, shape (examples,).
    """
    before, after = (
        predictions(task, whole) == labels,
        (predictions(task, without) == labels).reshape(-1, len(labels)),
    )
    better, worse = (after & ~before).sum(axis=1), (~after & before).sum(axis=1)
    return better + worse, binom.cdf(better, better + worse, 0.5) * len(after) >= ONE_SIDED


def beyond(published: Published, flips: Sequence[np.ndarray]) -> Support:
    """Support for a published gain being more than idle heads give, which turn as many answers as those measured here.

    Args:
        published: the gain.
        flips: of every training, shares of answers that each head turns; the mean of the trainings'
            probabilities counts.
    """
    counts = [np.rint(each * published.n).astype(int) for each in flips]
    chance = float(np.mean([chance_of(published, each) for each in counts]))
    lower = float(
        np.mean([largest_gain(each, published.among, published.answers)[-1] for each in counts])
    )
    number = f"{100 * published.gain:+.1f} points without a {published.what}; idle ones reach it with probability {chance:.2f}"
    return Support(chance, lower, f"{number}; n={published.n}, {len(flips)} trainings")
