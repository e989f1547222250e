"""What is said of the claims of §4.6 and §5, given values that were made up."""

import numpy as np
import pytest
from made_up import around

from bertology_utils.disabling import claims
from bertology_utils.disabling.controls import GainTest, SelectedGain
from bertology_utils.disabling.measure import Effects, Variants
from bertology_utils.glue.tasks import TASKS

MRPC, STSB, SST2, RTE, QNLI = (TASKS[name] for name in ("mrpc", "stsb", "sst2", "rte", "qnli"))
SHAPE = (3, 4)  # layers, heads
NOTHING = around(0, above=0.5, apart=0.0001)


def outcomes(judged):
    return [verdict.outcome for verdict in judged]


def variants(shape, gains=None, better=(), worse=(), honest=0.0):
    """Heads or layers: gains by index (0 for the others), which of them are at a corrected p, and the honest gain."""
    count = int(np.prod(shape))
    ps = [np.where(np.isin(np.arange(count), chosen), 0.001, 1.0) for chosen in (better, worse)]
    bootstraps = [(gains or {}).get(index, NOTHING) for index in range(count)]
    test = GainTest(np.array([gain.value for gain in bootstraps]), *ps, np.zeros(10))
    return Variants(shape, bootstraps, test, SelectedGain(np.zeros(10), np.full(10, honest)), None)


def effects(heads=None, layers=None):
    """Of one training; ``heads`` and ``layers`` are arguments of :func:`variants`."""
    return Effects(0.8, variants(SHAPE, **heads or {}), variants(SHAPE[:1], **layers or {}))


UP, DOWN = around(0.02, above=0.5), around(-0.02, above=0.5)


@pytest.mark.parametrize("part", ["heads", "layers"])
@pytest.mark.parametrize(
    ("second", "raises", "real"),
    [
        ({"gains": {1: UP}, "better": [1], "honest": 0.01}, "agrees", "agrees"),
        ({"gains": {1: UP}, "honest": 0.01}, "agrees", "undecided"),
        ({"gains": {1: UP}, "honest": -0.01}, "agrees", "disagrees"),
        ({"honest": 0.01}, "disagrees", "undecided"),
    ],
)
def test_gains_of_every_training(part, second, raises, real):
    helpful = {"gains": {0: UP}, "better": [0], "honest": 0.01}
    both = {"heads": helpful, "layers": helpful}
    found = claims.judge_gains(
        {
            (MRPC, 0): effects(**both),
            (MRPC, 1): effects(**both | {part: second}),
            (RTE, 0): effects(**both),
            (RTE, 1): effects(**both),
        }
    )
    assert outcomes(found) == ([raises, real, "agrees", "agrees"] if part == "heads" else ["agrees", "agrees", raises, real])
    assert found[0].ours.startswith("MRPC +2.00, ") and "; RTE +2.00, +2.00 points" in found[0].ours
    assert found[2].claim == "On every task disabling some layer raises the score"


@pytest.mark.parametrize(
    ("above", "outcome"), [(1.0, "agrees"), (0.97, "undecided"), (0.03, "undecided"), (0.0, "disagrees")]
)
def test_random_head_on_both_tasks(above, outcome):
    """At the level of 0.975, on MRPC and on RTE; other tasks are not asked."""
    every_head = {"gains": {index: around(0, above=above) for index in range(12)}}
    good = {"gains": dict.fromkeys(range(12), around(0, above=1))}
    bad = {"gains": dict.fromkeys(range(12), around(0, above=0))}
    found = claims.judge_random_head({(MRPC, 0): effects(good), (RTE, 0): effects(every_head), (SST2, 0): effects(bad)})
    assert outcomes(found) == [outcome]
    (nowhere,) = claims.judge_random_head({(SST2, 0): effects(good)})
    assert (nowhere.ours, nowhere.outcome) == ("no such task", "undecided")


@pytest.mark.parametrize(
    ("second", "outcome"),
    [({"better": [0]}, "agrees"), ({}, "undecided"), ({"worse": [0]}, "disagrees"), ({"better": [1]}, "undecided")],
)
def test_first_layer_in_every_training(second, outcome):
    found = claims.judge_layers({(RTE, 0): effects(layers={"better": [0]}), (RTE, 1): effects(layers=second)})
    assert outcomes(found) == [outcome, "undecided"] and found[1].ours == "no such task"


@pytest.mark.parametrize(
    ("layers", "outcome"),
    [
        ({"gains": {2: DOWN}, "worse": [2]}, "disagrees"),
        ({"gains": {2: DOWN}}, "undecided"),
        ({"gains": {2: around(-0.001, above=0.5, apart=0.0001)}, "worse": [2]}, "undecided"),
    ],
)
def test_worst_layer_costs_more_than_the_papers(layers, outcome):
    found = claims.judge_layers({(QNLI, 0): effects(layers=layers), (QNLI, 1): effects()})
    assert outcomes(found) == ["undecided", outcome] and found[0].ours == "no such task"


@pytest.mark.parametrize(
    ("heads", "outcome"),
    [
        ({"gains": {6: DOWN}, "worse": [6]}, "disagrees"),
        ({"gains": {6: DOWN}}, "undecided"),
        ({}, "agrees"),
        ({"gains": {7: DOWN}, "worse": [7]}, "agrees"),
    ],
)
def test_frame_heads(heads, outcome):
    """Head (2, 3) is number 6 of 12; another's loss does not count."""
    (found,) = claims.judge_frame_heads({(MRPC, 0): effects(), (RTE, 0): effects(heads)}, [(0, 1), (1, 2)])
    assert found.outcome == outcome and found.ours.endswith("n=100; the least p of 4")
    if outcome == "disagrees":
        assert found.ours.startswith("(2, 3) on RTE: -2.00 [-3.00, -1.00] points, corrected p < 0.01")


def needing(*heads):
    """A model that needs these heads, each more than the next, and at a corrected p."""
    costs = {head: around(-0.02 * (5 - place), above=0.5, apart=0.001) for place, head in enumerate(heads)}
    return effects({"gains": costs, "worse": list(heads)})


@pytest.mark.parametrize(
    ("stsb", "rte", "outcome"),
    [
        ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], "agrees"),
        ([7, 8, 9, 10, 11], [0, 1, 2, 3, 4], "disagrees"),
        ([0, 1, 2, 3, 4], [2, 3, 4, 10, 11], "undecided"),
        ([], [7, 8, 9, 10, 11], "undecided"),
    ],
)
def test_shared_heads_in_every_training(stsb, rte, outcome):
    (found,) = claims.judge_shared_heads({(RTE, 0): needing(*rte), (STSB, 0): needing(*stsb)})
    assert found.outcome == outcome
    (mixed,) = claims.judge_shared_heads(
        {
            (STSB, 0): needing(0, 1, 2, 3, 4),
            (STSB, 1): needing(7, 8, 9, 10, 11),
            (RTE, 0): needing(0, 1, 2, 3, 4),
            (RTE, 1): needing(0, 1, 2, 3, 4),
        }
    )
    assert mixed.outcome == "undecided" and mixed.ours == "shared of five: 5 (p < 0.01), 0 (p = 1.00)"
    (alone,) = claims.judge_shared_heads({(STSB, 0): needing(0)})
    assert (alone.ours, alone.outcome) == ("no such tasks", "undecided")


@pytest.mark.parametrize(("p", "outcome"), [(0.001, "agrees"), (0.5, "undecided")])
def test_trainings_where_heads_are_needed(p, outcome):
    trainings = {(task, number): needing(0) for task in (MRPC, RTE) for number in (0, 1)}
    trainings |= {(SST2, 0): needing(0), (SST2, 1): effects()}
    between = {MRPC: [(0.5, (4, 0.001))], RTE: [(0.25, (3, p))], SST2: [(0.0, (0, 1.0))]}
    (found,) = claims.judge_trainings(trainings, between)
    assert found.outcome == outcome and found.ours.startswith("MRPC 4 of 5 (p < 0.01), ρ = +0.50; RTE 3 of 5")
    assert "SST-2" not in found.ours
    (none,) = claims.judge_trainings({(SST2, 0): effects()}, {SST2: []})
    assert (none.ours, none.outcome) == ("–", "undecided")
