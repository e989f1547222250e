"""Attention to types of token, such as nouns or [SEP] (§4.4, Fig 6), and to shared words (§5): what one pass measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from .attention import Measure
from .batches import Batch, laid_out, received
from .words import LINGUISTIC, MARKS, AnnotatedInput, token_types

# Of all attention, in this order: a token that is two of these counts as the first.
DESTINATIONS = ("[CLS]", "[SEP]", "punctuation", "previous", "self", "next", "all else")
PLACES_PER_DECADE = 5  # so many positions weigh as much as a factor of ten in frequency


ALL_TYPES = (*LINGUISTIC, *MARKS, "words")


def types_of(annotated: AnnotatedInput) -> np.ndarray:
    """Which wordpieces of an input are of each of :data:`ALL_TYPES`, shape (types, wordpieces).

    Those of :data:`bertology_utils.words.TOKEN_TYPES`, and "words": all that are neither
    special tokens nor punctuation. Each wordpiece is one of the last four.
    """
    of_marks = marks(annotated)
    words = ~of_marks.any(axis=0, keepdims=True)
    return np.concatenate([token_types(annotated)[: len(LINGUISTIC)], of_marks, words])


def received_by_token(maps: torch.Tensor, batch: Batch) -> list[np.ndarray]:
    """Measure: what every token receives from the average token, the mean of its column; of each example (heads, tokens), sums 1."""
    every = received(maps, batch).cpu().numpy()  # (examples, heads, tokens)
    return [one[:, real] for one, real in zip(every, batch.mask.cpu().numpy(), strict=True)]


def largest(columns: Sequence[np.ndarray], types: Sequence[np.ndarray]) -> np.ndarray:
    """What the most attended token of each type receives (§4.4).

    Args:
        columns: per example, shape (…, tokens), as from :func:`received_by_token`.
        types: per example, from :func:`types_of` or :func:`match`.

    Returns:
        Shape (examples, types, …); NaN where an example has no token of the type.
    """
    values = np.full((len(columns), len(types[0]), *columns[0].shape[:-1]), np.nan)
    for at, (one, masks) in enumerate(zip(columns, types, strict=True)):
        for kind in np.flatnonzero(masks.any(axis=1)):
            values[at, kind] = one[..., masks[kind]].max(axis=-1)
    return values


def match(inputs: Sequence[AnnotatedInput], seed: int) -> list[np.ndarray]:
    """Pair every token of a type with a word's token of the same input that is not of the type.

    Pairs are chosen so that the sum of their distances is smallest, in positions and in frequency.
    Where there are fewer others than tokens of the type, the best pairs are kept. Ties are broken
    at random.

    Args:
        inputs: the inputs; frequencies are counted over all of them.
        seed: of the random numbers that break ties.

    Returns:
        Per input shape (2 · types, wordpieces): the paired tokens of each of ``LINGUISTIC``, then
        their matched words.
    """
    counts = Counter(piece for annotated in inputs for piece in annotated.ids)
    rng = np.random.default_rng(seed)
    masks = []
    for annotated in inputs:
        places_of_words = [
            at for word, pieces in annotated.words if word.upos != "PUNCT" for at in pieces
        ]
        words = np.isin(range(annotated.length), places_of_words)
        rarity = np.log10([counts[piece] for piece in annotated.ids])
        both = np.zeros((2 * len(LINGUISTIC), annotated.length), dtype=bool)
        for number, of_type in enumerate(token_types(annotated)[: len(LINGUISTIC)]):
            own, others = np.flatnonzero(of_type), np.flatnonzero(words & ~of_type)
            places = np.abs(others - own[:, None])  # (tokens of the type, others)
            frequencies = np.abs(rarity[others] - rarity[own][:, None])
            jitter = 1e-6 * rng.random(places.shape)
            chosen = linear_sum_assignment(places / PLACES_PER_DECADE + frequencies + jitter)
            both[number, own[chosen[0]]] = both[len(LINGUISTIC) + number, others[chosen[1]]] = True
        masks.append(both)
    return masks


def marks(annotated: AnnotatedInput) -> np.ndarray:
    """[CLS], [SEP] and punctuation of an input, each wordpiece at most one of them: shape (3, wordpieces)."""
    cls, separators, points = token_types(annotated)[len(LINGUISTIC) :]
    # A text can spell out "[SEP]".
    return np.stack([cls, separators & ~cls, points & ~separators & ~cls])


def destinations(marks: Sequence[np.ndarray]) -> Measure:
    """Measure: how each head divides its attention among :data:`DESTINATIONS`.

    Of each example shape (heads, 7): shares of the average token's attention, which sum to 1.

    Args:
        marks: per example of the data, from :func:`marks`.
    """

    def measure(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
        own = laid_out([marks[index] for index in batch.index], batch, 0).to(maps)
        to_marks = torch.einsum("ehk,emk->ehm", received(maps, batch), own)
        words = 1 - own.amax(dim=1)  # (examples, tokens)
        nearby = to_neighbours(maps * words[:, None, None], batch)
        shares = torch.cat([to_marks, nearby], dim=2)
        return torch.cat([shares, 1 - shares.sum(dim=2, keepdim=True)], dim=2)

    return measure


def to_neighbours(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Measure: what the average real token gives the token before it, itself and the one behind it, shape (examples, heads, 3)."""
    maps, lengths = maps * batch.mask[:, None, :, None], batch.lengths[:, None, None]
    # Each (examples, heads, queries that have this neighbour)
    weights = [torch.diagonal(maps, offset, dim1=2, dim2=3) for offset in (-1, 0, 1)]
    return torch.stack([(one / lengths).sum(dim=2) for one in weights], dim=2)


def twin_words(tokenizer: Any) -> Measure:
    """Measure: what a word gives its twins in the other sentence minus what it gives that sentence's other words (§5).

    Mean over the words that have a twin, both ways. Punctuation and special tokens do not count as
    words. Of each example shape (heads,), NaN for an input without such words.

    Args:
        tokenizer: tells words from special tokens and punctuation.
    """
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    special = set(tokenizer.all_special_ids)
    letters = [any(map(str.isalnum, token.strip("Ġ▁Ċ"))) for token in tokens]
    is_word = torch.tensor([one and at not in special for at, one in enumerate(letters)])

    def measure(maps: torch.Tensor, batch: Batch) -> torch.Tensor:
        ids = batch.inputs["input_ids"]
        words = is_word.to(ids.device)[ids] & batch.mask
        ends = (ids == tokenizer.sep_token_id) & batch.mask
        second = ends.cumsum(dim=1) - ends.long() > 0  # behind the first sentence; (examples, L)
        across = second[:, :, None] != second[:, None]  # (examples, queries, keys)
        across &= words[:, :, None] & words[:, None]
        twins = across & (ids[:, :, None] == ids[:, None])
        others = across & ~twins
        able = (twins.any(dim=2) & others.any(dim=2))[:, None]  # (examples, 1, queries)

        def mean_weight(cells: torch.Tensor) -> torch.Tensor:
            """Of these cells in each row: (examples, heads, queries)."""
            cells = cells[:, None].double()
            return (maps.double() * cells).sum(dim=3) / cells.sum(dim=3).clamp(min=1)

        excess = (mean_weight(twins) - mean_weight(others)) * able
        return excess.sum(dim=2) / able.sum(dim=2)

    return measure
