"""Which heads models need, whether they agree in that, and what claims about heads and layers are judged on (§4.6, §5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ..cache import cached
from ..common import Head, head_name, one_based, track
from ..glue import Task, plain_metric
from ..results import text_of
from ..statistics import (
    RESAMPLES,
    Bootstrap,
    Estimate,
    Seed,
    mean_over_seeds,
    weighted_scores,
    whole_and_resampled,
)
from ..statistics.estimates import of_same_examples
from ..statistics.permutation import DRAWS, MARGIN, heads_by_size, many_test, p_is
from ..verdicts import HOLDS, SCORE, TENTH, WEIGHT, Support, above, all_of, any_of, some_head
from .effects import Effects, Variants, heads_by_score, sweep_run
from .masking import answers, logits_without

if TYPE_CHECKING:
    from ..lab import Lab
    from .sweep import Sweep

HALVINGS = 5  # of the examples, where every one costs a pass
FEW = 5  # heads of a model that count as its most needed
# of losses without a head: the part of their variance over heads that is not noise of the examples
RELIABLE = 0.5
ALIKE = 0.1  # difference of rank correlations below which tasks' profiles count as one


def shared(first: Variants, second: Variants) -> Bootstrap:
    """How many of the :data:`FEW` heads that either of two models needs most both need, examples resampled (§5).

    Zero if all heads of one model tie, so that none is needed most. Of heads that tie for the last
    places each counts in part: what choosing among them by lot would give on average. Models of one
    task are resampled together.
    """
    both = (_needed(first) * _needed(second)).sum(axis=1)  # (1 + resamples,)
    return Bootstrap.of(both, first.gains[0].n, (first.gains[0].seed, second.gains[0].seed))


def _needed(one: Variants) -> np.ndarray:
    """1 for the heads needed most, of the examples as they are and of each resample, shape (1 + resamples, heads).

    A part of 1 for those that tie for the last places.
    """
    gains = np.stack(
        [np.append(gain.value, gain.draws) for gain in one.gains], axis=1
    )  # (1 + resamples, heads)
    if np.ptp(gains[0]) <= MARGIN:
        return np.zeros(gains.shape)
    last = np.sort(gains, axis=1)[:, FEW - 1 : FEW]
    ahead = gains < last - MARGIN
    tied = ~ahead & (gains <= last + MARGIN)
    return ahead + tied * (FEW - ahead.sum(axis=1, keepdims=True)) / tied.sum(axis=1, keepdims=True)


def needs_alike(
    found: Mapping[Task, Sequence[Variants]], chosen: Sequence[tuple[Task, Task]]
) -> Bootstrap:
    """Of the heads needed most, how many more two models share whose tasks are chosen than two of other tasks.

    Means over all pairs of models of two tasks (or of one, for a task paired with itself), and over
    all pairs of different tasks that are not chosen: what heads have in common whatever the task
    goes away.

    Args:
        found: of every training.
        chosen: pairs of tasks.
    """
    models = [(task, _needed(one)) for task, several in found.items() for one in several]
    alike: list[np.ndarray] = []
    others: list[np.ndarray] = []
    for (one, needed), (other, needed_too) in combinations(models, 2):
        is_chosen = (one, other) in chosen or (other, one) in chosen
        if is_chosen or one is not other:
            (alike if is_chosen else others).append((needed * needed_too).sum(axis=1))
    sizes = {task: several[0].gains[0].n for task, several in found.items()}
    seeds = tuple(several[0].gains[0].seed for several in found.values())
    return Bootstrap.of(
        np.mean(alike, axis=0) - np.mean(others, axis=0), sum(sizes.values()), seeds
    )


def profiles_apart(found: Mapping[Task, Sequence[Variants]], seed: Seed) -> Support:
    """Support for the heads' effects being more alike, in their order, within a task than between tasks.

    The statistic is the mean rank correlation of two models of one task minus that of two tasks'.
    It holds by a permutation of which model is of which task; it fails if, heads resampled, it is
    surely below :data:`ALIKE`.

    Args:
        found: of every training.
        seed: of the draws.
    """
    tasks = np.array([at for at, several in enumerate(found.values()) for _ in several])
    profiles = np.stack(
        [one.values.ravel() for several in found.values() for one in several]
    )  # (models, heads)
    if np.bincount(tasks).max(initial=0) < 2 or len(found) < 2:
        return Support(1.0, 1.0)
    first, second = np.triu_indices(len(tasks), 1)

    def statistic(rho: np.ndarray, tasks: np.ndarray) -> float:
        within = tasks[first] == tasks[second]
        return float(rho[within].mean() - rho[~within].mean())

    def correlations(heads: np.ndarray) -> np.ndarray:
        ranks = stats.rankdata(profiles[:, heads], axis=1)
        with np.errstate(invalid="ignore"):  # a model whose heads all do the same
            return np.nan_to_num(np.corrcoef(ranks))[first, second]

    rng, everything = np.random.default_rng(seed), np.arange(profiles.shape[1])
    rho = correlations(everything)
    observed = statistic(rho, tasks)
    drawn = np.array([statistic(rho, rng.permutation(tasks)) for _ in range(DRAWS)])
    resampled = [
        statistic(correlations(rng.choice(everything, len(everything))), tasks)
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(resampled, [2.5, 97.5])
    holds = (1 + (drawn >= observed - 1e-9).sum()) / (1 + DRAWS)
    against = Estimate(observed, float(np.std(resampled)), len(everything))
    number = f"{observed:+.2f} [{low:+.2f}, {high:+.2f}], {p_is(holds)}"
    number += f"; n={len(everything)} heads, {len(tasks)} models of {len(found)} tasks"
    return Support(float(holds), (-against).p_above(-ALIKE), number)


def several_off(
    task: Task,
    without: Callable[[Sequence[Head]], np.ndarray],
    sweep: Sweep,
    labels: np.ndarray,
    seed: Seed,
    share: float,
) -> Bootstrap:
    """The gain with the best heads of one half of the examples disabled together, on the other half; mean over splits.

    Of heads that tie, those that go are drawn by lot.

    Args:
        task: the task.
        without: gives a classifier's outputs, shape (examples, labels), with some heads disabled.
        sweep: of the same classifier.
        labels: gold, shape (examples,).
        seed: of resampling and splits.
        share: of the heads that are disabled; the paper disabled at most a layer, a twelfth.
    """
    count = max(1, round(share * sweep.heads.shape[0] * sweep.heads.shape[1]))
    weights, rng = (
        whole_and_resampled(len(labels), seed),
        np.random.default_rng(seed),
    )  # (1 + resamples, examples)
    whole, gains = answers(task, sweep.baseline), []
    for _ in range(HALVINGS):
        half = rng.permutation(len(labels)) < len(labels) // 2
        off = answers(task, without(heads_by_score(task, sweep, labels, half, rng)[:count]))
        rest = np.stack([whole, off])[:, ~half]
        scores = weighted_scores(
            plain_metric(task), rest, labels[~half], weights[:, ~half]
        )  # (1 + resamples, 2)
        gains.append(scores[:, 1] - scores[:, 0])
    return Bootstrap.of(np.mean(gains, axis=0), len(labels), seed)


def without_a_twelfth(lab: Lab, found: Mapping[Task, Sequence[Effects]]) -> dict[Task, Estimate]:
    """The gain with a twelfth of a model's heads off, a layer's worth, chosen on other examples; mean over trainings, by task.

    Args:
        lab: whose trainings are looked at.
        found: their effects.
    """

    def of_training(task: Task, number: int) -> Bootstrap:
        model, batches = lab.finetuned(task, seed_offset=number), lab.batches(task, "swept")
        without = partial(cached, logits_without, model, batches)
        return several_off(
            task,
            without,
            sweep_run(lab, task, number),
            lab.labels(task, "swept"),
            lab.resampling_seed(task),
            1 / 12,
        )

    return {
        task: mean_over_seeds(
            [of_training(task, number) for number in lab.trainings(task)],
            found[task][0].heads.scale,
        )
        for task in track(lab.tasks, "disabling a twelfth")
    }


def most_needed(gains: np.ndarray, count: int = FEW) -> list[Head]:
    """The heads whose disabling costs most, (layer, head) from 0.

    Args:
        gains: shape (layers, heads).
        count: how many.
    """
    return heads_by_size(-gains)[:count]


def reliable(found: Mapping[Task, Bootstrap], learned: Mapping[Task, bool]) -> list[Task]:
    """Learned tasks whose losses without a head are surely more than half signal, so that a predictor could show.

    At :data:`RELIABLE` a true correlation of 0.42 shows as 0.3, the least that counts; below it,
    "nothing predicts the losses" would say more of them than of what predicts them.

    Args:
        found: by task, of :func:`bertology_utils.disabling.effects.reliability`.
        learned: by task.
    """
    return [
        task
        for task, one in found.items()
        if learned[task] and above(one, RELIABLE).outcome == HOLDS
    ]


def needed_by_all(found: Sequence[Sequence[Effects]]) -> list[Head]:
    """Heads among the most needed of each of some tasks, in some training; (layer, head) from 0.

    Args:
        found: of every training of every task.
    """
    of_tasks = [
        {head for one in several for head in most_needed(one.heads.values)} for several in found
    ]
    return sorted(set.intersection(*of_tasks)) if of_tasks else []


def estimates_of_claims(
    found: Mapping[Task, Sequence[Effects]], learned: Mapping[Task, bool], seed: Seed
) -> dict[str, dict[Any, Any]]:
    """What claims about single heads and layers are judged on, by claim: by task (or pair of tasks) an estimate or a support.

    Args:
        found: of every training.
        learned: by task.
        seed: of permutations.
    """
    heads = {task: [one.heads for one in several] for task, several in found.items()}
    layers = {task: [one.layers for one in several] for task, several in found.items()}
    means = {
        task: mean_over_seeds([one.mean for one in several], several[0].scale)
        for task, several in heads.items()
    }
    known = {task: several for task, several in heads.items() if learned[task]}
    needing = {task: many for task, many in known.items() if len(many) > 1}
    pair = tuple(task for task in known if task.name in ("stsb", "rte"))
    return {
        "some-head-helps": {task: some_gain(several) for task, several in heads.items()},
        "some-head-hurts": {task: [one.harm for one in several] for task, several in found.items()},
        "gain-elsewhere": {
            task: of_same_examples([one.selected.estimate for one in many])
            for task, many in heads.items()
        },
        "impact-differs": {"": profiles_apart(known, seed)} if len(known) > 1 else {},
        "random-head-helps": means,
        "some-layer-helps": {task: some_gain(several) for task, several in layers.items()},
        "first-layer-rte": {task: gain_of(several, 0) for task, several in layers.items()},
        "worst-layer-small": {
            task: no_harm(several, range(several[0].shape[0])) for task, several in layers.items()
        },
        "shared-pair": {"": needs_alike(known, [pair])}
        if len(pair) == 2 and len(known) > 2
        else {},
        "trainings-agree": {"": needs_alike(known, [(task, task) for task in needing])}
        if needing and len(known) > 1
        else {},
    }


def gain_of(several: Sequence[Variants], place: int | Head) -> Estimate:
    """The gain of one layer, from 0, or head, (layer, head) from 0, mean over trainings."""
    return mean_over_seeds([one.gain(place) for one in several], several[0].scale)


def some_gain(several: Sequence[Variants]) -> Support:
    """Support for some head's (or layer's) disabling raising the score in every training.

    It holds in a training at a p corrected over all heads; it fails if none raises the score by a
    tenth of a point, the least gain that the paper reports.
    """
    parts = []
    for one in several:
        below = max((-mean_over_seeds([gain])).p_above(-TENTH) for gain in one.gains)
        parts.append(Support(float(one.p("better").min()), below))
    least = min(several, key=lambda one: one.gains[one.best].value)
    gain, p = least.gains[least.best], float(least.p("better").flat[least.best])
    support = all_of(parts)
    return Support(
        support.holds,
        support.fails,
        f"{text_of(gain.summary() | {'unit': 'gain'})} ({p_is(p)}); n={gain.n}",
    )


def some_above(differences: np.ndarray, heads: Sequence[Head], seed: Seed) -> Support:
    """Support for some of these heads' mean difference of weights being above the least that counts; the highest in words.

    Args:
        differences: shape (examples, layers, heads); NaN where an example says nothing.
        heads: (layer, head) from 0, named beforehand.
        seed: of the permutations.
    """
    test = many_test(
        np.stack([differences[:, layer, head] for layer, head in heads], axis=1), WEIGHT, seed
    )
    support, at = some_head(test), int(np.nanargmax(test.means))
    return Support(
        support.holds,
        support.fails,
        f"{head_name(*heads[at])} {test.means[at]:+.3f}; n={int(test.n[at])}",
    )


def no_harm(several: Sequence[Variants], places: Sequence[int] | Sequence[Head]) -> Support:
    """Support for each of some heads (or layers) costing less than a point, mean over trainings; the least sure in words.

    Args:
        several: of every training.
        places: layers from 0, or heads, (layer, head) from 0.
    """
    names = [f"layer {one_based(at)}" if isinstance(at, int) else head_name(*at) for at in places]
    return harmless(
        dict(zip(names, (gain_of(several, at) for at in places), strict=True)), each=True
    )


def harmless(changes: Mapping[str, Estimate], each: bool) -> Support:
    """Support for each of some changes of the score, or for one of them, being above minus a point.

    Args:
        changes: by name; in words stands the least sure one, or of which one is enough the surest.
        each: True if all have to be.
    """
    parts = {name: above(change, -SCORE) for name, change in changes.items()}
    support = (all_of if each else any_of)(parts.values())
    name = (max if each else min)(parts, key=lambda name: parts[name].holds)
    return Support(
        support.holds,
        support.fails,
        f"{name} {text_of(changes[name].summary() | {'unit': 'gain'}, sizes=True)}",
    )
