"""What is said of the claims of §4.4, given values that were made up."""

import numpy as np
import pytest
from made_up import SURE, around

from bertology_utils.annotation.token_types import LINGUISTIC, TOKEN_TYPES
from bertology_utils.features import Increase, claims, increase
from bertology_utils.glue.tasks import TASKS

MRPC, SST2, RTE, QQP, QNLI = (TASKS[name] for name in ("mrpc", "sst2", "rte", "qqp", "qnli"))
SHAPE = (2, 3)  # layers, heads


def outcomes(judged):
    return [verdict.outcome for verdict in judged]


@pytest.mark.parametrize(("apart", "outcome"), [(0.03, "agrees"), (0.05, "disagrees")])
def test_published_heatmap(apart, outcome):
    published = np.linspace(0, 1, 144).reshape(12, 12)
    (found,) = claims.judge_published_heatmap("[SEP]", published, published + apart, 30, reading_error=0.02)
    assert found.outcome == outcome
    assert found.ours == f"correlation over 144 cells 1.00; mean difference {apart:.3f}, n=30"


@pytest.mark.parametrize(
    ("striped", "exclusively", "predominantly"),
    [([0, 5], "agrees", "agrees"), ([2, 5], "disagrees", "agrees"), ([5, 5], "disagrees", "disagrees")],
)
def test_stripes_on_every_task(striped, exclusively, predominantly):
    found = claims.judge_stripes({MRPC: [0, 6], RTE: striped}, {MRPC: [1, 0], RTE: [3, 0]}, heads=72)
    assert outcomes(found) == [exclusively, predominantly]
    assert found[0].ours.endswith(
        f"RTE {striped[0]} of 72 on words, 5 of 72 on special tokens; random weights: 3 of 72 on words at most"
    )


@pytest.mark.parametrize(("below", "outcome"), SURE)
def test_words_beside_marks_on_every_task(below, outcome):
    ratios = {MRPC: (around(0.1, above=0), "nouns"), RTE: (around(0.1, above=1 - below), "verbs")}
    assert outcomes(claims.judge_words_beside_marks(ratios)) == [outcome]


@pytest.mark.parametrize("without_first", SURE)
@pytest.mark.parametrize("whole", SURE)
@pytest.mark.parametrize(("kind", "sign", "where"), [("[CLS]", 1, "earlier"), ("[SEP]", -1, "later")])
def test_halves(kind, sign, where, whole, without_first):
    """[CLS] gets more in earlier layers where the drop is above 0, [SEP] in later ones where it is below."""
    drops = []
    for share, _ in (whole, without_first):
        drop = around(0, above=share)
        drops.append({MRPC: drop if sign == 1 else -drop})
    found = claims.judge_halves(kind, *drops)
    assert outcomes(found) == [whole[1], without_first[1]]
    assert found[0].claim == f"{kind} gets more in {where} layers, on every task"
    assert found[1].claim == f"Control: {kind} still gets more in {where} layers when layer 1 is left out, on every task"


@pytest.mark.parametrize(("above", "outcome"), SURE)
def test_separators(above, outcome):
    """Of SST-2 beside two-sentence tasks; for all [SEP] together the claim is that it is not ahead."""
    two = {MRPC: around(0.1, above=0.5, apart=0), RTE: around(0.05, above=0.5, apart=0)}
    ahead = {**two, SST2: around(0.1, above=above)}
    other = {"agrees": "disagrees", "disagrees": "agrees"}.get(outcome, outcome)
    assert outcomes(claims.judge_separators(ahead, ahead, ahead)) == [outcome, other, outcome]


@pytest.mark.parametrize("tasks", [(SST2,), (MRPC, RTE)])
def test_separators_want_tasks_of_both_kinds(tasks):
    values = [{task: around(0.1, above=1) for task in tasks} for _ in range(3)]
    assert outcomes(claims.judge_separators(*values)) == ["undecided"] * 3


def increases(*rising, kinds=TOKEN_TYPES):
    """One head gives these types more, no other head any."""
    means, p = np.zeros((len(kinds), *SHAPE)), np.ones((len(kinds), *SHAPE))
    for kind in rising:
        means[kinds.index(kind), 1, 2], p[kinds.index(kind), 1, 2] = 0.25, 0.001
    return Increase(means, p, np.full(len(kinds), 40))


def of_kind(judged, kind):
    """Outcomes by whether it is the paper's claim, beyond matched words, or on these tasks only."""
    return [verdict.outcome for verdict in judged if f" {kind} " in verdict.claim]


@pytest.mark.parametrize(
    ("weights", "beyond", "elsewhere", "expected"),
    [
        (["nouns"], ["nouns"], [], ["agrees", "agrees", "agrees"]),
        (["nouns"], [], ["nouns"], ["agrees", "disagrees", "disagrees"]),
        ([], [], ["verbs"], ["disagrees", "disagrees", "agrees"]),
    ],
)
def test_fine_tuning(weights, beyond, elsewhere, expected):
    tasks = (MRPC, QQP, RTE, SST2)
    found = claims.judge_fine_tuning(
        {task: increases(*weights) for task in tasks},
        {task: increases(*(elsewhere if task is SST2 else beyond), kinds=LINGUISTIC) for task in tasks},
    )
    assert len(found) == 9 and of_kind(found, "nouns") == expected
    assert found[0].ours.startswith(f"MRPC {len(weights)} of 6 heads, up to +{0.25 * len(weights):.3f}, n=40; QQP")


def test_fine_tuning_wants_the_tasks_named():
    """Of negation the paper names QNLI: without it nothing is said, nor where there is no other task."""
    without, alone = ({task: increases("negation") for task in tasks} for tasks in ((MRPC, RTE), (QNLI,)))
    assert of_kind(claims.judge_fine_tuning(without, without), "negation") == ["undecided"] * 3
    assert of_kind(claims.judge_fine_tuning(alone, alone), "negation") == ["agrees", "agrees", "undecided"]


def test_fine_tuning_is_judged_on_every_task_named():
    both = {MRPC: increases("nouns"), RTE: increases()}
    assert of_kind(claims.judge_fine_tuning(both, both), "nouns")[:2] == ["disagrees", "disagrees"]


def test_sentences_stand_by_themselves():
    both = {task: increases() for task in (MRPC, QNLI)}
    found = [verdict.claim for verdict in claims.judge_fine_tuning(both, both)]
    assert found[:3] == [
        "Fine-tuning makes some head attend more to nouns on MRPC",
        "Control: fine-tuning makes some head's attention to nouns grow more than that to matched words, on MRPC",
        "Control: on MRPC only, fine-tuning makes some head's attention to nouns grow more than that to matched words",
    ]
    assert len(set(found)) == 9 and not any("…" in claim for claim in found)


@pytest.mark.parametrize(("found", "outcome"), [(True, "disagrees"), (False, "undecided")])
def test_matched_words(found, outcome):
    excess, large = np.full((len(LINGUISTIC), *SHAPE), 0.01), np.zeros((len(LINGUISTIC), *SHAPE), dtype=bool)
    large[2, 1, 1] = found
    (verdict,) = claims.judge_matched_words({"pre-trained": excess}, {"pre-trained": large}, [40] * len(LINGUISTIC), 0.02)
    assert verdict.outcome == outcome
    assert f"pronouns {int(found)} of 6 heads, up to +0.010, n=40" in verdict.ours


def test_increase_is_tested_over_the_examples_that_have_the_type():
    rng = np.random.default_rng(0)
    differences = rng.normal(0, 0.01, (60, 3, *SHAPE))
    differences[:, 0, 1, 2] += 0.02
    differences[30:, 1], differences[:, 2] = np.nan, np.nan
    found = increase(differences, seed=1)
    assert found.n.tolist() == [60, 30, 0]
    np.testing.assert_allclose(found.means[:2], [differences[:, 0].mean(axis=0), differences[:30, 1].mean(axis=0)])
    assert np.isnan(found.means[2]).all()
    assert (found.p < 0.05).sum() == 1 and found.p[0, 1, 2] < 0.05
