"""The claims of §4.2, judged: does a head prefer the annotated links, and would something simpler do as well?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..claims import FAILS, HOLDS, Support, Verdict, above, all_of, judged, some_head
from ..claims.register import WEIGHT
from ..claims.words import counted
from ..common import Head, head_name
from ..statistics import Bootstrap, Seed, bootstrap_mean
from ..statistics.estimate import Estimate, over_trainings
from ..statistics.permutation import ManyTest
from ..statistics.ties import p_is
from . import official_heatmaps
from .controls import top_heads
from .frame_links import PAPER_SENTENCES, PAPER_UNITS
from .measure import PLACES

PUBLISHED = "bert-base-uncased, published panel, read off"
EVEN_SHARES = 2  # so many times 1/L is a high weight, as in §4.4's stripes


def judge_two_heads(scores: np.ndarray, seed: Seed) -> list[Verdict]:
    """Do two heads stand out, here and on the published panel?

    Args:
        scores: link scores, shape (sentences, layers, heads).
        seed: of the resampling of sentences.
    """
    _, second, third = top_heads(scores.mean(axis=0), 3)
    apart = over_trainings([bootstrap_mean(scores[:, *second] - scores[:, *third], seed)])
    panel = official_heatmaps.panel("framenet")
    cells = top_heads(panel, 3)
    error = official_heatmaps.READING_ERROR / np.sqrt(3)  # of one cell, if all readings within the error are as likely
    published = Estimate(panel[cells[1]] - panel[cells[2]], error * np.sqrt(2), PAPER_SENTENCES)
    return [
        judged(
            "frame-two-heads",
            above(estimate, WEIGHT),
            f"{head_name(*heads[1])} above {head_name(*heads[2])} by {estimate.text(1, 3, sign=True)}; {counted(estimate)}",
            model=model,
        )
        for estimate, heads, model in ((apart, (None, second, third), "this run"), (published, cells, PUBLISHED))
    ]


def judge_links(over_others: ManyTest, random_bar: float) -> list[Verdict]:
    """Does some head attend along links more than other sentences' positions explain?

    Args:
        over_others: of the links' excess over other sentences, every head, against the least effect.
        random_bar: the largest excess of a head with random weights.
    """
    (largest,) = top_heads(over_others.means, 1)
    candidates = over_others.above[over_others.means > random_bar]
    support = Support(float(candidates.min(initial=1.0)), some_head(over_others).fails)
    sure = f"{p_is(support.holds)} over {over_others.means.size} heads"
    ours = f"{head_name(*largest)} {over_others.means[largest]:+.3f}, {sure}; n={over_others.n[largest]}"
    return [judged("frame-links", support, f"{ours} (random weights {random_bar:+.3f})")]


def judge_example(weights: Mapping[Head, float], length: int, present: bool) -> list[Verdict]:
    """Do the two highest heads attend from "agitated" to "he" in the paper's sentence?

    Args:
        weights: of both heads.
        length: wordpieces of the sentence.
        present: the sentence is in the release.
    """
    ours = ", ".join(f"{head_name(*head)} {weight:.3f}" for head, weight in weights.items())
    high = all(weight > EVEN_SHARES / length for weight in weights.values())
    missing = "" if present else "the paper's sentence in this release"
    return [
        judged("frame-example", HOLDS if high else FAILS, f"{ours}; an even share {1 / length:.3f}, one sentence", missing)
    ]


def judge_sentence_count(count: int, release: str, units: int) -> list[Verdict]:
    """Do 473 sentences pass? Decided for the paper's release alone, known by its number of lexical units."""
    missing = "" if units == PAPER_UNITS else f"release 1.7 with {PAPER_UNITS} lexical units; here {units}"
    return [judged("frame-count", HOLDS if count == PAPER_SENTENCES else FAILS, f"{count} of {release}", missing)]


def judge_random_weights(trained: np.ndarray, random: np.ndarray, seed: Seed) -> list[Verdict]:
    """Control: the highest head against the highest of a model with random weights.

    Args:
        trained, random: link scores on the same sentences, shape (sentences, layers, heads).
        seed: of the resampling of sentences.
    """
    (best,), (rival,) = top_heads(trained.mean(axis=0), 1), top_heads(random.mean(axis=0), 1)
    gain = over_trainings([bootstrap_mean(trained[:, *best], seed) - bootstrap_mean(random[:, *rival], seed)])
    return [judged("frame-random", above(gain, WEIGHT), f"{head_name(*best)} {gain.text(1, 3, sign=True)}; {counted(gain)}")]


def judge_highest_head(best: Head, tests: Mapping[str, ManyTest], without_pronouns: Estimate) -> list[Verdict]:
    """Controls: has the highest head an excess over both comparisons, and without pronouns before the predicate?

    Args:
        best: (layer, head) from 0.
        tests: by comparison, of the excess of every head against the least effect.
        without_pronouns: its excess over other sentences where no linked element is such a pronoun.
    """
    support = all_of(Support(float(test.above[best]), float(test.below[best])) for test in tests.values())
    shown = "; ".join(f"over {name} {tests[kind].means[best]:+.3f}" for kind, name in PLACES.items())
    ours = f"{head_name(*best)} {without_pronouns.text(1, 3, sign=True)}; {counted(without_pronouns)}"
    return [
        judged("frame-moved", support, f"{head_name(*best)} {shown}; n={tests['borrowed'].n[best]}"),
        judged("frame-pronouns", above(without_pronouns, WEIGHT), ours),
    ]


def judge_pointing(hits: np.ndarray, offset: int, positional: Bootstrap, seed: Seed) -> list[Verdict]:
    """Control: the head that points at links most often against the best fixed distance.

    Args:
        hits: True where a head points at a link, shape (sentences, layers, heads).
        offset, positional: from :func:`bertology_utils.framenet.controls.fixed_offset_baseline`, with the same seed.
        seed: of the resampling of sentences.
    """
    (pointer,) = top_heads(hits.mean(axis=0), 1)
    ahead = over_trainings([bootstrap_mean(hits[:, *pointer].astype(float), seed) - positional])
    rule = f"always {abs(offset)} wordpieces {'back' if offset < 0 else 'ahead'}"
    ours = (
        f"{head_name(*pointer)} {ahead.text(100, 1, sign=True)} percentage points more often than {rule}; {counted(ahead)}"
    )
    return [judged("frame-pointing", above(ahead), ours)]


def correlation_with_published(ours: np.ndarray) -> float:
    """Rank correlation over heads with the published panel, both of shape (12, 12), by the published code's rules."""
    from scipy.stats import spearmanr

    return float(spearmanr(official_heatmaps.panel("framenet").ravel(), ours.ravel()).statistic)
