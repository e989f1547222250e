"""Estimates and tests of many heads on arrays with named axes, and what claims make of them."""

import json

import numpy as np
import pytest
import xarray as xr
from scipy.stats import t as students_t

from bertology_utils import stats
from bertology_utils.claims import FAILS, HOLDS, UNDECIDED, mark
from bertology_utils.study import Study


def values(mean=0.0, runs=2, examples=300, apart=0.0, seed=0):
    rng = np.random.default_rng(seed)
    shift = rng.normal(0, apart, (runs, 1)) if apart else 0
    return xr.DataArray(rng.normal(mean, 1, (runs, examples)) + shift, dims=["run", "example"])


def heads(effect=0.0, examples=200, seed=0):
    """Flips of answers by 3 × 4 heads; one of them may gain."""
    rng = np.random.default_rng(seed)
    flips = rng.choice([-1.0, 0, 0, 0, 0, 1], (examples, 3, 4))
    flips[:, 1, 2] += rng.random(examples) < effect
    axes = {"layer": range(1, 4), "head": range(1, 5)}
    return xr.DataArray(flips, axes, dims=["example", "layer", "head"])


def test_an_estimate_of_one_run_is_the_usual_mean_and_error_and_keeps_other_axes():
    one = values(0.3, runs=1)
    found = stats.estimate({"MRPC": one.expand_dims(layer=range(1, 4))})
    assert found.value.sizes == {"task": 1, "layer": 3}
    found = found.sel(task="MRPC", layer=2)
    assert float(found.value) == pytest.approx(float(one.mean()))
    error = float(one.std("example", ddof=1)[0]) / 300**0.5
    assert float(found.error) == pytest.approx(error)
    half = students_t.ppf(0.975, 299) * error
    assert float(found.high - found.low) == pytest.approx(2 * half)


def test_intervals_cover_the_mean_of_all_runs_and_examples_in_19_of_20_cases():
    """Of seven tasks with two runs each, which differ as the examples of their means do."""
    covered = []
    for seed in range(120):
        tasks = {str(at): values(0, apart=0.08, seed=100 * seed + at) for at in range(7)}
        found = stats.estimate(tasks)
        covered += ((found.low < 0) & (found.high > 0)).values.tolist()
    assert 0.92 < np.mean(covered) < 0.98


def test_a_task_with_one_run_borrows_the_variance_between_runs_of_the_others():
    many = values(0, runs=5, apart=1.0)
    width = []
    for others in ({}, {"MRPC": many}):
        one = stats.estimate({"RTE": values(runs=1), **others}).sel(task="RTE")
        width.append(float(one.high - one.low))
    assert width[1] > 5 * width[0]


@pytest.mark.parametrize("sides", [1, 2])
def test_maxima_of_the_null_are_those_of_a_plain_loop(sides):
    flips, signs = heads(), np.random.default_rng(3).choice([-1.0, 1.0], (50, 200))
    plain = [(one[:, None, None] * flips.values).mean(axis=0) for one in signs]
    largest = [np.abs(one).max() if sides == 2 else one.max() for one in plain]
    turned = flips.transpose("head", "example", "layer")
    np.testing.assert_allclose(stats.null_maxima(turned, sides, draws=50, seed=3), largest)


def test_p_values_find_a_head_that_gains_and_no_other():
    flips = heads(0.35)
    flips[:, 0, 0] = 0  # changes nothing
    p = stats.corrected_p(flips)
    assert float(p.sel(layer=2, head=3)) < 0.01 and float(p.sel(layer=1, head=1)) > 0.9
    assert float(p.where(p > p.min()).min()) > 0.01
    least = [float(stats.corrected_p(heads(seed=seed), draws=400).min()) for seed in range(100)]
    assert np.mean(np.array(least) < 0.05) < 0.1, "some head of twelve in one of twenty cases"


def test_the_score_of_a_regression_is_its_correlation_and_has_its_error():
    rng = np.random.default_rng(1)
    label = rng.random(400)
    answer = 0.5 * label + rng.normal(0, 0.15, (3, 400))
    one = xr.Dataset({"label": ("example", label), "answer_without": (("head", "example"), answer)})
    parts = stats.score(one, "_without")
    expected = [100 * np.corrcoef(label, of)[0, 1] for of in answer]
    np.testing.assert_allclose(parts.mean("example"), expected, atol=1e-9)
    drawn = [np.corrcoef(label[at], answer[0, at])[0, 1] for at in rng.integers(0, 400, (800, 400))]
    assert float(parts.isel(head=0).std()) / 20 == pytest.approx(100 * np.std(drawn), rel=0.1)
    constant = one.assign(answer_without=0 * one.answer_without)
    np.testing.assert_array_equal(stats.score(constant, "_without"), 0)


def test_a_share_has_the_mean_and_the_error_of_resampled_examples():
    rng = np.random.default_rng(0)
    arcs = rng.integers(2, 20, 300)
    right, rows = rng.binomial(arcs, 0.6), rng.integers(0, 300, (4000, 300))
    draws = 100 * right[rows].sum(axis=1) / arcs[rows].sum(axis=1)
    both = (xr.DataArray(one[None], dims=("run", "example")) for one in (right, arcs))
    one = stats.estimate({"": stats.share(*both)}).isel(task=0)
    assert float(one.value) == pytest.approx(100 * right.sum() / arcs.sum())
    assert float(one.error) == pytest.approx(draws.std(), rel=0.05)


def test_the_score_of_a_classifier_is_its_accuracy_and_one_answer_for_all_gives_the_majority_class():
    one = xr.Dataset(
        {"right": ("example", [True] * 4), "label": (("run", "example"), [[1, 1, 0, 1]] * 2)}
    )
    assert stats.majority(one) == 75 and np.isnan(stats.majority(one.drop_vars("right")))
    assert float(stats.score(one.assign(right=one.right & (one.label[0] == 1))).mean()) == 75


def test_refitting_undoes_a_scale_and_a_shift_of_all_answers():
    rng = np.random.default_rng(0)
    answer, label = rng.normal(size=(2, 300)), rng.integers(0, 2, 300)
    odds = xr.DataArray(answer + label, dims=["run", "example"])
    both = xr.concat([odds, 0.5 * odds - 1], "head")
    one = xr.Dataset({"label": ("example", label), "loss": np.logaddexp(0, (1 - 2 * label) * both)})
    right, moved = stats.refitted(one).transpose("head", "run", "example")
    np.testing.assert_allclose(moved, right, atol=1e-3)
    assert (right.mean("example") < one.loss.mean("example")).all()
    of_scores = xr.Dataset({"label": odds[0], "answer_without": 3 - 2 * odds[0]})
    np.testing.assert_allclose(stats.refitted(of_scores, "_without"), 0, atol=1e-12)
    with pytest.raises(ValueError, match="not of more"):
        stats.refitted(one.assign(label=one.label + 1))


def answered(outputs, labels):
    """A measurement of a classifier with these probabilities of the label 1."""
    loss = -np.log(np.where(labels == 1, outputs, 1 - outputs))
    return xr.Dataset({"label": ("example", labels), "loss": (("run", "example"), loss[None])})


def test_a_concordance_is_the_share_of_pairs_in_order_whatever_the_threshold():
    labels, odds = np.array([1, 0, 1, 0]), np.array([2.0, 0.5, 0.5, -1.0])
    for shift in (0, 3):  # of four pairs three are in order, and one is a tie
        one = answered(1 / (1 + np.exp(-odds - shift)), labels)
        assert float(stats.concordance(one).mean()) == pytest.approx(100 * 3.5 / 4)
    labels, answers = np.array([0.0, 0.2, 0.2, 0.9]), np.array([1.0, 5.0, 2.0, 3.0])
    of = xr.Dataset({"label": ("example", labels), "answer": (("run", "example"), answers[None])})
    assert float(stats.concordance(of).mean()) == pytest.approx(100 * 4 / 5)
    many = np.random.default_rng(0).random((2, 400)).astype(np.float16)  # as on file
    of = xr.Dataset({"label": ("example", many[0]), "answer": (("run", "example"), many[1:])})
    assert float(stats.concordance(of).mean()) == pytest.approx(
        float(stats.concordance(of.astype(float)).mean()), abs=1e-9
    )
    with pytest.raises(ValueError, match="labels 0 and 1, and there is 2"):
        stats.concordance(answered(np.full(3, 0.5), np.array([0, 1, 2])))


@pytest.mark.parametrize("regression", [False, True])
def test_a_concordance_has_the_error_of_its_mean(regression):
    rng, draws = np.random.default_rng(0), []
    for _ in range(300):
        labels = rng.random(100) if regression else (rng.random(100) < 0.7).astype(float)
        odds = rng.normal(2 * labels, 1)
        one = answered(1 / (1 + np.exp(-odds)), np.round(labels))
        if regression:
            one = one.assign(answer=(("run", "example"), odds[None]), label=("example", labels))
        each = stats.concordance(one)
        draws.append((float(each.mean()), float(each.std() / 100**0.5)))
    shares, errors = np.array(draws).T
    assert errors.mean() == pytest.approx(shares.std(), rel=0.12)


def interval(low, high):
    return xr.Dataset({"value": (low + high) / 2, "low": low, "high": high})


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.2, 1, HOLDS), (-1, -0.2, FAILS), (-1, 1, UNDECIDED)]
)
def test_a_mark_needs_the_whole_interval(low, high, verdict):
    assert mark(interval(low, high)) == verdict
    assert mark(interval(low + 5, high + 5), least=5) == verdict


@pytest.fixture
def study(monkeypatch, tmp_path):
    monkeypatch.setenv("BERTOLOGY_OUTPUT", str(tmp_path))
    monkeypatch.setattr("bertology_utils.study.ROOT", tmp_path)
    return Study.of("e5", "mrpc", page="6_page")


def estimates(*means):
    return stats.estimate(
        {f"task {at}": values(mean, runs=2, seed=at) for at, mean in enumerate(means)}
    )


def test_a_claim_about_each_task_holds_if_each_does_and_fails_if_one_does(study):
    each = study.claims.each
    assert each("all", "", estimates(1, 1, 1)) == HOLDS
    assert each("one not", "", estimates(1, 1, -1)) == FAILS
    assert each("one undecided", "", estimates(1, 1, 0.0)) == UNDECIDED
    assert each("lower", "", estimates(-1, -1), sign=-1) == HOLDS
    assert each("lower than -3", "", estimates(-1, -1), least=-3, sign=-1) == FAILS


def test_of_many_tasks_one_fails_only_beyond_what_their_number_would_give(study):
    """An interval that just excludes the least effect marks its task, and not the claim."""
    one = estimates(1, 1, 1, 1, 1, 1, 1)
    edge = one.value.where(one.task != "task 3", -2.4 * one.error)
    moved = stats.with_interval(one.assign(value=edge), 0.95)
    assert study.claims.each("edge", "", moved) == UNDECIDED
    assert study.claims.rows["edge"]["tasks"]["task 3"].startswith(FAILS)


def test_the_table_has_every_task_and_the_verdicts_of_other_studies(study, tmp_path):
    study.claims.each("It helps", "+1", estimates(1.0, 1.0))
    path = tmp_path / "results" / "e5-again" / "pages" / "6_page.json"
    path.parent.mkdir(parents=True)
    other = {"It helps": {"verdict": "?", "tasks": {"task 0": "? +0.2"}}}
    path.write_text(json.dumps({"claims": other}))
    table = study.claims.table()
    (row,) = table.to_dict("records")
    assert [*row] == ["the paper", "holds if", "here", "task 0", "task 1", "E5 again"]
    assert row["holds if"] == "above 0" and row["E5 again"] == "task 0 ? +0.2"
    assert row["task 0"].startswith("✓ +1.0 [+0.9, ")
    study.say(gain=1.23456789)
    study.say(loss=2, not_measured=float("nan"), lost={"SST-2": 0.5, "RTE": float("nan")})
    kept = json.loads((tmp_path / "6_page" / "e5.json").read_text())
    assert kept["said"] == {"gain": 1.234568, "loss": 2.0, "lost_SST2": 0.5}
    assert "It helps" in kept["claims"]


def test_a_column_is_chosen_on_some_rows_and_measured_on_others():
    rng, best, found = np.random.default_rng(0), [], []
    for _ in range(30):
        luck = rng.choice([-1.0, 1.0], (60, 40))
        best.append(luck.mean(axis=0).max())
        found.append(stats.chosen_elsewhere(luck, luck, np.arange(60), 50, 1).mean())
    assert np.mean(best) > 0.2, "the best of many looks good"
    assert abs(np.mean(found)) < 0.08
    luck[:, 7] += 1  # one that is better wherever it is measured
    in_pairs = stats.chosen_elsewhere(luck, 2 * luck, np.arange(60) // 2, 50, 1)
    assert in_pairs == pytest.approx(2 * luck[:, 7])


def test_an_estimate_is_told_with_its_interval_and_zero_has_no_sign():
    ends = {"value": [-0.04, 1.26], "low": [-1.0, 0.44], "high": [0.02, 2.0]}
    one = xr.Dataset({name: ("task", of) for name, of in ends.items()}, {"task": ["RTE", "QQP"]})
    assert stats.told(one) == {"RTE": "0.0 [-1.0, 0.0]", "QQP": "+1.3 [+0.4, +2.0]"}
    assert stats.told(one, "{:.0f} %")["RTE"] == "0 % [-1 %, 0 %]"
