"""The runner publishes whole results or none."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
from conftest import ROOT
from jupyter_client.kernelspec import NoSuchKernel

from bertology_utils import __main__ as cli
from bertology_utils.suite import results, run, staging
from bertology_utils.suite.declarations import parameters_cell
from bertology_utils.suite.notebooks import read_notebook
from bertology_utils.suite.parameters import resolve
from bertology_utils.suite.stamp import SETUP_CELL

GOOD = """
from bertology_utils.suite import Experiment
lab = Experiment("8_trial", profile=profile, seed=seed)
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
lab.record.figure(plt.figure(), "picture")
from bertology_utils.claims import HOLDS, judged
lab.record.verdicts.append(judged("classifier", HOLDS, str(seed)))
lab.record.results(answer=seed)
"""


PROJECT = '[project]\nname = "bertology-utils"\n[project.urls]\nRepository = "https://github.com/a/b"\n'
PROJECT += '[tool.bertology]\ntag = "v1"\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout with one small notebook, which fails where its seed is 13."""
    cells = [
        nbformat.v4.new_markdown_cell("(badge)", metadata={"tags": ["badge"]}),
        nbformat.v4.new_markdown_cell("# A trial"),
        nbformat.v4.new_code_cell('REPOSITORY = ""', metadata={"tags": ["setup"]}),
        nbformat.v4.new_code_cell('profile = "embedded"\nseed = 1', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(GOOD),
        nbformat.v4.new_code_cell("assert seed != 13, 'unlucky'"),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text("# A trial\n<!-- claims: 1 --><!-- end -->\n")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / "notebooks" / "8_trial.ipynb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_success_publishes_all_failure_nothing_and_in_place_the_notebook_too(project, capfd):
    assert cli.main(["run"]) == 0
    assert files(project / "figures") == ["8_trial/picture.pdf", "8_trial/picture.png", "8_trial/results.json"]
    said = capfd.readouterr()
    assert "report:" in said.out
    assert [line.split("done")[0] for line in said.err.splitlines()] == ["8_trial: A trial", "[1/1] 8_trial: "]
    report = (project / "runs" / "embedded" / "report.html").read_text()
    assert "tells the five patterns apart" in report
    assert (project / "runs" / "embedded" / "8_trial.html").exists()
    before = {name: (project / "figures" / name).read_bytes() for name in files(project / "figures")}

    assert cli.main(["run", "-p", "seed", "13"]) == 1
    errors = capfd.readouterr().err
    assert "AssertionError: unlucky" in errors
    (other,) = (project / "runs").glob("embedded+seed-13+*")
    assert files(other) == ["failed_8_trial.html", "failed_8_trial.ipynb", "report.html"]
    assert {name: (project / "figures" / name).read_bytes() for name in files(project / "figures")} == before
    assert not list(project.rglob(".staging-*"))

    # In place: the address is stamped, paths and clock times are dropped.
    path = project / "notebooks" / "8_trial.ipynb"
    of_a_failed_run = project / "runs" / "embedded" / "failed_8_trial.html"
    of_a_failed_run.touch()
    assert cli.main(["run", "--in-place"]) == 0
    assert not of_a_failed_run.exists()
    assert {name: (project / "figures" / name).read_bytes() for name in before} == before, "the same run, the same bytes"
    after = nbformat.read(path, 4)
    assert [cell.source for cell in after.cells[3:]] == [
        parameters_cell("8_trial", ["profile", "seed"]),
        GOOD,
        "assert seed != 13, 'unlucky'",
    ]
    assert [cell.execution_count for cell in after.cells if cell.cell_type == "code"] == [1, 2, 3, 4]
    assert "github/a/b/blob/v1/notebooks/8_trial.ipynb" in after.cells[0].source
    assert after.cells[2].source == SETUP_CELL.format(address="https://github.com/a/b", tag="v1")
    assert str(project) not in path.read_text()
    assert "papermill" not in path.read_text()
    assert "| F1 0.86 | not yet | not yet | **holds here**: 1 |" in (project / "README.md").read_text()

    # A page that cannot be made is said, and all pages stay as they were.
    capfd.readouterr()
    (project / "RESULTS.md").write_text("<!-- table1: figures/8_trial --><!-- end -->")
    (project / "README.md").write_text("<!-- claims: 1 --><!-- end -->")
    assert cli.main(["run", "--in-place"]) == 1
    assert (
        "error: figures/8_trial/results.json is of another version (no 'table1'); run the notebook 8_trial anew"
        in capfd.readouterr().err
    )
    assert (project / "README.md").read_text() == "<!-- claims: 1 --><!-- end -->"


def test_other_settings_never_touch_the_projects_figures(project):
    assert cli.main(["run", "-p", "seed", "2"]) == 0
    (own,) = (project / "runs").glob("embedded+seed-2+*")
    assert json.loads((own / "figures" / "8_trial" / "results.json").read_text())["answer"] == 2
    assert not (project / "figures").exists()


def test_names_of_output_folders(project):
    assert staging.output_folder({}).name == "embedded"
    name = staging.output_folder({"profile": "minilm", "data": "folder:/a/glue", "seed": 3}).name
    assert name.startswith("minilm+data-folder_a_glue+seed-3+")
    assert name != staging.output_folder({"profile": "minilm", "data": "folder:/a_glue", "seed": 3}).name


def without_the_experiment(project, source):
    """The notebook with one light cell after the parameters."""
    path = project / "notebooks" / "8_trial.ipynb"
    content = nbformat.read(path, 4)
    content.cells[-2:] = [nbformat.v4.new_code_cell(source)]
    nbformat.write(content, path)
    return read_notebook(path)


def test_a_cell_has_a_limit_and_memory_is_the_kernels_own(project):
    large = "x = bytearray(400 * 2**20)"  # another child of this process, larger than the kernel
    subprocess.run([sys.executable, "-c", large], check=True)
    notebook = without_the_experiment(project, "import time; time.sleep(60)")
    outcome = run.run_notebook(notebook, {}, project / "runs" / "x", project / "figures", cell_limit=2)
    assert outcome.error.startswith("cell 3 took longer than 0.0333333 minutes, the limit; --cell-limit MINUTES")
    assert outcome.seconds < 30
    assert 10 * 2**20 < outcome.memory < 300 * 2**20
    assert outcome.executed.name == "failed_8_trial.ipynb"


def test_a_terminated_run_leaves_nothing_and_two_runs_never_mix(project, capsys):
    without_the_experiment(project, "import pathlib, time; pathlib.Path('here').touch(); time.sleep(60)")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-m", "bertology_utils", "run"]
    with subprocess.Popen(call, cwd=project, env=environment, stdout=-1, stderr=-1, text=True) as first:
        while not (project / "notebooks" / "here").exists():
            assert first.poll() is None, first.stderr.read()
            time.sleep(0.1)
        assert cli.main(["run"]) == 2
        assert "another run is writing to" in capsys.readouterr().err
        assert list((project / "figures").glob(".staging-*")), "the first run's staging is left alone"
        first.send_signal(signal.SIGTERM)
        _, errors = first.communicate(timeout=30)
    assert first.returncode == 143
    assert errors.splitlines() == [
        "8_trial: A trial",
        "terminated; finished models are kept in the cache, so a new run goes on from there",
    ]
    assert not list(project.rglob(".staging-*"))


def test_what_killed_runs_left_is_cleared_and_figures_set_aside_return(project):
    figures = project / "figures"
    aside = figures / ".staging-abc" / "8_trial.before"
    aside.mkdir(parents=True)
    (aside / "results.json").write_text("{}")
    (figures / ".staging-def").mkdir()
    (figures / ".staging-def" / "progress").write_text("so far")
    half = project / "runs" / "embedded" / ".report.html-0123abcd"
    half.parent.mkdir(parents=True)
    half.touch()
    with staging.only_run(project / "runs" / "embedded", figures):
        assert not half.exists()
        assert files(figures) == ["8_trial/results.json"]
        with pytest.raises(BlockingIOError, match="another run"), staging.only_run(project / "runs" / "embedded", figures):
            pass
        with staging.only_run(project / "runs" / "other", project / "runs" / "other" / "figures"):
            pass  # other settings, another folder
    assert not list(figures.glob(".staging-*"))


@pytest.mark.parametrize("place", ["papermill.execute_notebook", "bertology_utils.suite.report.write_report"])
def test_a_full_disk_is_said_in_words(project, place, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("papermill.execute_notebook", lambda *_, **__: None)
    monkeypatch.setattr(place, full)
    assert cli.main(["run"]) == 1
    errors = capsys.readouterr().err
    assert "the disk is full" in errors and "Traceback" not in errors
    assert not list(project.rglob(".staging-*"))


def test_a_missing_kernel_is_said_in_words(project, monkeypatch, capsys):
    def missing(*_, **__):
        raise NoSuchKernel("python3")

    monkeypatch.setattr("papermill.execute_notebook", missing)
    assert cli.main(["run"]) == 1
    assert "the kernel did not start: No such kernel named python3" in capsys.readouterr().err


def test_results_hold_null_for_what_is_no_number(monkeypatch, tmp_path):
    monkeypatch.setenv("BERTOLOGY_OUTPUT", str(tmp_path))
    values = np.array([1.0, np.nan])
    results.Record("8_trial", resolve()).results(a=float("nan"), b=[np.float32("inf")], c={"d": values}, e=(1, np.int64(2)))
    text = (tmp_path / "8_trial" / "results.json").read_text()
    content = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [content[name] for name in "abce"] == [None, [None], {"d": [1.0, None]}, [1, 2]]


def test_runs_without_the_module_that_windows_lacks():
    code = "import sys; sys.modules['resource'] = None; import bertology_utils.suite.run, bertology_utils.suite.report"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_dying_kernel_is_a_failed_notebook(project, capsys):
    without_the_experiment(project, "import os; os._exit(9)")
    assert cli.main(["run"]) == 1
    assert "the kernel died" in capsys.readouterr().err
    assert not (project / "figures" / "8_trial").exists()
    assert (project / "runs" / "embedded" / "report.html").exists()


def two_notebooks(project, source):
    """The light notebook, and another one like it."""
    first = without_the_experiment(project, source)
    first.path.with_name("9_other.ipynb").write_bytes(first.path.read_bytes())


def test_notebooks_run_side_by_side_and_one_that_fails_stops_no_other(project, capfd, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_CACHE", "/dev/null/cache")  # where nothing has to be made, nothing is written there
    two_notebooks(project, "1 + 1")
    other = project / "notebooks" / "9_other.ipynb"
    content = nbformat.read(other, 4)
    content.cells[-1].source = "assert 0, 'this one fails'"
    nbformat.write(content, other)
    assert cli.main(["run", "--jobs", "2"]) == 1
    errors = capfd.readouterr().err
    assert "8_trial: done" in errors
    assert "9_other: failed, cell 3: AssertionError: this one fails" in errors
    assert "Traceback" not in errors
    assert {path.name for path in (project / "runs" / "embedded").glob("*.ipynb")} == {
        "8_trial.ipynb",
        "failed_9_other.ipynb",
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_of_several_notebooks_leaves_nothing(project, number):
    import psutil

    two_notebooks(project, "import os, pathlib, time; pathlib.Path(f'here{os.getpid()}').touch(); time.sleep(60)")
    call = [sys.executable, "-m", "bertology_utils", "run", "--jobs", "2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(call, cwd=project, env=environment, stdout=-1, stderr=-1, text=True) as run_of_two:
        while len(list((project / "notebooks").glob("here*"))) < 2:
            assert run_of_two.poll() is None, run_of_two.stderr.read()
            time.sleep(0.1)
        children = psutil.Process(run_of_two.pid).children(recursive=True)
        run_of_two.send_signal(number)
        _, errors = run_of_two.communicate(timeout=30)
    assert run_of_two.returncode == 128 + number
    assert errors.splitlines()[-1].endswith("finished models are kept in the cache, so a new run goes on from there")
    assert "Traceback" not in errors
    assert not list(project.rglob(".staging-*"))
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
