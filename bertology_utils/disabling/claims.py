"""The claims of §4.6 and §5, judged: which gains are real, what do layers cost, and which heads are needed?

Below, ``effects`` holds those of every training, by task and number of the
training; see :func:`bertology_utils.disabling.measure.effects`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from ..claims import Support, Verdict, above, all_of, any_of, judged, some_head
from ..claims.gates import unlearned
from ..claims.register import SCORE
from ..claims.words import counted, kept, least_of
from ..common import Head, head_name, to_people
from ..glue.tasks import Task
from ..statistics.estimate import Estimate, average, of_same_examples, over_trainings
from ..statistics.permutation import ManyTest
from ..statistics.resampling import Bootstrap
from ..statistics.ties import by_size, p_is
from .measure import Effects, Variants, need_others, shared_heads

EffectsByTraining = Mapping[tuple[Task, int], Effects]
Learned = Mapping[Task, bool]
TENTH = 0.001  # of a point: the smallest gain that the paper reports (STS-B)
PREDICTS = 0.3  # rank correlation from which an effect counts as predicted


def trainings_of(
    effects: EffectsByTraining, part: str, learned: Learned, names: Sequence[str] = ()
) -> dict[Task, list[Variants]]:
    """Heads or layers of every training of the tasks that were learned; of some tasks, or of all."""
    found: dict[Task, list[Variants]] = {}
    for (task, _), effect in effects.items():
        if learned[task] and (not names or task.name in names):
            found.setdefault(task, []).append(getattr(effect, part))
    return found


def _tasks(effects: EffectsByTraining) -> list[Task]:
    """Every task once, in the order of the run."""
    return list(dict.fromkeys(task for task, _ in effects))


def some_gain(variants: Variants, side: str = "better") -> Support:
    """Disabling some head (or layer) changes the score for the better, or the worse.

    It holds at a p corrected over all; it fails if none changes it by a point.
    """
    sign = 1 if side == "better" else -1
    against = []
    for gain in variants.gains:
        change = over_trainings([gain if sign > 0 else -gain])
        against.append((-change).p_above(-SCORE))
    return Support(float(getattr(variants.test, side).min()), max(against))


def judge_heads(effects: EffectsByTraining, learned: Learned) -> list[Verdict]:
    """On every task, does disabling some head help, and some other hurt; and does a chosen head help on other examples?"""
    trainings = trainings_of(effects, "heads", learned)
    missing = unlearned(_tasks(effects), learned)
    verdicts = []
    for name, side, sign in (("some-head-helps", "better", 1), ("some-head-hurts", "worse", -1)):
        support = all_of(all_of(some_gain(variants, side) for variants in several) for several in trainings.values())
        ends = [_end(task, heads, side, sign) for task, many in trainings.items() for heads in many]
        ours = "–"
        if ends:
            value, its_p, least_p, title = min(ends)
            shown = f"{title} {100 * sign * value:+.2f} points ({p_is(its_p)}), the least of {len(ends)} models"
            ours = f"{shown}; its surest head {p_is(least_p)}"
        verdicts.append(judged(name, support, ours, missing))
    honest = {task: of_same_examples([selected(variants) for variants in several]) for task, several in trainings.items()}
    return [*verdicts, judged("gain-elsewhere", all_of(map(above, honest.values())), least_of(honest, 100, 2), missing)]


def _end(task: Task, heads: Variants, side: str, sign: int) -> tuple[float, float, float, str]:
    """Of one model the largest gain (or loss), its p, the least p of any head, and the task's title."""
    at, p = int(by_size(sign * heads.values)[0]), getattr(heads.test, side)
    return float(sign * heads.values.flat[at]), float(p[at]), float(p.min()), task.title


def selected(variants: Variants) -> Estimate:
    """The gain, on other examples, of the head chosen for its gain."""
    low, high = variants.selected.interval
    return Estimate(float(variants.selected.honest.mean()), (high - low) / 2 / 1.96, variants.gains[0].n)


def mean_gain(several: Sequence[Variants]) -> Estimate:
    """The gain of a head drawn at random, over trainings."""
    return over_trainings([variants.mean for variants in several])


def judge_means(effects: EffectsByTraining, learned: Learned) -> list[Verdict]:
    """Does the impact differ from task to task, and does a random head help on MRPC and RTE?"""
    means = {task: mean_gain(several) for task, several in trainings_of(effects, "heads", learned).items()}
    apart = {}
    for (a, first), (b, second) in combinations(means.items(), 2):
        error = float(np.hypot(first.error, second.error))
        degrees = min(first.degrees, second.degrees)
        n, trainings = first.n + second.n, min(first.trainings, second.trainings)
        apart[a, b] = Estimate(first.value - second.value, error, n, trainings, degrees)
    support = any_of(any_of([above(one, TENTH), above(-one, TENTH)]) for one in apart.values())
    ours = "–"
    if apart:
        (a, b), most = max(apart.items(), key=lambda item: abs(item[1].value))
        ours = f"{a.title} and {b.title} {most.text(100, 2, sign=True)} points apart; {counted(most)}"
    named = [task for task in _tasks(effects) if task.name in ("mrpc", "rte")]
    random = {task: mean for task, mean in means.items() if task.name in ("mrpc", "rte")}
    return [
        judged("impact-differs", support, ours, "" if apart else "two learned tasks"),
        judged(
            "random-head-helps", all_of(map(above, random.values())), least_of(random, 100, 2), unlearned(named, learned)
        ),
    ]


def judge_layers(effects: EffectsByTraining, learned: Learned) -> list[Verdict]:
    """Does disabling some layer help on some task, the first on RTE; and does the worst cost little on QNLI and MNLI?"""
    tasks = _tasks(effects)
    every = trainings_of(effects, "layers", learned)
    some = any_of(all_of(some_gain(layers) for layers in several) for several in every.values())
    ends = [(min(float(layers.values.max()) for layers in several), task) for task, several in every.items()]
    value, best = max(ends, key=lambda end: end[0], default=(0.0, None))
    shown = f"{best.title} {100 * value:+.2f} points, the best layer of the training that gains less" if best else "–"
    first = {task: of_layer(several, 0) for task, several in trainings_of(effects, "layers", learned, ("rte",)).items()}
    of_worst = trainings_of(effects, "layers", learned, ("qnli", "mnli"))
    losses = {
        (task, layer): -of_layer(several, layer)
        for task, several in of_worst.items()
        for layer in range(several[0].shape[0])
    }
    (task, layer), loss = max(losses.items(), key=lambda item: item[1].value, default=((None, 0), None))
    worst = f"{task.title} layer {to_people(layer)} {(-loss).text(100, 2, sign=True)} points" if task and loss else "–"
    rte, last = ([task for task in tasks if task.name in names] for names in (("rte",), ("qnli", "mnli")))
    return [
        judged("some-layer-helps", some, shown, unlearned(tasks, learned)),
        judged("first-layer-rte", all_of(map(above, first.values())), least_of(first, 100, 2), unlearned(rte, learned)),
        judged("worst-layer-small", all_of(~above(one, SCORE) for one in losses.values()), worst, unlearned(last, learned)),
    ]


def of_layer(several: Sequence[Variants], layer: int) -> Estimate:
    """The gain of one layer, over trainings."""
    return over_trainings([layers.gains[layer] for layers in several])


def judge_several(losses: Mapping[Task, Bootstrap], learned: Learned) -> list[Verdict]:
    """Can half of the heads go? Loss of score on examples that had no say in the order of the heads, by task."""
    fair = {task: over_trainings([-loss]) for task, loss in kept(losses, learned).items()}
    support = all_of(above(change, -SCORE) for change in fair.values())
    return [judged("several-heads-harmless", support, least_of(fair, 100, 1), unlearned(list(losses), learned))]


def judge_frame_heads(effects: EffectsByTraining, heads: Sequence[Head], learned: Learned) -> list[Verdict]:
    """Are the heads that attend along frame-semantic links dispensable?

    Args:
        effects: of every training.
        heads: those heads, (layer, head) from 0, named before any effect was looked at.
        learned: by task.
    """
    trainings = trainings_of(effects, "heads", learned)
    changes = {
        f"{head_name(*head)} on {task.title}": over_trainings(
            [variants.gains[head[0] * variants.shape[1] + head[1]] for variants in several]
        )
        for task, several in trainings.items()
        for head in heads
    }
    support = all_of(above(change, -SCORE) for change in changes.values())
    ours = least_of(changes, 100, 2, of="head–task pairs", border=-SCORE)
    return [judged("frame-heads-unneeded", support, ours, unlearned(_tasks(effects), learned))]


def judge_shared_heads(effects: EffectsByTraining, learned: Learned) -> list[Verdict]:
    """Do STS-B and RTE need the same heads?"""
    of_tasks = {task.name: several for task, several in trainings_of(effects, "heads", learned, ("stsb", "rte")).items()}
    if len(of_tasks) < 2:
        return [judged("shared-pair", Support(1, 1), "–", "STS-B and RTE, both learned")]
    pairs = list(zip(of_tasks["stsb"], of_tasks["rte"], strict=False))  # as many as both have
    support, ours = _shared(pairs)
    return [judged("shared-pair", support, ours)]


def _shared(pairs: Sequence[tuple[Variants, Variants]]) -> tuple[Support, str]:
    """In every pair of models the most needed heads have more in common than by chance; and the pair that has least."""
    common = [shared_heads(first.values, second.values) for first, second in pairs]
    against = 0.0 if all(need_others(first, second) for first, second in pairs) else 1.0
    count, p = min(common)
    return Support(max(p for _, p in common), against), f"{count} of five shared, {p_is(p)}, the least of {len(pairs)} pairs"


def judge_trainings(effects: EffectsByTraining, learned: Learned) -> list[Verdict]:
    """Control of ours: do two trainings on one task need the same heads? Where each has a head that costs at a corrected p."""
    trainings = trainings_of(effects, "heads", learned)
    needing = {task: many for task, many in trainings.items() if all(one.significant("worse").any() for one in many)}
    pairs = [pair for several in needing.values() for pair in combinations(several, 2)]
    if not pairs:
        return [judged("trainings-agree", Support(1, 1), "–", "a task with two trainings that each need some head")]
    support, ours = _shared(pairs)
    return [judged("trainings-agree", support, f"{' and '.join(task.title for task in needing)}: {ours}")]


def judge_both_sentences(test: ManyTest | None, heads: Sequence[Head], learned: Learned) -> list[Verdict]:
    """Does a head that STS-B and RTE need attend to the words that are in both sentences?

    Args:
        test: of these heads, the weight of a word's twins in the other sentence minus that of the sentence's other words,
            on the examples of both tasks, shape (heads,); None if there are no such heads.
        heads: (layer, head) from 0, in the same order.
        learned: by task.
    """
    both = [task for task in learned if task.name in ("stsb", "rte") and learned[task]]
    if len(both) < 2 or test is None:
        missing = "a head that both need" if len(both) == 2 else "STS-B and RTE, both learned"
        return [judged("both-sentences", Support(1, 1), "–", missing)]
    at = int(np.nanargmax(test.means))
    ours = f"{head_name(*heads[at])} {test.means[at]:+.3f}, the most of {len(heads)} heads; n={int(test.n[at])}"
    return [judged("both-sentences", some_head(test), ours)]


def judge_prediction(correlations: Mapping[str, Mapping[Task, Bootstrap]], learned: Learned) -> list[Verdict]:
    """Control of ours: does what a head attends to predict what disabling it costs?

    Args:
        correlations: rank correlation over heads, by what predicts and by task.
        learned: by task.
    """
    means = {
        name: average([over_trainings([one]) for one in kept(by_task, learned).values()])
        for name, by_task in correlations.items()
        if kept(by_task, learned)
    }
    support = any_of(any_of([above(mean, PREDICTS), above(-mean, PREDICTS)]) for mean in means.values())
    best = max(means, key=lambda name: abs(means[name].value), default="")
    ours = f"{best}: ρ {means[best].text(1, 2, sign=True)}, the most of {len(means)}" if best else "–"
    return [judged("effect-predicted", support, ours, "" if means else "a learned task")]
