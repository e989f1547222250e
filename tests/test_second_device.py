"""Nothing hangs on the CPU: every cell of every notebook, trainings and sweeps included, on a device that is not the CPU."""

import os
import subprocess
import sys

import pytest
import torch
from conftest import ROOT, make_bert, python

from bertology_utils import common
from bertology_utils.results import RESULTS, Results, moved, read_results
from bertology_utils.verdicts import CLAIMS

RUN = ROOT / "tests" / "second_device_run.py"


def test_every_cell_runs_on_another_device_to_the_same_results(tmp_path):
    # Pages that compute on measurements have no model of their own to move.
    pages = sorted((ROOT / "notebooks").glob("*.ipynb"))
    notebooks = [page for page in pages if '"study = ' not in page.read_text(encoding="utf-8")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] += f"{os.pathsep}{ROOT / 'benchmarks'}"
    runs = {}
    for device in ("cpu", "second"):
        make_bert((folder := tmp_path / device) / "model", layers=3, heads=4, hidden=32)
        command = [sys.executable, str(RUN), device, str(folder), *map(str, notebooks)]
        with (folder / "output").open("w") as out:
            runs[device] = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    for device, run in runs.items():
        assert run.wait(timeout=1800) == 0, (tmp_path / device / "output").read_text()[-3000:]
    written = [path.parent.name for path in tmp_path.glob("cpu/*/results.json")]
    assert len(written) == len(notebooks)
    for name in written:
        here, there = (read_results(tmp_path / device / name / RESULTS) for device in runs)
        rows = Results({**here.content, "rows": there.entries})
        assert moved(here, rows) == [], name
        if (number := int(name.partition("_")[0])) in (2, 9, 10, 11):
            judged = {verdict["id"] for verdict in here.content["verdicts"]}
            assert judged == {one for one, claim in CLAIMS.items() if claim.notebook == number}


ONE, THERE = "all tensors have to be on second:0", "torch.ones(2, device='second')"
REFUSED = {
    f"{THERE} + torch.ones(2)": ONE,
    "torch.ones(2, 2)[torch.tensor([0, 1]).to('second')]": ONE,
    f"{THERE}.numpy()": "numpy",
    "torch.randn(2, device='second', generator=torch.Generator())": "a generator of second is",
}


def test_the_second_device_computes_what_the_cpu_computes_and_refuses_what_a_gpu_refuses():
    done = python(f"""
import second_device, torch
second_device.register()
x = torch.arange(6.).reshape(2, 3); y = x.to("second")
assert y.device.type == "second" and torch.equal((y @ y.T).cpu(), x @ x.T)
y[:, 1] = 7; assert y.sum(dim=1).tolist() == [9, 15] and x[0, 1] == 1
assert torch.ones(2, 2, device="second")[torch.tensor([1])].shape == (1, 2)
for code, problem in {REFUSED}.items():
    try:
        eval(code)
    except Exception as error:
        assert problem in str(error), (code, error)
    else:
        raise AssertionError(code)
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
    for has_it, number_format in ((True, "bf16"), (False, "float32")):
        monkeypatch.setattr(
            "torch.cpu.get_capabilities", lambda has_it=has_it: {"avx512_bf16": has_it}
        )
        assert common.precision("bf16") == number_format and common.precision() == "float32"
