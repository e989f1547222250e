"""A person's own fine-tuned classifier takes the place of a fine-tuning run, if it fits."""

import json
import shutil

import numpy as np
import pytest
import torch
from conftest import random_classifier
from safetensors.torch import load_file, save_file

from bertology_utils import __main__ as cli
from bertology_utils import finetune, load_classifier, sweep
from bertology_utils.common import BERT_BASE
from bertology_utils.measurements import judged
from bertology_utils.models import classifier_inputs, predict_logits
from bertology_utils.study import Study


def own(model, classifier, tasks="sst2", **entries):
    """The study of an own encoder and an own classifier of SST-2."""
    checkpoint = f"SST-2={classifier}"
    return Study.of("small", tasks, model=str(model), checkpoint=checkpoint, **entries)


def test_it_is_taken_as_it_is_and_is_the_only_run(tiny_bert, tiny_classifier, monkeypatch):
    monkeypatch.setattr(finetune, "train", lambda *_: pytest.fail("a fine-tuning was begun"))
    study = own(tiny_bert, tiny_classifier, "sst2,mrpc")
    taken = study.classifier("SST-2").state_dict()
    expected = load_file(tiny_classifier / "model.safetensors")
    assert all(torch.equal(taken[name].cpu(), value) for name, value in expected.items())
    assert study.runs("SST-2") == [1] and study.runs("MRPC") == [1, 2]
    # These are fine-tuned as ever.
    for other in ({"task": "MRPC"}, {"task": "SST-2", "start": "random"}):
        with pytest.raises(pytest.fail.Exception, match="a fine-tuning was begun"):
            study.classifier(**other)


def test_the_score_does_not_hang_on_the_order_in_which_its_outputs_stand(tiny_bert, tmp_path):
    plain = tmp_path / "plain"
    random_classifier(tiny_bert, "sst2").save_pretrained(plain)
    names = {"id2label": {0: "POSITIVE", 1: "NEGATIVE"}}
    names |= {"label2id": {"POSITIVE": 0, "NEGATIVE": 1}}
    reordered = copy_with(plain, tmp_path / "reordered", **names)
    tensors = load_file(reordered / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = tensors[name].flip(0)
    save_file(tensors, reordered / "model.safetensors", metadata={"format": "pt"})
    right = []
    for folder in (plain, reordered):
        study = own(tiny_bert, folder)
        outputs = predict_logits(study.classifier("SST-2"), study.batches("SST-2", 20))
        right.append(judged(outputs, study.labels("SST-2", 20))["right"][1])
    np.testing.assert_array_equal(*right)


def copy_with(folder, target, **changes):
    """A copy of a model with another configuration."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text()) | changes
    (target / "config.json").write_text(json.dumps(config))
    return target


def status(**given):
    """How a check of notebook 6 with these parameters ends."""
    parameters = [part for pair in given.items() for part in ("-p", *map(str, pair))]
    return cli.main(["check", "--only", "6", *parameters])


def test_it_must_fit_the_task_and_the_model(tiny_bert, tiny_classifier, tmp_path, capsys):
    names = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}
    named = copy_with(tiny_classifier, tmp_path / "named", **names)
    other = copy_with(tiny_classifier, tmp_path / "other", vocab_size=99)
    refused = [
        (f"mnli={tiny_classifier}", {}, "the outputs ['LABEL_0', 'LABEL_1'], by id2label"),
        (f"stsb={tiny_classifier}", {}, "STS-B wants one score"),
        (f"rte={tiny_classifier}", {"model": BERT_BASE}, "its num_hidden_layers is 3"),
        (f"rte={tiny_bert}", {}, "no classification layer (architecture: BertModel)"),
        (f"rte={named}", {}, "the outputs ['yes', 'no']"),
        (f"rte={tiny_classifier},RTE={tiny_classifier}", {}, "rte is given twice"),
        (f"rte={other}", {}, "its vocab_size is 99"),
        (f"qqp={tiny_classifier}", {"tasks": "rte,mnli"}, "qqp is none of the tasks rte, mnli"),
    ]
    for checkpoint, given, message in refused:
        usual = {"study": "colab", "model": tiny_bert, "tasks": checkpoint.split("=")[0]}
        assert status(**usual | given, checkpoint=checkpoint) == 2
        assert message in capsys.readouterr().err, checkpoint


def of_other_words(folder):
    content = json.loads((file := folder / "tokenizer.json").read_text())
    known = content["model"]["vocab"]
    content["model"]["vocab"] = dict(zip(reversed([*known]), known.values(), strict=True))
    file.write_text(json.dumps(content))


def lower_case(folder):
    content = json.loads((file := folder / "tokenizer_config.json").read_text())
    file.write_text(json.dumps(content | {"do_lower_case": False}))


@pytest.mark.parametrize("change", [lower_case, of_other_words], ids=["capitals", "words"])
def test_one_with_another_tokenizer_is_refused(
    tiny_bert, tiny_classifier, tmp_path, change, capsys
):
    """It would read other words than it was trained on; that of the model is taken."""
    other = copy_with(tiny_classifier, tmp_path / "other")
    change(other)
    given = {"study": "small", "tasks": "sst2", "model": tiny_bert, "checkpoint": f"sst2={other}"}
    assert status(**given) == 2
    assert "its own tokenizer makes other tokens than the model's" in capsys.readouterr().err
    for file in other.glob("tokenizer*"):  # it comes without one
        file.unlink()
    assert status(**given) == 0


# A regression's scale


def regression(encoder, target, to):
    """Save a classifier of STS-B that is fitted to the study's labels, brought to another scale."""
    study = Study.of("small", "stsb", model=str(encoder))
    model, batches = load_classifier(str(encoder), "stsb"), study.batches("STS-B", 64)
    vectors = classifier_inputs(model, batches)
    vectors = np.column_stack([vectors, np.ones(len(vectors))])
    fitted, *_ = np.linalg.lstsq(vectors, to(study.labels("STS-B", 64)))
    with torch.no_grad():
        model.classifier.weight[0] = torch.from_numpy(fitted[:-1])
        model.classifier.bias[0] = fitted[-1]
    model.save_pretrained(target)
    return model, batches


def logit(labels):
    clipped = labels.clip(0.03, 0.97)
    return np.log(clipped / (1 - clipped))


@pytest.mark.parametrize(
    ("to", "back"),
    [
        (lambda labels: labels, lambda outputs: outputs),
        (lambda labels: 5 * labels, lambda outputs: outputs / 5),
        (logit, lambda outputs: 1 / (1 + np.exp(-outputs))),
    ],
    ids=["0 to 1", "0 to 5", "logits"],
)
def test_a_regression_answers_from_0_to_1_whatever_scale_it_was_trained_on(
    tiny_bert, tmp_path, to, back, capsys
):
    raw, batches = regression(tiny_bert, tmp_path, to)
    study = Study.of("small", "stsb", model=str(tiny_bert), checkpoint=f"stsb={tmp_path}")
    expected, model = back(predict_logits(raw, batches)), study.classifier("STS-B")
    np.testing.assert_allclose(predict_logits(model, batches), expected, atol=1e-6)
    labels = study.labels("STS-B", 64)
    assert judged(expected, labels)["loss"][1].mean() < 0.8 * labels.var()
    found = sweep(model, batches)  # the fast way as well
    assert "not known to the fast sweep" not in capsys.readouterr().err
    np.testing.assert_allclose(found.baseline, expected, atol=1e-5)


def test_a_regression_on_no_known_scale_is_refused_by_check(tiny_bert, tmp_path, capsys):
    regression(tiny_bert, tmp_path, lambda labels: -labels)
    checkpoint = f"stsb={tmp_path}"
    assert status(study="small", tasks="stsb", model=tiny_bert, checkpoint=checkpoint) == 2
    assert "fits the labels on none of the scales 0 to 1, 0 to 5, logits" in capsys.readouterr().err
