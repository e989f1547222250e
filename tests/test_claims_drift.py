"""What is said of the claims of §4.3, given values that were made up."""

import numpy as np
import pytest
from made_up import SURE, around

from bertology_utils.drift import claims, controls
from bertology_utils.glue.tasks import TASKS

MRPC, QQP, STSB, QNLI = (TASKS[name] for name in ("mrpc", "qqp", "stsb", "qnli"))
GAIN = around(0.0, 1)


def outcomes(judged):
    return [verdict.outcome for verdict in judged]


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_gains_on_every_task(share, outcome):
    gains, sure = {MRPC: GAIN, STSB: around(0, share)}, {MRPC: GAIN, STSB: GAIN}
    assert outcomes(claims.judge_gains(gains, sure)) == [outcome, "agrees"]
    judged = claims.judge_gains(sure, gains)
    assert outcomes(judged) == ["agrees", outcome]
    assert judged[1].ours.startswith("2 of 2 tasks" if outcome == "agrees" else "1 of 2 tasks")


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_random_start_behind_on_its_two_tasks(share, outcome):
    differences = {MRPC: GAIN, STSB: -GAIN, QNLI: around(0, 1 - share)}
    (found,) = claims.judge_random_start_behind(differences)
    assert found.outcome == outcome and "MRPC" not in found.ours
    assert claims.judge_random_start_behind({MRPC: GAIN}) == []


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_last_layers(share, outcome):
    assert outcomes(claims.judge_last_layers({MRPC: 1.0, STSB: share})) == [outcome]
    assert outcomes(claims.judge_last_layers({QQP: 1 - share})) == [outcome]
    judged = claims.judge_last_layers({QQP: 1.0, MRPC: share})
    assert outcomes(judged) == [outcome, "disagrees"] and judged[1].claim == "QQP is the exception"


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_another_seed(share, outcome):
    assert outcomes(claims.judge_another_seed(around(0.2, share), around(0.1, 1, apart=0))) == [outcome]


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_random_start(share, outcome):
    assert outcomes(claims.judge_random_start({MRPC: 0.0, STSB: 1 - share}, tasks=7)) == [outcome]


def test_a_random_start_that_learned_nothing_says_nothing():
    (found,) = claims.judge_random_start({}, tasks=7)
    assert (found.outcome, found.ours) == ("undecided", "learned 0 of 7 tasks")


def test_mean_change_is_over_comparisons_and_tasks():
    def constant(value):
        return np.full((20, 2, 3), value)

    similarity = {
        MRPC: {"first": constant(0.9), "again": constant(0.7)},
        STSB: {"first": constant(0.5), "again": constant(0.5)},
    }
    change = controls.mean_change(similarity, ["first", "again"], {MRPC: (1, 0), STSB: (1, 1)})
    assert change.value == pytest.approx(0.35) and change.interval == pytest.approx((0.35, 0.35)) and change.n == 40
    assert controls.mean_change(similarity, ["first"], {MRPC: (1, 0), STSB: (1, 1)}).value == pytest.approx(0.3)


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_learned_is_surely_above_the_constant_answer(share, outcome):
    labels = np.array([0, 1, 1, 1])  # always the same answer is right in 0.75
    assert controls.learned(MRPC, {"accuracy": around(0.75, share)}, labels) == (outcome == "agrees")
