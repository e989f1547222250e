"""§4.3: the measure against a plain reading of its definition, and its two protocols."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, loaded, make_bert, make_rows
from precision import forward_tolerance
from transformers import AlbertConfig, AlbertForSequenceClassification

from bertology_utils import load_classifier
from bertology_utils.attention import observe
from bertology_utils.drift import measure, scores
from bertology_utils.glue import TASKS
from bertology_utils.models import classifier_inputs, predict_logits
from bertology_utils.verdicts import FAILS, judge

TASK = TASKS["rte"]


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    folders = [make_bert(tmp_path_factory.mktemp(f"seed{seed}"), 3, 4, 32, seed) for seed in (0, 1)]
    return [loaded(folder)[0] for folder in folders], loaded(folders[0])[1]


def plain_similarity(before, after, tokenizer, row, pad_to=None):
    """One example at a time, through output_attentions, in pure Python."""
    padding = {"padding": "max_length", "max_length": pad_to} if pad_to else {}
    inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt", **padding)
    with torch.inference_mode():
        pairs = zip(
            *(m(**inputs, output_attentions=True).attentions for m in (before, after)), strict=True
        )
        result = []
        for a, b in pairs:
            heads = []
            for head in range(a.shape[1]):
                x, y = a[0, head].flatten().tolist(), b[0, head].flatten().tolist()
                dot = sum(i * j for i, j in zip(x, y, strict=True))
                heads.append(
                    dot / math.sqrt(sum(i * i for i in x)) / math.sqrt(sum(j * j for j in y))
                )
            result.append(heads)
    return np.array(result)


@pytest.mark.parametrize("protocol", ["paper", "official"])
def test_several_pairs_from_one_pass_of_each_model(two_models, protocol, monkeypatch):
    (before, after), tokenizer = two_models
    made = batches_of_rows(TASK, 12, tokenizer)
    pairs = {"there": (before, after), "back": (after, before), "same": (after, after)}
    seen, maps_of = [], measure.attention_maps
    monkeypatch.setattr(
        measure, "attention_maps", lambda model, *rest: seen.append(model) or maps_of(model, *rest)
    )
    found = measure.drifts(pairs, made, protocol)
    assert len(seen) == 2 * len(made), "one pass of each model and batch"
    monkeypatch.undo()
    for name, (reference, model) in pairs.items():
        alone = observe(model, made, {"d": measure.Drift(reference, protocol)})["d"]
        np.testing.assert_allclose(found[name], alone, rtol=1e-12)


@pytest.mark.parametrize(("protocol", "pad_to"), [("paper", None), ("paper", 40), ("official", 40)])
def test_equals_the_plain_definition(two_models, protocol, pad_to):
    (before, after), tokenizer = two_models
    rows = make_rows(TASK, 12)
    made = batches_of_rows(TASK, 12, tokenizer, tokens_per_batch=200, pad_to=pad_to)
    assert len(made) > 1
    measured = observe(after, made, {"drift": measure.Drift(before, protocol)})["drift"]
    assert measured.shape == (12, 3, 4)
    for index, row in enumerate(rows):
        expected = plain_similarity(
            before, after, tokenizer, row, pad_to if protocol == "official" else None
        )
        np.testing.assert_allclose(measured[index], expected, atol=2 * forward_tolerance(after))


@pytest.mark.parametrize(
    "layers, heads, message", [(4, 4, "4 layers"), (2, 4, "2 layers"), (3, 2, "2 heads per layer")]
)
def test_a_reference_of_another_shape_is_refused(two_models, tmp_path, layers, heads, message):
    (model, _), tokenizer = two_models
    reference, _ = loaded(make_bert(tmp_path, layers, heads, 32))
    made = batches_of_rows(TASK, 12, tokenizer, tokens_per_batch=100)
    assert len(made) > 1
    for observed in (made, made[:1]):
        with pytest.raises(ValueError, match=f"the reference has {message} and the observed model"):
            observe(model, observed, {"d": measure.Drift(reference)})


def planted(least_similar, n=50):
    """Similarities in which two of six layers are lower than the others."""
    values = np.random.default_rng(0).normal(0.9, 0.02, size=(n, 6, 12))
    values[:, least_similar] -= 0.2
    return values


@pytest.mark.parametrize(
    ("layers", "share"), [([4, 5], 1.0), ([0, 5], 0.0), ([3, 4], 0.0), ([], None)]
)
def test_finds_whether_the_last_two_layers_change_most(layers, share):
    found = measure.last_layers_lead(planted(layers), seed=1)
    above = np.mean([lead.draws > 0 for lead in found.values()], axis=1).min()
    assert above == share if share is not None else above < 0.95
    by_layer = planted(layers).mean(axis=(0, 2))
    assert len(found) == 8 and found["layer 6 above 2"].value == pytest.approx(
        by_layer[1] - by_layer[5]
    )


def test_the_least_lead_of_equal_layers_is_biased_and_pairs_are_not():
    """Five rivals that are as good: the least of the leads is below 0, and no single pair says that one changes less."""
    failed = {"the least": 0, "each pair": 0}
    for seed in range(100):
        similarity = np.random.default_rng(seed).normal(0.9, 0.1, size=(60, 6, 1))
        leads = measure.over_trainings([measure.last_layers_lead(similarity, seed)])
        least = np.min([lead.value for lead in leads.values()])
        failed["the least"] += least < -1.96 * np.sqrt(2 / 60) * 0.1
        failed["each pair"] += judge("last-layers", {TASK: leads}).outcome == FAILS
    assert failed["the least"] > 10 > 6 >= failed["each pair"]


def test_displacements_have_the_cosine_of_what_changed(two_models):
    rng = np.random.default_rng(0)
    start, step, other = (torch.tensor(rng.random((2, 3, 6, 6))) for _ in range(3))
    mask = torch.ones(2, 6, dtype=torch.bool)
    # As small as the changes of a first layer, far below the maps themselves.
    products = measure.dot_products(
        [start, start + 1e-3 * step, start + 2e-3 * step, start + 1e-3 * other], mask
    )
    same = measure.displacement_cosine(products, 0, 1, 2)
    assert torch.allclose(same, torch.ones(2, 3, dtype=torch.float64), rtol=1e-8)
    expected = [
        [np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(x, y, strict=True)]
        for x, y in zip(step.flatten(2).numpy(), other.flatten(2).numpy(), strict=True)
    ]
    np.testing.assert_allclose(measure.displacement_cosine(products, 0, 1, 3), expected, rtol=1e-8)
    assert torch.isnan(measure.displacement_cosine(products, 0, 0, 1)).all(), "nothing moved"
    np.testing.assert_allclose(
        measure.cosine(products, 0, 3), measure.map_cosine(start, start + 1e-3 * other, mask)
    )
    (before, after), tokenizer = two_models
    made = batches_of_rows(TASK, 4, tokenizer)
    found = measure.drifts({}, made, displacements={"same": (before, after, after)})
    np.testing.assert_allclose(found["same"], 1)


@pytest.fixture(scope="module")
def classifiers(two_models):
    """One start and another model to take for its fine-tuned self, with inputs."""
    (before, after), tokenizer = two_models
    start, tuned = (load_classifier(model.name_or_path, TASK) for model in (before, after))
    return start, tuned, batches_of_rows(TASK, 12, tokenizer)


def restored(tuned, start, layers):
    """The fine-tuned model with the weights of some layers as they were before."""
    model, before = copy.deepcopy(tuned), start.state_dict()
    there = {
        name: before[name] for layer in layers for name in before if f".layer.{layer}." in name
    }
    model.load_state_dict(there, strict=False)
    return model


def test_grafts_that_share_their_lower_layers_answer_as_they_do_alone(classifiers):
    start, tuned, made = classifiers
    groups = [(2,), (), (0, 1), (0,), (1, 2)]
    plain = [predict_logits(restored(tuned, start, group), made) for group in groups]
    passes = []
    layers = [layer for model in (start, tuned) for layer in model.base_model.encoder.layer]
    hooks = [layer.attention.register_forward_hook(lambda *_: passes.append(1)) for layer in layers]
    found = scores.restored_logits(tuned, start, groups, made)
    for hook in hooks:
        hook.remove()
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    # A tree of 5 paths: 2 first layers, 4 second ones and 5 third ones.
    assert len(passes) == 11 * len(made)
    np.testing.assert_array_equal(predict_logits(tuned, made), plain[1], "the model itself stays")


def test_layers_that_share_their_weights_cannot_be_put_back(classifiers):
    _, _, made = classifiers
    config = AlbertConfig(
        embedding_size=8,
        hidden_size=16,
        num_attention_heads=4,
        intermediate_size=16,
        num_hidden_layers=3,
    )
    shared = AlbertForSequenceClassification(config).eval()
    assert not scores.exchangeable(shared)
    logits = scores.restored_logits(shared, shared, [(), *scores.groups_of(3).values()], made)
    found = scores.changes_of_score(TASK, logits, np.zeros(12), seed=1)
    assert np.isnan([change.value for change in found]).all()


def test_graft_scores_are_changes_of_the_score(classifiers):
    start, tuned, made = classifiers
    labels = np.arange(12) % 2
    groups = [(), *scores.groups_of(3).values()]
    assert groups == [(), (0, 1), (1, 2), (0,), (0, 1)]
    found = scores.changes_of_score(
        TASK, scores.restored_logits(tuned, start, [(), *groups], made), labels, seed=1
    )

    def accuracy(model):
        return np.mean(predict_logits(model, made).argmax(axis=1) == labels)

    assert found[0].value == 0 and found[0].n == 12
    for group, change in zip(groups, found, strict=True):
        assert change.value == pytest.approx(
            accuracy(restored(tuned, start, group)) - accuracy(tuned)
        )


def test_a_tuned_random_start_is_compared_with_single_random_classifiers():
    """Their mean is chance, which an untuned model never is below; a tuned one may be below most of them."""
    rng, labels = np.random.default_rng(0), np.arange(60) % 2
    answers = rng.integers(0, 2, (300, 60))
    for tuned, share in ((labels, 0), (1 - labels, 1)):
        assert scores.share_ahead(TASK, answers, tuned[None], labels, 1).value == share
    chance = np.tile([0, 0, 1, 1], 15)  # half right, as the mean of all
    assert scores.share_ahead(TASK, answers, chance[None], labels, 1).value == pytest.approx(
        0.45, abs=0.07
    )


def test_random_classifiers_answer_by_chance(classifiers):
    start, _, made = classifiers
    features = classifier_inputs(start, made)
    logits = predict_logits(start, made)
    weight, bias = (
        parameter.detach().double().numpy() for parameter in start.classifier.parameters()
    )
    np.testing.assert_allclose(features @ weight.T + bias, logits, atol=1e-5)
    answers = scores.random_answers(TASK, features, seed=1, count=400)
    assert answers.shape == (400, 12) and set(answers.ravel()) == {0, 1}
    found = scores.score_task(TASK, answers, np.arange(12) % 2, 1)
    assert 0.4 < found["accuracy"].value < 0.6
    np.testing.assert_array_equal(answers, scores.random_answers(TASK, features, seed=1, count=400))


def test_a_gain_is_paired_and_over_trainings():
    labels = np.arange(40) % 2
    right, constant = np.stack([labels, labels]), np.zeros((1, 40), dtype=int)
    worse = scores.score_task(TASK, constant, labels, 1)["accuracy"]
    found = scores.gain(TASK, right, worse, labels, 1)
    assert found.value == pytest.approx(0.5) and found.trainings == 2 and found.n == 40
    assert scores.answer_text(TASK, np.array([0.0, np.log(3)])) == "not_entailment (0.75)"
    assert scores.answer_text(TASKS["stsb"], np.array([0.9])) == "4.5 of 5"


def test_groups_are_named_from_one_and_pairs_come_first():
    assert scores.groups_of(3) == {"1, 2": (0, 1), "2, 3": (1, 2), "1 to 1": (0,), "1 to 2": (0, 1)}


@pytest.mark.parametrize(("lowest", "counts"), [(0.97, True), (0.99, False)])
def test_a_random_start_counts_only_where_it_changed_some_map(lowest, counts, monkeypatch):
    monkeypatch.setattr(measure, "learned", lambda *_: True)
    lab = SimpleNamespace(
        random_tasks=(TASK,),
        resampling_seed=lambda _: 1,
        random_starts=lambda _: None,
        labels=lambda _: None,
    )
    similarity = np.ones((40, 3, 2))
    similarity[:, 0] = lowest
    found = measure.leads_at_random({TASK: {"random start": similarity}}, lab)
    assert (TASK in found) == counts and all(
        lead["layer 3 above 1"].value == pytest.approx(-0.03) for lead in found.values()
    )
