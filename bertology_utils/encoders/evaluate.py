"""Dev-set predictions of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..attention import Batch, check_length

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def predict_logits(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """Classifier outputs in the order of the data.

    Args:
        model: classifier in evaluation mode.
        batches: see :mod:`bertology_utils.attention.batches`.

    Returns:
        float64 array of shape (examples, labels).

    Raises:
        FloatingPointError: an output is NaN or infinite.
        ValueError: see :func:`check`.
    """
    check(model, batches)
    device = next(model.parameters()).device
    order: list[int] = []
    parts: list[np.ndarray] = []
    with torch.inference_mode():
        for batch in batches:
            parts.append(model(**batch.to(device).inputs).logits.double().cpu().numpy())
            order += batch.index
    logits = np.concatenate(parts)[np.argsort(order)]
    if not np.isfinite(logits).all():
        raise FloatingPointError(f"{(~np.isfinite(logits)).any(axis=1).sum()} examples have NaN or infinite outputs")
    return logits


def classifier_inputs(model: PreTrainedModel, batches: Sequence[Batch]) -> np.ndarray:
    """What the last layer of the classifier reads, in the order of the data: float64, shape (examples, features).

    Raises:
        ValueError: see :func:`check`; or the model ends in no linear layer.
    """
    encoder = {id(module) for module in model.base_model.modules()}
    above = [module for module in model.modules() if isinstance(module, torch.nn.Linear) and id(module) not in encoder]
    if not above:
        raise ValueError(f"{type(model).__name__} has no linear layer above its encoder, so there is nothing to draw anew")
    read: list[torch.Tensor] = []
    hook = above[-1].register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].double().cpu()))
    try:
        predict_logits(model, batches)
    finally:
        hook.remove()
    order = [index for batch in batches for index in batch.index]
    return torch.cat(read).numpy()[np.argsort(order)]


def check(model: PreTrainedModel, batches: Sequence[Batch]) -> None:
    """Refuse what cannot be predicted, before any time is spent.

    Raises:
        ValueError: no examples, a model without a classifier, or an input longer than the model can read.
    """
    if not batches:
        raise ValueError("no examples to predict; give at least one batch")
    if not type(model).__name__.endswith("SequenceClassification"):
        raise ValueError(
            f"{type(model).__name__} has no classifier on top; load a model for sequence classification, such as with"
            " bertology_utils.load_classifier"
        )
    for batch in batches:
        check_length(model, batch)
