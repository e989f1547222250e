"""The patterns of attention maps: pictures, changes that keep a class, the network, shares and repeats."""

import numpy as np
import pytest
import torch
from conftest import make_bert, make_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from bertology_utils.attention import attention_maps, observe
from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.encoders.models import load_encoder, load_tokenizer
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.tasks import TASKS
from bertology_utils.patterns import augment, cnn, controls, evidence, labelled_maps, repeats, shares, validation
from bertology_utils.patterns.augment import Picture
from bertology_utils.patterns.baseline import STATISTICS, map_statistics
from bertology_utils.patterns.images import check_maps, to_images
from bertology_utils.patterns.labelled_maps import PATTERNS
from bertology_utils.patterns.measure import Patterns
from bertology_utils.statistics import bootstrap_mean

UNIFORM = torch.full((1, 6, 6), 1 / 6)


@pytest.mark.parametrize(
    "maps, message",
    [
        (UNIFORM[:, :5], "square"),
        (UNIFORM[0], "square"),
        (torch.full((1, 3, 3), 1 / 3), "3 tokens shows no pattern; at least 4"),
        (UNIFORM * torch.nan, "NaN"),
        (UNIFORM / 0, "infinite"),
        (UNIFORM * 1.1, "sum is off by 0.1"),
        (torch.tensor([[1.5, -0.5, 0, 0]] * 4)[None], "weights from 0"),
    ],
)
def test_what_is_no_attention_map_is_refused(maps, message):
    with pytest.raises(ValueError, match=message):
        check_maps(maps)
    with pytest.raises(ValueError, match=message):
        cnn.load_network().predict(maps, torch.zeros(maps.shape[:2], dtype=torch.bool))


def test_half_precision_maps_pass():
    check_maps(torch.rand(2, 90, 90).softmax(-1).half())


@given(length=st.integers(4, 120), size=st.sampled_from([16, 24, 32]))
@settings(max_examples=30, deadline=None)
def test_pictures_keep_a_diagonal_and_a_column_at_every_length(length, size):
    built = controls.constructed_maps(length)
    for name, at in (("to itself", np.eye(size, dtype=bool)), ("to [CLS]", np.arange(size) == np.zeros((size, 1)))):
        picture = built[name]
        image = to_images(torch.tensor(picture.weights)[None], torch.tensor(picture.separators)[None], size)[0]
        assert image.shape == (3, size, size) and image.min() >= 0 and image.max() <= 1
        assert (image[0][torch.tensor(at)] == 1).all()


def test_a_map_of_the_pictures_size_is_its_own_picture():
    maps = torch.rand(3, 24, 24).softmax(-1)
    image = to_images(maps, None, 24)
    expected = (maps / maps.amax((1, 2), keepdim=True)).sqrt()
    torch.testing.assert_close(image, torch.stack([expected, expected], dim=1))


CHANGES = [
    augment.reversed_tokens,
    augment.swapped_sentences,
    augment.merged_tokens,
    augment.sharpened,
    augment.with_ground,
    augment.augmented,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@given(seed=st.integers(0, 10**6), length=st.integers(8, 60))
@settings(max_examples=40, deadline=None)
def test_changes_keep_what_makes_the_pattern(change, seed, length):
    for name, picture in controls.constructed_maps(length).items():
        new = change(picture, np.random.default_rng(seed))
        size = len(new.weights)
        assert new.weights.shape == (size, size) and new.separators.shape == (size,)
        np.testing.assert_allclose(new.weights.sum(axis=1), 1, atol=1e-9)
        assert new.separators.sum() == 2
        top = new.weights.argmax(axis=1)
        if name == "to itself":
            assert (top == np.arange(size)).all()
        if name == "to [CLS]":
            assert len(set(top)) == 1
        if name == "uniform" and change is not augment.merged_tokens and change is not augment.augmented:
            np.testing.assert_allclose(new.weights, 1 / size)


def test_merging_adds_what_is_attended_to():
    weights = np.random.default_rng(0).dirichlet(np.ones(20), size=20)
    picture = Picture(weights, np.arange(20) == 19)
    new = augment.merged_tokens(picture, np.random.default_rng(0), most=1.0)
    assert len(new.weights) < 20
    # [CLS] and [SEP] stay by themselves: the first row's weight on the first token is untouched.
    assert new.weights[0, 0] == pytest.approx(weights[0, 0]) and new.weights[-1, -1] == pytest.approx(weights[-1, -1])


def test_statistics_of_constructed_maps():
    built = controls.constructed_maps(32)

    def of(name):
        return dict(zip(STATISTICS, map_statistics(built[name].weights, built[name].separators), strict=True))

    assert of("to [CLS]")["strongest column"] == 1 and of("to [CLS]")["entropy"] == pytest.approx(0, abs=1e-9)
    assert of("to itself")["attention to itself"] == 1
    assert of("to the previous token")["to the previous token"] == 1
    assert of("uniform")["entropy"] == pytest.approx(1)
    assert of("uniform")["same sentence, above chance"] == pytest.approx(0)
    assert of("within its own sentence")["same sentence, above chance"] > 0.3


def test_folds_keep_a_head_together_and_hold_every_map_once():
    labelled = labelled_maps.load_maps()
    parts = validation.folds(labelled, 1)
    assert sorted(np.concatenate(parts)) == list(range(len(labelled)))
    groups = [{labelled[row].group for row in part} for part in parts]
    assert sum(len(group) for group in groups) == len(set.union(*groups))
    for part in parts:
        assert {labelled[row].pattern for row in part} == set(PATTERNS)


def test_evidence_covers_every_map_and_comes_from_the_folds():
    found = evidence.load_evidence()
    assert set(found.predicted) <= set(range(len(PATTERNS))) and len(found.true) == len(labelled_maps.load_maps())
    for cv_round, part in zip(evidence.load_rounds("cnn"), validation.folds(labelled_maps.load_maps(), 1), strict=True):
        assert cv_round.test == part.tolist()


def test_a_fold_trained_anew_gives_the_committed_predictions():
    labelled, first_round = labelled_maps.load_maps(), evidence.load_rounds("cnn")[0]
    rest = np.setdiff1d(np.arange(len(labelled)), first_round.test)
    pictures, patterns = [augment.picture(labelled_map) for labelled_map in labelled], validation.targets(labelled)
    network = cnn.train([pictures[row] for row in rest], patterns[rest], cnn.Design(**first_round.chosen), 1)
    again = cnn.classify(network, [pictures[row] for row in first_round.test])
    # Other CPU kernels round otherwise, and training carries that on: a few maps on a border may change sides.
    assert np.mean(again == first_round.predicted) >= 0.9
    true = patterns[first_round.test]
    assert np.mean(again == true) > np.mean(true == 0)  # better than "all vertical"


def test_the_baseline_fitted_anew_gives_the_committed_predictions():
    labelled = labelled_maps.load_maps()
    rounds = validation.nested(labelled, validation.fit_baseline, validation.BASELINE_CANDIDATES, 1)
    assert rounds == evidence.load_rounds("baseline")


def test_evidence_of_other_labels_is_refused(monkeypatch):
    monkeypatch.setattr(evidence, "WEIGHTS", labelled_maps.FOLDER / "labels.csv")
    with pytest.raises(ValueError, match="python -m bertology_utils.patterns"):
        evidence.load_evidence()
    with pytest.raises(ValueError, match="kind of classifier"):
        evidence.load_rounds("forest")


def test_training_is_deterministic_and_learns_with_what_it_is_given():
    pictures = [picture for length in (8, 12, 20, 30) for picture in controls.constructed_maps(length).values()]
    patterns = np.array([PATTERNS.index(name) for _ in range(4) for name in controls.EXPECTED.values()])
    design = cnn.Design(size=16, width=4, epochs=60)
    first, second = (cnn.train(pictures, patterns, design, 3) for _ in range(2))
    for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    shuffled = cnn.train(pictures, np.random.default_rng(0).permutation(patterns), design, 3)
    assert np.mean(cnn.classify(first, pictures) == patterns) > np.mean(cnn.classify(shuffled, pictures) == patterns)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A small BERT, its batches of pairs with one tiny input, and the network."""
    source = parse_model(str(make_bert(tmp_path_factory.mktemp("bert"), layers=2, heads=3, hidden=24)))
    rows = make_rows(TASKS["mrpc"], 12)
    tokenizer = load_tokenizer(source)
    return load_encoder(source), tokenizer, tokenize(rows, TASKS["mrpc"], tokenizer, 40)


def test_patterns_of_a_pass_equal_those_of_single_maps(measured):
    model, tokenizer, inputs = measured
    network = cnn.load_network()
    found = observe(model, make_batches(inputs, tokenizer, 200), {"p": Patterns(network, tokenizer.sep_token_id)})["p"]
    assert found.patterns.shape == (12, 2, 3) and found.skipped == 0
    for index in range(12):
        (batch,) = make_batches(inputs.select([index]), tokenizer)
        separators = (batch.inputs["input_ids"] == tokenizer.sep_token_id).numpy()[0]
        for layer, maps in enumerate(attention_maps(model, batch)):
            pictures = [Picture(weights.numpy(), separators) for weights in maps[0]]
            np.testing.assert_array_equal(found.patterns[index, layer], cnn.classify(network, pictures))
    np.testing.assert_allclose(found.shares.sum(axis=-1), 1)


def test_padding_on_the_left_changes_nothing(measured):
    model, tokenizer, inputs = measured
    both = []
    for side in ("right", "left"):
        tokenizer.padding_side = side
        batches = make_batches(inputs, tokenizer, pad_to=64)
        for batch in batches:  # positions of the words, not of the padding
            batch.inputs["position_ids"] = (batch.inputs["attention_mask"].cumsum(1) - 1).clamp(min=0)
        both.append(observe(model, batches, {"p": Patterns(cnn.load_network(), tokenizer.sep_token_id)})["p"].patterns)
    tokenizer.padding_side = "right"
    np.testing.assert_array_equal(*both)


def test_too_short_inputs_are_skipped_and_counted(measured):
    model, tokenizer, inputs = measured
    short = inputs.select([0]).map(lambda row: {name: ids[:3] for name, ids in row.items() if name != "labels"})
    measurement = Patterns(cnn.load_network(), None)
    with pytest.raises(ValueError, match="none of the 1 inputs has 4 wordpieces"):
        observe(model, make_batches(short, tokenizer), {"p": measurement})
    measurement = Patterns(cnn.load_network(), tokenizer.sep_token_id)
    observe(model, make_batches(inputs, tokenizer), {"p": measurement})
    for batch in make_batches(short, tokenizer):
        batch.index[:] = [12]
        measurement.start(batch)
    assert measurement.compute().skipped == 1 and len(measurement.compute().patterns) == 12


def test_a_broken_model_is_refused(measured):
    model, tokenizer, inputs = measured
    weight = model.encoder.layer[1].attention.self.query.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight.fill_(torch.nan)
    try:
        with pytest.raises(ValueError, match="NaN"):
            observe(model, make_batches(inputs, tokenizer), {"p": Patterns(cnn.load_network(), tokenizer.sep_token_id)})
    finally:
        with torch.no_grad():
            weight.copy_(before)


def test_correction_finds_the_true_shares():
    rng = np.random.default_rng(1)
    confusion = 0.75 * np.eye(5) + 0.25 * rng.dirichlet(np.ones(5), size=5)
    true = np.array([0.5, 0.05, 0.2, 0.05, 0.2])
    np.testing.assert_allclose(shares.corrected_shares(true @ confusion, confusion), true, atol=2e-3)
    np.testing.assert_allclose(shares.corrected_shares(true, np.eye(5)), true, atol=1e-12)
    without = shares.corrected_shares(true @ confusion, confusion, shares.possible_patterns(TASKS["sst2"]))
    assert without[PATTERNS.index("block")] == 0 and without.sum() == pytest.approx(1)
    assert shares.possible_patterns(TASKS["rte"]).all()


def test_intervals_of_shares_grow_with_what_is_not_known_of_the_classifier():
    found = evidence.load_evidence().of(evidence.natural())
    one_hot = np.eye(5)[np.random.default_rng(0).integers(0, 5, (200, 3, 4))]  # (examples, layers, heads, patterns)
    parts = shares.pattern_shares(one_hot, shares.classifier_errors(found, 1), (1, 2))
    for predicted, corrected in zip(parts["predicted"], parts["corrected"], strict=True):
        assert np.ptp(corrected.interval) > np.ptp(predicted.interval)
        assert corrected.interval[0] <= corrected.value <= corrected.interval[1]
    expected = bootstrap_mean(one_hot[..., 0].mean(axis=(1, 2)), (1, 2))
    assert parts["predicted"][0].text(1, 6) == expected.text(1, 6)
    assert sum(share.value for share in parts["corrected"]) == pytest.approx(1)


def test_errors_of_the_classifier_are_its_confusion_matrix():
    found = evidence.load_evidence()
    errors = shares.classifier_errors(found, 1)
    for true in range(5):
        np.testing.assert_allclose(
            errors.matrix[true], np.bincount(found.predicted[found.true == true], minlength=5) / (found.true == true).sum()
        )
    np.testing.assert_allclose(errors.draws.sum(axis=-1), 1)
    np.testing.assert_allclose(errors.draws.mean(axis=0), errors.matrix, atol=0.12)  # few heads hold the rare patterns


def test_resampling_keeps_a_heads_maps_together():
    found = evidence.Evidence(np.zeros(6, int), np.array([0, 0, 0, 1, 1, 1]), np.array([7, 7, 7, 9, 9, 9]))
    draws = found.resampled(validation.micro_f1, 1).draws
    assert set(draws) == {0.0, 0.5, 1.0}


def test_kappa_is_cohens():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 5, (2, 3, 40))
    expected = [cohen_kappa_score(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(repeats.kappa(a, b), expected)
    assert repeats.kappa(np.zeros(4, int), np.zeros(4, int)) == 1


def test_agreement_between_tasks():
    rng = np.random.default_rng(5)
    usual = rng.integers(0, 5, (2, 4, 12))

    def examples(patterns, noise):
        shown = np.where(rng.random((60, 4, 12)) < noise, rng.integers(0, 5, (60, 4, 12)), patterns)
        return np.eye(5)[shown]

    seen = [examples(patterns, 0.3) for patterns in (usual[0], usual[0], usual[1])]
    same, other = (repeats.task_agreement(several, [(1, 0), (1, 1)]) for several in (seen[:2], seen[1:]))
    assert same.value == 1 and same.share_above(0.6) == 1
    assert other.share_above(0.6) == 0 and abs(other.value) < 0.4 and same.n == 120
    np.testing.assert_array_equal(repeats.usual_patterns(seen[0]), usual[0])
    assert repeats.heads_by_pattern(usual[0]).tolist() == np.bincount(usual[0].ravel(), minlength=5).tolist()
    with pytest.raises(ValueError, match="two tasks"):
        repeats.task_agreement(seen[:1], [1])


def shown(usual, examples=60, noise=0.3, seed=0):
    """One-hot patterns of heads that mostly show their usual one."""
    rng = np.random.default_rng(seed)
    patterns = np.where(rng.random((examples, *usual.shape)) < noise, rng.integers(0, 5, (examples, *usual.shape)), usual)
    return np.eye(5)[patterns]


def test_the_commonest_patterns_cover_more_heads_than_by_chance_only_where_they_do():
    few, many = np.tile([0, 1], (6, 6)), np.tile([0, 1, 2, 3, 4, 4], (6, 2))
    chance = repeats.coverage_by_chance(72, 5, 1)
    assert 0.48 < chance < 0.6
    assert repeats.coverage(shown(few), 1).value == 1
    covered = repeats.coverage(shown(many), 1)
    assert covered.value == pytest.approx(36 / 72) and covered.n == 60 and covered.value < chance


def test_heads_count_as_changed_beyond_what_other_examples_change():
    usual = np.zeros((6, 12), int)
    changed = usual.copy()
    changed[0] = 1
    before = shown(usual)
    assert repeats.changed_heads(before, shown(changed, seed=1), 1).value == pytest.approx(12 / 72)
    assert repeats.changed_heads(before, shown(usual, seed=1), 1).value == 0
    noisy = [shown(usual, noise=1.0, seed=seed) for seed in (1, 2)]
    assert abs(repeats.changed_heads(*noisy, 1).value) < 0.25, "noise alone is subtracted"


def test_the_shipped_network_fits_its_labels_better_than_it_generalises():
    labelled = labelled_maps.load_maps()
    fitted = cnn.classify(cnn.load_network(), [augment.picture(labelled_map) for labelled_map in labelled])
    found = evidence.load_evidence()
    assert np.mean(fitted == found.true) >= np.mean(found.predicted == found.true) > 0.7
