"""The patterns of attention maps: labels, classifiers and their validation, shares, repetition, figures."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from conftest import loaded, make_bert, make_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix, f1_score

from bertology_utils.attention import attention_maps, observe
from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.glue import TASKS
from bertology_utils.patterns import classifiers, labels, measure
from bertology_utils.patterns.classifiers import NETWORK, REGRESSION, load_network, named_maps
from bertology_utils.patterns.labels import (
    FOLDER,
    PATTERNS,
    constructed_maps,
    generous,
    indices,
    load_maps,
)
from bertology_utils.statistics import bootstrap
from pattern_trainer import SEED, cross_validate, fingerprints, fit, folds, macro_f1

UNIFORM = torch.full((1, 6, 6), 1 / 6)
EVERY = np.ones(5, dtype=bool)  # pattern can occur


@pytest.mark.parametrize(
    "maps",
    [
        torch.full((1, 3, 3), 1 / 3),
        UNIFORM * torch.nan,
        UNIFORM / 0,
        UNIFORM * 1.1,
        torch.tensor([[1.5, -0.5, 0, 0]] * 4)[None],
    ],
    ids=["short", "NaN", "infinite", "scores", "negative"],
)
def test_what_is_no_attention_map_is_refused(maps):
    with pytest.raises(ValueError, match="a pattern needs 4 tokens or more, and rows that are"):
        load_network().predict(maps, torch.zeros(maps.shape[:2], dtype=torch.bool))


@given(length=st.integers(4, 120), size=st.sampled_from([16, 24, 32]))
@settings(max_examples=30, deadline=None)
def test_images_keep_a_diagonal_and_a_column_at_every_length(length, size):
    built = constructed_maps(length)
    for name, at in (
        ("to itself", np.eye(size, dtype=bool)),
        ("to [CLS]", np.arange(size) == np.zeros((size, 1))),
    ):
        image = classifiers.to_images(*classifiers.as_tensors(*built[name]), size)[0]
        assert image.shape == (3, size, size) and image.min() >= 0 and image.max() <= 1
        assert (image[0][torch.tensor(at)] == 1).all()


def plain_statistics(weights, separators):
    """The eleven statistics of one map, by loops."""
    size, columns = len(weights), sorted(weights.mean(axis=0), reverse=True)
    row, column = np.indices(weights.shape)
    near = range(-(size // 2), size // 2 + 1)
    parallels = {by: weights[row - column == by].mean() for by in near}
    band = sum(weights[i, j] for i in range(size) for j in range(size) if abs(i - j) <= 2) / size
    sentence = [sum(separators[:at]) for at in range(size)]
    above_chance = {True: 0.0, False: 0.0}
    for i in range(size):
        for j in range(1, size):
            if not separators[j]:
                above_chance[sentence[i] == sentence[j]] += (weights[i, j] - 1 / size) / size
    entropy = np.mean([-sum(w * np.log(w) for w in line if w > 0) for line in weights])
    two = float(sum(separators) > 1)
    return [
        *(columns[0], sum(columns[:3]), parallels[0], parallels[1], parallels[-1]),
        *(max(parallels.values()), band, two * above_chance[True], two * above_chance[False]),
        *(two, entropy / np.log(size)),
    ]


def test_statistics_are_those_of_plain_loops_alone_and_in_a_stack():
    def statistics(*stacks):
        return torch.stack([*classifiers.map_statistics(*stacks).values()], dim=1)

    for picture in (*labels.pictures(load_maps()[::40]), *constructed_maps(5).values()):
        (found,) = statistics(*classifiers.as_tensors(*picture))
        np.testing.assert_allclose(found, plain_statistics(*picture), atol=2e-6)
    single = [classifiers.as_tensors(*picture) for picture in constructed_maps(16).values()]
    stacked = statistics(*map(torch.cat, zip(*single, strict=True)))
    torch.testing.assert_close(stacked, torch.cat([statistics(*one) for one in single]))


# The classifiers and their cross-validation.


def test_folds_keep_a_head_together_and_hold_every_map_once():
    labelled = load_maps()
    parts = folds(labelled, SEED)
    assert sorted(np.concatenate(parts)) == list(range(len(labelled)))
    heads = [set(labelled.iloc[part].groupby(["layer", "head"]).groups) for part in parts]
    assert sum(map(len, heads)) == len(set.union(*heads))
    assert all(set(labelled.iloc[part]["pattern"]) == set(PATTERNS) for part in parts)


def test_a_network_trained_again_gives_the_shipped_out_of_fold_predictions():
    labelled, test = load_maps(), folds(load_maps(), SEED)[0]
    maps, patterns = labels.pictures(labelled), indices(labelled["pattern"])
    rest = np.setdiff1d(np.arange(len(maps)), test)
    # This fold's validation chose the design that the package ships.
    design = load_network().design
    predict = fit(NETWORK, [maps[row] for row in rest], patterns[rest], design, SEED)
    again, shipped = predict([maps[row] for row in test]), indices(named_maps()[NETWORK])[test]
    # Other CPU kernels round otherwise, and training carries that on: a few maps on a border may
    # change sides.
    assert np.mean(again == shipped) >= 0.9


def test_the_regression_fitted_again_gives_nearly_the_shipped_predictions_and_coefficients():
    maps, patterns = labels.pictures(load_maps()), indices(load_maps()["pattern"])
    predicted, strength = cross_validate(load_maps(), REGRESSION, SEED)
    # Rounding moves where the solver stops, and with it a few maps on a border.
    assert np.mean(predicted == indices(named_maps()[REGRESSION])) >= 0.95
    shipped = classifiers.classify(classifiers.load_regression(), maps)
    assert np.mean(shipped == fit(REGRESSION, maps, patterns, strength, SEED)(maps)) > 0.99


def test_the_shipped_validation_is_that_of_the_shipped_maps_and_network():
    shipped = json.loads(classifiers.VALIDATION.read_text())
    assert fingerprints().items() <= shipped.items(), "run: python -m pattern_trainer"


def test_f1_from_counts_is_that_of_the_maps_and_resampling_keeps_a_heads_maps_together():
    maps = named_maps()
    true, named = indices(maps["pattern"]), indices(maps[NETWORK])
    scores = classifiers.f1_scores(maps, NETWORK, 1)
    by_pattern = f1_score(true, named, labels=range(5), average=None, zero_division=0)
    assert scores["macro F1"].value == pytest.approx(macro_f1(true, named))
    assert scores["micro F1"].value == pytest.approx(np.mean(true == named))
    assert [scores[pattern].value for pattern in PATTERNS] == pytest.approx(by_pattern.tolist())
    shares = [share.value for share in measure.label_shares(maps, 1).values()]
    assert shares == pytest.approx((np.bincount(true) / 400).tolist())
    few = maps[:60]
    members = list(few.reset_index().groupby(["layer", "head"]).indices.values())

    def of_heads(drawn):
        rows = np.concatenate([members[number] for number in drawn])
        return macro_f1(true[rows], named[rows])

    expected = bootstrap(of_heads, len(members), 3).draws
    found = classifiers.f1_scores(few, NETWORK, 3)["macro F1"].draws
    np.testing.assert_allclose(found, expected)


def test_patterns_of_a_pass_equal_those_of_single_maps(tmp_path):
    model, tokenizer = loaded(make_bert(tmp_path, layers=2, heads=3, hidden=24))
    inputs = tokenize(make_rows(TASKS["mrpc"], 12), TASKS["mrpc"], tokenizer, 40)
    batches, separator = make_batches(inputs, tokenizer, 200), tokenizer.sep_token_id
    found = observe(model, batches, {"p": measure.Patterns(load_network(), separator)})["p"]
    assert found.patterns.shape == (12, 2, 3)
    for index in range(12):
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        separators = (batch.inputs["input_ids"] == separator).numpy()[0]
        for layer, maps in enumerate(attention_maps(model, batch)):
            single = [(weights.numpy(), separators) for weights in maps[0]]
            expected = classifiers.classify(load_network(), single)
            np.testing.assert_array_equal(found.patterns[index, layer], expected)
    np.testing.assert_allclose(found.one_hot.mean(axis=0).sum(axis=-1), 1)


# Shares, and whether patterns repeat.


def test_correction_finds_the_true_shares():
    rng = np.random.default_rng(1)
    confusion = 0.75 * np.eye(5) + 0.25 * rng.dirichlet(np.ones(5), size=5)
    true = np.array([0.5, 0.05, 0.2, 0.05, 0.2])
    found = measure.corrected_shares(true @ confusion, confusion, EVERY)
    np.testing.assert_allclose(found, true, atol=2e-3)
    unchanged = measure.corrected_shares(true, np.eye(5), EVERY)
    np.testing.assert_allclose(unchanged, true, atol=1e-12)
    possible = measure.possible_patterns(TASKS["sst2"])
    without = measure.corrected_shares(true @ confusion, confusion, possible)
    assert without[PATTERNS.index("block")] == 0 and without.sum() == pytest.approx(1)
    assert measure.possible_patterns(TASKS["rte"]).all()


def test_intervals_of_shares_grow_with_what_is_not_known_of_the_classifier():
    maps, errors = classifiers.natural_maps(), measure.classifier_errors(NETWORK, 1)
    for true, row in zip(PATTERNS, errors[0], strict=True):
        named = maps[NETWORK][maps["pattern"] == true].value_counts(normalize=True)
        np.testing.assert_allclose(row, [named.get(one, 0) for one in PATTERNS])
    np.testing.assert_allclose(errors.sum(axis=-1), 1)
    # (examples, layers, heads, patterns)
    one_hot = np.eye(5)[np.random.default_rng(0).integers(0, 5, (200, 3, 4))]
    shares = measure.pattern_shares(one_hot, errors, (1, 2), EVERY)
    as_named = measure.pattern_shares(one_hot, np.eye(5), (1, 2), EVERY)
    for pattern, corrected in shares.items():
        assert np.ptp(corrected.interval) > np.ptp(as_named[pattern].interval)
        assert corrected.interval[0] <= corrected.value <= corrected.interval[1]
    assert sum(share.value for share in shares.values()) == pytest.approx(1)
    both = measure.together([as_named[pattern] for pattern in ("vertical", "block")])
    assert both.value == pytest.approx(one_hot[..., [0, 3]].sum(axis=-1).mean()) and both.n == 200


def test_kappa_is_cohens():
    a, b = np.random.default_rng(4).integers(0, 5, (2, 3, 40))
    expected = [cohen_kappa_score(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(measure.kappa(a, b), expected)
    assert measure.kappa(np.zeros(4, int), np.zeros(4, int)) == 0, "as chance has it"


def shown(usual, noise=0.3, seed=0):
    """One-hot patterns of heads that mostly show their usual one."""
    rng = np.random.default_rng(seed)
    other, shape = rng.random((60, *usual.shape)) < noise, (60, *usual.shape)
    return np.eye(5)[np.where(other, rng.integers(0, 5, shape), usual)]


def test_agreement_between_tasks():
    usual = np.random.default_rng(5).integers(0, 5, (2, 4, 12))
    passes = [shown(usual[0], seed=1), shown(usual[0], seed=2), shown(usual[1], seed=3)]
    same, other = (
        measure.task_agreement(several, [(1, 0), (1, 1)]) for several in (passes[:2], passes[1:])
    )
    assert same.value == 1 and same.draws.min() > 0.6
    assert other.draws.max() < 0.6 and abs(other.value) < 0.4 and same.n == 120
    np.testing.assert_array_equal(measure._usual(passes[0], 1)[0], usual[0])


def test_the_commonest_patterns_cover_more_heads_than_by_chance_only_where_they_do():
    few, many = np.tile([0, 1], (6, 6)), np.tile([0, 1, 2, 3, 4, 4], (6, 2))
    chance = measure.coverage_by_chance(72, 5, 1)
    assert 0.45 < chance < 0.6
    assert measure.coverage(shown(few), 1).value == 1
    covered = measure.coverage(shown(many), 1)
    assert covered.value == pytest.approx(24 / 72) and covered.n == 60 and covered.value < chance
    # As random weights show: heterogeneous throughout, which is no pattern.
    none = np.full((6, 12), 4)
    assert measure.coverage(shown(none, 0), 1).value == 0


def test_heads_count_as_changed_beyond_what_other_examples_change():
    usual = np.zeros((6, 12), int)
    changed = usual.copy()
    changed[0] = 1
    before = shown(usual)
    assert measure.changed_heads(before, shown(changed, seed=1), 1).value == pytest.approx(12 / 72)
    assert measure.changed_heads(before, shown(usual, seed=1), 1).value == 0
    noisy = [shown(usual, noise=1.0, seed=seed) for seed in (1, 2)]
    assert abs(measure.changed_heads(*noisy, 1).value) < 0.25, "noise alone is subtracted"
    flips = np.zeros((80, 2, 3), int)
    flips[::2, 0] = 1  # a layer whose pattern hangs on the example: the halves differ in it
    flips = np.eye(5)[flips]
    assert measure.changed_heads(flips, flips, 1).value == 0


# The labelled maps: how many, of what, how far the annotators agree, refusals.


def test_generous_labels_are_heterogeneous_wherever_either_annotator_says_so():
    maps = load_maps()
    counted = generous(maps) == "heterogeneous"
    said = (maps["first"] == "heterogeneous") | (maps["second"] == "heterogeneous")
    assert (counted == said | (maps["pattern"] == "heterogeneous")).all()
    assert counted.sum() > (maps["pattern"] == "heterogeneous").sum()
    assert (generous(maps)[~counted] == maps["pattern"][~counted]).all()
    plain, more = (measure.classifier_errors(NETWORK, 1, generous=it)[0] for it in (False, True))
    np.testing.assert_allclose(more.sum(axis=1), 1)
    # Of what the network calls vertical, more is heterogeneous then.
    assert more[-1, 0] > plain[-1, 0]


def test_two_annotators_agree_and_the_card_says_how_far():
    maps, card = load_maps(), (FOLDER / "README.md").read_text()
    kappa = cohen_kappa_score(maps["first"], maps["second"])
    same = maps["first"] == maps["second"]
    assert kappa > 0.7
    assert f"{same.sum()} of {len(maps)}" in card and f"κ = {kappa:.2f}" in card
    # Only a disagreement can have been settled otherwise than the first annotator had it.
    assert (maps["pattern"] == maps["first"])[same].all()
    for name, part in maps.groupby("part"):
        counts = Counter(part["pattern"])
        numbers = " | ".join(str(counts[pattern]) for pattern in PATTERNS)
        assert f"| {name} part | {numbers} |" in card
    table = confusion_matrix(maps["first"], maps["second"], labels=PATTERNS)
    for pattern, row in zip(PATTERNS, table, strict=True):
        assert f"| {pattern.replace('+', ' + ')} | " + " | ".join(map(str, row)) + " |" in card
    for by, share in (("first", "91.5"), ("second", "95.8")):
        right = (maps[by] == maps["pattern"]).mean()
        assert f"{100 * right:.1f}" == share and share in card
