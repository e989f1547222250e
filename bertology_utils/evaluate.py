"""Dev-set predictions of a classifier."""

from collections.abc import Sequence

import numpy as np
import torch

from .attention import Batch


def predict_logits(model, batches: Sequence[Batch]) -> np.ndarray:
    """Classifier outputs in the order of the data.

    Args:
        model: classifier in evaluation mode.
        batches: see :mod:`bertology_utils.batches`.

    Returns:
        float64 array of shape (examples, labels).

    Raises:
        FloatingPointError: an output is NaN or infinite.
    """
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
