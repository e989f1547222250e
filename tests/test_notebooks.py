"""The committed notebooks: executed, readable, of the common form, and without traces of a machine."""

import itertools
import json
import re

from conftest import ROOT

from docs.publish import published, stamp

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
    assert stamped == content, "run: python docs/publish.py"


def test_no_trace_of_a_machine(path):
    found = MACHINE_PATH.search(path.read_text(encoding="utf-8"))
    assert not found, found


def pictures(cells):
    """Every picture's output."""
    outputs = (output for cell in cells for output in cell.get("outputs", []))
    return [output for output in outputs if "image/png" in output.get("data", {})]


def test_every_picture_is_described(cells):
    described = [output["metadata"].get("image/png", {}).get("alt", "") for output in pictures(cells)]
    assert described and all(len(text.split()) > 10 for text in described), described


def test_exercises_have_folded_solutions_that_ran(path, cells):
    solutions = [cell for cell in cells if "solution" in cell["metadata"].get("tags", [])]
    assert len(solutions) == (2 if path == FIRST else 3)
    assert all(cell["metadata"]["jupyter"]["source_hidden"] and cell["outputs"] for cell in solutions)


def test_no_p_value_is_zero(cells):
    text = json.dumps([cell.get("outputs", []) for cell in cells], ensure_ascii=False)
    assert not re.search(r"\bp ?= ?0\.0+\b", re.sub(r'"image/png": "[^"]*"', "", text))
