"""Special tokens: how long the vectors are that heads read from them, and what cutting attention to them does.

Clark et al. (2019, §3.3) suppose from gradients that attention to a special token is a no-op. But
the gradient for a weight is a product with the vector that it multiplies, small wherever that is
short. Here the attention itself is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.hooks import attention_hooks, shape_of
from ..attention.norms import ValueNorms
from ..common import one_of
from ..features import DESTINATIONS, side_by_side
from ..models import check

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MARKS = DESTINATIONS[:3]  # [CLS], [SEP] and punctuation
CUT_FROM = ("the sink", "words")
INSTEAD = ("nothing", "the mean")  # what stands where attention was cut


def mean_lengths(
    model: PreTrainedModel, batches: Sequence[Batch], kinds: Sequence[np.ndarray]
) -> np.ndarray:
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
    norms = ValueNorms(model)
    sums, counts = np.zeros((len(kinds[0]), shape_of(model)[0])), np.zeros(len(kinds[0]))
    now = torch.empty(0)  # (examples, kinds, tokens)

    def see(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        norms.see(layer, module, values)
        by_token = norms.lengths.mean(dim=1)  # (examples, tokens)
        sums[:, layer] += torch.einsum("et,ekt->k", by_token, now).double().cpu().numpy()

    with torch.inference_mode(), attention_hooks(model, observe_values=see):
        for batch in batches:
            batch = batch.to(model.device)
            now = side_by_side(kinds, batch).to(model.dtype)
            counts += now.sum(dim=(0, 2)).cpu().numpy()
            model(**batch.inputs)
    return sums / np.where(counts, counts, np.nan)[:, None]


@dataclass(frozen=True)
class Cut:
    """Effect of cutting on every example; the second axis is :data:`CUT_FROM`.

    Attributes:
        moved: how far the answer moves, from 0 to 1: half of the summed changes of the labels'
            probabilities; of a regression the change of the score on the unit range; shape
            (examples, 2).
        mass: share of all its attention that was cut, mean over layers, heads and tokens, shape
            (examples, 2).
    """

    moved: np.ndarray
    mass: np.ndarray


def cut(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    tokens: Sequence[tuple[np.ndarray, np.ndarray]],
    seed: int,
    instead: str = INSTEAD[0],
) -> Cut:
    """Cut attention to the sink, and as much to words, in every head of every layer at once.

    What remains of a row stays as it is: scaled to sum to 1 it would carry up to twice as much, and
    a no-op is what can go without anything else changing. Either is cut in a pass of its own, whose
    maps differ from the second layer on; ``mass`` says how much went.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        tokens: per example of the data, True at the sink and True at words, each of shape
            (wordpieces,).
        seed: of the order in which words are cut.
        instead: "nothing", or "the mean": as much attention to all tokens alike, which adds the
            mean of their values.

    Raises:
        ValueError: another ``instead``; an input without a sink or words, or see
            :func:`bertology_utils.models.check`.
    """
    check(model, batches)
    one_of("instead", instead, INSTEAD)
    both = np.array([[mask.any() for mask in one] for one in tokens])  # (examples, 2)
    if not both.all():
        number, kind = np.argwhere(~both)[0]
        raise ValueError(
            f"input {number + 1} has no {('sink', 'words')[kind]}; leave it out, or choose tokens"
            " that every input has"
        )
    numbers: dict[int, np.ndarray] = {}  # by example, (2 of CUT_FROM, 2 of Cut)
    for batch in batches:
        batch = batch.to(model.device)
        masks = side_by_side([np.stack(one) for one in tokens], batch)  # (examples, 2, tokens)
        order = word_order(masks[:, 1], batch.index, seed)
        keys, lengths = batch.mask[:, None, None], batch.lengths[:, None, None, None]
        whole, parts = answers(model, batch), []
        for from_words in (False, True):
            masses: list[torch.Tensor] = []  # of every layer, (examples,)

            def edit(layer: int, maps: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
                gone, mass = attention_to_cut(maps, masks, order, from_words)
                real = (mass[..., 0] * batch.mask[:, None]).sum(dim=(1, 2)).double()
                masses.append(real / (batch.lengths * maps.shape[1]))
                return maps - gone + (mass * keys / lengths if instead == "the mean" else 0)

            with attention_hooks(model, edit_maps=edit):
                change = (answers(model, batch) - whole).abs().sum(dim=1)
            moved = change / (1 if whole.shape[1] == 1 else 2)
            parts.append(torch.stack([moved, torch.stack(masses).mean(dim=0)], dim=1))
        stacked = torch.stack(parts, dim=1).cpu().numpy()  # (examples, 2, 2)
        numbers |= dict(zip(batch.index, stacked, strict=True))
    ordered = np.stack([numbers[index] for index in sorted(numbers)])
    return Cut(ordered[..., 0], ordered[..., 1])


def attention_to_cut(
    maps: torch.Tensor, masks: torch.Tensor, order: torch.Tensor, from_words: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The part of a layer's maps that goes: in each row as much as the sink and the words both have.

    So not all of a strong sink goes. From words it goes wordpiece by wordpiece, so that those that
    are cut are gone.

    Args:
        maps: shape (examples, heads, tokens, tokens).
        masks: True at the sink and at words, shape (examples, 2, tokens).
        order: of the words, from :func:`word_order`.
        from_words: True to cut words, False to cut the sink.

    Returns:
        What goes, of the same shape as ``maps``; and its sum over each row, (examples, heads,
        tokens, 1).
    """
    to_sink, to_words = (maps * masks[:, None, None, kind] for kind in range(2))
    of_sink = to_sink.sum(dim=3, keepdim=True)
    mass = torch.minimum(of_sink, to_words.sum(dim=3, keepdim=True))
    if not from_words:
        return to_sink * (mass / of_sink.clamp(min=torch.finfo(maps.dtype).tiny)), mass
    order = order[:, None, None].expand_as(maps)
    in_order = to_words.gather(3, order)
    # What is still to be cut when a word's turn comes.
    left = (mass - (in_order.cumsum(dim=3) - in_order)).clamp(min=0)
    return torch.zeros_like(maps).scatter(3, order, torch.minimum(in_order, left)), mass


def word_order(words: torch.Tensor, index: Sequence[int], seed: int) -> torch.Tensor:
    """Positions of each example's tokens, words first in an order that follows from the seed and the example alone.

    Args:
        words: True at words, shape (examples, tokens).
        index: of the examples.
        seed: of the orders.

    Returns:
        Same shape.
    """
    keys = torch.full(words.shape, 2.0, dtype=torch.float64)
    for row, (number, own) in enumerate(zip(index, words.cpu(), strict=True)):
        drawn = np.random.default_rng((seed, number)).random(int(own.sum()))
        keys[row, own] = torch.from_numpy(drawn)
    return keys.argsort(dim=1).to(words.device)


def answers(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Probabilities of the labels, or the score of a regression, shape (examples, labels)."""
    with torch.inference_mode():
        logits = model(**batch.inputs).logits.double()
    return logits if logits.shape[1] == 1 else logits.softmax(dim=1)
