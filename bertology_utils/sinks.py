"""Sinks, special tokens that receive much attention: what heads carry from them, and what a classifier answers without.

A head adds to token i the sum over j of a_ij f(x_j), where f(x_j) is token j's value vector times the
head's part of the output projection (:mod:`bertology_utils.attention`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from .attention import ValueNorms, by_norm, exchange_lengths
from .batches import Batch, check_batches
from .hooks import attention_hooks, device_of, unwrap
from .models import check, outputs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

TYPES = ("[CLS]", "[SEP]", "punctuation", "words")
# How a token's part in what a head gives is counted.
COUNTS = ("weight", "norm", "lengths exchanged", "projection")


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
    model: PreTrainedModel,
    batches: Sequence[Batch],
    tokenizer: PreTrainedTokenizerBase,
    seed: int,
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
    model = unwrap(model)
    norms = ValueNorms(model)
    rows: dict[int, tuple[np.ndarray, ...]] = {}  # by example
    for batch in check_batches(model, batches):
        batch = batch.to(device_of(model))
        types = tokens_by_type(batch, tokenizer).to(model.dtype)
        queries = (batch.mask / batch.lengths[:, None]).to(model.dtype)  # sum to 1
        layers: list[tuple[torch.Tensor, ...]] = []

        def see(layer: int, maps: torch.Tensor) -> None:
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

        hooks = attention_hooks(model, observe=see, observe_values=norms.see)
        with torch.inference_mode(), hooks:
            model(**batch.inputs)
        arrays = [torch.stack(one, dim=1).cpu().numpy() for one in zip(*layers, strict=True)]
        rows |= dict(zip(batch.index, zip(*arrays, strict=True), strict=True))
    ordered = zip(*(rows[at] for at in sorted(rows)), strict=True)
    return dict(zip(("share", "length", "output"), map(np.stack, ordered), strict=True))


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
ORDERS = ("one for all heads", "each head's own")  # in which whole words are dropped
DRAWS = 3  # of each order


@torch.inference_mode()
def cut_attention(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    tokenizer: PreTrainedTokenizerBase,
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
        ValueError: see :func:`bertology_utils.models.check` and
            :class:`bertology_utils.attention.ValueNorms`.
    """
    model = unwrap(model)
    batches = check(model, batches)
    norms, last = ValueNorms(model), model.config.num_hidden_layers - 1
    rows: dict[int, tuple[np.ndarray, ...]] = {}  # by example
    for batch in batches:
        batch = batch.to(device_of(model))
        types = tokens_by_type(batch, tokenizer)
        words = types[:, TYPES.index("words")]
        made = []
        for sink in SINKS.values():
            is_sink = types[:, sink].any(dim=1)
            for name, (what, instead) in CUTS.items():

                def part(layer: int, maps: torch.Tensor) -> torch.Tensor:
                    if name.endswith("last layer only") and layer < last:
                        return torch.zeros_like(maps)
                    return part_to_cut(maps, norms, is_sink, words, what)

                made.append(_without(model, batch, norms, part, instead))
        rows |= _by_example(batch, outputs_of(model, batch), made)
    return _in_order(rows, (len(SINKS), len(CUTS)))


@torch.inference_mode()
def cut_words(
    model: PreTrainedModel,
    batches: Sequence[Batch],
    tokenizer: PreTrainedTokenizerBase,
    seed: int,
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
        As :func:`cut_attention`, with axes of :data:`ORDERS` and of draws for sinks and cuts.

    Raises:
        ValueError: as :func:`cut_attention`.
    """
    model = unwrap(model)
    batches = check(model, batches, whole=False)  # an order follows from the example alone
    norms, rows = ValueNorms(model), dict[int, tuple[np.ndarray, ...]]()
    for batch in batches:
        batch = batch.to(device_of(model))
        types = tokens_by_type(batch, tokenizer)
        is_sink, words = types[:, SINKS["both"]].any(dim=1), types[:, TYPES.index("words")]
        made = []
        for own, draw in np.ndindex(len(ORDERS), DRAWS):

            def part(layer: int, maps: torch.Tensor) -> torch.Tensor:
                drawn = (seed, draw, layer + 1) if own else (seed, draw, 0)
                order = _random_order(batch, maps.shape[1] if own else 1, drawn)
                return words_to_cut(maps, norms, is_sink, words, order.expand(maps.shape[:3]))

            made.append(_without(model, batch, norms, part, "nothing"))
        rows |= _by_example(batch, outputs_of(model, batch), made)
    return _in_order(rows, (len(ORDERS), DRAWS))


def _without(
    model: PreTrainedModel,
    batch: Batch,
    norms: ValueNorms,
    part: Callable[[int, torch.Tensor], torch.Tensor],
    instead: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs without the part of each layer's maps, and shares of weights and of norms that go, shape (examples, 2)."""
    now: dict[str, torch.Tensor] = {}  # of the layer that is computed: its maps and its values
    measured: list[torch.Tensor] = []  # of each layer, (examples, 2)

    def see_values(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        norms.see(layer, module, values)
        now["values"] = values

    def see_maps(layer: int, maps: torch.Tensor) -> None:
        now["maps"] = maps

    def edit(layer: int, given: torch.Tensor) -> torch.Tensor:
        maps, values = now["maps"], now["values"]
        gone = part(layer, maps)
        measured.append(_shares(maps, gone, norms.lengths, batch))
        kept = put_instead(maps, gone, batch, instead)
        return (kept.to(values.dtype) @ values).transpose(1, 2).to(given.dtype)

    with attention_hooks(model, edit_outputs=edit, observe=see_maps, observe_values=see_values):
        outputs = outputs_of(model, batch)
    return outputs, torch.stack(measured).mean(dim=0)


def _by_example(
    batch: Batch, whole: torch.Tensor, made: list[tuple[torch.Tensor, torch.Tensor]]
) -> dict[int, tuple[np.ndarray, ...]]:
    outputs, shares = (torch.stack(one, dim=1) for one in zip(*made, strict=True))
    arrays = (one.cpu().numpy() for one in (whole, outputs, *shares.unbind(dim=2)))
    return dict(zip(batch.index, zip(*arrays, strict=True), strict=True))


def _in_order(
    rows: dict[int, tuple[np.ndarray, ...]], shape: tuple[int, int]
) -> dict[str, np.ndarray]:
    """Arrays of all examples, with the axis of cuts as two."""
    whole, *cut = (np.stack(one) for one in zip(*(rows[at] for at in sorted(rows)), strict=True))
    outputs, weight, norm = (one.reshape(len(one), *shape, *one.shape[2:]) for one in cut)
    return {"whole": whole, "outputs": outputs, "weight": weight, "norm": norm}


def _random_order(batch: Batch, heads: int, seed: tuple[int, ...]) -> torch.Tensor:
    """A random order of each input's tokens, by head, padding last; shape (examples, heads, tokens)."""
    shape = len(batch.index), heads, batch.mask.shape[1]
    keys = torch.full(shape, torch.inf, device="cpu")  # whatever torch's default is
    for row, (index, real) in enumerate(zip(batch.index, batch.mask.cpu(), strict=True)):
        drawn = np.random.default_rng((*seed, index)).random((heads, int(real.sum())))
        keys[row, :, real] = torch.from_numpy(drawn).float()
    return keys.argsort(dim=2).to(batch.mask.device)


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
