"""FrameNet's sentences, as many as can be looked at in minutes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..framenet.frame_links import FrameSentence
from ..statistics import Seed

MOST = 1000  # of the thousands that the paper's rules keep of a whole release
PAPERS = "He was becoming agitated ."  # the paper's example (§4.2)


def drawn(sentences: Sequence[FrameSentence], seed: Seed, count: int = MOST) -> list[FrameSentence]:
    """At most ``count`` sentences drawn by ``seed``, in their order; the paper's own is among them if there is one.

    Args:
        sentences: from :func:`bertology_utils.framenet.frame_links.extract`.
        seed: of the draw.
        count: how many.
    """
    rows = np.random.default_rng(seed).permutation(len(sentences)).tolist()
    rows.sort(key=lambda row: sentences[row].exemplar.text != PAPERS)  # stable: its own first, the others by lot
    return [sentences[row] for row in sorted(rows[:count])]


def position(texts: Sequence[str]) -> int:
    """Where the paper's sentence stands; 0 if it is not there."""
    return list(texts).index(PAPERS) if PAPERS in texts else 0
