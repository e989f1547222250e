"""The captured maps are the model's own, and padding never counts."""

import pytest
import torch
from conftest import make_bert, make_rows
from precision import forward_tolerance, sum_tolerance

from bertology_utils.attention import batches
from bertology_utils.attention import maps as attention
from bertology_utils.encoders import models
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.tasks import TASKS, get_task


@pytest.fixture(scope="module", params=["embedded", "bert-base-shaped"])
def model_and_tokenizer(request, tmp_path_factory):
    """The real embedded encoder, and a random one of bert-base's shape."""
    if request.param == "embedded":
        source = parse_model("embedded")
    else:
        source = parse_model(str(make_bert(tmp_path_factory.mktemp("base"), layers=12, heads=12, hidden=768)))
    return models.load_classifier(source, TASKS["mrpc"]), models.load_tokenizer(source)


def some_batch(tokenizer, task="mrpc", count=6, pad_to=None):
    task = get_task(task)
    inputs = batches.tokenize(make_rows(task, count), task, tokenizer, 64)
    made = batches.make_batches(inputs, tokenizer, tokens_per_batch=10_000, pad_to=pad_to)
    assert len(made) == 1
    return made[0]


def test_equal_to_output_attentions_of_the_eager_model(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    batch = some_batch(tokenizer)
    with torch.inference_mode():
        expected = model(**batch.inputs, output_attentions=True).attentions
    captured = attention.attention_maps(model, batch)
    assert len(captured) == len(expected) == model.config.num_hidden_layers
    for ours, theirs in zip(captured, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=forward_tolerance(model), rtol=0)


def test_rows_sum_to_one_and_padded_keys_are_exactly_zero(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    batch = some_batch(tokenizer, pad_to=48)
    padded_keys = ~batch.mask[:, None, None, :]
    assert padded_keys.any()
    for maps in attention.attention_maps(model, batch):
        assert (maps.masked_select(padded_keys.expand_as(maps)) == 0).all()
        torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:-1]), atol=sum_tolerance(48), rtol=0)


def test_padded_batch_equals_single_examples(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    task = TASKS["mrpc"]
    inputs = batches.tokenize(make_rows(task, 5), task, tokenizer, 64)
    together = batches.make_batches(inputs, tokenizer, 10_000)[0]
    maps = attention.attention_maps(model, together)
    for row, index in enumerate(together.index):
        alone = batches.make_batches(inputs.select([index]), tokenizer)[0]
        length = int(together.lengths[row])
        assert alone.inputs["input_ids"].shape == (1, length)
        for layer, single in enumerate(attention.attention_maps(model, alone)):
            torch.testing.assert_close(
                maps[layer][row, :, :length, :length], single[0], atol=forward_tolerance(model), rtol=0
            )


def test_prediction_is_unchanged_by_looking(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    batch = some_batch(tokenizer)
    with torch.inference_mode():
        before = model(**batch.inputs).logits
    implementation = model.config._attn_implementation
    shown = attention._forward(model, batch, lambda layer, maps: None)
    torch.testing.assert_close(shown, before, atol=forward_tolerance(model), rtol=0)
    assert model.config._attn_implementation == implementation


@pytest.mark.parametrize("kind", ["Roberta", "Electra"])
def test_other_encoders(kind):
    import transformers

    config = getattr(transformers, f"{kind}Config")(
        num_hidden_layers=2,
        num_attention_heads=4,
        hidden_size=32,
        embedding_size=32,
        intermediate_size=64,
        vocab_size=100,
        max_position_embeddings=40,
        pad_token_id=1,
        attn_implementation="eager",
    )
    model = getattr(transformers, f"{kind}ForSequenceClassification")(config).eval()
    ids = torch.randint(5, 100, (3, 12))
    mask = torch.ones_like(ids)
    ids[1, 8:], mask[1, 8:] = 1, 0
    batch = attention.Batch({"input_ids": ids, "attention_mask": mask}, [0, 1, 2], torch.zeros(3))
    with torch.inference_mode():
        expected = model(**batch.inputs, output_attentions=True).attentions
    for ours, theirs in zip(attention.attention_maps(model, batch), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=forward_tolerance(model), rtol=0)


class Mean:
    """A measurement as anybody would write one: mean weight on the first token."""

    def __init__(self):
        self.total, self.rows = {}, 0

    def update(self, layer, maps, batch):
        real = batch.mask[:, None, :, None]
        self.total[layer] = self.total.get(layer, 0) + (maps[..., :1] * real).sum().item()
        self.rows += int(batch.lengths.sum()) if layer == 0 else 0

    def compute(self):
        return [self.total[layer] / self.rows for layer in sorted(self.total)]


def test_one_pass_feeds_many_measurements_whatever_the_batches(tiny_bert):
    source, task = parse_model(str(tiny_bert)), TASKS["sst2"]
    model, tokenizer = models.load_encoder(source), models.load_tokenizer(source)
    inputs = batches.tokenize(make_rows(task, 40), task, tokenizer, 32)
    results = []
    for budget in (40, 200, 10_000):
        made = batches.make_batches(inputs, tokenizer, budget)
        seen = attention.observe(model, made, {"a": Mean(), "b": Mean()})
        assert seen["a"] == seen["b"]
        assert sorted(index for batch in made for index in batch.index) == list(range(40))
        results.append(torch.tensor(seen["a"]))
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0], results[2])


def test_batches_respect_the_memory_bound(tiny_bert):
    task, tokenizer = TASKS["mrpc"], models.load_tokenizer(parse_model(str(tiny_bert)))
    inputs = batches.tokenize(make_rows(task, 50), task, tokenizer, 64)
    for batch in batches.make_batches(inputs, tokenizer, 100):
        assert batch.inputs["input_ids"].numel() <= 100 or len(batch.index) == 1


def test_training_mode_is_refused(tiny_bert):
    model = models.load_encoder(parse_model(str(tiny_bert)))
    tokenizer = models.load_tokenizer(parse_model(str(tiny_bert)))
    with pytest.raises(ValueError, match="evaluation mode"):
        attention.attention_maps(model.train(), some_batch(tokenizer))


def test_a_model_that_shows_no_maps_is_refused(tiny_bert, monkeypatch):
    model = models.load_encoder(parse_model(str(tiny_bert)))
    tokenizer = models.load_tokenizer(parse_model(str(tiny_bert)))
    batch = some_batch(tokenizer)
    attention.attention_maps(model, batch)
    monkeypatch.setattr(model, "set_attn_implementation", lambda name: None)
    with pytest.raises(ValueError, match="BertModel does not go through transformers' attention interface"):
        attention.attention_maps(model, batch)


@pytest.mark.parametrize(
    "run", [attention.attention_maps, lambda model, batch: attention.observe(model, [batch], {"m": Mean()})]
)
def test_inputs_longer_than_the_model_can_read_are_refused(tiny_bert, run):
    ids = torch.full((1, 513), 1000)
    with pytest.raises(ValueError, match="an input of 513 wordpieces is longer than the 512 that BertModel can read"):
        batch = attention.Batch({"input_ids": ids, "attention_mask": ids > 0}, [0])
        run(models.load_encoder(parse_model(str(tiny_bert))), batch)


def test_roberta_counts_positions_from_behind_its_padding():
    from transformers import RobertaConfig, RobertaModel

    config = RobertaConfig(
        num_hidden_layers=1,
        num_attention_heads=2,
        hidden_size=8,
        intermediate_size=8,
        vocab_size=50,
        max_position_embeddings=20,
        pad_token_id=1,
    )
    model = RobertaModel(config).eval()
    assert attention.longest_input(model) == 18
    for length in (18, 19):
        ids = torch.full((1, length), 7)
        batch = attention.Batch({"input_ids": ids, "attention_mask": ids > 0}, [0])
        if length == 18:
            attention.attention_maps(model, batch)
        else:
            with pytest.raises(ValueError, match="longer than the 18"):
                attention.attention_maps(model, batch)


def test_labels_are_optional(tiny_bert):
    task, tokenizer = TASKS["mrpc"], models.load_tokenizer(parse_model(str(tiny_bert)))
    inputs = batches.tokenize(make_rows(task, 9), task, tokenizer, 64)
    with_labels = batches.make_batches(inputs, tokenizer, 60)
    without = batches.make_batches(inputs.remove_columns("labels"), tokenizer, 60)
    assert all(batch.labels is None and batch.to("cpu").labels is None for batch in without)
    for ours, theirs in zip(without, with_labels, strict=True):
        assert ours.index == theirs.index
        assert all(torch.equal(ours.inputs[name], theirs.inputs[name]) for name in theirs.inputs)


def test_editors_and_observers_reach_their_own_model_only(tiny_bert):
    from bertology_utils.attention.interface import reaching
    from bertology_utils.drift.measure import Drift

    source = parse_model(str(tiny_bert))
    model, other = models.load_encoder(source), models.load_encoder(source)
    batch = some_batch(models.load_tokenizer(source))
    before, seen = attention.attention_maps(other, batch), []
    for shared in (False, True):
        if shared:  # two models of one configuration are switched together
            for module in other.modules():
                if hasattr(module, "config"):
                    module.config = model.config
        flip, look = lambda layer, maps, mask: maps.flip(1), lambda layer, maps: seen.append(layer)
        with reaching(model, edit_maps=flip, observe=look):
            for ours, theirs in zip(attention.attention_maps(other, batch), before, strict=True):
                torch.testing.assert_close(ours, theirs, atol=0, rtol=0)
            assert not seen
            drift = attention.observe(model, [batch], {"d": Drift(other)})["d"]
        assert seen == [0, 1, 2] and drift.min() < 0.999, "the observed model is edited, the reference is not"
        seen.clear()
