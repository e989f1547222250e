"""One head's own weights, to compute its attention by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..common import to_code, to_people
from .interface import shape_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def head_weights(model: PreTrainedModel, layer: int, head: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The matrix and the bias that make a head's queries, keys and values.

    A model keeps those of all heads of a layer in one matrix; these are the head's rows.

    Args:
        model: encoder or classifier of BERT's layout: BERT, RoBERTa or ELECTRA.
        layer, head: from 0.

    Returns:
        By "query", "key" and "value": a matrix, shape (head size, hidden size), and a bias, shape (head size,).

    Raises:
        ValueError: no such layer or head, or a model that is laid out otherwise.
    """
    for kind, index, count in zip(("layer", "head"), (layer, head), shape_of(model), strict=True):
        to_code(to_people(index), count, kind)
    try:
        attention = model.base_model.encoder.layer[layer].attention.self
        parts = {name: getattr(attention, name) for name in ("query", "key", "value")}
    except AttributeError:
        raise ValueError(
            f"the layers of {type(model).__name__} are not laid out as BERT's, so its heads cannot be computed by hand"
            " here; BERT, RoBERTa and ELECTRA can, and attention_maps reads the maps of any other"
        ) from None
    size = parts["query"].out_features // model.config.num_attention_heads
    rows = slice(head * size, (head + 1) * size)
    return {name: (linear.weight.detach()[rows], linear.bias.detach()[rows]) for name, linear in parts.items()}
