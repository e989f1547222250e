"""Same seed, other kernels and thread counts: the same digits, but for rounding.

A training is repeated under each setting, from nothing. Adam's ε of 1e-6 keeps
rounding from being blown up: with 1e-8 the outputs differed by 0.09 between
AVX2 and AVX-512, with 1e-6 by 3e-6 (60 steps).
"""

import json
import os
import subprocess
import sys

import pytest

TOLERANCE = 1e-4  # of a logit; a dev example changes sides only if two logits are closer than that

TRAIN = """
import json, sys
from bertology_utils.quiet import quiet
quiet()
import torch
torch.set_num_threads(int(sys.argv[1]))
from bertology_utils import batches, finetune, loading, models
from bertology_utils.evaluate import predict_logits
from bertology_utils.profiles import PROFILES
from bertology_utils.sources import parse_data, parse_model
from bertology_utils.tasks import TASKS

task, source, data = TASKS["sst2"], parse_model("embedded"), parse_data("embedded")
rows = loading.sample(loading.load_rows(task, "train", data), 256, seed=1)
model = finetune.finetuned(finetune.Training(task, source, rows, PROFILES["embedded"].recipe))
tokenizer = models.load_tokenizer(source)
inputs = batches.tokenize(loading.load_rows(task, "dev", data), task, tokenizer, 64)
print(json.dumps(predict_logits(model, batches.make_batches(inputs, tokenizer)).tolist()))
"""


def outputs(folder, threads=2, capability=None):
    environment = os.environ | {"BERTOLOGY_CACHE": str(folder)}
    environment |= {"ATEN_CPU_CAPABILITY": capability} if capability else {}
    result = subprocess.run(
        [sys.executable, "-c", TRAIN, str(threads)], capture_output=True, text=True, env=environment, check=True
    )
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return outputs(tmp_path_factory.mktemp("reference"))


@pytest.mark.parametrize(("threads", "capability"), [(2, None), (1, None), (2, "avx2"), (1, "avx2")])
def test_training_gives_the_same_outputs(reference, tmp_path, threads, capability):
    found = outputs(tmp_path, threads, capability)
    differences = [abs(a - b) for row, other in zip(found, reference, strict=True) for a, b in zip(row, other, strict=True)]
    if (threads, capability) == (2, None):
        assert max(differences) == 0, "the same environment gives the same digits"
    assert max(differences) < TOLERANCE
    assert max(abs(value) for row in reference for value in row) > 0.1, "something was learnt"
