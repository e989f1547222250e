"""Sinks, special tokens that receive much attention: what heads carry from them, and what a classifier answers without.

A head adds to token i the sum over j of a_ij f(x_j), where f(x_j) is token j's value vector times the
head's part of the output projection (:mod:`bertology_utils.attention.norms`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from .attention import Batch
from .attention.batches import check_batches
from .attention.hooks import attention_hooks, device_of, unwrap
from .attention.norms import ValueNorms, by_norm, exchange_lengths
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
        ValueError: see :class:`bertology_utils.attention.norms.ValueNorms`.
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
            :class:`bertology_utils.attention.norms.ValueNorms`.
    """
    model = unwrap(model)
    batches = check(model, batches)
    norms, last = ValueNorms(model), model.config.num_hidden_layers - 1
    now: dict[str, torch.Tensor] = {}  # of the layer that is computed: its maps and its values

    def see_values(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        norms.see(layer, module, values)
        now["values"] = values

    def see_maps(layer: int, maps: torch.Tensor) -> None:
        now["maps"] = maps

    rows: dict[int, tuple[np.ndarray, ...]] = {}  # by example
    for batch in batches:
        batch = batch.to(device_of(model))
        types = tokens_by_type(batch, tokenizer)
        words = types[:, TYPES.index("words")]
        outputs, shares = [], []
        for sink in SINKS.values():
            is_sink = types[:, sink].any(dim=1)
            for name, (what, instead) in CUTS.items():
                measured: list[torch.Tensor] = []  # of each layer, (examples, 2)

                def edit(layer: int, given: torch.Tensor) -> torch.Tensor:
                    maps, values = now["maps"], now["values"]
                    gone = part_to_cut(maps, norms, is_sink, words, what)
                    if name.endswith("last layer only") and layer < last:
                        gone = torch.zeros_like(maps)
                    measured.append(_shares(maps, gone, norms.lengths, batch))
                    kept = put_instead(maps, gone, batch, instead)
                    return (kept.to(values.dtype) @ values).transpose(1, 2).to(given.dtype)

                with attention_hooks(
                    model, edit_outputs=edit, observe=see_maps, observe_values=see_values
                ):
                    outputs.append(outputs_of(model, batch))
                shares.append(torch.stack(measured).mean(dim=0))
        cut, parts = torch.stack(outputs, dim=1), torch.stack(shares, dim=1)
        arrays = outputs_of(model, batch), cut.unflatten(1, (len(SINKS), -1)), *parts.unbind(dim=2)
        rows |= dict(
            zip(batch.index, zip(*(one.cpu().numpy() for one in arrays), strict=True), strict=True)
        )
    whole, after, weight, norm = (
        np.stack(one) for one in zip(*(rows[at] for at in sorted(rows)), strict=True)
    )
    shape = after.shape[:3]
    return {
        "whole": whole,
        "outputs": after,
        "weight": weight.reshape(shape),
        "norm": norm.reshape(shape),
    }


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
