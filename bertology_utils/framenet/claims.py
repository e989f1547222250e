"""The claims of §4.2, judged: do single heads attend along links, and which sentences do the paper's rules leave?

Below, ``tests`` and ``random_tests`` hold one :class:`MatchedTest` for each of
:data:`bertology_utils.framenet.measure.ELSEWHERE`, of the pre-trained model and
of one with random weights. A single test is the one over other sentences.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..common import Head, head_name
from ..statistics import LEVEL, Bootstrap, Seed, bootstrap_mean
from ..statistics.ties import p_is
from ..statistics.verdicts import Verdict, outcome
from .controls import MatchedTest, top_heads
from .frame_links import PAPER_SENTENCES, PAPER_UNITS
from .measure import ELSEWHERE


def judge_published_heatmap(theirs: np.ndarray, ours: np.ndarray, sentences: int) -> list[Verdict]:
    """Are the published heatmap's two highest heads ours? Both of shape (layers, heads), by the published code's rules."""
    from scipy.stats import spearmanr

    correlation, top_two = spearmanr(theirs.ravel(), ours.ravel()).statistic, top_heads(theirs, 2)
    return [
        Verdict(
            "The published heatmap's two highest heads are the two highest",
            ", ".join(f"{head_name(*at)} {theirs[at]:.3f}" for at in top_two),
            ", ".join(f"{head_name(*at)} {ours[at]:.3f}" for at in top_two)
            + f"; correlation over 144 cells {correlation:.2f}",
            "agrees" if set(top_two) == set(top_heads(ours, 2)) else "disagrees",
            f"the code's rules, n={sentences} sentences",
        )
    ]


def judge_highest_score(trained: np.ndarray, random: np.ndarray, seed: Seed) -> list[Verdict]:
    """Claim 1: the highest head against the highest of a model with random weights.

    Args:
        trained, random: link scores on the same sentences, shape (sentences, layers, heads).
        seed: of the resampling of sentences.
    """
    means, random_means = trained.mean(axis=0), random.mean(axis=0)
    best, second = top_heads(means, 2)
    (rival,) = top_heads(random_means, 1)
    gain = bootstrap_mean(trained[:, *best], seed) - bootstrap_mean(random[:, *rival], seed)
    shown = ", ".join(f"{head_name(*at)} {means[at]:.3f}" for at in (best, second))
    return [
        Verdict(
            "The highest head attends to links more than any head of a model with random weights",
            "0.209 and 0.201; no control",
            f"{shown}; random weights {random_means.max():.3f}; difference {gain.text(1, 3, sign=True)}, n={gain.n} sentences",
            outcome(gain.share_above(0)),
            "paired bootstrap over sentences",
        )
    ]


def judge_highest_head(
    best: Head, tests: Mapping[str, MatchedTest], random_tests: Mapping[str, MatchedTest]
) -> list[Verdict]:
    """Claim 2: has the highest head an excess over both comparisons, larger than any of the model with random weights?"""
    outcomes = {test.outcome(best, random_tests[kind].excess.max()) for kind, test in tests.items()}
    shown = "; ".join(
        f"over {name} {tests[kind].excess[best]:+.3f}, {p_is(tests[kind].above[best])}" for kind, name in ELSEWHERE.items()
    )
    return [
        Verdict(
            "The highest head attends more along links than to other cells at the same distances and positions",
            "not tested",
            f"{head_name(*best)}: {shown}; n={tests['borrowed'].sentences}",
            "disagrees" if "disagrees" in outcomes else "agrees" if outcomes == {"agrees"} else "undecided",
            "two permutation tests, corrected over all heads, and above random weights",
        )
    ]


def judge_any_head(test: MatchedTest, random_test: MatchedTest) -> list[Verdict]:
    """Claim 2 for any head, over other sentences."""
    (largest,), bar = top_heads(test.excess, 1), random_test.excess.max()
    surviving = int(((test.above < LEVEL) & (test.excess > bar)).sum())
    return [
        Verdict(
            "Some head attends more along links than other sentences' positions explain",
            "two heads",
            f"{surviving} of {test.above.size} heads; largest excess {head_name(*largest)} {test.excess[largest]:+.3f}"
            f" (random weights {bar:+.3f}), n={test.sentences}",
            "agrees" if surviving else "undecided",
            "permutation test, corrected over all heads, and above random weights",
        )
    ]


def judge_without_pronouns(best: Head, without: MatchedTest, test: MatchedTest, random_test: MatchedTest) -> list[Verdict]:
    """Claim 2 for the highest head, ``without`` the sentences where a linked element is a pronoun before the predicate."""
    return [
        Verdict(
            "The highest head still does so without pronouns before the predicate",
            "not tested",
            f"{head_name(*best)}: excess {without.excess[best]:+.3f} without them, {test.excess[best]:+.3f} with them,"
            f" {p_is(without.above[best])}, n={without.sentences} of {test.sentences}",
            without.outcome(best, random_test.excess.max()),
            "the same test without the sentences that have such a link",
        )
    ]


def judge_pointing(hits: np.ndarray, offset: int, positional: Bootstrap, seed: Seed) -> list[Verdict]:
    """Claim 2 by pointing: the head that points at links most often against the best fixed distance.

    Args:
        hits: True where a head points at a link, shape (sentences, layers, heads).
        offset, positional: from :func:`bertology_utils.framenet.controls.fixed_offset_baseline`, with the same seed.
        seed: of the resampling of sentences.
    """
    (pointer,) = top_heads(hits.mean(axis=0), 1)
    pointing = bootstrap_mean(hits[:, *pointer].astype(float), seed)
    ahead = pointing - positional
    return [
        Verdict(
            "The head that points at links most often beats the best fixed distance",
            "not tested",
            f"{head_name(*pointer)} {pointing.text(100, 1)} % against {positional.text(100, 1)} % at {offset:+d} wordpieces,"
            f" n={ahead.n} sentences",
            outcome(ahead.share_above(0)),
            "paired bootstrap over sentences, both chosen on them",
        )
    ]


def judge_sentence_counts(counts: Mapping[str, int], release: str, units: int) -> list[Verdict]:
    """Claim 3: do 473 sentences pass? Decided for the paper's release alone, known by its number of lexical units.

    Args:
        counts: sentences that the rules of "paper" and "official" leave.
        release: its name.
        units: its lexical units.
    """
    words = {"paper": "The paper's text leaves 473 sentences", "official": "Its code leaves 473 sentences"}
    return [
        Verdict(
            words[name],
            f"{PAPER_SENTENCES} of release 1.7",
            f"{count} of {release}",
            "undecided" if units != PAPER_UNITS else "agrees" if count == PAPER_SENTENCES else "disagrees",
            f"equality, on the paper's release ({PAPER_UNITS} lexical units; here {units})",
        )
        for name, count in counts.items()
    ]
