"""§4.3: similarity of maps against a plain reading of its definition."""

import copy

import numpy as np
import pytest
import torch
from conftest import batches_of_rows, loaded, make_bert, make_rows
from precision import forward_tolerance

from bertology_utils import load_classifier, map_similarity
from bertology_utils.glue import TASKS

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
    there = map_similarity(before, after, batches)
    assert there.shape == (12, 3, 4)
    expected = [plain_similarity(before, after, tokenizer, row) for row in make_rows(TASK, 12)]
    np.testing.assert_allclose(there, expected, atol=2 * forward_tolerance(after))
    np.testing.assert_allclose(map_similarity(after, before, batches), there, rtol=1e-12)
    same = copy.deepcopy(after)
    np.testing.assert_allclose(map_similarity(after, same, batches), 1, rtol=1e-12)


def test_a_model_is_not_compared_with_itself(two_models, tiny_classifier):
    (model, other), tokenizer = two_models
    batches = batches_of_rows(TASK, 4, tokenizer)
    classifier = load_classifier(str(tiny_classifier), "rte", "finetuned")
    for one, same in (
        (model, model),
        (model, torch.nn.DataParallel(model)),
        (classifier, classifier.bert),
    ):
        with pytest.raises(ValueError, match="one and the same.*compare with a copy made before"):
            map_similarity(one, same, batches)
    other.embeddings = model.embeddings  # frozen, for example; the rest is its own
    assert map_similarity(model, other, batches).min() < 1


def test_models_of_other_shapes_and_no_inputs_are_refused(two_models, tmp_path):
    (model, _), tokenizer = two_models
    batches = batches_of_rows(TASK, 4, tokenizer)
    for layers, heads in ((4, 4), (2, 4), (3, 2)):
        other, _ = loaded(make_bert(tmp_path / f"{layers}{heads}", layers, heads, 32))
        with pytest.raises(ValueError, match="compare models of the same shape"):
            map_similarity(model, other, batches)
    with pytest.raises(ValueError, match="give at least one batch"):
        map_similarity(model, copy.deepcopy(model), [])
