"""Attention cut away from the sink, and from words, in every head of every layer at once: what becomes of the answers.

Clark et al. (2019, §3.3) suppose from gradients that attention to a special token is a no-op. But
the gradient for a weight is a product with the vector that it multiplies, small wherever that is
short. Here the attention itself is cut. If it is a no-op, then with nothing instead answers stay,
and they move where something else gets the weight: the other tokens (rows renormalised), or all
tokens alike (the mean).

Two further cuts are no cuts of their own. With the sink's value vector at zero, a head gives what it
gives with the attention to the sink dropped; and with the sink masked before the softmax a row is
what it is renormalised without the sink, in every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.hooks import attention_hooks, unwrap
from ..attention.norms import ValueNorms
from ..common import one_of
from ..features import side_by_side
from ..models import check

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# What loses attention: all of the sink; words, as much as the sink has in a row, or all that they
# have; of a random half of the words as much as carries what the sink carries, by norm.
CUT_FROM = ("the sink", "words", "words of the sink's norm")
# What gets it: nothing does, so that rows sum to less than 1; what is left of the row, in
# proportion; or all tokens alike, which adds the mean of their value vectors.
INSTEAD = ("nothing", "the rest", "the mean")
# (cut from, instead), in the order of all arrays.
CUTS = (
    *((CUT_FROM[0], instead) for instead in INSTEAD),
    *((one, INSTEAD[0]) for one in CUT_FROM[1:]),
)


@dataclass(frozen=True)
class Cuts:
    """What every cut of :data:`CUTS` does to every example; each is made in a pass of its own.

    Attributes:
        whole: outputs of the classifier as it is, shape (examples, labels).
        outputs: after each cut, shape (examples, cuts, labels).
        gone: share of all attention that is cut, mean over heads and tokens, shape (examples, cuts,
            layers).
    """

    whole: np.ndarray
    outputs: np.ndarray
    gone: np.ndarray


def cut_attention(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    tokens: Sequence[tuple[np.ndarray, np.ndarray]],
    seed: int,
    cuts: Sequence[tuple[str, str]] = CUTS,
) -> Cuts:
    """Cut attention from every example in each way, and keep the classifier's outputs.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        tokens: per example of the data, True at the sink and True at words, each of shape
            (wordpieces,). Of an input without words none are cut.
        seed: of the order in which words lose attention.
        cuts: pairs of :data:`CUT_FROM` and :data:`INSTEAD`.

    Raises:
        ValueError: another cut; an input without a sink, or see
            :func:`bertology_utils.models.check` and
            :class:`bertology_utils.attention.norms.ValueNorms`.
    """
    model = unwrap(model)
    check(model, batches)
    for source, instead in cuts:
        one_of("cut from", source, CUT_FROM)
        one_of("instead", instead, INSTEAD)
    if without := [number for number, (sink, _) in enumerate(tokens, start=1) if not sink.any()]:
        raise ValueError(
            f"input {without[0]} has no sink; leave it out, or choose tokens that every input has"
        )
    stacked = [np.stack(one) for one in tokens]
    norms = ValueNorms(model)
    now: dict[str, torch.Tensor] = {}  # of the layer that is computed: its maps and its values

    def see_values(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        norms.see(layer, module, values)
        now["values"] = values

    def see_maps(layer: int, maps: torch.Tensor) -> None:
        now["maps"] = maps

    rows: dict[int, tuple[np.ndarray, ...]] = {}  # by example
    for batch in batches:
        batch = batch.to(model.device)
        masks = side_by_side(stacked, batch)  # (examples, 2, tokens)
        order = word_order(masks[:, 1], batch.index, seed)
        outputs, shares = [_outputs(model, batch)], []
        for source, instead in cuts:
            measured: list[torch.Tensor] = []  # of every layer, (examples,)

            def edit(layer: int, given: torch.Tensor) -> torch.Tensor:
                maps = now["maps"]
                gone = part_to_cut(maps, norms.lengths, masks, order, source)
                measured.append(_share(gone, batch))
                kept = put_instead(maps, gone, batch, instead)
                return (
                    (kept.to(now["values"].dtype) @ now["values"]).transpose(1, 2).to(given.dtype)
                )

            with attention_hooks(
                model, edit_outputs=edit, observe=see_maps, observe_values=see_values
            ):
                outputs.append(_outputs(model, batch))
            shares.append(torch.stack(measured, dim=1))
        # (examples, 1 + cuts, labels) and (examples, cuts, layers)
        found = torch.stack(outputs, dim=1), torch.stack(shares, dim=1)
        by_example = zip(*(part.cpu().numpy() for part in found), strict=True)
        rows |= dict(zip(batch.index, by_example, strict=True))
    given, parts = (np.stack([rows[at][part] for at in sorted(rows)]) for part in (0, 1))
    return Cuts(given[:, 0], given[:, 1:], parts)


def part_to_cut(
    maps: torch.Tensor, lengths: torch.Tensor, masks: torch.Tensor, order: torch.Tensor, source: str
) -> torch.Tensor:
    """The part of a layer's maps that goes.

    "Words": in each row as much as the sink has, or all that the words have. It goes wordpiece by
    wordpiece, so that those that are cut are gone.

    Args:
        maps: shape (examples, heads, tokens, tokens).
        lengths: ‖f(x)‖ of every token, shape (examples, heads, tokens).
        masks: True at the sink and at words, shape (examples, 2, tokens).
        order: of the words, from :func:`word_order`.
        source: one of :data:`CUT_FROM`.

    Returns:
        Same shape as ``maps``.
    """
    tiny = torch.finfo(maps.dtype).tiny
    to_sink, to_words = (maps * masks[:, None, None, kind] for kind in range(2))
    if source == "the sink":
        return to_sink
    if source == "words of the sink's norm":
        first = torch.zeros_like(masks[:, 1]).scatter(1, order, _first_half(masks[:, 1]))
        half = to_words * first[:, None, None]
        carried, available = (
            torch.einsum("ehqk,ehk->ehq", part, lengths)[..., None] for part in (to_sink, half)
        )
        return half * (carried / available.clamp(min=tiny)).clamp(max=1)
    mass = torch.minimum(to_sink.sum(dim=3, keepdim=True), to_words.sum(dim=3, keepdim=True))
    order = order[:, None, None].expand_as(maps)
    in_order = to_words.gather(3, order)
    # What is still to be cut when a word's turn comes.
    left = (mass - (in_order.cumsum(dim=3) - in_order)).clamp(min=0)
    return torch.zeros_like(maps).scatter(3, order, torch.minimum(in_order, left))


def _first_half(words: torch.Tensor) -> torch.Tensor:
    """True at the first half of as many places as there are words, one at least; shape (examples, tokens)."""
    counts = (words.sum(dim=1, keepdim=True) + 1) // 2
    return torch.arange(words.shape[1], device=words.device)[None] < counts


def put_instead(maps: torch.Tensor, gone: torch.Tensor, batch: Batch, instead: str) -> torch.Tensor:
    """A layer's maps without what goes, and with what stands instead.

    Args:
        maps, gone: shape (examples, heads, tokens, tokens).
        batch: the inputs.
        instead: one of :data:`INSTEAD`. A row of which nothing is left stays empty.

    Returns:
        Same shape as ``maps``.
    """
    kept = maps - gone
    if instead == "the rest":
        return kept / kept.sum(dim=3, keepdim=True).clamp(min=torch.finfo(maps.dtype).tiny)
    if instead == "the mean":
        even = batch.mask / batch.lengths[:, None]  # (examples, keys)
        return kept + gone.sum(dim=3, keepdim=True) * even[:, None, None].to(maps.dtype)
    return kept


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


def _share(part: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Share of a layer's attention that a part of its maps is, mean over heads and real tokens; shape (examples,)."""
    of_rows = part.sum(dim=3).mean(dim=1) * batch.mask  # (examples, tokens)
    return of_rows.sum(dim=1) / batch.lengths


def _outputs(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    with torch.inference_mode():
        return model(**batch.inputs).logits
