"""Attention between words that both sentences of an input have (§5)."""

from __future__ import annotations

import numpy as np
import torch

from ..attention import Batch


class TwinWords:
    """Measurement: what a word gives its twins in the other sentence minus what it gives that sentence's other words.

    Mean over the words that have a twin, both ways. Punctuation and special
    tokens do not count as words.

    Args:
        tokenizer: tells words from special tokens and punctuation.
    """

    def __init__(self, tokenizer):
        self._separator = tokenizer.sep_token_id
        tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        special = set(tokenizer.all_special_ids)
        self._is_word = torch.tensor(
            [
                at not in special and any(character.isalnum() for character in token.strip("Ġ▁Ċ"))
                for at, token in enumerate(tokens)
            ]
        )
        self._rows: dict[int, list[np.ndarray]] = {}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        ids = batch.inputs["input_ids"]
        words = self._is_word.to(ids.device)[ids] & batch.mask
        ends = (ids == self._separator) & batch.mask
        sentence = ends.cumsum(dim=1) - ends.long()  # 0 in the first sentence, more behind it
        second = (sentence > 0).long()
        across = (second[:, :, None] != second[:, None]) & words[:, :, None] & words[:, None]  # (examples, queries, keys)
        twins = across & (ids[:, :, None] == ids[:, None])
        others = across & ~twins
        able = (twins.any(dim=2) & others.any(dim=2))[:, None]  # (examples, 1, queries)

        def given(cells: torch.Tensor) -> torch.Tensor:
            """Mean weight of these cells in each row: (examples, heads, queries)."""
            cells = cells[:, None].double()
            return (maps.double() * cells).sum(dim=3) / cells.sum(dim=3).clamp(min=1)

        apart = ((given(twins) - given(others)) * able).sum(dim=2) / able.sum(dim=2)  # NaN where no word has a twin
        for index, values in zip(batch.index, apart.cpu().numpy(), strict=True):
            self._rows.setdefault(index, []).append(values)

    def compute(self) -> np.ndarray:
        """Shape (examples, layers, heads), NaN for an input without such words."""
        return np.stack([np.stack(self._rows[index]) for index in sorted(self._rows)])
