"""Everything that notebook 7 records and judges: attention by norm against attention by weight, in every model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import softmax

from ..annotation.inputs import AnnotatedInput
from ..attention import Batch, ByNorm, Measurement, begin, observe
from ..cache import Lazy, cached
from ..common import track
from ..features import DESTINATIONS, Flow, marks
from ..framenet.measure import FORWARD, frame_sentences
from ..glue import Task
from ..links.dependencies import RELATIONS, Arcs, Pointing, joined, sums_of_examples
from ..statistics import (
    ROUNDING,
    Bootstrap,
    Estimate,
    ManyTest,
    Seed,
    bootstrap_mean,
    largest,
    many_test,
    mean_over_seeds,
    over_trainings,
    pooled,
    rank_agreement,
)
from ..verdicts import MIN_EXAMPLES, PRETRAINED, WEIGHT, no_sink, unlearned
from .carried import KINDS, MARKS, carried
from .cuts import CUTS, Cuts, cut_attention
from .mixing import DEFINITIONS, Mixing

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..lab import Lab

TUNED, RANDOM = "fine-tuned", "random weights"
WAYS = ("weight", "norm")
LINK_RUNS = 2  # of each task, whose heads along links are measured
# Names of rows in results.json.
LENGTHS = "mean length of vectors"
SHARES = "share of attention by destination, by {}"
UNIFORM = "uniform shares of one token by layer, by {}"
EVEN = "one token's attention in even shares, by {}"
MOVED = "how far answers move"
FARTHER = "doublings of how far answers move, from the sink cut with nothing instead"
CUT_OF_ALL = "share of attention that is cut"
CUT_OF_SINK = "share of the sink's attention that is cut"
# What moves answers farther than dropping the attention to the sink, if that is a no-op.
PREDICTED = (
    "the sink, the rest instead",
    "the sink, the mean instead",
    "words, nothing instead",
)
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
    even = record_uniform_shares(lab, models, special)
    sink = max(("[CLS]", "[SEP]"), key=even["weight"].__getitem__)
    lab.fact(learned=lab.learned, sink=sink)
    record_lengths(lab, models)
    record_destinations(lab, models)
    record_falls(lab, models, even["weight"])
    record_cuts(lab, models, special, sink)
    record_dependencies(lab, models)
    record_frame_links(lab, frames)
    record_mixing(lab, models)


def observe_all(lab: Lab, special: Mapping[Task, Sequence[np.ndarray]]) -> Models:
    """What is measured of every model on its task's measured rows, from the cache."""

    def measure(model: Lazy, task: Task, with_links: bool = False) -> Found:
        rows = lab.lazy_batches(task, lab.rows(task, "measured"))
        found = cached(observe_attention, model, rows, special[task], lab.settings.seed)
        found["carried"] = cached(carried, model, rows, special[task])
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
        "weight", "norm" and "exchanged" of shape (examples, layers, heads, destinations), in the
        order of :data:`bertology_utils.features.DESTINATIONS`; "mixing", see :class:`Mixing`.
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
    return {name: one.astype(np.float32) for name, one in shares.items()}


def observe_links(
    model: PreTrainedModel, batches: Sequence[Batch], inputs: Sequence[AnnotatedInput]
) -> dict[str, dict[str, Arcs]]:
    """Along which dependencies every head points, by weight and by norm; see :class:`Pointing`."""
    measurements: dict[str, Any] = {
        "points by weight": Pointing(inputs),
        "points by norm": ByNorm(Pointing(inputs)),
    }
    return observe(model, batches, measurements)


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
) -> dict[str, dict[str, float]]:
    """Attention to one token of each kind in uniform shares; returns the pre-trained encoder's, by way and kind."""
    pretrained: dict[str, dict[str, float]] = {}
    for way in WAYS:
        by_layer: dict[str, dict[str, np.ndarray]] = {}
        for state in (PRETRAINED, TUNED):
            of_runs = [  # each (layers, kinds)
                np.nanmean(uniform_shares(one[way], special[task]), axis=0)
                for task, runs in models[state].items()
                for one in runs
            ]
            by_kind = np.nanmean(of_runs, axis=0).T
            by_layer[state] = dict(zip(KINDS, by_kind, strict=True))
        rows, over = ("state", "kind"), ("layer",)
        lab.record(UNIFORM.format(way), by_layer, by=rows, over=over)
        pretrained[way] = {kind: float(one.mean()) for kind, one in by_layer[PRETRAINED].items()}
        lab.record(EVEN.format(way), pretrained[way], by=("kind",), state=PRETRAINED)
    return pretrained


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
        heads = {task: one[way][..., 0].mean(axis=0) for task, (one,) in models[PRETRAINED].items()}
        what = f"share of [CLS] of each head, by {way}"
        lab.record(what, heads, by=("task",), state=PRETRAINED)
        counts = {task: int((one > 0.5).sum()) for task, one in heads.items()}
        what = f"heads that give [CLS] more than half, by {way}"
        lab.record(what, counts, by=("task",), unit="count", tolerance=1, state=PRETRAINED)


def share_of(one: Found, kind: str, way: str, seed: Seed) -> Bootstrap:
    """What a kind of token gets of a model's attention, mean over layers and heads."""
    own = one[way][..., DESTINATIONS.index(kind)]  # (examples, layers, heads)
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
        rise = one["norm"][..., 0] - one["weight"][..., 0]
        return many_test(rise, WEIGHT, seed(task))

    tests = {task: [test(task, one) for one in runs] for task, runs in models[TUNED].items()}
    rises = {task: [one.means for one in several] for task, several in tests.items()}
    what = "share of [CLS] of each head, norm above weight"
    lab.record(what, rises, by=("task", "training"), state=TUNED)
    lab.judge("norm-heads", tests)


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


def record_cuts(
    lab: Lab, models: Models, special: Mapping[Task, Sequence[np.ndarray]], sink: str
) -> None:
    """How far answers move when attention to the sink is cut, and when as much to words is; see :func:`cut_attention`."""
    at, names = MARKS.index(sink), [f"{source}, {instead} instead" for source, instead in CUTS]
    start = names.index("the sink, nothing instead")
    moved: dict[Task, dict[str, Estimate]] = {}
    farther: dict[Task, dict[str, Estimate]] = {}
    shares: dict[str, dict[Task, dict[str, float]]] = {CUT_OF_ALL: {}, CUT_OF_SINK: {}}
    for task in track(lab.tasks, "cutting"):
        masks = [(one[at], ~one.any(axis=0)) for one in special[task]]
        rows, seed = lab.lazy_batches(task, lab.rows(task, "measured")), lab.resampling_seed(task)
        runs: list[Cuts] = [
            cached(cut_attention, model, rows, masks, lab.settings.seed)
            for model in lab.lazy_classifiers(task)
        ]
        # By cut, of every run.
        of_cuts = list(
            zip(
                *([doublings(part, seed) for part in answers_moved(one).T] for one in runs),
                strict=True,
            )
        )
        moved[task] = dict(zip(names, map(mean_over_seeds, of_cuts), strict=True))
        farther[task] = {
            names[other]: mean_over_seeds(
                [one - own for one, own in zip(of_cuts[other], of_cuts[start], strict=True)]
            )
            for other in map(names.index, PREDICTED)
        }
        # By cut, mean over runs, examples and layers.
        gone, had = (
            np.mean([part.mean(axis=(0, 2)) for part in parts], axis=0)
            for parts in ([one.gone for one in runs], [one.sink for one in runs])
        )
        shares[CUT_OF_ALL][task] = dict(zip(names, gone, strict=True))
        part = names.index("part of the sink, nothing instead")
        shares[CUT_OF_SINK][task] = {names[part]: gone[part] / had[part]}
    rows_by = ("task", "kind")
    positive = {
        task: {name: from_doublings(one) for name, one in kinds.items()}
        for task, kinds in pooled(moved).items()
    }
    lab.record(MOVED, positive, by=rows_by, state=TUNED)
    lab.record(FARTHER, farther, by=rows_by, state=TUNED, unit="doublings")
    lab.judge("sink-noop")
    for what, by_task in shares.items():
        lab.record(what, by_task, by=rows_by, state=TUNED, unit="share")


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
        TUNED: list(zip(*(runs[:LINK_RUNS] for runs in learned), strict=False)),
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


class StrongestLink:
    """Measurement: the largest weight among the cells of each input's links, for every head.

    Args:
        cells: per example of the data, rows and columns of its links in the map, shape (2, cells).
    """

    def __init__(self, cells: Sequence[np.ndarray]):
        self._cells, self._now = cells, torch.empty(0)
        self._rows: dict[int, list[np.ndarray]] = {}

    def start(self, batch: Batch) -> None:
        """Lay the batch's links side by side: shape (examples, tokens, tokens)."""
        linked = torch.zeros(*batch.mask.shape, batch.mask.shape[1], dtype=torch.bool)
        for row, (index, first) in enumerate(zip(batch.index, batch.starts.tolist(), strict=True)):
            linked[row][tuple(torch.from_numpy(self._cells[index] + first))] = True
        self._now = linked.to(batch.mask.device)
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        strongest = maps.masked_fill(~self._now[:, None], -torch.inf).amax(dim=(2, 3))
        for index, weights in zip(batch.index, strongest.float().cpu().numpy(), strict=True):
            self._rows[index].append(weights)

    def compute(self) -> np.ndarray:
        """Weights from 0 to 1, shape (examples, layers, heads)."""
        return np.stack([np.stack(self._rows[index]) for index in sorted(self._rows)])


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
    cells, special = [one.pairs(FORWARD) for one in placed], lab.tokenizer.all_special_ids

    def measure(model: Lazy) -> dict[str, np.ndarray]:
        weights = cached(observe_frame_links, model, batches, cells, special)
        return {reading: one[:, None] for reading, one in weights.items()}

    weights = {PRETRAINED: [measure(lab.lazy_encoder("pretrained"))]}
    for task in [task for task in lab.tasks if lab.learned[task]][:1]:
        runs = lab.lazy_classifiers(task)[:LINK_RUNS]
        weights[f"{TUNED} on {task.title}"] = [measure(one) for one in runs]
    return weights


def observe_frame_links(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    cells: Sequence[np.ndarray],
    special: Sequence[int],
) -> dict[str, np.ndarray]:
    """The strongest weight along each sentence's frame links by four readings, each (sentences, layers, heads).

    Args:
        model: encoder or classifier in evaluation mode.
        batches: the sentences.
        cells: of their links, see :class:`StrongestLink`.
        special: ids of the special tokens.
    """
    readings: dict[str, Measurement | ByNorm] = {
        "by weight": StrongestLink(cells),
        "by norm": ByNorm(StrongestLink(cells)),
        "words only": WordsOnly(StrongestLink(cells), special),
        "words only, by norm": ByNorm(WordsOnly(StrongestLink(cells), special)),
    }
    return observe(model, batches, readings)


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
