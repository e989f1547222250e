"""Can one head stand in for another? Pairs of heads of a layer are removed together (§5).

Without both, the loss rises by what it rises without each, and by what is left: the interaction. If
one head stands in for the other, its own removal costs little as long as the other is there, and
the interaction is positive. To remove a head is to make its output zero.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..attention import Batch, observe_cached
from ..cache import cached
from ..common import Head, one_based
from ..disabling.effects import gains, losses, scores_of
from ..disabling.masking import logits_without, replacement
from ..disabling.measure import harmless
from ..disabling.sweep import without_sets
from ..glue import Task, predictions, sample
from ..patterns.classifiers import load_network
from ..patterns.labels import PATTERNS
from ..patterns.measure import Patterns, usual_patterns
from ..results import text_of
from ..statistics import ROUNDING, Bootstrap, Estimate, Seed, bootstrap_mean, mean_over_seeds
from ..verdicts import Support, above
from .spec import layers_of, runs_of

if TYPE_CHECKING:
    from datasets import Dataset

    from ..lab import Lab

PAIR_ROWS = 160
ALIKE = 1 / 6  # of a layer's pairs: those whose maps are nearest
DRAWS = 1000
PairedRun = tuple["Pairs", np.ndarray, np.ndarray]  # see pairs_of_run
HETEROGENEOUS = PATTERNS.index("heterogeneous")  # no pattern that two heads could share


def record(lab: Lab, tasks: Sequence[Task]) -> None:
    """All about pairs of heads, and about the heads of one layer."""
    runs = {
        task: [pairs_of_run(lab, task, number) for number in runs_of(lab, task)] for task in tasks
    }
    record_interactions(lab, runs)
    record_layers_of_heads(lab, runs)


def pairs_of_run(lab: Lab, task: Task, number: int) -> PairedRun:
    """What removing sets of heads gives in a run, with the heads' patterns and distances.

    Returns:
        The pairs, usual patterns of shape (layers, heads), and distances of shape (examples, layers,
        heads, layers, heads).
    """
    rows = paired_rows(lab, task)
    measurements = {
        "patterns": Patterns(load_network().to(lab.device), lab.tokenizer.sep_token_id),
        "distances": HeadDistances(lab.config.num_hidden_layers),
    }
    tuned = lab.finetuned(task, seed_offset=number)
    seen = observe_cached(tuned, lab.make_batches(task, rows), measurements)
    outputs, labels = cached(*sets_call(lab, task, number)), np.asarray(rows["label"])
    pairs = Pairs(task, outputs, labels, lab.config.num_attention_heads)
    return pairs, usual_patterns(seen["patterns"].one_hot), seen["distances"]


def record_interactions(lab: Lab, runs: Mapping[Task, Sequence[PairedRun]]) -> None:
    """How much more pairs of one pattern, and of like maps, interact than matched ones.

    A planted copy is the control. Pairs are matched for the layer and for what each
    head costs alone. NaN where there is no such pair.
    """
    options: dict[str, Any] = {"by": ("task", "kind"), "unit": "interaction", "tolerance": 0.0005}
    above, copies = {}, {}
    for task, several in runs.items():
        seed, parts = lab.resampling_seed(task), []
        for pairs, patterns, distances in several:
            near = nearest(distances.mean(axis=0), pairs.pairs)
            both = alike_and_other(patterns, pairs.pairs), (near, ~near)
            parts.append([pairs.beyond_matched(*chosen, seed) for chosen in both])
        means = map(mean_over_seeds, zip(*parts, strict=True))
        above[task] = dict(zip(("one pattern", "maps most alike"), means, strict=True))
        rows = lab.batches(task, "swept"), lab.labels(task, "swept")
        copies[task] = planted_copies(several[0][0], lab.finetuned(task), *rows, seed)
    above = lab.record("interaction above matched pairs", above, **options)
    lab.record("interaction of a planted copy", copies, **options)
    same = {task: one["one pattern"] for task, one in above.items()}
    tested = {
        task: redundant(runs[task], one, lab.settings.seed)
        for task, one in same.items()
        if np.isfinite(one.value)
    }
    lab.judge("same-pattern", tested)
    needed = {task: one["the most needed head"] for task, one in copies.items()}
    lab.judge("planted-copy", needed, unit="interaction")


def record_layers_of_heads(lab: Lab, runs: Mapping[Task, Sequence[PairedRun]]) -> None:
    """The score with one head left in a layer, and whether heads of one layer are alike.

    The first is from Michel et al. (2019), the second from Clark et al. (2019).
    """
    left, closer, random = {}, {}, lab.encoder("normal")
    for task, several in runs.items():
        seed = lab.resampling_seed(task)
        by_run = [one_head_left(pairs, seed) for pairs, *_ in several]
        by_layer = enumerate(map(mean_over_seeds, zip(*by_run, strict=True)))
        left[task] = {str(one_based(at)): one for at, one in by_layer}

        inputs = lab.make_batches(task, paired_rows(lab, task))
        distances = observe_cached(random, inputs, {"": HeadDistances(len(left[task]))})[""]
        untuned = closer_within(distances, seed)
        tuned = [closer_within(distances, seed) for *_, distances in several]
        closer[task] = {
            "fine-tuned": mean_over_seeds(tuned),
            "random weights": untuned,
            "above random weights": mean_over_seeds([one - untuned for one in tuned]),
        }
    options: dict[str, Any] = {"by": ("task", "kind"), "unit": "gain", "tolerance": 0.005}
    what = "gain with one head left in a layer"
    left = lab.record(what, left, state="one head left", **options)
    some = {
        task: harmless({f"layer {at}": gain for at, gain in one.items()}, each=False)
        for task, one in left.items()
    }
    lab.judge("one-head-left", some)
    what = "divergence of two layers' heads above that of one layer's"
    lab.record(what, closer, **options | {"unit": "bits", "tolerance": 0.002})
    beyond = {task: one["above random weights"] for task, one in closer.items()}
    lab.judge("layers-alike", beyond)


def paired_rows(lab: Lab, task: Task) -> Dataset:
    """The swept rows on which sets of heads are removed, drawn by the seed."""
    return sample(lab.rows(task, "swept"), PAIR_ROWS, lab.settings.seed)


def sets_call(lab: Lab, task: Task, seed_offset: int) -> tuple[Any, ...]:
    """The call, for the cache, that gives a run's outputs without each of :func:`sets_of`."""
    model = lab.lazy_classifier(task, seed_offset=seed_offset)
    rows = lab.lazy_batches(task, paired_rows(lab, task))
    return without_sets, model, rows, sets_of(lab.config.num_attention_heads)


def sets_of(heads: int) -> np.ndarray:
    """Sets of a layer's heads: none, each, each pair, and all but each; shape (sets, heads)."""
    pairs = np.array(list(combinations(range(heads), 2)), dtype=int).reshape(-1, 2)
    own = np.eye(heads, dtype=bool)
    return np.concatenate([np.zeros((1, heads), dtype=bool), own, own[pairs].any(axis=1), ~own])


@dataclass(frozen=True)
class Pairs:
    """What removing heads one by one, two by two, and all but one of a layer gives.

    Attributes:
        task: the task.
        outputs: of :func:`bertology_utils.disabling.sweep.without_sets` with :func:`sets_of`,
            (layers, sets, examples, labels).
        labels: gold, shape (examples,).
        heads: in a layer.
    """

    task: Task
    outputs: np.ndarray
    labels: np.ndarray
    heads: int

    @cached_property
    def pairs(self) -> np.ndarray:
        """The two heads of each pair, from 0, shape (pairs, 2)."""
        return np.array(list(combinations(range(self.heads), 2)))

    @cached_property
    def rises(self) -> np.ndarray:
        """Rise of the loss without each set, shape (layers, sets, examples)."""
        of_sets = losses(self.task, self.outputs, self.labels)
        return of_sets - of_sets[:, :1]

    @property
    def alone(self) -> np.ndarray:
        """Rise of the loss without each head, shape (layers, heads, examples)."""
        return self.rises[:, 1 : 1 + self.heads]

    @cached_property
    def interactions(self) -> np.ndarray:
        """Rise of the loss without both heads minus those without each.

        Shape (layers, pairs, examples).
        """
        both = self.rises[:, 1 + self.heads : 1 + self.heads + len(self.pairs)]
        return both - self.alone[:, self.pairs[:, 0]] - self.alone[:, self.pairs[:, 1]]

    @cached_property
    def single(self) -> np.ndarray:
        """Mean rises without either head of a pair, the larger first, (layers, pairs, 2)."""
        return -np.sort(-self.alone.mean(axis=2)[:, self.pairs], axis=2)

    def matched(self, chosen: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each chosen pair, one of others of its layer whose single rises are nearest.

        Args:
            chosen, among: True for pairs, shape (layers, pairs).

        Returns:
            Places (layer, pair) of the chosen ones and of their matches, each of shape (matched,
            2). A layer without others gives none.
        """
        places: list[tuple[tuple[int, int], tuple[int, int]]] = []
        for layer, single in enumerate(self.single):
            others = np.flatnonzero(among[layer])
            for pair in np.flatnonzero(chosen[layer]) if others.size else ():
                distance = ((single[others] - single[pair]) ** 2).sum(axis=1)
                places.append(((layer, int(pair)), (layer, int(others[distance.argmin()]))))
        one, other = np.array(places, dtype=int).reshape(-1, 2, 2).transpose(1, 0, 2)
        return one, other

    def beyond_matched(self, chosen: np.ndarray, among: np.ndarray, seed: Seed) -> Bootstrap:
        """Mean interaction of the chosen pairs minus that of their matches; NaN without any.

        Args:
            chosen, among: see :meth:`matched`.
            seed: of the resampling.
        """
        one, other = self.matched(chosen, among)
        if not len(one):
            return bootstrap_mean(np.full(len(self.labels), np.nan), seed)
        # (matched, examples)
        difference = self.interactions[tuple(one.T)] - self.interactions[tuple(other.T)]
        return bootstrap_mean(difference.mean(axis=0), seed)

    def chance(self, patterns: np.ndarray, seed: Seed, draws: int = DRAWS) -> float:
        """How often exchanged patterns give such a difference between pairs, or a larger one.

        Patterns are exchanged among the heads of each layer.

        Args:
            patterns: usual pattern of each head, shape (layers, heads).
            seed: of the exchanges.
            draws: how many.
        """
        mean = self.interactions.mean(axis=2)

        def difference(patterns: np.ndarray) -> float:
            one, other = self.matched(*alike_and_other(patterns, self.pairs))
            return float((mean[tuple(one.T)] - mean[tuple(other.T)]).mean()) if len(one) else np.nan

        rng, observed = np.random.default_rng(seed), difference(patterns)
        drawn = [difference(rng.permuted(patterns, axis=1)) for _ in range(draws)]
        return (1 + np.sum(np.array(drawn) >= observed - ROUNDING)) / (1 + draws)


def alike_and_other(patterns: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs have one pattern, and which have two, each of shape (layers, pairs).

    Args:
        patterns: usual pattern of each head, shape (layers, heads).
        pairs: shape (pairs, 2).
    """
    one, other = patterns[:, pairs[:, 0]], patterns[:, pairs[:, 1]]
    return (one == other) & (one != HETEROGENEOUS), one != other


def nearest(distances: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """True for the share of each layer's pairs whose maps are most alike, shape (layers, pairs).

    Args:
        distances: between all heads, shape (layers, heads, layers, heads).
        pairs: shape (pairs, 2).
    """
    layers = np.arange(len(distances))[:, None]
    within = distances[layers, pairs[:, 0], layers, pairs[:, 1]]
    return within.argsort(axis=1, kind="stable").argsort(axis=1) < ALIKE * len(pairs)


def redundant(runs: Sequence[PairedRun], estimate: Estimate, seed: Seed) -> Support:
    """Support for more interaction in pairs of one pattern than in matched ones.

    It is certainly above 0, and more than exchanged patterns give.

    Args:
        runs: of every run the pairs, and the usual patterns of its heads.
        estimate: of :meth:`Pairs.beyond_matched` over all runs.
        seed: of the exchanges.
    """
    by_examples = above(estimate)
    by_heads = max(pairs.chance(patterns, seed) for pairs, patterns, _ in runs)
    number = text_of(estimate.summary() | {"unit": "interaction"}, sizes=True)
    return Support(max(by_examples.holds, by_heads), by_examples.fails, number)


def one_head_left(pairs: Pairs, seed: Seed) -> list[Bootstrap]:
    """Change of the score with all but one head of a layer gone, by layer.

    The head that stays is chosen on other examples: each half of the examples is answered with the
    head that the other half chose.

    Args:
        pairs: of one run.
        seed: of the halves and of the resampling of examples.
    """
    answers = predictions(pairs.task, pairs.outputs[:, -pairs.heads :])  # (layers, heads, examples)
    whole = predictions(pairs.task, pairs.outputs[0, 0])
    half = np.random.default_rng(seed).permutation(len(whole)) < len(whole) // 2
    best = np.empty_like(answers[:, 0])  # (layers, examples)
    for chooses, answered in ((half, ~half), (~half, half)):
        for layer, of_layer in enumerate(answers):
            score = scores_of(pairs.task, of_layer[:, chooses], pairs.labels[chooses])
            best[layer, answered] = of_layer[score.argmax(), answered]
    return gains(pairs.task, whole, best, pairs.labels, seed)


def planted_copies(
    pairs: Pairs, tuned: Any, batches: Sequence[Batch], labels: np.ndarray, seed: Seed
) -> dict[str, Bootstrap]:
    """Interactions of heads of a run with copies of them, which take the least needed places.

    Of "the most needed head", and the mean over layers of "typical heads": those of the median rise
    of the loss.

    Args:
        pairs: of the run.
        tuned: its classifier.
        batches, labels: the examples.
        seed: of the resampling.
    """
    rises = pairs.alone.mean(axis=2)
    ranked = rises.argsort(axis=1)  # the most needed last
    layer = int(rises.max(axis=1).argmax())
    chosen = {
        "the most needed head": [(layer, int(ranked[layer, -1]))],
        "typical heads": [(at, int(ranked[at, pairs.heads // 2])) for at in range(len(rises))],
    }
    zeros = replacement(tuned, batches, "zero")
    interactions = {}
    for kind, heads in chosen.items():
        rows = []
        for head in heads:
            place = int(ranked[head[0], 0])
            model, copied = with_copy(tuned, head, place), (head[0], place)
            gone: list[list[Head]] = [[], [head], [copied], sorted([head, copied])]
            outputs = [cached(logits_without, model, batches, one, zeros) for one in gone]
            whole, one, other, both = losses(pairs.task, np.stack(outputs), labels)
            rows.append(both - one - other + whole)
        interactions[kind] = bootstrap_mean(np.mean(rows, axis=0), seed)
    return interactions


def with_copy(model, head: Head, place: int):
    """A copy of a classifier in which a head takes the place of another of its layer.

    Head and copy give half each: a known redundancy.

    Args:
        model: BERT, or built like it.
        head: (layer, head) from 0, which is copied.
        place: the head of the same layer that is lost.

    Raises:
        ValueError: the two are one.
    """
    layer, source = head
    if source == place:
        raise ValueError(
            f"head {source} cannot be copied to its own place; choose another head of the layer"
        )
    planted = copy.deepcopy(model)
    attention = layers_of(planted)[layer].attention
    weight = attention.output.dense.weight  # (hidden, heads · head size)
    size = weight.shape[1] // planted.config.num_attention_heads
    here, there = (slice(at * size, (at + 1) * size) for at in (source, place))
    with torch.no_grad():
        for part in (attention.self.query, attention.self.key, attention.self.value):
            for values in (part.weight, part.bias):
                values[there] = values[here].clone()
        weight[:, here] /= 2
        weight[:, there] = weight[:, here].clone()
    return planted


class HeadDistances:
    """Measurement: Jensen–Shannon divergence between the maps of every two heads, in bits.

    From 0 to 1; the mean over an input's tokens, whose rows of attention are distributions (Clark
    et al., 2019, §6, who sum).

    Args:
        layers: of the model.
    """

    def __init__(self, layers: int):
        self._layers = layers
        self._maps: list[torch.Tensor] = []
        self._rows: dict[int, np.ndarray] = {}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Keep one layer's maps until those of all are there."""
        self._maps.append(maps)
        if len(self._maps) < self._layers:
            return
        heads = maps.shape[1]
        # (examples, layers · heads, queries, keys)
        every, self._maps = torch.cat(self._maps, dim=1), []
        weights = (batch.mask / batch.lengths[:, None])[:, None].to(maps)  # (examples, 1, queries)
        own = (_entropy(every) * weights).sum(dim=2)  # (examples, layers · heads)
        distances = maps.new_zeros(len(maps), self._layers * heads, self._layers * heads)
        for head in range(self._layers * heads - 1):
            mixed = (every[:, head : head + 1] + every[:, head + 1 :]) / 2
            mean = (own[:, head : head + 1] + own[:, head + 1 :]) / 2
            between = (_entropy(mixed) * weights).sum(dim=2) - mean
            distances[:, head, head + 1 :] = distances[:, head + 1 :, head] = between
        shaped = distances.view(-1, self._layers, heads, self._layers, heads).cpu().numpy()
        self._rows |= dict(zip(batch.index, shaped, strict=True))

    def compute(self) -> np.ndarray:
        """Shape (examples, layers, heads, layers, heads), examples in the order of the data."""
        return np.stack([self._rows[index] for index in sorted(self._rows)])


def _entropy(maps: torch.Tensor) -> torch.Tensor:
    """Of each row, in bits: (…, queries, keys) to (…, queries)."""
    return -torch.special.xlogy(maps, maps).sum(dim=-1) / np.log(2)


def closer_within(distances: np.ndarray, seed: Seed) -> Bootstrap:
    """Mean distance of heads of two layers minus that of heads of one, examples resampled.

    Args:
        distances: of :class:`HeadDistances`.
        seed: of the resampling.
    """
    _, layers, heads = distances.shape[:3]
    same = np.kron(np.eye(layers), np.ones((heads, heads))).astype(bool)
    within, across = same & ~np.eye(layers * heads, dtype=bool), ~same
    flat = distances.reshape(len(distances), layers * heads, layers * heads).astype(float)
    return bootstrap_mean(flat[:, across].mean(axis=1) - flat[:, within].mean(axis=1), seed)
