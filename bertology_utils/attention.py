"""Attention maps of a model, read inside its forward pass; and attention weights times what they multiply (§3).

:func:`attention_maps` returns all maps of one batch; :func:`observe` gives those of a data set to functions
that measure; :func:`map_similarity` compares those of two models (§4.3). *By norm*, a weight is multiplied
by the length of the vector that it multiplies (Kobayashi et al., 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .batches import Batch, in_order, prepare
from .common import one_of
from .hooks import attention_hooks, shape_of, unwrap, weight_and_bias

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# What a map is of: the paper's attention weights, or what they carry (Kobayashi et al., 2020).
ATTENTIONS = ("weight", "norm")
# What the output projection is called where it belongs to the attention module itself.
_OUTPUTS = ("out_lin", "dense", "Wo", "o_proj", "out_proj")
# Of one layer's maps and their batch, what is measured in each of its examples.
Measure = Callable[[torch.Tensor, Batch], Iterable[Any]]


def output_projections(model: PreTrainedModel) -> dict[int, Any]:
    """The linear layer behind the heads of every attention module, by the module's identity.

    In BERT's naming it stands beside the module that attends (BERT, RoBERTa,
    ELECTRA, multilingual BERT), in others inside it (DistilBERT, ALBERT, ModernBERT).
    """
    projections: dict[int, Any] = {}
    for module in model.modules():
        inner = getattr(module, "self", None)
        behind = getattr(getattr(module, "output", None), "dense", None)
        if isinstance(inner, nn.Module) and hasattr(behind, "in_features"):
            projections[id(inner)] = behind
        parts = (getattr(module, name, None) for name in _OUTPUTS)
        own = [part for part in parts if hasattr(part, "in_features")]
        if len(own) == 1:
            projections.setdefault(id(module), own[0])
    return projections


class ValueNorms:
    """The lengths ‖f(x)‖ of what the heads of a model read from each token, layer by layer.

    Args:
        model: encoder or classifier.

    Raises:
        ValueError: no output projection can be named.
    """

    def __init__(self, model: PreTrainedModel):
        self._name, self._projections = type(model).__name__, output_projections(model)
        # By the projection's identity, (heads, head size, head size).
        self._factors: dict[int, torch.Tensor] = {}
        # In the layer seen last: its values; f(x) in the head's own coordinates, in which lengths and angles are
        # the same, (examples, heads, tokens, head size); and ‖f(x)‖, (examples, heads, tokens).
        self.values, self.vectors, self.lengths = torch.empty(3, 0)
        if not self._projections:
            raise self._unknown()

    def see(self, module: nn.Module, values: torch.Tensor) -> None:
        """Take in a layer's values, shape (examples, heads, tokens, head size); see ``attention_hooks``."""
        projection, self.values = self.behind(module, values), values
        if id(projection) not in self._factors:
            weight, _ = weight_and_bias(projection, values)
            self._factors[id(projection)] = head_factors(weight, values.shape[1])
        self.vectors = values @ self._factors[id(projection)].transpose(1, 2)
        self.lengths = self.vectors.norm(dim=3)

    def behind(self, module: nn.Module, values: torch.Tensor) -> Any:
        """The output projection behind an attention module; raises ValueError if there is none of its size."""
        projection = self._projections.get(id(module))
        if projection is None or projection.in_features != values.shape[1] * values.shape[3]:
            raise self._unknown()
        return projection

    def _unknown(self) -> ValueError:
        return ValueError(
            f"the output projection of {self._name}'s attention cannot be named, so what its heads carry is not known;"
            " measure it with attention='weight'. It is known for BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT and ModernBERT"
        )


def head_factors(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Per head a small matrix R with ‖R v‖ = ‖W v‖, from W = Q R with orthonormal columns of Q.

    So that a vector of the head's size need not be projected to the model's to
    know its length, and no square is taken that would cost half of the digits.

    Args:
        weight: of the output projection, shape (hidden, heads · head size).
        heads: how many.

    Returns:
        Shape (heads, head size, head size).
    """
    factors = torch.linalg.qr(_by_head(weight.detach().double(), heads), mode="r").R
    return factors.to(torch.promote_types(weight.dtype, torch.float32))


def _by_head(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """(hidden, heads · head size) to (heads, hidden, head size)."""
    return weight.reshape(len(weight), heads, -1).transpose(0, 1)


def by_norm(maps: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Shares of what each token receives: a_ij ‖f(x_j)‖, every row divided by its sum.

    Args:
        maps: weights, shape (examples, heads, tokens, tokens).
        lengths: ‖f(x)‖, shape (examples, heads, tokens).

    Returns:
        Same shape as ``maps``; rows sum to 1, but for a head that carries nothing at all, whose
        rows are 0.
    """
    carried = maps * lengths[:, :, None, :]  # (examples, heads, queries, keys)
    return carried / carried.sum(dim=3, keepdim=True).clamp(min=torch.finfo(maps.dtype).tiny)


def vectors(model: PreTrainedModel, batch: Batch) -> list[torch.Tensor]:
    """f(x) of every token itself, for looking at: per layer (examples, heads, tokens, hidden).

    Raises:
        ValueError: see :class:`ValueNorms` and :func:`bertology_utils.hooks.attention_hooks`.
    """
    model, (batch,) = prepare(model, batch, whole=False)
    norms, by_layer = ValueNorms(model), list[torch.Tensor]()

    def see(layer: int, maps: torch.Tensor, module: nn.Module, values: torch.Tensor) -> None:
        # (heads, hidden, head size)
        weight, _ = weight_and_bias(norms.behind(module, values), values)
        weights = _by_head(weight, values.shape[1])
        by_layer.append(values @ weights.transpose(1, 2).to(values.dtype))

    with torch.no_grad(), attention_hooks(model, observe=see):
        model(**batch.inputs)
    return by_layer


def attention_maps(
    model: PreTrainedModel, batch: Batch, attention: str = "weight"
) -> list[torch.Tensor]:
    """All maps of one batch: per layer (examples, heads, tokens, tokens); padded keys are exactly 0, rows of padded queries mean nothing.

    Args:
        model: encoder or classifier in evaluation mode.
        batch: the inputs.
        attention: "weight", or "norm": what the weights carry, see :func:`by_norm`.

    Raises:
        TypeError, ValueError: see :func:`bertology_utils.batches.prepare`; the model shows no maps; another
            attention; by norm, the model's output projection cannot be named.
    """
    model, batches = prepare(model, batch, whole=False)
    if len(batches) > 1:
        raise ValueError(f"{len(batches)} batches are given; look at the maps of one at a time")
    norms = ValueNorms(model) if one_of("attention", attention, ATTENTIONS) == "norm" else None
    by_layer: list[torch.Tensor] = []
    _read(model, batches[0], norms, lambda maps: by_layer.append(maps[attention]))
    return by_layer


def _read(
    model: PreTrainedModel,
    batch: Batch,
    norms: ValueNorms | None,
    see: Callable[[Mapping[str, torch.Tensor]], None],
) -> None:
    """One pass over a batch, in which ``see`` is given every layer's maps: by weight, and with ``norms`` by norm."""

    def show(_: int, maps: torch.Tensor, module: nn.Module, values: torch.Tensor) -> None:
        if maps.shape[3] != (tokens := batch.mask.shape[1]):
            raise ValueError(
                f"{type(model).__name__} shows maps of {maps.shape[3]} tokens where the input has {tokens}; give a"
                " model without virtual tokens"
            )
        shown = {"weight": maps}
        if norms:
            norms.see(module, values)
            shown["norm"] = by_norm(maps, norms.lengths)
        see(shown)

    # Not in inference mode, whose tensors nobody could change or train a probe on.
    with torch.no_grad(), attention_hooks(model, observe=show):
        model(**batch.inputs)


def observe(
    model: PreTrainedModel,
    batches: Batch | Iterable[Batch],
    measures: Mapping[str, Measure],
    by_norm: Collection[str] = (),
) -> dict[str, list[np.ndarray]]:
    """What is measured in every layer's maps, example by example.

    Args:
        model: encoder or classifier in evaluation mode.
        batches: of a whole data set; moved to the model's device.
        measures: by name; each a function of one layer's maps, shape (examples, heads, tokens, tokens), and
            of their batch, that gives a number or an array for each of its examples, such as ``lambda maps, batch:
            received(maps, batch)[..., 0]``: what the first token receives, by head.
        by_norm: names of those that see what the weights carry in place of weights; see :func:`attention_maps`.

    Returns:
        By name, for each example in the order of the data, the layers' values: shape (layers, …).

    Raises:
        TypeError, ValueError: see :func:`attention_maps`; or ``by_norm`` names no measure.
    """
    for name in by_norm:
        one_of("measure by norm", name, measures)
    model, batches = prepare(model, batches)
    norms = ValueNorms(model) if by_norm else None
    found: dict[str, dict[int, np.ndarray]] = {name: {} for name in measures}
    for batch in batches:
        layers: dict[str, list[Any]] = {name: [] for name in measures}

        # Within the pass: then one layer's maps are kept at a time, and autocast rounds no measure.
        def see(
            maps: Mapping[str, torch.Tensor],
            batch: Batch = batch,
            layers: dict[str, list[Any]] = layers,
        ) -> None:
            for name, measure in measures.items():
                values = measure(maps[ATTENTIONS[name in by_norm]], batch)
                if isinstance(values, torch.Tensor):
                    values = values.detach().cpu().numpy()
                layers[name].append([*values])

        _read(model, batch, norms, see)
        for name, several in layers.items():
            every = zip(batch.index, zip(*several, strict=True), strict=True)
            found[name] |= {index: np.stack(values) for index, values in every}
    return {name: [each[index] for index in sorted(each)] for name, each in found.items()}


def map_similarity(model: Any, reference: Any, batches: Iterable[Batch]) -> np.ndarray:
    """Cosine similarity of two models' flattened attention maps (§4.3).

    Args:
        model, reference: of the same layers and heads.
        batches: inputs.

    Returns:
        Shape (examples, layers, heads), examples in the order of the data.

    Raises:
        ValueError: models of different shapes, one model given twice, or see
            :func:`bertology_utils.batches.prepare`.
    """
    (model, batches), reference = prepare(model, batches), unwrap(reference)
    if set(model.base_model.parameters()) == set(reference.base_model.parameters()):
        raise ValueError(
            "both models are one and the same, changed in place (as by PEFT); compare with a copy made before"
        )
    if shape_of(model) != shape_of(reference):
        raise ValueError(
            f"(layers, heads) are {shape_of(model)} and {shape_of(reference)}; compare models of the same shape"
        )
    return 1 - compare_maps([(model, reference)], batches)[0, 0]


def compare_maps(pairs: Sequence[tuple[Any, Any]], batches: Sequence[Batch]) -> np.ndarray:
    """Of each pair of models' maps 1 minus the cosine, and the share of attention that lies elsewhere (§4.3).

    Args:
        pairs: of models of the same layers and heads; each model's maps are made once.
        batches: inputs.

    Returns:
        Shape (2, pairs, examples, layers, heads), examples in the order of the data.
    """
    models, parts = {id(model): model for pair in pairs for model in pair}, []
    for batch in batches:
        maps = {key: attention_maps(model, batch) for key, model in models.items()}
        both = [_compare(maps[id(one)], maps[id(other)], batch.mask) for one, other in pairs]
        parts.append(torch.stack(both, dim=2).transpose(0, 1))
    return np.moveaxis(in_order(parts, batches), 0, 2)


def _compare(
    some: list[torch.Tensor], others: list[torch.Tensor], mask: torch.Tensor
) -> torch.Tensor:
    """The two numbers of one batch's maps by two models, shape (2, examples, layers, heads)."""
    compared = []
    for one, other in zip(some, others, strict=True):  # layer by layer
        real = mask[:, None, :, None].to(one.device)  # without the rows of padding
        one, other = one.double() * real, other.to(one.device).double() * real
        moved = (one - other).abs().sum((2, 3)) / 2 / real.sum((2, 3))
        cosine = functional.cosine_similarity(one.flatten(2), other.flatten(2), dim=2)
        compared.append(torch.stack([1 - cosine, moved]))
    return torch.stack(compared, dim=2)
