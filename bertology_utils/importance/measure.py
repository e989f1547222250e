"""Everything that notebook 9 measures, recorded and judged: would another measurement say the same of a head?

Effects are by loss. A score changes only with the few examples whose answer does, and a loss with
every one; shares are given by score, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cache import cached
from ..common import track
from ..disabling import heads
from ..disabling.effects import compared_labels, compared_sweeps, sweep_run
from ..disabling.masking import ABLATIONS
from ..disabling.sweep import Sweep, sweep
from ..glue import Task
from ..statistics import Bootstrap, mean_of
from . import ablations, agreement, luck
from .components import HEAD, Components, effects_on_parts, nested, rises

if TYPE_CHECKING:
    from ..lab import Lab

Sweeps = Mapping[Task, Mapping[tuple[int, str], Sweep]]  # by (number of the run, ablation)
RANDOM_ROWS = 100  # on which models of random weights are swept
LARGEST = (3, 5)  # heads that are left out
AS_SHARE: dict[str, Any] = {"unit": "share", "tolerance": 0.05}
OVER_HEADS: dict[str, Any] = {"unit": "correlation over heads", "tolerance": 0.05}


def run(lab: Lab) -> None:
    """Importance by run and by number of examples, its variance components, what ablations measure, and luck."""
    uniform: Sweeps = {
        task: {(number, "uniform"): sweep_run(lab, task, number) for number in lab.trainings(task)}
        for task in lab.learned_tasks
    }
    record_heads(lab, uniform)
    independent: Sweeps = {
        task: {key: several[key] for key in several if key[0] in independent_runs(lab, task)}
        for task, several in uniform.items()
    }
    costs = {
        task: effects_on_parts(task, several, lab.labels(task, "swept"), lab.settings.seed)
        for task, several in independent.items()
    }  # (heads, runs, ablations, parts of the examples)
    record_runs(lab, costs)
    record_examples(lab, independent, costs)
    record_components(lab, independent, costs)
    record_nested(lab, uniform)
    record_controls(lab, costs)
    record_ablations(lab)
    record_cheap_measures(lab, uniform)
    record_luck(lab, uniform)


def parent_runs(lab: Lab, task: Task) -> list[int]:
    """For each run of a task the run of another from which it goes on; each its own where it goes on from none."""
    before = [lab.settings.before(task, number) for number in lab.trainings(task)]
    if any(one is None or lab.checkpoint(one[0]) for one in before):
        return list(lab.trainings(task))
    return [one[1] for one in before if one]


def independent_runs(lab: Lab, task: Task) -> list[int]:
    """The first run from each parent run: what later ones share with it would count as the head's own."""
    parents = parent_runs(lab, task)
    first = [number for number in lab.trainings(task) if parents.index(parents[number]) == number]
    return first if len(first) > 1 else list(lab.trainings(task))


def record_heads(lab: Lab, uniform: Sweeps) -> None:
    """What each head costs in every run, and its place among all heads, 1 for the one that is needed most.

    And how many of the examples make half of what the most needed head costs, mean over runs.
    """
    for task, several in uniform.items():
        labels = lab.labels(task, "swept")
        each = [rises(task, one, labels) for one in several.values()]  # (heads, examples)
        rise = [one.mean(axis=1) for one in each]
        most = np.mean(each, axis=0)[np.mean(rise, axis=0).argmax()]
        half = int(np.searchsorted(np.sort(most)[::-1].cumsum(), most.sum() / 2) + 1)
        what = "examples that make half of what the most needed head costs"
        lab.record(what, {task: half}, ("task",), unit="count", tolerance=2, n=len(labels))
        place = [(-one).argsort(kind="stable").argsort(kind="stable") + 1 for one in rise]
        by, n = ("task", "training"), len(labels)
        for what, values, unit in (
            ("rise of the loss without a head", rise, "loss"),
            ("place of a head by the rise of the loss", place, "count"),
        ):
            shaped = [one.reshape(next(iter(several.values())).heads.shape[:2]) for one in values]
            lab.record(what, {task: shaped}, by, unit=unit, n=n)


def record_runs(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """Whether two runs order the heads alike, on all examples, and how much of that is a few heads."""
    seed = lab.settings.seed
    orders, without, held, holding = {}, {}, {}, {}
    for task, effects in costs.items():
        each = effects.mean(axis=(2, 3))  # (heads, runs)
        orders[task] = agreement.between_runs(each, seed)
        fewer = {"all heads": each} | {
            f"without the {count} largest": agreement.without_largest(each, count)
            for count in LARGEST
        }
        without[task] = {
            name: {
                "Pearson": agreement.linear(some, seed),
                "Spearman": agreement.between_runs(some, seed),
            }
            for name, some in fewer.items()
        }
        held[task] = agreement.held_by(each, (1, 3, 5, 10))
        holding[task] = {f"{share:.0%}": agreement.holding(each, share) for share in (0.5, 0.8)}
    what = "rank correlation of heads' effects in two trainings"
    lab.record(what, orders, ("task",), **OVER_HEADS)
    what = "correlation of two runs without the largest heads"
    lab.record(what, without, ("task", "kind", "state"), **OVER_HEADS)
    what = "share of the variance between heads that the largest hold"
    lab.record(what, held, ("task", "kind"), unit="share", tolerance=0.02)
    what = "heads that hold a share of the variance between heads"
    lab.record(what, holding, ("task", "kind"), unit="count", tolerance=1)
    lab.judge("head-order")


def record_examples(lab: Lab, independent: Sweeps, costs: Mapping[Task, np.ndarray]) -> None:
    """Agreement of two runs by the number of examples, measured on the same ones and on others, and what the components predict."""
    seed = lab.settings.seed
    for task, several in track(list(independent.items()), "agreement by examples"):
        labels = lab.labels(task, "swept")
        risen = np.stack([rises(task, one, labels) for one in several.values()])
        measured = agreement.by_examples(risen, seed)
        scaled = Components(agreement.in_own_scale(costs[task]))
        predicted = {
            state: {
                str(count): agreement.expected(
                    scaled, count / len(labels), seed, state == agreement.SAME
                )
                for count in agreement.numbers_of_examples(len(labels))
            }
            | {"any number": agreement.expected(scaled, np.inf, seed)}
            for state in measured
        }
        # Nine of ten random orders of the examples lie between low and high.
        summaries = {
            state: {
                str(count): dict(
                    zip(
                        ("value", "low", "high"),
                        (rho.mean(), *np.percentile(rho, [5, 95])),
                        strict=True,
                    )
                )
                for count, rho in by_count.items()
            }
            for state, by_count in measured.items()
        }
        by = ("task", "state", "kind")
        lab.record("rank correlation of two runs by examples", {task: summaries}, by, **OVER_HEADS)
        what = "rank correlation of two runs by examples, predicted"
        lab.record(what, {task: predicted}, by, **OVER_HEADS)
        half, whole = len(labels) // 2, len(labels)
        halves = {
            "all examples": measured[agreement.SAME][whole].mean(),
            "the same half": measured[agreement.SAME][half].mean(),
            "different halves": measured[agreement.DIFFERENT][half].mean(),
        }
        what = "rank correlation of two runs on halves of the examples"
        lab.record(what, {task: halves}, ("task", "kind"), **OVER_HEADS, n=half)


def record_components(lab: Lab, independent: Sweeps, costs: Mapping[Task, np.ndarray]) -> None:
    """How much of what heads differ by is the head's own: by loss, by score, with each run in its own scale, and untruncated."""
    seed = lab.settings.seed
    by_score = {
        task: effects_on_parts(task, several, lab.labels(task, "swept"), seed, "score")
        for task, several in independent.items()
    }
    scaled = {task: agreement.in_own_scale(effects) for task, effects in costs.items()}
    for what, state, several in (
        ("share of what heads differ by", {"state": "loss"}, costs),
        ("share of what heads differ by", {"state": "score"}, by_score),
        ("share in each training's own scale", {}, scaled),
    ):
        shares = {task: Components(effects).shares(seed) for task, effects in several.items()}
        lab.record(what, shares, ("task", "kind"), **state, **AS_SHARE)
    for measured, several in ("loss", costs), ("score", by_score):
        raw = {task: Components(effects).untruncated() for task, effects in several.items()}
        what = "share of what heads differ by, untruncated"
        lab.record(what, raw, ("task", "kind"), state=measured, **AS_SHARE)
    own = {task: Components(effects).above(0.5, seed) for task, effects in costs.items()}
    lab.judge("head-own", own)


def record_nested(lab: Lab, uniform: Sweeps) -> None:
    """Where runs go on from runs of another task: what those add, and how two runs from one and from two of them agree."""
    seed = lab.settings.seed
    for task, several in uniform.items():
        parents = parent_runs(lab, task)
        if len(set(parents)) in (1, len(parents)):
            continue
        labels = lab.labels(task, "swept")
        effects = agreement.in_own_scale(effects_on_parts(task, several, labels, seed))[:, :, 0]
        shares = {task: nested(effects, parents, seed)}
        what = "share of what heads differ by, runs within parent runs"
        lab.record(what, shares, ("task", "kind"), **AS_SHARE)
        means, pairs = effects.mean(axis=2), np.argwhere(np.triu(np.ones((len(parents),) * 2), 1))
        alike = {
            kind: mean_of(
                [
                    agreement.between_runs(means[:, [a, b]], seed)
                    for a, b in pairs
                    if (parents[a] == parents[b]) == shared
                ]
            )
            for kind, shared in (("from the same run", True), ("from different runs", False))
        }
        what = "rank correlation of two runs by what they go on from"
        lab.record(what, {task: alike}, ("task", "kind"), **OVER_HEADS)


def record_controls(lab: Lab, costs: Mapping[Task, np.ndarray]) -> None:
    """The head's own share where there is none to find: heads permuted within layers, and random weights."""
    seed, per_layer = lab.settings.seed, lab.config.num_attention_heads

    def own_share(effects: np.ndarray) -> dict[str, float]:
        return Components(effects).shares(seed)[HEAD]

    for task, effects in costs.items():
        shuffled = agreement.shuffled(effects, per_layer, seed)
        shares = {"as it is": own_share(effects), "shuffled within layers": own_share(shuffled)}
        lab.record("head's share, controls", {task: shares}, ("task", "kind"), **AS_SHARE)
    task = lab.tasks[0]
    labels = lab.labels(task, "swept", RANDOM_ROWS)
    batches = lab.lazy_batches(task, lab.rows(task, "swept", RANDOM_ROWS))
    random = {
        (number, "uniform"): cached(sweep, lab.untrained(task, "normal", number), batches)
        for number in range(2)
    }
    effects = agreement.in_own_scale(effects_on_parts(task, random, labels, seed))
    lab.record("head's share, random weights", own_share(effects), **AS_SHARE)


def record_ablations(lab: Lab) -> None:
    """What ablations measure: by how much 1/L enlarges heads that rest on a sink, what effects follow, and how ways agree."""
    seed, runs = lab.settings.seed, dict[Task, list[ablations.Heads]]()
    agreeing = {}
    for task in track(lab.learned_tasks, "ablations"):
        sweeps, labels = compared_sweeps(lab, task), compared_labels(lab, task)
        numbers = list(dict.fromkeys(number for number, _ in sweeps))
        if not numbers:
            continue
        runs[task] = [
            ablations.Heads.of(
                {name: rises(task, sweeps[number, name], labels) for name in ABLATIONS},
                heads.described(lab, task),
                lab.resampling_seed(task),
            )
            for number in numbers
        ]
        record_described(lab, task, numbers, runs[task])
        orders, tops = ablations.agreement_of_ways(runs[task], seed)
        agreeing[task] = ablations.below_ceiling(orders)
        by: dict[str, Any] = {"by": ("task", "kind"), "n": len(labels) // 2}
        what = "rank correlation of heads' effects by two ways"
        lab.record(what, {task: orders}, ("task", "kind"), **OVER_HEADS)
        what = "heads among the five most needed by two ways"
        lab.record(what, {task: tops}, **by, unit="count", tolerance=0.5)
        record_shares_by_ablation(lab, task, sweeps, labels)
    what = "rank correlation of two ways, below their ceiling"
    lab.record(what, agreeing, ("task", "kind"), **OVER_HEADS)
    lab.judge("ways-agree", {task: found for task, found in agreeing.items() if found})
    record_sinks(lab, runs)


def record_described(lab: Lab, task: Task, numbers: list[int], runs: list[ablations.Heads]) -> None:
    """For each head of each run the size of its effect by every ablation; and what it rests on before fine-tuning."""
    for number, one in zip(numbers, runs, strict=True):
        shape = one.described["weight on [CLS]"].shape
        labels: dict[str, Any] = {"training": number + 1}
        sizes = one.sizes.mean(axis=0).reshape(-1, *shape)  # (ablations, layers, heads)
        by_ablation = dict(zip(ablations.WAYS, sizes, strict=True))
        what = "size of the effect of a head"
        lab.record(what, {task: by_ablation}, ("task", "state"), **labels, unit="loss")
    for what in ("weight on [CLS]", "norm of the mean value"):
        lab.record(what, {task: runs[0].described[what]}, ("task",), tolerance=0.01)


def record_shares_by_ablation(
    lab: Lab, task: Task, sweeps: Mapping[tuple[int, str], Sweep], labels: np.ndarray
) -> None:
    """The head's own share by each ablation, on the same runs and examples, and with the ablation among the components."""
    seed = lab.settings.seed
    alone = {way: (name,) for way, name in zip(ablations.WAYS, ABLATIONS, strict=True)}
    designs: dict[str, tuple[str, ...]] = alone | {"all ways": ABLATIONS}
    for name, chosen in designs.items():
        several = {key: one for key, one in sweeps.items() if key[1] in chosen}
        effects = agreement.in_own_scale(effects_on_parts(task, several, labels, seed))
        shares = {task: Components(effects).shares(seed)}
        lab.record("share by ablation", shares, ("task", "kind"), state=name, **AS_SHARE)


def record_sinks(lab: Lab, runs: Mapping[Task, list[ablations.Heads]]) -> None:
    """By how much 1/L enlarges the effects of heads that rest on a sink, and what effects follow."""
    seed, every = lab.settings.seed, [one for several in runs.values() for one in several]
    if not every:
        lab.judge("sinks-enlarged", {}, unmet="a run that was swept by every ablation")
        lab.judge("effect-follows-change", {}, unmet="a run that was swept by every ablation")
        return
    counts = {task: [int(one.rests.sum()) for one in several] for task, several in runs.items()}
    what = "heads that rest on [CLS]"
    lab.record(what, counts, ("task", "training"), unit="count", tolerance=2)
    for task, several in runs.items():
        sizes = ablations.compare_sizes(several, seed)
        by = ("task", "kind", "state")
        what = "root mean square of effects"
        lab.record(what, {task: sizes}, by, unit="loss", tolerance=0.001)
    times = ablations.in_multiples(every, seed)
    what = "effects by 1/L in multiples of another way"
    lab.record(what, times, ("state", "kind"), unit="ratio over heads", tolerance=0.2)
    fewest = min(min(several) for several in counts.values())
    unmet = ""
    if fewest < ablations.FEWEST_SINKS:
        unmet = f"heads that rest on [CLS]: {fewest} in a run, of {ablations.FEWEST_SINKS} at least"
    sinks = {"": times["zero"][ablations.SINKS]}
    lab.judge("sinks-enlarged", sinks, unmet=unmet)
    follows = ablations.follows_change(every, seed)
    what = "rank correlation of effects with the change of the output"
    lab.record(what, follows, ("state",), **OVER_HEADS)
    decide = {name: follows[name] for name in ("uniform", "zero")}
    lab.judge("effect-follows-change", decide)
    record_relations(lab, runs)


def record_relations(lab: Lab, runs: Mapping[Task, list[ablations.Heads]]) -> None:
    """Rank correlations over heads of effects and what heads rest on or change: by run, and the mean over tasks."""
    by, what = ("training", "state", "kind"), "rank correlation over heads"
    of_tasks: dict[str, dict[str, list[Bootstrap]]] = {}
    for task, several in runs.items():
        related = [ablations.relations(one, lab.settings.seed) for one in several]
        lab.record(what, related, by, task=task, **OVER_HEADS)
        for state, properties in related[0].items():
            for kind in properties:
                of_runs = mean_of([one[state][kind] for one in related])
                of_tasks.setdefault(state, {}).setdefault(kind, []).append(of_runs)
    means = {
        state: {kind: mean_of(several) for kind, several in kinds.items()}
        for state, kinds in of_tasks.items()
    }
    lab.record(f"{what}, mean over tasks", means, ("state", "kind"), **OVER_HEADS)


def measured_cheaply(lab: Lab, task: Task, number: int) -> dict[str, np.ndarray]:
    """Measures of a run's heads that need no ablation, each of shape (layers, heads), all from the cache."""
    rows = lab.rows(task, "swept", heads.DESCRIBED_ROWS)
    model, batches = lab.lazy_classifier(task, seed_offset=number), lab.lazy_batches(task, rows)
    described = heads.described(lab, task)
    near = [f"weight on {token}" for token in ("itself", "the previous token", "the next token")]
    return {
        "importance from gradients": cached(heads.gradient_importance, model, batches),
        "norm of its output": described["norm of its output"],
        "weight on [CLS] and [SEP]": described["weight on [CLS]"] + described["weight on [SEP]"],
        "weight on itself and its neighbours": np.sum([described[name] for name in near], axis=0),
        "distance from even weights": described["distance from even weights"],
    }


def record_cheap_measures(lab: Lab, uniform: Sweeps) -> None:
    """How measures that need no ablation go with heads' effects by 1/L, and by zero, which gradients approximate."""
    for task, several in track(list(uniform.items()), "cheap importance"):
        zero = {key: one for key, one in compared_sweeps(lab, task).items() if key[1] == "zero"}
        for name, sweeps, labels in (
            ("cheap importance", several, lab.labels(task, "swept")),
            ("cheap importance of zero ablation", zero, compared_labels(lab, task)),
        ):
            if len(sweeps) < 2:
                continue
            by_run = [measured_cheaply(lab, task, number) for number, _ in sweeps]
            costs = [rises(task, one, labels).mean(axis=1) for one in sweeps.values()]
            correlations = {
                measure: agreement.corrected(
                    np.stack([one[measure].ravel() for one in by_run], axis=1),
                    np.stack(costs, axis=1),
                )
                for measure in by_run[0]
            }
            options: dict[str, Any] = {"unit": "correlation", "tolerance": 0.05}
            lab.record(name, {task: correlations}, ("task", "kind", "state"), **options)


def record_luck(lab: Lab, uniform: Sweeps) -> None:
    """Whether luck reaches the largest published gains, if bert-base's heads change as many answers as MiniLM's, or half as many."""
    for task, several in uniform.items():
        for what in ("head", "layer") if task.labels else ():
            counts = [
                luck.changed(task, one.baseline, getattr(one, f"{what}s"))
                for one in several.values()
            ]
            options: dict[str, Any] = {"unit": "count", "tolerance": 2}
            options["n"] = len(lab.labels(task, "swept"))
            by = ("task", "training")
            lab.record(f"answers that a {what} turns", {task: counts}, by, **options)
            medians = {task: [np.median(count) for count in counts]}
            lab.record(f"answers that the median {what} turns", medians, by, **options)
    supports = {}
    for one in luck.PUBLISHED:
        for task in (task for task in uniform if task.name == one.task):
            labels, kind = lab.labels(task, "swept"), f"{one.what}s"
            by_luck = {
                name: [
                    luck.largest_by_luck(
                        one,
                        task,
                        (swept.baseline, getattr(swept, kind)),
                        labels,
                        lab.settings.seed,
                        rate,
                    )
                    for swept in uniform[task].values()
                ]
                for name, rate in luck.RATES.items()
            }
            supports[task] = luck.beyond(one, by_luck)
            chances = {name: luck.chance_of(one, runs) for name, runs in by_luck.items()}
            what = "probability that luck reaches the published gain"
            lab.record(what, {task: chances}, ("task", "kind"), unit="p", tolerance=0.05)
    lab.judge("gains-beyond-luck", supports)
