"""What is said of the claims of §4.1, given values that were made up."""

import numpy as np
import pytest
from made_up import SURE, around

from bertology_utils.glue.tasks import TASKS
from bertology_utils.patterns import claims, repeats
from bertology_utils.patterns.labelled_maps import PATTERNS
from bertology_utils.patterns.validation import PAPER_F1
from bertology_utils.statistics import verdicts
from bertology_utils.suite import results

MRPC, QQP, RTE = TASKS["mrpc"], TASKS["qqp"], TASKS["rte"]
RANGE = (0.32, 0.61)


def outcomes(judged):
    return [verdict.outcome for verdict in judged]


def f1(network, baseline=0.0):
    """F1 of the network and the baseline, each the same by both metrics and on both parts."""
    names = [(part, metric) for part in ("natural", "all") for metric in ("micro F1", "macro F1")]
    return {"cnn": dict.fromkeys(names, network), "baseline": dict.fromkeys(names, around(baseline, 1, apart=0))}


@pytest.mark.parametrize(("low", "outcome"), [(PAPER_F1 - 0.01, "agrees"), (PAPER_F1 + 0.01, "disagrees")])
def test_f1_agrees_if_the_papers_lies_in_the_interval(low, outcome):
    network = around(low + 0.01, 0.5, apart=0.01)
    found, _ = claims.judge_classifier(f1(network), natural=240, labelled=400)
    assert found.outcome == outcome
    assert found.ours.endswith("n=240 natural maps of 100 heads; all 400 maps: " + network.text(1, 2))


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_network_against_the_baseline(share, outcome):
    _, found = claims.judge_classifier(f1(around(0.7, share), baseline=0.7), natural=240, labelled=400)
    assert found.outcome == outcome


def test_constructed_maps():
    assert outcomes(claims.judge_constructed_maps(30, 30)) == ["agrees"]
    assert outcomes(claims.judge_constructed_maps(29, 30)) == ["disagrees"]


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_repeats_across_heads_want_every_task(share, outcome):
    (found,) = claims.judge_repeats_across_heads([1.0, share])
    assert found.outcome == outcome
    assert (
        found.ours
        == {
            "agrees": "agrees in 2, undecided in 0, disagrees in 0 of 2 tasks",
            "undecided": "agrees in 1, undecided in 1, disagrees in 0 of 2 tasks",
            "disagrees": "agrees in 1, undecided in 0, disagrees in 1 of 2 tasks",
        }[outcome]
    )


def test_repeat_share_counts_the_possible_patterns():
    """Of six heads two show each of the first three patterns, always; the last two show none."""
    usual = np.array([[0, 0, 1], [1, 2, 2]])
    one_hot = np.broadcast_to(np.eye(len(PATTERNS))[usual], (10, 2, 3, len(PATTERNS)))
    assert repeats.repeat_share(one_hot, np.arange(5) < 3, seed=1) == 1
    assert repeats.repeat_share(one_hot, np.arange(5) < 4, seed=1) == 0


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_repeats_across_tasks(share, outcome):
    assert outcomes(claims.judge_repeats_across_tasks(around(0.6, share), around(0.8, 1), tasks=7)) == [outcome]


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_heterogeneous_shares_in_the_papers_range(share, outcome):
    inside = around(0.5, 1)
    for edge, above in zip(RANGE, (share, 1 - share), strict=True):
        of_tasks = claims.judge_heterogeneous_shares([inside, around(edge, above)], inside, natural=240)
        assert outcomes(of_tasks) == [outcome, "agrees"]
        by_hand = claims.judge_heterogeneous_shares([inside, inside], around(edge, above), natural=240)
        assert outcomes(by_hand) == ["agrees", outcome]
    assert by_hand[0].ours == "2 of 2 tasks; 51% to 51%; n=200 dev examples"


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_lowest_and_highest_share(share, outcome):
    mrpc, rte, qqp = around(0.4, 1 - share), around(0.4, 1, apart=0), -around(-0.4, 1 - share)  # low where qqp is high
    judged = claims.judge_extremes({MRPC: mrpc, RTE: rte, QQP: qqp})
    assert outcomes(judged) == [outcome, outcome]
    assert [verdict.claim.split()[0] for verdict in judged] == ["MRPC", "QQP"]


def test_nothing_is_lowest_by_itself_or_among_other_tasks():
    share = around(0.4, 0.5)
    assert claims.judge_extremes({MRPC: share}) == []
    assert claims.judge_extremes({RTE: share, TASKS["sst2"]: share}) == []


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_random_weights(share, outcome):
    (found,) = claims.judge_random_weights(around(0.4, share), around(0.4, 1, apart=0), "MRPC")
    assert found.outcome == outcome


def test_the_suite_offers_the_same_verdicts():
    for name in ("Verdict", "outcome", "every", "verdict_table"):
        assert getattr(results, name) is getattr(verdicts, name)
