"""Which gains are real: exact scores, the right level, a planted gain, none on shuffled labels; what is judged (§4.6)."""

import numpy as np
import pytest
from plain import score

from bertology_utils.disabling import effects
from bertology_utils.glue import TASKS, plain_metric
from bertology_utils.statistics import (
    METRICS,
    resampled_scores,
    weighted_scores,
    whole_and_resampled,
)

N = 300
MRPC, STSB, RTE, QNLI = (TASKS[name] for name in ("mrpc", "stsb", "rte", "qnli"))


def made(name, seed=0, variants=20, helpful=None, n=N):
    """Labels, a model's predictions, and those of variants that differ from it at random; one may be better."""
    rng = np.random.default_rng(seed)
    if TASKS[name].is_regression:
        labels = rng.random(n)
        baseline = labels + rng.normal(0, 0.4, n)
        disabled = baseline + rng.normal(0, 0.1, (variants, n))
    else:
        labels = rng.integers(0, 2, n)
        baseline = np.where(rng.random(n) < 0.75, labels, 1 - labels)
        disabled = np.where(rng.random((variants, n)) < 0.06, 1 - baseline, baseline)
        if helpful is not None:
            disabled[helpful] = np.where(rng.random(n) < 0.5, labels, baseline)
    return labels, baseline, disabled


@pytest.mark.parametrize("metric", METRICS)
def test_a_weighted_metric_is_the_metric_of_repeated_examples(metric):
    task = TASKS["stsb" if metric == "Pearson" else "mrpc"]
    labels, baseline, disabled = made(task.name)
    weights = whole_and_resampled(N, 5)[1:21].astype(int)
    weights[0] = labels == labels[0] if metric == "F1" else weights[0]  # one class alone
    found = weighted_scores(
        metric, np.vstack([baseline, disabled, 0 * disabled[:1]]), labels, weights
    )
    for draw, counts in enumerate(weights):
        rows = np.repeat(np.arange(N), counts)
        for variant, predicted in enumerate([baseline, *disabled, 0 * disabled[0]]):
            expected = score(task, predicted[rows], labels[rows], metric)[metric]
            assert found[draw, variant] == pytest.approx(expected, abs=1e-9)


def parts_of(labels, baseline, disabled):
    return effects.gain_parts(RTE, baseline, disabled, labels).T


@pytest.mark.parametrize(
    "share, known", [((0.1, 0.1), 0.0), ((0.07, 0.13), 0.5), ((0.04, 0.16), 0.8)]
)
def test_reliability_is_the_part_of_the_variance_that_is_not_noise(share, known):
    """A model that is always right errs without a head on a share of the examples, from the lowest to the highest."""
    errs = np.linspace(*share, 400)
    parts = -(np.random.default_rng(0).random((300, 400)) < errs).astype(float)
    found = effects.reliability(parts, 1)
    assert found.value == pytest.approx(known, abs=0.08) and found.n == 400
    assert effects.reliability(0 * parts, 1).value == 0


def test_equally_many_right_answers_are_exactly_equal_scores():
    """Otherwise rounding decides whether a head gains, and breaks ties in the permutation test."""
    rng = np.random.default_rng(0)
    labels = np.zeros(160, dtype=int)
    variants = np.stack([rng.permutation(np.arange(160) < 29).astype(int) for _ in range(72)])
    baseline = rng.permutation(np.arange(160) < 29).astype(int)
    scores = effects.scores_of(RTE, np.vstack([baseline, variants]), labels)
    assert set(scores - scores[0]) == {0.0}
    found = effects.in_each([effects.Signed.of(parts_of(labels, baseline, variants), 1)])
    assert found["better"].min() > 0.5 and found["worse"].min() > 0.5


@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_what_examples_add_to_a_gain_has_the_gain_as_its_mean_and_its_error(name):
    task = TASKS[name]
    labels, baseline, disabled = made(name, variants=6)
    parts = effects.gain_parts(task, baseline, disabled, labels)
    predicted = np.vstack([baseline, disabled])
    whole, *others = resampled_scores(plain_metric(task), predicted, labels, 1)
    bootstraps = [one - whole for one in others]
    np.testing.assert_allclose(parts.mean(axis=1), [one.value for one in bootstraps], atol=1e-12)
    errors = [one.draws.std() for one in bootstraps]
    np.testing.assert_allclose(parts.std(axis=1) / N**0.5, errors, rtol=0.12)
    constant = effects.gain_parts(task, baseline, np.zeros((1, N)), labels)
    assert constant.mean() == pytest.approx(
        score(task, np.zeros(N), labels, plain_metric(task))[plain_metric(task)]
        - score(task, baseline, labels, plain_metric(task))[plain_metric(task)]
    )


def test_a_loss_of_a_regression_is_a_squared_error():
    close = effects.losses(STSB, np.array([[[0.5], [0.2]]]), np.array([2.0, 2.0]))  # of five
    np.testing.assert_allclose(close, [[0.01, 0.04]])
