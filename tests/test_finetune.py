"""A fine-tuning run: the recipe, early refusals, resuming after a kill, what it is kept under."""

import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import make_rows

from bertology_utils import cache, finetune, models, settings
from bertology_utils.batches import make_batches, tokenize
from bertology_utils.glue import TASKS
from bertology_utils.models import load_tokenizer, predict_logits
from bertology_utils.settings import ModelSource, Recipe, parse_model
from bertology_utils.study import Study

RECIPE = Recipe(learning_rate=3e-3, epochs=2, batch_size=8, max_length=32)
LONGER = RECIPE.model_copy(update={"epochs": 4})
KIND = "classifiers"


def training(tiny_bert, task="sst2", rows=None, **changes):
    values = {"source": parse_model(str(tiny_bert)), "recipe": RECIPE, "on_cpu": "float32"}
    rows = make_rows(TASKS[task]) if rows is None else rows
    return finetune.Training(TASKS[task], rows=rows, **values | changes)


def trained(job):
    """The folder of the classifier, kept under what these tests change."""
    key = {"task": job.task.name, "seed": job.seed, "cut": str(job.cut)}
    return cache.artefact(KIND, key, lambda target, scratch: finetune.train(job, target, scratch))


def finetuned(job):
    source = ModelSource(job.name, str(trained(job)))
    return models.load_classifier(source, job.task, "finetuned")


def entries(folder):
    return sorted(p for p in (folder / KIND).iterdir() if p.is_dir())


@pytest.mark.parametrize("task", ["mnli", "stsb"])
def test_learns_what_the_first_word_gives_away(tiny_bert, task):
    longer = RECIPE.model_copy(update={"epochs": 6})
    job = training(tiny_bert, task, make_rows(TASKS[task], 256), recipe=longer)
    model, tokenizer = finetuned(job), models.load_tokenizer(job.source)
    rows = make_rows(job.task, 120, seed=9)
    logits = predict_logits(model, make_batches(tokenize(rows, job.task, tokenizer, 32), tokenizer))
    labels = np.array(rows["label"][:])
    if task == "stsb":
        assert np.corrcoef(logits[:, 0], labels)[0, 1] > 0.5
    else:
        assert (logits.argmax(axis=1) == labels).mean() > 0.8


def test_same_seed_same_weights_other_seed_others(tiny_bert, monkeypatch, tmp_path):
    first = finetuned(training(tiny_bert))
    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path / "another"))
    again, other = (finetuned(training(tiny_bert, seed=seed)) for seed in (1, 2))
    assert all(map(torch.equal, first.parameters(), again.parameters()))
    assert not torch.equal(first.classifier.weight, other.classifier.weight)


def test_everything_that_matters_is_in_the_key(tiny_bert, tmp_path, monkeypatch):
    def key(run=1, start="pre-trained", edited="", **entries):
        folder = tmp_path / "SST-2"
        folder.mkdir(exist_ok=True)
        for name in ("train", "dev"):
            lines = [f"{name} {number}\t{number % 2}" for number in range(30)]
            lines = ["sentence\tlabel", *lines, f"the last of {name}{edited}\t0"]
            (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        keys = []
        monkeypatch.setattr("bertology_utils.study.artefact", lambda _, key, fill: keys.append(key))
        usual = {"model": str(tiny_bert), "data": f"folder:{tmp_path}", "annotation": "spacy:numpy"}
        study = Study.of("small", "sst2", **usual | {"train_rows": 10} | entries)
        study._finetuned("SST-2", run, start)
        return cache.key_digest(keys[0])

    base = key()
    assert key() == base
    recipes = {"learning_rate": 1e-3, "epochs": 2, "batch_size": 4, "warmup": 0.0, "max_length": 16}
    changes = [{"run": 2}, {"start": "random"}, {"seed": 7}, {"train_rows": 11}]
    changes += [{"recipe": {name: value}} for name, value in recipes.items()]
    changes += [{"model": "embedded"}, {"edited": "!", "train_rows": -1}]
    others = [key(**change) for change in changes] + [key(train_rows=-1)]
    assert len({base, *others}) == 1 + len(others)


def test_a_task_after_another_begins_with_its_encoder(tiny_bert, monkeypatch):
    entries = settings.STUDIES["small"] | {"after": {"mrpc": "sst2"}, "model": str(tiny_bert)}
    monkeypatch.setitem(settings.STUDIES, "small", entries | {"train_rows": 40})
    begun, train = [], finetune.train
    monkeypatch.setattr(
        finetune, "train", lambda job, *places: begun.append(job) or train(job, *places)
    )
    study = Study.of("small", "mrpc,sst2")
    study.classifier("MRPC")
    assert [job.task.name for job in begun] == ["sst2", "mrpc"]
    assert begun[1].source.location == str(study._finetuned("SST-2", 1, "pre-trained"))
    del begun[:]
    study.classifier("MRPC", start="random")
    assert [job.task.name for job in begun] == ["mrpc"], "random weights come after nothing"


def test_no_rows_and_one_class_are_refused_before_any_work(tiny_bert, monkeypatch):
    monkeypatch.setattr(finetune, "load_classifier", lambda *_: pytest.fail("work was begun"))
    rows = make_rows(TASKS["sst2"])
    with pytest.raises(ValueError, match="SST-2: no training rows"):
        finetuned(training(tiny_bert, rows=rows.select([])))
    with pytest.raises(ValueError, match="all 32 training rows have the label 1"):
        finetuned(training(tiny_bert, rows=rows.filter(lambda row: row["label"] == 1)))


def test_rows_that_the_model_cannot_read_are_refused_before_the_first_step(tiny_bert, tmp_path):
    folder = shutil.copytree(tiny_bert, tmp_path / "grown")
    tokenizer = load_tokenizer(str(folder))
    tokenizer.add_tokens(["goodish"])
    tokenizer.save_pretrained(folder)
    rows = make_rows(TASKS["sst2"]).map(lambda row: {"sentence": row["sentence"] + " goodish"})
    with pytest.raises(ValueError, match="knows 0 to 30521; take its own tokenizer"):
        finetuned(training(folder, rows=rows))


def test_diverging_loss_stops_with_advice_and_leaves_nothing(tiny_bert, own_cache):
    steep = RECIPE.model_copy(update={"learning_rate": 1e30, "warmup": 0.0, "epochs": 4})
    with pytest.raises(FloatingPointError, match="learning rate below"):
        finetuned(training(tiny_bert, recipe=steep))
    assert all(".unfinished" in p.name for p in entries(own_cache))


_JOB = """
import itertools
import time
from types import SimpleNamespace
from test_finetune import LONGER, trained, training
from bertology_utils import finetune
from transformers import Trainer, TrainerCallback

if not {between}:  # ten minutes pass between two looks at the clock; a key follows constants, not the clock
    finetune.time = SimpleNamespace(monotonic=itertools.count(step=600).__next__)

class Pace(TrainerCallback):  # slow enough to be killed in the middle
    def on_step_end(self, args, state, control, **kwargs):
        print("step", state.global_step, flush=True)
        time.sleep({pause})

train = Trainer.train
Trainer.train = lambda self, **keywords: (self.add_callback(Pace()), train(self, **keywords))
for name in ("sst2", "rte"):
    trained(training({model!r}, name, recipe=LONGER))
    print("finished", name, flush=True)
"""


def start_job(tiny_bert, folder, pause, between=600):
    code = _JOB.format(model=str(tiny_bert), pause=pause, between=between)
    environment = os.environ | {"BERTOLOGY_CACHE": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )


def kill_at(job, step):
    """kill -9 at a step of the second training; returns what was said until then."""
    lines = []
    for line in job.stdout:
        lines.append(line.strip())
        if "finished sst2" in lines and line.strip() == f"step {step}":
            os.kill(job.pid, signal.SIGKILL)
            break
    assert job.wait() == -signal.SIGKILL
    return lines


def test_killed_in_the_middle_then_again(tiny_bert, tmp_path, monkeypatch):
    """kill -9 in the second of two trainings: the first is kept, the second goes on where it was saved."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kill_at(start_job(tiny_bert, killed, pause=0.05), 12)
    done = [p for p in entries(killed) if ".unfinished" not in p.name]
    assert len(done) == 1
    assert cache.verified(done[0])
    stamp = (done[0] / "model.safetensors").stat().st_mtime_ns

    # Again, now within an epoch of 8 steps and with a point to resume from after every step.
    lines = kill_at(start_job(tiny_bert, killed, pause=0.05, between=0), 22)
    assert "step 8" not in lines, "neither training began anew"
    assert lines.index("finished sst2") < lines.index("step 9"), "on from the end of an epoch"
    output = start_job(tiny_bert, killed, pause=0, between=0).communicate()[0].splitlines()
    steps = [line for line in output if line.startswith("step")]
    assert steps[0] in ("step 22", "step 23"), "it goes on within an epoch"
    assert (done[0] / "model.safetensors").stat().st_mtime_ns == stamp
    assert not [p for p in entries(killed) if ".unfinished" in p.name]

    monkeypatch.setenv("BERTOLOGY_CACHE", str(whole))
    for name in ("sst2", "rte"):
        trained(training(tiny_bert, name, recipe=LONGER))
    for ours, theirs in zip(entries(killed), entries(whole), strict=True):
        assert ours.name == theirs.name
        manifests = [(one / cache.MANIFEST).read_text() for one in (ours, theirs)]
        assert json.loads(manifests[0]) == json.loads(manifests[1])
