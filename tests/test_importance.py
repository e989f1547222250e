"""Notebook 9: variance components of heads' effects, agreement of measurements, and the luck of idle heads."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import ROOT, batches_of_rows, load_script, make_rows

from bertology_utils.disabling.effects import ablations_of
from bertology_utils.disabling.masking import ABLATIONS
from bertology_utils.disabling.sweep import Sweep, sweep
from bertology_utils.glue import TASKS
from bertology_utils.importance import agreement, figures, luck
from bertology_utils.importance.components import (
    BOTH,
    EXAMPLES,
    HEAD,
    NOISE,
    TRAINING,
    WAY,
    Components,
    effects_on_parts,
)
from bertology_utils.models import load_classifier, load_tokenizer
from bertology_utils.results import Results, entries_of
from bertology_utils.statistics import Bootstrap
from bertology_utils.verdicts import CLAIMS, FAILS, HOLDS, UNDECIDED, UNTESTABLE, judge

MRPC, RTE = TASKS["mrpc"], TASKS["rte"]
calibration = load_script("importance_calibration")


def crossed(heads=72, trainings=3, ways=2, parts=10, seed=0, **sizes):
    """Effects with these standard deviations of head, training, way, both, examples and the rest."""
    rng = np.random.default_rng(seed)
    full = {
        "head": (),
        "training": (0,),
        "way": (1,),
        "both": (0, 1),
        "examples": (2,),
        "rest": (0, 1, 2),
    }
    shape, effects = (trainings, ways, parts), np.zeros((heads, trainings, ways, parts))
    for name, axes in full.items():
        each = tuple(size if at in axes else 1 for at, size in enumerate(shape))
        effects = effects + sizes.get(name, 0.0) * rng.standard_normal((heads, *each))
    return effects


# Components. ------------------------------------------------------------


def test_known_components_are_recovered_without_bias():
    sizes = {"head": 1.0, "training": 0.8, "way": 0.6, "both": 0.5, "examples": 0.7, "rest": 1.2}
    found = [
        Components(crossed(seed=seed, **sizes)).named(Components(crossed(seed=seed, **sizes)).raw)
        for seed in range(60)
    ]
    means = {name: np.mean([one[name] for one in found]) for name in found[0]}
    truth = {HEAD: 1.0, TRAINING: 0.64, WAY: 0.36, BOTH: 0.25, EXAMPLES: 0.049, NOISE: 0.144}
    for name, value in truth.items():
        assert means[name] == pytest.approx(value, rel=0.1), name


@pytest.mark.parametrize("trainings", [2, 3, 5])
@pytest.mark.parametrize("kind", calibration.KINDS[:2])
def test_intervals_cover_and_estimates_are_not_biased(trainings, kind):
    found = calibration.calibrated(trainings, calibration.CASES["mostly the head"], kind, times=150)
    for name, row in found.items():
        assert abs(row["bias, %"]) < 10 and row["coverage, %"] >= 88, (
            name
        )  # of 150; the table has 1,000


def test_the_committed_table_of_the_calibration_keeps_what_it_promises():
    table = json.loads(
        (ROOT / "benchmarks" / "importance_calibration.json").read_text(encoding="utf-8")
    )
    for name, rows in table["cases"].items():
        assert all(abs(row["bias, %"]) < 10 for row in rows.values()), name
        least = 89 if calibration.KINDS[2] in name else 92.5
        assert all(least <= row["coverage, %"] <= 97.9 for row in rows.values()), name


def test_the_library_gives_the_same_components():
    pd = pytest.importorskip("pandas")
    formula = pytest.importorskip("statsmodels.formula.api")
    effects = crossed(
        heads=40, ways=1, parts=5, head=1.0, training=0.8, examples=0.7, rest=0.9, seed=3
    )
    head, training, _, part = np.indices(effects.shape)
    table = pd.DataFrame(
        {"y": effects.ravel(), "h": head.ravel(), "t": training.ravel(), "p": part.ravel()}
    )
    fitted = formula.mixedlm(
        "y ~ C(t) * C(p)",
        table,
        groups="h",
        re_formula="1",
        vc_formula={"t": "0 + C(t)", "p": "0 + C(p)"},
    ).fit(reml=True)
    theirs = dict(zip(fitted.model.exog_vc.names, fitted.vcomp, strict=True))
    ours = Components(effects).raw
    expected = [float(fitted.cov_re.iloc[0, 0]), theirs["t"], theirs["p"], fitted.scale]
    assert [ours[()], ours["training",], ours["part",], ours["training", "part"]] == pytest.approx(
        expected, rel=0.01
    )


def test_a_planted_head_is_the_heads_own_and_noise_is_no_ones():
    noise = crossed(rest=1.0, ways=1)
    assert Components(noise).shares(1)[HEAD]["value"] < 0.2
    noise[5] += 20.0  # in every training alike
    planted = Components(noise)
    assert planted.shares(1)[HEAD]["value"] > 0.9 and planted.above(0.5, 1).outcome == HOLDS
    copied = np.concatenate([noise, 2 * noise[5:6]])  # a copy, scaled
    assert np.argsort(-copied.mean(axis=(1, 2, 3)))[:2].tolist() == [72, 5]


def test_the_same_model_twice_is_one_training():
    effects = crossed(head=1.0, training=1.0, rest=1.0, trainings=1, ways=1)[:, [0, 0]]
    found = Components(effects)
    assert found.raw["training",] == pytest.approx(0, abs=1e-12) and found.raw[
        "training", "part"
    ] == pytest.approx(0, abs=1e-12)
    assert agreement.between_trainings(effects.mean(axis=(2, 3)), 1).value == pytest.approx(1)


def test_heads_shuffled_within_layers_have_no_effect_of_their_own():
    effects = crossed(head=1.0, training=0.1, rest=0.1, trainings=4, ways=1)
    assert Components(effects).shares(1)[HEAD]["value"] > 0.9
    mixed = agreement.shuffled(effects, 12, 1)
    assert Components(mixed).shares(1)[HEAD]["value"] < 0.2
    assert np.allclose(np.sort(mixed[:12, 0, 0].ravel()), np.sort(effects[:12, 0, 0].ravel())), (
        "each layer keeps its own"
    )


def test_the_seed_draws_the_intervals_and_leaves_the_estimates():
    found = Components(crossed(head=1.0, training=1.0, rest=1.0))
    first, same, other = (found.shares(seed)[HEAD] for seed in (1, 1, 2))
    assert first == same
    assert other["value"] == first["value"] and other["low"] != first["low"]


def test_what_cannot_be_told_is_said_and_not_zero():
    one = Components(crossed(head=1.0, rest=1.0, trainings=1, ways=1))
    assert TRAINING not in one.shares(1) and WAY not in one.shares(1)
    with pytest.raises(
        ValueError, match="one part of the examples: what the examples do cannot be told"
    ):
        Components(crossed(head=1.0, parts=1))
    with pytest.raises(
        ValueError, match="one training: whether another would order the heads alike cannot be told"
    ):
        agreement.between_trainings(np.ones((72, 1)), 1)
    assert agreement.ways_alike({"uniform": np.ones(72)}, 1) == {}


def test_a_negative_estimate_stays_visible_and_counts_as_zero():
    found = next(
        one
        for one in (Components(crossed(rest=1.0, ways=1, seed=seed)) for seed in range(20))
        if one.raw[()] < 0
    )
    assert found.shares(1)[HEAD]["value"] == 0 and sum(
        one["value"] for one in found.shares(1).values()
    ) == pytest.approx(1)


@pytest.mark.parametrize("shape", [(3, 2), (12, 12)])
def test_figures_of_heads_fit_models_of_any_shape(shape):
    rises = np.random.default_rng(0).normal(size=(2, *shape))
    results = Results(
        {"rows": entries_of(figures.RISE, {"qnli": list(rises)}, ("task", "training"))}
    )
    (needed,) = figures.needed(results).axes
    assert needed.get_title() == "QNLI" and len(needed.get_yticks()) == min(8, np.prod(shape))
    names = [label.get_text() for label in needed.get_yticklabels()]
    layer, head = np.unravel_index(rises[0].argmax(), shape)
    assert names[0] == f"({layer + 1}, {head + 1})"
    assert len(figures.by_run(results, ["qnli"]).axes) == 3  # two runs and the scale


# Sweeps. ----------------------------------------------------------------


def made_sweep(examples=60, heads=(2, 4), seed=0):
    rng = np.random.default_rng(seed)
    return Sweep(
        rng.standard_normal((examples, 2)),
        rng.standard_normal((*heads, examples, 2)),
        rng.standard_normal((2, examples, 2)),
    )


def test_effects_on_parts_are_those_of_all_examples():
    labels = np.arange(60) % 2
    sweeps = {(at, "uniform"): made_sweep(seed=at) for at in range(2)}
    for by in ("loss", "score"):
        assert effects_on_parts(MRPC, sweeps, labels, 1, by).shape == (8, 2, 1, 10)
    right = (sweeps[0, "uniform"].heads[1, 2].argmax(axis=-1) == labels).mean()
    before = (sweeps[0, "uniform"].baseline.argmax(axis=-1) == labels).mean()
    assert effects_on_parts(MRPC, sweeps, labels, 1, "score")[6, 0].mean() == pytest.approx(
        before - right
    )


@pytest.mark.parametrize(
    ("sweeps", "count", "message"),
    [
        (
            {(0, "uniform"): made_sweep(), (0, "zero"): made_sweep(), (1, "zero"): made_sweep()},
            60,
            "training 2 was not swept by",
        ),
        (
            {(0, "uniform"): made_sweep(), (1, "uniform"): made_sweep(heads=(2, 3))},
            60,
            r"is of \(2, 3, 60\), not of \(2, 4, 60\)",
        ),
        (
            {(0, "uniform"): made_sweep(), (1, "uniform"): made_sweep(50)},
            60,
            r"training 2 by 'uniform' is of \(2, 4, 50\)",
        ),
        ({(0, "uniform"): made_sweep(6)}, 6, "6 examples cannot be divided into 10 parts"),
    ],
)
def test_sweeps_that_do_not_fit_are_refused(sweeps, count, message):
    with pytest.raises(ValueError, match=message):
        effects_on_parts(MRPC, sweeps, np.arange(count) % 2, 1)


def test_random_weights_share_no_head_and_a_shouting_head_is_found_in_two_models(tiny_bert):
    batches = batches_of_rows(MRPC, 200, load_tokenizer(str(tiny_bert)), seed=5)
    labels = np.asarray(make_rows(MRPC, 200, seed=5)["label"])

    def effects(loud):
        sweeps = {}
        for at in range(3):
            model = load_classifier(str(tiny_bert), MRPC, "normal", seed=at).eval()
            attention = model.base_model.encoder.layer[1].attention.self
            with torch.no_grad():
                model.classifier.weight.normal_(std=1, generator=torch.Generator().manual_seed(at))
                for module, factor in (
                    (attention.query, 4),
                    (attention.key, 4),
                    (attention.value, loud),
                ):
                    module.weight[16:24] *= factor if loud > 1 else 1
            sweeps[at, "uniform"] = sweep(model, batches)
        return np.abs(effects_on_parts(MRPC, sweeps, labels, 1).mean(axis=(2, 3)))

    quiet, loud = effects(1), effects(40)
    assert (loud.argmax(axis=0) == 6).all(), "head (2, 3) of every model"
    assert agreement.between_trainings(quiet, 1).value < agreement.ENOUGH


# Agreement. -------------------------------------------------------------


def test_agreement_is_one_of_the_same_and_zero_of_strangers():
    rng = np.random.default_rng(0)
    first, second, error = (
        rng.standard_normal((300, 72)),
        rng.standard_normal((300, 72)),
        np.full(72, 0.3),
    )
    same = agreement.agreement(first, first, error)
    assert (
        all(value == pytest.approx(1) for value in same.values())
        and tuple(same) == agreement.STATEMENTS
    )
    assert all(abs(value) < 0.05 for value in agreement.agreement(first, second, error).values())


def test_expected_agreement_is_what_is_found_between_trainings():
    effects = crossed(head=1.0, training=0.7, examples=0.5, rest=1.0, trainings=6, ways=1, seed=2)
    components = Components(effects)
    for trainings in (1, 2, 3):
        found = agreement.measured(effects[:, :, 0], trainings, 1, splits=3)
        hoped = agreement.expected(components, trainings, 0.5, 1)
        assert all(abs(found[name] - hoped[name]) < 0.15 for name in agreement.STATEMENTS), (
            found,
            hoped,
        )


def test_more_trainings_and_examples_agree_more_and_enough_is_the_fewest():
    components = Components(crossed(head=1.0, training=0.8, examples=1.0, rest=1.0, ways=1))
    order = [agreement.expected(components, count, 1.0, 1)[agreement.ORDER] for count in (1, 2, 5)]
    assert order == sorted(order)
    found = agreement.enough(components, 1.0, 1)[agreement.ORDER]
    assert agreement.expected(components, found, 1.0, 1)[agreement.ORDER] >= agreement.ENOUGH
    assert agreement.expected(components, found - 1, 1.0, 1)[agreement.ORDER] < agreement.ENOUGH
    assert agreement.enough(components, 0.1, 1, most=1)[agreement.HALF] is None


def test_a_scale_of_each_training_changes_no_order():
    effects = crossed(head=1.0, rest=0.1, ways=1) * np.array([1.0, 3.0, 10.0])[None, :, None, None]
    assert Components(effects).shares(1)[HEAD]["value"] < 0.8
    assert Components(agreement.in_own_scale(effects)).shares(1)[HEAD]["value"] > 0.95


def test_a_cheap_measure_is_corrected_for_what_seeds_hide_unless_too_much_is_hidden():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(400)[:, None]
    cheap, effects = (truth + 0.7 * rng.standard_normal((400, 4)) for _ in range(2))
    found = agreement.corrected(cheap, effects)
    assert found["measured"] < 0.75 and found["corrected"] == pytest.approx(1, abs=0.05)
    assert np.isnan(agreement.corrected(rng.standard_normal((400, 4)), effects)["corrected"])


# Luck. ------------------------------------------------------------------


def test_the_largest_gain_of_idle_heads_is_that_of_a_simulation():
    rng = np.random.default_rng(0)
    drawn = (2 * rng.binomial(9, 0.5, size=(20_000, 144)) - 9).max(axis=1)
    exact = luck.largest_gain([9], 144, 9)
    for gain in (5, 7, 9):
        assert exact[gain] == pytest.approx((drawn <= gain).mean(), abs=0.01)


def test_five_flips_make_the_published_gain_ordinary_and_four_cannot():
    mrpc = luck.PUBLISHED[0]
    assert mrpc.answers == 5 and luck.chance_of(mrpc, [4]) == 0
    assert luck.chance_of(mrpc, [5]) == pytest.approx(1 - (31 / 32) ** 144)
    assert luck.chance_of(mrpc, [5], among=10) < luck.chance_of(mrpc, [5])


def test_a_surely_harmful_head_is_not_idle():
    outputs = np.tile([0.0, 1.0], (100, 1))
    without = np.stack([outputs] * 3)
    without[1, :30] = [1.0, 0.0]
    count, idle = luck.turned(MRPC, outputs, without, np.ones(100, dtype=int))
    assert count.tolist() == [0, 30, 0] and idle.tolist() == [True, False, True]


# Verdicts: each can come out each way. -----------------------------------


def outcome(name, found, **options):
    return judge(name, found, **options).outcome


def test_the_heads_own_share_can_hold_fail_and_stay_open():
    def support(**sizes):
        return {MRPC: Components(crossed(ways=1, **sizes)).above(CLAIMS["head-own"].least, 1)}

    assert outcome("head-own", support(head=1.0, training=0.3, rest=0.3)) == HOLDS
    assert outcome("head-own", support(head=0.3, training=1.0, rest=0.3)) == FAILS
    assert outcome("head-own", support(head=1.0, training=0.98, rest=0.3)) == UNDECIDED
    assert outcome("head-own", {}) == UNTESTABLE


def ranked(value, error=0.02):
    return Bootstrap(value, value + error * np.random.default_rng(0).standard_normal(500), 72, 1)


@pytest.mark.parametrize("name", ["head-order", "ways-agree"])
def test_order_and_ways_can_hold_fail_and_stay_open(name):
    assert outcome(name, {MRPC: {"a": ranked(0.9)}, RTE: {"a": ranked(0.95)}}) == HOLDS
    assert outcome(name, {MRPC: {"a": ranked(0.9)}, RTE: {"a": ranked(0.3)}}) == FAILS
    assert outcome(name, {MRPC: {"a": ranked(0.81)}}) == UNDECIDED
    assert outcome(name, {}) == UNTESTABLE


def test_published_gains_can_be_beyond_luck_ordinary_and_open():
    mrpc = luck.PUBLISHED[0]
    assert outcome("gains-beyond-luck", {MRPC: luck.beyond(mrpc, [np.full(72, 2 / 408)])}) == HOLDS
    assert outcome("gains-beyond-luck", {MRPC: luck.beyond(mrpc, [np.full(72, 40 / 408)])}) == FAILS
    assert (
        outcome("gains-beyond-luck", {MRPC: luck.beyond(mrpc, [np.full(72, 6 / 408)])}) == UNDECIDED
    )


def test_all_ablations_are_swept_in_two_runs_of_each_task_and_in_one_of_the_small_run():
    def ablations(task, number, is_small=False):
        settings = SimpleNamespace(is_small=is_small)
        lab = SimpleNamespace(tasks=(MRPC, RTE), settings=settings)
        return ablations_of(lab, task, number)

    assert ablations(MRPC, 1) == ablations(RTE, 0) == ABLATIONS
    assert ablations(RTE, 2) == ("uniform",)
    assert ablations(MRPC, 0, is_small=True) == ABLATIONS
    assert ablations(MRPC, 1, is_small=True) == ablations(RTE, 0, is_small=True) == ("uniform",)
