"""Everything that notebook 7 records and judges: attention by norm against attention by weight, in every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from ..attention import Batch, ByNorm, observe
from ..cache import Lazy, cached
from ..common import track
from ..features import DESTINATIONS, Flow, marks
from ..glue import Task
from ..statistics import (
    ROUNDING,
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    bootstrap_mean,
    many_test,
    mean_over_seeds,
    over_trainings,
    pooled,
    whole_and_resampled,
)
from ..verdicts import PRETRAINED, WEIGHT, no_sink, unlearned
from .carried import KINDS, MARKS, Carried, Mixing, carried
from .cuts import CUTS, Cuts, cut_attention
from .links import RUNS as LINK_RUNS
from .links import (
    TUNED,
    WAYS,
    frame_link_weights,
    observe_links,
    record_dependencies,
    record_frame_links,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..lab import Lab

RANDOM = "random weights"
# How much a head has from a token: its weight, the norm of the weighted vector, and what that brings
# in the direction of the head's output.
COUNTED = (*WAYS, "projection")
RESTS = 0.5  # of a head's attention: a head that gives the sink more rests on it
# Names of rows in results.json.
LENGTHS = "mean length of vectors"
SHARES = "share of attention by destination, by {}"
UNIFORM = "uniform shares of one token, by {}"
MOVED = "how far answers move"
DROPPED = "the sink, nothing instead"
# Of each head, (layers, heads): means over examples.
OF_HEADS: Mapping[str, Callable[[Carried, int], np.ndarray]] = {
    "length of a head's output": lambda one, sink: one.output.mean(axis=0),
    "participation ratio of a head's outputs": lambda one, sink: np.nanmean(one.rank, axis=0),
    "length of the sink's vector in lengths of words' vectors": lambda one, sink: (
        np.nanmean(one.lengths[:, sink], axis=0) / np.nanmean(one.lengths[:, -1], axis=0)
    ),
}
# What moves answers farther than dropping the attention to the sink, if that is a no-op.
PREDICTED = ("the sink, the rest instead", "the sink, the mean instead", "words, nothing instead")

Found = Mapping[str, Any]  # what one pass over a task's inputs finds of a model, by measurement
Models = Mapping[str, Mapping[Task, Sequence[Found]]]  # of every run, by state and task
ByState = dict[str, dict[Task, Estimate]]


def encoder_of(lab: Lab) -> PreTrainedModel:
    """The lab's encoder before fine-tuning; raises ValueError, before any work, if it cannot be measured."""
    encoder = lab.encoder()
    Mixing(encoder)
    return encoder


def run(lab: Lab) -> None:
    """Special tokens, their attention cut, heads along links, and mixing, in every task and run; controls included."""
    encoder_of(lab)  # first, as it may be refused; and a release may be missing
    frames = frame_link_weights(lab)
    special = {task: [marks(one) for one in lab.annotated_inputs(task)] for task in lab.tasks}
    models = observe_all(lab, special)
    shares = record_uniform_shares(lab, models, special)
    sink = max(("[CLS]", "[SEP]"), key=shares.__getitem__)
    lab.fact(learned=lab.learned, sink=sink)
    record_lengths(lab, models)
    record_destinations(lab, models)
    record_falls(lab, models, shares)
    record_resting_heads(lab, models, sink)
    record_cuts(lab, special, sink)
    record_dependencies(lab, models)
    record_frame_links(lab, frames)
    record_mixing(lab, models)


def observe_all(lab: Lab, special: Mapping[Task, Sequence[np.ndarray]]) -> Models:
    """What is measured of every model on its task's measured rows, from the cache."""

    def measure(model: Lazy, task: Task, with_links: bool = False) -> Found:
        rows = lab.lazy_batches(task, lab.rows(task, "measured"))
        found = cached(observe_attention, model, rows, special[task], lab.settings.seed)
        own: Carried = cached(carried, model, rows, special[task])
        found |= {"carried": own, "projection": own.projection}
        if with_links:
            found |= cached(observe_links, model, rows, lab.annotated_inputs(task))
        return found

    encoder, random = lab.lazy_encoder("pretrained"), lab.lazy_encoder("normal")
    models: dict[str, dict[Task, list[Found]]] = {PRETRAINED: {}, TUNED: {}, RANDOM: {}}
    for task in track(lab.tasks, "measuring"):
        models[PRETRAINED][task] = [measure(encoder, task, with_links=True)]
        models[TUNED][task] = [
            measure(lab.lazy_classifier(task, seed_offset=number), task, number < LINK_RUNS)
            for number in lab.trainings(task)
        ]
        models[RANDOM][task] = [measure(random, task)]
    return models


def observe_attention(
    model: PreTrainedModel, batches: Sequence[Batch], special: Sequence[np.ndarray], seed: int
) -> dict[str, np.ndarray]:
    """Where every head's attention goes, by weight, by norm and by lengths exchanged; and the mixing ratio.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: inputs.
        special: per example of the data, from :func:`bertology_utils.features.marks`.
        seed: of the exchange.

    Returns:
        "weight" and "norm", each of shape (examples, layers, heads, destinations) in the order of
        :data:`bertology_utils.features.DESTINATIONS`; "exchanged", of the first of them alone;
        "mixing", see :class:`Mixing`.
    """
    measurements: dict[str, Any] = {
        "weight": Flow(special),
        "norm": ByNorm(Flow(special)),
        "exchanged": ByNorm(Flow(special), exchange=seed),
        "mixing": Mixing(model),
    }
    found = observe(model, batches, measurements)
    mixing = {"mixing": found.pop("mixing")}
    shares = {name: one.destinations for name, one in found.items()} | mixing
    shares["exchanged"] = shares["exchanged"][..., :1]
    return {name: one.astype(np.float32) for name, one in shares.items()}


def by_state(models: Models, measure: Callable[[Task, Found], Bootstrap]) -> ByState:
    """A number of the pre-trained and of the fine-tuned models, mean over runs, by state and task."""
    return {state: over_trainings(models[state], measure) for state in (PRETRAINED, TUNED)}


def cases(lab: Lab, estimates: ByState) -> dict[str, Estimate]:
    """What a claim about all models is judged on, by "QQP, fine-tuned"; fine-tuned models of learned tasks only."""
    return {
        f"{task.title}, {state}": estimate
        for state, by_task in estimates.items()
        for task, estimate in by_task.items()
        if state == PRETRAINED or lab.learned[task]
    }


def mean_of_models(runs: Mapping[Task, Sequence[Found]], measure: Callable[[Found], Any]) -> Any:
    """Mean over all tasks and runs of an array with examples on its first axis."""
    return np.mean([measure(one).mean(axis=0) for of in runs.values() for one in of], axis=0)


# Special tokens by weight and by norm


def uniform_shares(shares: np.ndarray, special: Sequence[np.ndarray]) -> np.ndarray:
    """What one token of each of :data:`KINDS` gets in multiples of 1/L, mean over heads and over the tokens of a kind.

    Args:
        shares: of all attention, shape (examples, layers, heads, destinations).
        special: per example, from :func:`bertology_utils.features.marks`.

    Returns:
        Shape (examples, layers, kinds); NaN where an example has no such token.
    """
    of_marks = shares[..., : len(MARKS)].mean(axis=2)  # (examples, layers, marks)
    of_kinds = np.concatenate([of_marks, 1 - of_marks.sum(axis=2, keepdims=True)], axis=2)
    counts = np.array([[*one.sum(axis=1), (~one.any(axis=0)).sum()] for one in special])
    lengths = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return of_kinds * np.where(counts, lengths / counts, np.nan)[:, None]


def record_uniform_shares(
    lab: Lab, models: Models, special: Mapping[Task, Sequence[np.ndarray]]
) -> dict[str, float]:
    """What one token of each kind gets in uniform shares; returns the pre-trained encoder's, by weight and kind."""
    by_weight: dict[str, float] = {}
    for way in COUNTED:
        by_layer: dict[str, dict[str, np.ndarray]] = {}
        for state in (PRETRAINED, TUNED):
            of_runs = [  # each (layers, kinds)
                np.nanmean(uniform_shares(one[way], special[task]), axis=0)
                for task, runs in models[state].items()
                for one in runs
            ]
            by_layer[state] = dict(zip(KINDS, np.nanmean(of_runs, axis=0).T, strict=True))
        lab.record(
            UNIFORM.format(way), by_layer, ("state", "kind"), over=("layer",), tolerance=0.01
        )
        means = {kind: float(one.mean()) for kind, one in by_layer[PRETRAINED].items()}
        what = f"uniform shares of one token, all layers, by {way}"
        lab.record(what, means, ("kind",), state=PRETRAINED, tolerance=0.01)
        by_weight = by_weight or means
    return by_weight


def record_lengths(lab: Lab, models: Models) -> None:
    """Mean length of the vectors of special tokens, punctuation and words, by layer."""
    of_tasks = [
        np.nanmean(one["carried"].lengths, axis=(0, 3)) for (one,) in models[PRETRAINED].values()
    ]
    by_kind = dict(zip(KINDS, np.nanmean(of_tasks, axis=0), strict=True))  # each (layers,)
    lab.record(LENGTHS, by_kind, by=("kind",), over=("layer",), state=PRETRAINED)


def record_destinations(lab: Lab, models: Models) -> None:
    """Where each layer's attention goes, and how much of each head's goes to [CLS]."""
    for way in WAYS:
        shares = {  # each (layers, destinations)
            state: mean_of_models(models[state], lambda one: one[way].mean(axis=2))
            for state in (PRETRAINED, TUNED)
        }
        what, over = SHARES.format(way), ("layer", "kind")
        lab.record(what, shares, by=("state",), over=over, kinds=DESTINATIONS, unit="share")
    for way in COUNTED:
        heads = {task: one[way][..., 0].mean(axis=0) for task, (one,) in models[PRETRAINED].items()}
        what = f"share of [CLS] of each head, by {way}"
        lab.record(what, heads, by=("task",), state=PRETRAINED)
        counts = {task: int((one > RESTS).sum()) for task, one in heads.items()}
        what = f"heads that give [CLS] more than half, by {way}"
        lab.record(what, counts, by=("task",), unit="count", tolerance=1, state=PRETRAINED)


def record_falls(lab: Lab, models: Models, shares: Mapping[str, float]) -> None:
    """What special tokens and punctuation lose from weight to norm; four controls.

    These are projections, which see that vectors cancel; lengths exchanged among an input's tokens;
    random weights; and every head by itself.

    Args:
        lab: of the notebook.
        models: from :func:`observe_all`.
        shares: uniform shares of one token of each kind, pre-trained and by weight.
    """
    rows, seed = ("state", "task"), lab.resampling_seed

    def share(task: Task, one: Found, way: str, kind: str = "[CLS]") -> Bootstrap:
        """What a kind of token gets of a model's attention, mean over layers and heads."""
        own = one[way][..., DESTINATIONS.index(kind)]  # (examples, layers, heads)
        return bootstrap_mean(own.mean(axis=(1, 2)), seed(task))

    def fall(task: Task, one: Found, kind: str = "[CLS]", end: str = "norm") -> Bootstrap:
        return share(task, one, "weight", kind) - share(task, one, end, kind)

    for way in COUNTED:
        of_cls = by_state(models, lambda task, one: share(task, one, way))
        lab.record(f"share of [CLS], by {way}", of_cls, by=rows, unit="share")
    for claim, kind, end in (
        ("norm-cls", "[CLS]", "norm"),
        ("norm-sep", "[SEP]", "norm"),
        ("norm-punctuation", "punctuation", "norm"),
        ("norm-projection", "[CLS]", "projection"),
    ):
        falls = by_state(models, lambda task, one: fall(task, one, kind, end))
        lab.record(f"fall of {kind} by {end}", falls, by=rows, unit="difference")
        unmet = no_sink(shares[kind], kind) or unlearned(lab.tasks, lab.learned)
        lab.judge(claim, cases(lab, falls), unmet=unmet)
    further = over_trainings(
        models[TUNED], lambda task, one: share(task, one, "exchanged") - share(task, one, "norm")
    )
    what = "fall of [CLS] above that with exchanged lengths"
    lab.record(what, further, by=("task",), state=TUNED, unit="difference")
    lab.judge("norm-exchanged")
    of_random = over_trainings(models[RANDOM], fall)
    lab.record("fall of [CLS] by norm, random weights", of_random, by=("task",), unit="difference")
    lab.judge("norm-random")

    def test(task: Task, one: Found) -> ManyTest:
        return many_test(one["norm"][..., 0] - one["weight"][..., 0], WEIGHT, seed(task))

    tests = {task: [test(task, one) for one in runs] for task, runs in models[TUNED].items()}
    lab.judge("norm-heads", tests)


# No-op or broadcast?


def record_resting_heads(lab: Lab, models: Models, sink: str) -> None:
    """Heads that give the sink most of their weight: do they add little, or the sink's vector to all tokens alike?

    A head that broadcasts adds the sink's vector, which is long, to every token: its output lies in
    one direction and comes from the sink. One that has nothing to do adds what little it has from
    other tokens.
    """
    at = MARKS.index(sink)

    def resting(one: Found) -> np.ndarray:
        return one["weight"][..., at].mean(axis=0) > RESTS  # (layers, heads)

    def from_sink(task: Task, one: Found) -> Bootstrap:
        parts, seed = one["carried"].by_projection[..., resting(one)], lab.resampling_seed(task)
        weights = whole_and_resampled(len(parts), seed)  # (1 + resamples, examples)
        of_sink, whole = weights @ parts[:, at], weights @ parts.sum(axis=1)  # (…, resting heads)
        return Bootstrap.of((of_sink / whole).mean(axis=1), len(parts), seed)

    with_some = {
        state: {
            task: some
            for task, runs in models[state].items()
            if (some := [one for one in runs if resting(one).any()])
        }
        for state in (PRETRAINED, TUNED)
    }
    shares = by_state(with_some, from_sink)
    what = "share of the output of heads that rest on the sink which comes from the sink"
    lab.record(what, shares, by=("state", "task"), unit="share")
    lab.judge("sink-idle", cases(lab, shares))
    for name, measure in OF_HEADS.items():
        values: dict[str, dict[str, float]] = {}
        for state, by_task in with_some.items():
            runs = [one for several in by_task.values() for one in several]
            rests = np.array([resting(one) for one in runs], dtype=bool)
            heads = np.array([measure(one["carried"], at) for one in runs])
            for kind, those in (("rest on the sink", rests), ("other heads", ~rests)):
                if those.any():
                    values.setdefault(state, {})[kind] = float(heads[those].mean())
        lab.record(name, values, by=("state", "kind"), tolerance=0.01)


# Attention cut


def answers_moved(found: Cuts) -> np.ndarray:
    """How far each cut moves each answer, from 0 to 1, shape (examples, cuts).

    The total variation distance: half of the summed changes of the labels' probabilities. Of a
    regression it is the change of the score on the unit range.
    """
    outputs = np.concatenate([found.whole[:, None], found.outputs], axis=1).astype(np.float64)
    if outputs.shape[2] > 1:
        outputs = softmax(outputs, axis=2)
    change = np.abs(outputs[:, 1:] - outputs[:, :1]).sum(axis=2)
    return change if outputs.shape[2] == 1 else change / 2


def doublings(values: np.ndarray, seed: Seed) -> Bootstrap:
    """The mean of values that are not negative, one per example, as a binary logarithm."""
    mean = bootstrap_mean(values, seed)
    logarithms = np.log2(np.maximum([mean.value, *mean.draws], ROUNDING))
    return Bootstrap.of(logarithms, mean.n, seed)


def from_doublings(one: Estimate) -> dict[str, float]:
    """Geometric mean over runs with its interval, which is above 0 as the quantity is."""
    summary = one.summary()
    powers = {name: round(2 ** summary[name], 6) for name in ("value", "low", "high")}
    return powers | {name: summary[name] for name in ("n", "trainings")}


def record_cuts(lab: Lab, special: Mapping[Task, Sequence[np.ndarray]], sink: str) -> None:
    """How far answers move when attention is cut from the sink and from words; see :func:`cut_attention`."""
    at, names = MARKS.index(sink), [f"{source}, {instead} instead" for source, instead in CUTS]
    moved: dict[Task, dict[str, Estimate]] = {}
    farther: dict[Task, dict[str, Estimate]] = {}
    gone: dict[Task, dict[str, float]] = {}
    for task in track(lab.tasks, "cutting"):
        masks = [(one[at], ~one.any(axis=0)) for one in special[task]]
        rows, seed = lab.lazy_batches(task, lab.rows(task, "measured")), lab.resampling_seed(task)
        runs: list[Cuts] = [
            cached(cut_attention, model, rows, masks, lab.settings.seed)
            for model in lab.lazy_classifiers(task)
        ]
        each = [[doublings(part, seed) for part in answers_moved(one).T] for one in runs]
        of_cuts = dict(zip(names, zip(*each, strict=True), strict=True))  # by cut, of every run
        moved[task] = {name: mean_over_seeds(of_runs) for name, of_runs in of_cuts.items()}
        farther[task] = {
            name: mean_over_seeds(
                [other - own for other, own in zip(of_cuts[name], of_cuts[DROPPED], strict=True)]
            )
            for name in PREDICTED
        }
        # Mean over runs, examples and layers, shape (cuts,).
        cut = np.mean([one.gone.mean(axis=(0, 2)) for one in runs], axis=0)
        gone[task] = {
            names[n]: cut[n] for n, (_, instead) in enumerate(CUTS) if instead == "nothing"
        }
    positive = {
        task: {name: from_doublings(one) for name, one in kinds.items()}
        for task, kinds in pooled(moved).items()
    }
    rows_by = ("task", "kind")
    lab.record(MOVED, positive, by=rows_by, state=TUNED)
    what = "doublings of how far answers move, from the sink cut with nothing instead"
    lab.record(what, farther, by=rows_by, state=TUNED, unit="doublings", tolerance=0.02)
    lab.judge("sink-noop")
    lab.record("share of attention that is cut", gone, by=rows_by, state=TUNED, unit="share")


# Mixing


def record_mixing(lab: Lab, models: Models) -> None:
    """How much of a token's new vector comes from other tokens, by what is counted; against random weights."""

    def ratio(task: Task, one: Found, at: int) -> Bootstrap:
        return bootstrap_mean(one["mixing"][..., at].mean(axis=1), lab.resampling_seed(task))

    def kept(task: Task, one: Found) -> Bootstrap:
        own = 1 - one["mixing"][..., -1]  # (examples, layers)
        return bootstrap_mean(own.mean(axis=1), lab.resampling_seed(task))

    def above_random(task: Task, one: Found) -> Bootstrap:
        return ratio(task, one, -1) - ratio(task, models[RANDOM][task][0], -1)

    rows, unmet = ("state", "task"), unlearned(lab.tasks, lab.learned)
    falls = {
        name: by_state(models, lambda task, one: ratio(task, one, at) - ratio(task, one, last))
        for name, at, last in (("weight to norm", 0, 1), ("norm to all counted", 1, -1))
    }
    by_step = {
        f"{case}, {name}": estimate
        for name, estimates in falls.items()
        for case, estimate in cases(lab, estimates).items()
    }
    lab.record("fall of the mixing ratio", falls, by=("kind", *rows), unit="difference")
    lab.judge("mixing-order", by_step, unmet=unmet)
    own = by_state(models, kept)
    lab.record("share that a token keeps of itself", own, by=rows, unit="share")
    lab.judge("mixing-kept", cases(lab, own), unmet=unmet)
    more = by_state(models, above_random)
    what = "mixing ratio above that with random weights"
    lab.record(what, more, by=rows, unit="difference")
    lab.judge("mixing-random", cases(lab, more), unmet=unmet)
