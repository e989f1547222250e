"""What heads carry from [CLS], [SEP], punctuation and words: lengths of vectors, their parts of a head's output, its rank.

The length of a weighted vector does not see that vectors may cancel: lengths add up to more than
the length of their sum. What a token brings in the direction of the head's output does (Ferrando et
al., 2022), and such parts add up to the output's length.
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
from ..features import DESTINATIONS, side_by_side

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MARKS = DESTINATIONS[:3]  # [CLS], [SEP] and punctuation
KINDS = (*MARKS, "words")


@dataclass(frozen=True)
class Carried:
    """What the heads of a model carry in every example; f(x) is a token's value vector times the output projection.

    Attributes:
        lengths: mean ‖f(x)‖ of the tokens of each of :data:`KINDS`, shape (examples, kinds, layers,
            heads); NaN where the example has no such token.
        by_projection: of the sum of a_ij f(x_j) over the tokens j of a kind the part in the direction
            of the head's output at i, mean over i; same shape. The sum over kinds is the output's mean length.
        rank: participation ratio (Σ λ)² / Σ λ² of the squared singular values λ of the head's outputs
            at the example's tokens, from 1, if all tokens are given the same vector up to its size,
            to the head's size; shape (examples, layers, heads). NaN where a head adds nothing.
    """

    lengths: np.ndarray
    by_projection: np.ndarray
    rank: np.ndarray

    @property
    def output(self) -> np.ndarray:
        """Mean length of each head's output, shape (examples, layers, heads)."""
        return self.by_projection.sum(axis=1)

    @property
    def projection(self) -> np.ndarray:
        """Shares of each head's output by kind of token, shape (examples, layers, heads, kinds); they sum to 1."""
        return np.moveaxis(self.by_projection / self.output[:, None], 1, 3)


def carried(
    model: PreTrainedModel, batches: Sequence[Batch], special: Sequence[np.ndarray]
) -> Carried:
    """One pass that measures what every head carries.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: inputs.
        special: per example of the data which wordpieces are each of :data:`MARKS`, shape (3,
            wordpieces); all others are words.

    Raises:
        ValueError: see :class:`bertology_utils.attention.norms.ValueNorms`.
    """
    model = unwrap(model)
    norms, kinds = ValueNorms(model), [np.vstack([one, ~one.any(axis=0)]) for one in special]
    of_kind = real = torch.empty(
        0
    )  # (examples, kinds, tokens), and (examples, tokens) that sum to 1
    measured: list[tuple[torch.Tensor, ...]] = []  # of every layer

    def see_values(layer: int, module: nn.Module, values: torch.Tensor) -> None:
        norms.see(layer, module, values)

    def see_maps(layer: int, maps: torch.Tensor) -> None:
        f, lengths = norms.vectors, norms.lengths
        counts = of_kind.sum(dim=2)[..., None]  # (examples, kinds, 1)
        # (examples, kinds, heads, tokens, head size)
        parts = (maps[:, None] * of_kind[:, :, None, None]) @ f[:, None]
        output = parts.sum(dim=1)
        direction = nn.functional.normalize(output, dim=3)
        along = torch.einsum("eq,echqd,ehqd->ech", real, parts, direction)
        shown = (output * (real > 0)[:, None, :, None]).double()
        eigenvalues = torch.linalg.eigvalsh(shown.transpose(2, 3) @ shown).clamp(min=0)
        share = eigenvalues / eigenvalues.sum(dim=2, keepdim=True)
        of_tokens = torch.einsum("ehk,eck->ech", lengths, of_kind) / counts
        measured.append((of_tokens, along, 1 / (share**2).sum(dim=2)))

    rows: dict[int, tuple[np.ndarray, ...]] = {}
    with (
        torch.inference_mode(),
        attention_hooks(model, observe=see_maps, observe_values=see_values),
    ):
        for batch in batches:
            batch = batch.to(model.device)
            of_kind = side_by_side(kinds, batch).to(model.dtype)
            real = (batch.mask / batch.lengths[:, None]).to(model.dtype)
            measured.clear()
            model(**batch.inputs)
            # Layers stand before heads.
            parts = [torch.stack(one, dim=-2).cpu().numpy() for one in zip(*measured, strict=True)]
            rows |= dict(zip(batch.index, zip(*parts, strict=True), strict=True))
    ordered = [rows[index] for index in sorted(rows)]
    return Carried(*(np.stack(one).astype(np.float32) for one in zip(*ordered, strict=True)))
