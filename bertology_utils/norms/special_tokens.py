"""Special tokens by weight and by norm: what they lose, how long their vectors are, and is attention to them a no-op?

A *fall* is the share of attention that goes to a kind of token by weight, minus that by norm. The
no-op that Clark et al. (2019, §3.3) suppose from gradients is tested by cutting the attention: the
gradient for a weight is a product with the vector that it multiplies, small wherever that is short.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.hooks import attention_hooks, shape_of
from ..attention.norms import ValueNorms
from ..common import one_of
from ..features import DESTINATIONS, side_by_side
from ..glue import Task
from ..models import check
from ..statistics import Bootstrap, Estimate, ManyTest, Seed, bootstrap_mean, many_test
from ..verdicts import PRETRAINED, WEIGHT

MARKS = DESTINATIONS[:3]  # [CLS], [SEP] and punctuation
CUT_FROM = ("the sink", "words")
INSTEAD = ("nothing", "the mean")  # what stands where attention was cut


def cases(
    by_state: Mapping[str, Mapping[Task, Estimate]],
    learned: Mapping[Task, bool],
    titles: Mapping[str, str] | None = None,
) -> dict[str, Estimate]:
    """Estimates that a claim about all models is judged on, by what people call them.

    Args:
        by_state: of every task, "pre-trained" and "fine-tuned".
        learned: by task; of the fine-tuned models only these count.
        titles: what tasks are called, by name, if not by their titles.
    """
    return {
        f"{(titles or {}).get(task.name, task.title)}, {state}": estimate
        for state, by_task in by_state.items()
        for task, estimate in by_task.items()
        if state == PRETRAINED or learned[task]
    }


def fall(by_weight: np.ndarray, by_norm: np.ndarray, kind: str, seed: Seed) -> Bootstrap:
    """By how much the share of one destination is smaller by norm, mean over layers and heads.

    Args:
        by_weight, by_norm: ``destinations`` of :class:`bertology_utils.features.measure.Flow`.
        kind: one of its destinations.
        seed: of the resampling of examples.
    """
    at = DESTINATIONS.index(kind)
    return bootstrap_mean((by_weight - by_norm)[..., at].mean(axis=(1, 2)), seed)


def rise(by_weight: np.ndarray, by_norm: np.ndarray, kind: str, seed: Seed) -> ManyTest:
    """Share of one destination in every head, by norm minus by weight, tested above the least difference that counts.

    Args:
        by_weight, by_norm: as of :func:`fall`.
        kind: the destination.
        seed: of resampling and permutations.
    """
    return many_test((by_norm - by_weight)[..., DESTINATIONS.index(kind)], WEIGHT, seed)


def most_of(shares: np.ndarray, kind: str) -> int:
    """Heads that give one destination more than half of their attention, in the mean over examples.

    Args:
        shares: shape (examples, layers, heads, destinations).
        kind: the destination.
    """
    return int((shares[..., DESTINATIONS.index(kind)].mean(axis=0) > 0.5).sum())


def mean_lengths(model, batches: Sequence[Batch], kinds: Sequence[np.ndarray]) -> np.ndarray:
    """Mean of ‖f(x)‖ over the tokens of each kind and over heads.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: inputs.
        kinds: per example of the data which tokens are of which kind, shape (kinds, wordpieces).

    Returns:
        Shape (kinds, layers); NaN where there is no token of a kind.

    Raises:
        ValueError: see :class:`bertology_utils.attention.norms.ValueNorms`.
    """
    carrying = ValueNorms(model)
    sums, counts = np.zeros((len(kinds[0]), shape_of(model)[0])), np.zeros(len(kinds[0]))
    now = torch.empty(0)

    def see(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        carrying.see(layer, module, values)
        by_token = carrying.lengths.mean(dim=1)  # (examples, tokens)
        sums[:, layer] += torch.einsum("et,ekt->k", by_token, now).double().cpu().numpy()

    with torch.inference_mode(), attention_hooks(model, observe_values=see):
        for batch in batches:
            batch = batch.to(next(model.parameters()).device)
            now = side_by_side(kinds, batch).to(
                next(model.parameters()).dtype
            )  # (examples, kinds, tokens)
            counts += now.sum(dim=(0, 2)).cpu().numpy()
            model(**batch.inputs)
    return sums / np.where(counts, counts, np.nan)[:, None]


@dataclass(frozen=True)
class Cut:
    """Effect of cutting on every example.

    Attributes:
        moved: how far the answer moves, from 0 to 1: half of the summed changes of the labels'
            probabilities; of a regression the change of the score on the unit range; shape
            (examples, kinds).
        mass: share of all its attention that was cut, mean over layers, heads and tokens, shape
            (examples, kinds).
    """

    moved: np.ndarray
    mass: np.ndarray


def cut(
    model,
    batches: Sequence[Batch],
    targets: Sequence[np.ndarray],
    words: Sequence[np.ndarray],
    seed: int,
    instead: str = INSTEAD[0],
) -> Cut:
    """Cut attention to the target tokens, and as much to words, in every head of every layer at once.

    In each row of each map as much is cut as both have, so that not all of a
    strong sink goes. From words it is taken wordpiece by wordpiece in a random
    order, so that those cut are gone. What remains of the row stays as it is:
    scaled to sum to 1 it would carry up to twice as much, and a no-op is what
    can go without anything else changing. Either is cut in a pass of its own, whose maps differ
    from the second layer on; ``mass`` says how much went.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        targets: per example of the data, True at the tokens to be cut, shape (wordpieces,).
        words: True at those that they are compared with, same shape.
        seed: of the order in which words are cut.
        instead: "nothing", or "the mean": as much attention to all tokens alike, which adds the
            mean of their values.

    Returns:
        For either of :data:`CUT_FROM`.

    Raises:
        ValueError: another way; an input without a token of either kind, or see
            :func:`bertology_utils.models.check`.
    """
    check(model, batches)
    one_of("instead", instead, INSTEAD)
    for name, masks in (("tokens to cut", targets), ("words", words)):
        for number, mask in enumerate(masks, start=1):
            if not mask.any():
                raise ValueError(
                    f"input {number} has no {name}; leave it out, or choose tokens that every input has"
                )
    moved: dict[int, np.ndarray] = {}
    mass: dict[int, np.ndarray] = {}
    for batch in batches:
        batch = batch.to(next(model.parameters()).device)
        both = side_by_side(
            [np.stack(pair) for pair in zip(targets, words, strict=True)], batch
        )  # (examples, 2, tokens)
        order = _random_order(both[:, 1], batch.index, seed)
        whole = _answers(model, batch)
        changes, masses = [], []
        for kind in range(2):
            editor = _Cutter(both, order, batch, bool(kind), instead)
            with attention_hooks(model, edit_maps=editor.edit):
                changes.append(
                    (_answers(model, batch) - whole).abs().sum(dim=1)
                    / (1 if whole.shape[1] == 1 else 2)
                )
            masses.append(editor.mean_mass)
        for of_all, parts in ((moved, changes), (mass, masses)):
            of_all |= dict(zip(batch.index, torch.stack(parts, dim=1).cpu().numpy(), strict=True))
    return Cut(*(np.stack([of_all[index] for index in sorted(of_all)]) for of_all in (moved, mass)))


def _random_order(words: torch.Tensor, index: Sequence[int], seed: int) -> torch.Tensor:
    """Tokens of each example, words first in an order that follows from the seed and the example alone.

    Args:
        words: True at words, shape (examples, tokens).
        index: of the examples.
        seed: of the orders.

    Returns:
        Positions of tokens, same shape.
    """
    keys = torch.full(words.shape, 2.0, dtype=torch.float64)
    for row, (number, of_example) in enumerate(zip(index, words.cpu(), strict=True)):
        keys[row, of_example] = torch.from_numpy(
            np.random.default_rng((seed, number)).random(int(of_example.sum()))
        )
    return keys.argsort(dim=1).to(words.device)


def _answers(model, batch: Batch) -> torch.Tensor:
    """Probabilities of the labels, or the score of a regression, shape (examples, labels)."""
    with torch.inference_mode():
        logits = model(**batch.inputs).logits.double()
    return logits if logits.shape[1] == 1 else logits.softmax(dim=1)


class _Cutter:
    """Changes maps as :func:`cut` says, and counts what is cut."""

    def __init__(
        self,
        both: torch.Tensor,
        order: torch.Tensor,
        batch: Batch,
        words_go: bool,
        instead: str = INSTEAD[0],
    ):
        self._target, self._words = (
            both[:, None, None, 0],
            both[:, None, None, 1],
        )  # (examples, 1, 1, tokens)
        self._order = order  # of tokens, words first, shape (examples, tokens)
        self._batch, self._words_go, self._instead = batch, words_go, instead
        self._mass: list[torch.Tensor] = []

    @property
    def mean_mass(self) -> torch.Tensor:
        """Attention that was cut, mean over layers, heads and real tokens, shape (examples,)."""
        return torch.stack(self._mass).mean(dim=0)

    def edit(self, layer: int, maps: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Cut one layer's maps, (examples, heads, tokens, tokens)."""
        to_target = (maps * self._target).sum(dim=3, keepdim=True)
        mass = torch.minimum(to_target, (maps * self._words).sum(dim=3, keepdim=True))
        if self._words_go:
            order = self._order[:, None, None].expand_as(maps)
            in_order = (maps * self._words).gather(3, order)
            left = (mass - (in_order.cumsum(dim=3) - in_order)).clamp(
                min=0
            )  # still to be cut when a token's turn comes
            gone = torch.zeros_like(maps).scatter(3, order, torch.minimum(in_order, left))
        else:
            gone = maps * self._target * (mass / to_target.clamp(min=torch.finfo(maps.dtype).tiny))
        real = self._batch.mask[:, None, :, None]
        self._mass.append(
            (mass * real).sum(dim=(1, 2, 3)) / (real.sum(dim=(1, 2, 3)) * maps.shape[1])
        )
        if self._instead == "nothing":
            return maps - gone
        keys = self._batch.mask[:, None, None]  # (examples, 1, 1, tokens)
        return maps - gone + mass * keys / keys.sum(dim=3, keepdim=True)
