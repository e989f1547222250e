"""§4.6 from end to end: a head that does harm is found as a significant gain, and nothing is where there is nothing."""

import numpy as np
import pytest
import torch
from conftest import make_bert, make_rows

from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.disabling.effects import effects, most_needed, shared
from bertology_utils.disabling.sweep import sweep
from bertology_utils.disabling.switch import disable_heads
from bertology_utils.glue import TASKS
from bertology_utils.models import load_classifier, load_tokenizer, predict_logits
from bertology_utils.sources import parse_model

PLANTED = (1, 2)
SIZE = 8  # of a head


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A classifier in which one head picks single tokens and shouts; labels that are right but for one in ten without it."""
    source = parse_model(str(make_bert(tmp_path_factory.mktemp("planted"), layers=3, heads=4, hidden=32)))
    model, task = load_classifier(source, TASKS["mrpc"]), TASKS["mrpc"]
    attention = model.bert.encoder.layer[PLANTED[0]].attention.self
    own = slice(SIZE * PLANTED[1], SIZE * (PLANTED[1] + 1))
    with torch.no_grad():
        for module, factor in ((attention.query, 4), (attention.key, 4), (attention.value, 8)):
            module.weight[own] *= factor
        model.classifier.weight.normal_(std=1, generator=torch.Generator().manual_seed(3))
    rows = make_rows(task, 400, seed=5)
    batches = make_batches(tokenize(rows, task, load_tokenizer(source), 64), load_tokenizer(source))
    with disable_heads(model, [PLANTED]):
        logits = predict_logits(model, batches)
    # The classes of the model without the head, split in the middle, so that neither is rare.
    middle = np.median(logits[:, 1] - logits[:, 0])
    with torch.no_grad():
        model.classifier.bias[0] += middle
    labels = (logits[:, 1] - logits[:, 0] > middle).astype(int)
    flipped = np.random.default_rng(0).random(len(labels)) < 0.1
    return sweep(model, batches), np.where(flipped, 1 - labels, labels)


def test_a_planted_harmful_head_is_found_and_its_gain_is_real(planted):
    found, labels = planted
    heads = effects(TASKS["mrpc"], found, labels, seed=1).heads
    assert divmod(heads.best, 4) == PLANTED
    assert heads.significant()[PLANTED] and heads.values[PLANTED] > 0.05
    assert heads.selected.honest.mean() > 0.03, "it is a gain on examples that had no say in the choice"
    assert heads.mcnemar[heads.best] < 1e-3
    assert heads.gains[heads.best].interval[0] > 0


def test_on_shuffled_labels_no_head_gains(planted):
    found, labels = planted
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(labels)
        effect = effects(TASKS["mrpc"], found, shuffled, seed=1)
        assert not effect.heads.significant().any() and not effect.layers.significant().any()
        assert effect.heads.values.max() > 0, "some head seems to gain all the same"


def test_effects_of_layers_and_of_the_mean_head(planted):
    found, labels = planted
    effect = effects(TASKS["mrpc"], found, labels, seed=1)
    right = (found.baseline.argmax(axis=1) == labels).mean()
    assert effect.baseline == pytest.approx(right)
    np.testing.assert_allclose(
        effect.layers.values, (found.layers.argmax(axis=2) == labels).mean(axis=1) - right, atol=1e-12
    )
    assert effect.heads.mean.value == pytest.approx(effect.heads.values.mean())
    assert effect.heads.shape == (3, 4) and effect.layers.shape == (3,)


def test_missing_labels_are_refused(planted):
    found, labels = planted
    with pytest.raises(ValueError, match="labels are missing"):
        effects(TASKS["mrpc"], found, np.where(labels == 1, np.nan, 0.0), seed=1)


def test_shared_heads_are_those_in_both_lists():
    gains = np.arange(72.0).reshape(6, 12)
    assert most_needed(gains, 2) == [(0, 0), (0, 1)]
    common, p, rank = shared(gains, gains)
    assert common == 5 and p < 1e-6 and rank == pytest.approx(1)
    common, p, rank = shared(gains, -gains)
    assert common == 0 and p == 1 and rank == pytest.approx(-1)
    assert shared(gains, np.zeros((6, 12)))[:2] == (0, 1), "a model that needs no head more than others"
