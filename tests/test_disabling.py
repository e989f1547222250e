"""Disabled heads: exactly 1/L, the model as before afterwards, and the plain sweep (§4.6)."""

import copy

import numpy as np
import pytest
import torch
from conftest import make_bert, make_rows
from transformers import (
    AutoTokenizer, ElectraConfig, ElectraForSequenceClassification, RobertaConfig, RobertaForSequenceClassification,
)

from bertology_utils.attention import attention_maps
from bertology_utils.batches import make_batches, tokenize
from bertology_utils.disabling.reference import reference_sweep
from bertology_utils.disabling.sweep import sweep
from bertology_utils.disabling.switch import all_heads, disable_heads, layer_heads
from bertology_utils.embedded_model import embedded_folder
from bertology_utils.evaluate import predict_logits
from bertology_utils.models import load_classifier
from bertology_utils.sources import parse_model
from bertology_utils.tasks import TASKS

SIZES = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 64, "vocab_size": 30522}


def spread(model):
    """Weights far from uniform attention, in evaluation mode."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    return model.eval()


@pytest.fixture(scope="module", params=["bert", "roberta", "electra"])
def model(request, tmp_path_factory):
    if request.param == "bert":
        folder = make_bert(tmp_path_factory.mktemp("bert"), layers=3, heads=4, hidden=32)
        return spread(load_classifier(parse_model(str(folder)), TASKS["mrpc"]))
    kind, config = {"roberta": (RobertaForSequenceClassification, RobertaConfig(**SIZES, pad_token_id=0)),
                    "electra": (ElectraForSequenceClassification, ElectraConfig(**SIZES, embedding_size=16))}[request.param]
    return spread(kind(config))


@pytest.fixture(scope="module")
def batches():
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    return make_batches(tokenize(make_rows(TASKS["mrpc"], 24), TASKS["mrpc"], tokenizer, 64), tokenizer, 400)


def logits_and_state(model, batches):
    return predict_logits(model, batches), model.config._attn_implementation


def test_disabled_maps_are_one_over_the_real_tokens_and_others_untouched(model, batches):
    batch = batches[-1]
    assert not batch.mask.all()
    before = attention_maps(model, batch)
    with disable_heads(model, [(0, 2)]):
        maps = attention_maps(model, batch)
    for row, length in enumerate(batch.lengths):
        torch.testing.assert_close(maps[0][row, 2, :, :length], torch.full((maps[0].shape[2], int(length)), 1 / length))
        assert (maps[0][row, 2, :, length:] == 0).all()
    kept = [0, 1, 3]
    torch.testing.assert_close(maps[0][:, kept], before[0][:, kept], atol=0, rtol=0)


def test_override_equals_zeroed_query_rows(model, batches):
    """Queries of zero attend evenly: an independent way to the same model."""
    heads = [(0, 1), (1, 3), (2, 0), (2, 2)]
    other = copy.deepcopy(model)
    attentions = [module for module in other.modules() if hasattr(module, "query")]
    with torch.no_grad():
        for layer, head in heads:
            attentions[layer].query.weight[8 * head : 8 * head + 8] = 0
            attentions[layer].query.bias[8 * head : 8 * head + 8] = 0
    with disable_heads(model, heads):
        disabled = predict_logits(model, batches)
    np.testing.assert_allclose(disabled, predict_logits(other, batches), atol=1e-6)
    assert abs(disabled - predict_logits(model, batches)).max() > 1e-4


def test_words_only_reading_gives_special_tokens_nothing(model, batches):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    batch = batches[-1]
    with disable_heads(model, [(1, 0)], no_weight=special):
        weights = attention_maps(model, batch)[1][:, 0]
    words = batch.mask & ~torch.isin(batch.inputs["input_ids"], torch.tensor(special))
    expected = (words / words.sum(dim=1, keepdim=True))[:, None].expand_as(weights)
    torch.testing.assert_close(weights, expected)


def test_the_model_is_as_before_whatever_happens_inside(model, batches):
    before, implementation = logits_and_state(model, batches)
    with pytest.raises(KeyError), disable_heads(model, all_heads(model), no_weight=[101]):
        raise KeyError
    after, same = logits_and_state(model, batches)
    np.testing.assert_array_equal(before, after)
    assert implementation == same and not model._forward_pre_hooks


def test_contexts_nest_to_the_innermost(model, batches):
    with disable_heads(model, [(0, 0)]):
        outer = predict_logits(model, batches)
        with disable_heads(model, layer_heads(model, 1)):
            predict_logits(model, batches)
        np.testing.assert_array_equal(predict_logits(model, batches), outer)


@pytest.mark.parametrize("heads, message", [
    ([], "no head"), ([(3, 0)], "unknown layer 4; layers are counted from 1 to 3"), ([(0, 4)], "unknown head 5"),
    ([(-1, 0)], "unknown layer 0"),
])
def test_wrong_heads_are_refused(model, batches, heads, message):
    with pytest.raises(ValueError, match=message), disable_heads(model, heads):
        pytest.fail("entered")


def test_training_mode_is_refused(model):
    model.train()
    try:
        with pytest.raises(ValueError, match="evaluation mode"), disable_heads(model, [(0, 0)]):
            pytest.fail("entered")
    finally:
        model.eval()


def test_reference_sweep_is_a_pass_per_head_and_layer(model, batches):
    sweep = reference_sweep(model, batches)
    assert sweep.heads.shape == (3, 4, 24, 2) and sweep.layers.shape == (3, 24, 2)
    np.testing.assert_array_equal(sweep.baseline, predict_logits(model, batches))
    with disable_heads(model, [(2, 1)]):
        np.testing.assert_array_equal(sweep.heads[2, 1], predict_logits(model, batches))
    with disable_heads(model, layer_heads(model, 1)):
        np.testing.assert_array_equal(sweep.layers[1], predict_logits(model, batches))


@pytest.mark.parametrize("tokens_at_once", [1, 300, 4096])
def test_fast_sweep_equals_the_reference(model, batches, tokens_at_once, monkeypatch):
    expected = reference_sweep(model, batches)
    monkeypatch.setattr("bertology_utils.disabling.sweep.reference_sweep", lambda *_: pytest.fail("not the fast way"))
    found = sweep(model, batches, tokens_at_once)
    for name in ("baseline", "heads", "layers"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)


def test_an_unknown_model_goes_the_slow_way_and_says_so(model, batches, monkeypatch, capsys):
    odd = copy.deepcopy(model)
    # Something between encoder and classifier that the pieces do not know.
    odd.classifier.register_forward_hook(lambda module, arguments, output: output)
    monkeypatch.setattr(type(odd.base_model.encoder), "forward", _shifted(type(odd.base_model.encoder).forward))
    found = sweep(odd, batches[:1])
    assert "one forward pass per head" in capsys.readouterr().err
    np.testing.assert_array_equal(found.heads, reference_sweep(odd, batches[:1]).heads)


def _shifted(forward):
    def other(self, *arguments, **keywords):
        output = forward(self, *arguments, **keywords)
        output.last_hidden_state = output.last_hidden_state * 1.5 + 0.3
        return output

    return other


def test_non_finite_outputs_are_refused(model, batches):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        [module for module in broken.modules() if hasattr(module, "query")][1].value.bias.fill_(torch.inf)
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        sweep(broken, batches)


def test_one_example_is_enough(model, batches):
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())
    one = make_batches(tokenize(make_rows(TASKS["mrpc"], 1), TASKS["mrpc"], tokenizer, 64), tokenizer)
    assert sweep(model, one).heads.shape == (3, 4, 1, 2)
