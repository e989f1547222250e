"""§4.3: similarity of maps against a plain reading of its definition, reset layers."""

import copy

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, loaded, make_bert, make_rows
from precision import forward_tolerance
from transformers import AlbertConfig, AlbertForSequenceClassification

from bertology_utils import load_classifier, map_similarity
from bertology_utils.drift import measure
from bertology_utils.glue import TASKS
from bertology_utils.models import predict_logits

TASK = TASKS["rte"]


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


def plain_similarity(before, after, tokenizer, row):
    """One example at a time, through output_attentions."""
    inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt")
    with torch.inference_mode():
        maps = [m(**inputs, output_attentions=True).attentions for m in (before, after)]
    return [plain_cosines(old[0], new[0]) for old, new in zip(*maps, strict=True)]


@pytest.mark.parametrize("pad_to", [None, 40])
def test_similarity_equals_the_plain_definition_whatever_is_padded(two_models, pad_to):
    (before, after), tokenizer = two_models
    batches = batches_of_rows(TASK, 12, tokenizer, tokens_per_batch=200, pad_to=pad_to)
    assert len(batches) > 1
    pairs = {"there": (before, after), "back": (after, before), "same": (after, after)}
    measured = measure.compare_maps(pairs, batches)
    assert measured["there"].shape == (12, 3, 4)
    expected = [plain_similarity(before, after, tokenizer, row) for row in make_rows(TASK, 12)]
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
