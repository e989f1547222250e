"""What does an ablation measure? Effects by every ablation, beside what heads rest on, add and are made to change.

A head that rests on [CLS], whose value vector is nearly zero, adds almost nothing. By uniform
weights, 1/L, it adds the mean of all values: that does not switch it off, but on. If this matters,
1/L makes heads look important that zero ablation hardly needs, the more so the more a head rests
on a sink and the longer the mean value vector is; and the effect of each ablation follows the norm
of what it changes.

A measured effect is never zero, and noise enlarges its size, most where an ablation changes most.
The square of an effect is therefore estimated by the product of the effects on two random halves
of the examples, whose noise is not the same; it is right on average, and may be negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

import numpy as np

from ..disabling.masking import ABLATIONS, INTERCHANGE
from ..statistics import Bootstrap, Seed, mean_of, rank_correlation, resampled_rows

WAYS = tuple(
    "resample" if name == INTERCHANGE else name for name in ABLATIONS
)  # as readers know them
FEWEST = 0.3  # reliability below which a correlation cannot be corrected
SINK = 0.5  # weight on [CLS] above which a head rests on it
FEWEST_SINKS = 5  # heads of a run, below which nothing can be said of them
MOST = 20.0  # times; a larger ratio says that the other ablation has no effect that can be told
HALVINGS = 5  # of the examples
SINKS, OTHERS = "heads that rest on [CLS]", "other heads"
CHANGES = {  # the norm by which an ablation changes a head's output
    "uniform": "norm of its change by 1/L",
    "zero": "norm of its output",
    "mean": "norm of its change by the mean",
}


@dataclass(frozen=True)
class Heads:
    """The heads of one run, disabled by every ablation on the same examples.

    Attributes:
        halves: what disabling costs on the two halves of the examples, in each halving, shape
            (halvings, halves, ablations, heads); ablations as in ``ABLATIONS``.
        effects: on all examples, shape (ablations, heads).
        described: of :func:`bertology_utils.disabling.heads.describe_heads`, shape (layers, heads).
    """

    halves: np.ndarray
    effects: np.ndarray
    described: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls, rises: Mapping[str, np.ndarray], described: Mapping[str, np.ndarray], seed: Seed
    ) -> Heads:
        """From the rise of each example's loss, by ablation, shape (heads, examples).

        Args:
            rises: by every ablation.
            described: see above.
            seed: of the halvings.
        """
        every = np.stack([rises[name] for name in ABLATIONS])  # (ablations, heads, examples)
        n, rng = every.shape[2], np.random.default_rng(seed)
        halves = []
        for _ in range(HALVINGS):
            one, other = np.array_split(rng.permutation(n), 2)
            halves.append([every[..., one].mean(axis=2), every[..., other].mean(axis=2)])
        return cls(np.array(halves), every.mean(axis=2), described)

    @property
    def squares(self) -> np.ndarray:
        """Squared effects without the noise, in each halving, shape (halvings, ablations, heads)."""
        return self.halves[:, 0] * self.halves[:, 1]

    @property
    def scaled_squares(self) -> np.ndarray:
        """Their mean over halvings, in the run's own scale, shape (ablations, heads)."""
        return self.squares.mean(axis=0) / (self.effects**2).mean()

    @property
    def rests(self) -> np.ndarray:
        """True for heads that rest on a sink, shape (heads,)."""
        return self.described["weight on [CLS]"].ravel() > SINK

    def change(self, ablation: str) -> np.ndarray:
        """The norm by which an ablation changes a head's output, shape (heads,); of the last layer at [CLS], where that is known.

        Of the last layer a classifier reads nothing else.
        """
        norms = self.described[CHANGES[ablation]].copy()  # (layers, heads)
        if (at_start := self.described.get(f"{CHANGES[ablation]} at [CLS]")) is not None:
            norms[-1] = at_start[-1]
        return norms.ravel()


def in_multiples(runs: Sequence[Heads], seed: Seed) -> dict[str, dict[str, Bootstrap]]:
    """How many times as large effects are by 1/L as by another ablation, by that one and group of heads; heads resampled.

    It is the ratio of root mean squares over all runs of all tasks, each in its own scale; "sink
    heads over others" is the ratio of these ratios.

    Args:
        runs: of all tasks.
        seed: of the resampling, the same heads in every run.
    """
    heads = len(runs[0].rests)
    drawn = [np.arange(heads), *resampled_rows(heads, seed)]
    weights = np.stack([np.bincount(rows, minlength=heads) for rows in drawn])
    squares = {}  # of each group, mean over its heads and all runs, (1 + resamples, ablations)
    for group, chosen in (
        (SINKS, [run.rests for run in runs]),
        (OTHERS, [~run.rests for run in runs]),
    ):
        sums = [
            weights @ (run.scaled_squares * own).T for run, own in zip(runs, chosen, strict=True)
        ]
        counts = weights @ np.sum(chosen, axis=0)
        with np.errstate(invalid="ignore"):
            means = np.sum(sums, axis=0) / counts[:, None]
        # A resample without any head of a group says nothing of it.
        squares[group] = np.where(np.isfinite(means), means, means[0])
    found: dict[str, dict[str, Bootstrap]] = {}
    for at, ablation in enumerate(WAYS[1:], start=1):
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = {
                # Noise may leave nothing of the other ablation's effects, or less.
                group: np.sqrt(np.maximum(of[:, 0], 0) / np.maximum(of[:, at], of[:, 0] / MOST**2))
                for group, of in squares.items()
            }
            ratios["sink heads over others"] = ratios[SINKS] / ratios[OTHERS]
        found[ablation] = {
            group: Bootstrap.of(ratio, heads, seed) for group, ratio in ratios.items()
        }
    return found


def follows_change(runs: Sequence[Heads], seed: Seed) -> dict[str, Bootstrap]:
    """Rank correlation of heads' squared effects and the change of their output, both means over runs, by ablation.

    A run has much noise, and of several tasks each has effects of its own size; means over all of
    them, each in its own scale, say what the model's heads do. Heads are resampled.

    Args:
        runs: of all tasks.
        seed: of the resampling.
    """
    squares = np.mean([run.scaled_squares for run in runs], axis=0)  # (ablations, heads)
    changes = {name: np.mean([run.change(name) for run in runs], axis=0) for name in CHANGES}
    return {
        name: rank_correlation(squares[WAYS.index(name)], change, seed)
        for name, change in changes.items()
    }


def agreement_of_ways(runs: Sequence[Heads], seed: Seed) -> dict[str, Bootstrap]:
    """How two ablations agree on a run's heads, each on its own half of the examples, and one with itself: the ceiling.

    Args:
        runs: of one task.
        seed: of the resampling of heads.

    Returns:
        By "one and other": rank correlations of effects, means over runs and halvings.
    """
    orders: dict[str, Bootstrap] = {}
    halves = [half for run in runs for half in run.halves]  # (halves, ablations, heads) each
    for a, b in combinations_with_replacement(range(len(WAYS)), 2):
        sides = [(one[a], other[b]) for one, other in halves]
        if a != b:
            sides += [(other[a], one[b]) for one, other in halves]
        each = [rank_correlation(*pair, seed) for pair in sides]
        orders[f"{WAYS[a]} and {WAYS[b]}"] = mean_of(each)
    return orders


def below_ceiling(orders: Mapping[str, Bootstrap]) -> dict[str, Bootstrap]:
    """Rank correlations of two ablations, corrected for what so few examples leave uncertain of each (Spearman, 1904).

    Left out where an ablation agrees with itself by less than :data:`FEWEST`.

    Args:
        orders: see :func:`agreement_of_ways`.
    """
    found = {}
    for a, b in combinations(WAYS, 2):
        name = f"{a} and {b}"
        between, one, other = orders[name], orders[f"{a} and {a}"], orders[f"{b} and {b}"]
        if min(one.value, other.value) >= FEWEST:
            draws = np.sqrt(np.maximum(one.draws, 0.05) * np.maximum(other.draws, 0.05))
            value = between.value / np.sqrt(one.value * other.value)
            found[name] = Bootstrap(float(value), between.draws / draws, between.n, between.seed)
    return found
