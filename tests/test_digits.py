"""Same seed, another machine: the same digits, but for rounding.

A training is repeated under each setting, from nothing (the same machine gives the
same weights: test_finetune.py). Adam's ε of 1e-6 keeps
rounding from being blown up: with 1e-8 the outputs differed by 0.09 between
AVX2 and AVX-512, with 1e-6 by 3e-6 (60 steps).
"""

import json
import os

import numpy as np
from conftest import ROOT, python

# Of a logit; a dev example changes sides only if two logits are closer than that. Starts moved by
# one part in a million and older kernels changed trained logits by 1.6e-4 at most.
TOLERANCE = 5e-4
# Seed of the noise on the initial weights (see tests/machines), threads, kernels.
MACHINES = {
    "two threads, another start": "OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive BERTOLOGY_NOISE=1",
    "old kernels": "OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41"
    " MKL_CBWR=COMPATIBLE MKL_ENABLE_INSTRUCTIONS=SSE4_2",
}

TRAIN = """
import json
from test_finetune import finetuned, training
from bertology_utils import batches, glue, models
from bertology_utils.settings import Recipe, parse_data
task, data = glue.TASKS["sst2"], parse_data("embedded")
rows = glue.load_rows(task, "train", data).select(range(128))
recipe = Recipe(learning_rate=5e-4, batch_size=16, max_length=64)
job = training("embedded", rows=rows, recipe=recipe)
tokenizer = models.load_tokenizer(job.source)
inputs = batches.tokenize(glue.load_rows(task, "dev", data), task, tokenizer, 64)
made = batches.make_batches(inputs, tokenizer)
print(json.dumps(models.predict_logits(finetuned(job), made).tolist()))
"""


def outputs(folder, machine):
    environment = os.environ | dict(one.split("=") for one in machine.split())
    path = [str(ROOT / "tests" / "machines"), environment["PYTHONPATH"]]
    environment |= {"PYTHONPATH": os.pathsep.join(path), "BERTOLOGY_CACHE": str(folder)}
    return json.loads(python(TRAIN, env=environment, check=True).stdout.splitlines()[-1])


def test_training_gives_the_same_outputs_on_other_machines(tmp_path):
    reference = outputs(tmp_path / "this", "OMP_NUM_THREADS=1")
    assert np.abs(reference).max() > 0.1, "something was learnt"
    for name, machine in MACHINES.items():
        found = outputs(tmp_path / name, machine)
        largest = np.abs(np.subtract(found, reference)).max()
        assert 0 < largest < TOLERANCE, name  # at 0 the machine was not another one
