"""The committed notebooks: executed, readable, of the common form, and without traces of a machine."""

import itertools
import json
import re

import pytest
from conftest import ROOT

from bertology_utils.suite import colab

FIRST = ROOT / "notebooks" / "0_attention_head.ipynb"  # explains, and judges no claim
HEADINGS = ("## What the paper", "## Cost", "## Set-up", "## Parameters", "erdict", "wrote")
HEADINGS_OF_FIRST = ("## Set-up", "## Parameters", "## Exercises", "## What comes next", "wrote")
PROJECT = '[project]\nname = "bertology-utils"\n[project.urls]\n'
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(home|root|tmp|work|Users|usr|opt|content)/\w")


def code(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_executed_in_order_without_errors_or_stderr(cells):
    assert [cell["execution_count"] for cell in code(cells)] == list(range(1, len(code(cells)) + 1))
    for cell in code(cells):
        for output in cell["outputs"]:
            assert output["output_type"] != "error", output
            assert output.get("name") != "stderr", output


def test_prose_before_every_code_cell_and_short_cells(cells):
    for before, cell in itertools.pairwise(cells):
        assert cell["cell_type"] == "markdown" or before["cell_type"] == "markdown", cell["source"]
    for cell in code(cells):
        lines = "".join(cell["source"]).splitlines()
        assert len(lines) <= 20, lines[0]
        assert all(len(line) <= 125 for line in lines), max(lines, key=len)


def test_common_form(path, cells):
    tags = [tag for cell in cells for tag in cell["metadata"].get("tags", [])]
    for tag in ("badge", "setup", "parameters"):
        assert tags.count(tag) == 1
    first_code = code(cells)[0]
    assert "setup" in first_code["metadata"]["tags"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for heading in HEADINGS_OF_FIRST if path == FIRST else HEADINGS:
        assert heading in prose, heading


def test_set_up_cells_and_badges_carry_the_one_address(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    content = json.loads(path.read_text(encoding="utf-8"))
    stamped = colab.stamp(json.loads(path.read_text(encoding="utf-8")), colab.repository_address(), path.name)
    assert stamped == content, "run: python -m bertology_utils run --in-place"


def test_no_trace_of_a_machine(path):
    found = MACHINE_PATH.search(path.read_text(encoding="utf-8"))
    assert not found, found


def test_stamping_an_address(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    stamped = colab.stamp(content, "https://github.com/someone/something", path.name)
    text = json.dumps(stamped)
    assert f"github/someone/something/blob/main/notebooks/{path.name}" in text
    assert 'REPOSITORY = \\"https://github.com/someone/something\\"' in text


@pytest.mark.parametrize("address", ["http://github.com/a/b", "https://example.org/a/b", "https://github.com/a"])
def test_addresses_that_colab_cannot_open_are_refused(address, tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT + f'Repository = "{address}"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="OWNER/NAME"):
        colab.repository_address()


@pytest.mark.parametrize("ending", ["", "/", ".git"])
def test_an_address_is_taken_as_git_and_browsers_write_it(ending, tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT + f'Repository = "https://github.com/a/b{ending}"\n')
    monkeypatch.chdir(tmp_path)
    assert colab.repository_address() == "https://github.com/a/b"


def installing(cells, address=""):
    """Source of the set-up cell's part that installs, with an address; what it may import afterwards stays out."""
    source = "".join(code(cells)[0]["source"])
    last = "importlib.invalidate_caches()"
    assert source.count(last) == 1
    return re.sub(
        r'^REPOSITORY = ".*"', f'REPOSITORY = "{address}"', source[: source.index(last)] + last, flags=re.MULTILINE
    )


def test_set_up_cell_does_nothing_where_the_package_is(path, cells):
    before = dict(vars(__import__("subprocess")))
    scope: dict = {}
    exec(compile(installing(cells), "set-up", "exec"), scope)
    assert "pip" not in scope
    assert before["run"] is __import__("subprocess").run


def test_set_up_cell_says_what_to_do_while_no_address_is_set(path, cells, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="make reproduce"):
        exec(compile(installing(cells), "set-up", "exec"), {})


def test_set_up_cell_installs_without_touching_torch_and_numpy(path, cells, monkeypatch, tmp_path):
    import importlib.util
    import subprocess

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    calls = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: calls.append(command))
    exec(compile(installing(cells, "https://github.com/a/b"), "set-up", "exec"), {})
    assert any("git+https://github.com/a/b" in command for command in calls)
    assert all("-c" in command or "--no-deps" in command for command in calls)
    kept = (tmp_path / "keep.txt").read_text()
    assert re.search(r"^torch==\d", kept, re.MULTILINE)
    assert re.search(r"^numpy==\d", kept, re.MULTILINE)


def test_headings_go_down_one_level_at_a_time(cells):
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
