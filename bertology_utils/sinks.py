"""Sinks, special tokens that receive much attention: what heads carry from them, and what a classifier answers without.

A head adds to token i the sum over j of a_ij f(x_j), where f(x_j) is token j's value vector times the
head's part of the output projection (:mod:`bertology_utils.attention`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from .attention import ValueNorms, by_norm
from .batches import Batch, in_order, laid_out, prepare
from .hooks import attention_hooks
from .models import outputs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TYPES = ("[CLS]", "[SEP]", "punctuation", "words")
# How a token's part in what a head gives is counted.
COUNTED_BY = ("weight", "norm", "lengths exchanged", "projection")


def tokens_by_type(batch: Batch, tokenizer: PreTrainedTokenizerBase) -> torch.Tensor:
    """True where a token is of a type, shape (examples, types, tokens), in the order of :data:`TYPES`; False at padding.

    [CLS] is whatever token the tokenizer calls so (E5's is ``<s>``), [SEP] likewise (``</s>``).
    Punctuation are wordpieces of punctuation marks alone; all others are words.
    """
    ids = batch.inputs["input_ids"]
    marks = [one for one in ids.unique().tolist() if _is_punctuation(tokenizer.decode([one]))]
    kinds = [ids == tokenizer.cls_token_id, ids == tokenizer.sep_token_id]
    kinds.append(torch.isin(ids, torch.tensor(marks, dtype=ids.dtype, device=ids.device)))
    words = ~torch.stack(kinds).any(dim=0)
    return torch.stack([*kinds, words], dim=1) & batch.mask[:, None]


def _is_punctuation(piece: str) -> bool:
    signs = piece.removeprefix("##").strip()
    return bool(signs) and all(unicodedata.category(one).startswith("P") for one in signs)


# What is carried


def carried(
    model: PreTrainedModel, batches: Sequence[Batch], tokenizer: PreTrainedTokenizerBase, seed: int
) -> dict[str, np.ndarray]:
    """What every head of a model carries from each type of token, in every example.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: inputs.
        tokenizer: the model's.
        seed: of the exchange of lengths.

    Returns:
        "share", shape (examples, layers, heads, counts, types): of what each token receives, mean
        over tokens; by weight a_ij, by norm a_ij ‖f(x_j)‖ with each row scaled to sum to 1, the same with
        the lengths exchanged among an input's tokens, and by projection: what a_ij f(x_j) brings in the
        direction of the head's output at i, summed over tokens i, as a share of the outputs' lengths
        (Ferrando et al., 2022). Shares sum to 1 over types; those by projection can be negative.
        "length", shape (examples, layers, heads, types): mean ‖f(x)‖, NaN where an example has no such
        token. "output", shape (examples, layers, heads): mean length of the head's output.

    Raises:
        ValueError: see :class:`bertology_utils.attention.ValueNorms`.
    """
    model, batches = prepare(model, batches)
    norms, parts = ValueNorms(model), []
    for batch in batches:
        types = tokens_by_type(batch, tokenizer).to(model.dtype)
        queries = (batch.mask / batch.lengths[:, None]).to(model.dtype)  # sum to 1
        layers: list[tuple[torch.Tensor, ...]] = []

        def see(layer: int, maps: torch.Tensor, module: nn.Module, values: torch.Tensor) -> None:
            norms.see(module, values)
            f, lengths = norms.vectors, norms.lengths
            direction = nn.functional.normalize(maps @ f, dim=3)  # of the head's outputs
            parts = (
                maps,
                by_norm(maps, lengths),
                by_norm(maps, exchange_lengths(layer, lengths, batch, seed)),
                maps * (direction @ f.transpose(2, 3)),
            )
            received = [torch.einsum("ehqk,eq,etk->eht", one, queries, types) for one in parts]
            output = received[3].sum(dim=2)
            received[3] = received[3] / output[..., None]
            own = torch.einsum("ehk,etk->eht", lengths, types) / types.sum(dim=2)[:, None]
            layers.append((torch.stack(received, dim=2), own, output))

        with torch.inference_mode(), attention_hooks(model, observe=see):
            model(**batch.inputs)
        parts.append([torch.stack(one, dim=1) for one in zip(*layers, strict=True)])
    return _by_name(("share", "length", "output"), parts, batches)


def _by_name(
    names: Iterable[str], parts: Iterable[Iterable[torch.Tensor]], batches: Iterable[Batch]
) -> dict[str, np.ndarray]:
    """Arrays of all examples by name, of those of each batch."""
    arrays = zip(names, zip(*parts, strict=True), strict=True)
    return {name: in_order(one, batches) for name, one in arrays}


def random_order(batch: Batch, heads: int, seed: Callable[[int], Sequence[int]]) -> torch.Tensor:
    """A random order of each input's tokens, by head, padding last; shape (examples, heads, tokens).

    It follows from the example's seed alone, whatever else is in the batch.

    Args:
        batch: the inputs.
        heads: how many.
        seed: that of an example, by its place in the data.
    """
    drawn = [
        np.random.default_rng(seed(index)).random((heads, length))
        for index, length in zip(batch.index, batch.lengths.tolist(), strict=True)
    ]
    return laid_out(drawn, batch, torch.inf).argsort(dim=2).to(batch.mask.device)


def exchange_lengths(layer: int, lengths: torch.Tensor, batch: Batch, seed: int) -> torch.Tensor:
    """Lengths permuted among an input's real tokens, independently per head; 0 at padding.

    Args:
        layer: from 0.
        lengths: ‖f(x)‖, shape (examples, heads, tokens).
        batch: the inputs.
        seed: of the permutations, which follow from it, the example and the layer.

    Returns:
        Same shape as ``lengths``.
    """
    order = random_order(batch, lengths.shape[1], lambda index: (seed, index, layer))
    # Real tokens come first, in the order drawn, and go where real tokens are.
    places = (~batch.mask).int().argsort(dim=1, stable=True)[:, None].expand_as(order)
    exchanged = torch.zeros_like(lengths).scatter(2, places, lengths.gather(2, order))
    return exchanged * batch.mask[:, None]


# What is answered without

SINKS = {"[CLS]": [0], "[SEP]": [1], "both": [0, 1]}  # places in TYPES
# By name: what is cut from every head's maps, and what gets it instead.
CUTS = {
    "sink dropped": ("sink", "nothing"),
    "sink given to the rest": ("sink", "rest"),
    "sink given to all alike": ("sink", "mean"),
    "words dropped, equal weight": ("weight", "nothing"),
    "words dropped, equal norm": ("norm", "nothing"),
    "words dropped, equal sum": ("sum", "nothing"),
    "sink dropped, last layer only": ("sink", "nothing"),
}
WORD_ORDERS = ("one for all heads", "each head's own")  # in which whole words are dropped
DRAWS = 3  # of each order


@torch.inference_mode()
def cut_attention(
    model: PreTrainedModel, batches: Sequence[Batch], tokenizer: PreTrainedTokenizerBase
) -> dict[str, np.ndarray]:
    """What a classifier answers with attention to a sink, or to words, cut from every head's maps.

    What is cut gets nothing instead, so that rows sum to less than 1; or it goes to the rest of the
    row, in proportion, or to all tokens alike. The attention to words is scaled down until, in each
    row of each head, as much is gone as the sink has: as much weight, as much Σ a_ij ‖f(x_j)‖ ("norm"),
    or as long a ‖Σ a_ij f(x_j)‖ ("sum"). Where words have less than that, all of it goes.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        tokenizer: the model's.

    Returns:
        "whole", shape (examples, labels): its outputs as it is; "outputs", shape (examples, sinks,
        cuts, labels); and the shares of all weights, and of all norms, that are cut, means over layers,
        heads and tokens: "weight" and "norm", shape (examples, sinks, cuts). In the order of
        :data:`SINKS` and :data:`CUTS`.

    Raises:
        ValueError: see :func:`bertology_utils.batches.prepare` and
            :class:`bertology_utils.attention.ValueNorms`.
    """
    model, batches = prepare(model, batches, classifier=True)
    norms, last = ValueNorms(model), model.config.num_hidden_layers - 1

    def cut(
        sink: str, name: str, batch: Batch, types: torch.Tensor, layer: int, maps: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        what, instead = CUTS[name]
        is_sink, words = types[:, SINKS[sink]].any(dim=1), types[:, TYPES.index("words")]
        gone = part_to_cut(maps, norms, is_sink, words, what)
        if name.endswith("last layer only") and layer < last:
            gone = torch.zeros_like(maps)
        return gone, put_instead(maps, gone, batch, instead)

    return _answers(model, batches, tokenizer, norms, cut, SINKS, CUTS)


@torch.inference_mode()
def cut_words(
    model: PreTrainedModel, batches: Sequence[Batch], tokenizer: PreTrainedTokenizerBase, seed: int
) -> dict[str, np.ndarray]:
    """What a classifier answers with attention to whole words, drawn at random, dropped from every head's maps.

    In each row of each head words are dropped one after the other until as much norm is gone as [CLS]
    and [SEP] have together, the last one in part. The order is drawn once for an example, or anew
    for each head; it follows from the seed, the example, the draw and the layer alone.

    Args:
        model: a classifier in evaluation mode.
        batches: inputs.
        tokenizer: the model's.
        seed: of the orders.

    Returns:
        As :func:`cut_attention`, with axes of :data:`WORD_ORDERS` and of draws for sinks and cuts.

    Raises:
        ValueError: as :func:`cut_attention`.
    """
    # An order follows from the example alone.
    model, batches = prepare(model, batches, whole=False, classifier=True)
    norms = ValueNorms(model)

    def cut(
        whose: str, draw: int, batch: Batch, types: torch.Tensor, layer: int, maps: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        is_sink, words = types[:, SINKS["both"]].any(dim=1), types[:, TYPES.index("words")]
        heads, of = (1, 0) if whose == WORD_ORDERS[0] else (maps.shape[1], layer + 1)
        order = random_order(batch, heads, lambda index: (seed, draw, of, index))
        gone = words_to_cut(maps, norms, is_sink, words, order.expand(maps.shape[:3]))
        return gone, maps - gone

    return _answers(model, batches, tokenizer, norms, cut, WORD_ORDERS, range(DRAWS))


def _answers(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    tokenizer: PreTrainedTokenizerBase,
    norms: ValueNorms,
    cut: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    *ways: Collection[Any],
) -> dict[str, np.ndarray]:
    """A classifier's outputs as it is and after each cut, and shares of weights and of norms that go.

    ``cut`` is called with one of each of the ``ways``, a batch, its types of token, a layer's
    number and its maps. It returns the part of these that goes, and what stands in their place.
    """
    parts = []
    for batch in batches:
        types = tokens_by_type(batch, tokenizer)
        made = [
            _after(model, batch, norms, partial(cut, *way, batch, types)) for way in product(*ways)
        ]
        outputs, shares = (
            torch.stack(one, dim=1).unflatten(1, [*map(len, ways)])
            for one in zip(*made, strict=True)
        )
        parts.append([outputs_of(model, batch), outputs, *shares.unbind(dim=3)])
    return _by_name(("whole", "outputs", "weight", "norm"), parts, batches)


def _after(
    model: PreTrainedModel,
    batch: Batch,
    norms: ValueNorms,
    cut: Callable[[int, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs after a cut of each layer's maps, and shares of weights and of norms that go, shape (examples, 2)."""
    after: list[torch.Tensor] = []  # a layer's cut maps
    measured: list[torch.Tensor] = []  # of each layer, (examples, 2)

    def see(layer: int, maps: torch.Tensor, module: nn.Module, values: torch.Tensor) -> None:
        norms.see(module, values)
        gone, kept = cut(layer, maps)
        measured.append(_shares(maps, gone, norms.lengths, batch))
        after[:] = [kept]

    def edit(layer: int, given: torch.Tensor) -> torch.Tensor:
        outputs = after[0].to(norms.values.dtype) @ norms.values
        return outputs.transpose(1, 2).to(given.dtype)

    with attention_hooks(model, edit_outputs=edit, observe=see):
        outputs = outputs_of(model, batch)
    return outputs, torch.stack(measured).mean(dim=0)


def words_to_cut(
    maps: torch.Tensor,
    norms: ValueNorms,
    sink: torch.Tensor,
    words: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    """The part of a layer's maps that goes if words are dropped in an order until as much norm is gone as the sink has.

    Args:
        maps, norms, sink, words: as in :func:`part_to_cut`.
        order: of tokens, the first to go first, shape (examples, heads, tokens).

    Returns:
        Same shape as ``maps``; all attention to words in rows whose words have less.
    """
    norm = maps * norms.lengths[:, :, None]
    wanted = (norm * sink[:, None, None]).sum(dim=3, keepdim=True)
    order = order[:, :, None].expand_as(maps)
    own = (norm * words[:, None, None]).gather(3, order)
    left = wanted - (own.cumsum(dim=3) - own)  # before it is a word's turn
    share = (left / own.clamp(min=torch.finfo(maps.dtype).tiny)).clamp(0, 1)
    return maps * words[:, None, None] * torch.zeros_like(share).scatter(3, order, share)


def part_to_cut(
    maps: torch.Tensor, norms: ValueNorms, sink: torch.Tensor, words: torch.Tensor, what: str
) -> torch.Tensor:
    """The part of a layer's maps that goes; same shape.

    Args:
        maps: shape (examples, heads, tokens, tokens).
        norms: of the layer.
        sink, words: which tokens, shape (examples, tokens).
        what: "sink", or words by "weight", "norm" or "sum"; see :func:`cut_attention`.
    """
    to_sink, to_words = maps * sink[:, None, None], maps * words[:, None, None]
    if what == "sink":
        return to_sink

    def size(part: torch.Tensor) -> torch.Tensor:  # (examples, heads, tokens, 1)
        if what == "sum":
            return (part @ norms.vectors).norm(dim=3, keepdim=True)
        return (part * norms.lengths[:, :, None] if what == "norm" else part).sum(3, keepdim=True)

    tiny = torch.finfo(maps.dtype).tiny
    return to_words * (size(to_sink) / size(to_words).clamp(min=tiny)).clamp(max=1)


def put_instead(maps: torch.Tensor, gone: torch.Tensor, batch: Batch, instead: str) -> torch.Tensor:
    """A layer's maps without what goes, and with "nothing", "rest" or "mean" instead; a row of which nothing is left stays empty."""
    kept = maps - gone
    if instead == "rest":
        return kept / kept.sum(dim=3, keepdim=True).clamp(min=torch.finfo(maps.dtype).tiny)
    if instead == "mean":
        even = (batch.mask / batch.lengths[:, None])[:, None, None]
        return kept + gone.sum(dim=3, keepdim=True) * even.to(maps.dtype)
    return kept


def _shares(
    maps: torch.Tensor, gone: torch.Tensor, lengths: torch.Tensor, batch: Batch
) -> torch.Tensor:
    """Shares of a layer's weights and of its norms that go, means over heads and real tokens; shape (examples, 2)."""
    means = []
    for sizes in (torch.ones_like(lengths), lengths):
        of_rows, whole = (torch.einsum("ehqk,ehk->ehq", one, sizes) for one in (gone, maps))
        shares = (of_rows / whole).mean(dim=1) * batch.mask  # (examples, tokens)
        means.append(shares.sum(dim=1) / batch.lengths)
    return torch.stack(means, dim=1)
