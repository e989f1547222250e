"""What fine-tuned models with layers put back answer, kept in the cache: a second run of notebook 3 need not ask again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from ..common import cache
from ..encoders.saved import KIND
from .grafts import logits_or_nothing

_FILE = "logits.safetensors"


def saved_grafts(
    of_model: dict, rows: str, max_length: int, groups: Sequence[Sequence[int]], load: Callable
) -> list[np.ndarray]:
    """Outputs of a fine-tuned classifier with each group of layers put back, made if they are not in the cache.

    Args:
        of_model: what the classifier depends on, its start included; JSON values only.
        rows: digest of the dev rows.
        max_length: wordpieces at which their inputs are cut.
        groups: layers from 0.
        load: gives (classifier, start, batches); called only if they have to be made.

    Returns:
        As :func:`bertology_utils.drift.grafts.logits_or_nothing`.
    """

    def fill(target: Path, scratch: Path) -> None:
        tuned, start, batches = load()
        (target / _FILE).write_bytes(save({"logits": np.stack(logits_or_nothing(tuned, start, groups, batches))}))

    code = cache.code_digest(sys.modules[logits_or_nothing.__module__])
    of_groups = [list(group) for group in groups]
    key = {"code": code, "training": of_model, "put back": of_groups, "rows": rows, "max_length": max_length}
    return list(load_file(cache.entry(KIND, key, fill) / _FILE)["logits"])
