"""Variance components of heads' measured effects: the head, the training, the way of disabling and the examples.

An effect is what disabling a head costs: the rise of the loss, or the fall of the score. It is
measured in every training, by every way, on each of ten parts of the examples: an array (heads,
trainings, ways, parts). Its variance over heads is the sum of a component for each set of these
factors; that of the empty set is the head's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..disabling.effects import losses, scores_of
from ..disabling.sweep import Sweep
from ..glue import Task, predictions
from ..results import text_of
from ..statistics import RESAMPLES, Bootstrap, Seed, resampled_rows
from ..verdicts import Support

# of the examples: ten cost no more than two halves and say nine times as much of how examples
# differ
PARTS = 10
DRAWS = 2000  # of an interval
FACTORS = ("training", "way", "part")
HEAD, TRAINING, WAY, BOTH, EXAMPLES, NOISE = (
    "the head",
    "head × training",
    "head × way",
    "head × training × way",
    "head × examples",
    "rest",
)
PARENT = "head × parent run"  # where runs go on from several runs of another task
Source = tuple[str, ...]  # of :data:`FACTORS`


def rises(task: Task, sweep: Sweep, labels: np.ndarray) -> np.ndarray:
    """Rise of each example's loss without each head, shape (heads, examples); ``labels`` are gold."""
    risen = losses(task, sweep.heads, labels) - losses(task, sweep.baseline, labels)
    return risen.reshape(-1, len(labels))  # of (layers, heads, examples)


def effects_on_parts(
    task: Task,
    sweeps: Mapping[tuple[int, str], Sweep],
    labels: np.ndarray,
    seed: Seed,
    by: str = "loss",
) -> np.ndarray:
    """What disabling each head costs, shape (heads, trainings, ways, parts of the examples).

    Args:
        task: the task.
        sweeps: by (number of the training, way of disabling); every training by every way.
        labels: gold, shape (examples,).
        seed: of the division into parts, the same in all trainings and ways.
        by: "loss", or "score" for accuracy or Pearson's correlation.

    Raises:
        ValueError: a training lacks a way, sweeps differ in their heads or examples, or there are
            fewer examples than parts.
    """
    trainings, ways = (
        list(dict.fromkeys(at for at, _ in sweeps)),
        list(dict.fromkeys(way for _, way in sweeps)),
    )
    if missing := [(at, way) for at in trainings for way in ways if (at, way) not in sweeps]:
        at, way = missing[0]
        raise ValueError(
            f"{task.title}: training {at + 1} was not swept by {way!r}; every training needs every way"
        )
    wanted = (*next(iter(sweeps.values())).heads.shape[:2], len(labels))
    for (at, way), one in sweeps.items():
        if (shape := one.heads.shape[:3]) != wanted:
            raise ValueError(
                f"{task.title}: the sweep of training {at + 1} by {way!r} is of {shape}, not of {wanted}"
            )
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
        said = np.vstack(
            [
                predictions(task, one.baseline)[None],
                predictions(task, one.heads).reshape(-1, len(labels)),
            ]
        )
        scores = np.stack(
            [scores_of(task, said[:, rows], labels[rows]) for rows in of_parts], axis=1
        )
        return scores[:1] - scores[1:]

    return np.stack(
        [np.stack([costs(sweeps[at, way]) for way in ways], axis=1) for at in trainings], axis=1
    )


@dataclass(frozen=True)
class Components:
    """Variance components of heads' effects, by the method of moments.

    Attributes:
        effects: shape (heads, trainings, ways, parts).
    """

    effects: np.ndarray

    def __post_init__(self) -> None:
        if (
            self.effects.ndim != 4
            or self.effects.shape[0] < 3
            or not np.isfinite(self.effects).all()
        ):
            raise ValueError(
                f"effects of shape {self.effects.shape}: (heads, trainings, ways, parts) without gaps are wanted"
            )
        if self.effects.shape[3] < 2:
            raise ValueError(
                "one part of the examples: what the examples do cannot be told; divide them into two or more"
            )

    @cached_property
    def levels(self) -> dict[str, int]:
        """How many there are of each factor that has two or more."""
        return {
            name: count
            for name, count in zip(FACTORS, self.effects.shape[1:], strict=True)
            if count > 1
        }

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
        return {
            source: sum(
                (-1) ** len({*around} - {*source}) * np.asarray(squares[around])
                for around in self._around(source)
            )
            / np.prod([count for factor, count in self.levels.items() if factor not in source])
            for source in self.sources
        }

    def _around(self, source: Source) -> list[Source]:
        return [one for one in self.sources if {*source} <= {*one}]

    @cached_property
    def raw(self) -> dict[Source, float]:
        """Components of one training, one way and one part of the examples; below zero where the estimate is."""
        return {
            source: float(one)
            for source, one in self.solved(
                {at: sq.sum() for at, sq in self.squares.items()}
            ).items()
        }

    def named(
        self,
        of: Mapping[Source, np.ndarray | float],
        trainings: int = 1,
        ways: int = 1,
        share: float = 1.0,
        least: float = 0.0,
    ) -> dict[str, np.ndarray]:
        """What each component adds to the variance of a mean over trainings, ways and examples; below zero becomes zero.

        Args:
            of: components by source.
            trainings, ways: that are averaged.
            share: of the examples at hand; above 1 for more.
            least: what is below it becomes it.
        """
        divide = {"training": trainings, "way": ways, "part": share * self.levels["part"]}
        found: dict[str, np.ndarray] = {}
        for source, value in of.items():
            name = {
                (): HEAD,
                ("training",): TRAINING,
                ("way",): WAY,
                ("training", "way"): BOTH,
                ("part",): EXAMPLES,
            }
            part = np.maximum(value, least) / np.prod([divide[factor] for factor in source])
            found[name.get(source, NOISE)] = found.get(name.get(source, NOISE), 0.0) + part
        return found

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
        added = sum(
            (-1) ** (len(at) + 1) * self.squares[at] for at in self.sources[1:]
        )  # to each head's mean
        added = np.maximum(added, 0.0)
        few = min(
            (count - 1 for factor, count in self.levels.items() if factor != "part"),
            default=self.levels["part"] - 1,
        )
        spread = (4 * self.squares[()] * added - 2 * added**2 / (1 + 2 / few)).sum()
        telling = max(
            2.5, (few + 2) * added.sum() ** 2 / max((added**2).sum(), 1e-300) - 2
        )  # its degrees of freedom
        squares[()] = self.squares[()].sum() + np.sqrt(max(spread, 0.0)) * rng.standard_t(
            telling, DRAWS
        )
        return self.solved(squares)

    def shares(
        self, seed: Seed, trainings: int = 1, ways: int = 1, share: float = 1.0
    ) -> dict[str, dict[str, float]]:
        """Each component's share of the variance of a measurement, by name, with its 95 % interval.

        With two or three runs and few heads that do most it has the truth in about 91 % of simulated
        cases (benchmarks/importance_calibration.py): there it is one of 90 %.

        Args:
            seed: of the draws behind the intervals.
            trainings, ways, share: see :meth:`named`.
        """
        values = _as_shares(self.named(self.raw, trainings, ways, share))
        draws = _as_shares(self.named(self.drawn(seed), trainings, ways, share))
        ends = {name: np.percentile(of, [2.5, 97.5]) for name, of in draws.items()}
        return {
            name: {
                "value": float(value),
                "low": float(ends[name][0]),
                "high": float(ends[name][1]),
                "n": len(self.effects),
            }
            for name, value in values.items()
        }

    def untruncated(self) -> dict[str, float]:
        """Each component's share of one measurement, by name, where an estimate below zero stays so; they sum to 1."""
        return {
            name: float(part)
            for name, part in _as_shares(self.named(self.raw, least=-np.inf)).items()
        }

    def above(self, least: float, seed: Seed) -> Support:
        """Support for the head's own share of one measurement being above ``least``; ``seed`` is of the draws."""
        drawn = _as_shares(self.named(self.drawn(seed)))[HEAD]
        number = text_of(self.shares(seed)[HEAD] | {"unit": "share"})
        holds, fails = (
            float((1 + side.sum()) / (1 + DRAWS)) for side in (drawn <= least, drawn > least)
        )
        return Support(
            holds,
            fails,
            f"{number}; n={len(self.effects)} heads, {self.effects.shape[1]} trainings",
        )


def _as_shares(parts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    total = sum(parts.values())
    with np.errstate(invalid="ignore"):
        return {name: part / total for name, part in parts.items()}


def nested(effects: np.ndarray, parents: Sequence[int], seed: Seed) -> dict[str, Bootstrap]:
    """Shares of the variance between heads where runs go on from runs of another task; heads resampled.

    Two runs that go on from one run are alike in what that one did to a head, so their covariance
    over heads has the component of :data:`PARENT` as well as the head's own; runs from different
    ones share the head's own alone. Covariances are of different parts of the examples where what
    these add is not to count. Estimates are unbiased, and one below zero stays so.

    Args:
        effects: shape (heads, runs, parts).
        parents: the run from which each run goes on.
        seed: of the resampling. Its intervals know of heads, not of how few the runs are.

    Raises:
        ValueError: no two runs share a parent, or all do.
    """
    heads, runs, parts = effects.shape
    alike = np.equal.outer(np.asarray(parents), np.asarray(parents))
    same_run, same_part = np.eye(runs, dtype=bool), np.eye(parts, dtype=bool)
    if alike.all() or (alike == same_run).all():
        raise ValueError(
            f"runs that go on from {list(parents)}: what these add is told apart only where some"
            " runs share one and others do not"
        )
    # What two measurements have in common: (runs, parts, runs, parts).
    kinds = {
        name: of_runs[:, None, :, None] & of_parts[None, :, None]
        for name, of_runs, of_parts in (
            ("nothing", ~alike, ~same_part),
            ("parent", alike & ~same_run, ~same_part),
            ("run", same_run, ~same_part),
            ("part", ~alike, same_part),
            ("all", same_run, same_part),
        )
    }

    def shares(chosen: np.ndarray) -> list[float]:
        own = effects[chosen] - effects[chosen].mean(axis=0)
        flat = own.reshape(heads, runs * parts)
        products = (flat.T @ flat / (heads - 1)).reshape(runs, parts, runs, parts)
        common = {name: float(products[where].mean()) for name, where in kinds.items()}
        of_head, of_examples = common["nothing"], (common["part"] - common["nothing"]) / parts
        of_parent, of_run = common["parent"] - of_head, common["run"] - common["parent"]
        rest = (common["all"] - common["run"]) / parts - of_examples
        total = of_head + of_parent + of_run + of_examples + rest
        return [part / total for part in (of_head, of_parent, of_run, of_examples, rest)]

    drawn = [np.arange(heads), *resampled_rows(heads, seed, RESAMPLES)]
    names = HEAD, PARENT, TRAINING, EXAMPLES, NOISE
    values = np.array([shares(chosen) for chosen in drawn])  # (1 + resamples, components)
    return {name: Bootstrap.of(of, heads, seed) for name, of in zip(names, values.T, strict=True)}
