"""The runner publishes whole results or none."""

import ast
import errno
import json
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import nbformat
import psutil
import pytest
from conftest import contents
from papermill import PapermillExecutionError

from bertology_utils import __main__ as cli
from bertology_utils import run

GOOD = """
from bertology_utils.study import Study
study = Study.of(study, page="8_trial")
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
study.figure(plt.figure(), "picture", alt="nothing")
study.say(answer=seed)
from bertology_utils.common import note, track
for _ in track([1], "working"):
    note("half done")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout with one small notebook, which fails where its seed is 13."""
    cells = [
        nbformat.v4.new_markdown_cell("# A trial"),
        nbformat.v4.new_code_cell('study = "e5"\nseed = 1', metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(GOOD),
        nbformat.v4.new_code_cell("assert seed != 13, 'unlucky'"),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    (tmp_path / "notebooks").mkdir()
    page = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(page, tmp_path / "notebooks" / "8_trial.ipynb")
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setenv("BERTOLOGY_RESULTS", str(tmp_path / "results"))
    return tmp_path


def files(folder):
    return sorted(contents(folder))


def test_success_publishes_all_failure_nothing_and_in_place_the_notebook_too(project, capfd):
    assert cli.main(["run"]) == 0
    assert files(project / "figures") == ["8_trial/picture.pdf", "8_trial/picture.png"]
    said = project / "results" / "e5" / "pages" / "8_trial.json"
    assert json.loads(said.read_text())["said"] == {"answer": 1}
    out = capfd.readouterr()
    assert f"notebooks: {project / 'runs' / 'pages'}" in out.out.splitlines()
    lines = [line.split("done")[0] for line in out.err.splitlines()]
    assert lines == ["8_trial: A trial", "[1/1] 8_trial: "]
    executed = project / "runs" / "pages" / "8_trial.ipynb"
    assert "A run with" not in executed.read_text()
    assert executed.read_text().count("half done") == 1, "in the source, and in no output"
    assert executed.read_text().count("working") == 1
    before = contents(project / "figures")

    assert cli.main(["run", "-p", "seed", "13"]) == 1
    errors = capfd.readouterr().err
    assert "AssertionError: unlucky" in errors
    (other,) = (project / "runs").glob("seed-13+*")
    assert files(other) == ["failed_8_trial.ipynb"]
    failed = (other / "failed_8_trial.ipynb").read_text()
    assert "*A run with seed = 13. The text tells the study e5; outputs" in failed
    assert contents(project / "figures") == before

    # In place: the sources stay, paths and clock times are dropped.
    path = project / "notebooks" / "8_trial.ipynb"
    sources = [cell.source for cell in nbformat.read(path, 4).cells]
    of_a_failed_run = project / "runs" / "pages" / "failed_8_trial.ipynb"
    of_a_failed_run.touch()
    assert cli.main(["run", "--in-place"]) == 0
    assert not of_a_failed_run.exists()
    assert contents(project / "figures") == before, "the same run, the same bytes"
    after = nbformat.read(path, 4)
    assert [cell.source for cell in after.cells] == sources
    counts = [cell.execution_count for cell in after.cells if cell.cell_type == "code"]
    assert counts == [1, 2, 3]
    assert str(project) not in path.read_text() and "papermill" not in path.read_text()

    # Of another study, or with other entries, it is not the committed one.
    assert cli.main(["run", "-p", "study", "small"]) == 0
    (small,) = (project / "runs").glob("study-small+*")
    assert json.loads((small / "results" / "8_trial.json").read_text())["said"] == {"answer": 1}


def light(project, source, name="8_trial"):
    """The notebook, or another one like it, with one light cell after the parameters."""
    content = nbformat.read(project / "notebooks" / "8_trial.ipynb", 4)
    content.cells[2:] = [nbformat.v4.new_code_cell(source)]
    nbformat.write(content, project / "notebooks" / f"{name}.ipynb")


LONG = "import os, pathlib, time; pathlib.Path(f'here{os.getpid()}').touch(); time.sleep(60)"


RUN = """
import sys
from pathlib import Path
from bertology_utils import __main__ as cli, run
run.ROOT = Path.cwd()
sys.exit(cli.main(sys.argv[1:]))
"""


def begun(project, notebooks):
    """A run of these notebooks of ``LONG``, all of them under way."""
    call = [sys.executable, "-c", RUN, "run", "--jobs", "2", "--only", notebooks]
    started = subprocess.Popen(call, cwd=project, stdout=-1, stderr=-1, text=True)
    while len(list(project.glob("here*"))) < len(notebooks.split(",")):
        assert started.poll() is None, started.stderr.read()
        time.sleep(0.1)
    return started


@pytest.mark.parametrize(
    ("notebooks", "how", "word"), [("8", signal.SIGTERM, "terminated"), ("8,19", signal.SIGINT, "")]
)
def test_a_run_that_is_stopped_leaves_nothing(project, notebooks, how, word):
    light(project, LONG)
    light(project, LONG, "19_other")
    with begun(project, notebooks) as run:
        children = psutil.Process(run.pid).children(recursive=True)
        run.send_signal(how)
        _, errors = run.communicate(timeout=30)
    assert run.returncode == 128 + how
    last = errors.splitlines()[-1]
    assert last.startswith(word) and last.endswith("so a new run goes on from there")
    assert "Traceback" not in errors
    assert not list((project / "runs").glob("*/*"))
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def in_this_process(*_, **__):
    """In place of joblib's Parallel, since what is replaced here is not in other processes."""
    return lambda calls: (function(*values, **named) for function, values, named in calls)


FULL = OSError(errno.ENOSPC, "No space left on device")
IN_A_CELL = PapermillExecutionError(4, 3, "study.say()", "OSError", str(FULL), [])


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("papermill.execute_notebook", IN_A_CELL, "cell 3: the disk is full ("),
        ("bertology_utils.run.write_atomically", FULL, "the disk is full ("),
    ],
    ids=["cell", "results"],
)
def test_a_full_disk_is_said_in_words(project, place, error, said, monkeypatch, capsys):
    monkeypatch.setattr("papermill.execute_notebook", lambda *_, **__: None)
    monkeypatch.setattr(place, Mock(side_effect=error))
    monkeypatch.setattr("joblib.Parallel", in_this_process)
    assert cli.main(["run"]) == 1
    errors = capsys.readouterr().err
    assert said in errors and "Traceback" not in errors and "OSError" not in errors
    assert ("; see " in errors) == (error is IN_A_CELL)  # only what was written


SEEN = """
import os, warnings
import matplotlib, matplotlib.pyplot as plt
from IPython import get_ipython
seen = {
    "backend": matplotlib.get_backend(), "width": plt.rcParams["lines.linewidth"], "text": open(os.devnull).encoding,
    "error": ("error", None, UserWarning, None, 0) in warnings.filters, "asserts": __debug__,
    "threads": os.environ["OPENBLAS_NUM_THREADS"], "theirs": "theirs" in get_ipython().user_ns,
}
plt.plot([1])
plt.show()
seen
"""


def test_a_persons_shell_decides_nothing_of_a_page(project, monkeypatch):
    """Backend, style, warnings, locale, threads, profile and start-up file of whoever runs it."""
    light(project, SEEN)
    theirs = project / "theirs"
    for folder in ("matplotlib", "ipython/profile_default/startup"):
        (theirs / folder).mkdir(parents=True)
    (theirs / "matplotlib" / "matplotlibrc").write_text("lines.linewidth: 9\n")
    for script in ("start.py", "ipython/profile_default/startup/start.py"):
        (theirs / script).write_text("theirs = 1\n")
    shell = {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "error::UserWarning", "PYTHONOPTIMIZE": "1"}
    shell |= {"MPLCONFIGDIR": theirs / "matplotlib", "OPENBLAS_NUM_THREADS": "3"}
    shell |= {"PYTHONSTARTUP": theirs / "start.py", "IPYTHONDIR": theirs / "ipython"}
    shell |= {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    for name, value in shell.items():
        monkeypatch.setenv(name, str(value))
    assert cli.main(["run"]) == 0
    executed = nbformat.read(project / "runs" / "pages" / "8_trial.ipynb", 4)
    picture, told = (one.data for cell in executed.cells for one in cell.get("outputs", ()))
    assert "image/png" in picture
    assert ast.literal_eval(told["text/plain"]) == {
        "backend": "module://matplotlib_inline.backend_inline", "width": 1.5, "text": "utf-8",
        "error": False, "asserts": True, "threads": "1", "theirs": False,
    }  # fmt: skip


def test_a_dying_kernel_is_a_failed_notebook(project, capsys):
    light(project, "import os; os._exit(9)")
    assert cli.main(["run"]) == 1
    assert "the kernel died" in capsys.readouterr().err
    assert not (project / "figures" / "8_trial").exists()


def test_notebooks_run_side_by_side_and_one_that_fails_stops_no_other(project, capfd, monkeypatch):
    # Where nothing has to be made, nothing is written there.
    monkeypatch.setenv("BERTOLOGY_CACHE", "/dev/null/cache")
    light(project, "1 + 1")
    light(project, "assert 0, 'this one fails'", "19_other")
    assert cli.main(["run", "--jobs", "2"]) == 1
    errors = capfd.readouterr().err
    assert "8_trial: done" in errors
    assert "19_other: failed, cell 2: AssertionError: this one fails" in errors
    assert "Traceback" not in errors
    assert files(project / "runs" / "pages") == ["8_trial.ipynb", "failed_19_other.ipynb"]
