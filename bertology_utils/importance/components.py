"""Reliability of heads' measured effects: variance components, and whether other runs or examples order heads alike.

An effect is what disabling a head costs: the rise of the loss, or the fall of the score. It is
measured in every training, by every way, on each of ten parts of the examples: an array (heads,
trainings, ways, parts). Its variance over heads is the sum of a component for each set of these
factors; that of the empty set is the head's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from ..disabling.effects import losses, scores_of
from ..disabling.sweep import Sweep
from ..glue import Task, predictions
from ..results import text_of
from ..statistics import Bootstrap, Seed, mean_of, rank_correlation, rank_correlations
from ..verdicts import Support

# of the examples: ten cost no more than two halves and say nine times as much of how examples
# differ
PARTS = 10
ENOUGH = 0.8  # agreement from which one measurement may stand for another
FEWEST_EXAMPLES = 100
SAME, DIFFERENT = "the same examples", "different examples"
ORDERS = 40  # random orders of the examples, of which nested subsets are taken
DRAWS = 2000  # of an interval
FACTORS = ("training", "way", "part")
HEAD, EXAMPLES, NOISE = "the head", "head × examples", "rest"
TRAINING, WAY, BOTH = "head × training", "head × way", "head × training × way"
Source = tuple[str, ...]  # of :data:`FACTORS`
NAMES: dict[Source, str] = {
    (): HEAD,
    ("training",): TRAINING,
    ("way",): WAY,
    ("training", "way"): BOTH,
    ("part",): EXAMPLES,
}  # of a source as readers know it; all others are the rest


def rises(task: Task, sweep: Sweep, labels: np.ndarray) -> np.ndarray:
    """Rise of each example's loss without each head, shape (heads, examples); ``labels`` are gold."""
    risen = losses(task, sweep.heads, labels) - losses(task, sweep.baseline, labels)
    return risen.reshape(-1, len(labels))  # of (layers, heads, examples)


def effects_on_parts(
    task: Task,
    sweeps: Mapping[str, Sequence[Sweep]],
    labels: np.ndarray,
    seed: Seed,
    by: str = "loss",
) -> np.ndarray:
    """What disabling each head costs, shape (heads, trainings, ways, parts of the examples).

    Args:
        task: the task.
        sweeps: by way of disabling, of every training.
        labels: gold, shape (examples,).
        seed: of the division into parts, the same in all trainings and ways.
        by: "loss", or "score" for accuracy or Pearson's correlation.

    Raises:
        ValueError: fewer examples than parts.
    """
    if len(labels) < PARTS:
        raise ValueError(
            f"{task.title}: {len(labels)} examples cannot be divided into {PARTS} parts; sweep more"
        )
    of_parts = np.array_split(np.random.default_rng(seed).permutation(len(labels)), PARTS)

    def costs(one: Sweep) -> np.ndarray:
        """Shape (heads, parts)."""
        if by == "loss":
            rise = rises(task, one, labels)
            return np.stack([rise[:, rows].mean(axis=1) for rows in of_parts], axis=1)
        without = predictions(task, one.heads).reshape(-1, len(labels))
        both = np.vstack([predictions(task, one.baseline), without])  # (1 + heads, examples)
        scores = [scores_of(task, both[:, rows], labels[rows]) for rows in of_parts]
        return np.stack([of[0] - of[1:] for of in scores], axis=1)

    by_way = [np.stack([costs(one) for one in several], axis=1) for several in sweeps.values()]
    return np.stack(by_way, axis=2)


@dataclass(frozen=True)
class Components:
    """Variance components of heads' effects, by the method of moments.

    Attributes:
        effects: shape (heads, trainings, ways, parts).
    """

    effects: np.ndarray

    @cached_property
    def levels(self) -> dict[str, int]:
        """How many there are of each factor that has two or more."""
        counts = zip(FACTORS, self.effects.shape[1:], strict=True)
        return {name: count for name, count in counts if count > 1}

    @cached_property
    def sources(self) -> list[Source]:
        """Every set of the factors, the empty one first."""
        return [some for count in range(4) for some in combinations(self.levels, count)]

    @cached_property
    def squares(self) -> dict[Source, np.ndarray]:
        """What each head contributes to the mean square of each source, shape (heads,); they sum to it."""
        heads, found = len(self.effects), {}
        for source in self.sources:
            own = self.effects - self.effects.mean(axis=0)
            for axis, factor in enumerate(FACTORS, 1):
                mean = np.broadcast_to(own.mean(axis=axis, keepdims=True), own.shape)
                own = own - mean if factor in source else mean
            degrees = (heads - 1) * self.degrees(source)
            found[source] = (own**2).sum(axis=(1, 2, 3)) / degrees
        return found

    def degrees(self, source: Source) -> int:
        """Degrees of freedom of one head's share in a source's mean square."""
        return int(np.prod([self.levels[factor] - 1 for factor in source]))

    def solved(self, squares: Mapping[Source, np.ndarray | float]) -> dict[Source, np.ndarray]:
        """Components from mean squares; one that is below zero stays so.

        The mean square of a source expects its own component and those of all sources around it,
        each times the number of cells that it is averaged over. Solved for the component, that is a
        sum with alternating signs.
        """
        found = {}
        for source in self.sources:
            around = [one for one in self.sources if {*source} <= {*one}]
            signed = sum((-1) ** (len(at) - len(source)) * np.asarray(squares[at]) for at in around)
            averaged = [count for factor, count in self.levels.items() if factor not in source]
            found[source] = signed / np.prod(averaged)
        return found

    @cached_property
    def raw(self) -> dict[Source, float]:
        """Components of one training, one way and one part of the examples; below zero where the estimate is."""
        solved = self.solved({at: square.sum() for at, square in self.squares.items()})
        return {source: float(one) for source, one in solved.items()}

    def named(
        self, of: Mapping[Source, np.ndarray | float], least: float = 0.0
    ) -> dict[str, np.ndarray]:
        """Each component's share of the variance of a measurement on all examples, by name.

        Args:
            of: components by source.
            least: what is below it becomes it.
        """
        found: dict[str, np.ndarray] = {}
        for source, value in of.items():
            name, parts = NAMES.get(source, NOISE), self.levels["part"] if "part" in source else 1
            found[name] = found.get(name, 0.0) + np.maximum(value, least) / parts
        total = sum(found.values())
        with np.errstate(invalid="ignore"):
            return {name: part / total for name, part in found.items()}

    def drawn(self, seed: Seed) -> dict[Source, np.ndarray]:
        """Components that could have given these mean squares, shape (draws,) each; generalised intervals (Weerahandi, 1993).

        A mean square is its expectation times χ² over its degrees of freedom. Heads differ in how
        much trainings move them, which leaves fewer degrees (Satterthwaite, 1946). The heads are
        those of the model, no sample of others, so that of the head varies by what is added to its
        mean alone.

        Args:
            seed: of the draws.
        """
        rng, heads = np.random.default_rng(seed), len(self.effects)
        squares: dict[Source, np.ndarray] = {}
        for source in self.sources[1:]:
            of_heads, alone = self.squares[source], self.degrees(source)
            degrees = (alone + 2) * of_heads.sum() ** 2 / max((of_heads**2).sum(), 1e-300) - 2
            degrees = min(max(degrees, 1.0), alone * (heads - 1))
            squares[source] = of_heads.sum() * degrees / rng.chisquare(degrees, DRAWS)
        # to each head's mean
        added = sum((-1) ** (len(at) + 1) * self.squares[at] for at in self.sources[1:])
        added = np.maximum(added, 0.0)
        levels = [count for factor, count in self.levels.items() if factor != "part"]
        few = min(levels, default=self.levels["part"]) - 1
        spread = (4 * self.squares[()] * added - 2 * added**2 / (1 + 2 / few)).sum()
        degrees = max(2.5, (few + 2) * added.sum() ** 2 / max((added**2).sum(), 1e-300) - 2)
        around = np.sqrt(max(spread, 0.0)) * rng.standard_t(degrees, DRAWS)
        return self.solved(squares | {(): self.squares[()].sum() + around})

    def shares(self, seed: Seed) -> dict[str, dict[str, float]]:
        """Each component's share of the variance of a measurement, by name, with its 95 % interval.

        With two or three runs and few heads that do most it has the truth in about 91 % of simulated
        cases (benchmarks/importance_calibration.py): there it is one of 90 %.

        Args:
            seed: of the draws behind the intervals.
        """
        draws, found = self.named(self.drawn(seed)), {}
        for name, value in self.named(self.raw).items():
            low, high = np.percentile(draws[name], [2.5, 97.5])
            ends = {"value": float(value), "low": float(low), "high": float(high)}
            found[name] = ends | {"n": len(self.effects)}
        return found

    def untruncated(self) -> dict[str, float]:
        """Each component's share of one measurement, by name, where an estimate below zero stays so; they sum to 1."""
        shares = self.named(self.raw, least=-np.inf)
        return {name: float(share) for name, share in shares.items()}

    def above(self, least: float, seed: Seed) -> Support:
        """Support for the head's own share of one measurement being above ``least``; ``seed`` is of the draws."""
        drawn = self.named(self.drawn(seed))[HEAD]
        sides = ~(drawn > least), ~(drawn <= least)  # a share that is NaN speaks for neither
        holds, fails = (float((1 + side.sum()) / (1 + DRAWS)) for side in sides)
        number = text_of(self.shares(seed)[HEAD] | {"unit": "share"})
        heads, trainings = self.effects.shape[:2]
        return Support(holds, fails, f"{number}; n={heads} heads, {trainings} trainings")


def in_own_scale(effects: np.ndarray) -> np.ndarray:
    """Effects divided by their spread over heads in each run and ablation: some runs need all heads more than others.

    That changes no order, and no set of heads.

    Args:
        effects: shape (heads, runs, ablations, parts).
    """
    spread = effects.mean(axis=3, keepdims=True).std(axis=0, keepdims=True)
    return effects / np.where(spread > 0, spread, 1.0)


def shuffled(effects: np.ndarray, heads_per_layer: int, seed: Seed) -> np.ndarray:
    """Effects with heads permuted within their layers, anew in each run and ablation: a control without head effects.

    Args:
        effects: shape (heads, runs, ablations, parts).
        heads_per_layer: of the model.
        seed: of the permutations.
    """
    rng, found = np.random.default_rng(seed), effects.copy()
    heads, runs, ablations, _ = effects.shape
    layers = range(0, heads, heads_per_layer)
    for run, ablation, start in product(range(runs), range(ablations), layers):
        layer = slice(start, start + heads_per_layer)
        found[layer, run, ablation] = rng.permutation(effects[layer, run, ablation])
    return found


# Agreement of two runs, correlations over heads


def between_runs(effects: np.ndarray, seed: Seed) -> Bootstrap:
    """Rank correlation of heads' effects in two runs on the same examples, mean over pairs; heads resampled.

    Args:
        effects: shape (heads, runs), of two runs or more.
        seed: of the resampling.
    """
    pairs = combinations(effects.T, 2)
    return mean_of([rank_correlation(*pair, seed) for pair in pairs])


def held_by(effects: np.ndarray, counts: Sequence[int]) -> dict[int, float]:
    """Share of the variance between heads that lies in so many of them, those furthest from the mean.

    Args:
        effects: shape (heads, runs), of which the mean over runs is taken.
        counts: of heads.
    """
    mean = effects.mean(axis=1)
    squares = np.sort((mean - mean.mean()) ** 2)[::-1]
    return {count: float(squares[:count].sum() / squares.sum()) for count in counts}


def numbers_of_examples(most: int) -> list[int]:
    """100, 200, 400 … and half of all and all examples."""
    doubled = [FEWEST_EXAMPLES * 2**power for power in range(20)]
    return sorted({*(n for n in doubled if n < most), most // 2, most} - {0})


def by_examples(rises: np.ndarray, seed: Seed) -> dict[str, dict[int, np.ndarray]]:
    """Rank correlation of heads' effects in two runs, by the number of examples that each was measured on.

    Subsets are nested: the first so many examples of a random order. On :data:`SAME` examples both
    runs have the first ones, on :data:`DIFFERENT` examples one has the first and one the last, so
    that these are at most half of all.

    Args:
        rises: of the loss, shape (runs, heads, examples), of two runs or more.
        seed: of the orders.

    Returns:
        By :data:`SAME` or :data:`DIFFERENT` and number of examples, the mean over pairs of runs in
        each order, shape (orders,).
    """
    runs, heads, n = rises.shape
    numbers, rng = numbers_of_examples(n), np.random.default_rng(seed)
    halves = [count for count in numbers if count <= n // 2]
    first = {count: np.empty((ORDERS, runs, heads)) for count in numbers}
    last = {count: np.empty((ORDERS, runs, heads)) for count in halves}
    for at in range(ORDERS):
        sums = np.cumsum(rises[..., rng.permutation(n)], axis=2)  # over the first so many examples
        for count in numbers:
            first[count][at] = sums[..., count - 1] / count
        for count in halves:
            last[count][at] = (sums[..., -1] - sums[..., n - count - 1]) / count

    def correlated(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Mean over pairs of runs, shape (orders,)."""
        pairs = combinations(range(runs), 2)
        return np.mean([rank_correlations(one[:, a], other[:, b]) for a, b in pairs], axis=0)

    return {
        SAME: {count: correlated(first[count], first[count]) for count in numbers},
        DIFFERENT: {count: correlated(first[count], last[count]) for count in halves},
    }
