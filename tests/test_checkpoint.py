"""A person's own fine-tuned classifier takes the place of a training, if it fits."""

import json
import shutil
from functools import partial

import numpy as np
import pytest
import torch
from conftest import random_classifier
from safetensors.torch import load_file, save_file

from bertology_utils.disabling.effects import sweep_run
from bertology_utils.glue import TASKS
from bertology_utils.lab import Lab
from bertology_utils.run import find_notebooks
from bertology_utils.settings import resolve


def test_it_is_taken_as_it_is(tiny_bert, tiny_classifier, monkeypatch):
    monkeypatch.setattr(
        "bertology_utils.finetune.finetuned", lambda _: pytest.fail("a training was started")
    )
    lab = Lab(
        "6_disabling_heads",
        model=str(tiny_bert),
        checkpoint=f"SST-2={tiny_classifier}",
        tasks="sst2,mrpc",
        sweep_examples=4,
    )
    found, expected = (
        lab.finetuned(TASKS["sst2"]).state_dict(),
        load_file(tiny_classifier / "model.safetensors"),
    )
    assert all(torch.equal(found[name].cpu(), value) for name, value in expected.items())
    assert sweep_run(lab, TASKS["sst2"]).heads.shape == (3, 4, 4, 2)
    assert lab.settings.trainings_of(TASKS["sst2"]) == 1
    for wanted in (lab.finetuned, partial(sweep_run, lab)):
        with pytest.raises(ValueError, match="the only run is the checkpoint"):
            wanted(TASKS["sst2"], seed_offset=1)
    for other in (
        {"task": TASKS["mrpc"]},
        {"task": TASKS["sst2"], "init": "normal"},
    ):  # these are trained as ever
        with pytest.raises(pytest.fail.Exception, match="a training was started"):
            lab.finetuned(**other)
    assert set(lab.settings.as_json()["checkpoints"]) == {"sst2"}


def test_answers_are_predicted_once_and_say_what_was_learned(
    tiny_bert, tiny_classifier, monkeypatch
):
    lab = Lab(
        "4_feature_attention",
        model=str(tiny_bert),
        checkpoint=f"SST-2={tiny_classifier}",
        tasks="sst2",
    )
    task = TASKS["sst2"]
    assert list(lab.trainings(task)) == [0] and list(lab.trainings(TASKS["rte"])) == [0, 1]
    answers = lab.answers(task)
    np.testing.assert_array_equal(answers, lab.predictions(lab.finetuned(task), task))
    monkeypatch.setattr(lab, "finetuned", lambda *_: pytest.fail("predicted again"))
    np.testing.assert_array_equal(lab.answers(task), answers)
    assert lab.learned == {task: False}, "random weights"


def test_the_score_does_not_hang_on_the_order_in_which_its_outputs_stand(tiny_bert, tmp_path):
    plain = tmp_path / "plain"
    random_classifier(tiny_bert, "sst2").save_pretrained(plain)
    reordered = shutil.copytree(plain, tmp_path / "reordered")
    tensors = load_file(reordered / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = tensors[name].flip(0)
    save_file(tensors, reordered / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((reordered / "config.json").read_text())
    config |= {"id2label": {0: "POSITIVE", 1: "NEGATIVE"}}
    config |= {"label2id": {"POSITIVE": 0, "NEGATIVE": 1}}
    (reordered / "config.json").write_text(json.dumps(config))
    answers = []
    for folder in (plain, reordered):
        checkpoint = f"SST-2={folder}"
        lab = Lab("6_trial", model=str(tiny_bert), checkpoint=checkpoint, tasks="sst2")
        answers.append(lab.answers(TASKS["sst2"]))
    np.testing.assert_array_equal(*answers)


def test_it_must_fit_the_task_and_the_model(tiny_bert, tiny_classifier, tmp_path):
    def refused(checkpoint, **parameters):
        with pytest.raises(ValueError) as error:  # noqa: PT011, the message is looked at below
            resolve(**{"model": str(tiny_bert), "checkpoint": checkpoint} | parameters)
        return str(error.value)

    assert "2 outputs; MNLI-m wants 3: entailment, neutral, contradiction" in refused(
        f"mnli={tiny_classifier}"
    )
    assert "2 outputs; STS-B wants 1: the score" in refused(f"stsb={tiny_classifier}")
    assert "its num_hidden_layers is 3, that of the model 'embedded' is 6" in refused(
        f"rte={tiny_classifier}", model=""
    )
    assert "num_hidden_layers is 3" in refused(
        f"rte={tiny_classifier}", model="google-bert/bert-base-uncased"
    )
    assert "no classification layer (architecture: BertModel)" in refused(f"rte={tiny_bert}")
    named = shutil.copytree(tiny_classifier, tmp_path / "named")
    config = json.loads((named / "config.json").read_text())
    names = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}
    (named / "config.json").write_text(json.dumps(config | names))
    assert "the outputs ['yes', 'no']" in refused(f"rte={named}")
    assert "rte is given twice" in refused(f"rte={tiny_classifier},RTE={tiny_classifier}")
    assert "unknown task 'cola'" in refused(f"cola={tiny_classifier}")
    assert "there is one training only" in refused(f"rte={tiny_classifier}", trainings=2)

    broken = shutil.copytree(tiny_classifier, tmp_path / "broken")
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps(config | {"vocab_size": 99}))
    assert "its vocab_size is 99" in refused(f"rte={broken}")
    (broken / "config.json").write_text("[]")
    assert "config.json describes no model" in refused(f"rte={broken}")
    (broken / "config.json").write_text(json.dumps(config))
    (broken / "model.safetensors").write_bytes(
        (tiny_classifier / "model.safetensors").read_bytes()[:-8]
    )
    assert "cut off" in refused(f"rte={broken}")
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    assert "lacks model.safetensors" in refused(f"rte={broken}")


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
    assert told("mrpc,mnli", **own) == (2, {"mrpc": 5, "mnli": 2})
    assert told("mrpc,mnli", trainings=3, **own) == (3, None)


def test_notebooks_that_train_again_whatever_is_given_take_none():
    takes = {one.number for one in find_notebooks() if "checkpoint" in one.parameters}
    assert takes & {"3", "3a", "9", "9a", "10", "10a"} == set()
    assert {"1", "4", "5", "6", "7"} <= takes
