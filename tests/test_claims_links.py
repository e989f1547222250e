"""What is said of the claims of §4.5, given values that were made up."""

import numpy as np
import pytest
from made_up import SURE, around

from bertology_utils.glue.tasks import TASKS
from bertology_utils.links import claims
from bertology_utils.links.dependencies import RelationTest
from bertology_utils.links.token_links import LINK_TYPES

SHAPE = (len(LINK_TYPES), 2, 3)  # types, layers, heads
MODELS = ("pre-trained", "fine-tuned")
EXAMPLES = [40, 40, 30, 30]


def outcomes(judged):
    return [verdict.outcome for verdict in judged]


def judged(chance, clear=None):
    clear = {name: np.zeros(SHAPE, dtype=bool) for name in MODELS} | (clear or {})
    return claims.judge_links(chance, EXAMPLES, {name: np.full(SHAPE, 0.01) for name in MODELS}, clear, 0.02)


@pytest.mark.parametrize(("share", "outcome"), SURE)
def test_highest_heads_are_neighbours_in_both_directions(share, outcome):
    found = judged({0: 1.0, 1: share, 2: 1.0, 3: 1.0})
    assert outcomes(found) == [outcome, "undecided", "undecided", "agrees", "undecided", "undecided"]
    assert found[0].ours == (
        f"verb → subject: lower in 100.0% of random sets, n=40 examples;"
        f" subject → verb: lower in {share:.1%} of random sets, n=40 examples"
    )
    assert found[0].why == "five of 6 heads, pre-trained"


def test_one_clear_head_disagrees_for_its_pair_and_model():
    clear = np.zeros(SHAPE, dtype=bool)
    clear[3, 1, 2] = True
    found = judged(dict.fromkeys(range(4), 1.0), {"fine-tuned": clear})
    assert outcomes(found) == ["agrees", "undecided", "undecided", "agrees", "undecided", "disagrees"]
    assert found[5].claim.startswith("No fine-tuned head clearly attends more along noun → pronoun or pronoun → noun")
    assert found[5].ours == "noun → pronoun 0 of 6 heads, up to +0.010; pronoun → noun 1 of 6 heads, up to +0.010"


def test_types_of_link_that_the_data_lack():
    """No pronouns: nothing is said of them, and clear heads of a type without links do not count."""
    found = judged({0: 1.0, 1: 1.0}, {"pre-trained": np.ones(SHAPE, dtype=bool)})
    assert outcomes(found) == ["agrees", "disagrees", "undecided", "undecided", "undecided", "undecided"]
    assert {verdict.ours for verdict in found[3:]} == {"–"}


def subjects(*beats):
    accuracy, baseline = around(0.6, above=0.5), around(0.4, above=0.5)
    return RelationTest("nsubj", 80, "dependent → head", 1, baseline, (1, 2), accuracy, accuracy - baseline, beats, 0.1)


@pytest.mark.parametrize(
    ("test", "outcome"), [(subjects((1, 2)), "disagrees"), (subjects(), "undecided"), (None, "undecided")]
)
def test_pointing(test, outcome):
    (found,) = claims.judge_pointing(test)
    assert found.outcome == outcome
    assert found.ours == (
        f"(2, 3) 60.0 [59.0, 61.0] % against 40.0 [39.0, 41.0] %; {len(test.beats)} heads; n=80 arcs" if test else "–"
    )


@pytest.mark.parametrize("punctuation", SURE)
@pytest.mark.parametrize("separator", SURE)
def test_last_layer(separator, punctuation):
    """[SEP] on all tasks but three, punctuation on these; what either gets on the other tasks does not count."""
    first = {
        TASKS["mrpc"]: {"[SEP]": 1.0, "punctuation": 0.0},
        TASKS["sst2"]: {"[SEP]": separator[0], "punctuation": 0.0},
        TASKS["rte"]: {"[SEP]": 0.0, "punctuation": punctuation[0]},
    }
    found = claims.judge_last_layer(first)
    assert outcomes(found) == [separator[1], punctuation[1]]
    assert found[1].ours == f"RTE {punctuation[0]:.0%} of resamples"


def test_last_layer_wants_the_tasks_named():
    found = claims.judge_last_layer({TASKS["mrpc"]: {"[SEP]": 1.0, "punctuation": 0.0}})
    assert outcomes(found) == ["agrees", "undecided"] and found[1].ours == "no such task"
