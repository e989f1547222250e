"""What attention carries: against explicit vectors on eight architectures."""

import copy

import numpy as np
import pytest
import torch
from small_models import NAMES, PAIRS, model_and_tokenizer

from bertology_utils import Batch, attention, attention_maps, batches_of, sweep
from bertology_utils.attention import vectors
from bertology_utils.hooks import attention_hooks, head_weights
from bertology_utils.sinks import exchange_lengths


@pytest.fixture(params=NAMES)
def case(request):
    model, tokenizer = model_and_tokenizer(request.param)
    return request.param, model, tokenizer


def explicit(model, batch):
    """Every a_ij f(x_j) as a vector, and what the output projection makes of their sum: (f(x), maps by norm, largest miss)."""
    seen, given = [], {}
    projections = attention.output_projections(model)
    hooks = [
        linear.register_forward_hook(
            lambda module, inputs, output: given.setdefault(id(module), []).append(output)
        )
        for linear in set(projections.values())
    ]
    weights = attention_maps(model, batch)
    given.clear()
    with torch.inference_mode(), attention_hooks(model, observe=lambda *one: seen.append(one)):
        model(**batch.inputs)
    for hook in hooks:
        hook.remove()
    vectors, found, miss = [], [], 0.0
    for layer, _, module, value in seen:
        linear = projections[id(module)]
        size = value.shape[3]
        f = torch.stack(
            [
                value[:, h] @ linear.weight.detach()[:, h * size : (h + 1) * size].T
                for h in range(value.shape[1])
            ],
            dim=1,
        )  # (examples, heads, tokens, hidden)
        vectors.append(f)
        sent = weights[layer][..., None] * f[:, :, None]  # (examples, heads, queries, keys, hidden)
        lengths = sent.norm(dim=4)
        found.append(lengths / lengths.sum(dim=3, keepdim=True))
        whole = sent.sum(dim=(1, 3)) + (0 if linear.bias is None else linear.bias.detach())
        miss = max(miss, float((whole - given[id(linear)].pop(0).detach())[batch.mask].abs().max()))
    return vectors, found, miss


def test_by_norm_equals_explicit_vectors(case):
    _, model, tokenizer = case
    model = copy.deepcopy(model).double()
    (batch,) = batches_of(PAIRS, tokenizer)
    assert not batch.mask.all()
    f, expected, miss = explicit(model, batch)
    assert miss < 1e-6  # so these are the vectors that the model adds up
    for ours, theirs in zip(vectors(model, batch), f, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    for ours, theirs in zip(attention_maps(model, batch, "norm"), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
        assert (ours.masked_select(~batch.mask[:, None, None, :].expand_as(ours)) == 0).all()


def test_exchanged_lengths_stay_in_their_input():
    lengths = torch.rand(3, 2, 7)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1]])
    batch = Batch({"attention_mask": mask}, [0, 1, 2])
    found = exchange_lengths(0, lengths, batch, seed=1)
    assert not torch.equal(found, lengths)
    for row, real in enumerate(batch.mask):
        torch.testing.assert_close(
            found[row][:, real].sort().values, lengths[row][:, real].sort().values
        )
        assert (found[row][:, ~real] == 0).all()


def test_what_cannot_be_weighed_is_refused_in_words(monkeypatch):
    model, tokenizer = model_and_tokenizer("DistilBert")
    (batch,) = batches_of(PAIRS[:1], tokenizer)
    with pytest.raises(ValueError, match="unknown attention 'size'; choose one of: weight, norm"):
        attention_maps(model, batch, "size")
    model.train()
    try:
        with pytest.raises(ValueError, match=r"model\.eval"):
            attention_maps(model, batch, "norm")
    finally:
        model.eval()
    monkeypatch.setattr(attention, "_OUTPUTS", ())
    with pytest.raises(ValueError, match="DistilBertForSequenceClassification.*cannot be named"):
        attention_maps(model, batch, "norm")


# Layers whose weights are no numbers to multiply by.


class Int8(torch.nn.Linear):
    """Codes in the weight, and a scale of each row beside them, as bitsandbytes has it."""

    def __init__(self, linear):
        super().__init__(linear.in_features, linear.out_features)
        weight = linear.weight.detach()
        self.register_buffer("scale", weight.abs().amax(dim=1, keepdim=True) / 127)
        codes = torch.round(weight / self.scale).to(torch.int8)
        self.weight, self.bias = torch.nn.Parameter(codes, requires_grad=False), linear.bias

    def numbers(self):
        return self.weight * self.scale

    def forward(self, x):
        return torch.nn.functional.linear(x, self.numbers(), self.bias)


class Packed(torch.nn.Module):
    """Two codes of four bits in a byte; no class of torch's."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach()
        self.register_buffer("scale", weight.abs().amax() / 7)
        codes = (torch.round(weight / self.scale) + 8).to(torch.uint8)
        self.register_buffer("weight", codes[:, ::2] * 16 + codes[:, 1::2])
        self.bias = linear.bias

    def numbers(self):
        pairs = torch.stack([self.weight // 16, self.weight % 16], dim=2).flatten(1)
        return (pairs.float() - 8) * self.scale

    forward = Int8.forward


class LowRank(torch.nn.Linear):
    """An update beside the weights, as PEFT's LoRA; and no bias."""

    def __init__(self, linear):
        super().__init__(linear.in_features, linear.out_features, bias=False)
        self.weight = linear.weight
        self.update = torch.nn.Linear(linear.in_features, linear.out_features, bias=False)

    def numbers(self):
        return self.weight + self.update.weight

    forward = Int8.forward


@pytest.mark.parametrize("kind", [Int8, Packed, LowRank])
def test_weights_that_are_codes_are_read_as_the_numbers_that_they_stand_for(kind):
    """Where the heads' output is projected, and where their queries, keys and values are."""
    model, tokenizer = copy.deepcopy(model_and_tokenizer("Bert"))
    plain, (batch,) = copy.deepcopy(model), batches_of(PAIRS, tokenizer)
    for one, other in zip(model.bert.encoder.layer, plain.bert.encoder.layer, strict=True):
        for name in ("self.query", "output.dense"):
            coded = kind(one.attention.get_submodule(name)).eval()
            one.attention.set_submodule(name, coded)
            linear = other.attention.get_submodule(name)
            linear.weight.data = coded.numbers().detach()
            if coded.bias is None:
                linear.bias.data.zero_()
    for ours, theirs in zip(
        attention_maps(model, batch, "norm"), attention_maps(plain, batch, "norm"), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    torch.testing.assert_close(vectors(model, batch), vectors(plain, batch), atol=1e-5, rtol=0)
    ours, theirs = (head_weights(one, 1, 2) for one in (model, plain))
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    found, expected = (sweep(one, [batch]).heads for one in (model, plain))
    np.testing.assert_allclose(found, expected, atol=1e-5)
