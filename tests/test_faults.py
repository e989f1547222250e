"""Faults provoked: what happens, and that nothing is lost. The table of docs/faults.md names these tests and others."""

import errno
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import KEY, ROOT, fill_with, python
from hub_server import BERT, REVISION, LocalHub, told

from bertology_utils import cache
from bertology_utils.common import describe_error


def never(target, scratch):
    pytest.fail("computed again")


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def with_a_small_disk(folder, size, code, *arguments):
    """What a process leaves that sees a disk of this size in a folder, where a machine allows it."""
    folder.mkdir()
    shell = ["unshare", "-Urm", "sh", "-ec"]
    mount = f"mount -t tmpfs -o size={size} tmpfs '{folder}'"
    if not shutil.which("unshare") or subprocess.run([*shell, mount]).returncode:
        pytest.skip("this machine allows no disks of one's own (unshare -Urm)")
    before = [*shell, f'{mount}\nexec "$@"', "sh"]
    run = python(code, *arguments, before=before, timeout=600)
    assert run.returncode == 0, run.stderr
    return run.stdout


# Two runs on one cache


HELD = """
import os, sys, time
from pathlib import Path
from bertology_utils import cache
def fill(target, scratch):
    before = sorted(path.name for path in scratch.iterdir())
    (target / "half").write_text("of the killed one")
    (scratch / f"step-{os.getpid()}").touch()
    if sys.argv[1] == "hang":
        Path(sys.argv[2]).touch()
        time.sleep(600)
    (target / "half").unlink()
    (target / "data.txt").write_text(" ".join(before))
print(cache.artefact("things", {"what": "numbers", "seed": 1}, fill))
"""


def test_a_run_that_is_killed_while_it_holds_a_lock_stops_no_other(tmp_path):
    """The second run waits, goes on from what the first has finished, and mixes nothing of the rest in."""
    call = [sys.executable, "-c", HELD]
    first = subprocess.Popen([*call, "hang", str(tmp_path / "here")])
    try:
        while not (tmp_path / "here").exists():
            assert first.poll() is None
            time.sleep(0.05)
        second = subprocess.Popen([*call, "work", "-"], stdout=-1, text=True)
        with pytest.raises(subprocess.TimeoutExpired):  # it waits
            second.wait(timeout=5)
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
    said, _ = second.communicate(timeout=60)
    folder = cache.artefact("things", KEY, never)
    assert said.strip() == str(folder)
    assert {path.name for path in folder.iterdir()} == {"data.txt", cache.MANIFEST}
    assert (folder / "data.txt").read_text() == f"result step-{first.pid}"


# A full disk


FULL = """
import subprocess, sys
from pathlib import Path
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
import pytest
from conftest import contents
from bertology_utils import cache
from bertology_utils.plots import show
disk, figure, much = Path(sys.argv[1]), plt.figure(), bytes(400_000)
def fill(target, scratch):
    (scratch / "step-1").touch()
    (target / "data.bin").write_bytes(much)
def full():
    return pytest.raises(OSError, match="No space left")
cache.write_atomically(disk / "results.json", b"whole")
show(figure, disk, "picture", "nothing")
before = contents(disk)
assert sorted(before) == ["picture.pdf", "picture.png", "results.json"]
noise = [[hash((x, y)) % 997 for x in range(300)] for y in range(300)]  # more than there is room for
figure.add_axes((0, 0, 1, 1)).imshow(noise)
with full():
    cache.write_atomically(disk / "results.json", much)
with full():
    show(figure, disk, "picture", "much")
assert contents(disk) == before
with full():
    cache.artefact("things", {"a": 1}, fill)
assert not list(disk.glob("cache/things/*/manifest.json"))
subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
assert len(list(disk.glob("cache/things/*/step-1"))) == 1
found = cache.artefact("things", {"a": 1}, fill)
assert (cache.verified(found) / "data.bin").read_bytes() == much
"""


def test_a_full_disk_costs_nothing_that_was_whole(tmp_path, monkeypatch):
    disk = tmp_path / "disk"
    monkeypatch.setenv("BERTOLOGY_CACHE", str(disk / "cache"))
    with_a_small_disk(disk, "160k", FULL, disk)


TRAINING = """
import subprocess, sys
from conftest import make_rows
from bertology_utils import cache, finetune
from bertology_utils.settings import Recipe, parse_model
from bertology_utils.glue import TASKS
from bertology_utils.common import describe_error
recipe = Recipe(learning_rate=3e-3, epochs=3, batch_size=16, max_length=16)
rows = make_rows(TASKS["sst2"], 32)
training = finetune.Training(TASKS["sst2"], parse_model(sys.argv[1]), rows, recipe, on_cpu="float32")
def trained():
    return cache.artefact("classifiers", {}, lambda *places: finetune.train(training, *places))
if len(sys.argv) > 2:
    try:
        trained()
    except Exception as error:
        print("first:", describe_error(error))
    subprocess.run(["mount", "-o", "remount,size=200m", sys.argv[2]], check=True)
print("weights:", cache.file_sha256(trained() / "model.safetensors"))
"""


def test_a_training_on_a_full_disk_goes_on_when_there_is_room_to_the_same_weights(
    tiny_bert, tmp_path, monkeypatch
):
    undisturbed = python(TRAINING, tiny_bert)
    assert undisturbed.returncode == 0, undisturbed.stderr
    disk = tmp_path / "disk"
    monkeypatch.setenv("BERTOLOGY_CACHE", str(disk))
    first, weights = with_a_small_disk(disk, "1m", TRAINING, tiny_bert, disk).splitlines()
    assert first.startswith("first: the disk is full") and weights == undisturbed.stdout.strip()


FULL_DISKS = {  # as the system, safetensors and torch.save say it
    "quota": OSError(errno.EDQUOT, "Disk quota exceeded"),
    "safetensors": Exception("I/O error: No space left on device (os error 28)"),
    "zip": RuntimeError("inline_container.cc:672] . unexpected pos 13248 vs 13140"),
    "writer": RuntimeError("PytorchStreamWriter failed writing file data/1: file write failed"),
}


@pytest.mark.parametrize("error", FULL_DISKS.values(), ids=FULL_DISKS)
def test_a_full_disk_is_known_whoever_tells_it(error):
    assert describe_error(error).startswith("the disk is full (")


# A cache that cannot be written to


def test_a_read_only_cache_is_read_and_what_it_lacks_is_refused_before_any_work(
    own_cache, monkeypatch
):
    folder = cache.artefact("things", KEY, fill_with("whole"))
    monkeypatch.setattr("os.access", lambda *_: False)
    assert cache.artefact("things", KEY, never) == folder
    where = f", and the cache folder {own_cache} cannot be written to; .*BERTOLOGY_CACHE"
    with pytest.raises(PermissionError, match="is needed, and it is not there" + where):
        cache.artefact("things", {"other": 1}, never)
    (folder / "data.txt").write_text("changed")
    with pytest.raises(PermissionError, match="data.txt has changed since it was written" + where):
        cache.artefact("things", KEY, never)


# The Hub


HALF = """
from pathlib import Path
load = model(NAME)
tell("whole", load)
folder = next(Path(os.environ["HF_HOME"]).glob("hub/models--a--half"))
weights = max(folder.glob("blobs/*"), key=lambda path: path.stat().st_size)
weights.with_name(weights.name + ".incomplete").write_bytes(b"half")
tell("beside a half file", load)
content = weights.read_bytes()
weights.write_bytes(content[:-100])
tell("cut off", load)
weights.unlink()
tell("deleted", load)
"""


def test_a_half_downloaded_file_is_named_or_fetched_again(tmp_path):
    with LocalHub({"a/half": (REVISION, BERT)}) as hub:
        found = dict(told(f"NAME = 'a/half@{REVISION}'\n{HALF}", hub.url, tmp_path)[0])
        fetched = [("GET", f"/a/half/resolve/{REVISION}/model.safetensors")] * 2
    assert [one for one in hub.requests if one in fetched] == fetched
    cut_off = found.pop("cut off")
    assert cut_off.startswith("ConnectionError|") and str(tmp_path / "hub") in cut_off
    assert "A file is damaged: delete its folder in" in cut_off
    assert found == dict.fromkeys(("whole", "beside a half file", "deleted"), "loaded")


# The table


def test_every_test_that_the_tables_name_exists():
    lines = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8").splitlines()
    heads = ("| fault", "| what", "| ---")
    rows = [line for line in lines if line.startswith("|") and not line.startswith(heads)]
    assert len(rows) > 25
    for row in rows:
        named = re.findall(r"`(test_\w+)\.py::(test_\w+)`", row)
        assert named, row
        for file, test in named:
            text = (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
            assert f"\ndef {test}(" in text, (file, test)
