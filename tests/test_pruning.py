"""Page 10: heads that are removed, layers that stay as they are, and the measurements of both."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, make_rows, random_classifier

from bertology_utils import finetune
from bertology_utils.disabling import (
    Cut,
    disable_heads,
    importance,
    normalise_layers,
    removal_order,
    replacement,
)
from bertology_utils.glue import TASKS
from bertology_utils.hooks import layers_of
from bertology_utils.measurements import bag_of_words, frozen, halves, pruned, ranking_batches
from bertology_utils.models import load_classifier, load_tokenizer, predict_logits
from bertology_utils.settings import ModelSource, Recipe, parse_model
from bertology_utils.study import Study

TASK = TASKS["sst2"]
RECIPE = Recipe(learning_rate=3e-3, epochs=2, batch_size=8, max_length=32)


@pytest.fixture
def finetuned(tmp_path):
    """Makes the classifier of a training, without the cache."""

    def make(training):
        folder = tmp_path / training.name
        finetune.train(training, folder, tmp_path / f"{training.name} unfinished")
        return load_classifier(ModelSource("own", str(folder)), training.task, "finetuned")

    return make


@pytest.fixture
def training(tiny_bert):
    return finetune.Training(
        task=TASK, source=parse_model(str(tiny_bert)), rows=make_rows(TASK), recipe=RECIPE
    )


@pytest.fixture
def model(tiny_bert):
    return random_classifier(tiny_bert, TASK)


@pytest.fixture
def batches(tiny_bert):
    return batches_of_rows(TASK, 24, load_tokenizer(str(tiny_bert)), 32, tokens_per_batch=300)


@pytest.fixture
def study(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path / "measured"))
    sizes = {"train_rows": 40, "pruned_rows": 12, "runs": 1}
    recipe = {"learning_rate": 3e-3, "epochs": 2}
    return Study.of("small", "sst2,stsb", model=str(tiny_bert), recipe=recipe, **sizes)


# --- importance, and the order of removal ---


def test_importance_is_the_gradient_of_a_head_s_scale(model, batches):
    """By finite differences: scale one head's output of one example, see how its loss changes."""
    before = predict_logits(model, batches)
    values = importance(model, batches)
    assert values.shape == (3, 4) and all(one.grad is None for one in model.parameters())
    np.testing.assert_array_equal(predict_logits(model, batches), before)
    layer, head, size = 1, 2, 8
    exact = copy.deepcopy(model).double()
    slopes, scale = [], [1.0]

    def scaled(module, arguments):
        context = arguments[0].clone()
        context[:, :, size * head : size * (head + 1)] *= scale[0]
        return (context,)

    hook = layers_of(exact)[layer].attention.output.dense.register_forward_pre_hook(scaled)
    for batch in batches:
        losses = []
        for scale[0] in (1 - 1e-5, 1 + 1e-5):
            with torch.no_grad():
                logits = exact(**batch.inputs).logits
            losses.append(torch.nn.functional.cross_entropy(logits, batch.labels, reduction="none"))
        slopes.append(((losses[1] - losses[0]) / 2e-5).abs())
    hook.remove()
    assert values[layer, head] == pytest.approx(float(torch.cat(slopes).mean()), rel=1e-3)
    np.testing.assert_allclose((normalise_layers(values) ** 2).mean(axis=1), 1)


def test_heads_that_are_left_are_ranked_anew_at_each_step(model, batches):
    once, again = (removal_order(model, batches, step) for step in (12, 3))
    every = [(layer, head) for layer in range(3) for head in range(4)]
    assert sorted(once) == sorted(again) == every
    assert once[:3] == again[:3] and once != again
    with disable_heads(model, again[:3], replacement(model, batches, "zero")):
        rank = normalise_layers(importance(model, batches))
    assert again[3] == min(set(every) - set(again[:3]), key=lambda head: rank[head])


def test_heads_that_do_nothing_go_first(model, batches):
    idle = ((0, 0), (0, 2), (1, 1), (2, 3))
    Cut(removed=idle).apply(model)
    assert sorted(removal_order(model, batches, 12)[:4]) == list(idle)


# --- fine-tuning that goes without something ---


def test_what_is_removed_stays_zero_what_is_frozen_stays_and_the_rest_learns(training, finetuned):
    removed = ((1, 1), (1, 3), (2, 0))
    tuned = finetuned(dataclasses.replace(training, cut=Cut(frozen=1, removed=removed)))
    start = load_classifier(training.source, TASK, seed=training.seed)
    for at, layers in enumerate(zip(layers_of(tuned), layers_of(start), strict=True)):
        # (hidden, heads, head size)
        read, before = (one.attention.output.dense.weight.unflatten(1, (4, -1)) for one in layers)
        for head in range(4):
            gone = (at, head) in removed
            assert (read[:, head] == 0).all() == gone
            learned = (read[:, head] != before[:, head]).float().mean() > 0.9
            assert gone or learned == (at > 0)

    def parts(model):
        return [model.base_model.embeddings, *layers_of(model), model.classifier]

    vectors = torch.nn.utils.parameters_to_vector
    both = zip(parts(start), parts(tuned), strict=True)
    same = [torch.equal(*(vectors(part.parameters()) for part in one)) for one in both]
    assert same == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (Cut(frozen=4), "4 layers cannot be frozen; the model has 3"),
        (Cut(removed=((3, 0),)), "layer 3 of .* are 0 to 2"),
        (Cut(removed=((1, 0), (1, 0))), "named twice"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_words(model, cut, message):
    with pytest.raises(ValueError, match=message):
        cut.apply(model)
    model.base_model.encoder = None
    with pytest.raises(ValueError, match="not laid out as BERT"):
        cut.apply(model)


# --- the measurements ---


def test_pruned_is_a_pass_for_each_number_of_removed_heads(study):
    one = study.measure(pruned)["SST-2"].isel(run=0)
    assert one.right.sizes == {"order": 5, "count": 7, "example": 12}
    assert one.importance.sizes == {"layer": 3, "head": 4}
    model, batches = study.classifier("SST-2"), study.batches("SST-2", 12)
    labels, zeros = study.labels("SST-2", 12), replacement(model, batches, "zero")
    for order in one.order.values:
        places = one.head_at.sel(order=order).values
        assert sorted(places) == list(range(12))
        for count in one["count"].values:
            with disable_heads(model, [divmod(int(at), 4) for at in places[:count]], zeros):
                outputs = predict_logits(model, batches)
            at = one.sel(order=order, count=count)
            np.testing.assert_array_equal(at.right, outputs.argmax(axis=1) == labels)
            p = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(at.loss, -np.log(p[range(12), labels]), rtol=2e-3, atol=1e-3)
    ranking = ranking_batches(study, "SST-2")
    np.testing.assert_allclose(
        one.importance, normalise_layers(importance(model, ranking)), rtol=1e-3
    )
    ranked = np.argsort(one.importance.values.ravel(), kind="stable")
    np.testing.assert_array_equal(one.head_at.sel(order="ranked once"), ranked)
    anew = [layer * 4 + head for layer, head in removal_order(model, ranking, 2)]
    assert one.head_at.sel(order="ranked anew").values.tolist() == anew


def test_halves_and_frozen_are_fine_tuned_with_the_cut_that_they_name(study, finetuned):
    measured = {half: study.measure(halves, half=half) for half in ("good", "random", "bad")}
    good, random, bad = (one["SST-2"].isel(run=0) for one in measured.values())
    once = study.measure(pruned)["SST-2"].isel(run=0)
    for one, order in ((good, "ranked once"), (random, "random 1")):
        gone = once.head_at.sel(order=order).values[:6]
        assert np.flatnonzero(~one.kept.values.ravel()).tolist() == sorted(gone)
    assert (good.kept ^ bad.kept).all()
    assert "answer" in measured["bad"]["STS-B"]
    half, whole = (study.measure(frozen, lowest=lowest)["SST-2"] for lowest in ("half", "all"))
    assert [int(one.layers.isel(run=0)) for one in (half, whole)] == [2, 3]
    removed = Cut(removed=tuple(map(tuple, np.argwhere(~bad.kept.values).tolist())))
    for one, cut in ((bad, removed), (half.isel(run=0), Cut(frozen=2))):
        training = dataclasses.replace(study.training("SST-2"), cut=cut)
        outputs = predict_logits(finetuned(training), study.batches("SST-2", 12))
        right = outputs.argmax(axis=1) == study.labels("SST-2", 12)
        np.testing.assert_array_equal(one.right, right)


def test_a_bag_of_words_learns_words_and_not_their_order(study, monkeypatch):
    rows = {"train": make_rows(TASK), "others": make_rows(TASK, 24, seed=1)}
    turned = rows["others"].map(lambda row: {"sentence": " ".join(row["sentence"].split()[::-1])})
    monkeypatch.setattr(Study, "rows", lambda self, task, part: rows[part])
    outputs = bag_of_words(study, "SST-2", "others")
    assert (outputs.argmax(axis=1) == rows["others"]["label"]).all()
    rows["others"] = turned
    np.testing.assert_allclose(bag_of_words(study, "SST-2", "others"), outputs)
