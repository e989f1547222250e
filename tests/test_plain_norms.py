"""The plain norm-based attention against transformers' own forward pass, and against cases worked out by hand."""

import numpy as np
import plain_norms
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

IDS, KINDS = [2, 17, 41, 5, 3, 9, 17, 3], [0, 0, 0, 0, 0, 1, 1, 1]
close = {"rtol": 0, "atol": 1e-10}


def tiny(kind=BertModel):
    """Random in every parameter: a new BERT has biases of 0 and LayerNorms of 1, which would hide what is left out."""
    sizes = {
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "hidden_size": 12,
        "intermediate_size": 20,
        "vocab_size": 50,
        "layer_norm_eps": 0.1,
    }
    model = kind(BertConfig(**sizes, max_position_embeddings=16, attn_implementation="eager")).double().eval()
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.7)
    return model


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def seen(model):
    """What transformers computes: its outputs, and of each layer what the parts of the attention block give."""
    given: dict = {"value": [], "dense": [], "block": []}

    def keep(module, name):
        return module.register_forward_hook(lambda _, __, output: given[name].append(output[0].numpy()))

    blocks = [layer.attention for layer in model.encoder.layer]
    hooks = [keep(block.self.value, "value") for block in blocks]
    hooks += [keep(block.output.dense, "dense") for block in blocks] + [keep(block.output, "block") for block in blocks]
    with torch.no_grad():
        inputs = {"input_ids": torch.tensor([IDS]), "token_type_ids": torch.tensor([KINDS])}
        output = model(**inputs, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    given["weights"] = np.stack([layer[0].numpy() for layer in output.attentions])
    given["hidden"] = np.stack([layer[0].numpy() for layer in output.hidden_states])
    return given


def test_weights(model, seen):
    found = plain_norms.weights(model, IDS, KINDS)
    assert found.shape == (2, 3, 8, 8)
    np.testing.assert_allclose(found, seen["weights"], **close)


def test_hidden_states(model, seen):
    layers = plain_norms.forward(model, IDS, KINDS)
    np.testing.assert_allclose([layers[0].entering, *[layer.leaving for layer in layers]], seen["hidden"], **close)


def test_mixing_by_weight(model, seen):
    expected = 1 - seen["weights"].mean(1).diagonal(axis1=1, axis2=2).mean(-1)
    np.testing.assert_allclose(plain_norms.mixing(model, IDS, KINDS, "weight"), expected, **close)


@pytest.mark.parametrize("by, expected", [("weight", 7 / 8), ("norm", 7 / 8), ("residual", 7 / 16), ("layernorm", 7 / 16)])
def test_mixing_worked_out_by_hand(by, expected):
    """Eight like tokens, even attention, and heads whose f sum to x: 7/8 of x comes from others, 9/8 is kept."""
    model = tiny()
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
        for layer in model.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
            for part in (layer.attention.self.value, layer.attention.output.dense):
                part.weight.copy_(torch.eye(12))
            layer.attention.self.value.bias.zero_()
    np.testing.assert_allclose(plain_norms.mixing(model, [7] * 8, [0] * 8, by), [expected] * 2, **close)


def test_a_classifier_is_read_by_its_encoder():
    classifier = tiny(BertForSequenceClassification)
    np.testing.assert_array_equal(
        plain_norms.weights(classifier, IDS, KINDS), plain_norms.weights(classifier.bert, IDS, KINDS)
    )


def test_what_is_not_computed_is_refused(model):
    with pytest.raises(ValueError, match="by='both': choose one of weight, norm, residual, layernorm"):
        plain_norms.mixing(model, IDS, KINDS, "both")
    other = BertModel(
        BertConfig(num_hidden_layers=1, num_attention_heads=1, hidden_size=4, hidden_act="relu", vocab_size=50)
    )
    with pytest.raises(ValueError, match="bert with relu: only a BERT with gelu"):
        plain_norms.weights(other, IDS, KINDS)
