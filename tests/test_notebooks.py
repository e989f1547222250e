"""The committed notebooks: executed, readable, of the common form, and without traces of a machine."""

import itertools
import json
import re

import pytest
from conftest import ROOT

from bertology_utils.suite.address import Published, published
from bertology_utils.suite.stamp import stamp

FIRST = ROOT / "notebooks" / "0_attention_head.ipynb"  # explains, and judges no claim
HEADINGS = ("## What the paper", "## Cost", "## Set-up", "## Parameters", "erdict", "wrote")
HEADINGS_OF_FIRST = ("## Set-up", "## Parameters", "## Exercises", "## What comes next", "wrote")
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


def test_badges_set_up_and_parameters_cells_are_those_of_the_one_place(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    content = json.loads(path.read_text(encoding="utf-8"))
    stamped = stamp(json.loads(path.read_text(encoding="utf-8")), published(), path.name)
    assert stamped == content, "run: python -m bertology_utils publish"


def test_no_trace_of_a_machine(path):
    found = MACHINE_PATH.search(path.read_text(encoding="utf-8"))
    assert not found, found


@pytest.mark.parametrize("place", [Published(), Published("https://github.com/someone/something", "v1.2")])
def test_stamping_changes_badge_set_up_and_nothing_else(path, place):
    content, stamped = (json.loads(path.read_text(encoding="utf-8")) for _ in range(2))
    stamp(stamped, place, path.name)
    for old, new in zip(content["cells"], stamped["cells"], strict=True):
        marked = set(old["metadata"].get("tags", [])) & {"badge", "setup"}
        assert {**old, "source": ""} == {**new, "source": ""} and (marked or old == new)
    badge, set_up = ("".join(cell["source"]) for cell in (stamped["cells"][0], code(stamped["cells"])[0]))
    if place.address:
        assert f"github/someone/something/blob/v1.2/notebooks/{path.name})" in badge and '"colab"' in badge
        assert 'REPOSITORY, TAG = "https://github.com/someone/something", "v1.2"' in set_up
    assert len(set_up.splitlines()) <= 17 and max(map(len, set_up.splitlines())) <= 125


def test_headings_go_down_one_level_at_a_time(cells):
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose, re.MULTILINE)]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
