"""What notebook 1 shows and says: the second classifier, F1 from counts, examples, rows beside real data, sentences."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from made_up import estimate, resampled

from bertology_utils.attention import Batch
from bertology_utils.glue.tasks import TASKS
from bertology_utils.patterns import (
    augment,
    beside,
    controls,
    drawing,
    evidence,
    examples,
    labelled_maps,
    logistic,
    pictures,
    repeats,
    shares,
    summary,
    tables,
    validation,
)
from bertology_utils.patterns.baseline import map_statistics
from bertology_utils.patterns.labelled_maps import PATTERNS
from bertology_utils.statistics import Bootstrap, bootstrap_mean

MRPC, SST2, QQP = TASKS["mrpc"], TASKS["sst2"], TASKS["qqp"]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def tensors(picture):
    weights = torch.from_numpy(np.ascontiguousarray(picture.weights))[None]
    return weights, torch.from_numpy(picture.separators)[None]


def test_statistics_of_many_maps_are_those_of_each():
    labelled = [augment.picture(one) for one in labelled_maps.load_maps()[::9]]
    for picture in (*labelled, *controls.constructed_maps(8).values(), *controls.constructed_maps(5).values()):
        expected = map_statistics(picture.weights, picture.separators)
        np.testing.assert_allclose(logistic.statistics_of(*tensors(picture))[0], expected, atol=2e-6)
    same_length = [tensors(picture) for picture in controls.constructed_maps(16).values()]
    together = logistic.statistics_of(*(torch.cat(parts) for parts in zip(*same_length, strict=True)))
    alone = torch.cat([logistic.statistics_of(*one) for one in same_length])
    torch.testing.assert_close(together, alone)


def test_the_regression_at_work_is_the_one_that_was_validated():
    labelled = labelled_maps.load_maps()
    drawn = [augment.picture(one) for one in labelled]
    strength = validation.best_candidate(evidence.load_rounds("baseline"), validation.BASELINE_CANDIDATES)
    expected = validation.fit_baseline(drawn, validation.targets(labelled), strength, 1)(drawn)
    got = np.concatenate([logistic.load_logistic().predict(*tensors(picture)) for picture in drawn])
    assert np.mean(got == expected) > 0.99  # a map on the border may fall to the other side in single precision
    assert 0.7 < np.mean(got == validation.targets(labelled)) < 1
    with pytest.raises(ValueError, match="sum is off"):
        logistic.load_logistic().predict(torch.ones(1, 6, 6), torch.zeros(1, 6, dtype=torch.bool))


def test_f1_from_counts_is_that_of_the_maps():
    found = evidence.load_evidence()
    scores = evidence.f1_scores(found, 1)
    by_pattern = validation.f1_by_pattern(found.true, found.predicted)
    assert scores["macro F1"].value == pytest.approx(validation.macro_f1(found.true, found.predicted))
    assert scores["micro F1"].value == pytest.approx(validation.micro_f1(found.true, found.predicted))
    assert [scores[pattern].value for pattern in PATTERNS] == pytest.approx(by_pattern.tolist())
    few = evidence.load_evidence().of(np.arange(400) < 60)
    drawn = few.resampled(validation.macro_f1, 3).draws
    np.testing.assert_allclose(evidence.f1_scores(few, 3)["macro F1"].draws, drawn)
    assert (
        evidence.confusion(found).sum() == 400
        and np.trace(evidence.confusion(found)) == (found.true == found.predicted).sum()
    )


def test_shares_of_labels_and_agreement_of_two_labellings():
    judges = evidence.load_judges()
    parts = evidence.label_shares(judges["cnn"], 1)
    assert [part.value for part in parts] == pytest.approx((np.bincount(judges["cnn"].true) / 400).tolist())
    other = judges["one labelling against the other"]
    first, second = (judges[f"{name} labelling"].predicted for name in ("first", "second"))
    np.testing.assert_array_equal(other.true, first)
    np.testing.assert_array_equal(other.predicted, second)
    agreed = evidence.f1_by_part(judges, 1)["one labelling against the other"]["all", "micro F1"].value
    assert f"{agreed:.0%}" == tables.labels().loc["all", "same label"]


def test_shares_together_and_changes_by_examples():
    rng = np.random.default_rng(0)
    one_hot = np.eye(5)[rng.integers(0, 5, (80, 2, 3))]
    errors = shares.ClassifierErrors(np.eye(5), np.tile(np.eye(5), (1000, 1, 1)))
    parts = shares.pattern_shares(one_hot, errors, 1)["corrected"]
    both = shares.together(parts, ["vertical", "block"])
    plain = bootstrap_mean(one_hot[..., [0, 3]].sum(axis=-1).mean(axis=(1, 2)), 1)
    assert both.value == pytest.approx(plain.value, abs=1e-4) and both.n == 80
    np.testing.assert_allclose(both.draws, plain.draws, atol=1e-3)
    flips = np.zeros((80, 2, 3), int)
    flips[::2, 0] = 1  # a layer whose pattern hangs on the example: the halves differ in it
    assert repeats.changed_by_examples(np.eye(5)[flips], 1).value == pytest.approx(0.5)
    assert repeats.two_commonest(np.array([[2, 2, 2], [4, 4, 0]])) == ["vertical+diagonal", "heterogeneous"]


def test_one_example_of_a_pass_and_the_nearest_in_length():
    ids = torch.tensor([[1, 5, 2, 0, 0], [1, 6, 7, 8, 2]])
    batch = Batch({"input_ids": ids, "attention_mask": (ids > 0).long()}, [7, 3])
    other = Batch({"input_ids": ids[1:], "attention_mask": torch.ones(1, 5, dtype=torch.long)}, [1])
    assert examples.single([other, batch], 7).inputs["input_ids"].tolist() == [[1, 5, 2]]
    assert examples.of_length([batch, other], 9).index == [1], "of equals the first in the data"
    assert examples.of_length([batch, other], 2).index == [7]
    assert examples.of_length([batch, other], 2, np.array([3])).index == [3]
    with pytest.raises(ValueError, match="no example 5"):
        examples.single([batch], 5)


def test_extreme_heads_and_the_head_that_changed_most():
    built = controls.constructed_maps(16)
    names = ("uniform", "to [CLS]", "half to [CLS], half to itself", "to itself")
    maps = torch.tensor(np.stack([built[name].weights for name in names])).view(2, 2, 16, 16)
    chosen = examples.extreme_heads(maps, torch.from_numpy(built["uniform"].separators))
    assert chosen == {"strongest column": (0, 1), "strongest diagonal": (1, 1), "least of both": (0, 0)}
    before, after = np.full((2, 3, 5), 0.2), np.full((2, 3, 5), 0.2)
    after[1, 2] = [1, 0, 0, 0, 0]
    assert examples.most_changed(before, after) == (1, 2)


RESULTS = {
    "learned": {"mrpc": True, "qqp": True, "rte": False},
    "shares": {"mrpc": {"fine-tuned": {"corrected": {pattern: {"value": 0.2} for pattern in PATTERNS}}}},
    "heterogeneous": {name: {"value": 0.1, "low": 0.0, "high": 0.2} for name in ("mrpc", "qqp", "rte")},
    "changed_heads": {"mrpc": {"value": 0.05, "low": 0.0, "high": 0.1}},
    "by_head": {"mrpc": {"fine-tuned": [[[0, 0, 0, 0, 1], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0]]]}},
}


def test_rows_beside_real_data():
    found = beside.heterogeneous_rows("real", RESULTS, {"this run": {MRPC: 0.3, SST2: 0.4}}, 0.11, {"random": 1.0})
    assert found["MRPC"] == {"the paper": 0.32, "real": RESULTS["heterogeneous"]["mrpc"], "this run": 0.3}
    assert found["SST-2"] == {"this run": 0.4} and found["random"] == {"this run": 1.0} and "QQP" not in found
    own = {MRPC: estimate(0, 0.9), QQP: estimate(0, 0.8)}
    covered = beside.coverage_rows("real", RESULTS, own)
    assert covered["MRPC"]["real"] == 0.75 and "real" not in covered["QQP"]
    measured = {**RESULTS, "coverage": {"mrpc": {"value": 0.7, "low": 0.6, "high": 0.8}}}
    assert beside.coverage_rows("real", measured, own)["MRPC"]["real"]["low"] == 0.6
    changed = beside.changed_rows("real", RESULTS, own, own)["MRPC"]
    assert set(changed) == {"real", "this run", beside.NOISE} and changed["real"]["value"] == 0.05
    assert np.isnan(beside.paper_shares()["MRPC"][:4]).all() and beside.paper_shares()["QQP"][-1] == 0.61
    assert beside.real_shares(RESULTS) == {"MRPC": [0.2] * 5}
    for empty in (beside.real_shares({}), beside.real_usual({})):
        assert empty == {}
    assert beside.coverage_rows("real", {}, own)["MRPC"] == {"this run": own[MRPC]}


def test_panels_of_tasks_that_both_runs_have():
    usual = {"MRPC": np.zeros((1, 4), int), "QQP": np.ones((1, 4), int)}
    panels = beside.shared_tasks(beside.real_usual(RESULTS), "MiniLM, real GLUE", usual)
    assert list(panels) == ["MRPC, real GLUE", "MRPC, this run"]
    assert panels["MRPC, real GLUE"].tolist() == [[4, 0, 0, 3]]
    assert list(beside.shared_tasks({}, "x", usual)) == ["MRPC, this run", "QQP, this run"]
    assert len(drawing.usual_patterns(panels).axes) > 2


def test_bars_reach_as_far_as_the_shares_and_unknown_ones_are_grey():
    figure = drawing.shares({"the paper": beside.paper_shares(), "ours": {"MRPC": [0.5, 0.2, 0.1, 0.1, 0.1]}})
    paper, ours = figure.axes
    assert [round(bar.get_width()) for bar in ours.patches] == [50, 20, 10, 10, 10]
    assert [round(bar.get_width()) for bar in paper.patches] == [68, 32, 39, 61]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*PATTERNS, "not given singly"]
    low, high = drawing.heterogeneous({"MRPC": {"this run": estimate(0, 0.3)}}).axes[0].patches[-1].get_extents().intervalx
    assert low < high


def scores(heterogeneous):
    judges = {"cnn": heterogeneous, "baseline": 0.71, summary.OTHER: 0.82}
    return {
        who: {("natural", name): Bootstrap(value, np.array([value]), 66, 1)
              for name, value in [("micro F1", 0.8), ("macro F1", 0.7), *((p, loose) for p in PATTERNS)]}
        for who, loose in judges.items()
    }  # fmt: skip


def test_sentences_follow_their_numbers():
    assert "F1 is 0.53 for the network, 0.71 for logistic" in summary.trusted(scores(0.53))
    low, high = {MRPC: estimate(0, 0.02), QQP: estimate(0, 0.12)}, {MRPC: estimate(0, 0.4)}
    told = summary.how_often(low, high)
    assert "2 % (MRPC) to 12 % (QQP) of a task's maps" in told and "and 40 % (MRPC) by that" in told
    assert "learned nothing shows them, too" in summary.lesson_of_random_weights(0.97, "MRPC")
    assert "patterns before it has learned" in summary.lesson_of_random_weights(0.2, "MRPC")
    usual = {MRPC: np.array([[0, 0, 2]]), QQP: np.array([[2, 2, 0]]), SST2: np.array([[0, 1, 0]])}
    assert summary.commonest(usual) == "The two commonest usual patterns are vertical and vertical+diagonal on 2 of 3 tasks."
    assert "adds nothing to" in summary.inherited(estimate(0, 0.7), resampled(0, 0.8))
    assert "raises" in summary.inherited(estimate(0, 0.7), resampled(0, 0.6))
    assert "two learned tasks" in summary.inherited(None, None)
    assert "these alone change 12 % at most" in summary.changed(low, low)
    ways = {"MRPC": [0.6, 0, 0, 0, 0.1]}, {"MRPC": [0.2, 0, 0, 0, 0.5]}
    assert "By norm 20 % of the maps are vertical instead of 60 %, and 50 %" in summary.by_norm(*ways)
    row = [pictures.Shown(np.eye(4), (3,), f"{task}\n{pattern}") for task, pattern in (("MRPC", "block"), ("QQP", "block"))]
    assert summary.rows_alike({"(1, 2)": row}) == "1 heads in rows, 2 tasks in columns. head (1, 2): block."


def test_pictures_show_every_map():
    maps = np.tile(np.eye(5), (2, 3, 1, 1))
    figure = pictures.every_head(maps, np.array([[0, 1, 2], [3, 4, 0]]), [4])
    assert len(figure.axes) == 6
    frames = [ax.spines["left"].get_edgecolor() for ax in figure.axes]
    assert frames[0] == frames[5] != frames[1]
    shown = {name: [pictures.Shown(np.eye(5), (4,), "x")] * 2 for name in ("a", "b+c")}
    assert [ax.get_ylabel() for ax in pictures.in_rows(shown).axes[::2]] == ["a", "b\n+ c"]
    assert len(pictures.with_tokens({"one": np.eye(3), "two": np.eye(3)}, ["a", "b", "c"]).axes) == 3
    labelled = labelled_maps.load_maps()[:4]
    assert "4 of 9 maps" in pictures.sheet(labelled, 9).get_suptitle()
