"""Everything that notebook 9 measures, recorded and judged: would another measurement say the same of a head?

Effects are by loss. A score changes only with the few examples whose answer does, and a loss with
every one; shares are given by score, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cache import cached
from ..common import track
from ..disabling import heads
from ..disabling.effects import (
    compared_labels,
    compared_sweeps,
    gain_parts,
    largest_by_chance,
    sweep_run,
)
from ..disabling.masking import ABLATIONS
from ..disabling.sweep import Sweep, sweep
from ..glue import TASKS, Task, draw, predictions
from ..statistics import ROUNDING
from ..verdicts import Support
from . import ablations, components
from .components import HEAD, Components, effects_on_parts, rises

if TYPE_CHECKING:
    from ..lab import Lab

Sweeps = Mapping[Task, Sequence[Sweep]]  # by 1/L, of every run
RANDOM_ROWS = 100  # on which models of random weights are swept
AS_SHARE: dict[str, Any] = {"unit": "share", "tolerance": 0.05}
OVER_HEADS: dict[str, Any] = {"unit": "correlation over heads", "tolerance": 0.05}


def run(lab: Lab) -> None:
    """Importance by run and by number of examples, its variance components, what ablations measure, and luck."""
    uniform: Sweeps = {
        task: [sweep_run(lab, task, number) for number in lab.trainings(task)]
        for task in lab.learned_tasks
    }
    record_heads(lab, uniform)
    independent: Sweeps = {
        task: [several[number] for number in independent_runs(lab, task)]
        for task, several in uniform.items()
    }
    costs = effects_of_runs(lab, independent)
    record_runs(lab, costs)
    record_examples(lab, independent)
    record_components(lab, independent, costs)
    record_controls(lab, costs)
    record_ablations(lab)
    record_luck(lab, uniform)


def effects_of_runs(lab: Lab, sweeps: Sweeps, by: str = "loss") -> dict[Task, np.ndarray]:
    """What disabling costs, each (heads, runs, 1 ablation, parts of the examples); see :func:`effects_on_parts`."""
    return {
        task: effects_on_parts(
            task, {"uniform": several}, lab.labels(task, "swept"), lab.settings.seed, by
        )
        for task, several in sweeps.items()
    }


def independent_runs(lab: Lab, task: Task) -> list[int]:
    """Of runs that go on from one run of another task the first: what later ones share with it would count as the head's own."""
    numbers = list(lab.trainings(task))
    before = [lab.settings.before(task, number) for number in numbers]
    if any(one is None or lab.checkpoint(one[0]) for one in before):
        return numbers
    parents = [one[1] for one in before if one]
    first = [number for number in numbers if parents.index(parents[number]) == number]
    return first if len(first) > 1 else numbers


def record_heads(lab: Lab, uniform: Sweeps) -> None:
    """What each head costs in every run, and its place among all heads, 1 for the one that is needed most.

    And how many of the examples make half of what the most needed head costs, mean over runs.
    """
    shape = lab.config.num_hidden_layers, lab.config.num_attention_heads
    for task, several in uniform.items():
        labels = lab.labels(task, "swept")
        each = [rises(task, one, labels) for one in several]  # (heads, examples)
        rise = [one.mean(axis=1) for one in each]
        most = np.mean(each, axis=0)[np.mean(rise, axis=0).argmax()]
        half = int(np.searchsorted(np.sort(most)[::-1].cumsum(), most.sum() / 2) + 1)
        what = "examples that make half of what the most needed head costs"
        lab.record(what, {task: half}, ("task",), unit="count", tolerance=2, n=len(labels))
        place = [(-one).argsort(kind="stable").argsort(kind="stable") + 1 for one in rise]
        for what, values, unit in (
            ("rise of the loss without a head", rise, "loss"),
            ("place of a head by the rise of the loss", place, "count"),
        ):
            shaped = {task: [one.reshape(shape) for one in values]}
            lab.record(what, shaped, ("task", "training"), unit=unit, n=len(labels))


def record_runs(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """Whether two runs order the heads alike, on all examples, and how much of the variance is a few heads."""
    means = {task: effects.mean(axis=(2, 3)) for task, effects in costs.items()}  # (heads, runs)
    orders = {task: components.between_runs(of, lab.settings.seed) for task, of in means.items()}
    what = "rank correlation of heads' effects in two trainings"
    lab.record(what, orders, ("task",), **OVER_HEADS)
    held = {task: components.held_by(of, (1, 3, 5, 10)) for task, of in means.items()}
    what = "share of the variance between heads that the largest hold"
    lab.record(what, held, ("task", "kind"), unit="share", tolerance=0.02)
    lab.judge("head-order")


def record_examples(lab: Lab, independent: Sweeps) -> None:
    """Agreement of two runs by the number of examples, measured on the same ones and on others."""
    for task, several in track(list(independent.items()), "agreement by examples"):
        labels = lab.labels(task, "swept")
        risen = np.stack([rises(task, one, labels) for one in several])
        measured = components.by_examples(risen, lab.settings.seed)
        summaries: dict[str, dict[str, dict[str, float]]] = {}
        for state, by_count in measured.items():
            for count, rho in by_count.items():
                # Nine of ten random orders of the examples lie between low and high.
                low, high = np.percentile(rho, [5, 95])
                ends = {"value": rho.mean(), "low": low, "high": high}
                summaries.setdefault(state, {})[str(count)] = ends
        what = "rank correlation of two runs by examples"
        lab.record(what, {task: summaries}, ("task", "state", "kind"), **OVER_HEADS)
        half, whole = len(labels) // 2, len(labels)
        halves = {
            "all examples": measured[components.SAME][whole].mean(),
            "the same half": measured[components.SAME][half].mean(),
            "different halves": measured[components.DIFFERENT][half].mean(),
        }
        what = "rank correlation of two runs on halves of the examples"
        lab.record(what, {task: halves}, ("task", "kind"), **OVER_HEADS, n=half)


def record_components(lab: Lab, independent: Sweeps, costs: Mapping[Task, np.ndarray]) -> None:
    """How much of what heads differ by is the head's own: by loss, and by score."""
    seed, what = lab.settings.seed, "share of what heads differ by"
    for state, effects in ("loss", costs), ("score", effects_of_runs(lab, independent, "score")):
        shares = {task: Components(one).shares(seed) for task, one in effects.items()}
        lab.record(what, shares, ("task", "kind"), state=state, **AS_SHARE)
    own = {task: Components(effects).above(0.5, seed) for task, effects in costs.items()}
    lab.judge("head-own", own)


def record_controls(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """The head's own share where there is none to find: heads permuted within layers, and random weights."""
    seed, per_layer = lab.settings.seed, lab.config.num_attention_heads

    def own_share(effects: np.ndarray) -> dict[str, float]:
        return Components(effects).shares(seed)[HEAD]

    for task, effects in costs.items():
        shuffled = components.shuffled(effects, per_layer, seed)
        shares = {"as it is": own_share(effects), "shuffled within layers": own_share(shuffled)}
        lab.record("head's share, controls", {task: shares}, ("task", "kind"), **AS_SHARE)
    task = lab.tasks[0]
    labels = lab.labels(task, "swept", RANDOM_ROWS)
    batches = lab.lazy_batches(task, lab.rows(task, "swept", RANDOM_ROWS))
    random = [cached(sweep, lab.untrained(task, "normal", number), batches) for number in range(2)]
    effects = effects_on_parts(task, {"uniform": random}, labels, seed)
    effects = components.in_own_scale(effects)
    lab.record("head's share, random weights", own_share(effects), **AS_SHARE)


def record_ablations(lab: Lab) -> None:
    """What ablations measure: how they agree, the head's own share by each, and what 1/L does to heads that rest on a sink."""
    seed, runs = lab.settings.seed, dict[Task, list[ablations.Heads]]()
    agreeing = {}
    for task in track(lab.learned_tasks, "ablations"):
        sweeps, labels = compared_sweeps(lab, task), compared_labels(lab, task)
        if not sweeps:
            continue
        described = heads.described(lab, task)
        lab.record("weight on [CLS]", described["weight on [CLS]"], task=task, tolerance=0.01)
        runs[task] = [
            ablations.Heads.of(
                {name: rises(task, several[at], labels) for name, several in sweeps.items()},
                described,
                lab.resampling_seed(task),
            )
            for at in range(len(sweeps["uniform"]))
        ]
        record_sizes(lab, task, runs[task])
        orders = ablations.agreement_of_ways(runs[task], seed)
        agreeing[task] = ablations.below_ceiling(orders)
        what = "rank correlation of heads' effects by two ways"
        lab.record(what, {task: orders}, ("task", "kind"), **OVER_HEADS)
        record_shares_by_ablation(lab, task, sweeps, labels)
    what = "rank correlation of two ways, below their ceiling"
    lab.record(what, agreeing, ("task", "kind"), **OVER_HEADS)
    lab.judge("ways-agree", {task: found for task, found in agreeing.items() if found})
    record_sinks(lab, runs)


def record_sizes(lab: Lab, task: Task, runs: Sequence[ablations.Heads]) -> None:
    """The size of each head's effect in every run by every ablation, without the noise: roots of squares, with their sign."""
    shape, by_run = (-1, *runs[0].described["weight on [CLS]"].shape), []
    for one in runs:
        sizes = (np.sign(one.squares) * np.sqrt(np.abs(one.squares))).mean(axis=0).reshape(shape)
        by_run.append({task: dict(zip(ablations.WAYS, sizes, strict=True))})
    by = "training", "task", "state"
    lab.record("size of the effect of a head", by_run, by, unit="loss")


def record_shares_by_ablation(
    lab: Lab, task: Task, sweeps: Mapping[str, Sequence[Sweep]], labels: np.ndarray
) -> None:
    """The head's own share by 1/L, and on the same runs and examples with the ablation among the components."""
    seed = lab.settings.seed
    designs = {"uniform": ABLATIONS[:1], "all ways": ABLATIONS}
    for name, chosen in designs.items():
        several = {each: sweeps[each] for each in chosen}
        effects = components.in_own_scale(effects_on_parts(task, several, labels, seed))
        shares = {task: Components(effects).shares(seed)}
        lab.record("share by ablation", shares, ("task", "kind"), state=name, **AS_SHARE)


def record_sinks(lab: Lab, runs: Mapping[Task, list[ablations.Heads]]) -> None:
    """By how much 1/L enlarges the effects of heads that rest on a sink, and whether effects follow the change of the output."""
    seed, every = lab.settings.seed, [one for several in runs.values() for one in several]
    if not every:
        for claim in ("sinks-enlarged", "effect-follows-change"):
            lab.judge(claim, {}, unmet="a run that was swept by every ablation")
        return
    times = ablations.in_multiples(every, seed)
    what = "effects by 1/L in multiples of another way"
    lab.record(what, times, ("state", "kind"), unit="ratio over heads", tolerance=0.2)
    fewest = min(int(one.rests.sum()) for one in every)
    unmet = ""
    if fewest < ablations.FEWEST_SINKS:
        unmet = f"heads that rest on [CLS]: {fewest} in a run, of {ablations.FEWEST_SINKS} at least"
    lab.judge("sinks-enlarged", {"": times["zero"][ablations.SINKS]}, unmet=unmet)
    follows = ablations.follows_change(every, seed)
    what = "rank correlation of effects with the change of the output"
    lab.record(what, follows, ("state",), **OVER_HEADS)
    decide = {name: follows[name] for name in ("uniform", "zero")}
    lab.judge("effect-follows-change", decide)


# Would luck reach the paper's largest gains, if bert-base's heads changed as many answers as MiniLM's?


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
        max(chances.values()), max(below.values()), f"{number}; n={published.n}, {runs} runs"
    )


def chance_of(published: Published, by_luck: Sequence[np.ndarray], reached: bool = True) -> float:
    """The probability that luck gives at least the published gain, or less where not ``reached``; mean over runs."""
    least = round(published.gain * published.n) / published.n - ROUNDING
    counts = [((largest >= least) == reached).sum() for largest in by_luck]
    draws = [len(largest) for largest in by_luck]
    return float(np.mean((1 + np.array(counts)) / (1 + np.array(draws))))


def record_luck(lab: Lab, uniform: Sweeps) -> None:
    """Whether luck reaches the largest published gains, if bert-base's heads change as many answers as MiniLM's, or half as many."""
    supports = {}
    for one in PUBLISHED:
        if (task := TASKS[one.task]) in uniform:
            labels, seed = lab.labels(task, "swept"), lab.settings.seed
            by_luck: dict[str, list[np.ndarray]] = {}
            for (name, rate), of in product(RATES.items(), uniform[task]):
                outputs = of.baseline, getattr(of, f"{one.what}s")
                largest = largest_by_luck(one, task, outputs, labels, seed, rate)
                by_luck.setdefault(name, []).append(largest)
            supports[task] = beyond(one, by_luck)
            chances = {name: chance_of(one, runs) for name, runs in by_luck.items()}
            what = "probability that luck reaches the published gain"
            lab.record(what, {task: chances}, ("task", "kind"), unit="p", tolerance=0.05)
    lab.judge("gains-beyond-luck", supports)
