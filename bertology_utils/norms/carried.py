"""How much of a token's new vector comes from other tokens: the mixing ratio (Kobayashi et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..attention import Batch
from ..attention.hooks import attention_hooks
from ..attention.norms import output_projections

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# What the mixing ratio counts.
DEFINITIONS = ("weight", "norm", "norm with residual", "norm with residual and LayerNorm")


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
