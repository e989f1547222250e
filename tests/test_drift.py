"""§4.3: the measure against a plain reading of its definition, and its two protocols."""

import math

import numpy as np
import pytest
import torch
from conftest import make_bert, make_rows
from precision import forward_tolerance

from bertology_utils.attention import batches, observe
from bertology_utils.drift import measure
from bertology_utils.encoders import models
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.tasks import TASKS

TASK = TASKS["rte"]


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    folders = [make_bert(tmp_path_factory.mktemp(f"seed{seed}"), 3, 4, 32, seed) for seed in (0, 1)]
    sources = [parse_model(str(folder)) for folder in folders]
    return [models.load_encoder(source) for source in sources], models.load_tokenizer(sources[0])


def plain_similarity(before, after, tokenizer, row, pad_to=None):
    """One example at a time, through output_attentions, in pure Python."""
    padding = {"padding": "max_length", "max_length": pad_to} if pad_to else {}
    inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt", **padding)
    with torch.inference_mode():
        pairs = zip(*(m(**inputs, output_attentions=True).attentions for m in (before, after)), strict=True)
        result = []
        for a, b in pairs:
            heads = []
            for head in range(a.shape[1]):
                x, y = a[0, head].flatten().tolist(), b[0, head].flatten().tolist()
                dot = sum(i * j for i, j in zip(x, y, strict=True))
                heads.append(dot / math.sqrt(sum(i * i for i in x)) / math.sqrt(sum(j * j for j in y)))
            result.append(heads)
    return np.array(result)


@pytest.mark.parametrize("protocol", ["paper", "official"])
def test_several_pairs_from_one_pass_of_each_model(two_models, protocol, monkeypatch):
    (before, after), tokenizer = two_models
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 12), TASK, tokenizer, 64), tokenizer)
    pairs = {"there": (before, after), "back": (after, before), "same": (after, after)}
    seen, maps_of = [], measure.attention_maps
    monkeypatch.setattr(measure, "attention_maps", lambda model, batch: seen.append(model) or maps_of(model, batch))
    found = measure.drifts(pairs, made, protocol)
    assert len(seen) == 2 * len(made), "one pass of each model and batch"
    monkeypatch.undo()
    for name, (reference, model) in pairs.items():
        assert (found[name] == observe(model, made, {"d": measure.Drift(reference, protocol)})["d"]).all()


@pytest.mark.parametrize(("protocol", "pad_to"), [("paper", None), ("paper", 40), ("official", 40)])
def test_equals_the_plain_definition(two_models, protocol, pad_to):
    (before, after), tokenizer = two_models
    rows = make_rows(TASK, 12)
    inputs = batches.tokenize(rows, TASK, tokenizer, 64)
    made = batches.make_batches(inputs, tokenizer, tokens_per_batch=200, pad_to=pad_to)
    assert len(made) > 1
    measured = observe(after, made, {"drift": measure.Drift(before, protocol)})["drift"]
    assert measured.shape == (12, 3, 4)
    for index, row in enumerate(rows):
        expected = plain_similarity(before, after, tokenizer, row, pad_to if protocol == "official" else None)
        np.testing.assert_allclose(measured[index], expected, atol=2 * forward_tolerance(after))


def test_the_same_model_does_not_drift(two_models):
    (model, _), tokenizer = two_models
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 5), TASK, tokenizer, 64), tokenizer)
    np.testing.assert_allclose(observe(model, made, {"d": measure.Drift(model)})["d"], 1, atol=1e-9)


def test_padding_changes_the_official_reading_only(two_models):
    (before, after), tokenizer = two_models
    inputs = batches.tokenize(make_rows(TASK, 5), TASK, tokenizer, 64)
    results = {
        (protocol, pad_to): observe(
            after, batches.make_batches(inputs, tokenizer, pad_to=pad_to), {"d": measure.Drift(before, protocol)}
        )["d"]
        for protocol in measure.PROTOCOLS
        for pad_to in (40, 60)
    }
    np.testing.assert_allclose(results["paper", 40], results["paper", 60], atol=2 * forward_tolerance(after))
    assert np.abs(results["official", 40] - results["official", 60]).max() > 1e-3


def test_pairs_of_other_shapes_are_refused(two_models, tmp_path):
    (model, _), _ = two_models
    other = models.load_encoder(parse_model(str(make_bert(tmp_path, 2, 4, 32))))
    with pytest.raises(ValueError, match=r"these models have \(layers, heads\) of \[\(2, 4\), \(3, 4\)\]"):
        measure.drifts({"a": (model, other)}, [])


def test_unknown_protocol_is_refused(two_models):
    with pytest.raises(ValueError, match="paper, official"):
        measure.Drift(two_models[0][0], "mine")


@pytest.mark.parametrize(
    ("layers", "heads", "message"),
    [
        (4, 4, "the reference has 4 layers and the observed model 3"),
        (2, 4, "the reference has 2 layers and the observed model has"),
        (3, 2, "the reference has 2 heads per layer and the observed model 4"),
    ],
)
def test_a_reference_of_another_shape_is_refused(two_models, tmp_path, layers, heads, message):
    (model, _), tokenizer = two_models
    reference = models.load_encoder(parse_model(str(make_bert(tmp_path, layers, heads, 32))))
    made = batches.make_batches(batches.tokenize(make_rows(TASK, 12), TASK, tokenizer, 64), tokenizer, 100)
    assert len(made) > 1
    for observed in (made, made[:1]):
        with pytest.raises(ValueError, match=message):
            observe(model, observed, {"d": measure.Drift(reference)})


def test_no_example_is_said(two_models):
    with pytest.raises(ValueError, match="no example was observed"):
        observe(two_models[0][0], [], {"d": measure.Drift(two_models[0][1])})


def planted(least_similar, n=50):
    """Similarities in which two of six layers are lower than the others."""
    values = np.random.default_rng(0).normal(0.9, 0.02, size=(n, 6, 12))
    values[:, least_similar] -= 0.2
    return values


@pytest.mark.parametrize(("layers", "share"), [([4, 5], 1.0), ([0, 5], 0.0), ([3, 4], 0.0), ([], None)])
def test_finds_whether_the_last_two_layers_change_most(layers, share):
    found = measure.last_layers_change_most(planted(layers), seed=1)
    assert found == share if share is not None else 0 <= found < 0.95
