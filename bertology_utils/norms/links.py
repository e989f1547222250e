"""Heads along links, by weight and by norm: do they keep their rank, and is the best head the same?

Links are dependencies of the tasks' sentences (notebook 8) and frame-semantic links (notebook 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..annotation.inputs import AnnotatedInput
from ..attention import Batch, ByNorm, Measurement, begin, observe
from ..attention.cells import StrongestCells
from ..cache import Lazy, cached
from ..framenet.measure import FORWARD, frame_sentences
from ..links.dependencies import RELATIONS, Arcs, Pointing, joined, sums_of_examples
from ..statistics import (
    Bootstrap,
    Estimate,
    Seed,
    bootstrap_mean,
    largest,
    mean_over_seeds,
    rank_agreement,
)
from ..verdicts import MIN_EXAMPLES, PRETRAINED

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..lab import Lab
    from .measure import Found, Models

TUNED = "fine-tuned"
WAYS = ("weight", "norm")
RUNS = 2  # of each task, whose heads along links are measured
# Names of rows in results.json.
POINTS = "share of links that a head points along, by {}"
RANKS = "rank correlation of heads along {}, norm with weight"
TUNING = "rank correlation of heads along {}, fine-tuned with pre-trained"
BEYOND = "rank correlation of heads along {}, norm with weight above fine-tuned with pre-trained"

# Of frame links, by their name in the results: readings of an attention map that are compared.
COMPARED = {
    "frame links": {
        "by norm": ("by weight", "by norm"),
        "words only": ("by weight", "words only"),
        "words only, by norm": ("by weight", "words only, by norm"),
    },
    "frame links among words": {"words only": ("words only", "words only, by norm")},
}
# Two measurements of the same heads on the same examples, each (examples, directions, layers, heads).
Pair = tuple[np.ndarray, np.ndarray]


def observe_links(
    model: PreTrainedModel, batches: Sequence[Batch], inputs: Sequence[AnnotatedInput]
) -> dict[str, dict[str, Arcs]]:
    """Along which dependencies every head points, by weight and by norm; see :class:`Pointing`."""
    measurements: dict[str, Any] = {
        "points by weight": Pointing(inputs),
        "points by norm": ByNorm(Pointing(inputs)),
    }
    return observe(model, batches, measurements)


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
    flat = [one.reshape(len(one), -1) for one in (first, second)]
    # Of every example, with heads chosen on the half that it is not in.
    gains = np.empty(len(first))
    half = np.random.default_rng(seed).permutation(len(first)) < len(first) // 2
    for chosen_on in (half, ~half):
        own, other = (largest(values[chosen_on].mean(axis=0))[0] for values in flat)
        gains[~chosen_on] = flat[0][~chosen_on, other] - flat[0][~chosen_on, own]
    return bootstrap_mean(gains, seed)


def record_ranks(
    lab: Lab, links: str, pairs: Mapping[str, Sequence[Pair]], tuning: Mapping[str, Sequence[Pair]]
) -> dict[str, Estimate]:
    """Rank correlation of heads by norm with the same by weight, beside what fine-tuning does; mean over runs.

    Args:
        lab: of the notebook.
        links: what they are called.
        pairs: of every run of a kind, by weight and by norm.
        tuning: of those kinds that are fine-tuned, by weight before and after it.

    Returns:
        How much better norms agree with weights than weights after fine-tuning with those before.
    """
    found: dict[str, dict[str, Estimate]] = {name: {} for name in (RANKS, TUNING, BEYOND)}
    seed = lab.settings.seed
    for kind, runs in pairs.items():
        kept = [rank_of_heads(*pair, seed) for pair in runs]
        found[RANKS][kind] = mean_over_seeds(kept)
        if kind in tuning:
            tuned = [rank_of_heads(*pair, seed) for pair in tuning[kind]]
            more = [one - other for one, other in zip(kept, tuned, strict=True)]
            found[TUNING][kind], found[BEYOND][kind] = map(mean_over_seeds, (tuned, more))
    for name, values in found.items():
        unit = "difference" if name == BEYOND else "correlation"
        lab.record(name.format(links), values, by=("kind",), unit=unit)
    return found[BEYOND]


def record_best(lab: Lab, links: str, pairs: Mapping[str, Sequence[Pair]]) -> dict[str, Estimate]:
    """How far the head chosen by norm is behind the one chosen by weight, mean over runs."""
    behind = {
        kind: mean_over_seeds([held_out_gain(*pair, lab.settings.seed) for pair in runs])
        for kind, runs in pairs.items()
    }
    what = f"head chosen by norm above that chosen by weight, {links}"
    lab.record(what, behind, by=("kind",), unit="difference")
    return behind


def share_right(arcs: Arcs) -> np.ndarray:
    """Share of an example's arcs along which a head points, shape (examples with arcs, directions, layers, heads)."""
    _, groups = np.unique(arcs.example, return_inverse=True)
    sums = sums_of_examples(np.moveaxis(arcs.hits, 0, 1), groups)
    return sums / np.bincount(groups)[:, None, None, None]


def record_dependencies(lab: Lab, models: Models) -> None:
    """Heads along dependencies, examples of all tasks together: how often they point right, and their ranks."""
    learned = [task for task in models[TUNED] if lab.learned[task]]
    # The models of all tasks, of as many runs as every task has.
    before = [models[PRETRAINED][task][0] for task in learned]
    tuned = list(zip(*(models[TUNED][task][:RUNS] for task in learned), strict=False))
    of_runs = {PRETRAINED: list(zip(*models[PRETRAINED].values(), strict=True)), TUNED: tuned}

    def right(run: Sequence[Found], relation: str, way: str = "weight") -> np.ndarray:
        return share_right(joined([one[f"points by {way}"][relation] for one in run]))

    pairs: dict[str, list[Pair]] = {}
    tuning: dict[str, list[Pair]] = {}
    for relation in RELATIONS:
        for state, runs in of_runs.items():
            arcs = [one["points by weight"][relation] for one in runs[0]] if runs else []
            if sum(len(one.offset) for one in arcs) >= MIN_EXAMPLES:
                name = f"{relation}, {state}"
                pairs[name] = [(right(run, relation), right(run, relation, "norm")) for run in runs]
                if state == TUNED:
                    own = right(before, relation)
                    tuning[name] = [(own, weight) for weight, _ in pairs[name]]
    for at, way in enumerate(WAYS):
        shares = {
            relation: pair[at].mean(axis=0).max(axis=0)  # in the better direction
            for relation in RELATIONS
            for pair in pairs.get(f"{relation}, {PRETRAINED}", ())
        }
        what, tolerance = POINTS.format(way), 0.002  # a few links may turn to a near tie
        lab.record(what, shares, ("kind",), unit="share", tolerance=tolerance, state=PRETRAINED)
    record_ranks(lab, "dependencies", pairs, tuning)
    record_best(lab, "dependencies", pairs)
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
    cells, special = [one.pairs(FORWARD) for one in placed], lab.tokenizer.all_special_ids

    def measure(model: Lazy) -> dict[str, np.ndarray]:
        weights = cached(observe_frame_links, model, batches, cells, special)
        return {reading: one[:, None] for reading, one in weights.items()}

    weights = {PRETRAINED: [measure(lab.lazy_encoder("pretrained"))]}
    for task in [task for task in lab.tasks if lab.learned[task]][:1]:
        runs = lab.lazy_classifiers(task)[:RUNS]
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
        cells: of their links, shape (2, cells) each.
        special: ids of the special tokens.
    """
    by_weight, by_norm, words, words_by_norm = (
        StrongestCells([[one] for one in cells]) for _ in range(4)
    )
    readings: dict[str, Measurement] = {
        "by weight": by_weight,
        "by norm": ByNorm(by_norm),
        "words only": WordsOnly(words, special),
        "words only, by norm": ByNorm(WordsOnly(words_by_norm, special)),
    }
    weights = observe(model, batches, readings)  # by reading and sentence (1, layers, heads)
    return {reading: np.concatenate(one) for reading, one in weights.items()}


def record_frame_links(lab: Lab, frames: Mapping[str, Sequence[Mapping[str, np.ndarray]]]) -> None:
    """Heads along frame-semantic links by the readings of :data:`COMPARED`, before and after fine-tuning."""
    (before,) = frames[PRETRAINED]
    for links, readings in COMPARED.items():
        pairs, tuning = dict[str, list[Pair]](), dict[str, list[Pair]]()
        for name, (start, end) in readings.items():
            for state, runs in frames.items():
                pairs[f"{name}, {state}"] = [(one[start], one[end]) for one in runs]
                if state != PRETRAINED:
                    tuning[f"{name}, {state}"] = [(before[start], one[start]) for one in runs]
        found = {"frames-rank": record_ranks(lab, links, pairs, tuning)}
        if links == "frame links":
            found["frames-best"] = record_best(lab, links, pairs)
            for claim, values in found.items():  # about norms, not about words alone
                about = {kind: one for kind, one in values.items() if kind.startswith("by norm")}
                lab.judge(claim, about)
