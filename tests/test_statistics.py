"""Intervals cover what they should, comparisons are paired, verdicts follow the numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology_utils import statistics
from bertology_utils.drift import table1
from bertology_utils.glue.tasks import TASKS, predictions, score
from bertology_utils.suite import every, outcome


def test_interval_covers_the_truth_as_often_as_it_says():
    """95 % in theory; of 500 trials, 0.91 to 0.98 leaves four standard errors to either side."""
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(500):
        low, high = statistics.bootstrap_mean(rng.normal(3, 1, size=100), seed=trial, resamples=400).interval
        covered += low <= 3 <= high
    assert 0.91 <= covered / 500 <= 0.98


def test_both_ways_to_bootstrap_a_mean_agree():
    values = np.random.default_rng(1).normal(size=200)
    slow = statistics.bootstrap(lambda rows: values[rows].mean(), 200, seed=1)
    fast = statistics.bootstrap_mean(values, seed=1)
    np.testing.assert_allclose((slow - fast).draws, 0, atol=1e-12)


def test_difference_is_paired():
    """A constant lead over a noisy score is certain when paired, and would not be otherwise."""
    noisy = np.random.default_rng(2).normal(0, 1, size=100)
    a, b = (statistics.bootstrap(lambda rows, v=v: v[rows].mean(), 100, seed=5) for v in (noisy + 0.01, noisy))
    assert (a - b).interval == pytest.approx((0.01, 0.01))
    assert (a - b).share_above(0) == 1
    assert (b - a).share_above(0) == 0
    assert (a / a).interval == pytest.approx((1, 1))
    with pytest.raises(ValueError, match="not paired"):
        a - statistics.bootstrap(lambda rows: 0.0, 99, seed=5)
    with pytest.raises(ValueError, match="not paired"):
        a - statistics.bootstrap(lambda rows: 0.0, 100, seed=6)
    with pytest.raises(ValueError, match="not paired"):
        a / statistics.bootstrap(lambda rows: 1.0, 99, seed=5)


def test_no_examples_are_refused():
    with pytest.raises(ValueError, match="at least one example"):
        statistics.bootstrap(lambda rows: 0.0, 0, seed=1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40), st.integers(0, 2**31))
def test_resampled_means_stay_within_the_values(values, seed):
    means = statistics.resampled_means(np.array(values), seed, resamples=50)
    assert means.shape == (50,)
    assert (means >= min(values) - 1e-6).all()
    assert (means <= max(values) + 1e-6).all()


def test_text():
    value = statistics.Bootstrap(0.87654, np.linspace(0.8, 0.9, 1001), 10)
    assert value.text(100) == "87.7 [80.2, 89.8]"
    assert statistics.Bootstrap(-0.00001, np.zeros(3), 10).text(100, sign=True) == "+0.0 [+0.0, +0.0]"


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1, "agrees"),
        (0.956, "agrees"),
        (0.953, "undecided"),
        (0.94, "undecided"),
        (0.5, "undecided"),
        (0.06, "undecided"),
        (0.047, "undecided"),
        (0.044, "disagrees"),
        (0, "disagrees"),
        (float("nan"), "undecided"),
    ],
)
def test_outcome(share, expected):
    assert outcome(share) == expected


def test_every():
    assert every([1, 1, 0.96]) == "agrees"
    assert every([1, 0.5]) == "undecided"
    assert every([1, 0.5, 0]) == "disagrees"


def test_scores_against_hand_counts():
    labels, predicted = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
    assert score(TASKS["mrpc"], predicted, labels) == pytest.approx({"F1": 2 * 2 / (2 * 2 + 1 + 1), "accuracy": 0.6})
    assert score(TASKS["qqp"], np.zeros(5, int), labels)["F1"] == 0
    assert score(TASKS["stsb"], labels * 2.0 + 1, labels) == pytest.approx({"Pearson": 1, "Spearman": 1})
    assert score(TASKS["stsb"], np.ones(5), labels) == {"Pearson": 0, "Spearman": 0}
    assert score(TASKS["mnli"], np.array([2, 0]), np.array([2, 1])) == {"accuracy": 0.5}


def test_predictions():
    logits = np.array([[0.1, 0.9, 0.3], [2, 1, 0]])
    assert predictions(TASKS["mnli"], logits).tolist() == [1, 0]
    assert predictions(TASKS["stsb"], logits[:, :1]).tolist() == [0.1, 2]


def test_the_papers_average_gain_comes_out_of_its_table():
    """35.9 points (§4.3): the reading of the metric that the verdicts use."""
    gains = [table1.paper_gain(task, "finetuned", "pretrained") for task in TASKS.values()]
    assert np.mean(gains) == pytest.approx(35.9, abs=0.05)
