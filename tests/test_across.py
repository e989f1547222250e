"""Heads followed across runs and tasks: a planted head is found in all of them, and noise is not (§4.6)."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT

from bertology_utils.disabling import across, effects, figures
from bertology_utils.disabling.across import LEAST, follow, record_across, some_in_each
from bertology_utils.disabling.effects import Signed, in_each
from bertology_utils.disabling.sweep import Sweep
from bertology_utils.glue import TASKS
from bertology_utils.record import Record
from bertology_utils.results import Results, read_results
from bertology_utils.statistics import ONE_SIDED, pooled, signed_sums
from bertology_utils.verdicts import FAILS, HOLDS, UNDECIDED

MRPC, STSB, MNLI = (TASKS[name] for name in ("mrpc", "stsb", "mnli"))
HEADS = (2, 6)
NAMES = [f"head {at}" for at in range(12)]
HARMFUL, NEEDED = 5, 9


def runs_of(task, n=400, runs=3, harmful=0.0, needed=0.0, noise=0.3, own=1.0):
    """Labels and sweeps of several runs, all heads noise; without one all is better by so much, without another worse.

    Args:
        own: share of the noise that is each run's; the rest they share, as they do their examples.
    """
    rng = np.random.default_rng(n)
    if task.is_regression:
        labels = rng.random(n) * 5
        towards = (labels / 5)[:, None]
    else:
        labels = rng.integers(0, len(task.labels), n)
        towards = 2.0 * np.eye(len(task.labels))[labels]
    common = rng.normal(size=(2, n, towards.shape[1]))
    sweeps = []
    for _ in range(runs):
        mixed = own * rng.normal(size=common.shape) + (1 - own) * common
        baseline = towards + (0.2 if task.is_regression else 2) * mixed[0]
        heads = baseline + noise * rng.normal(size=(12, *baseline.shape))
        for head, strength in ((HARMFUL, harmful), (NEEDED, -needed)):
            heads[head] += strength * (towards - heads[head])
        sweeps.append(Sweep(baseline, heads.reshape(*HEADS, *baseline.shape), heads[4:6]))
    return labels, sweeps


@pytest.mark.parametrize("task, noise", [(MRPC, 0.3), (STSB, 0.02), (MNLI, 0.3)])
def test_a_harmful_head_is_found_in_every_run_by_every_measure(task, noise):
    labels, sweeps = runs_of(task, harmful=0.4, needed=0.4, noise=noise)
    followed = follow(task, sweeps, labels, 1)
    for name, one in followed.items():
        for parts in ([one.mean], one.runs):
            sides = in_each(parts)
            assert list(np.flatnonzero(sides["better"] < ONE_SIDED)) == [HARMFUL], name
            assert sides["worse"][NEEDED] < ONE_SIDED, name
            support = some_in_each(parts, sides["better"], name, NAMES, 400)
            assert support.outcome == HOLDS and support.number.startswith(NAMES[HARMFUL])
            worse = some_in_each(parts, sides["worse"], name, NAMES, 400, "worse")
            assert worse.outcome == HOLDS and (" at most -" in worse.number) == (len(parts) > 1)
        assert one.chosen.interval[0] > 0, "chosen in one run, it helps in the others"
        assert one.chosen.value == pytest.approx(one.mean.value[HARMFUL], rel=0.3)


def test_a_harmful_head_is_the_best_of_its_run_and_really_so():
    labels, (found, *_) = runs_of(MRPC, harmful=0.6)
    effect, at = effects.effects(MRPC, found, labels, seed=1), divmod(HARMFUL, HEADS[1])
    assert effect.heads.largest == effect.heads.values[at] > 0.05
    assert effect.heads.gain(at).interval[0] > 0
    assert effect.heads.largest > np.percentile(effect.by_chance, 97.5)
    assert effect.held_out.value > 0.03, "also on examples that had no say in the choice"
    right = (found.baseline.argmax(axis=1) == labels).mean()
    layers = (found.layers.argmax(axis=-1) == labels).mean(axis=-1) - right
    assert effect.baseline == pytest.approx(right)
    np.testing.assert_allclose(effect.layers.values, layers, atol=1e-12)
    with pytest.raises(ValueError, match="labels are missing"):
        effects.effects(MRPC, found, np.where(labels == 1, np.nan, 0.0), seed=1)


def test_on_shuffled_labels_no_head_helps():
    """Not by the loss either, once the outputs are recalibrated: before, a head that shouts makes wrong answers dearer."""
    labels, sweeps = runs_of(MRPC, harmful=0.4)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(labels)
        followed = follow(MRPC, sweeps, shuffled, seed=1)
        for name in ("score", "loss, recalibrated"):
            for parts in (followed[name].runs[:1], followed[name].runs):
                assert in_each(parts)["better"].min() >= ONE_SIDED, name
        assert followed["score"].mean.value.max() > 0, "some head seems to gain all the same"


def test_gains_are_those_of_the_plain_definition():
    labels, sweeps = runs_of(MRPC, harmful=0.4)
    followed = follow(MRPC, sweeps, labels, 1)

    def loss(outputs):
        right = outputs[np.arange(len(labels)), labels]
        return np.mean(np.log(np.exp(outputs).sum(axis=1)) - right)

    def accuracy(outputs):
        return np.mean(outputs.argmax(axis=1) == labels)

    whole = np.mean([loss(one.baseline) for one in sweeps])
    for at, head in enumerate(np.ndindex(*HEADS)):
        falls = [(loss(one.baseline) - loss(one.heads[head])) / whole for one in sweeps]
        assert followed["loss"].mean.value[at] == pytest.approx(np.mean(falls), abs=1e-6)
        assert [one.value[at] for one in followed["loss"].runs] == pytest.approx(falls, abs=1e-6)
        rises = [accuracy(one.heads[head]) - accuracy(one.baseline) for one in sweeps]
        assert followed["score"].mean.value[at] == pytest.approx(np.mean(rises), abs=1e-6)


@pytest.mark.parametrize("own", [1.0, 0.5])
def test_where_no_head_does_anything_one_is_found_in_at_most_one_case_of_twenty(own, monkeypatch):
    """Of either side, whether runs share their noise or not; three standard errors of the count are allowed."""
    monkeypatch.setattr(effects, "signed_sums", lambda *of: signed_sums(*of, draws=400))
    rng, found = np.random.default_rng(0), []
    for seed in range(150):
        common = rng.standard_t(4, size=(80, 12))  # heavy tails, as losses have
        gains = [own * rng.standard_t(4, size=(80, 12)) + (1 - own) * common for _ in range(3)]
        runs, mean = [Signed.of(one, seed) for one in gains], Signed.of(sum(gains) / 3, seed)
        sides = [in_each([mean]), in_each(runs), in_each([runs[0]])]
        found.append([(one["better"].min() <= 0.025, one["worse"].min() <= 0.025) for one in sides])
    allowed = 0.025 + 3 * np.sqrt(0.025 * 0.975 / 150)
    assert (np.mean(found, axis=0) <= allowed).all()


def test_a_head_without_effect_in_one_run_is_not_found_however_much_it_helps_in_the_others(
    monkeypatch,
):
    """The least favourable case of "in every run": a head's gain is surely above 0 in all runs but one."""
    monkeypatch.setattr(effects, "signed_sums", lambda *of: signed_sums(*of, draws=400))
    rng, found = np.random.default_rng(0), []
    for seed in range(200):
        runs = []
        for number in range(3):
            values = rng.normal(size=(60, 12))
            values[:, : 6 if number else 12] += 0.0 if number == 0 else 3.0
            runs.append(Signed.of(values, seed))
        found.append(in_each(runs)["better"].min() <= 0.025)
    assert np.mean(found) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 200)


def signed_at(values, error, n=100):
    """Gains so large with one standard error, and draws around 0."""
    drawn = np.random.default_rng(0).normal(size=(4000, len(values))) * error
    return Signed(np.array(values, dtype=float), np.full(len(values), error), drawn, n)


def test_some_head_holds_beyond_chance_and_fails_where_each_gains_less_than_counts():
    least = LEAST["loss"]
    for values, error, outcome in (
        ([0.05, 0, 0], 0.005, HOLDS),
        ([0.05, 0, 0], 0.05, UNDECIDED),
        ([0.0, 0, 0], 0.001, FAILS),
        ([0.1 * least, 0, 0], 0.1 * least, FAILS),
        ([0.5 * least, 0, 0], 0.1 * least, HOLDS),  # above 0; how much, the number says
    ):
        one = signed_at(values, error)
        assert some_in_each([one], in_each([one])["better"], "loss", NAMES, 400).outcome == outcome
        mirrored = some_in_each([-one], in_each([-one])["worse"], "loss", NAMES, 400, "worse")
        assert mirrored.outcome == outcome
    runs = [signed_at([0.05, 0.0], 0.002), signed_at([0.0, 0.05], 0.002)]
    found = some_in_each(runs, in_each(runs)["better"], "loss", NAMES, 400)
    assert found.outcome == FAILS, "each head helps in one run, none in both"


def test_what_a_head_gains_in_other_runs_and_on_how_many_examples_is_told_once(monkeypatch):
    """Rows and verdicts have the same intervals, pooled over tasks; tasks' examples add up, runs' do not."""
    followed = {}
    for task in (STSB, MRPC, MNLI):
        labels, sweeps = runs_of(task, harmful=0.4, needed=0.4, noise=0.02)
        followed[task] = follow(task, sweeps, labels, 1)
    settings = SimpleNamespace(is_small=False, tasks=list(followed), trainings_of=lambda task: 3)
    lab = Record("6_disabling_heads", settings=settings)
    lab.config = SimpleNamespace(num_hidden_layers=HEADS[0], num_attention_heads=HEADS[1])
    monkeypatch.setattr(Record, "learned", dict.fromkeys(followed, True))
    record_across(lab, followed)
    what = "gain in other runs without the head chosen in one"
    wanted = pooled({task: one["score"].chosen for task, one in followed.items()})
    for row in (row for row in lab.entries if row["what"] == what and row["state"] == "score"):
        assert (row["low"], row["high"]) == pytest.approx(
            wanted[TASKS[row["task"]]].interval, abs=1e-6
        )
    numbers = {one.id: one.number for one in lab.verdicts}
    assert numbers["head-needed-by-all-tasks"].endswith("n=1200")
    assert numbers["same-head-needed"].endswith("n=400")


def test_tasks_count_alike_whatever_their_examples():
    one, other = signed_at([0.04, 0.0], 0.01, n=100), signed_at([0.0, 0.0], 0.001, n=9000)
    mean = across.mean_over_tasks([one, other])
    np.testing.assert_allclose(mean.value, [0.02, 0.0])
    np.testing.assert_allclose(mean.error, np.hypot(0.01, 0.001) / 2)
    assert mean.n == 9100


def test_a_lower_loss_by_less_confidence_is_no_gain_once_recalibrated():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    honest = rng.normal(size=(4000, 2)) + np.eye(2)[labels]
    too_sure = 6 * honest
    sweep = Sweep(too_sure, np.stack([2 * honest, too_sure])[None], too_sure[None])
    gains, _ = across.gains_of(MRPC, sweep, labels, 1)
    assert gains["loss"][:, 0].mean() > 0.1 and gains["score"].any() == 0
    np.testing.assert_allclose(gains["loss, recalibrated"].mean(axis=0), 0, atol=1e-6)
    factors = across.inverse_temperatures(np.stack([honest, too_sure]), labels)
    assert factors[0] == pytest.approx(6 * factors[1])
    around = [
        np.log1p(
            np.exp(-(scale * factors[0]) * (honest * (2 * np.eye(2)[labels] - 1)).sum(1))
        ).mean()
        for scale in (0.98, 1, 1.02)
    ]
    assert around[1] == min(around)


def test_of_a_regression_a_line_is_fitted_on_the_other_half():
    rng = np.random.default_rng(0)
    labels = 5 * rng.random(2000)
    outputs = np.stack([labels / 5, 3 - 2 * labels / 5])[:, :, None]  # the second turned and moved
    lost = across.recalibrated_losses(STSB, outputs, labels, 1)
    np.testing.assert_allclose(lost, 0, atol=1e-12)
    noise = rng.random((1, 2000, 1))
    assert across.recalibrated_losses(STSB, noise, labels, 1).mean() == pytest.approx(
        np.var(labels / 5), rel=0.02
    )


# What is drawn is compared with figures/ pixel by pixel; here a run of one training.


def test_the_best_heads_are_drawn_without_numbers_of_other_runs():
    evidence = read_results(ROOT / "results" / "glue" / "6_disabling_heads.json")
    what = "gain in other runs without the head chosen in one"
    rows = [row for row in evidence.content["rows"] if row["what"] != what]
    alone = figures.best_heads(Results({"notebook": "6", "rows": rows})).axes[0]
    tasks = evidence.table("largest gain without a head").task.cat.categories
    assert [label.get_text() for label in alone.get_yticklabels()] == list(tasks)
