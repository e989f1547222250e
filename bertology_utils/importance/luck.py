"""Would luck reach the paper's largest gains, if bert-base's heads changed as many answers as MiniLM's?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..disabling.effects import gain_parts, largest_by_chance
from ..glue import Task, draw, predictions
from ..statistics import ROUNDING
from ..verdicts import Support


@dataclass(frozen=True)
class Published:
    """A gain that the paper reports (§4.6).

    Attributes:
        task: its name.
        what: was disabled, "head" or "layer".
        gain: from 0 to 1.
        n: examples of the dev set.
    """

    task: str
    what: str
    gain: float
    n: int


# STS-B's +0.1 is left out: it is of a correlation, which no single answer changes.
PUBLISHED = (Published("mrpc", "head", 0.012, 408), Published("rte", "layer", 0.032, 277))
# How many answers bert-base's heads or layers change, in multiples of MiniLM's: it has twice as
# many, so each may change half as many.
RATES = {"as many answers": 1.0, "half as many answers": 0.5}


def largest_by_luck(
    published: Published,
    task: Task,
    outputs: tuple[np.ndarray, np.ndarray],
    labels: np.ndarray,
    seed: int,
    rate: float = 1.0,
) -> np.ndarray:
    """The largest gain of MiniLM's heads or layers if each change were for better or worse by chance, shape (permutations,).

    Answers with and without are exchanged for a random half of the examples, the same for all heads,
    as in :class:`bertology_utils.disabling.effects.Signed`: heads that change the same answers go
    up and down together. Heads that are significantly harmful are left out.

    Args:
        published: the gain; as many examples are drawn as it was measured on, if there are.
        task: its task.
        outputs: of the whole model, (examples, labels), and without each, (…, examples, labels).
        labels: gold, shape (examples,).
        seed: of the draws.
        rate: share of the changed answers that is kept; the others count as unchanged.
    """
    rows = draw(len(labels), published.n, seed)
    whole, without = (predictions(task, one)[..., rows] for one in outputs)
    kept = np.random.default_rng(seed).random(len(rows)) < rate  # the same for all heads
    without = np.where(kept, without.reshape(-1, len(rows)), whole)
    return largest_by_chance(gain_parts(task, whole, without, labels[rows]).T, seed)


def beyond(published: Published, by_luck: Mapping[str, Sequence[np.ndarray]]) -> Support:
    """Support for a published gain being more than luck gives, at each of :data:`RATES`.

    It is beyond luck only if it is at every rate, and within luck only if it is at every one.

    Args:
        published: the gain.
        by_luck: by rate, the largest gains of every run; the mean of the runs' probabilities counts.
    """
    chances = {name: chance_of(published, runs) for name, runs in by_luck.items()}
    below = {name: chance_of(published, runs, reached=False) for name, runs in by_luck.items()}
    at_rates = ", ".join(f"{chance:.2f} with {name}" for name, chance in chances.items())
    number = f"{100 * published.gain:+.1f} points without a {published.what}; luck reaches it with probability {at_rates}"
    runs = len(next(iter(by_luck.values())))
    return Support(
        max(chances.values()),
        max(below.values()),
        f"{number}; n={published.n}, {runs} runs",
    )


def chance_of(published: Published, by_luck: Sequence[np.ndarray], reached: bool = True) -> float:
    """The probability that luck gives at least the published gain, or less where not ``reached``; mean over runs."""
    least = round(published.gain * published.n) / published.n - ROUNDING
    counts = [((largest >= least) == reached).sum() for largest in by_luck]
    draws = [len(largest) for largest in by_luck]
    return float(np.mean((1 + np.array(counts)) / (1 + np.array(draws))))
