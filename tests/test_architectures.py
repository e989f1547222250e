"""Measuring and disabling on every kind of architecture, or a refusal in words."""

import copy
import re
from contextlib import nullcontext

import numpy as np
import pytest
import torch
import transformers
from plain import by_pattern
from small_models import FAST, LAYERS, NAMES, PAIRS, model_and_tokenizer

from bertology_utils import Batch, attention_maps, batches_of, disable_heads, predict_logits, sweep
from bertology_utils.finetune import only_embeddings_of
from bertology_utils.hooks import attention_hooks
from bertology_utils.sweeps import reference_sweep
from bertology_utils.words import annotate_inputs


@pytest.fixture(params=NAMES)
def case(request):
    model, tokenizer = model_and_tokenizer(request.param)
    # In float32, outputs of size 10 round at 1e-6.
    return request.param, copy.deepcopy(model).double(), batches_of(PAIRS, tokenizer, [0, 1, 0, 1])


def zero_queries(model, layer, head):
    """Set one head's query projection to zero, wherever the architecture keeps it."""
    size = model.config.hidden_size // model.config.num_attention_heads
    names = ("query", "q_lin", "Wqkv")
    linears = [module for name, module in model.named_modules() if name.rpartition(".")[2] in names]
    with torch.no_grad():  # of a joint projection, queries come first
        for parameter in linears[layer].parameters():
            parameter[head * size : (head + 1) * size] = 0


def test_disabling_equals_zeroed_query_rows(case):
    name, model, batches = case
    heads = zeroed = [(0, 1), (2, 0), (2, 3)]
    if name == "Albert":  # its layers share one projection, so one head is disabled in each
        heads, zeroed = [(layer, 1) for layer in range(LAYERS)], [(0, 1)]
    other = copy.deepcopy(model)
    for layer, head in zeroed:
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
        one = copy.deepcopy(model)
        with only_embeddings_of(tokens, one) if few else nullcontext():
            assert (one.num_parameters() < model.num_parameters()) == few
            optimizer = torch.optim.AdamW(one.parameters(), lr=1e-2, weight_decay=0.1)
            for _ in range(3):
                logits = one(**batch.inputs).logits
                torch.nn.functional.cross_entropy(logits, batch.labels).backward()
                torch.nn.utils.clip_grad_norm_(one.parameters(), 0.1)
                optimizer.step()
                optimizer.zero_grad()
        trained.append(one)
    whole, few = (dict(one.named_parameters()) for one in trained)
    torch.testing.assert_close(few, whole, atol=1e-9, rtol=0)
    before, after = (one.get_input_embeddings().weight for one in (model, trained[1]))
    unused = max(set(range(len(before))) - tokens)
    torch.testing.assert_close(after[unused], before[unused] * (1 - 1e-2 * 0.1) ** 3)


@pytest.mark.parametrize("ablation", ["uniform", "zero", "mean"])
def test_the_sweep_equals_the_plain_one(case, ablation, capsys):
    name, model, batches = case
    found = sweep(model, batches, ablation)
    assert ("not known to the fast sweep" in capsys.readouterr().err) == (name not in FAST)
    expected = reference_sweep(model, batches, ablation)
    for part in ("baseline", "heads", "layers"):
        np.testing.assert_allclose(getattr(found, part), getattr(expected, part), atol=1e-9, rtol=0)
    assert abs(found.heads - found.baseline).max() > 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_words_and_special_tokens_are_found_whatever_they_are_called(name):
    _, tokenizer = model_and_tokenizer(name)
    rows = dict(zip("ab", zip(*PAIRS, strict=True), strict=True))
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    inputs = annotate_inputs(rows, ("a", "b"), tokenizer, 64, by_pattern(r"\w+"))
    for pair, found in zip(PAIRS, inputs, strict=True):
        ends = [last] * (3 if name == "Roberta" else 2)
        assert [found.ids[at] for at in (*found.cls, *found.separators)] == [first, *ends]
        for word, positions in found.words:
            decoded = tokenizer.decode([found.ids[at] for at in positions])
            decoded = decoded.replace("##", "").strip(" '").lower()
            assert decoded in (word.form.lower(), word.form.lower().replace("é", "e"))
        assert found.lost == 0 and len(found.words) == len(re.findall(r"\w+", " ".join(pair)))


# Encoders of transformers, tiny and with random weights: right, or refused in words.


DECODER = "is a decoder, or has one: a token attends to those before it only"


def sizes_by_name(text):
    """Names of sizes and their values, told as "name value name value"."""
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


BERT_SIZES = sizes_by_name(
    "vocab_size 60 hidden_size 32 num_hidden_layers 2 num_attention_heads 4 intermediate_size 40"
    " max_position_embeddings 64 pad_token_id 0 bos_token_id 1 eos_token_id 2"
)
T5 = sizes_by_name("vocab_size 60 d_model 32 d_kv 6 d_ff 40 num_layers 2 num_heads 4")
GPT = sizes_by_name("vocab_size 60 n_embd 32 n_layer 2 n_head 4 n_positions 64")
WINDOWS = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
ONE_KEY, TWO_KEYS = ({"num_key_value_heads": keys, "head_dim": 8} for keys in (1, 2))
TWO_OF_FOUR, SMALLER = {"num_key_value_heads": 2}, {"embedding_size": 16}
PLAIN: dict = {}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}

# By name in transformers, with a remark after a comma: sizes beside BERT's, or instead of them where
# they have a vocabulary.
ENCODERS = {
    **dict.fromkeys(
        "Bert Roberta XLMRoberta XLMRobertaXL Camembert RobertaPreLayerNorm Esm Splinter NomicBert"
        " JinaEmbeddingsV3 Gte Data2VecText Ernie LayoutLM MarkupLM BertGenerationEncoder".split(),
        PLAIN,
    ),
    **dict.fromkeys(("T5Encoder", "MT5Encoder", "UMT5Encoder"), T5),
    **dict.fromkeys(("Electra", "Albert"), SMALLER),
    "Xmod": {"languages": ["en"], "default_language": "en"},
    "DistilBert": sizes_by_name("vocab_size 60 dim 32 n_layers 2 n_heads 4 hidden_dim 40"),
    "MobileBert": sizes_by_name("embedding_size 16 intra_bottleneck_size 16 true_hidden_size 16"),
    "EuroBert": {"num_key_value_heads": 4},
    "EuroBert, keys shared by two heads": TWO_OF_FOUR,
    "ModernBert": {"local_attention": 6, "global_attn_every_n_layers": 2},
    "RoCBert": sizes_by_name(
        "pronunciation_vocab_size 60 shape_vocab_size 60"
        " pronunciation_embed_dim 8 shape_embed_dim 8"
    ),
    "Gemma3Text, bidirectional": ONE_KEY | WINDOWS | {"use_bidirectional_attention": True},
    "EmbeddingGemma2Text": ONE_KEY | WINDOWS,
}
DECODERS = {
    **dict.fromkeys("GPTNeoX BioGpt Persimmon Phi3 ModernBertDecoder Falcon".split(), PLAIN),
    "Llama": TWO_OF_FOUR,
    "Gemma3Text": ONE_KEY,
    "GPT2": GPT,
    "Bert, is_decoder": {"is_decoder": True},
    "T5": T5,
    "GptOss": TWO_KEYS | EXPERTS,
}
OTHERS = (
    "Deberta DebertaV2 MPNet BigBird Longformer RemBert RoFormer ConvBert IBert MegatronBert"
    " Nystromformer Yoso Mra Tapas".split()
)
HEADLESS = dict.fromkeys(("FNet", "Mamba"), sizes_by_name("vocab_size 60 hidden_size 32"))
UNKNOWN = {"OpenAIPrivacyFilter": TWO_KEYS | EXPERTS}
ARCHITECTURES = ENCODERS | DECODERS | dict.fromkeys(OTHERS, PLAIN) | HEADLESS | UNKNOWN
REFUSED = {
    **dict.fromkeys(DECODERS, DECODER),
    **dict.fromkeys(OTHERS, "does not go through transformers' attention interface"),
    **dict.fromkeys(HEADLESS, "no attention heads"),
    **dict.fromkeys(UNKNOWN, "gives its attention s_aux, of which nothing is known here"),
}
MASK = torch.tensor([[1] * 5 + [0] * 4, [1] * 7 + [0] * 2, [1] * 9])


def tiny_encoder(name):
    """A tiny model of a row in evaluation mode, and a batch with padding."""
    sizes, class_name = ARCHITECTURES[name], name.split(",")[0]
    kind = getattr(transformers, class_name + "Model", None) or getattr(transformers, class_name)
    sizes = sizes if sizes.keys() & {"vocab_size"} else BERT_SIZES | sizes
    torch.manual_seed(0)
    model = kind(kind.config_class(**sizes)).eval()
    for parameter in model.parameters():  # far from uniform attention
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(5, 60, MASK.shape) * MASK
    return model, Batch({"input_ids": ids, "attention_mask": MASK}, [0, 1, 2])


@pytest.mark.locked  # some of them are new in transformers
@pytest.mark.parametrize("name", ENCODERS)
def test_maps_and_outputs_of_an_encoder_are_those_of_transformers(name):
    model, batch = tiny_encoder(name)
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    with torch.inference_mode():
        expected = eager(**batch.inputs, output_attentions=True)
    seen = []
    seen_by = attention_hooks(model, observe=lambda layer, maps, *_: seen.append(maps))
    with torch.inference_mode(), seen_by:
        output = model(**batch.inputs)[0]
    assert len(seen) == len(expected.attentions) == 2
    real = batch.mask[:, None].expand(3, 4, 9)
    for ours, theirs in zip(seen, expected.attentions, strict=True):
        torch.testing.assert_close(ours[real], theirs[real], atol=1e-6, rtol=0)
    torch.testing.assert_close(output[batch.mask], expected[0][batch.mask], atol=1e-5, rtol=1e-5)
    even = (batch.mask / batch.lengths[:, None])[:, None].expand(3, 9, 9)
    for layer, maps in enumerate(seen):  # a disabled head sees all, also behind a window
        with disable_heads(model, [(layer, 2)]):
            disabled = attention_maps(model, batch)[layer]
        torch.testing.assert_close(disabled[:, 2], even)
        assert torch.equal(disabled[:, [0, 1, 3]], maps[:, [0, 1, 3]])


@pytest.mark.locked
@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_what_is_no_such_encoder_is_refused_in_words(name, message):
    model, batch = tiny_encoder(name)
    with pytest.raises(ValueError, match=message):
        attention_maps(model, batch)
    with pytest.raises(ValueError, match=message), disable_heads(model, [(0, 1)]):
        model(**batch.inputs)


def test_a_causal_mask_is_noticed_where_nothing_else_says_that_a_model_is_a_decoder():
    model, batch = tiny_encoder("GPT2")
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.is_causal = False
    with pytest.raises(ValueError, match=DECODER):
        attention_maps(model, batch)


@pytest.mark.parametrize("name", ["ModernBert", "EuroBert"])
def test_segments_that_a_model_does_not_read_change_nothing(name):
    model, batch = tiny_encoder(name)
    segments = Batch(batch.inputs | {"token_type_ids": MASK}, batch.index)
    both = (attention_maps(model, one) for one in (segments, batch))
    assert all(map(torch.equal, *both))


def test_an_input_of_one_token_among_padding_is_no_sign_of_a_decoder():
    model, _ = tiny_encoder("Bert")
    mask = torch.tensor([[1, 0, 0]])
    inputs = {"input_ids": mask * 5, "attention_mask": mask}
    (first, _) = attention_maps(model, Batch(inputs, [0]))
    assert (first[:, :, 0] == torch.tensor([1.0, 0, 0])).all()


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("num_attention_heads", "4 heads where the configuration has 1"),
        ("num_hidden_layers", "2 layers where its configuration has 1"),
    ],
)
def test_a_model_of_other_sizes_than_it_says_is_refused(size, message):
    model, batch = tiny_encoder("Bert")
    setattr(model.config, size, 1)
    with pytest.raises(ValueError, match=message):
        attention_maps(model, batch)
    with pytest.raises(ValueError, match=message), disable_heads(model, [(0, 0)]):
        model(**batch.inputs)


def test_queries_that_do_not_fit_the_keys_are_refused(monkeypatch):
    monkeypatch.setitem(ARCHITECTURES, "EuroBert, misfit", {"num_key_value_heads": 3})
    with pytest.raises(ValueError, match="4 heads with queries of 9 tokens and 3 with keys of 9"):
        attention_maps(*tiny_encoder("EuroBert, misfit"))
