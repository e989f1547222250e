"""The sweep in lower precision, for looking around, with the number of predictions that this flips."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..attention import Batch
from .reference import Sweep
from .sweep import sweep

DTYPES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class LowPrecision:
    """A sweep in lower precision and how far it can be trusted.

    Attributes:
        sweep: its outputs.
        flipped: predictions that differ from those of full precision, among ``compared``.
        compared: those of the whole model and of the last layer's heads, where full precision is cheap.
        furthest: the largest difference of an output among them.
    """

    sweep: Sweep
    flipped: int
    compared: int
    furthest: float


def explore(model, batches: Sequence[Batch], dtype: torch.dtype = torch.bfloat16, **options) -> LowPrecision:
    """Sweep in lower precision; not for published numbers.

    Args:
        model: classifier in evaluation mode, in float32; it is copied.
        batches: the dev set.
        dtype: torch.bfloat16 or torch.float16.
        options: see :func:`bertology_utils.disabling.sweep.sweep`.

    Raises:
        ValueError: another type, or see the sweep.
    """
    if dtype not in DTYPES:
        raise ValueError(f"unknown lower precision {dtype}; choose one of: {', '.join(map(str, DTYPES))}")
    low = sweep(copy.deepcopy(model).to(dtype), batches, **options)
    last = model.config.num_hidden_layers - 1
    exact = sweep(model, batches, layers=[last], **{name: value for name, value in options.items() if name == "tokens_at_once"})
    at = list(options.get("layers") or range(last + 1))
    pairs = [(low.baseline, exact.baseline)] + ([(low.heads[at.index(last)], exact.heads[0])] if last in at else [])
    a, b = (np.concatenate([pair[side].reshape(-1, low.baseline.shape[-1]) for pair in pairs]) for side in (0, 1))
    # A regression has no classes to flip; its outputs' difference says how far it can be trusted.
    flipped = int((a.argmax(axis=1) != b.argmax(axis=1)).sum()) if a.shape[1] > 1 else 0
    return LowPrecision(low, flipped, len(a), float(np.abs(a - b).max()))
