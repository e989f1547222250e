"""Writes the embedded corpora: seven small text tasks shaped like GLUE's, from a grammar, and a mini-FrameNet.

    python -m corpora_generator

writes the files in ``bertology_utils/corpora`` anew; a test holds them to it.
Every sentence is realised from a derivation, which yields its dependency
annotation along with its text.  Validation rows turn on words that training
rows never show, so that only knowledge of word meaning carries over.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache

from bertology_utils.common import one_of

from .inference import mnli, rte
from .paraphrase import mrpc, stsb
from .questions import qnli, qqp
from .rows import Row
from .sentiment import sst2
from .split import fill

__all__ = ["MAKERS", "Row", "digests", "generate"]

# task -> (maker, number of classes; for stsb, of steps on its scale)
MAKERS = {
    "mrpc": (mrpc, 2),
    "stsb": (stsb, 6),
    "sst2": (sst2, 2),
    "rte": (rte, 2),
    "qqp": (qqp, 2),
    "qnli": (qnli, 2),
    "mnli": (mnli, 3),
}


@cache
def generate(
    task: str, seed: int = 0, train: int = 960, validation: int = 320
) -> dict[str, list[Row]]:
    """Generate a task's rows; the same arguments give the same bytes anywhere.

    Args:
        task: One of ``mrpc``, ``stsb``, ``sst2``, ``rte``, ``qqp``, ``qnli``, ``mnli``.
        seed: Seed of the draw.
        train: Number of training rows.
        validation: Number of validation rows.

    Returns:
        The rows under ``"train"`` and ``"validation"``.  The result is cached
        and shared between callers: copy it before changing it.

    Raises:
        ValueError: If there is no such task, since a misspelt name must not
            pass for an empty one.
    """
    maker, labels = MAKERS[one_of("task", task, MAKERS)]
    return fill(task, seed, {"train": train, "validation": validation}, labels, maker)


@cache
def digests() -> dict[str, str]:
    """SHA-256 of every task's default rows with their annotation: what a stored measurement was made on."""
    return {task: _digest(generate(task)) for task in MAKERS}


def _digest(splits: dict[str, list[Row]]) -> str:
    content = [[split, [asdict(row) for row in rows]] for split, rows in splits.items()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
