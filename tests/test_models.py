"""Initialisations, and no tensor silently left random."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from conftest import random_classifier
from hub_server import BERT
from safetensors.torch import load_file, save_file
from small_models import NAMES, PAIRS, model_and_tokenizer
from test_attention import CALLS, three_words
from transformers import BertForSequenceClassification

from bertology_utils import batches_of, models, settings
from bertology_utils.glue import TASKS
from bertology_utils.settings import parse_model


@pytest.fixture
def legacy(tmp_path):
    """Folder of a tiny checkpoint with the names of 2018: bert. prefix, gamma and beta, pre-training heads."""
    for name, content in BERT.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.usefixtures("stored_weights")
@pytest.mark.parametrize(
    "load", [models.load_encoder, lambda source: models.load_classifier(source, TASKS["rte"])]
)
def test_legacy_names_load_with_every_tensor(legacy, load):
    stored = load_file(legacy / "model.safetensors")
    found = load(parse_model(str(legacy))).base_model.state_dict()
    for name, value in found.items():
        old = name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        assert torch.equal(value, stored[f"bert.{old}"]), name
    assert len(found) == sum(name.startswith("bert.") for name in stored)


QUERY = "bert.encoder.layer.1.attention.self.query.weight"
BIAS, EXTRA = (f"bert.encoder.layer.{at}.output.dense.bias" for at in (0, 2))


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda tensors: tensors.pop(QUERY), "1 missing"),
        (lambda tensors: tensors.update({EXTRA: torch.zeros(8)}), "1 unexpected"),
        (lambda tensors: tensors.update({BIAS: torch.zeros(9)}), "1 misshapen .*output.dense.bias"),
    ],
)
def test_an_encoder_tensor_that_is_missing_unexpected_or_misshapen_is_an_error(
    legacy, change, message
):
    tensors = load_file(legacy / "model.safetensors")
    change(tensors)
    save_file(tensors, legacy / "model.safetensors")
    for load in (models.load_encoder, lambda source: models.load_classifier(source, "rte")):
        with pytest.raises(ValueError, match=message):
            load(str(legacy))


@pytest.mark.usefixtures("stored_weights")
def test_normal_initialisation_draws_every_matrix(tiny_bert):
    model, again, other = (
        models.load_classifier(str(tiny_bert), "mnli", init="normal", seed=seed)
        for seed in (3, 3, 4)
    )
    alike = zip(model.named_parameters(), again.parameters(), other.parameters(), strict=True)
    for (name, values), same, different in alike:
        assert torch.equal(values, same), name
        if values.dim() > 1:
            error = models.NORMAL_STD / values.numel() ** 0.5
            assert abs(values.mean()) < 5 * error, name
            assert abs(values.std() / models.NORMAL_STD - 1) < 5 / values.numel() ** 0.5, name
            assert not torch.equal(values, different), name
        else:
            expected = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            assert (values == expected).all(), name


def test_seed_draws_the_classifier_and_leaves_the_global_generator_alone(tiny_bert):
    before = torch.random.get_rng_state()
    first, second = (models.load_classifier(str(tiny_bert), "rte", seed=seed) for seed in (1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.equal(first.classifier.weight, second.classifier.weight)
    layers = [one.bert.encoder.layer[0].output.dense.weight for one in (first, second)]
    assert torch.equal(*layers)
    with pytest.raises(ValueError, match="pretrained, normal, finetuned"):
        models.load_encoder(str(tiny_bert), init="zeros")


@pytest.mark.parametrize("init", ["pretrained", "normal"])
def test_a_classification_layer_of_the_source_is_kept_only_as_finetuned(tiny_bert, tmp_path, init):
    """And forgets the names of its outputs else: a training would be saved in the task's order under another's names."""
    with pytest.raises(ValueError, match="2 missing .classifier.bias, classifier.weight"):
        models.load_classifier(str(tiny_bert), "rte", init="finetuned")
    first = models.load_classifier(str(tiny_bert), MNLI, seed=1)
    saved = save_with_names(first, tmp_path, (0, 1, 2), **both_ways(*MNLI.labels))
    kept = models.load_classifier(saved, MNLI, init="finetuned")
    assert torch.equal(kept.classifier.weight, first.classifier.weight)
    assert models.load_classifier(saved, "rte").classifier.weight.shape == (2, 32)
    start = save_with_names(first, tmp_path, (0, 1, 2), **both_ways(*REVERSED))
    drawn = models.load_classifier(start, MNLI, init, seed=2)
    assert not torch.equal(drawn.classifier.weight, first.classifier.weight)
    drawn.save_pretrained(tmp_path / "trained")
    found = models.load_classifier(str(tmp_path / "trained"), MNLI, "finetuned")
    assert torch.equal(found.classifier.weight, drawn.classifier.weight)


@pytest.mark.usefixtures("stored_weights")
@pytest.mark.parametrize("saved_as", ["RobertaModel", "ElectraForMaskedLM"])
def test_other_encoders_load_from_any_of_their_checkpoints(saved_as, tmp_path):
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32}
    kind = getattr(transformers, saved_as)
    stored = kind(kind.config_class(**sizes, embedding_size=32, vocab_size=99))
    stored.save_pretrained(tmp_path)
    model = models.load_classifier(str(tmp_path), "mnli")
    expected = stored.base_model.state_dict()
    for name, value in model.base_model.state_dict().items():
        assert torch.equal(value, expected[name]), name


def test_changed_weights_are_refused(monkeypatch):
    monkeypatch.setattr(settings, "SHA256", "0" * 64)
    with pytest.raises(ValueError, match="refusing model.safetensors"):
        settings.embedded_folder.__wrapped__()


@pytest.mark.parametrize("part", ["", "bert", "bert.encoder.layer.1.output.dropout"])
def test_a_model_is_not_run_while_any_part_of_it_is_in_training_mode(tiny_classifier, part):
    model = models.load_classifier(str(tiny_classifier), "rte", "finetuned")
    model.get_submodule(part).train()
    for call in CALLS.values():
        with pytest.raises(ValueError, match=r"in training mode.*call model.eval\(\) first"):
            call(model, three_words())
    with pytest.raises(ValueError, match="in training mode"):
        models.predict_logits(torch.nn.DataParallel(model), three_words())


MNLI = TASKS["mnli"]
REVERSED = ("contradiction", "neutral", "entailment")


def save_with_names(model, folder, order, **config):
    """Save a classifier with its outputs in another order, and its configuration changed so."""
    head = getattr(model.classifier, "out_proj", model.classifier)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(parameter[list(order)])
    model.save_pretrained(folder)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    for name in ("id2label", "label2id"):
        content.pop(name, None)
    path.write_text(json.dumps(content | config))
    return str(folder)


def both_ways(*names):
    """The two tables of a configuration that name the outputs."""
    return {
        "id2label": {str(at): name for at, name in enumerate(names)},
        "label2id": {name: at for at, name in enumerate(names)},
    }


IN_ORDER, TURNED = (
    both_ways(*names)
    for names in (("entailment", "not_entailment"), ("not_entailment", "entailment"))
)  # of RTE's labels; GLUE's order is the first


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_put_in_the_tasks_order_for_every_architecture(name, tmp_path):
    whole, tokenizer = model_and_tokenizer(name)
    batches = batches_of(PAIRS, tokenizer)
    whole.save_pretrained(tmp_path / "plain")
    plain = models.load_classifier(str(tmp_path / "plain"), "rte", "finetuned")
    expected = models.predict_logits(plain, batches)
    folder = save_with_names(plain, tmp_path, (1, 0), **TURNED)
    model = models.load_classifier(folder, "rte", "finetuned")
    np.testing.assert_allclose(models.predict_logits(model, batches), expected, atol=1e-6)
    model.save_pretrained(tmp_path / "again")  # in the task's order now, and named so
    again = models.load_classifier(str(tmp_path / "again"), "rte", "finetuned")
    np.testing.assert_allclose(models.predict_logits(again, batches), expected, atol=1e-6)


UNNAMED = {"label2id": {f"LABEL_{at}": at for at in range(3)}}


@pytest.mark.parametrize(
    ("order", "config"),
    [
        ((2, 1, 0), both_ways(*REVERSED)),
        ((2, 1, 0), both_ways(*map(str.upper, REVERSED))),
        ((2, 0, 1), {"id2label": both_ways("Contradiction", "ENTAILMENT", "neutral")["id2label"]}),
        ((2, 1, 0), {"label2id": both_ways(*REVERSED)["label2id"]}),
        ((1, 2, 0), both_ways("neutral", "contradiction", "entailment") | UNNAMED),
        ((1, 0, 2), both_ways("LABEL_1", "LABEL_0", "LABEL_2")),
        ((1, 0, 2), both_ways("1", "0", "2")),
        ((0, 1, 2), both_ways("LABEL_0", "LABEL_1", "LABEL_2")),
        ((0, 1, 2), both_ways(*MNLI.labels)),
        ((0, 1, 2), {}),
    ],
)
def test_names_of_outputs_are_read_in_every_spelling(tiny_bert, tmp_path, order, config):
    source = models.load_classifier(str(tiny_bert), MNLI, seed=5)
    expected = source.classifier.weight.detach().clone(), source.classifier.bias.detach().clone()
    folder = save_with_names(source, tmp_path, order, num_labels=3, **config)
    found = models.load_classifier(folder, MNLI, "finetuned").classifier
    assert torch.equal(found.weight, expected[0]) and torch.equal(found.bias, expected[1])


@pytest.mark.parametrize(
    ("task", "config", "message"),
    [
        ("rte", both_ways("entailment", "other"), "'entailment', 'other'.*RTE wants .'entail"),
        ("mrpc", IN_ORDER, "MRPC wants .*'equivalent'"),
        ("rte", both_ways("entailment", "entailment"), "RTE wants"),
        ("rte", both_ways("LABEL_1", "LABEL_2"), "RTE wants"),
        ("rte", TURNED | {"label2id": IN_ORDER["label2id"]}, "ment'. or .'entailment', 'no"),
    ],
)
def test_outputs_with_other_names_are_refused_with_both_orders(
    tiny_bert, tmp_path, task, config, message
):
    source = models.load_classifier(str(tiny_bert), "rte")
    folder = save_with_names(source, tmp_path, (0, 1), **config)
    with pytest.raises(ValueError, match=message):
        models.load_classifier(folder, task, "finetuned")


def test_outputs_in_another_order_of_an_unknown_last_layer_are_refused(tiny_bert):
    model = models.load_classifier(str(tiny_bert), "rte")
    model.classifier = torch.nn.Sequential(model.classifier, torch.nn.Linear(2, 5))
    model.config.id2label = dict(enumerate(("not_entailment", "entailment")))
    with pytest.raises(ValueError, match="no linear layer at its end could be reordered"):
        models._reorder_outputs(model, [1, 0], TASKS["rte"])


def test_a_score_may_have_any_name(tiny_bert, tmp_path):
    source = models.load_classifier(str(tiny_bert), "stsb")
    folder = save_with_names(source, tmp_path, [0], **both_ways("similarity"))
    assert models.load_classifier(folder, "stsb", "finetuned").config.num_labels == 1


def test_a_new_classification_layer_normalises_as_before(tmp_path):
    """ModernBERT's has a normalisation: with a scale of 0 the outputs would be the same for any text."""
    whole, tokenizer = model_and_tokenizer("ModernBert")
    whole.save_pretrained(tmp_path)
    model = models.load_classifier(str(tmp_path), "rte", seed=1)
    assert (model.head.norm.weight == 1).all()
    assert np.ptp(models.predict_logits(model, batches_of(PAIRS, tokenizer)), axis=0).min() > 0


# Around, beside and behind a model.


class Around(torch.nn.Module):
    """A wrapper as PEFT's, of a method that changes layers, or adds tokens."""

    def __init__(self, model, method, **more):
        super().__init__()
        self.base_model = torch.nn.ModuleDict({"model": model})
        self.peft_config = {"default": SimpleNamespace(peft_type=method, **more)}

    def get_base_model(self):
        return self.base_model["model"]


class CrossEncoder(torch.nn.Module):
    """A wrapper as that of sentence-transformers, which squeezes outputs to 0 to 1."""

    def __init__(self, model):
        super().__init__()
        self.inside, self.config = model, model.config


@pytest.fixture
def pair(tiny_classifier):
    """A classifier far from uniform attention, and inputs."""
    return random_classifier(tiny_classifier, "rte"), three_words()


@pytest.mark.parametrize("name", CALLS)
def test_wrappers_that_add_nothing_are_taken_off(pair, name):
    (model, batch), call = pair, CALLS[name]
    expected = np.asarray(call(model, batch))
    for wrapped in (
        torch.compile(model),
        torch.nn.DataParallel(model),
        torch.nn.DataParallel(Around(model, "LORA")),
    ):
        np.testing.assert_array_equal(np.asarray(call(wrapped.eval(), batch)), expected)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_more_than_a_model_of_transformers_is_refused_by_name(pair, call):
    model, batch = pair
    for given, name, inside in (
        (Around(model, "PROMPT_TUNING"), "Around", "'base_model.model'"),
        (Around(model, "LORA", alora_invocation_tokens=[1]), "Around", "'base_model.model'"),
        (torch.nn.DataParallel(CrossEncoder(model)), "CrossEncoder", "'inside'"),
        ("bert", "str", "one of these"),
    ):
        with pytest.raises(ValueError, match=f"^{name} is no model of transformers.*{inside}"):
            call(given, batch)


class Prompted(BertForSequenceClassification):
    """A model of one's own that puts two tokens before the input."""

    def forward(self, input_ids, attention_mask, **others):
        embedded = self.bert.embeddings.word_embeddings(input_ids)
        before = embedded[:, :2], attention_mask[:, :2]
        inputs = torch.cat([before[0], embedded], dim=1)
        mask = torch.cat([before[1], attention_mask], dim=1)
        return super().forward(inputs_embeds=inputs, attention_mask=mask)


def test_maps_of_more_tokens_than_the_input_has_are_refused(pair):
    model, batch = pair
    for name in ("maps", "maps by norm", "observe"):
        with pytest.raises(
            ValueError, match="Prompted shows maps of 6 tokens where the input has 4"
        ):
            CALLS[name](Prompted(model.config).eval(), batch)


# Gradients need weights in place, and a model whose weights are elsewhere cannot be copied.
@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"importance", "order", "similarity"}))
@pytest.mark.parametrize("all_of_it", [True, False])
def test_weights_may_wait_on_the_disk(pair, name, all_of_it, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    (model, batch), call = pair, CALLS[name]
    expected = call(model, batch)
    if all_of_it:
        waiting = accelerate.disk_offload(model, tmp_path, execution_device=torch.device("cpu"))
    else:
        places = dict.fromkeys(("bert.pooler", "bert.encoder.layer.0", "classifier"), "cpu")
        away = ("bert.embeddings", "bert.encoder.layer.1", "bert.encoder.layer.2")
        places |= dict.fromkeys(away, "disk")
        waiting = accelerate.dispatch_model(model, places, main_device="cpu", offload_dir=tmp_path)
    assert any(part.is_meta for part in waiting.parameters())
    np.testing.assert_allclose(call(waiting, batch), expected, atol=1e-6)


def test_a_model_without_weights_is_refused(pair):
    model, batch = pair
    with pytest.raises(ValueError, match="BertForSequenceClassification has no weights"):
        models.predict_logits(model.to("meta"), batch)


def test_a_class_of_ones_own_that_inherits_from_a_classifier_is_one(pair):
    model, batch = pair
    own = type("Mine", (type(model),), {})(model.config).eval()
    own.load_state_dict(model.state_dict())
    found, expected = (models.predict_logits(one, batch) for one in (own, model))
    np.testing.assert_array_equal(found, expected)
