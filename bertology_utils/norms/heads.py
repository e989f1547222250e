"""Do heads that follow a link stay the same when weights become norms?

Along dependencies a head points (:mod:`bertology_utils.links.dependencies`); along frame-semantic
links it gives weight (:mod:`bertology_utils.framenet.measure`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..attention import Batch, ByNorm, Measurement, begin, make_batches, observe_cached
from ..common import Head
from ..framenet.measure import FrameLinkAttention, place_release
from ..links.dependencies import Arcs, joined, sums_of_examples
from ..statistics import Bootstrap, Seed, bootstrap_mean, largest, rank_agreement
from ..verdicts import MIN_EXAMPLES

# Heads within this of the maximum count as tied, and the first of them is named; other processors
# change less.
TIED = 0.01


class WordsOnly:
    """A measurement that is fed with maps of words alone: special tokens get nothing, and rows sum to 1 without them.

    Args:
        measurement: any.
        special: ids of the special tokens.
    """

    def __init__(self, measurement: Measurement, special: Sequence[int]):
        self.measurement = measurement
        if hasattr(measurement, "attention"):  # what ``observe`` looks at
            self.attention = measurement.attention
        self._special = torch.tensor(list(special))

    def start(self, batch: Batch) -> None:
        """Tell the measurement of the batch."""
        begin(self.measurement, batch)

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Take in one layer; see :class:`bertology_utils.attention.Measurement`."""
        ids = batch.inputs["input_ids"]
        words = maps * ~torch.isin(ids, self._special.to(ids.device))[:, None, None]
        self.measurement.update(
            layer, words / words.sum(dim=3, keepdim=True).clamp(min=1e-12), batch
        )

    def compute(self) -> Any:
        """Result of the wrapped measurement."""
        return self.measurement.compute()


@dataclass(frozen=True)
class Agreement:
    """Heads by one way of attention beside heads by another.

    Attributes:
        rank: Spearman's correlation over heads, examples resampled; of two directions the mean.
        first, second: the head with the largest mean by either, (layer, head) from 0; of those that
            tie the first.
        held_out: by the first way of attention, the head chosen by the second minus the one chosen
            by the first, where both were chosen on the other half of the examples.
    """

    rank: Bootstrap
    first: Head
    second: Head
    held_out: Bootstrap


def agreement(first: np.ndarray, second: np.ndarray, seed: Seed) -> Agreement:
    """Compare two measurements of the same heads on the same examples.

    Args:
        first, second: shape (examples, …, layers, heads).
        seed: of halving and resampling.

    Raises:
        ValueError: fewer than four examples.
    """
    if len(first) < 4:
        raise ValueError(
            f"{len(first)} examples are too few to choose a head on one half and measure it on the other"
        )
    means = [values.mean(axis=0) for values in (first, second)]
    half = np.random.default_rng(seed).permutation(len(first)) < len(first) // 2
    flat = [
        values.reshape(len(values), -1) for values in (first, second)
    ]  # (examples, ways · layers · heads)
    by_way = [
        values.reshape(len(values), -1, means[0].shape[-2] * means[0].shape[-1])
        for values in (first, second)
    ]
    losses = np.empty(
        len(first)
    )  # of every example, with heads chosen on the half that it is not in
    for chosen_on in (half, ~half):
        one, other = (largest(values[chosen_on].mean(axis=0))[0] for values in flat)
        losses[~chosen_on] = flat[0][~chosen_on, other] - flat[0][~chosen_on, one]
    (*_, layer, head), (*_, other_layer, other_head) = (largest(one, TIED) for one in means)
    rank = rank_agreement(by_way[0], by_way[1], seed)
    return Agreement(rank, (layer, head), (other_layer, other_head), bootstrap_mean(losses, seed))


def by_example(arcs: Arcs) -> np.ndarray:
    """Share of an example's arcs of one relation along which a head points, either way.

    Args:
        arcs: from :class:`bertology_utils.links.dependencies.Pointing`.

    Returns:
        Shape (examples that have some, ways, layers, heads).
    """
    _, groups = np.unique(arcs.example, return_inverse=True)
    return (
        sums_of_examples(np.moveaxis(arcs.hits, 0, 1), groups)
        / np.bincount(groups)[:, None, None, None]
    )


@dataclass(frozen=True)
class Compared:
    """Share of arcs of one relation that each head points along, by weight and by norm.

    Attributes:
        by_weight, by_norm: mean over examples, shape (ways, layers, heads).
        agreement: of the two.
    """

    by_weight: np.ndarray
    by_norm: np.ndarray
    agreement: Agreement


def along_relation(
    by_weight: Sequence[Arcs], by_norm: Sequence[Arcs], seed: Seed
) -> Compared | None:
    """Heads along one relation by weight beside the same by norm; None with too few arcs.

    Args:
        by_weight, by_norm: by task, from :class:`bertology_utils.links.dependencies.Pointing`.
        seed: of halving and resampling.
    """
    arcs = joined(by_weight), joined(by_norm)
    if len(arcs[0].offset) < MIN_EXAMPLES:
        return None
    first, second = map(by_example, arcs)
    return Compared(first.mean(axis=0), second.mean(axis=0), agreement(first, second, seed))


class FrameReadings:
    """Weights of every head along a release's frame-semantic links, read in four ways.

    Args:
        source: of the release; see :func:`bertology_utils.framenet.release.load_release`.
        tokenizer: the model's.
    """

    WAYS = ("by norm", "words only", "words only, by norm")  # beside "by weight"

    def __init__(self, source: str, tokenizer):
        self._placed, inputs, _ = place_release(source, tokenizer)
        self._batches, self._special = make_batches(inputs, tokenizer), tokenizer.all_special_ids

    def of(self, model) -> dict[str, np.ndarray]:
        """Largest weight along a sentence's links, by way of reading, each of shape (sentences, layers, heads)."""

        def links() -> FrameLinkAttention:
            return FrameLinkAttention(self._placed, "predicate to element")

        def words() -> WordsOnly:
            return WordsOnly(links(), self._special)

        readings = dict(zip(self.WAYS, (ByNorm(links()), words(), ByNorm(words())), strict=True))
        found = observe_cached(model, self._batches, {"by weight": links()} | readings)
        return {way: scores.actual for way, scores in found.items()}
