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
from itertools import combinations_with_replacement

import numpy as np

from ..disabling.masking import ABLATIONS, INTERCHANGE
from ..statistics import (
    RESAMPLES,
    Bootstrap,
    Seed,
    mean_of,
    rank_correlation,
    resampled_rows,
)
from .agreement import FEWEST

WAYS = tuple(
    "resample" if name == INTERCHANGE else name for name in ABLATIONS
)  # as readers know them
SINK = 0.5  # weight on [CLS] above which a head rests on it
FEWEST_SINKS = 5  # heads of a run, below which nothing can be said of them
MOST = 20.0  # times; a larger ratio says that the other ablation has no effect that can be told
TOP = 5  # heads that count as the most needed
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
        every = np.stack(
            [rises[ablation] for ablation in ABLATIONS]
        )  # (ablations, heads, examples)
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
    def sizes(self) -> np.ndarray:
        """Their roots, with the squares' sign, shape (halvings, ablations, heads)."""
        return np.sign(self.squares) * np.sqrt(np.abs(self.squares))

    @property
    def rests(self) -> np.ndarray:
        """True for heads that rest on a sink, shape (heads,)."""
        return self.sink > SINK

    @property
    def sink(self) -> np.ndarray:
        """Weight on [CLS], shape (heads,)."""
        return self.described["weight on [CLS]"].ravel()

    @property
    def switched_on(self) -> np.ndarray:
        """Weight on [CLS] times the norm of the mean value vector: what 1/L would switch on, shape (heads,)."""
        return self.sink * self.described["norm of the mean value"].ravel()

    def change(self, ablation: str) -> np.ndarray:
        """The norm by which an ablation changes a head's output, shape (heads,); of the last layer at [CLS], where that is known.

        Of the last layer a classifier reads nothing else.
        """
        norms = self.described[CHANGES[ablation]].copy()  # (layers, heads)
        if (at_start := self.described.get(f"{CHANGES[ablation]} at [CLS]")) is not None:
            norms[-1] = at_start[-1]
        return norms.ravel()


def compare_sizes(runs: Sequence[Heads], seed: Seed) -> dict[str, dict[str, Bootstrap]]:
    """Root mean square of effects of sink heads and of others, by group and ablation; heads resampled.

    Args:
        runs: of one task.
        seed: of the resampling, the same heads in every run.
    """
    squares = _resampled_squares(runs, seed)
    roots = {group: np.sign(of) * np.sqrt(np.abs(of)) for group, of in squares.items()}
    counts = {SINKS: [run.rests for run in runs], OTHERS: [~run.rests for run in runs]}
    return {
        group: {
            ablation: Bootstrap.of(values, int(np.mean(np.sum(counts[group], axis=1))), seed)
            for ablation, values in zip(WAYS, of.T, strict=True)
        }
        for group, of in roots.items()
    }


def in_multiples(runs: Sequence[Heads], seed: Seed) -> dict[str, dict[str, Bootstrap]]:
    """How many times as large effects are by 1/L as by another ablation, by that one and group of heads; heads resampled.

    It is the ratio of root mean squares over all runs of all tasks, each in its own scale; "sink
    heads over others" is the ratio of these ratios.

    Args:
        runs: of all tasks.
        seed: of the resampling, the same heads in every run.
    """
    squares = _resampled_squares(runs, seed, in_own_scale=True)
    found: dict[str, dict[str, Bootstrap]] = {}
    for at, ablation in enumerate(WAYS[1:], start=1):
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = {
                # Noise may leave nothing of the other ablation's effects, or less.
                group: np.sqrt(np.maximum(of[:, 0], 0) / np.maximum(of[:, at], of[:, 0] / MOST**2))
                for group, of in squares.items()
            }
            ratios["sink heads over others"] = ratios[SINKS] / ratios[OTHERS]
        heads = len(runs[0].sink)
        found[ablation] = {
            group: Bootstrap.of(ratio, heads, seed) for group, ratio in ratios.items()
        }
    return found


def _resampled_squares(
    runs: Sequence[Heads], seed: Seed, in_own_scale: bool = False
) -> dict[str, np.ndarray]:
    """Mean squared effects over runs and heads of each group, shape (1 + resamples, ablations)."""
    heads = len(runs[0].sink)
    drawn = [np.arange(heads), *resampled_rows(heads, seed, RESAMPLES)]
    weights = np.stack([np.bincount(rows, minlength=heads) for rows in drawn])
    groups: dict[str, list[np.ndarray]] = {SINKS: [], OTHERS: []}
    counts: dict[str, list[np.ndarray]] = {SINKS: [], OTHERS: []}
    for run in runs:
        scale = (run.effects**2).mean() if in_own_scale else 1.0
        squares = run.squares.mean(axis=0) / scale  # (ablations, heads)
        for group, chosen in ((SINKS, run.rests), (OTHERS, ~run.rests)):
            groups[group].append(weights @ (squares * chosen).T)  # (1 + resamples, ablations)
            counts[group].append(weights @ chosen)
    with np.errstate(invalid="ignore"):
        means = {
            group: np.sum(sums, axis=0) / np.sum(counts[group], axis=0)[:, None]
            for group, sums in groups.items()
        }
    # A resample without any head of a group says nothing of it.
    return {group: np.where(np.isfinite(of), of, of[0]) for group, of in means.items()}


def relations(run: Heads, seed: Seed) -> dict[str, dict[str, Bootstrap]]:
    """Rank correlations over a run's heads, by property of the effect and of the head; heads resampled, mean over halvings.

    Args:
        run: its heads.
        seed: of the resampling.
    """
    uniform, zero = (WAYS.index(name) for name in ("uniform", "zero"))
    more = run.sizes[:, uniform] - run.sizes[:, zero]  # (halvings, heads)
    signed = (run.effects[uniform] - run.effects[zero])[None]
    # What 1/L adds to zero is the mean value, whatever the head rests on.
    apart = np.prod(run.halves[:, :, uniform] - run.halves[:, :, zero], axis=1)
    length = {"norm of the mean value": run.described["norm of the mean value"].ravel()}
    pairs = {
        "size by 1/L minus size by zero": (more, _rests_on(run)),
        "effect by 1/L minus effect by zero": (signed, _rests_on(run)),
        "size of the difference": (apart, length),
    } | {
        f"size by {ablation}": (
            run.squares[:, WAYS.index(ablation)],
            {"change of the output": run.change(ablation)},
        )
        for ablation in CHANGES
    }
    return {
        name: {
            of_head: mean_of([rank_correlation(one, values, seed) for one in several])
            for of_head, values in properties.items()
        }
        for name, (several, properties) in pairs.items()
    }


def _rests_on(run: Heads) -> dict[str, np.ndarray]:
    return {
        "weight on [CLS]": run.sink,
        "weight on [CLS] × norm of the mean value": run.switched_on,
    }


def follows_change(runs: Sequence[Heads], seed: Seed) -> dict[str, Bootstrap]:
    """Rank correlation of heads' squared effects and the change of their output, both means over runs, by ablation.

    A run has much noise, and of several tasks each has effects of its own size; means over all of
    them, each in its own scale, say what the model's heads do. Heads are resampled.

    Args:
        runs: of all tasks.
        seed: of the resampling.
    """
    scales = [(run.effects**2).mean() for run in runs]
    squares = np.mean(
        [run.squares.mean(axis=0) / scale for run, scale in zip(runs, scales, strict=True)], axis=0
    )  # (ablations, heads)
    changes = {name: np.mean([run.change(name) for run in runs], axis=0) for name in CHANGES}
    return {
        name: rank_correlation(squares[WAYS.index(name)], change, seed)
        for name, change in changes.items()
    }


def agreement_of_ways(
    runs: Sequence[Heads], seed: Seed
) -> tuple[dict[str, Bootstrap], dict[str, float]]:
    """How two ablations agree on a run's heads, each on its own half of the examples, and one with itself: the ceiling.

    Args:
        runs: of one task.
        seed: of the resampling of heads.

    Returns:
        By "one and other": rank correlations of effects, and how many of the five most needed heads
        are the same; means over runs and halvings.
    """
    orders: dict[str, Bootstrap] = {}
    tops: dict[str, float] = {}
    for a, b in combinations_with_replacement(range(len(WAYS)), 2):
        halves = [half for run in runs for half in run.halves]  # (halves, ablations, heads) each
        sides = [(one[a], other[b]) for one, other in halves]
        if a != b:
            sides += [(other[a], one[b]) for one, other in halves]
        name = f"{WAYS[a]} and {WAYS[b]}"
        orders[name] = mean_of([rank_correlation(*pair, seed) for pair in sides])
        tops[name] = float(np.mean([_shared(*pair) for pair in sides]))
    return orders, tops


def _shared(one: np.ndarray, other: np.ndarray) -> int:
    most = [set(np.argsort(-values, kind="stable")[:TOP].tolist()) for values in (one, other)]
    return len(most[0] & most[1])


def below_ceiling(orders: Mapping[str, Bootstrap]) -> dict[str, Bootstrap]:
    """Rank correlations of two ablations, corrected for what so few examples leave uncertain of each (Spearman, 1904).

    Left out where an ablation agrees with itself by less than :data:`bertology_utils.importance.agreement.FEWEST`.

    Args:
        orders: see :func:`agreement_of_ways`.
    """
    found = {}
    for name, one in orders.items():
        a, b = name.split(" and ")
        own = [orders[f"{each} and {each}"] for each in (a, b)]
        if a != b and min(ceiling.value for ceiling in own) >= FEWEST:
            value, draws = (
                np.sqrt(np.maximum(of[0], 0.05) * np.maximum(of[1], 0.05))
                for of in (
                    [ceiling.value for ceiling in own],
                    [ceiling.draws for ceiling in own],
                )
            )
            found[name] = Bootstrap(one.value / float(value), one.draws / draws, one.n, one.seed)
    return found
