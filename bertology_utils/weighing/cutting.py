"""What happens to a classifier's answers without the attention to some tokens (a causal test of ours)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..attention import Batch
from ..attention.interface import reaching
from ..encoders.evaluate import check
from ..features import side_by_side


@dataclass(frozen=True)
class Cut:
    """What cutting does to every example.

    Attributes:
        moved: how far the answer moves, from 0 to 1: half of the summed changes of the labels' probabilities; of a
            regression the change of the score on the unit range; shape (examples, kinds).
        mass: share of all attention that was cut, mean over layers, heads, tokens and examples, shape (kinds,).
    """

    moved: np.ndarray
    mass: np.ndarray


KINDS = ("the sink", "words")


def cut(model, batches: Sequence[Batch], targets: Sequence[np.ndarray], words: Sequence[np.ndarray], seed: int) -> Cut:
    """Cut attention to the target tokens, and as much to words, in every head of every layer at once.

    In each row of each map as much is cut as both have, so that not all of a
    strong sink goes. From words it is taken wordpiece by wordpiece in a random
    order, so that those cut are gone; what remains of the row is scaled to sum
    to 1. Either is cut in a pass of its own, whose maps differ from the second
    layer on; ``mass`` says how much went.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        targets: per example of the data, True at the tokens to be cut, shape (wordpieces,).
        words: True at those that they are compared with, same shape.
        seed: of the order in which words are cut.

    Returns:
        For either of :data:`KINDS`.

    Raises:
        ValueError: an input without a token of either kind, or see :func:`bertology_utils.encoders.evaluate.check`.
    """
    check(model, batches)
    for name, masks in (("tokens to cut", targets), ("words", words)):
        for number, mask in enumerate(masks, start=1):
            if not mask.any():
                raise ValueError(f"input {number} has no {name}; leave it out, or choose tokens that every input has")
    random = torch.Generator().manual_seed(seed)
    moved: dict[int, np.ndarray] = {}
    mass = np.zeros(2)
    for batch in batches:
        batch = batch.to(next(model.parameters()).device)
        both = side_by_side([np.stack(pair) for pair in zip(targets, words, strict=True)], batch)  # (examples, 2, tokens)
        lots = torch.rand(both[:, 1].shape, generator=random).to(both.device).masked_fill(~both[:, 1], 2.0)
        whole = _answers(model, batch)
        changes = []
        for kind in range(2):
            editor = _Cutter(both, lots.argsort(dim=1), batch, words_go=bool(kind))
            with reaching(model, edit_maps=editor.edit):
                changes.append((_answers(model, batch) - whole).abs().sum(dim=1) / (1 if whole.shape[1] == 1 else 2))
            mass[kind] += editor.mean_mass * len(batch.index)
        moved |= dict(zip(batch.index, torch.stack(changes, dim=1).cpu().numpy(), strict=True))
    return Cut(np.stack([moved[index] for index in sorted(moved)]), mass / len(moved))


def _answers(model, batch: Batch) -> torch.Tensor:
    """Probabilities of the labels, or the score of a regression, shape (examples, labels)."""
    with torch.inference_mode():
        logits = model(**batch.inputs).logits.double()
    return logits if logits.shape[1] == 1 else logits.softmax(dim=1)


class _Cutter:
    """Changes maps as :func:`cut` says, and counts what is cut."""

    def __init__(self, both: torch.Tensor, order: torch.Tensor, batch: Batch, words_go: bool):
        self._target, self._words = both[:, None, None, 0], both[:, None, None, 1]  # (examples, 1, 1, tokens)
        self._order = order  # of tokens, words first, shape (examples, tokens)
        self._batch, self._words_go = batch, words_go
        self._mass: list[float] = []

    @property
    def mean_mass(self) -> float:
        """Attention that was cut, mean over layers, heads and real tokens."""
        return float(np.mean(self._mass))

    def edit(self, layer: int, maps: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Cut one layer's maps, (examples, heads, tokens, tokens)."""
        to_target = (maps * self._target).sum(dim=3, keepdim=True)
        mass = torch.minimum(to_target, (maps * self._words).sum(dim=3, keepdim=True))
        if self._words_go:
            order = self._order[:, None, None].expand_as(maps)
            in_order = (maps * self._words).gather(3, order)
            left = (mass - (in_order.cumsum(dim=3) - in_order)).clamp(min=0)  # still to be cut when a token's turn comes
            gone = torch.zeros_like(maps).scatter(3, order, torch.minimum(in_order, left))
        else:
            gone = maps * self._target * (mass / to_target.clamp(min=torch.finfo(maps.dtype).tiny))
        real = self._batch.mask[:, None, :, None]
        self._mass.append(float((mass * real).sum() / (real.sum() * maps.shape[1])))
        return (maps - gone) / (1 - mass)
