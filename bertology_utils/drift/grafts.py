"""Pre-trained layers put back into a fine-tuned model: which layers hold what it learned? (§4.3, a causal test of ours)"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import nn

from ..attention import Batch
from ..attention.interface import shape_of
from ..encoders.evaluate import predict_logits
from ..glue.tasks import Task, plain_metric, predictions
from ..statistics import RESAMPLES, Bootstrap, Seed, whole_and_resampled
from ..statistics.weighted import weighted_scores

_LAYER = re.compile(r"\.layers?\.(\d+)\.")


def grafted(tuned: nn.Module, start: nn.Module, layers: Iterable[int]) -> nn.Module:
    """The fine-tuned model with some layers as they were before.

    Args:
        tuned: a classifier.
        start: the same architecture before fine-tuning.
        layers: from 0.

    Raises:
        ValueError: the architecture shares its layers' weights, or they cannot be told by their names.
    """
    chosen, before, names = set(layers), start.state_dict(), _layer_of_weights(start)
    if not exchangeable(start):
        raise ValueError(
            f"the layers of {type(start).__name__} cannot be exchanged: their weights do not carry their numbers"
        )
    model = copy.deepcopy(tuned)
    model.load_state_dict({name: before[name] for name, layer in names.items() if layer in chosen}, strict=False)
    return model


def exchangeable(model: nn.Module) -> bool:
    """Has every layer weights of its own, that carry its number? ALBERT's layers share theirs."""
    return set(_layer_of_weights(model).values()) == set(range(shape_of(model)[0]))


def _layer_of_weights(model: nn.Module) -> dict[str, int]:
    return {name: int(match[1]) for name in model.state_dict() if (match := _LAYER.search(name))}


def graft_scores(
    task: Task,
    tuned: nn.Module,
    start: nn.Module,
    groups: Sequence[Sequence[int]],
    batches: Sequence[Batch],
    labels: np.ndarray,
    seed: Seed,
) -> list[Bootstrap]:
    """Score of the fine-tuned model with each group of layers put back, minus its own score, from 0 to 1.

    Args:
        task: the task.
        tuned, start: see :func:`grafted`.
        groups: layers from 0.
        batches: the dev set.
        labels: gold, shape (examples,).
        seed: of the resampling of examples.

    Returns:
        One per group; NaN for an architecture whose layers cannot be exchanged.
    """
    return changes_of_score(task, logits_or_nothing(tuned, start, [(), *groups], batches), labels, seed)


def changes_of_score(task: Task, logits: Sequence[np.ndarray], labels: np.ndarray, seed: Seed) -> list[Bootstrap]:
    """Score with each group of layers put back, minus the fine-tuned model's own, from 0 to 1.

    Args:
        task: the task.
        logits: what the fine-tuned model gives, and then what it gives with each group put back; (examples, labels) each.
        labels: gold, shape (examples,).
        seed: of the resampling of examples.

    Returns:
        One per group; NaN where there are no numbers.
    """
    if any(np.isnan(of_one).any() for of_one in logits):
        return [Bootstrap(np.nan, np.full(RESAMPLES, np.nan), len(labels), seed) for _ in logits[1:]]
    answers = np.stack([predictions(task, of_one) for of_one in logits])
    weights = whole_and_resampled(len(labels), seed)  # (1 + resamples, examples)
    scores = weighted_scores(plain_metric(task), answers, labels, weights)  # (1 + resamples, 1 + groups)
    losses = scores[:, 1:] - scores[:, :1]
    return [Bootstrap.of(loss, len(labels), seed) for loss in losses.T]


def logits_or_nothing(
    tuned: nn.Module, start: nn.Module, groups: Sequence[Sequence[int]], batches: Sequence[Batch]
) -> list[np.ndarray]:
    """As :func:`graft_logits`; NaN for an architecture whose layers cannot be exchanged."""
    if exchangeable(start):
        return graft_logits(tuned, start, groups, batches)
    config: Any = tuned.config
    examples = sum(len(batch.index) for batch in batches)
    return [np.full((examples, config.num_labels), np.nan) for _ in groups]


def graft_logits(
    tuned: nn.Module, start: nn.Module, groups: Sequence[Sequence[int]], batches: Sequence[Batch]
) -> list[np.ndarray]:
    """What :func:`grafted` models answer; layers below which two of them are the same are computed once for both.

    Args:
        tuned, start, groups, batches: see :func:`graft_scores`.

    Returns:
        One per group, shape (examples, labels), as :func:`bertology_utils.encoders.evaluate.predict_logits` gives.
    """
    own, before = _layer_modules(tuned), _layer_modules(start)
    origins = [tuple(layer in group for layer in range(len(own))) for group in groups]  # is each layer put back?
    parts: list[list[np.ndarray]] = [[] for _ in groups]
    for batch in batches:
        known: dict[tuple[bool, ...], object] = {}  # what a layer gave, by the origin of all layers up to it
        # In the order of a tree, so that only one path through it is kept.
        for at in sorted(range(len(groups)), key=origins.__getitem__):
            known = {path: given for path, given in known.items() if path == origins[at][: len(path)]}
            with _put_back(own, before, origins[at], known):
                parts[at].append(predict_logits(tuned, [batch]))
    order = np.argsort(np.concatenate([sorted(batch.index) for batch in batches]))
    return [np.concatenate(of_group)[order] for of_group in parts]


def _layer_modules(model: nn.Module) -> list[nn.Module]:
    found = {
        int(match[1]): module
        for name, module in model.named_modules()
        if (match := _LAYER.search(f"{name}.")) and match.end() == len(name) + 1
    }
    return [found[layer] for layer in sorted(found)]


@contextmanager
def _put_back(
    own: Sequence[nn.Module], before: Sequence[nn.Module], origin: tuple[bool, ...], known: dict[tuple[bool, ...], object]
) -> Iterator[None]:
    """Within it layers of ``own`` compute as those of ``before`` where ``origin`` says so, and nothing that is known."""

    def instead(layer: int):
        module, path = (before if origin[layer] else own)[layer], origin[: layer + 1]
        compute = type(module).forward

        def forward(*inputs, **others):
            if path not in known:
                known[path] = compute(module, *inputs, **others)
            return known[path]

        return forward

    try:
        for layer, module in enumerate(own):
            module.__dict__["forward"] = instead(layer)
        yield
    finally:
        for module in own:
            module.__dict__.pop("forward", None)


def neighbours(layers: int) -> list[tuple[int, int]]:
    """Every two neighbouring layers, from 0; the last two come last."""
    return [(layer, layer + 1) for layer in range(layers - 1)]


def up_to(layers: int) -> list[tuple[int, ...]]:
    """All layers from the first up to each but the last, from 0."""
    return [tuple(range(count)) for count in range(1, layers)]


def last_pairs_lead(changes: Sequence[Bootstrap]) -> Bootstrap:
    """By how much putting back the last two layers costs more than putting back any other two neighbours.

    Args:
        changes: from :func:`graft_scores` with :func:`neighbours`.

    Returns:
        In units of the score; NaN for a model of two layers.
    """
    if len(changes) < 2:
        return Bootstrap(np.nan, np.full_like(changes[0].draws, np.nan), changes[0].n, changes[0].seed)
    draws = np.stack([np.append(change.value, change.draws) for change in changes])  # (pairs, 1 + resamples)
    leads = draws[:-1].min(axis=0) - draws[-1]
    return Bootstrap.of(leads, changes[0].n, changes[0].seed)
