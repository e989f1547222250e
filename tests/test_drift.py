"""§4.3: similarity of maps against a plain reading of its definition, scores, reset layers."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, loaded, make_bert, make_rows
from precision import forward_tolerance
from transformers import AlbertConfig, AlbertForSequenceClassification

from bertology_utils import load_classifier, map_similarity
from bertology_utils.drift import measure
from bertology_utils.glue import TASKS
from bertology_utils.models import classifier_inputs, predict_logits

TASK = TASKS["rte"]
LAB = ("random_starts", "labels", "resampling_seed")


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    folders = [make_bert(tmp_path_factory.mktemp(f"seed{seed}"), 3, 4, 32, seed) for seed in (0, 1)]
    return [loaded(folder)[0] for folder in folders], loaded(folders[0])[1]


def plain_cosine(a, b):
    """Of two flat lists of numbers."""
    dot = sum(i * j for i, j in zip(a, b, strict=True))
    return dot / sum(i * i for i in a) ** 0.5 / sum(j * j for j in b) ** 0.5


def plain_cosines(some, others):
    """Of the maps of each head, shape (heads, …)."""
    flat = some.flatten(1).tolist(), others.flatten(1).tolist()
    return [plain_cosine(*two) for two in zip(*flat, strict=True)]


def plain_similarity(before, after, tokenizer, row, pad_to):
    """One example at a time, through output_attentions."""
    padding = {"padding": "max_length", "max_length": pad_to} if pad_to else {}
    inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt", **padding)
    with torch.inference_mode():
        maps = [m(**inputs, output_attentions=True).attentions for m in (before, after)]
    return [plain_cosines(old[0], new[0]) for old, new in zip(*maps, strict=True)]


@pytest.mark.parametrize(("pad_to", "padding"), [(None, False), (40, False), (40, True)])
def test_similarity_equals_the_plain_definition_with_and_without_padding(
    two_models, pad_to, padding
):
    (before, after), tokenizer = two_models
    batches = batches_of_rows(TASK, 12, tokenizer, tokens_per_batch=200, pad_to=pad_to)
    assert len(batches) > 1
    pairs = {"there": (before, after), "back": (after, before), "same": (after, after)}
    measured = measure.compare_maps(pairs, batches, padding)
    assert measured["there"].shape == (12, 3, 4)
    expected = [
        plain_similarity(before, after, tokenizer, row, pad_to if padding else None)
        for row in make_rows(TASK, 12)
    ]
    np.testing.assert_allclose(measured["there"], expected, atol=2 * forward_tolerance(after))
    np.testing.assert_allclose(measured["back"], measured["there"], rtol=1e-12)
    np.testing.assert_allclose(measured["same"], 1, rtol=1e-12)


def test_models_of_other_shapes_and_no_inputs_are_refused(two_models, tmp_path):
    (model, _), tokenizer = two_models
    batches = batches_of_rows(TASK, 4, tokenizer)
    for layers, heads in ((4, 4), (2, 4), (3, 2)):
        other, _ = loaded(make_bert(tmp_path / f"{layers}{heads}", layers, heads, 32))
        with pytest.raises(ValueError, match="compare models of the same shape"):
            map_similarity(model, other, batches)
    with pytest.raises(ValueError, match="give at least one batch"):
        map_similarity(model, model, [])


def test_the_cosine_of_two_changes_is_that_of_what_was_added(two_models):
    rng = np.random.default_rng(0)
    start, step, other = (torch.tensor(rng.random((3, 36))) for _ in range(3))
    # As small as the changes of a first layer, far below the maps themselves.
    changed = [start + 1e-3 * step, start + 2e-3 * step, start + 1e-3 * other]
    for one, expected in ((changed[1], 1.0), (changed[2], plain_cosines(step, other))):
        found = measure.cosine_of_changes(start, changed[0], one)
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert torch.isnan(measure.cosine_of_changes(start, start, changed[0])).all()
    (before, after), tokenizer = two_models
    three = {"same": (before, after, after)}
    compared = measure.compare_maps(three, batches_of_rows(TASK, 4, tokenizer))
    np.testing.assert_allclose(compared["same"], 1)


def planted(least_similar, n=50):
    """Similarities in which some of six layers are lower than the others."""
    values = np.random.default_rng(0).normal(0.9, 0.02, size=(n, 6, 12))
    values[:, least_similar] -= 0.2
    return values


@pytest.mark.parametrize(("layers", "lead"), [([4, 5], True), ([0, 5], False), ([3, 4], False)])
def test_whether_the_last_two_layers_change_most_is_found(layers, lead):
    leads = measure.last_layers_lead([planted(layers)], 1)
    assert all(one.interval[0] > 0 for one in leads.values()) == lead
    by_layer = planted(layers).mean(axis=(0, 2))
    assert len(leads) == 8
    assert leads["layer 6 above 2"].value == pytest.approx(by_layer[1] - by_layer[5])


@pytest.fixture(scope="module")
def classifiers(two_models):
    """A start and another model to take for its fine-tuned self, with inputs."""
    (before, after), tokenizer = two_models
    start, tuned = (load_classifier(model.name_or_path, TASK) for model in (before, after))
    return start, tuned, batches_of_rows(TASK, 12, tokenizer)


def test_reset_layers_compute_as_before_fine_tuning_and_the_model_stays(classifiers):
    start, tuned, batches = classifiers
    groups = [(2,), (), (0, 1), (measure.EMBEDDINGS, 0, 1, 2)]
    outputs = measure.reset_logits(tuned, start, groups, batches)
    for group, logits in zip(groups, outputs, strict=True):
        model = copy.deepcopy(tuned)
        for layer in group:
            part = "embeddings" if layer == measure.EMBEDDINGS else f"encoder.layer.{layer}"
            there, before = (one.base_model.get_submodule(part) for one in (model, start))
            there.load_state_dict(before.state_dict())
        np.testing.assert_array_equal(logits, predict_logits(model, batches))
    np.testing.assert_array_equal(outputs[1], predict_logits(tuned, batches))


def test_layers_that_share_their_weights_cannot_be_reset(classifiers):
    shape = {"hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 3}
    config = AlbertConfig(embedding_size=8, intermediate_size=16, **shape)
    shared = AlbertForSequenceClassification(config).eval()
    assert not measure.has_own_layers(shared) and measure.has_own_layers(classifiers[0])
    with pytest.raises(ValueError, match="cannot be reset one by one"):
        measure.reset_logits(shared, shared, [()], classifiers[2])


def test_groups_are_named_from_one_and_pairs_come_first():
    groups = {"1, 2": (0, 1), "2, 3": (1, 2), "1 to 1": (0,), "1 to 2": (0, 1)}
    assert measure.layer_groups(3) == groups and list(measure.layer_groups(3)) == list(groups)


def test_a_tuned_random_start_is_compared_with_single_random_classifiers():
    """Their mean is chance, which no untuned model is below; a tuned one may be below most of them."""
    rng, labels = np.random.default_rng(0), np.arange(60) % 2
    answers = rng.integers(0, 2, (300, 60))
    for tuned, share in ((labels, 0), (1 - labels, 1)):
        assert measure.share_ahead(TASK, answers, tuned[None], labels, 1).value == share
    chance = np.tile([0, 0, 1, 1], 15)  # half right, as the mean of all
    share = measure.share_ahead(TASK, answers, chance[None], labels, 1)
    assert share.value == pytest.approx(0.45, abs=0.07)


def test_random_classifiers_answer_by_chance(classifiers):
    start, _, batches = classifiers
    features, logits = classifier_inputs(start, batches), predict_logits(start, batches)
    weight, bias = (one.detach().double().numpy() for one in start.classifier.parameters())
    np.testing.assert_allclose(features @ weight.T + bias, logits, atol=1e-5)
    answers = measure.random_answers(TASK, features, seed=1)
    assert answers.shape == (1000, 12) and set(answers.ravel()) == {0, 1}
    score = measure.score_task(TASK, answers, np.arange(12) % 2, 1)["accuracy"]
    assert 0.4 < score.value < 0.6


def test_a_gain_is_paired_and_over_runs():
    labels = np.arange(40) % 2
    right, constant = np.stack([labels, labels]), np.zeros((1, 40), dtype=int)
    worse = measure.score_task(TASK, constant, labels, 1)["accuracy"]
    gain = measure.gain(TASK, right, worse, labels, 1)
    assert gain.value == pytest.approx(0.5) and gain.trainings == 2 and gain.n == 40
    assert measure.answer_text(TASK, np.array([0.0, np.log(3)])) == "not_entailment (0.75)"
    assert measure.answer_text(TASKS["stsb"], np.array([0.9])) == "4.5 of 5"


@pytest.mark.parametrize(("lowest", "counts"), [(0.97, True), (0.99, False)])
def test_a_random_start_counts_only_where_it_changed_some_map(lowest, counts, monkeypatch):
    monkeypatch.setattr(measure, "learned", lambda *_: True)
    similarity = np.ones((40, 3, 2))
    similarity[:, 0] = lowest
    nothing = SimpleNamespace(**dict.fromkeys(LAB, lambda _: None))
    assert measure.changed_and_learned(nothing, TASK, similarity) == counts
