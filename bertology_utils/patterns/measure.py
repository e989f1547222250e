"""The pattern that every head shows for every example, how frequent each is (Fig 2), and whether they repeat (§4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention import Batch
from ..glue import Task
from ..statistics import (
    Bootstrap,
    Estimate,
    Seed,
    apart,
    bootstrap_mean,
    mean_over_seeds,
    moderated,
    resampled_means,
)
from .classifiers import Classifier
from .labels import PATTERNS, SHORTEST

if TYPE_CHECKING:
    from .validation import Evidence

NO_TOKEN = -1  # an id that no wordpiece has
ROUNDS = 500  # of the expectation maximisation; shares then move by less than 1e-4


@dataclass(frozen=True)
class FoundPatterns:
    """Result of :class:`Patterns`.

    Attributes:
        patterns: indices into PATTERNS, shape (examples, layers, heads), for
            the examples that are long enough, in the order of the data.
        skipped: examples of fewer than four wordpieces, left out.
    """

    patterns: np.ndarray
    skipped: int

    @property
    def shares(self) -> np.ndarray:
        """Share of the examples in which a head shows each pattern, shape (layers, heads, patterns)."""
        return self.one_hot.mean(axis=0)

    @property
    def one_hot(self) -> np.ndarray:
        """1 where a head shows a pattern, shape (examples, layers, heads, patterns)."""
        return (self.patterns[..., None] == np.arange(len(PATTERNS))).astype(np.float64)


class Patterns:
    """Measurement: the pattern of every map (§4.1).

    Args:
        network: the classifier; :func:`bertology_utils.patterns.classifiers.load_network`, or
            :func:`bertology_utils.patterns.validation.load_logistic`.
        separator: the tokenizer's id of [SEP]; None if it has none.
    """

    def __init__(self, network: Classifier, separator: int | None):
        self.network = network
        self.separator = separator
        self._rows: dict[int, list[np.ndarray]] = {}
        self._skipped = 0
        self._groups: list[tuple[list[int], torch.Tensor, torch.Tensor]] = []

    def start(self, batch: Batch) -> None:
        """Sort the batch's examples by length: maps are cut to their real tokens, and only equal ones stack."""
        self.network.to(batch.mask.device)
        lengths = batch.lengths.tolist()
        self._skipped += sum(length < SHORTEST for length in lengths)
        self._groups = []
        for length in sorted({length for length in lengths if length >= SHORTEST}):
            rows = [row for row, other in enumerate(lengths) if other == length]
            at = (
                batch.mask[rows].nonzero()[:, 1].view(len(rows), length)
            )  # (examples, length): their real positions
            ids = batch.inputs["input_ids"][rows].gather(1, at)
            self._groups.append(
                (rows, at, ids == (NO_TOKEN if self.separator is None else self.separator))
            )
            self._rows |= {batch.index[row]: [] for row in rows}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Classify one layer; see :class:`bertology_utils.attention.Measurement`.

        Raises:
            ValueError: the maps hold NaN, or rows that do not sum to 1.
        """
        heads = maps.shape[1]
        for rows, at, separators in self._groups:
            part = (
                maps[rows]
                .take_along_dim(at[:, None, :, None], 2)
                .take_along_dim(at[:, None, None, :], 3)
            )
            part = part.flatten(0, 1)  # (examples · heads, length, length)
            found = self.network.predict(part, separators.repeat_interleave(heads, dim=0))
            for row, patterns in zip(rows, found.reshape(len(rows), heads), strict=True):
                self._rows[batch.index[row]].append(patterns)

    def compute(self) -> FoundPatterns:
        """The patterns of all examples.

        Raises:
            ValueError: no example is long enough.
        """
        if not self._rows:
            raise ValueError(
                f"none of the {self._skipped} inputs has {SHORTEST} wordpieces or more; no map shows a pattern"
            )
        return FoundPatterns(
            np.array([self._rows[index] for index in sorted(self._rows)]), self._skipped
        )


def of_length(batches: Sequence[Batch], length: int) -> Batch:
    """The first example of those nearest to a length in wordpieces, by itself and without padding.

    Args:
        batches: of a pass.
        length: how long it should be.
    """
    places = {index: (batch, row) for batch in batches for row, index in enumerate(batch.index)}
    of_example = {index: int(batch.lengths[row]) for index, (batch, row) in places.items()}
    nearest = min(sorted(places), key=lambda index: abs(of_example[index] - length))
    batch, row = places[nearest]
    return batch.example(row)


# Shares of the patterns, corrected for the classifier's errors. ---


@dataclass(frozen=True)
class ClassifierErrors:
    """Error rates of the classifier, with their uncertainty.

    Attributes:
        matrix: share of each true pattern's maps (rows) predicted as each
            pattern (columns), shape (patterns, patterns).
        draws: the same from resampled heads of the labelled maps, shape
            (resamples, patterns, patterns).
    """

    matrix: np.ndarray
    draws: np.ndarray


def classifier_errors(evidence: Evidence, seed: Seed) -> ClassifierErrors:
    """From the cross-validated predictions; resamples heads, not maps, as maps of one head are alike."""
    by_head = evidence.counts.astype(float)  # (heads, true, predicted)
    return ClassifierErrors(
        _normalised(by_head.sum(axis=0)), _normalised(resampled_means(by_head, seed))
    )


def _normalised(counts: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a pattern that does not occur gets equal shares, as nothing is known of it."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1e-12), 1 / counts.shape[-1])


def possible_patterns(task: Task) -> np.ndarray:
    """True for the patterns that the task's inputs can show, shape (patterns,): blocks need two sentences."""
    return np.array([pattern != "block" or len(task.fields) > 1 for pattern in PATTERNS])


def corrected_shares(
    observed: np.ndarray, confusion: np.ndarray, possible: np.ndarray | None = None
) -> np.ndarray:
    """Shares of the true patterns that best explain the shares of the predicted ones.

    A classifier that takes one vertical map in ten for heterogeneous inflates
    the heterogeneous share. Given how it errs, the maximum-likelihood shares
    are found by expectation maximisation (Saerens et al., 2002), which unlike
    inverting the matrix never leaves the range from 0 to 1.

    Args:
        observed: predicted shares, shape (…, patterns), summing to 1.
        confusion: share of each true pattern's maps (rows) that are predicted
            as each pattern (columns), shape (…, patterns, patterns).
        possible: False for patterns that cannot occur, shape (patterns,); all
            can if None.

    Returns:
        Shape (…, patterns), summing to 1.
    """
    start = np.ones(observed.shape[-1]) if possible is None else possible.astype(float)
    shares = np.broadcast_to(start / start.sum(), observed.shape)
    for _ in range(ROUNDS):
        predicted = np.maximum(np.einsum("...t,...tp->...p", shares, confusion), 1e-12)
        shares = shares * np.einsum("...tp,...p->...t", confusion, observed / predicted)
    return shares / shares.sum(axis=-1, keepdims=True)


def pattern_shares(
    one_hot: np.ndarray, errors: ClassifierErrors, seed: Seed, possible: np.ndarray | None = None
) -> dict[str, dict[str, Bootstrap]]:
    """Shares of the patterns among all maps, as named and corrected for the classifier's errors.

    Args:
        one_hot: 1 where a head shows a pattern, shape (examples, …, patterns).
        errors: from :func:`classifier_errors`.
        seed: of the resampling of examples.
        possible: see :func:`corrected_shares`.

    Returns:
        "as named" and "corrected", each with one bootstrapped share by
        pattern. The intervals of the former come from the choice of examples
        alone, those of the latter from it and from what is not known of the
        classifier's errors.
    """
    by_example = one_hot.reshape(len(one_hot), -1, one_hot.shape[-1]).mean(
        axis=1
    )  # (examples, patterns)
    mean, draws = by_example.mean(axis=0), resampled_means(by_example, seed)
    found = {
        "as named": (mean, draws),
        "corrected": (
            corrected_shares(mean, errors.matrix, possible),
            corrected_shares(draws, errors.draws, possible),
        ),
    }
    return {
        version: {
            pattern: Bootstrap(float(value), of_pattern, len(by_example), seed)
            for pattern, value, of_pattern in zip(PATTERNS, values, all_draws.T, strict=True)
        }
        for version, (values, all_draws) in found.items()
    }


def together(parts: Sequence[Bootstrap]) -> Bootstrap:
    """The sum of shares of the same examples."""
    value, draws = sum(part.value for part in parts), np.sum([part.draws for part in parts], axis=0)
    return Bootstrap(value, draws, parts[0].n, parts[0].seed)


def share_apart(
    one: FoundPatterns, others: Sequence[FoundPatterns], pattern: str, seed: Seed
) -> Estimate:
    """The share of a pattern as named in one pass minus that in others of the same examples, mean over these.

    Args:
        one: of a model that is not among the trainings.
        others: of every training.
        pattern: which.
        seed: of the resampling of examples.
    """
    at = PATTERNS.index(pattern)

    def share(found: FoundPatterns) -> Bootstrap:
        return bootstrap_mean(found.one_hot[..., at].mean(axis=(1, 2)), seed)

    return mean_over_seeds([share(one) - share(other) for other in others])


def extremes(shares: Mapping[Task, Sequence[Bootstrap]]) -> dict[tuple[Task, str], Estimate]:
    """How far MRPC is below each other task, and QQP above each, mean over the trainings that both have (Fig 2).

    Args:
        shares: by task, of every training.
    """

    def beyond(one: Task, other: Task) -> Estimate:
        both = zip(shares[one], shares[other], strict=False)
        return mean_over_seeds(
            [apart(*(pair if one.name == "qqp" else pair[::-1])) for pair in both]
        )

    words = {"mrpc": "below", "qqp": "above"}
    return moderated(
        {
            (task, f"{words[task.name]} {other.title}"): beyond(task, other)
            for task in shares
            for other in shares
            if task.name in words and other is not task
        }
    )


# Do the patterns repeat, across heads and across tasks? ---


def usual_patterns(one_hot: np.ndarray) -> np.ndarray:
    """The pattern that each head shows most often: indices into PATTERNS, shape (layers, heads).

    Args:
        one_hot: shape (examples, layers, heads, patterns).
    """
    return one_hot.mean(axis=0).argmax(axis=-1)


def _usual(one_hot: np.ndarray, seed: Seed) -> np.ndarray:
    """:func:`usual_patterns` of the examples as they are, then of resampled ones: shape (1 + resamples, layers, heads)."""
    return np.concatenate(
        [usual_patterns(one_hot)[None], resampled_means(one_hot, seed).argmax(axis=-1)]
    )


def heads_by_pattern(usual: np.ndarray) -> np.ndarray:
    """Number of heads with each usual pattern: (…, layers, heads) to (…, patterns)."""
    return (usual[..., None] == np.arange(len(PATTERNS))).sum(axis=(-3, -2))


def coverage(one_hot: np.ndarray, seed: Seed, count: int = 2) -> Bootstrap:
    """Share of the heads whose usual pattern is one of the ``count`` commonest, examples resampled.

    Heterogeneous is no pattern that could repeat: it is what has none, and all that random weights
        show.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.
        count: how many patterns are "a limited set" of the five.
    """
    draws = _usual(one_hot, seed)
    commonest = (
        np.sort(heads_by_pattern(draws)[..., :-1], axis=-1)[..., -count:].sum(axis=-1)
        / draws[0].size
    )
    return Bootstrap.of(commonest, len(one_hot), seed)


def coverage_by_chance(
    heads: int, patterns: int, seed: Seed, count: int = 2, draws: int = 10_000
) -> float:
    """What :func:`coverage` exceeds in 2.5 % of cases if every head drew its usual pattern evenly at random.

    Args:
        heads: how many.
        patterns: that can occur.
        seed: of the draws.
        count: see :func:`coverage`.
        draws: how many.
    """
    drawn = np.random.default_rng(seed).multinomial(
        heads, np.full(patterns, 1 / patterns), size=draws
    )
    return float(np.quantile(np.sort(drawn[:, :-1], axis=1)[:, -count:].sum(axis=1) / heads, 0.975))


def task_agreement(one_hots: Sequence[np.ndarray], seeds: Sequence[Seed]) -> Bootstrap:
    """Cohen's κ between two tasks over heads' usual patterns, mean over all pairs of tasks; examples resampled.

    1 if every head keeps its pattern, 0 if tasks agree no more often than by
    chance. All heads of the model are in it, so these are not resampled.

    Args:
        one_hots: per task, shape (examples, layers, heads, patterns).
        seeds: of each task's resampling.

    Raises:
        ValueError: fewer than two tasks.
    """
    if len(one_hots) < 2:
        raise ValueError("agreement between tasks needs at least two tasks")
    labels = [
        _usual(one_hot, seed).reshape(-1, one_hot[0, ..., 0].size)
        for one_hot, seed in zip(one_hots, seeds, strict=True)
    ]  # each (1 + resamples, heads of all layers)
    agreement = np.mean([kappa(first, second) for first, second in combinations(labels, 2)], axis=0)
    return Bootstrap.of(agreement, sum(map(len, one_hots)), tuple(seeds))


def changed_heads(before: np.ndarray, after: np.ndarray, seed: Seed) -> Bootstrap:
    """Share of the heads whose usual pattern fine-tuning changed, beyond what other examples change.

    Usual patterns before, on every other example, are compared with those
    after on the rest; what is subtracted is the comparison of the same two
    halves before fine-tuning, :func:`changed_by_examples`.

    Args:
        before, after: shape (examples, layers, heads, patterns), the same examples.
        seed: of the resampling.
    """
    half = np.arange(len(before)) % 2 == 0
    first, tuned = _usual(before[half], seed), _usual(after[~half], seed)
    return Bootstrap.of(
        (first != tuned).mean(axis=(1, 2)), len(before), seed
    ) - changed_by_examples(before, seed)


def changed_by_examples(one_hot: np.ndarray, seed: Seed) -> Bootstrap:
    """Share of the heads of one model whose usual pattern differs between two halves of examples.

    Args:
        one_hot: shape (examples, layers, heads, patterns).
        seed: of the resampling.
    """
    half = np.arange(len(one_hot)) % 2 == 0
    first, rest = _usual(one_hot[half], seed), _usual(one_hot[~half], seed)
    return Bootstrap.of((first != rest).mean(axis=(1, 2)), len(one_hot), seed)


def kappa(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cohen's κ of two labellings, shape (…, items) to (…); 0 where both give one same label to all, as chance would."""
    same = (first == second).mean(axis=-1)
    frequencies = [
        (labels[..., None] == np.arange(len(PATTERNS))).mean(axis=-2) for labels in (first, second)
    ]
    chance = (frequencies[0] * frequencies[1]).sum(axis=-1)
    return np.where(chance < 1, (same - chance) / np.maximum(1 - chance, 1e-12), 0.0)
