"""Intervals cover what they should, comparisons are paired, verdicts follow the numbers."""

import numpy as np
import pytest
from conftest import load_script

from bertology_utils import statistics, verdicts
from bertology_utils.glue import TASKS
from bertology_utils.results import MEASURED
from bertology_utils.statistics import MARGIN
from bertology_utils.verdicts import FAILS, HOLDS, UNDECIDED, Support, all_of, any_of

MRPC, QQP, RTE = TASKS["mrpc"], TASKS["qqp"], TASKS["rte"]


def test_interval_covers_the_truth_as_often_as_it_says():
    """95 % in theory; of 500 trials, 0.91 to 0.98 leaves four standard errors to either side."""
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(500):
        values = rng.normal(3, 1, size=100)
        low, high = statistics.bootstrap_mean(values, seed=trial).interval
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
    a, b = (
        statistics.bootstrap(lambda rows, v=v: v[rows].mean(), 100, seed=5)
        for v in (noisy + 0.01, noisy)
    )
    assert (a - b).interval == pytest.approx((0.01, 0.01))
    assert ((b - a).draws < 0).all()
    with pytest.raises(ValueError, match="not paired"):
        a - statistics.bootstrap(lambda rows: 0.0, 99, seed=5)
    with pytest.raises(ValueError, match="not paired"):
        a - statistics.bootstrap(lambda rows: 0.0, 100, seed=6)
    with pytest.raises(ValueError, match="at least one example"):
        statistics.bootstrap(lambda rows: 0.0, 0, seed=1)


def trainings(values, error=0.02, n=100):
    """Bootstraps of several trainings on the same examples."""
    noise = np.random.default_rng(1).normal(0, error, 1000)
    return [statistics.Bootstrap(value, value + noise, n, 1) for value in values]


def over_trainings(*values):
    return statistics.mean_over_seeds(trainings(values))


def test_one_training_knows_of_examples_only():
    (one,) = trainings([0.5])
    found = statistics.mean_over_seeds([one])
    assert found.value == 0.5 and found.degrees == np.inf and found.trainings == 1
    assert found.interval == pytest.approx(one.interval, abs=0.005)


def test_trainings_that_differ_widen_the_interval_and_take_degrees():
    alike, apart = over_trainings(0.5, 0.5), over_trainings(0.3, 0.7)
    assert alike.degrees == np.inf and apart.degrees == pytest.approx(1, abs=0.05)
    assert np.ptp(alike.interval) < 0.1 < 1 < np.ptp(apart.interval)
    assert np.ptp(over_trainings(0.3, 0.4, 0.5, 0.6, 0.7).interval) < np.ptp(apart.interval)
    with pytest.raises(ValueError, match="not paired"):
        statistics.mean_over_seeds([trainings([0.1])[0], trainings([0.1], n=99)[0]])


@pytest.mark.parametrize(("tasks", "trainings"), [(3, 3), (7, 2)])
def test_pooled_over_tasks_intervals_cover_and_verdicts_rarely_err(tasks, trainings):
    """Both trainings and examples vary; benchmarks/calibration.py is the long form, whose ranges these are, widened by chance."""
    calibration = load_script("calibration")
    found = [calibration.case(tasks, trainings, ratio, 0.5, 300) for ratio in (1.0, 10.0)]
    assert calibration.WAYS["prior 2"] == statistics.PRIOR
    ways = ("prior 2", "own trainings only")
    now, before = (np.array([one[way] for one in found]) for way in ways)
    assert ((now[:, 0] > 0.93) & (now[:, 0] < 0.97)).all(), "coverage of 95 %"
    assert (now[:, 1:] <= 0.025 + 3 * np.sqrt(0.025 / 300)).all(), "false outcomes"
    assert before[:, 1].max() > 2 * now[:, 1].max(), "as two or three trainings alone would give"


def test_pooling_moves_a_variance_towards_the_others_and_counts_their_degrees():
    calm, wild, third = (over_trainings(0.5 - gap, 0.5 + gap) for gap in (0, 0.2, 0.1))
    by_task = {MRPC: calm, QQP: wild, RTE: third}
    pooled = statistics.pooled(by_task)
    mean = np.mean([0, 0.08, 0.02])
    for task, own in ((MRPC, 0), (QQP, 0.08), (RTE, 0.02)):
        of_examples = by_task[task].of_examples
        assert pooled[task].error ** 2 == pytest.approx(of_examples + (2 * mean + own) / 3 / 2)
    assert pooled[QQP].degrees == pytest.approx(2, abs=0.1), "no more than both others bring"
    assert statistics.pooled(pooled) == pooled, "once is enough"
    moderated = statistics.moderated({1: calm, 2: wild, 3: third})
    assert list(moderated.values()) == list(pooled.values())
    one_run = {RTE: over_trainings(0.5)}
    assert statistics.pooled({MRPC: calm, QQP: wild} | one_run)[RTE] == one_run[RTE]


def test_only_estimates_of_one_kind_and_of_several_tasks_are_pooled():
    small, large = (
        {
            task: over_trainings(middle - gap, middle + gap)
            for task, gap in ((MRPC, size), (QQP, 2 * size))
        }
        for middle, size in ((0.1, 0.001), (0.7, 0.1))
    )
    alone = statistics.pooled(small)
    assert alone != small
    nested = statistics.pooled({"small": small, "large": large, "text": "–"})
    assert nested == {"small": alone, "large": statistics.pooled(large), "text": "–"}
    flat = {(task, "small"): one for task, one in small.items()}
    flat |= {("large", task.name): one for task, one in large.items()}
    of_small = [one for key, one in statistics.pooled(flat).items() if "small" in key]
    assert of_small == list(alone.values())
    of_one_task = {MRPC: {"small": small[MRPC], "large": large[MRPC]}}
    assert statistics.pooled(of_one_task) == of_one_task
    of_no_task = {"MRPC, small": small[MRPC], "MRPC, large": large[MRPC]}
    assert statistics.pooled(of_no_task) == of_no_task


def test_averages_of_estimates():
    parts = [statistics.Estimate(0.2, 0.03, 10), statistics.Estimate(0.4, 0.04, 20)]
    mean = statistics.average(parts)
    assert (mean.value, mean.error, mean.n) == pytest.approx((0.3, 0.025, 30))
    exact = statistics.Estimate(0.1, 0.0, 9)
    assert mean.interval == pytest.approx((0.251, 0.349), abs=1e-5) and (-mean).value == -mean.value
    assert exact.p_above(0.05) == 0.5**9 and exact.p_above(0.1) == 1


def test_many_heads_against_a_least_effect():
    rng = np.random.default_rng(3)
    differences = rng.normal(0, 0.02, (200, 2, 3)) + [[0.05, 0.02, 0.0], [0.02, 0.02, 0.0]]
    differences[:100, 1, 2] = np.nan
    found = statistics.many_test(differences, 0.02, 1)
    assert found.above[0, 0] < 0.01 and found.below[0, 2] < 0.01 and found.above[0, 1] > 0.05
    mean = np.nanmean(differences[:, 1, 2])
    assert found.n[1, 2] == 100 and found.means[1, 2] == pytest.approx(mean)
    differences[:, 1, 2] = np.nan
    empty = statistics.many_test(differences, 0.02, 1)
    assert np.isnan(empty.means[1, 2])
    for name in ("above", "below", "below_alone"):
        p = getattr(empty, name)
        assert p[1, 2] == 1 and (getattr(empty[1], name) == p[1]).all()


def plain_max_statistic(differences, signs):
    """p values of "above 0" and "below 0" for differences of shape (examples, statistics)."""

    def score(column, flips):
        kept = [(value, flip) for value, flip in zip(column, flips, strict=True) if value == value]
        spread = sum(value * value for value, _ in kept) ** 0.5
        return sum(value * flip for value, flip in kept) / spread if spread else 0.0

    columns = differences.T.tolist()
    drawn = [[score(column, flips) for column in columns] for flips in signs]
    observed = [score(column, [1] * len(differences)) for column in columns]
    above = [1 + sum(max(scores) >= value for scores in drawn) for value in observed]
    below = [1 + sum(min(scores) <= value for scores in drawn) for value in observed]
    return np.array([above, below]) / (1 + len(drawn))


def test_many_tests_are_the_plain_maximum_statistic():
    rng = np.random.default_rng(0)
    differences = rng.normal(0.1, 1, size=(30, 6)) * [1, 10, 0.1, 1, 1, 1]
    differences[rng.random(differences.shape) < 0.2] = np.nan
    differences[:, 5] = 0
    signs = np.where(np.random.default_rng(7).random((200, 30)) < 0.5, -1, 1)
    found = statistics.many_test(differences.reshape(30, 2, 3), 0.0, seed=7, draws=200)
    expected = plain_max_statistic(differences, signs.tolist()).reshape(2, 2, 3)
    np.testing.assert_allclose([found.above, found.below], expected, atol=1e-12)


def test_that_all_heads_are_below_needs_no_correction():
    """Each of 72 heads lies three standard errors below: surely none is above, which a correction over 72 denies."""
    noise = np.random.default_rng(0).normal(0, 1, (100, 6, 12))
    below = (noise - noise.mean(axis=0)) / noise.std(axis=0, ddof=1) - 0.3
    test = statistics.many_test(below, 0.0, 1)
    assert Support(1.0, float(test.below.max())).outcome == UNDECIDED, "corrected over heads"
    assert verdicts.some_head(test).outcome == FAILS
    below[..., 0, 0] += 0.25  # one head is near the border
    assert verdicts.some_head(statistics.many_test(below, 0.0, 1)).outcome == UNDECIDED


def test_one_head_on_the_border_is_rarely_called_below():
    rng, fails = np.random.default_rng(0), 0
    for seed in range(200):
        values = rng.normal(0, 1, (60, 12)) - 1
        values[:, 0] += 1
        fails += verdicts.some_head(statistics.many_test(values, 0.0, seed)).outcome == FAILS
    assert fails / 200 <= 0.025 + 2 * np.sqrt(0.025 * 0.975 / 200)


def test_agreement_of_given_heads_knows_of_examples_and_a_relation_of_heads():
    """All heads keep their rank but two that are close: on other examples the same heads would; other heads might not."""
    rng = np.random.default_rng(0)
    means = np.arange(12.0)
    first, second = (rng.normal(0, 0.1, (50, 1, 12)) + of for of in (means, np.roll(means, 2)))
    agreed = statistics.rank_agreement(first, second, 1)
    related = statistics.rank_correlation(first.mean(axis=0)[0], second.mean(axis=0)[0], 1)
    assert agreed.value == pytest.approx(related.value) and (agreed.n, related.n) == (50, 12)
    assert np.ptp(agreed.interval) < 0.01 < 0.5 < np.ptp(related.interval)


def test_means_of_paired_numbers_and_differences_of_unpaired_ones():
    one, other = (statistics.Bootstrap(value, np.full(5, value), 10, 1) for value in (1.0, 3.0))
    mean, unpaired = statistics.mean_of([one, other]), statistics.Bootstrap(1.0, np.ones(5), 10, 2)
    assert mean.value == 2 and (mean.draws == 2).all()
    apart = statistics.apart(other, unpaired)
    assert apart.value == 2 and (apart.draws == 2).all() and apart.n == 20
    with pytest.raises(ValueError, match="not paired"):
        statistics.mean_of([one, unpaired])


def test_supports_combine():
    """Each outcome alone is tested with the rules, in test_judge."""
    sure, weak = Support(0.001, 1.0), Support(1.0, 0.02)
    assert (~sure).outcome == FAILS and all_of([]).outcome == UNDECIDED
    assert weak.outcome == FAILS
    assert all_of([weak, sure]).outcome == UNDECIDED, "one of two is corrected"
    assert any_of([~weak, ~sure]).outcome == UNDECIDED
    assert [Support(p, 1.0).outcome for p in (0.025, 0.026)] == [HOLDS, UNDECIDED]


# What another machine rounds otherwise.


def _pearson_of_a_constant(noise):
    labels = np.arange(24.0)
    return statistics.weighted_scores("Pearson", 3 + noise(24)[None], labels, np.ones((1, 24)))


def _tests(values):
    test = statistics.many_test(values, 0.0, 1)
    return np.stack([test.above, test.below, test.below_alone])


def _tests_of_no_difference(noise):
    return _tests(noise(24, 5))


def _tests_of_few_changes(noise):
    changes = np.zeros((24, 5))
    changes[:6] = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], (6, 5))
    return _tests(changes + noise(24, 5))


def _ranks_of_ties(noise):
    few = np.repeat([0.0, 0.01], [30, 2])
    return statistics.rank_of(few + noise(32) / 100, np.arange(32.0))


def _p_at_the_border(noise):
    one = statistics.Bootstrap(0.5, 0.5 + noise(50), 24, 1)
    return statistics.mean_over_seeds([one]).p_above(0.5)


@pytest.mark.parametrize(
    "statistic",
    [
        _pearson_of_a_constant,
        _tests_of_no_difference,
        _tests_of_few_changes,
        _ranks_of_ties,
        _p_at_the_border,
    ],
)
def test_rounding_moves_no_statistic(statistic):
    rng = np.random.default_rng(3)
    exact = statistic(lambda *shape: np.zeros(shape))
    for _ in range(5):
        rounded = statistic(lambda *shape: 1e-7 * rng.uniform(-1, 1, shape))
        np.testing.assert_allclose(rounded, exact, atol=MEASURED)


# Choices that rounding cannot exchange.


NOISE = 1e-5  # ten times what another processor changes


def test_order_does_not_hang_on_the_last_digits():
    values = np.array([[0.30, 0.50, 0.50003], [0.4999, 0.10, 0.30001]])
    rng = np.random.default_rng(0)
    for _ in range(50):
        noisy = values + NOISE * rng.uniform(-1, 1, values.shape)
        assert statistics.by_size(noisy).tolist() == [1, 2, 3, 0, 5, 4]
        assert statistics.largest(noisy) == (0, 1)


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (MARGIN * np.array([2, 0, 6, 4]), [2, 3, 0, 1]),
        # A chain of small steps is not one tie.
        (0.8 * MARGIN * np.arange(10), [8, 9, 6, 7, 4, 5, 2, 3, 0, 1]),
        (np.array([np.nan, 1, 2]), [2, 1, 0]),
    ],
    ids=["apart", "chain", "missing"],
)
def test_what_is_no_tie_is_ordered_by_size(values, order):
    assert statistics.by_size(values).tolist() == order


def test_numbers_as_printed():
    value = statistics.Bootstrap(0.87654, np.linspace(0.8, 0.9, 1001), 10)
    assert value.text(100) == "87.7 [80.2, 89.8]"
    zero = statistics.Bootstrap(-0.00001, np.zeros(3), 10)
    assert zero.text(100, sign=True) == "+0.0 [+0.0, +0.0]"
    for p, text in ((0.0009, "< 0.01"), (0.0099, "< 0.01"), (0.01, "0.01"), (0.949, "0.95")):
        assert statistics.p_text(p) == text
    assert (statistics.p_is(0.0099), statistics.p_is(0.949)) == ("p < 0.01", "p = 0.95")
