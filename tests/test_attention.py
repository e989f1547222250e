"""The captured maps are the model's own, and padding never counts."""

import copy
import functools
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from conftest import batches_of_rows, loaded, make_bert, make_rows, one_example
from precision import forward_tolerance
from scipy.spatial.distance import cosine
from tokenizers.processors import TemplateProcessing
from transformers import RobertaConfig, RobertaModel

from bertology_utils import (
    Batch,
    attention,
    batches,
    batches_of,
    head_dependencies,
    load_classifier,
    load_tokenizer,
    map_similarity,
    predict_logits,
    sweep,
    tree_probe,
)
from bertology_utils.batches import make_batches, tokenize
from bertology_utils.disabling import importance, logits_without, removal_order
from bertology_utils.glue import TASKS
from bertology_utils.models import classifier_inputs
from bertology_utils.sinks import carried, cut_attention


@pytest.fixture(scope="module")
def model_and_tokenizer(tiny_bert):
    return load_classifier(str(tiny_bert), "mrpc"), load_tokenizer(str(tiny_bert))


def some_batch(tokenizer):
    (made,) = batches_of_rows(TASKS["mrpc"], 6, tokenizer)
    return made


def to_first(maps, batch):
    """A measure as anybody would write one: mean weight on the first token."""
    weights = maps[..., 0] * batch.mask[:, None]
    return weights.sum(dim=2) / batch.lengths[:, None]


def test_roberta_counts_positions_from_behind_its_padding():
    sizes = dict.fromkeys(("hidden_size", "intermediate_size", "num_attention_heads"), 8)
    config = RobertaConfig(**sizes, num_hidden_layers=1, max_position_embeddings=20, vocab_size=50)
    model, ids = RobertaModel(config).eval(), torch.full((1, 19), 7)
    assert batches.longest_input(model) == 18
    attention.attention_maps(model, Batch({"input_ids": ids[:, 1:]}, [0]))
    with pytest.raises(ValueError, match="longer than the 18"):
        attention.attention_maps(model, Batch({"input_ids": ids}, [0]))


# What every call that runs a model asks of its inputs before the first pass.

TOKENIZER = functools.partial(load_tokenizer, "embedded")
ON_ALL = {  # calls that answer in the order of the data
    "predictions": predict_logits,
    "inputs of the classifier": classifier_inputs,
    "all heads": lambda model, given: sweep(model, given).heads,
    "means": lambda model, given: sweep(model, given, "mean").heads,
    "a head disabled": lambda model, given: logits_without(model, given, [(0, 1)]),
    "observe": lambda model, given: attention.observe(model, given, {"m": to_first})["m"],
    "similarity": lambda model, given: map_similarity(model, copy.deepcopy(model), given),
    "carried": lambda model, given: carried(model, given, TOKENIZER(), 0)["share"],
    "cut": lambda model, given: cut_attention(model, given, TOKENIZER())["whole"],
}
ON_SOME = {
    "importance": importance,
    "order": lambda model, given: removal_order(model, given, 5),
    "maps": lambda model, given: torch.stack(attention.attention_maps(model, given)),
    "maps by norm": lambda model, given: torch.stack(
        attention.attention_maps(model, given, "norm")
    ),
}
CALLS = ON_ALL | ON_SOME
on_all = pytest.mark.parametrize("call", ON_ALL.values(), ids=ON_ALL)
on_any = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def three_words(**inputs):
    ids = torch.tensor([[101, 2000, 102, 0], [101, 2000, 2001, 102]])
    inputs = {"input_ids": ids, "attention_mask": (ids > 0).long()} | inputs
    return Batch(inputs, [0, 1], torch.tensor([0, 1]))


def full(value, *more):
    return torch.full((2, 4), value, *more)


LONG = torch.ones(2, 513, dtype=torch.long)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"token_type_ids": full(2)}, "token_type_ids are 2 to 2, and Bert.* knows 0 to 1; "),
        ({"input_ids": full(30522)}, "input_ids are 30522 to 30522, .*resize_token_emb"),
        ({"input_ids": full(-100)}, "input_ids are -100 to -100, and"),
        ({"input_ids": full(1.0)}, "input_ids are 1.0 to 1.0, and"),
        ({"position_ids": full(512)}, "position_ids are 512 to 512, .* knows 0 to 511"),
        ({"input_ids": LONG, "attention_mask": LONG}, "an input of 513 wordpieces is longer"),
        ({"attention_mask": full(1).tril().flip(1)}, "padded at its beginning.*pad on the right"),
    ],
)
@on_any
def test_inputs_that_the_model_cannot_read_are_refused_in_words(
    model_and_tokenizer, call, inputs, message
):
    with pytest.raises(ValueError, match=message):
        call(model_and_tokenizer[0], three_words(**inputs))


@pytest.mark.parametrize(
    "inputs",
    [
        {"attention_mask": torch.zeros(2, 1, 4, 4)},  # for each pair of tokens
        {"position_ids": torch.arange(4)[None]},  # for all examples
        {"token_type_ids": [[0] * 4] * 2},  # no tensor
        {"labels": torch.tensor([0, 1])},
        {"token_type_ids": torch.zeros(2, 5)},
        {"input_ids": torch.full((3, 4), 7)},  # of more examples than the index has
    ],
)
def test_inputs_that_are_no_batch_are_refused_in_words(inputs):
    with pytest.raises(ValueError, match=r"of a batch of 2 examples has the shape \(.*; give"):
        three_words(**inputs)


@on_all
def test_examples_that_are_there_twice_or_missing_are_refused(model_and_tokenizer, call):
    model, tokenizer = model_and_tokenizer
    some, others = (batches_of(texts, tokenizer) for texts in (["a b", "c", "d e f"], ["g h", "i"]))
    (one,) = some
    for given, told in (
        ([*some, *others], "0 is there twice"),
        ([Batch(one.inputs, [0, 1, 1])], "1 is there twice"),
        ([Batch(one.inputs, [0, 1, 3])], "2 is missing"),
        ([one_example([one], 1)], "0 is missing"),
    ):
        with pytest.raises(ValueError, match=f"{told}, so that .* give all batches of one"):
            call(model, given)


@on_any
def test_one_batch_is_as_good_as_a_list_and_a_generator_as_both(model_and_tokenizer, call):
    model, one = model_and_tokenizer[0], three_words()
    expected = np.asarray(call(model, [one]))
    for given in (one, (one,), (batch for batch in [one])):
        np.testing.assert_array_equal(np.asarray(call(model, given)), expected)


@on_any
def test_what_is_no_batch_is_refused_in_words(model_and_tokenizer, call):
    model, tokenizer = model_and_tokenizer
    encoded = tokenizer(["a text"], return_tensors="pt")
    for given in (["a text"], "a text", encoded, dict(encoded), [encoded], [[three_words()]], None):
        with pytest.raises(TypeError, match=r"is no Batch; give what batches_of\("):
            call(model, given)
    with pytest.raises(ValueError, match="no examples .* give at least one batch"):
        call(model, [])


def test_maps_are_looked_at_one_batch_at_a_time(model_and_tokenizer):
    model, batch = model_and_tokenizer[0], three_words()
    with pytest.raises(ValueError, match="2 batches are given; look at the maps of one at a time"):
        attention.attention_maps(model, [batch, batch])
    attention.attention_maps(model, one_example([batch], 1))


@pytest.mark.parametrize("asked", ["by the configuration", "by the call"])
def test_a_model_that_answers_with_a_tuple_is_measured_alike(model_and_tokenizer, asked):
    model, batch = copy.deepcopy(model_and_tokenizer[0]), three_words()
    calls = {name: call for name, call in CALLS.items() if name != "similarity"}
    expected = {name: np.asarray(call(model, batch)) for name, call in calls.items()}
    if asked == "by the call":
        model.forward = functools.partial(model.forward, return_dict=False)
    else:
        model.config.return_dict = False
    assert isinstance(model(**batch.inputs), tuple)
    for name, call in calls.items():
        np.testing.assert_array_equal(np.asarray(call(model, batch)), expected[name], name)


# Batches of one's own texts, and what is refused before any of them is made.


@pytest.mark.parametrize("name", ["sst2", "mrpc"])
def test_the_batches_are_those_of_the_rows(tokenizer, name):
    task = TASKS[name]
    rows = make_rows(task, 20)
    expected = make_batches(tokenize(rows, task, tokenizer, 64), tokenizer, 100)
    columns = [rows[field] for field in task.fields]
    texts = list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))
    for labels in (None, list(rows["label"]), np.array(rows["label"])):
        found = batches_of(texts, tokenizer, labels, tokens_per_batch=100)
        assert len(found) == len(expected) > 1
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.index == theirs.index and ours.inputs.keys() == theirs.inputs.keys()
            assert all(torch.equal(ours.inputs[key], theirs.inputs[key]) for key in theirs.inputs)
            assert labels is None or torch.equal(ours.labels, theirs.labels)


@pytest.mark.parametrize(
    "texts, labels, error, message",
    [
        ([], None, ValueError, "no texts; give at least one"),
        ({"a text": 1}, None, TypeError, "texts are a dict, which has names; give a list"),
        (pd.DataFrame({"text": ["a"]}), None, TypeError, "texts are a DataFrame"),
        (["a", "  "], None, ValueError, "text 2 is empty"),
        ([("a", "b"), ("a", "")], None, ValueError, "text 2 is empty"),
        (["a", ("a", "b")], None, ValueError, "text 2 is a pair and text 1 is not"),
        (["a", 3], None, TypeError, "text 2 is 3; give a string or a pair of strings"),
        (pd.Series(["a", None, "b"], index=[5, 6, 7]), None, TypeError, "text 2 is (nan|None);"),
        (["a", "b \ud83d c"], None, ValueError, "text 2 is no text: it has half a character"),
        (["a", "b"], ["no", "yes"], TypeError, "label of text 1 is 'no'; give a number"),
        (["a", "b"], [1, None], TypeError, "label of text 2 is None; give a number"),
        ([("a", "b", "c")], None, TypeError, "give a string or a pair"),
        (["a", "b"], [1], ValueError, "1 labels for 2 texts"),
        (["a", "b " * 600], None, ValueError, "text 2 has 602 wordpieces .* cut .* max_length"),
    ],
)
def test_bad_input_is_refused_in_words(tokenizer, texts, labels, error, message):
    with pytest.raises(error, match=message):
        batches_of(texts, tokenizer, labels)


def test_texts_are_cut_and_padded_at_their_end_whatever_the_tokenizer_says(tokenizer):
    texts, other = ["b " * 30 + "last", "c"], load_tokenizer("embedded")
    other.padding_side = other.truncation_side = "left"
    other.model_input_names = ["input_ids", "token_type_ids"]  # gives no mask by itself
    (found,), (expected,) = (batches_of(texts, one, max_length=10) for one in (other, tokenizer))
    for name, ids in expected.inputs.items():
        assert torch.equal(found.inputs[name], ids)
    assert other.padding_side == other.truncation_side == "left", "it is the caller's"
    rows = make_rows(TASKS["mrpc"], 4)
    cut = [tokenize(rows, TASKS["mrpc"], one, 8)["input_ids"] for one in (other, tokenizer)]
    assert list(cut[0]) == list(cut[1])


TEMPLATES = {  # of one text, of a pair; whether single texts are refused, too
    "[CLS] is not inserted": ("$A [SEP]", "$A [SEP] $B [SEP]", True),
    "[SEP] is inserted at the end alone": ("[CLS] $A [SEP]", "[CLS] $A $B [SEP]", False),
}


@pytest.mark.parametrize(("one", "pair", "both"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_tokenizer_that_has_special_tokens_and_does_not_insert_them_is_refused(one, pair, both):
    tokenizer = load_tokenizer("embedded")
    known = [(name, tokenizer.convert_tokens_to_ids(name)) for name in ("[CLS]", "[SEP]")]
    made = TemplateProcessing(single=one, pair=pair, special_tokens=known)
    tokenizer.backend_tokenizer.post_processor = made
    told = "has .CLS. and does not insert it" if both else "no separator .* give single texts"
    with pytest.raises(ValueError, match=told):
        batches_of([("it rains", "the sun shines")], tokenizer)
    with pytest.raises(ValueError, match=told) if both else nullcontext():
        batches_of(["it rains"], tokenizer)
    tokenizer.pad_token = None
    with pytest.raises(ValueError, match="has no padding token.* set tokenizer.pad_token"):
        batches_of(["a", "b c"], tokenizer)


def test_a_batch_is_made_of_what_people_have(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    (one,), (several,) = batches_of("it rains", tokenizer), batches_of(["it rains"], tokenizer)
    assert torch.equal(one.inputs["input_ids"], several.inputs["input_ids"])
    bare, (expected,) = (
        Batch({"input_ids": one.inputs["input_ids"]}, [0]),
        predict_logits(model, several),
    )
    np.testing.assert_array_equal(predict_logits(model, bare)[0], expected)  # without a mask
    texts = ["It rains today.", "The king reads it all in one day."]
    given = [tokenizer(texts, padding=True, return_tensors=kind) for kind in ("np", "pt")]
    labels = np.array([0, 1]), torch.tensor([0, 1])
    one, other = (Batch(*made) for made in zip(given, ([0, 1], [0, 1]), labels, strict=True))
    assert torch.equal(one.labels, other.labels)
    np.testing.assert_array_equal(predict_logits(model, one), predict_logits(model, other))


@pytest.mark.parametrize("shown", ["weight", "norm"])
def test_a_model_in_bf16_is_measured_in_float32(tiny_bert, tokenizer, shown):
    model, batch = loaded(tiny_bert)[0], some_batch(tokenizer)
    usual = attention.attention_maps(model, batch, shown)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = attention.attention_maps(model, batch, shown)
    half = attention.attention_maps(copy.deepcopy(model).bfloat16(), batch, shown)
    for other in half:
        rows = other.sum(dim=3)[batch.mask[:, None].expand(other.shape[:3])]
        torch.testing.assert_close(rows, torch.ones_like(rows), atol=1e-5, rtol=0)
    for one, other in [*zip(usual, mixed, strict=True), *zip(usual, half, strict=True)]:
        assert other.dtype == torch.float32 and 0 < (one - other).abs().max() < 0.1


def counted_passes(model, passes):
    return model.base_model.register_forward_hook(lambda *_: passes.append(1))


def test_observe_reads_weights_and_norms_in_one_pass_of_each_batch(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    several = batches_of(
        ["It rains.", "It rains today, and it rains a lot."], tokenizer, None, 64, 12
    )
    passes, shapes = [], []

    def keep(maps, batch):
        shapes.append(maps.shape)
        return maps.flatten(1).amax(dim=1)

    hook = counted_passes(model, passes)
    found = attention.observe(model, several, {"w": keep, "n": keep}, by_norm={"n"})
    hook.remove()
    assert (
        len(passes) == len(several) == 2 and len(shapes) == 2 * 2 * model.config.num_hidden_layers
    )
    for way, attention_ in {"w": "weight", "n": "norm"}.items():
        plain = [
            torch.stack([one.amax() for one in attention.attention_maps(model, batch, attention_)])
            for batch in several
        ]
        np.testing.assert_array_equal(found[way], torch.stack(plain))


def test_measures_are_not_rounded_by_autocast_and_may_use_a_probe(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    given, probe = some_batch(tokenizer), torch.nn.Linear(1, 1)
    kinds = []

    def mean_row(maps, batch):
        kinds.append((maps @ maps).dtype)
        return probe(maps.mean(dim=(2, 3))[..., None])

    with torch.autocast("cpu", torch.bfloat16):
        attention.observe(model, given, {"": mean_row})
    assert set(kinds) == {torch.float32}


@pytest.mark.parametrize("by_norm", ["norm", ["twice"]])
def test_a_name_by_norm_that_no_measure_has_is_refused(model_and_tokenizer, by_norm):
    model, tokenizer = model_and_tokenizer
    with pytest.raises(ValueError, match="unknown measure by norm .*; choose one of: first"):
        attention.observe(model, some_batch(tokenizer), {"first": to_first}, by_norm)


@pytest.mark.parametrize("shown", ["weight", "norm"])
def test_maps_can_be_changed_and_learned_from(model_and_tokenizer, shown):
    model, tokenizer = model_and_tokenizer
    maps = attention.attention_maps(model, some_batch(tokenizer), shown)
    probe = torch.nn.Linear(maps[0].shape[-1], 1)
    probe(maps[0]).sum().backward()
    maps[0][..., 0] = 0
    vectors = attention.vectors(model, some_batch(tokenizer))
    vectors[0] += 1
    assert probe.weight.grad is not None and not maps[0][..., 0].any()


def test_models_of_pictures_and_sound_are_refused_by_what_they_read():
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.ViTConfig(**sizes, intermediate_size=16)
    model = transformers.ViTModel(config).eval()
    with pytest.raises(ValueError, match="ViTModel reads pixel_values and no tokens; give an enc"):
        attention.attention_maps(model, Batch({"pixel_values": torch.rand(1, 3, 224, 224)}, [0]))


def test_what_is_no_fast_tokenizer_of_transformers_is_refused(model_and_tokenizer, tmp_path):
    model, tokenizer = model_and_tokenizer
    (bank := tmp_path / "bank.conllu").write_text("1\tcat\tcat\tNOUN\t_\t_\t0\troot\t_\t_\n\n")
    calls = {
        "dependencies": lambda given: head_dependencies(model, given, bank),
        "trees": lambda given: tree_probe(model, given, bank, bank.with_name("other")),
        "batches": lambda given: batches_of(["a b"], given),
    }
    bank.with_name("other").write_bytes(bank.read_bytes())
    for given in (tokenizer.backend_tokenizer, model, "bert", None):
        for call in calls.values():
            with pytest.raises(TypeError, match="is no tokenizer of transformers; give the"):
                call(given)
    for name in ("dependencies", "trees"):
        with pytest.raises(ValueError, match="is no fast tokenizer, so words cannot be"):
            calls[name](transformers.ByT5Tokenizer())


# Similarity of maps (§4.3) against a plain reading of its definition.

TASK = TASKS["rte"]


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    folders = [make_bert(tmp_path_factory.mktemp(f"seed{seed}"), 3, 4, 32, seed) for seed in (0, 1)]
    return [loaded(folder)[0] for folder in folders], loaded(folders[0])[1]


def plain_similarity(before, after, tokenizer, row):
    """One example at a time, through output_attentions."""
    inputs = tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt")
    with torch.inference_mode():
        both = [m(**inputs, output_attentions=True).attentions for m in (before, after)]
    return [
        [1 - cosine(*(maps[layer][0, head].flatten() for maps in both)) for head in range(4)]
        for layer in range(3)
    ]


@pytest.mark.parametrize("tokens", [60, 200])
def test_similarity_equals_the_plain_definition_whatever_is_padded(two_models, tokens):
    (before, after), tokenizer = two_models
    batches = batches_of_rows(TASK, 12, tokenizer, tokens_per_batch=tokens)
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
    parallel = torch.nn.DataParallel(model)
    for one, same in ((model, model), (model, parallel), (classifier, classifier.bert)):
        with pytest.raises(ValueError, match="one and the same.*compare with a copy made before"):
            map_similarity(one, same, batches)
    other.embeddings = model.embeddings  # frozen, for example; the rest is its own
    assert map_similarity(model, other, batches).min() < 1


def test_models_of_other_shapes_are_refused(two_models, tmp_path):
    (model, _), tokenizer = two_models
    for layers, heads in ((4, 4), (3, 2)):
        other, _ = loaded(make_bert(tmp_path / f"{layers}{heads}", layers, heads, 32))
        with pytest.raises(ValueError, match="compare models of the same shape"):
            map_similarity(model, other, batches_of(["a"], tokenizer))
