"""The runner publishes whole results or none."""

import json
from pathlib import Path

import nbformat
import pytest

from bertology_utils import __main__ as cli
from bertology_utils.suite import run

GOOD = '''
from bertology_utils.suite import Experiment
lab = Experiment("8_trial", profile=profile, seed=seed)
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
lab.record.figure(plt.figure(), "picture")
lab.record.verdict("a claim", "7", str(seed), "agrees", "counted")
lab.record.results(answer=seed)
'''


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
    (tmp_path / "README.md").write_text("# A trial\n<!-- verdicts: figures/8_trial -->\n<!-- end -->\n")
    (tmp_path / "pyproject.toml").write_text('[project]\n[project.urls]\nRepository = "https://github.com/a/b"\n')
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / "notebooks" / "8_trial.ipynb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_success_publishes_all_and_failure_nothing(project, capsys):
    assert cli.main(["run"]) == 0
    assert files(project / "figures") == ["8_trial/picture.pdf", "8_trial/picture.png", "8_trial/results.json"]
    assert "report:" in capsys.readouterr().out
    report = (project / "runs" / "embedded" / "report.html").read_text()
    assert "a claim" in report
    assert (project / "runs" / "embedded" / "8_trial.html").exists()
    before = {name: (project / "figures" / name).read_bytes() for name in files(project / "figures")}

    assert cli.main(["run", "-p", "seed", "13"]) == 1
    errors = capsys.readouterr().err
    assert "AssertionError: unlucky" in errors
    (other,) = (project / "runs").glob("embedded+seed-13+*")
    assert files(other) == ["failed_8_trial.html", "failed_8_trial.ipynb", "report.html"]
    assert {name: (project / "figures" / name).read_bytes() for name in files(project / "figures")} == before
    assert not list(project.rglob(".staging-*"))


def test_other_settings_never_touch_the_projects_figures(project):
    assert cli.main(["run", "-p", "seed", "2"]) == 0
    (own,) = (project / "runs").glob("embedded+seed-2+*")
    assert json.loads((own / "figures" / "8_trial" / "results.json").read_text())["answer"] == 2
    assert not (project / "figures").exists()


def test_in_place_stamps_the_address_and_drops_paths_and_clock_times(project):
    path = project / "notebooks" / "8_trial.ipynb"
    assert cli.main(["run", "--in-place"]) == 0
    after = nbformat.read(path, 4)
    assert [cell.source for cell in after.cells[3:]] == ['profile = "embedded"\nseed = 1', GOOD, "assert seed != 13, 'unlucky'"]
    assert [cell.execution_count for cell in after.cells if cell.cell_type == "code"] == [1, 2, 3, 4]
    assert "github/a/b/blob/main/notebooks/8_trial.ipynb" in after.cells[0].source
    assert after.cells[2].source == 'REPOSITORY = "https://github.com/a/b"'
    assert str(project) not in path.read_text()
    assert "papermill" not in path.read_text()
    assert "| a claim | 7 | 1 | **agrees** |" in (project / "README.md").read_text()


def test_same_run_same_bytes(project):
    assert cli.main(["run"]) == 0
    before = {name: (project / "figures" / name).read_bytes() for name in files(project / "figures")}
    assert cli.main(["run"]) == 0
    assert {name: (project / "figures" / name).read_bytes() for name in files(project / "figures")} == before


def test_names_of_output_folders(project):
    assert run.output_folder({}).name == "embedded"
    name = run.output_folder({"profile": "minilm", "data": "folder:/a/glue", "seed": 3}).name
    assert name.startswith("minilm+data-folder_a_glue+seed-3+")
    assert name != run.output_folder({"profile": "minilm", "data": "folder:/a_glue", "seed": 3}).name


def test_a_dying_kernel_is_a_failed_notebook(project, capsys):
    path = project / "notebooks" / "8_trial.ipynb"
    content = nbformat.read(path, 4)
    content.cells[-1].source = "import os; os._exit(9)"
    nbformat.write(content, path)
    assert cli.main(["run"]) == 1
    assert "the kernel died" in capsys.readouterr().err
    assert not (project / "figures" / "8_trial").exists()
    assert (project / "runs" / "embedded" / "report.html").exists()
