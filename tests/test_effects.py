"""Which gains are real: exact scores, the right level, a planted gain, none on shuffled labels; what is judged (§4.6)."""

import numpy as np
import pytest
from made_up import SURE, resampled
from plain import score

from bertology_utils.disabling import effects, measure
from bertology_utils.disabling.sweep import Sweep
from bertology_utils.glue import TASKS, plain_metric
from bertology_utils.statistics import METRICS, weighted_scores, whole_and_resampled
from bertology_utils.verdicts import (
    FAILS,
    HOLDS,
    SCORE,
    UNDECIDED,
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


def test_a_chosen_gain_shrinks_on_other_examples_unless_it_is_real():
    lucky = parts_of(*made("rte", variants=72))
    assert lucky.mean(axis=0).max() > 0 > effects.chosen_gain(lucky, lucky, 1).value
    real = parts_of(*made("rte", variants=72, helpful=5))
    assert effects.chosen_gain(real, real, 1).value > 0.05
    # Always the same head: the error is that of its mean over all examples.
    error = real[:, 5].std() / N**0.5
    assert effects.chosen_gain(real, real, 1).error == pytest.approx(error, rel=0.15)
    assert effects.chosen_gain(lucky, np.ones((N, 72)), 1).value == pytest.approx(1)
    with pytest.raises(ValueError, match="at least 4"):
        effects.chosen_gain(real[:3], real[:3], seed=1)


def test_heads_that_tie_are_averaged_and_not_the_first_taken():
    """Of 30 heads several often gain equally many of 20 answers; their order says nothing, and decides nothing."""
    parts = parts_of(*made("rte", variants=30, n=40))
    one, reversed_order = (effects.chosen_gain(of, of, 1) for of in (parts, parts[:, ::-1]))
    assert one.value == pytest.approx(reversed_order.value)


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
    assert {gain.value for gain in effects.gains(TASKS["rte"], baseline, variants, labels, 1)} == {
        0.0
    }
    found = effects.in_each([effects.Signed.of(parts_of(labels, baseline, variants), 1)])
    assert found["better"].min() > 0.5 and found["worse"].min() > 0.5


@pytest.mark.parametrize("name", ["rte", "stsb"])
def test_what_examples_add_to_a_gain_has_the_gain_as_its_mean_and_its_error(name):
    task = TASKS[name]
    labels, baseline, disabled = made(name, variants=6)
    parts = effects.gain_parts(task, baseline, disabled, labels)
    bootstraps = effects.gains(task, baseline, disabled, labels, 1)
    np.testing.assert_allclose(parts.mean(axis=1), [one.value for one in bootstraps], atol=1e-12)
    errors = [one.draws.std() for one in bootstraps]
    np.testing.assert_allclose(parts.std(axis=1) / N**0.5, errors, rtol=0.12)
    constant = effects.gain_parts(task, baseline, np.zeros((1, N)), labels)
    assert constant.mean() == pytest.approx(
        score(task, np.zeros(N), labels, plain_metric(task))[plain_metric(task)]
        - score(task, baseline, labels, plain_metric(task))[plain_metric(task)]
    )


# What claims are judged on


def with_gains(gains, shape=(4, 6)):
    """The heads (or layers) of a model with these gains, by number; the others change nothing."""
    count, nothing = int(np.prod(shape)), resampled(0, 0, 1e-6)
    return effects.Variants(shape, [gains.get(at, nothing) for at in range(count)])


def test_a_loss_of_a_regression_is_a_squared_error():
    close = effects.losses(STSB, np.array([[[0.5], [0.2]]]), np.array([2.0, 2.0]))  # of five
    np.testing.assert_allclose(close, [[0.01, 0.04]])


def test_harm_is_decided_by_the_layer_that_costs_most():
    for z, error, outcome in ((SURE, 0.02, FAILS), (0, 0.02, UNDECIDED), (-SURE, 0.001, HOLDS)):
        runs = [with_gains({0: resampled(-z, -SCORE, error)}, (3,))] * 2
        found = measure.no_harm({STSB: runs}, range(3))[STSB]
        assert found.outcome == outcome and found.number.startswith("layer 1 ")


def test_harm_is_judged_with_the_variance_between_the_runs_of_all_tasks():
    """Two runs that happen to agree say little where those of another task do not."""
    alike = [with_gains({0: resampled(0, -0.004, 1e-4)}, (3,))] * 2
    apart = [with_gains({0: resampled(0, gain, 1e-4)}, (3,)) for gain in (0.02, 0.06)]
    (alone,) = measure.no_harm({STSB: alike}, range(3)).values()
    assert alone.outcome == HOLDS
    assert measure.no_harm({STSB: alike, MRPC: apart}, range(3))[STSB].outcome == UNDECIDED


def needing(*heads):
    """A model that needs some heads more than all others, the first most."""
    return with_gains(
        {at: resampled(0, -0.06 + 0.01 * rank, 1e-4) for rank, at in enumerate(heads)}
    )


@pytest.mark.parametrize(
    ("rte", "mrpc", "outcome"),
    [
        ((0, 1, 2, 3, 4), (0, 5, 10, 15, 16), HOLDS),  # MRPC shares a head with each
        ((5, 6, 7, 8, 9), (15, 16, 17, 18, 19), UNDECIDED),
        ((10, 11, 12, 13, 14), (0, 1, 10, 11, 20), FAILS),
    ],
)
def test_two_tasks_share_heads_if_more_than_other_tasks_do(rte, mrpc, outcome):
    stsb = needing(0, 1, 2, 3, 4)
    found = {STSB: [stsb], RTE: [needing(*rte)], MRPC: [needing(*mrpc)]}
    value = measure.needs_alike(found, (STSB, RTE)).value
    assert np.sign(value) == {HOLDS: 1, UNDECIDED: 0, FAILS: -1}[outcome]
    both = measure.needed_by_all([found[STSB], found[RTE]])
    assert both == [divmod(at, 6) for at in sorted({0, 1, 2, 3, 4} & set(rte))]


def test_heads_that_tie_for_the_last_places_count_in_part():
    """One head is needed most, and then any four of ten."""
    means = [-0.02] * 10 + [0.0] * 13 + [-0.04]
    model = with_gains({at: resampled(0, mean, 1e-6) for at, mean in enumerate(means)})
    np.testing.assert_allclose(measure.most_needed(model)[0], [0.4] * 10 + [0] * 13 + [1])
    assert not measure.most_needed(with_gains({})).any(), (
        "a model that needs no head more than others"
    )
    assert measure.needed_by_all([[model]]) == [divmod(len(means) - 1, model.values.shape[1])], (
        "none of those that tie, whichever comes first"
    )


def test_profiles_differ_between_tasks_by_a_permutation_of_models():
    rng = np.random.default_rng(0)

    def models(noise):
        found = {}
        for task in list(TASKS.values())[:4]:
            profile = rng.normal(0, 0.01, 24)
            trainings = [profile + rng.normal(0, noise, 24) for _ in range(2)]
            found[task] = [
                with_gains({at: resampled(0, mean, 1e-4) for at, mean in enumerate(one)})
                for one in trainings
            ]
        return found

    assert measure.profiles_apart(models(0.005), 1).outcome == HOLDS
    assert measure.profiles_apart(models(0.5), 1).outcome != HOLDS


def test_several_heads_are_chosen_on_one_half_and_scored_on_the_other():
    labels = np.arange(60) % 2
    whole = np.where(labels[:, None] == [0, 1], 1.0, -1.0)
    heads = np.stack([whole] * 36)
    heads[0, :12] *= -1  # the first is needed by 12 examples
    sweep = Sweep(whole, heads.reshape(2, 18, 60, 2), heads[:2])
    seen = []

    def without(few):
        seen.append(few)
        return heads[0] if (0, 0) in few else whole

    found = measure.gain_without_a_twelfth(MRPC, without, sweep, labels, 1)
    assert found.value == 0 and found.n == 60
    assert all(len(few) == 3 and (0, 0) not in few for few in seen)
    layers = {layer for few in seen for layer, _ in few}
    assert layers == {0, 1}, "of heads that tie not only those of the first layer"
