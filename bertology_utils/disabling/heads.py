"""What a head does, to set beside what its disabling costs: attention to shared words (§5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..attention import Batch


class TwinWords:
    """Measurement: what a word gives its twins in the other sentence minus what it gives that sentence's other words (§5).

    Mean over the words that have a twin, both ways. Punctuation and special
    tokens do not count as words.

    Args:
        tokenizer: tells words from special tokens and punctuation.
    """

    def __init__(self, tokenizer: Any):
        self._separator = tokenizer.sep_token_id
        tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        special = set(tokenizer.all_special_ids)
        is_word = [any(map(str.isalnum, token.strip("Ġ▁Ċ"))) for token in tokens]
        self._is_word = torch.tensor(
            [is_word[at] and at not in special for at in range(len(tokens))]
        )
        self._rows: dict[int, list[np.ndarray]] = {}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Measure one layer; see :class:`bertology_utils.attention.Measurement`."""
        ids = batch.inputs["input_ids"]
        words = self._is_word.to(ids.device)[ids] & batch.mask
        ends = (ids == self._separator) & batch.mask
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
        excess = excess.sum(dim=2) / able.sum(
            dim=2
        )  # (examples, heads); NaN where no word has a twin
        for index, values in zip(batch.index, excess.cpu().numpy(), strict=True):
            self._rows.setdefault(index, []).append(values)

    def compute(self) -> np.ndarray:
        """Shape (examples, layers, heads), NaN for an input without such words."""
        return np.stack([np.stack(self._rows[index]) for index in sorted(self._rows)])
