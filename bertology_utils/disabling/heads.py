"""What a head does, to set beside what its disabling costs: gradients, attention to shared words (§5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from ..attention import Batch
from ..attention.hooks import attention_hooks, shape_of


def gradient_importance(model, batches: Sequence[Batch]) -> np.ndarray:
    """A head's importance from one backward pass, shape (layers, heads), to compare with its exact effect.

    How much the loss of an example would change, to first order, if a head's
    output were scaled (Michel, Levy and Neubig, 2019, eq. 2): the mean over
    examples of ``|∂loss/∂ξ|`` at ξ = 1, where ξ multiplies the head's output,
    that is of the absolute sum of output × gradient over the example's tokens.

    Args:
        model: a classifier in evaluation mode.
        batches: with gold labels.

    Raises:
        ValueError: labels that are missing or not numbers, or see
            :func:`bertology_utils.attention.hooks.attention_hooks`.
    """
    outputs: list[torch.Tensor] = []  # per layer, (examples, tokens, heads, head size)

    def keep(layer: int, context: torch.Tensor) -> torch.Tensor:
        # The first is a leaf: below it no gradient is needed, and parameters may be frozen.
        outputs.append(context if layer else context.detach().requires_grad_())
        return outputs[-1]

    device, examples = next(model.parameters()).device, 0
    total = torch.zeros(shape_of(model), dtype=torch.float64, device=device)
    with torch.enable_grad(), attention_hooks(model, edit_outputs=keep):
        for batch in batches:
            batch = batch.to(device)
            if batch.labels is None or not torch.isfinite(batch.labels.float()).all():
                raise ValueError(
                    "some labels are missing; importance is that of the loss, which needs them"
                )
            outputs.clear()
            loss = _loss(model(**batch.inputs).logits, batch.labels)
            gradients = torch.autograd.grad(loss, outputs)
            products = torch.stack(
                [out.detach() * slope for out, slope in zip(outputs, gradients, strict=True)]
            )  # (layers, examples, tokens, heads, size)
            # Of every example summed before its absolute value is taken.
            total += products.double().sum(dim=(2, 4)).abs().sum(dim=1)
            examples += len(batch.index)
    return (total / examples).cpu().numpy()


def _loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Sum of the examples' losses, so that each example's gradient is its own."""
    if logits.shape[1] == 1:
        return functional.mse_loss(logits[:, 0], labels.to(logits), reduction="sum")
    return functional.cross_entropy(logits, labels, reduction="sum")


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
