"""A fine-tuned classifier's answers, kept in the cache: every notebook asks first whether it learned its task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..common import cache
from .evaluate import predict_logits

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..attention import Batch

KIND = "answers"  # of entries in the cache
_FILE = "logits.safetensors"


def saved_logits(
    of_model: dict[str, object], rows: str, max_length: int, load: Callable[[], tuple[PreTrainedModel, list[Batch]]]
) -> np.ndarray:
    """Outputs of a classifier from the cache, made if they are not there.

    Args:
        of_model: what the classifier depends on; JSON values only.
        rows: digest of the dev rows.
        max_length: wordpieces at which their inputs are cut.
        load: gives (model, batches); called only if they have to be made.

    Returns:
        Shape (examples, labels), in the order of the data.
    """
    from safetensors.numpy import load_file, save

    def fill(target: Path, scratch: Path) -> None:
        (target / _FILE).write_bytes(save({"logits": predict_logits(*load())}))

    key = {"code": cache.code_digest(predict_logits), "training": of_model, "rows": rows, "max_length": max_length}
    return load_file(cache.entry(KIND, key, fill) / _FILE)["logits"]
