"""Nothing hangs on the CPU: every measurement, fine-tuning and sweeps included, on a device that is not the CPU."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import ROOT, make_bert, python

from bertology_utils import common

RUN = ROOT / "tests" / "second_device_run.py"
UNSTEADY = {"order"}  # of heads: one rounding changes all that follows


def test_every_measurement_is_the_same_on_another_device(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    runs = {}
    for device in ("cpu", "second"):
        make_bert((folder := tmp_path / device) / "model", layers=3, heads=4, hidden=32)
        command = [sys.executable, str(RUN), device, str(folder)]
        with (folder / "output").open("w") as out:
            runs[device] = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    for device, run in runs.items():
        assert run.wait(timeout=1800) == 0, (tmp_path / device / "output").read_text()[-3000:]
    (here,), (there,) = ((tmp_path / device).glob("small-*") for device in runs)
    files = sorted(path.relative_to(here) for path in here.rglob("*.nc"))
    assert len(files) > 25
    assert files == sorted(path.relative_to(there) for path in there.rglob("*.nc"))
    for file in files:
        one, other = (xr.load_dataset(folder / file, engine="h5netcdf") for folder in (here, there))
        for name, values in one.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(values, other[name], atol=2e-3, err_msg=f"{file} {name}")
            elif name not in UNSTEADY:
                assert (values != other[name]).mean() < 0.02, (file, name)


REFUSED = {
    "torch.ones(2, device='second') + torch.ones(2)": "all tensors have to be on second:0",
    "torch.ones(2, 2)[torch.tensor([0, 1]).to('second')]": "all tensors have to be on second:0",
    "torch.ones(2, device='second').numpy()": "numpy",
    "torch.randn(2, device='second', generator=torch.Generator())": "a generator of second is",
}


def test_the_second_device_refuses_what_a_gpu_refuses():
    done = python(f"""
import pytest, second_device, torch
second_device.register()
y = torch.arange(6.).reshape(2, 3).to("second")
y[:, 1] = 7
assert y.device.type == "second" and y.sum(dim=1).tolist() == [9, 15]
for code, problem in {REFUSED}.items():
    with pytest.raises((RuntimeError, TypeError), match=problem):
        eval(code)
""")
    assert done.returncode == 0, done.stderr


def test_two_devices_and_a_default_device_change_nothing(tmp_path):
    make_bert(tmp_path / "one", layers=3, heads=4, hidden=32)
    make_bert(tmp_path / "other", layers=3, heads=4, hidden=32, seed=1)
    done = python(f"""
import second_device, torch
second_device.register()
from bertology_utils import *
from bertology_utils.glue import EMBEDDED
from bertology_utils.sinks import exchange_lengths, random_order
one, other, tokenizer = load_encoder("{tmp_path}/one"), load_encoder("{tmp_path}/other"), load_tokenizer("{tmp_path}/one")
texts = ["It rains.", "The king reads it all in one day."]
def all_of():
    (batch,) = batches_of(texts, tokenizer)
    lengths = torch.arange(float(batch.mask.numel())).reshape(2, 1, -1)
    norm = attention_maps(one, batch, "norm")[1].cpu()
    heads = head_dependencies(one, tokenizer, EMBEDDED / "MRPC" / "dev.conllu.gz", relations="det")
    shares = torch.tensor(heads["head: share of arcs"].to_numpy().copy(), device="cpu")
    exchanged = exchange_lengths(0, lengths, batch, 1).cpu(), random_order(batch, 2, lambda at: (at,)).cpu()
    return norm, shares, *exchanged, torch.from_numpy(map_similarity(one, other, [batch]))
def equal(found):
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.float(), theirs.float(), atol=1e-5, rtol=0)
expected = all_of()
for moved in (one, other):
    moved.to("second:0")
    equal(all_of())
torch.set_default_device("second:0")
equal(all_of())
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("named", ["tpu", "mps", "cuda:1"])
def test_a_device_that_cannot_be_used_is_refused_in_words(monkeypatch, named):
    monkeypatch.setenv(common.DEVICE_VARIABLE, named)
    with pytest.raises(ValueError, match=f"BERTOLOGY_DEVICE='{named}' cannot be used. Choose cpu"):
        common.device()


def test_the_cpu_can_be_asked_for_where_there_is_a_gpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setenv(common.DEVICE_VARIABLE, "cpu")
    assert common.device() == torch.device("cpu")
    for has_it, number_format in (({"avx512_bf16": True}, "bf16"), ({}, "float32")):
        monkeypatch.setattr("torch.cpu.get_capabilities", lambda has_it=has_it: has_it)
        assert common.precision("bf16") == number_format and common.precision() == "float32"
