"""What is said of the claims of §4.2, given values that were made up."""

import numpy as np
import pytest
from made_up import SURE, around

from bertology_utils.framenet import claims
from bertology_utils.framenet.controls import MatchedTest
from bertology_utils.framenet.frame_links import PAPER_SENTENCES, PAPER_UNITS

SHAPE = (2, 3)  # layers, heads
BEST = (1, 2)
EVEN = np.tile([0.0, 1.0], 50)  # over sentences: as often above its mean as below


def outcomes(judged):
    return [verdict.outcome for verdict in judged]


def comparison(excess=0.2, above=0.001, below=1.0):
    """A comparison in which :data:`BEST` has an excess with these p values, and no other head any."""
    links, ps = np.zeros(SHAPE), [np.ones(SHAPE), np.ones(SHAPE)]
    links[BEST], ps[0][BEST], ps[1][BEST] = excess, above, below
    return MatchedTest(links, np.zeros(SHAPE), *ps, sentences=100)


RANDOM = comparison(excess=0.1, above=1.0)
TESTS = {
    "agrees": comparison(),
    "undecided": comparison(above=0.5),
    "not above random weights": comparison(excess=0.05),
    "disagrees": comparison(excess=-0.2, above=1.0, below=0.001),
}


def of_best(values):
    """Scores of every head in 100 sentences: ``values`` for :data:`BEST`, 0 for others."""
    scores = np.zeros((100, *SHAPE))
    scores[:, *BEST] = values
    return scores


def test_published_heatmap():
    theirs = np.arange(6.0).reshape(SHAPE)
    assert outcomes(claims.judge_published_heatmap(theirs, theirs + 1, 473)) == ["agrees"]
    (found,) = claims.judge_published_heatmap(theirs, -theirs, 473)
    assert found.outcome == "disagrees" and found.ours.endswith("correlation over 144 cells -1.00")


@pytest.mark.parametrize(
    ("trained", "random", "outcome"), [(0.2, 0.1, "agrees"), (EVEN, 1 - EVEN, "undecided"), (0.1, 0.2, "disagrees")]
)
def test_highest_score(trained, random, outcome):
    assert outcomes(claims.judge_highest_score(of_best(trained), of_best(random), seed=1)) == [outcome]


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("agrees", "agrees"),
        ("undecided", "undecided"),
        ("not above random weights", "undecided"),
        ("disagrees", "disagrees"),
    ],
)
def test_highest_head_wants_both_comparisons(kind, outcome):
    random = {"moved": RANDOM, "borrowed": RANDOM}
    for tests in ({"moved": TESTS[kind], "borrowed": TESTS["agrees"]}, {"moved": TESTS["agrees"], "borrowed": TESTS[kind]}):
        assert outcomes(claims.judge_highest_head(BEST, tests, random)) == [outcome]
    assert outcomes(claims.judge_without_pronouns(BEST, TESTS[kind], TESTS["agrees"], RANDOM)) == [outcome]


@pytest.mark.parametrize(
    ("kind", "outcome"), [("agrees", "agrees"), ("undecided", "undecided"), ("not above random weights", "undecided")]
)
def test_any_head(kind, outcome):
    (found,) = claims.judge_any_head(TESTS[kind], RANDOM)
    assert found.outcome == outcome
    assert found.ours.startswith("1 of 6 heads; largest excess (2, 3)" if outcome == "agrees" else "0 of 6 heads")


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_pointing(share, outcome):
    hits = of_best({1.0: 1, 0.5: EVEN, 0.0: 0}[share]).astype(bool)
    positional = around(0.5, 0, apart=0) if share != 0.5 else claims.bootstrap_mean(1 - EVEN, 1)
    (found,) = claims.judge_pointing(hits, -2, positional, seed=1)
    assert found.outcome == outcome and "at -2 wordpieces, n=100 sentences" in found.ours


def test_sentence_counts_are_judged_for_the_papers_release_alone():
    counts = {"paper": PAPER_SENTENCES + 1, "official": PAPER_SENTENCES}
    assert outcomes(claims.judge_sentence_counts(counts, "FrameNet 1.7", PAPER_UNITS)) == ["disagrees", "agrees"]
    assert outcomes(claims.judge_sentence_counts(counts, "FrameNet 1.5", PAPER_UNITS - 1)) == ["undecided", "undecided"]
