"""Everything that notebook 7 records and judges: attention by norm against attention by weight, in every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..attention import Batch, ByNorm, Measurement, begin, observe_cached
from ..cache import cached
from ..common import track
from ..features import DESTINATIONS, Flow, in_even_shares, marks
from ..framenet.measure import FORWARD, FrameLinkAttention, frame_sentences
from ..glue import Task
from ..links.dependencies import RELATIONS, Arcs, Pointing, joined, sums_of_examples
from ..statistics import (
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    bootstrap_mean,
    largest,
    many_test,
    mean_over_seeds,
    over_trainings,
    rank_agreement,
)
from ..verdicts import MIN_EXAMPLES, PRETRAINED, WEIGHT, no_sink, unlearned
from .mixing import DEFINITIONS, Mixing
from .special_tokens import CUT_FROM, INSTEAD, MARKS, cut, mean_lengths

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..lab import Lab

TUNED, RANDOM = "fine-tuned", "random weights"
WAYS = ("weight", "norm")
# Names of rows in results.json.
LENGTHS = "mean length of vectors"
SHARES = "share of attention by destination, by {}"
MOVED = "how far answers move, {} instead"
POINTS = "share of links that a head points along, by {}"
RANKS = "rank correlation of heads along {}, norm with weight"
BEHIND = "head chosen by norm above that chosen by weight, {}"

Found = Mapping[str, Any]  # what one pass over a task's inputs finds of a model, by measurement
Models = Mapping[str, Mapping[Task, Sequence[Found]]]  # of every run, by state and task
ByState = dict[str, dict[Task, Estimate]]
# Two measurements of the same heads on the same examples, each (examples, directions, layers, heads).
Pair = tuple[np.ndarray, np.ndarray]


def encoder_of(lab: Lab) -> PreTrainedModel:
    """The lab's encoder before fine-tuning; raises ValueError, before any work, if it cannot be measured."""
    encoder = lab.encoder()
    Mixing(encoder)
    return encoder


def run(lab: Lab) -> None:
    """Special tokens, their attention cut, heads along links, and mixing, in every task and run; controls included."""
    frames = frame_link_weights(lab)  # first, as a release may be missing
    special = {task: [marks(one) for one in lab.annotated_inputs(task)] for task in lab.tasks}
    models = observe_all(lab, special)
    flows = {way: {task: one[way] for task, (one,) in models[PRETRAINED].items()} for way in WAYS}
    even = {way: in_even_shares(flows[way], special) for way in WAYS}
    for way in WAYS:
        what = f"one token's attention in even shares, by {way}"
        lab.record(what, even[way], by=("kind",), state=PRETRAINED)
    sink = max(("[CLS]", "[SEP]"), key=even["weight"].__getitem__)
    lab.fact(learned=lab.learned, sink=sink)
    record_lengths(lab, special)
    record_destinations(lab, models)
    record_falls(lab, models, even["weight"])
    record_cuts(lab, models, special, sink)
    record_dependencies(lab, models)
    record_frame_links(lab, frames)
    record_mixing(lab, models)


def observe_all(lab: Lab, special: Mapping[Task, Sequence[np.ndarray]]) -> Models:
    """One pass of every model over its task's measured rows, or what the cache has of it."""

    def observe(model: PreTrainedModel, task: Task) -> Found:
        inputs = lab.annotated_inputs(task)
        measurements = {
            "weight": Flow(special[task]),
            "norm": ByNorm(Flow(special[task])),
            "exchanged": ByNorm(Flow(special[task]), exchange=lab.settings.seed),
            "mixing": Mixing(model),
            "points by weight": Pointing(inputs),
            "points by norm": ByNorm(Pointing(inputs)),
        }
        return observe_cached(model, lab.batches(task), measurements)

    encoder, random = encoder_of(lab), lab.encoder("normal")
    models: dict[str, dict[Task, list[Found]]] = {PRETRAINED: {}, TUNED: {}, RANDOM: {}}
    for task in track(lab.tasks, "measuring"):
        models[PRETRAINED][task] = [observe(encoder, task)]
        tuned = (lab.finetuned(task, seed_offset=number) for number in lab.trainings(task))
        models[TUNED][task] = [observe(model, task) for model in tuned]
        models[RANDOM][task] = [observe(random, task)]
    return models


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


def record_lengths(lab: Lab, special: Mapping[Task, Sequence[np.ndarray]]) -> None:
    """Mean length of the vectors of special tokens, punctuation and words, by layer."""
    encoder, lengths = lab.encoder(), []
    for task in lab.tasks:
        kinds = [np.vstack([one, ~one.any(axis=0)]) for one in special[task]]
        lengths.append(mean_lengths(encoder, lab.batches(task), kinds))
    by_kind = dict(zip((*MARKS, "words"), np.nanmean(lengths, axis=0), strict=True))
    lab.record(LENGTHS, by_kind, by=("kind",), over=("layer",), state=PRETRAINED)


def record_destinations(lab: Lab, models: Models) -> None:
    """Where each layer's attention goes, and how much of each head's goes to [CLS]."""
    for way in WAYS:
        shares = {  # each (layers, destinations)
            state: mean_of_models(models[state], lambda one: one[way].destinations.mean(axis=2))
            for state in (PRETRAINED, TUNED)
        }
        what, over = SHARES.format(way), ("layer", "kind")
        lab.record(what, shares, by=("state",), over=over, kinds=DESTINATIONS, unit="share")
        heads = {
            task: one[way].destinations[..., 0].mean(axis=0)
            for task, (one,) in models[PRETRAINED].items()
        }
        what = f"share of [CLS] of each head, by {way}"
        lab.record(what, heads, by=("task",), state=PRETRAINED)
        counts = {task: int((one > 0.5).sum()) for task, one in heads.items()}
        what = f"heads that give [CLS] more than half, by {way}"
        lab.record(what, counts, by=("task",), unit="count", tolerance=1, state=PRETRAINED)


def share_of(one: Found, kind: str, way: str, seed: Seed) -> Bootstrap:
    """What a kind of token gets of a model's attention, mean over layers and heads."""
    own = one[way].destinations[..., DESTINATIONS.index(kind)]  # (examples, layers, heads)
    return bootstrap_mean(own.mean(axis=(1, 2)), seed)


def record_falls(lab: Lab, models: Models, even_shares: Mapping[str, float]) -> None:
    """What special tokens and punctuation lose from weight to norm, against three controls.

    These are lengths exchanged among an input's tokens, random weights, and every head by itself.

    Args:
        lab: of the notebook.
        models: from :func:`observe_all`.
        even_shares: by weight, of one token of each kind, pre-trained.
    """
    rows, seed = ("state", "task"), lab.resampling_seed

    def fall(task: Task, one: Found, kind: str = "[CLS]", start: str = "weight") -> Bootstrap:
        return share_of(one, kind, start, seed(task)) - share_of(one, kind, "norm", seed(task))

    for way in WAYS:
        shares = by_state(models, lambda task, one: share_of(one, "[CLS]", way, seed(task)))
        lab.record(f"share of [CLS], by {way}", shares, by=rows, unit="share")
    for kind in MARKS:
        falls = by_state(models, lambda task, one: fall(task, one, kind))
        lab.record(f"fall of {kind} by norm", falls, by=rows, unit="difference")
        unmet = no_sink(even_shares[kind], kind) or unlearned(lab.tasks, lab.learned)
        lab.judge(f"norm-{kind.strip('[]').lower()}", cases(lab, falls), unmet=unmet)
    further = over_trainings(models[TUNED], lambda task, one: fall(task, one, start="exchanged"))
    what = "fall of [CLS] above that with exchanged lengths"
    lab.record(what, further, by=("task",), state=TUNED, unit="difference")
    lab.judge("norm-exchanged")
    of_random = over_trainings(models[RANDOM], fall)
    lab.record("fall of [CLS] by norm, random weights", of_random, by=("task",), unit="difference")
    lab.judge("norm-random")

    def test(task: Task, one: Found) -> ManyTest:
        rise = one["norm"].destinations[..., 0] - one["weight"].destinations[..., 0]
        return many_test(rise, WEIGHT, seed(task))

    tests = {task: [test(task, one) for one in runs] for task, runs in models[TUNED].items()}
    rises = {task: [one.means for one in several] for task, several in tests.items()}
    what = "share of [CLS] of each head, norm above weight"
    lab.record(what, rises, by=("task", "training"), state=TUNED)
    lab.judge("norm-heads", tests)


def record_cuts(
    lab: Lab, models: Models, special: Mapping[Task, Sequence[np.ndarray]], sink: str
) -> None:
    """How far answers move when attention to the sink is cut, and when as much to words is; see :func:`cut`."""
    at = MARKS.index(sink)
    moved: dict[str, dict[Task, dict[str, Estimate]]] = {instead: {} for instead in INSTEAD}
    spared: dict[Task, dict[str, Estimate]] = {task: {} for task in lab.tasks}
    has, mass = {}, {}
    for task in track(lab.tasks, "cutting"):
        masks = [(one[at], ~one.any(axis=0)) for one in special[task]]
        seed = lab.resampling_seed(task)
        for instead in INSTEAD:
            cuts = [
                cached(cut, model, lab.batches(task), masks, lab.settings.seed, instead)
                for model in lab.lazy_classifiers(task)
            ]
            # Of every run, without the sink and without words.
            runs = [[bootstrap_mean(part, seed) for part in one.moved.T] for one in cuts]
            means = map(mean_over_seeds, zip(*runs, strict=True))
            moved[instead][task] = dict(zip(CUT_FROM, means, strict=True))
            less = [words - own for own, words in runs]
            spared[task][f"{instead} instead"] = mean_over_seeds(less)
            if instead == "nothing":
                mass[task] = dict(zip(CUT_FROM, cuts[0].mass.mean(axis=0), strict=True))
        of_sink = [one["weight"].destinations[..., at].mean() for one in models[TUNED][task]]
        has[task] = np.mean(of_sink)
    for instead, by_task in moved.items():
        lab.record(MOVED.format(instead), by_task, by=("task", "kind"), state=TUNED)
    what = "answers spared by cutting the sink"
    lab.record(what, spared, by=("task", "kind"), unit="difference", state=TUNED)
    lab.judge("sink-noop")
    what = "share of attention that the sink has"
    lab.record(what, has, by=("task",), state=TUNED, unit="share")
    lab.record("share of attention that is cut", mass, by=("task", "kind"), unit="share")


# Heads along links by weight and by norm


def rank_of_heads(first: np.ndarray, second: np.ndarray, seed: Seed) -> Bootstrap:
    """Rank correlation of heads by two measurements, see :data:`Pair`; of two directions the mean."""
    own, other = (one.reshape(*one.shape[:2], -1) for one in (first, second))
    return rank_agreement(own, other, seed)


def held_out_gain(first: np.ndarray, second: np.ndarray, seed: Seed) -> Bootstrap:
    """By the first measurement, the head chosen by the second minus the one chosen by the first.

    Heads are chosen on one half of the examples and measured on the other, and the other way round.

    Args:
        first, second: see :data:`Pair`.
        seed: of halving and resampling.

    Raises:
        ValueError: fewer than four examples.
    """
    if len(first) < 4:
        raise ValueError(
            f"{len(first)} examples are too few to choose a head on one half and measure it on the"
            " other; four are the least"
        )
    half = np.random.default_rng(seed).permutation(len(first)) < len(first) // 2
    flat = [one.reshape(len(one), -1) for one in (first, second)]
    gains = np.empty(
        len(first)
    )  # of every example, with heads chosen on the half that it is not in
    for chosen_on in (half, ~half):
        own, other = (largest(values[chosen_on].mean(axis=0))[0] for values in flat)
        gains[~chosen_on] = flat[0][~chosen_on, other] - flat[0][~chosen_on, own]
    return bootstrap_mean(gains, seed)


def record_comparison(
    lab: Lab, what: str, unit: str, compare: Callable[..., Bootstrap], pairs: Mapping[str, Any]
) -> None:
    """Record what two measurements of heads say of each other, mean over runs, by what they are of."""
    values = {
        name: mean_over_seeds([compare(*pair, lab.settings.seed) for pair in runs])
        for name, runs in pairs.items()
    }
    lab.record(what, values, by=("kind",), unit=unit)


def share_right(arcs: Arcs) -> np.ndarray:
    """Share of an example's arcs along which a head points, shape (examples with arcs, directions, layers, heads)."""
    _, groups = np.unique(arcs.example, return_inverse=True)
    sums = sums_of_examples(np.moveaxis(arcs.hits, 0, 1), groups)
    return sums / np.bincount(groups)[:, None, None, None]


def record_dependencies(lab: Lab, models: Models) -> None:
    """Heads along dependencies, examples of all tasks together: how often they point right, and their ranks."""
    learned = [runs for task, runs in models[TUNED].items() if lab.learned[task]]
    # The models of all tasks, of as many runs as every task has.
    of_runs = {
        PRETRAINED: list(zip(*models[PRETRAINED].values(), strict=True)),
        TUNED: list(zip(*learned, strict=False)),
    }
    pairs: dict[str, list[Pair]] = {}
    for relation in RELATIONS:
        for state, runs in of_runs.items():
            arcs = [
                [one[f"points by {way}"][relation] for one in run] for run in runs for way in WAYS
            ]
            if arcs and sum(len(one.offset) for one in arcs[0]) >= MIN_EXAMPLES:
                shares = [share_right(joined(parts)) for parts in arcs]
                pairs[f"{relation}, {state}"] = list(zip(shares[::2], shares[1::2], strict=True))
    for at, way in enumerate(WAYS):
        right = {
            relation: pair[at].mean(axis=0).max(axis=0)  # in the better direction
            for relation in RELATIONS
            for pair in pairs.get(f"{relation}, {PRETRAINED}", ())
        }
        what, tolerance = POINTS.format(way), 0.002  # a few links may turn to a near tie
        lab.record(what, right, ("kind",), unit="share", tolerance=tolerance, state=PRETRAINED)
    record_comparison(lab, RANKS.format("dependencies"), "correlation", rank_of_heads, pairs)
    record_comparison(lab, BEHIND.format("dependencies"), "difference", held_out_gain, pairs)
    for claim in ("relations-rank", "relations-best"):
        lab.judge(claim)


class WordsOnly:
    """A measurement that is fed with maps of words alone: special tokens get nothing, and rows sum to 1 without them.

    Args:
        measurement: any.
        special: ids of the special tokens.
    """

    def __init__(self, measurement: Measurement, special: Sequence[int]):
        self.measurement, self._special = measurement, torch.tensor(list(special))

    def start(self, batch: Batch) -> None:
        """Announce the batch to the measurement."""
        begin(self.measurement, batch)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Take in one layer; see :class:`bertology_utils.attention.Measurement`."""
        ids = batch.inputs["input_ids"]
        words = maps * ~torch.isin(ids, self._special.to(ids.device))[:, None, None]
        among_words = words / words.sum(dim=3, keepdim=True).clamp(min=1e-12)
        self.measurement.update(layer, among_words, batch)

    def compute(self) -> Any:
        """Result of the wrapped measurement."""
        return self.measurement.compute()


def frame_link_weights(lab: Lab) -> dict[str, list[dict[str, np.ndarray]]]:
    """Weights along frame-semantic links by four readings, pre-trained and in the runs of the first learned task.

    Returns:
        By state, of every run, by reading: shape (sentences, 1, layers, heads).
    """
    placed, batches = frame_sentences(lab)
    special = lab.tokenizer.all_special_ids

    def observe(model: PreTrainedModel) -> dict[str, np.ndarray]:
        links = [FrameLinkAttention(placed, FORWARD) for _ in range(4)]
        readings = {
            "by weight": links[0],
            "by norm": ByNorm(links[1]),
            "words only": WordsOnly(links[2], special),
            "words only, by norm": ByNorm(WordsOnly(links[3], special)),
        }
        scores = observe_cached(model, batches, readings)
        return {reading: one.actual[:, None] for reading, one in scores.items()}

    weights = {PRETRAINED: [observe(encoder_of(lab))]}
    for task in [task for task in lab.tasks if lab.learned[task]][:1]:
        weights[f"{TUNED} on {task.title}"] = [observe(one) for one in lab.lazy_classifiers(task)]
    return weights


def record_frame_links(lab: Lab, frames: Mapping[str, Sequence[Mapping[str, np.ndarray]]]) -> None:
    """Heads along frame-semantic links by three readings against weights, and among words by norm against weight."""
    pairs = {
        f"{reading}, {state}": [(one["by weight"], one[reading]) for one in runs]
        for state, runs in frames.items()
        for reading in ("by norm", "words only", "words only, by norm")
    }
    among_words = {
        f"words only, {state}": [(one["words only"], one["words only, by norm"]) for one in runs]
        for state, runs in frames.items()
    }
    for links, compared in (("frame links", pairs), ("frame links among words", among_words)):
        record_comparison(lab, RANKS.format(links), "correlation", rank_of_heads, compared)
    record_comparison(lab, BEHIND.format("frame links"), "difference", held_out_gain, pairs)
    for claim in ("frames-rank", "frames-best"):
        lab.judge(claim)


# Mixing


def record_mixing(lab: Lab, models: Models) -> None:
    """How much of a token's new vector comes from other tokens, by what is counted; against random weights."""
    ratios = {state: mean_of_models(models[state], lambda one: one["mixing"]) for state in models}
    over = ("layer", "kind")
    lab.record("mixing ratio", ratios, by=("state",), over=over, kinds=DEFINITIONS)

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
