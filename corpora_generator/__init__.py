"""Writes the synthetic corpora: three tasks in GLUE's form from a grammar, and a mini-FrameNet.

    python -m corpora_generator

writes the files of ``bertology_utils/corpora``, which a test compares byte for byte. Every
sentence is realised from a derivation, which yields its dependency annotation along with its text.
Dev rows turn on words that training rows never show, so that only knowledge of what words mean
carries over.
"""

from __future__ import annotations

from functools import cache

from bertology_utils.glue import TASKS

from .paraphrase import mrpc, stsb
from .rows import Row, fill
from .sentiment import sst2

# task -> what makes its rows, and the number of labels (for stsb, of steps on its scale)
MAKERS = {"mrpc": (mrpc, 2), "stsb": (stsb, 6), "sst2": (sst2, 2)}


@cache
def generate(task: str) -> dict[str, list[Row]]:
    """The task's rows under ``"train"`` and ``"validation"``: the same bytes on every machine."""
    return fill(TASKS[task], *MAKERS[task])
