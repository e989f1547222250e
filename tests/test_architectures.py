"""Measuring and disabling on eight architectures, or a refusal in words."""

import copy
import re
from contextlib import nullcontext

import numpy as np
import pytest
import torch
import transformers
from eight_models import FAST, HEADS, LAYERS, NAMES, PAIRS, model_and_tokenizer, zero_queries

from bertology_utils import (
    Batch,
    Drift,
    attention_maps,
    batches_of,
    disable_heads,
    observe,
    predict_logits,
    sweep,
)
from bertology_utils.annotation.annotators import Sentence, Word
from bertology_utils.annotation.inputs import annotate_inputs
from bertology_utils.disabling.heads import gradient_importance
from bertology_utils.disabling.sweep import reference_sweep
from bertology_utils.finetune import only_embeddings_of

PARTS = ("baseline", "heads", "layers")


@pytest.fixture(params=NAMES)
def case(request):
    model, tokenizer = model_and_tokenizer(request.param)
    return request.param, model, batches_of(PAIRS, tokenizer, [0, 1, 0, 1])


def test_rows_of_the_maps_sum_to_one_and_padding_gets_nothing(case):
    _name, model, batches = case
    (batch,) = batches
    assert not batch.mask.all()
    with torch.inference_mode():
        eager = copy.deepcopy(model)
        eager.set_attn_implementation("eager")
        expected = eager(**batch.inputs, output_attentions=True).attentions
    maps = attention_maps(model, batch)
    assert len(maps) == len(expected) == model.config.num_hidden_layers
    for ours, theirs in zip(maps, expected, strict=True):
        torch.testing.assert_close(ours.sum(-1), torch.ones(ours.shape[:-1]), atol=1e-6, rtol=0)
        assert (ours.masked_select(~batch.mask[:, None, None, :].expand_as(ours)) == 0).all()
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


def test_disabling_equals_zeroed_query_rows(case):
    name, model, batches = case
    model, heads = (
        copy.deepcopy(model).double(),
        [(0, 1), (2, 0), (2, 3)],
    )  # in float32, outputs of size 10 round at 1e-6
    other = copy.deepcopy(model)
    if (
        name == "ALBERT"
    ):  # its layers share one projection: a head zeroed there is disabled in every layer
        heads = [(layer, 1) for layer in range(LAYERS)]
        zero_queries(other, 0, 1)
    else:
        for layer, head in heads:
            zero_queries(other, layer, head)
    with disable_heads(model, heads):
        disabled = predict_logits(model, batches)
    np.testing.assert_allclose(disabled, predict_logits(other, batches), atol=1e-9, rtol=0)
    assert abs(disabled - predict_logits(model, batches)).max() > 1e-4


def test_training_the_embeddings_of_the_inputs_tokens_trains_all(case):
    """The gradient's norm is cut, too; a token that no input has is shrunk by weight decay."""
    _name, model, (batch,) = case
    tokens, trained = {*batch.inputs["input_ids"].flatten().tolist()}, []
    for few in (False, True):
        one = copy.deepcopy(model).double()
        with only_embeddings_of(tokens, one) if few else nullcontext():
            assert (
                sum(p.numel() for p in one.parameters())
                < sum(p.numel() for p in model.parameters())
                or not few
            )
            optimizer = torch.optim.AdamW(one.parameters(), lr=1e-2, weight_decay=0.1)
            for _ in range(3):
                torch.nn.functional.cross_entropy(
                    one(**batch.inputs).logits, torch.tensor([0, 1, 0, 1])
                ).backward()
                torch.nn.utils.clip_grad_norm_(one.parameters(), 0.1)
                optimizer.step()
                optimizer.zero_grad()
        trained.append(one)
    for (at, expected), found in zip(
        trained[0].named_parameters(), trained[1].parameters(), strict=True
    ):
        torch.testing.assert_close(found, expected, atol=1e-9, rtol=0, msg=at)
    before, after = (one.get_input_embeddings().weight.double() for one in (model, trained[1]))
    unused = max(set(range(len(before))) - tokens)
    torch.testing.assert_close(after[unused], before[unused] * (1 - 1e-2 * 0.1) ** 3)


def test_a_layer_that_shares_its_weights_is_disabled_alone():
    model, tokenizer = model_and_tokenizer("ALBERT")
    (batch,) = batches_of(PAIRS, tokenizer)
    with disable_heads(model, [(1, 2)]):
        maps = attention_maps(model, batch)
    even = [
        bool(
            (
                (maps[layer][:, 2] - 1 / batch.lengths[:, None, None]).abs() * batch.mask[:, None]
            ).max()
            < 1e-6
        )
        for layer in range(LAYERS)
    ]
    assert even == [False, True, False]


@pytest.mark.parametrize("ablation", ["uniform", "zero", "mean", "interchange"])
def test_the_sweep_equals_the_plain_one(case, ablation, capsys):
    name, model, batches = case
    if (
        ablation == "interchange"
    ):  # of pairs that have partners of their length: themselves the other way round
        _, tokenizer = model_and_tokenizer(name)
        batches = batches_of([*PAIRS, *(pair[::-1] for pair in PAIRS)], tokenizer)
    layers = [0, 2] if name == "MiniLM" else range(LAYERS)
    found = sweep(model, batches, layers=layers, ablation=ablation)
    assert ("not known to the fast sweep" in capsys.readouterr().err) == (name not in FAST)
    expected = reference_sweep(model, batches, layers=layers, ablation=ablation)
    for part in PARTS:
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), atol=1e-5)
    assert abs(found.heads - found.baseline).max() > 1e-5


def test_drift_and_importance(case):
    _name, model, batches = case
    similarity = observe(model, batches, {"d": Drift(model.base_model)})["d"]
    np.testing.assert_allclose(similarity, 1, atol=1e-9)
    importance = gradient_importance(model, batches)
    assert importance.shape == similarity.shape[1:] and (importance > 0).all()


def test_a_modernbert_head_sees_its_window_and_a_disabled_one_the_whole_input():
    model, tokenizer = model_and_tokenizer("ModernBERT")
    model = copy.deepcopy(model)
    model.config.local_attention = 6  # three tokens to either side
    (batch,) = batches_of(PAIRS, tokenizer)
    before = attention_maps(model, batch)
    far = (torch.arange(batch.mask.shape[1])[:, None] - torch.arange(batch.mask.shape[1])).abs() > 3
    assert [bool((maps[-1, 0][far] == 0).all()) for maps in before] == [
        kind == "sliding_attention" for kind in model.config.layer_types
    ]
    local = model.config.layer_types.index("sliding_attention")
    with disable_heads(model, [(local, 1)]):
        maps = attention_maps(model, batch)[local]
    expected = (batch.mask / batch.lengths[:, None])[:, None].expand_as(maps[:, 1])
    torch.testing.assert_close(maps[:, 1], expected)
    torch.testing.assert_close(maps[:, [0, 2, 3]], before[local][:, [0, 2, 3]], atol=0, rtol=0)


class _Words:
    """Every run of letters is a word."""

    def annotate(self, texts):
        return [
            (
                Sentence(
                    text,
                    tuple(
                        Word(m[0], m[0], *m.span(), "X", -1, "root")
                        for m in re.finditer(r"\w+", text)
                    ),
                ),
            )
            for text in texts
        ]


@pytest.mark.parametrize("name", NAMES)
def test_words_and_special_tokens_are_found_whatever_they_are_called(name):
    _, tokenizer = model_and_tokenizer(name)
    rows = {"a": [pair[0] for pair in PAIRS], "b": [pair[1] for pair in PAIRS]}
    for pair, found in zip(
        PAIRS, annotate_inputs(rows, ("a", "b"), tokenizer, 64, _Words()), strict=True
    ):
        assert [found.ids[at] for at in found.special] == [tokenizer.cls_token_id] + [
            tokenizer.sep_token_id
        ] * (3 if name == "RoBERTa" else 2)
        assert sorted(found.special) == [
            at
            for at, number in enumerate(found.ids)
            if number in tokenizer.all_special_ids and number != tokenizer.unk_token_id
        ]
        for word, positions in found.words:
            decoded = (
                tokenizer.decode([found.ids[at] for at in positions])
                .replace("##", "")
                .strip(" '")
                .lower()
            )
            assert decoded in (word.form.lower(), word.form.lower().replace("é", "e"))
        assert found.lost == 0 and len(found.words) == len(re.findall(r"\w+", " ".join(pair)))


@pytest.mark.parametrize(
    "name, message",
    [
        ("DebertaV2", "does not go through transformers' attention interface"),
        ("FNet", "no attention heads"),
        ("Mamba", "no attention heads"),
    ],
)
@pytest.mark.parametrize("use", ["measure", "disable"])
def test_what_cannot_be_measured_or_disabled_is_refused_before_any_pass(
    name, message, use, monkeypatch
):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 50}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 32} if name == "DebertaV2" else {}
    model = getattr(transformers, f"{name}Model")(
        getattr(transformers, f"{name}Config")(**sizes)
    ).eval()
    monkeypatch.setattr(model, "forward", lambda *_, **__: pytest.fail("a pass was made"))
    ids = torch.ones(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=message):
        if use == "measure":
            attention_maps(model, Batch({"input_ids": ids, "attention_mask": ids}, [0]))
        else:
            with disable_heads(model, [(0, 0)]):
                pytest.fail("entered")


def test_a_model_with_other_layers_than_it_says_is_refused_at_the_first_pass():
    sizes = {
        "hidden_size": 32,
        "embedding_size": 8,
        "intermediate_size": 32,
        "vocab_size": 50,
        "inner_group_num": 2,
    }
    config = transformers.AlbertConfig(num_hidden_layers=2, num_attention_heads=HEADS, **sizes)
    model = transformers.AlbertModel(config).eval()
    ids = torch.ones(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match="4 layers where its configuration has 2"):
        attention_maps(model, Batch({"input_ids": ids, "attention_mask": ids}, [0]))
    with pytest.raises(ValueError, match="4 layers"), disable_heads(model, [(0, 0)]):
        model(ids)
