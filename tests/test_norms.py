"""What attention carries: against explicit vectors on eight architectures, and against a plain reading of its definitions."""

import copy

import numpy as np
import pytest
import torch
from eight_models import NAMES, PAIRS, model_and_tokenizer
from transformers import BertConfig, BertModel

from bertology_utils import Batch, attention_maps, batches_of, observe
from bertology_utils.attention import ByNorm, observe_cached, vectors, weighed
from bertology_utils.attention import norms as value_norms
from bertology_utils.attention.hooks import attention_hooks
from bertology_utils.disabling.heads import TwinWords
from bertology_utils.norms.carried import DEFINITIONS, Mixing


class Keep:
    """Measurement: all maps, real tokens only."""

    def __init__(self):
        self.maps = {}

    def update(self, layer, maps, batch):
        for row, index in enumerate(batch.index):
            real = batch.mask[row]
            self.maps.setdefault(index, []).append(maps[row][:, real][:, :, real].clone())

    def compute(self):
        return [torch.stack(self.maps[index]) for index in sorted(self.maps)]


@pytest.fixture(params=NAMES)
def case(request):
    model, tokenizer = model_and_tokenizer(request.param)
    return request.param, model, tokenizer


def explicit(model, batch):
    """Every a_ij f(x_j) as a vector, and what the output projection makes of their sum: (maps by norm, largest miss)."""
    values, modules, given = [], [], {}
    projections = value_norms.output_projections(model)
    hooks = [
        linear.register_forward_hook(
            lambda module, inputs, output: given.setdefault(id(module), []).append(output)
        )
        for linear in set(projections.values())
    ]
    weights = attention_maps(model, batch)
    given.clear()
    with (
        torch.inference_mode(),
        attention_hooks(
            model, observe_values=lambda _, m, v: (modules.append(m), values.append(v))
        ),
    ):
        model(**batch.inputs)
    for hook in hooks:
        hook.remove()
    found, miss = [], 0.0
    for layer, (value, module) in enumerate(zip(values, modules, strict=True)):
        linear = projections[id(module)]
        size = value.shape[3]
        f = torch.stack(
            [
                value[:, h] @ linear.weight.detach()[:, h * size : (h + 1) * size].T
                for h in range(value.shape[1])
            ],
            dim=1,
        )  # (examples, heads, tokens, hidden)
        sent = weights[layer][..., None] * f[:, :, None]  # (examples, heads, queries, keys, hidden)
        lengths = sent.norm(dim=4)
        found.append(lengths / lengths.sum(dim=3, keepdim=True))
        whole = sent.sum(dim=(1, 3)) + (0 if linear.bias is None else linear.bias.detach())
        miss = max(miss, float((whole - given[id(linear)].pop(0).detach())[batch.mask].abs().max()))
    return found, miss


def test_by_norm_equals_explicit_vectors(case):
    _, model, tokenizer = case
    model = copy.deepcopy(model).double()
    (batch,) = batches_of(PAIRS, tokenizer)
    assert not batch.mask.all()
    expected, miss = explicit(model, batch)
    assert miss < 1e-6  # so these are the vectors that the model adds up
    for ours, theirs in zip(attention_maps(model, batch, "norm"), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
        assert (ours.masked_select(~batch.mask[:, None, None, :].expand_as(ours)) == 0).all()


def test_padding_changes_nothing(case):
    name, model, tokenizer = case
    mixes = name != "ModernBERT"  # which normalises before attention

    def measured(pairs):
        wanted = {"weight": Keep(), "norm": ByNorm(Keep())}
        wanted |= {"mixing": Mixing(model)} if mixes else {}
        return observe(model, batches_of(pairs, tokenizer), wanted)

    together = measured(PAIRS)
    for at, pair in enumerate(PAIRS):
        for what, alone in measured([pair]).items():
            torch.testing.assert_close(alone[0], together[what][at], atol=1e-5, rtol=0)
    if mixes:
        ratios = together["mixing"]
        assert ratios.shape == (len(PAIRS), model.config.num_hidden_layers, len(DEFINITIONS))
        assert ((ratios > 0) & (ratios < 1)).all()
    else:
        with pytest.raises(ValueError, match="ModernBert.*no normalisation"):
            Mixing(model)


def test_what_is_measured_beside_mixing_ratios_is_found_in_the_cache_without_them(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path))
    model, tokenizer = model_and_tokenizer("BERT")
    batches = batches_of(PAIRS, tokenizer)
    together = {"maps": TwinWords(tokenizer), "mixing": Mixing(model)}
    first = observe_cached(model, batches, together)
    assert first["mixing"].shape[0] == len(PAIRS)
    monkeypatch.setattr(model, "forward", lambda *_, **__: pytest.fail("another pass"))
    again = observe_cached(model, batches, {"maps": TwinWords(tokenizer)})
    np.testing.assert_array_equal(again["maps"], first["maps"])


def test_exchanged_lengths_stay_in_their_input():
    lengths = torch.rand(3, 2, 7)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1]])
    batch = Batch({"attention_mask": mask}, [0, 1, 2])
    found = value_norms.exchange_lengths(0, lengths, batch, seed=1)
    assert not torch.equal(found, lengths)
    for row, real in enumerate(batch.mask):
        torch.testing.assert_close(
            found[row][:, real].sort().values, lengths[row][:, real].sort().values
        )
        assert (found[row][:, ~real] == 0).all()


def test_what_cannot_be_weighed_is_refused_in_words(monkeypatch):
    model, tokenizer = model_and_tokenizer("DistilBERT")
    (batch,) = batches_of(PAIRS[:1], tokenizer)
    with pytest.raises(ValueError, match="unknown attention 'size'; choose one of: weight, norm"):
        attention_maps(model, batch, "size")
    with pytest.raises(ValueError, match="unknown attention 'size'"):
        weighed(Keep(), "size")
    model.train()
    try:
        with pytest.raises(ValueError, match=r"model\.eval"):
            attention_maps(model, batch, "norm")
    finally:
        model.eval()
    monkeypatch.setattr(value_norms, "_OUTPUTS", ())
    with pytest.raises(ValueError, match="DistilBertForSequenceClassification.*cannot be named"):
        attention_maps(model, batch, "norm")
    with pytest.raises(ValueError, match="no normalisation|cannot be named"):
        Mixing(model)


# Against a plain reading of the definitions, on transformers' own maps and hidden states.

IDS, KINDS = [2, 17, 41, 5, 3, 9, 17, 3], [0, 0, 0, 0, 0, 1, 1, 1]


def tiny():
    """Random in every parameter: a new BERT has biases of 0 and LayerNorms of 1, which would hide what is left out."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 12}
    config = BertConfig(
        **sizes,
        intermediate_size=20,
        vocab_size=50,
        layer_norm_eps=0.1,
        max_position_embeddings=16,
        attn_implementation="eager",
    )
    model = BertModel(config).double().eval()
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.7)
    return model


def as_batch(ids, kinds):
    inputs = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([kinds])}
    return Batch(inputs | {"attention_mask": torch.ones(1, len(ids), dtype=torch.long)}, [0])


def mixing_of(model, batch):
    """Shape (definitions, layers)."""
    (ratios,) = observe(model, [batch], {"mixing": Mixing(model)})["mixing"]
    return ratios.T


@torch.no_grad()
def plain_layers(model, batch):
    """Of each layer the vectors f(x_j) of its heads, (heads, tokens, hidden), and its mixing ratios, (definitions,).

    Token i takes from the others m = Σ_{j≠i} Σ_h a_ij f(x_j) and keeps p = Σ_h a_ii f(x_i), or with
    its own x_i p + x_i, either as it is or after the attention block's LayerNorm with the standard
    deviation of the whole output. Biases of the output and of LayerNorm are in neither term, as in
    the authors' code (Kobayashi et al., EMNLP 2020 and 2021).
    """
    out = model(**batch.inputs, output_hidden_states=True, output_attentions=True)
    entering = out.hidden_states[:-1]
    for (x,), (a,), layer in zip(entering, out.attentions, model.encoder.layer, strict=True):
        attention, output = layer.attention.self, layer.attention.output
        own = [slice(at, at + 4) for at in (0, 4, 8)]  # columns of each head
        values = attention.value(x)
        f = torch.stack([values[:, one] @ output.dense.weight[:, one].T for one in own])
        ratios = [1 - a.diagonal(dim1=1, dim2=2).mean()]
        terms = []
        for i in range(len(x)):
            sent = torch.einsum("hj,hjd->jd", a[:, i], f)
            kept, whole = sent[i], sent.sum(dim=0)
            mixed, spread = whole - kept, (whole + output.dense.bias + x[i]).var(correction=0)
            scale = output.LayerNorm.weight / (spread + output.LayerNorm.eps).sqrt()
            normed = [(one - one.mean()) * scale for one in (mixed, kept + x[i])]
            terms.append([mixed.norm(), kept.norm(), mixed.norm(), (kept + x[i]).norm()])
            terms[-1] += [one.norm() for one in normed]
        taken, left = torch.tensor(terms).unflatten(1, (3, 2)).unbind(dim=2)
        yield f, torch.stack([*ratios, *(taken / (taken + left)).mean(dim=0)])


def test_vectors_and_mixing_are_those_of_a_plain_reading():
    model, batch = tiny(), as_batch(IDS, KINDS)
    found = vectors(model, batch), mixing_of(model, batch).T
    for own, ratios, (f, expected) in zip(*found, plain_layers(model, batch), strict=True):
        torch.testing.assert_close(own[0], f, rtol=0, atol=1e-6)
        np.testing.assert_allclose(ratios, expected, rtol=0, atol=1e-6)


def test_mixing_worked_out_by_hand():
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
    ratios = mixing_of(model, as_batch([7] * 8, [0] * 8))
    expected = np.array([7 / 8, 7 / 8, 7 / 16, 7 / 16])[:, None]
    np.testing.assert_allclose(ratios, np.tile(expected, 2), rtol=0, atol=1e-6)
