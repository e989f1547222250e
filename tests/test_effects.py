"""Which gains are real: exact scores, the right level, a planted gain, and none on shuffled labels (§4.6)."""

import numpy as np
import pytest
from scipy import stats

from bertology_utils.disabling import controls, measure
from bertology_utils.glue.tasks import TASKS, plain_metric, score
from bertology_utils.statistics import bootstrap, bootstrap_weights
from bertology_utils.statistics.weighted import METRICS, weighted_scores

N = 300


def made(name, seed=0, variants=20, helpful=None, n=N):
    """Labels, a model's predictions, and those of variants that differ from it at random; one may be better."""
    rng = np.random.default_rng(seed)
    if TASKS[name].is_regression:
        labels = rng.random(n)
        baseline = labels + rng.normal(0, 0.4, n)
        disabled = baseline + rng.normal(0, 0.1, (variants, n))
        if helpful is not None:
            disabled[helpful] = labels + 0.5 * (baseline - labels)
    else:
        labels = rng.integers(0, 2, n)
        baseline = np.where(rng.random(n) < 0.75, labels, 1 - labels)
        disabled = np.where(rng.random((variants, n)) < 0.06, 1 - baseline, baseline)
        if helpful is not None:
            disabled[helpful] = np.where(rng.random(n) < 0.5, labels, baseline)
    return labels, baseline, disabled


@pytest.mark.parametrize("name", ["rte", "mrpc", "stsb"])
def test_scores_of_many_resamples_at_once_are_the_tasks_scores(name):
    task = TASKS[name]
    labels, baseline, disabled = made(name)
    found = measure.gains(task, baseline, disabled, labels, seed=3)
    metric = plain_metric(task)

    def difference(rows):
        return (
            score(task, disabled[4][rows], labels[rows], metric)[metric]
            - score(task, baseline[rows], labels[rows], metric)[metric]
        )

    expected = bootstrap(difference, N, 3)
    assert found[4].value == pytest.approx(expected.value, abs=1e-12)
    np.testing.assert_allclose(found[4].draws, expected.draws, atol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_a_weighted_metric_is_the_metric_of_repeated_examples(metric):
    task = TASKS["stsb" if metric == "Pearson" else "mrpc"]
    labels, baseline, disabled = made(task.name)
    weights = bootstrap_weights(N, 5, 20)
    weights[0] = labels == labels[0] if metric == "F1" else weights[0]  # one class alone
    found = weighted_scores(metric, np.vstack([baseline, disabled, 0 * disabled[:1]]), labels, weights)
    for draw, counts in enumerate(weights):
        rows = np.repeat(np.arange(N), counts)
        for variant, predicted in enumerate([baseline, *disabled, 0 * disabled[0]]):
            expected = score(task, predicted[rows], labels[rows], metric)[metric]
            assert found[draw, variant] == pytest.approx(expected, abs=1e-9)


def test_weights_count_the_draws():
    weights = bootstrap_weights(7, 1, 50)
    assert weights.shape == (50, 7) and (weights.sum(axis=1) == 7).all()


def test_a_constant_prediction_has_correlation_0():
    labels = np.random.default_rng(0).random(20)
    assert weighted_scores("Pearson", np.full((1, 20), 0.3), labels, np.ones((2, 20))).tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_a_real_gain_is_found_and_only_that(name):
    labels, baseline, disabled = made(name, helpful=7)
    found = controls.gain_test(TASKS[name], baseline, disabled, labels, seed=1)
    assert found.better[7] < 0.01 and found.gains.argmax() == 7
    assert (np.delete(found.better, 7) > 0.05).all()
    np.testing.assert_allclose(
        found.gains, [gain.value for gain in measure.gains(TASKS[name], baseline, disabled, labels, 1)], atol=1e-12
    )


@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_the_test_keeps_its_level(name):
    """Variants that differ at random: some p below 0.05 in about one of twenty cases, on either side."""
    smallest = []
    for seed in range(80):
        labels, baseline, disabled = made(name, seed, variants=10, n=120)
        if not TASKS[name].is_regression:  # flips hurt a model that is mostly right; here it is right half of the time
            labels = np.random.default_rng(1000 + seed).integers(0, 2, 120)
        else:
            disabled = np.random.default_rng(1000 + seed).permuted(np.repeat(baseline[None], 10, axis=0), axis=1)
            labels = np.random.default_rng(2000 + seed).random(120)
        found = controls.gain_test(TASKS[name], baseline, disabled, labels, seed=1, permutations=200)
        smallest.append(found.better.min())
    assert np.mean(np.array(smallest) < 0.05) < 0.14


def test_a_head_that_changes_nothing_has_no_gain():
    labels, baseline, disabled = made("rte")
    disabled[3] = baseline
    found = controls.gain_test(TASKS["rte"], baseline, disabled, labels, seed=1)
    assert abs(found.gains[3]) < 1e-12 and found.better[3] > 0.5 and found.worse[3] > 0.5


def test_the_best_of_many_gains_by_chance_alone():
    labels, baseline, disabled = made("rte", variants=72)
    few = controls.gain_test(TASKS["rte"], baseline, disabled[:2], labels, seed=1).best_by_chance
    many = controls.gain_test(TASKS["rte"], baseline, disabled, labels, seed=1).best_by_chance
    assert many.mean() > few.mean() > 0


def test_mcnemar_is_exact():
    labels, baseline, disabled = made("rte", variants=3)
    disabled[2] = baseline
    p = controls.mcnemar(baseline, disabled, labels)
    lost = int(((baseline == labels) & (disabled[0] != labels)).sum())
    won = int(((baseline != labels) & (disabled[0] == labels)).sum())
    tail = stats.binom.cdf(min(lost, won), lost + won, 0.5)
    assert p[0] == pytest.approx(min(1.0, 2 * tail)) and p[2] == 1.0


def test_a_chosen_gain_shrinks_on_the_other_half_unless_it_is_real():
    labels, baseline, disabled = made("rte", variants=72)
    lucky = controls.selected_gain(TASKS["rte"], baseline, disabled, labels, seed=1)
    assert lucky.naive.mean() > 0 > lucky.honest.mean()
    labels, baseline, disabled = made("rte", variants=72, helpful=5)
    real = controls.selected_gain(TASKS["rte"], baseline, disabled, labels, seed=1)
    assert real.honest.mean() > 0.05
    with pytest.raises(ValueError, match="at least 4"):
        controls.selected_gain(TASKS["rte"], baseline[:3], disabled[:, :3], labels[:3], seed=1)


def test_equally_many_right_answers_are_exactly_equal_scores():
    """Otherwise rounding decides whether a head gains, and breaks ties in the permutation test."""
    rng = np.random.default_rng(0)
    labels = np.zeros(160, dtype=int)
    variants = np.stack([rng.permutation(np.arange(160) < 29).astype(int) for _ in range(72)])
    baseline = rng.permutation(np.arange(160) < 29).astype(int)
    assert {gain.value for gain in measure.gains(TASKS["rte"], baseline, variants, labels, 1)} == {0.0}
    found = controls.gain_test(TASKS["rte"], baseline, variants, labels, seed=1)
    assert (found.gains == 0).all() and found.better.min() > 0.5 and found.worse.min() > 0.5


def test_heads_that_do_harm_are_left_out_of_what_the_best_gains_by_chance():
    labels, baseline, disabled = made("rte", variants=20)
    before = controls.gain_test(TASKS["rte"], baseline, disabled, labels, seed=1)
    disabled[4] = 1 - labels
    after = controls.gain_test(TASKS["rte"], baseline, disabled, labels, seed=1)
    assert after.worse[4] < 0.05
    assert np.median(after.best_by_chance) <= np.median(before.best_by_chance) + 1e-12


def test_the_interval_of_a_chosen_gain_allows_for_shared_examples():
    labels, baseline, disabled = made("rte", variants=10)
    few, many = (
        controls.selected_gain(TASKS["rte"], baseline, disabled, labels, seed=1, splits=count) for count in (200, 800)
    )
    widths = [selected.interval[1] - selected.interval[0] for selected in (few, many)]
    assert widths[1] == pytest.approx(widths[0], rel=0.2), "more splits do not make it narrow"
    assert few.interval[0] < few.honest.mean() < few.interval[1]
    assert few.text().startswith(f"{100 * few.honest.mean():+.2f} [")


@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_exchanged_predictions_give_the_gains_of_the_plain_definition(name, monkeypatch):
    task = TASKS[name]
    labels, baseline, disabled = made(name, variants=6, n=40)
    swapped = np.random.default_rng(1).random((9, 40)) < 0.5
    signs, where = [], np.where
    monkeypatch.setattr(controls.np, "where", lambda *arguments: signs.append(1) or where(*arguments))
    found = controls._swapped_gains(task, baseline, disabled, labels, swapped)
    monkeypatch.undo()
    assert len(signs) == 1 or task.is_regression, "one matrix of signs for all variants"
    metric = plain_metric(task)
    for draw, rows in enumerate(swapped):
        for variant, predicted in enumerate(disabled):
            with_head, without = np.where(rows, predicted, baseline), np.where(rows, baseline, predicted)
            expected = score(task, without, labels, metric)[metric] - score(task, with_head, labels, metric)[metric]
            assert found[draw, variant] == pytest.approx(expected, abs=1e-12)
