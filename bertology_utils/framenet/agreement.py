"""Do two releases, or two passes, order the heads in the same way? (§4.2)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..attention import batches, observe
from ..common import Head, head_name
from ..statistics import Seed
from . import official_heatmaps
from .claims import correlation_with_published
from .controls import matched_test, top_heads
from .frame_links import OFFICIAL, Rules, extract
from .measure import ELSEWHERE, FrameLinkAttention, FrameLinkScores, place
from .release import Release, load_release


def of_mini(encoder, tokenizer, rules: Rules, direction: str, seed: Seed) -> dict[str, np.ndarray]:
    """Score and excess over other sentences' places on the mini-FrameNet, each of shape (layers, heads)."""
    found = _pass(encoder, tokenizer, load_release("embedded"), rules, direction, elsewhere="borrowed", seed=seed)
    return {"score": found.actual.mean(axis=0), "excess": matched_test(found, seed).excess}


def of_committed(real: Mapping) -> dict[str, np.ndarray]:
    """The same of a run's results file; nothing of an empty one."""
    if not real:
        return {}
    return {"score": np.array(real["scores"]), "excess": np.array(real["compared"][ELSEWHERE["borrowed"]]["excess"])}


def correlations(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Spearman's rank correlation over heads of what both have; nothing for models of different shape."""
    from scipy.stats import spearmanr

    return {
        name: float(spearmanr(one[name].ravel(), other[name].ravel()).statistic)
        for name in one
        if name in other and one[name].shape == other[name].shape
    }


def told_published(encoder, tokenizer, source: Release) -> str:
    """bert-base on a release, by the published code's rules, direction and pairing, against the published figure."""
    ours = _pass(encoder, tokenizer, source, OFFICIAL, "element to predicate", pairing="zip").actual.mean(axis=0)
    return (
        f"rank correlation with the published figure over {ours.size} heads {correlation_with_published(ours):.2f};"
        f" two highest there {_names(top_heads(official_heatmaps.panel('framenet'), 2))}, here {_names(top_heads(ours, 2))}"
    )


def _names(heads: list[Head]) -> str:
    return " and ".join(head_name(*head) for head in heads)


def _pass(encoder, tokenizer, source: Release, rules: Rules, direction: str, **options) -> FrameLinkScores:
    placed, inputs, _ = place(extract(source, rules)[0], tokenizer)
    links = FrameLinkAttention(placed, direction, **options)
    return observe(encoder, batches.make_batches(inputs, tokenizer), {"links": links})["links"]
