"""What heads carry from [CLS], [SEP], punctuation and words, and how much of a new vector comes from other tokens.

Lengths of weighted vectors do not see that vectors may cancel: they add up to more than the length
of the sum. What a token brings in the direction of the head's output does (Ferrando et al., 2022),
and such parts add up to the output's length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..annotation.inputs import MARKS
from ..attention import Batch
from ..attention.hooks import attention_hooks, unwrap
from ..attention.norms import ValueNorms, output_projections
from ..features import side_by_side

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KINDS = (*MARKS, "words")
# What the mixing ratio counts.
DEFINITIONS = ("weight", "norm", "norm with residual", "norm with residual and LayerNorm")


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


# The mixing ratio (Kobayashi et al., 2021)


def normalisations(model: PreTrainedModel) -> dict[int, nn.LayerNorm]:
    """The layer normalisation of attention's output plus its input, by the attention module's identity."""
    norms: dict[int, nn.LayerNorm] = {}
    for module in model.modules():
        # BERT, RoBERTa, ELECTRA; DistilBERT; ALBERT.
        behind = getattr(getattr(module, "output", None), "LayerNorm", None)
        own = getattr(module, "LayerNorm", None) if hasattr(module, "query") else None
        pairs = (
            (getattr(module, "self", None), behind),
            (getattr(module, "attention", None), getattr(module, "sa_layer_norm", None)),
            (module, own),
        )
        for attends, norm in pairs:
            if attends is not None and isinstance(norm, nn.LayerNorm):
                norms[id(attends)] = norm
    return norms


class Mixing:
    """Measurement: of every token's new vector, the part that comes from other tokens.

    With s the vector that attention brings token i from itself, o from all
    others, x the residual and n the layer's normalisation as the linear map
    that it is at this token: the mean over tokens of 1 − a_ii over heads
    ("weight"), of ‖o‖ / (‖o‖ + ‖s‖) ("norm"), of ‖o‖ / (‖o‖ + ‖s + x‖), and of
    ‖n o‖ / (‖n o‖ + ‖n (s + x)‖). Biases of the output projection and of the
    normalisation belong to neither side.

    Args:
        model: encoder or classifier in evaluation mode.

    Raises:
        ValueError: the output projection or the normalisation behind attention cannot be named.
    """

    def __init__(self, model: PreTrainedModel):
        self._projections, self._norms = output_projections(model), normalisations(model)
        if not self._norms or not self._norms.keys() <= self._projections.keys():
            raise ValueError(
                f"the layers of {type(model).__name__} have no normalisation of attention's output plus its input that can be"
                " named, so their mixing ratio is not known; it is for BERT, RoBERTa, ELECTRA, DistilBERT and ALBERT"
            )
        # Identity of the attention module that was seen last, and its values.
        self._now: tuple[int, torch.Tensor] = (0, torch.empty(0))
        self._maps, self._batch = torch.empty(0), Batch({}, [])
        self._rows: dict[int, list[np.ndarray]] = {}

    @contextmanager
    def attach(self, model: PreTrainedModel) -> Iterator[None]:
        """See values and what is normalised behind attention, while ``observe`` is at work."""

        def see(layer: int, module: nn.Module, values: torch.Tensor) -> None:
            self._now = id(module), values

        with ExitStack() as hooks:
            hooks.enter_context(attention_hooks(model, observe_values=see))
            for key, norm in self._norms.items():
                hook = norm.register_forward_pre_hook(
                    lambda module, inputs, key=key: self._finish(key, module, inputs[0])
                )
                hooks.callback(hook.remove)
            yield

    def depends_on(self) -> tuple[()]:
        """Nothing of its own decides the result; see :func:`bertology_utils.digest.fingerprint`."""
        return ()

    def start(self, batch: Batch) -> None:
        """Remember the batch that comes next."""
        self._batch = batch
        self._rows |= {index: [] for index in batch.index}

    def update(self, layer: int, maps: torch.Tensor, batch: Batch) -> None:
        """Keep the layer's maps until its normalisation is reached."""
        self._maps = maps

    def _finish(self, key: int, norm: nn.LayerNorm, summed: torch.Tensor) -> None:
        """What the layer mixes; ``summed`` is attention's output plus residual, shape (examples, tokens, hidden)."""
        (seen, values), maps, projection = self._now, self._maps, self._projections[key]
        if seen != key:
            raise RuntimeError(
                "a layer was normalised before its attention was seen; hand Mixing to observe as a measurement"
            )

        def project(context: torch.Tensor) -> torch.Tensor:
            """(examples, heads, tokens, head size) to (examples, tokens, hidden), without the bias."""
            return context.transpose(1, 2).flatten(2) @ projection.weight.T.to(context.dtype)

        def normalised(part: torch.Tensor) -> torch.Tensor:
            return (part - part.mean(dim=2, keepdim=True)) / spread * norm.weight

        own_weight = torch.diagonal(maps, dim1=2, dim2=3)  # (examples, heads, tokens)
        own, brought = project(own_weight[..., None] * values), project(maps @ values)
        others = brought - own
        kept = own + summed - brought - (0 if projection.bias is None else projection.bias)
        spread = torch.sqrt(summed.var(dim=2, unbiased=False, keepdim=True) + norm.eps)
        pairs = (others, own), (others, kept), (normalised(others), normalised(kept))
        ratios = [1 - own_weight.mean(dim=1)]  # each (examples, tokens)
        for mixed, preserved in pairs:
            mixed_length = mixed.norm(dim=2)
            ratios.append(mixed_length / (mixed_length + preserved.norm(dim=2)))
        real = self._batch.mask[:, None].to(maps.dtype)
        means = (torch.stack(ratios, dim=1) * real).sum(dim=2) / real.sum(dim=2)
        for index, row in zip(self._batch.index, means.double().cpu().numpy(), strict=True):
            self._rows[index].append(row)

    def compute(self) -> np.ndarray:
        """Ratios from 0 to 1, shape (examples, layers, definitions), in the order of :data:`DEFINITIONS`."""
        return np.stack([np.stack(self._rows[index]) for index in sorted(self._rows)])
