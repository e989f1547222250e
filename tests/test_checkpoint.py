"""A person's own fine-tuned classifier takes the place of a training, if it fits."""

import json
import re
import shutil

import numpy as np
import pytest
import torch
from conftest import random_classifier
from safetensors.torch import load_file, save_file

from bertology_utils.glue import TASKS, predictions
from bertology_utils.hub import BERT_BASE
from bertology_utils.lab import Lab
from bertology_utils.models import predict_logits
from bertology_utils.run import find_notebooks
from bertology_utils.settings import resolve


def test_it_is_taken_as_it_is(tiny_bert, tiny_classifier, monkeypatch):
    monkeypatch.setattr(
        "bertology_utils.finetune.finetuned", lambda _: pytest.fail("a training was started")
    )
    given = {"model": str(tiny_bert), "checkpoint": f"SST-2={tiny_classifier}"}
    lab = Lab("4_feature_attention", **given, tasks="sst2,mrpc", sweep_examples=4)
    found = lab.finetuned(TASKS["sst2"]).state_dict()
    expected = load_file(tiny_classifier / "model.safetensors")
    assert all(torch.equal(found[name].cpu(), value) for name, value in expected.items())
    assert lab.settings.trainings_of(TASKS["sst2"]) == 1
    with pytest.raises(ValueError, match="the only run is the checkpoint"):
        lab.finetuned(TASKS["sst2"], seed_offset=1)
    # These are trained as ever.
    for other in ({"task": TASKS["mrpc"]}, {"task": TASKS["sst2"], "init": "normal"}):
        with pytest.raises(pytest.fail.Exception, match="a training was started"):
            lab.finetuned(**other)
    assert set(lab.settings.as_json()["checkpoints"]) == {"sst2"}


def test_answers_are_predicted_once_and_say_what_was_learned(
    tiny_bert, tiny_classifier, monkeypatch
):
    given = {"model": str(tiny_bert), "checkpoint": f"SST-2={tiny_classifier}"}
    lab = Lab("4_feature_attention", **given, tasks="sst2")
    task = TASKS["sst2"]
    assert list(lab.trainings(task)) == [0] and list(lab.trainings(TASKS["rte"])) == [0, 1]
    answers = lab.answers(task)
    np.testing.assert_array_equal(
        answers, predictions(task, predict_logits(lab.finetuned(task), lab.batches(task, "dev")))
    )
    monkeypatch.setattr(lab, "finetuned", lambda *_: pytest.fail("predicted again"))
    np.testing.assert_array_equal(lab.answers(task), answers)
    assert lab.learned == {task: False}, "random weights"


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
    answers = []
    for folder in (plain, reordered):
        checkpoint = f"SST-2={folder}"
        lab = Lab("6_trial", model=str(tiny_bert), checkpoint=checkpoint, tasks="sst2")
        answers.append(lab.answers(TASKS["sst2"]))
    np.testing.assert_array_equal(*answers)


def copy_with(folder, target, **changes):
    """A copy of a model with another configuration."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text()) | changes
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_it_must_fit_the_task_and_the_model(tiny_bert, tiny_classifier, tmp_path):
    names = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}
    named = copy_with(tiny_classifier, tmp_path / "named", **names)
    other = copy_with(tiny_classifier, tmp_path / "other", vocab_size=99)
    refused = [
        (f"mnli={tiny_classifier}", {}, "the outputs ['LABEL_0', 'LABEL_1'], by id2label"),
        (f"stsb={tiny_classifier}", {}, "STS-B wants one score"),
        (f"rte={tiny_classifier}", {"model": ""}, "is 3, that of the model 'embedded' is 6"),
        (f"rte={tiny_classifier}", {"model": BERT_BASE}, "its num_hidden_layers is 3"),
        (f"rte={tiny_bert}", {}, "no classification layer (architecture: BertModel)"),
        (f"rte={named}", {}, "the outputs ['yes', 'no']"),
        (f"rte={tiny_classifier},RTE={tiny_classifier}", {}, "rte is given twice"),
        (f"cola={tiny_classifier}", {}, "unknown task 'cola'"),
        (f"rte={tiny_classifier}", {"trainings": 2}, "there is one training only"),
        (f"rte={other}", {}, "its vocab_size is 99"),
        (f"qqp={tiny_classifier}", {"tasks": "rte,mnli"}, "qqp is none of the tasks mnli, rte"),
    ]
    for checkpoint, given, message in refused:
        usual = {"model": str(tiny_bert), "data": "hub", "tasks": checkpoint.split("=")[0]}
        with pytest.raises(ValueError, match=re.escape(message)):
            resolve(**usual | {"checkpoint": checkpoint} | given)
    both = usual | {"tasks": "qqp,rte", "checkpoint": f"qqp={tiny_classifier}"}
    assert resolve(**both, trainings=3).trainings_of(TASKS["rte"]) == 3


def test_results_name_the_number_of_trainings_of_each_task_where_they_differ(
    tiny_bert, tiny_classifier
):
    def told(tasks, **given):
        own = {"model": str(tiny_bert), "checkpoint": f"sst2={tiny_classifier}"}
        said = resolve(**{"tasks": tasks} | own | given).as_json()
        return said["trainings"], said.get("trainings_by_task")

    assert told("sst2,mrpc") == (2, {"sst2": 1, "mrpc": 2})
    assert told("sst2") == (1, None)
    assert told("sst2,mrpc", trainings=1) == (1, None)
    assert told("sst2,mrpc", checkpoint="") == (2, None)
    own = {"profile": "glue", "checkpoint": "", "model": ""}
    assert told("mrpc,mnli", **own) == (3, {"mrpc": 5, "mnli": 3})
    assert told("mrpc,mnli", trainings=3, **own) == (3, None)


def test_notebooks_that_train_again_whatever_is_given_take_none():
    takes = {one.number for one in find_notebooks() if "checkpoint" in one.parameters}
    assert takes & {"10"} == set()
    assert {"1", "4", "5", "6", "7"} <= takes
