"""What disabling heads and layers does in every task and run, recorded and judged in the paper's order (§4.6, §5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ..attention import observe_cached
from ..cache import cached
from ..common import Head, head_name, one_based
from ..framenet.measure import FORWARD, borrowing, frame_sentences
from ..glue import Task, plain_metric, predictions
from ..results import GAIN, MEASURED, RANK_OF_GAINS, text_of
from ..statistics import (
    DRAWS,
    MARGIN,
    RESAMPLES,
    Bootstrap,
    Estimate,
    Seed,
    by_size,
    heads_by_size,
    many_test,
    mean_of,
    mean_over_seeds,
    of_same_examples,
    p_is,
    pooled,
    rank_correlation,
    weighted_scores,
    whole_and_resampled,
)
from ..verdicts import (
    HOLDS,
    SCORE,
    TINY,
    WEIGHT,
    Support,
    above,
    all_of,
    constant_score,
    some_head,
)
from .across import Followed, follow, record_across, record_by_ablation, some_in_each
from .effects import (
    COMPARED_ROWS,
    Effects,
    Signed,
    Variants,
    compared_labels,
    compared_sweeps,
    effects,
    gain_parts,
    gains,
    in_each,
    reliability,
    scores_of,
    sweep_run,
)
from .heads import DESCRIBED_ROWS, TwinWords, described
from .masking import logits_without
from .sweep import Sweep

if TYPE_CHECKING:
    from ..lab import Lab

HALVINGS = 5  # of the examples, where every one costs a pass
FEW = 5  # heads of a model that count as its most needed
# Of losses without a head: the part of their variance over heads that is not noise of the examples.
# At it a true correlation of 0.42 shows as 0.3, the least that counts; below it, "nothing predicts
# the losses" would say more of them than of what predicts them.
RELIABLE = 0.5
ALIKE = 0.1  # difference of rank correlations below which tasks' profiles count as one
# What may predict the loss without a head: sums of numbers that describe it.
PREDICTORS = {
    "weight on [CLS] and [SEP]": ("weight on [CLS]", "weight on [SEP]"),
    "weight on itself and its neighbours": (
        "weight on itself",
        "weight on the previous token",
        "weight on the next token",
    ),
    "distance from even weights": ("distance from even weights",),
    "length of what it adds": ("norm of its output",),
}
Found = Mapping[Task, Sequence[Effects]]  # of every run of each task
Sweeps = Mapping[Task, Sequence[Sweep]]


def run(lab: Lab) -> None:
    """§4.6 and §5: heads and layers one by one, a twelfth of the heads, which heads are needed, and what predicts it."""
    excess = frame_link_excess(lab)  # first, as a release may be missing
    sweeps = {task: [sweep_run(lab, task, at) for at in lab.trainings(task)] for task in lab.tasks}
    found, followed = {}, {}
    for task, several in sweeps.items():
        labels, seed = lab.labels(task, "swept"), lab.resampling_seed(task)
        found[task] = [effects(task, one, labels, seed) for one in several]
        followed[task] = follow(task, several, labels, seed)
    for what, (measure, options) in ROWS.items():
        record_runs(lab, what, found, measure, **options)
    judge_heads_and_layers(lab, found)
    record_across(lab, followed)
    record_by_ablation(lab)
    record_layers(lab, sweeps, found)
    record_a_twelfth(lab, sweeps, found)
    record_needed_heads(lab, found, heads_by_size(excess)[:2])
    record_predictors(lab, followed, excess)
    for task in lab.tasks:
        values, n = described(lab, task), len(lab.rows(task, "swept", DESCRIBED_ROWS))
        options = {"unit": "weight", "tolerance": 0.005, "n": n, "task": task}
        lab.record("weight on [CLS]", values["weight on [CLS]"], **options)


# §4.6


def with_intervals(parts: Sequence[Bootstrap] | Sequence[Estimate]) -> dict[str, Any]:
    """Values with the ends of their intervals, as arrays, and the examples, for the table of results."""
    low, high = np.transpose([one.interval for one in parts])
    values = np.array([one.value for one in parts])
    return {"value": values, "low": low, "high": high, "n": parts[0].n}


# What is recorded of every run: how, and what differs from a gain by task and run.
ROWS: dict[str, tuple[Callable[[Effects], Any], dict[str, Any]]] = {
    "score of the whole model": (lambda one: one.baseline, {"unit": "score"}),
    "gain without a head": (lambda one: one.heads.values, {}),
    "mean gain without a head": (lambda one: mean_of(one.heads.gains), {}),
    # Of the best of many a plain interval says nothing.
    "largest gain without a head": (lambda one: one.heads.largest, {}),
    "gain without the chosen head, on other examples": (lambda one: one.held_out, {}),
    "largest gain without a head by chance": (
        lambda one: np.percentile(one.by_chance, [50, 95]),
        {"over": ("kind",), "kinds": ("median", "95 %")},
    ),
    "gain without a layer": (lambda one: with_intervals(one.layers.gains), {}),
    "largest gain without a layer": (lambda one: one.layers.largest, {}),
}


def record_runs(
    lab: Lab, what: str, found: Found, measure: Callable[[Effects], Any], **options: Any
) -> None:
    """Record a number of every run; a gain, unless the options say otherwise."""
    for task, several in found.items():
        # An answer on the border of two classes is a part of an accuracy only.
        tolerance = MEASURED if task.is_regression else GAIN
        usual: dict[str, Any] = {"by": ("task", "training"), "unit": "gain"}
        usual["tolerance"] = tolerance
        lab.record(what, {task: [measure(one) for one in several]}, **usual | options)


def judge_heads_and_layers(lab: Lab, found: Found) -> None:
    """The claims about single heads and layers."""
    layers = range(len(next(iter(found.values()))[0].layers.gains))

    def judge(claim: str, measure: Callable[[Sequence[Effects]], Any]) -> None:
        lab.judge(claim, {task: measure(several) for task, several in found.items()}, unit="gain")

    def mean_gain(several: Sequence[Effects]) -> Estimate:
        each = [mean_of(one.heads.gains) for one in several]
        return mean_over_seeds(each, several[0].heads.scale)

    judge("gain-elsewhere", lambda several: of_same_examples([one.held_out for one in several]))
    judge("random-head-helps", mean_gain)
    judge("first-layer-rte", lambda several: gain_of([one.layers for one in several], 0))
    of_layers = {task: [one.layers for one in several] for task, several in found.items()}
    lab.judge("worst-layer-small", no_harm(of_layers, layers), unit="gain")
    known = learned_heads(lab, found)
    if max(map(len, known.values()), default=0) < 2:
        lab.judge("impact-differs", {}, unmet="two runs of a task")
    else:
        apart = {"": profiles_apart(known, lab.settings.seed)} if len(known) > 1 else {}
        lab.judge("impact-differs", apart, unit="gain")


def learned_heads(lab: Lab, found: Found) -> dict[Task, list[Variants]]:
    """The heads of every run of the tasks that were learned."""
    return {
        task: [one.heads for one in several] for task, several in found.items() if lab.learned[task]
    }


def gain_of(several: Sequence[Variants], place: int | Head) -> Estimate:
    """The gain of one layer, from 0, or head, (layer, head) from 0, mean over runs."""
    return mean_over_seeds([one.gain(place) for one in several], several[0].scale)


def no_harm(
    found: Mapping[Task, Sequence[Variants]], places: Sequence[int] | Sequence[Head]
) -> dict[Task, Support]:
    """Support, by task, for each of some heads (or layers) costing less than a point; the least sure in words.

    Args:
        found: of every run of each task.
        places: layers from 0, or heads, (layer, head) from 0.
    """
    names = [f"layer {one_based(at)}" if isinstance(at, int) else head_name(*at) for at in places]
    changes = pooled(
        {
            task: dict(zip(names, [gain_of(several, at) for at in places], strict=True))
            for task, several in found.items()
        }
    )
    supports = {}
    for task, by_name in changes.items():
        parts = {name: above(change, -SCORE) for name, change in by_name.items()}
        # Of those that surely cost more, the costliest.
        sure = {name: min(part.holds, 1 - TINY) for name, part in parts.items()}
        name = max(parts, key=lambda name: (sure[name], -by_name[name].value))
        number = text_of(by_name[name].summary() | {"unit": "gain"}, sizes=True)
        supports[task] = replace(all_of(parts.values()), number=f"{name} {number}")
    return supports


def profiles_apart(found: Mapping[Task, Sequence[Variants]], seed: Seed) -> Support:
    """Support for the heads' effects being more alike, in their order, within a task than between tasks.

    The statistic is the mean rank correlation of two models of one task minus that of two tasks'.
    It holds by a permutation of which model is of which task; it fails if, heads resampled, it is
    surely below :data:`ALIKE`.

    Args:
        found: of every run, of two tasks or more, of which one has two runs.
        seed: of the draws.
    """
    models = [(at, one) for at, several in enumerate(found.values()) for one in several]
    tasks = np.array([at for at, _ in models])
    profiles = np.stack([one.values.ravel() for _, one in models])  # (models, heads)
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
    holds = float((1 + (drawn >= observed - 1e-9).sum()) / (1 + DRAWS))
    against = Estimate(observed, float(np.std(resampled)), len(everything))
    number = f"{observed:+.2f} [{low:+.2f}, {high:+.2f}], {p_is(holds)}"
    number += f"; n={len(everything)} heads, {len(tasks)} models of {len(found)} tasks"
    return Support(holds, (-against).p_above(-ALIKE), number)


def record_layers(lab: Lab, sweeps: Sweeps, found: Found) -> None:
    """Layers on all examples, and by each ablation on the same few; the score of always the same answer, below which nothing is lost."""
    means, supports = {}, {}
    compared: dict[str, dict[Task, list[Estimate]]] = {}  # by ablation and task, of every layer
    layers = [f"layer {one_based(at)}" for at in range(lab.config.num_hidden_layers)]
    for task, several in found.items():
        labels, seed = lab.labels(task, "swept"), lab.resampling_seed(task)
        means[task] = [gain_of([one.layers for one in several], at) for at in range(len(layers))]
        each = [
            gain_parts(task, predictions(task, one.baseline), predictions(task, one.layers), labels)
            for one in sweeps[task]
        ]  # of every run, (layers, examples)
        mean = [Signed.of(np.mean(each, axis=0).T, seed)]
        supports[task] = some_in_each(mean, in_each(mean)["better"], "score", layers, mean[0].n)
        for ablation, runs in compared_sweeps(lab, task).items():
            changes = []  # of every run, by layer
            for one in runs:
                whole, without = predictions(task, one.baseline), predictions(task, one.layers)
                changes.append(gains(task, whole, without, compared_labels(lab, task), seed))
            of_layers = zip(*changes, strict=True)
            estimates = [mean_over_seeds(of, several[0].layers.scale) for of in of_layers]
            compared.setdefault(ablation, {})[task] = estimates
    record_by_layer(lab, "gain without a layer, mean over runs", means)
    for ablation, by_task in compared.items():
        record_by_layer(lab, "gain without a layer, by ablation", by_task, state=ablation)
    floors = {task: constant_score(task, lab.labels(task, "swept")) for task in lab.tasks}
    lab.record("score of always the same answer", floors, ("task",), unit="score")
    lab.judge("some-layer-helps", supports)


def record_by_layer(
    lab: Lab, what: str, found: Mapping[Task, Sequence[Estimate]], **labels: Any
) -> None:
    """Record gains without each layer, with errors pooled over tasks: two runs of one say little of how runs differ."""
    by_layer = pooled({task: dict(enumerate(several)) for task, several in found.items()})
    arrays = {task: with_intervals(list(of.values())) for task, of in by_layer.items()}
    lab.record(what, arrays, ("task",), over=("layer",), unit="gain", tolerance=GAIN, **labels)


# §5


def record_a_twelfth(lab: Lab, sweeps: Sweeps, found: Found) -> None:
    """A twelfth of the heads disabled together, a layer's worth in BERT: the most that the paper disabled."""
    gains = {}
    for task, several in sweeps.items():
        labels, seed = lab.labels(task, "swept"), lab.resampling_seed(task)
        inputs = lab.lazy_batches(task, lab.rows(task, "swept"))
        each = [
            gain_without_a_twelfth(
                task, partial(cached, logits_without, model, inputs), one, labels, seed
            )
            for model, one in zip(lab.lazy_classifiers(task), several, strict=True)
        ]
        gains[task] = mean_over_seeds(each, found[task][0].heads.scale)
    what = "gain with a twelfth of the heads off"
    lab.record(what, gains, ("task",), unit="gain", tolerance=GAIN)
    lab.judge("several-heads-harmless")


def gain_without_a_twelfth(
    task: Task,
    without: Callable[[Sequence[Head]], np.ndarray],
    sweep: Sweep,
    labels: np.ndarray,
    seed: Seed,
) -> Bootstrap:
    """The gain with the best twelfth of the heads on one half of the examples disabled, on the other half; mean over halvings.

    Of heads that tie, those that are disabled are drawn by lot.

    Args:
        task: the task.
        without: gives a classifier's outputs, shape (examples, labels), with some heads disabled.
        sweep: of the same classifier.
        labels: gold, shape (examples,).
        seed: of resampling and halvings.
    """
    heads = sweep.heads.shape[1]
    predicted = predictions(task, sweep.heads).reshape(-1, len(labels))  # (all heads, examples)
    weights, rng = whole_and_resampled(len(labels), seed), np.random.default_rng(seed)
    whole, gains = predictions(task, sweep.baseline), []
    for _ in range(HALVINGS):
        half = rng.permutation(len(labels)) < len(labels) // 2
        lots = rng.permutation(len(predicted))
        scores = scores_of(task, predicted[:, half], labels[half])
        best = lots[by_size(scores[lots])][: max(1, round(len(predicted) / 12))]
        off = predictions(task, without([divmod(int(at), heads) for at in best]))
        rest = np.stack([whole, off])[:, ~half]
        # (1 + resamples, 2)
        both = weighted_scores(plain_metric(task), rest, labels[~half], weights[:, ~half])
        gains.append(both[:, 1] - both[:, 0])
    return Bootstrap.of(np.mean(gains, axis=0), len(labels), seed)


def frame_link_excess(lab: Lab) -> np.ndarray:
    """How much more weight pre-trained heads put along frame-semantic links (§4.2) than at other sentences' places, (layers, heads)."""
    placed, batches = frame_sentences(lab)
    links = borrowing(lab, placed, FORWARD)
    return np.nanmean(observe_cached(lab.encoder(), batches, {"": links})[""].excess, axis=0)


def record_needed_heads(lab: Lab, found: Found, frame_heads: Sequence[Head]) -> None:
    """Whether the heads of frame-semantic links are needed, and whether STS-B and RTE need the same heads."""
    lab.fact(frame_heads=[head_name(*head) for head in frame_heads])

    def gains_without(one: Effects) -> dict[str, Bootstrap]:
        return {head_name(*head): one.heads.gain(head) for head in frame_heads}

    what, by = "gain without a frame head", ("task", "training", "kind")
    record_runs(lab, what, found, gains_without, by=by)
    of_heads = {task: [one.heads for one in several] for task, several in found.items()}
    lab.judge("frame-heads-unneeded", no_harm(of_heads, frame_heads), unit="gain")
    known = learned_heads(lab, found)
    pair = [task for task in known if task.name in ("stsb", "rte")]
    shared = len(pair) == 2 and len(known) > 2
    lab.judge("shared-pair", {"": needs_alike(known, pair)} if shared else {})
    both = needed_by_all([known[task] for task in pair]) if len(pair) == 2 else []
    to_twins = {}
    if both:
        twins, weights = {"": TwinWords(lab.tokenizer)}, []
        for task in pair:
            inputs = lab.lazy_batches(task, lab.rows(task, "swept", COMPARED_ROWS))
            weights.append(observe_cached(lab.lazy_classifier(task), inputs, twins)[""])
        support = some_above(np.concatenate(weights), both, lab.settings.seed)
        to_twins["STS-B and RTE"] = support
    lab.judge("both-sentences", to_twins)


def needs_alike(found: Mapping[Task, Sequence[Variants]], pair: Sequence[Task]) -> Bootstrap:
    """Of the heads needed most, how many more models of a pair of tasks share than those of other tasks.

    Means over all pairs of models, one of each task, and over those of all other pairs of tasks:
    what heads have in common whatever the task cancels.

    Args:
        found: of every run.
        pair: two tasks.
    """
    models = [(task, most_needed(one)) for task, several in found.items() for one in several]
    alike: list[np.ndarray] = []
    others: list[np.ndarray] = []
    for (one, needed), (other, needed_too) in combinations(models, 2):
        if one is not other:
            group = alike if one in pair and other in pair else others
            group.append((needed * needed_too).sum(axis=1))
    n = sum(several[0].gains[0].n for several in found.values())
    seeds = tuple(several[0].gains[0].seed for several in found.values())
    return Bootstrap.of(np.mean(alike, axis=0) - np.mean(others, axis=0), n, seeds)


def most_needed(one: Variants) -> np.ndarray:
    """1 for the :data:`FEW` heads whose disabling costs most, of the examples and of each resample, shape (1 + resamples, heads).

    Heads that tie for the last places share them, each by the same part: what choosing among them
    by lot would give on average. All 0 if all heads tie, so that none is needed most.
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


def needed_by_all(found: Sequence[Sequence[Variants]]) -> list[Head]:
    """Heads among the :data:`FEW` that cost most in some run of each of some tasks; (layer, head) from 0.

    Of heads that tie for the last places none is among them.

    Args:
        found: of every run of every task.
    """
    of_tasks = [
        {
            divmod(int(at), one.values.shape[1])
            for one in several
            for at in np.flatnonzero(most_needed(one)[0] == 1)
        }
        for several in found
    ]
    return sorted(set.intersection(*of_tasks))


def some_above(differences: np.ndarray, heads: Sequence[Head], seed: Seed) -> Support:
    """Support for some of these heads' mean difference of weights being above the least that counts; the highest in words.

    Args:
        differences: shape (examples, layers, heads); NaN where an example says nothing.
        heads: (layer, head) from 0, named beforehand.
        seed: of the permutations.
    """
    chosen = differences[:, *np.transpose(heads)]  # (examples, these heads)
    test = many_test(chosen, WEIGHT, seed)
    at = int(np.nanargmax(test.means))
    number = f"{head_name(*heads[at])} {test.means[at]:+.3f}; n={int(test.n[at])}"
    return replace(some_head(test), number=number)


def record_predictors(
    lab: Lab, followed: Mapping[Task, Mapping[str, Followed]], excess: np.ndarray
) -> None:
    """Whether what a head attends to, or adds, before fine-tuning predicts the rise of the loss without it.

    Only tasks whose effects are reliable decide: surely more than half signal.
    """
    correlations: dict[str, dict[Task, Bootstrap]] = {}
    reliabilities = {}
    unit = "correlation over heads"
    for task, measures in followed.items():
        reliabilities[task] = reliability(measures["loss"].by_example, lab.resampling_seed(task))
        description = described(lab, task)
        shown = {
            name: np.sum([description[part] for part in parts], axis=0)
            for name, parts in PREDICTORS.items()
        } | {"excess along frame-semantic links": excess}
        rises = -measures["loss"].mean.value
        for name, values in shown.items():  # each (layers, heads)
            # The same draws of heads on every task.
            rho = rank_correlation(values.ravel(), rises, lab.settings.seed)
            correlations.setdefault(name, {})[task] = rho
    options: dict[str, Any] = {"unit": unit, "tolerance": RANK_OF_GAINS}
    what = "split-half reliability of the gain without a head, mean over runs"
    lab.record(what, reliabilities, ("task",), **options, state="loss")
    what = "rank correlation with the rise of the loss without a head"
    lab.record(what, correlations, ("kind", "task"), **options)
    reliable = [
        task
        for task, one in reliabilities.items()
        if lab.learned[task] and above(one, RELIABLE).outcome == HOLDS
    ]
    means = {
        name: mean_of([rho[task] for task in reliable])
        for name, rho in correlations.items()
        if reliable
    }
    lab.judge("effect-predicted", means, unit=unit)
