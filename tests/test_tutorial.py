"""The notebooks as a tutorial: early pictures, described figures, short cells, exercises, one estimate in a cell."""

import html
import json
import re
from statistics import median

FIRST = "0_attention_head"  # explains, and judges no claim
WORD = re.compile(r"\w[\w'’-]*")
INTERVAL = re.compile(r"\[[+−-]?\d[\d.,]*,? [+−-]?[\d.]+\]")
LONG = {"setup", "parameters"}  # cells that are of the same form in every notebook


def source(cell):
    return "".join(cell["source"])


def tags(cell):
    return set(cell["metadata"].get("tags", []))


def prose(cells):
    """Words of the Markdown cells, without the Colab badge."""
    return [
        word
        for cell in cells
        if cell["cell_type"] == "markdown" and "badge" not in tags(cell)
        for word in WORD.findall(source(cell))
    ]


def pictures(cells):
    """Every picture of the cells' outputs, as (position of the cell, output)."""
    outputs = ((at, output) for at, cell in enumerate(cells) for output in cell.get("outputs", []))
    return [(at, output) for at, output in outputs if "image/png" in output.get("data", {})]


def tutorial(cells):
    """Code cells that a reader is meant to read: not set-up, imports, parameters, nor what is written at the end."""
    code = [cell for cell in cells if cell["cell_type"] == "code" and not tags(cell) & LONG]
    machinery = ("quiet()", "set_style()", "record.results")
    return [cell for cell in code if not any(name in source(cell) for name in machinery)]


def sections(cells):
    """The numbered sections, each a list of cells."""
    found, inside = [], False
    for cell in cells:
        heading = re.match(r"## (\d+ · )?", source(cell)) if cell["cell_type"] == "markdown" else None
        if heading:
            inside = bool(heading[1])
            if inside:
                found.append([])
        if inside:
            found[-1].append(cell)
    return found


def test_the_first_picture_comes_early(path, cells):
    if path.stem == FIRST:
        before = prose(cells[: pictures(cells)[0][0]])
    else:
        (opening,) = [at for at, cell in enumerate(cells) if "result" in tags(cell)]
        before = prose(cells[:opening]) + WORD.findall(source(cells[opening]).split("![", 1)[0])
    assert len(before) <= 150


def test_every_picture_is_described(cells):
    found = pictures(cells)
    assert found
    for at, output in found:
        described = output["metadata"].get("image/png", {}).get("alt", "")
        assert len(described.split()) > 10, (source(cells[at])[-80:], described)


def test_exercises_have_folded_solutions_that_ran(path, cells):
    solutions = [cell for cell in cells if "solution" in tags(cell)]
    assert len(solutions) == (2 if path.stem == FIRST else 3)
    for cell in solutions:
        assert cell["metadata"]["jupyter"]["source_hidden"]
        assert cell["outputs"]


def test_code_cells_are_short(cells):
    lines = [len(source(cell).splitlines()) for cell in tutorial(cells)]
    assert median(lines) <= 10
    assert max(lines) <= 17


def test_sections_are_short(path, cells):
    if path.stem != FIRST:
        assert sections(cells)
    for section in sections(cells):
        assert len(prose(section)) <= 1000, source(section[0])[:60]


def test_a_table_cell_holds_one_estimate(cells):
    for cell in cells:
        for output in cell.get("outputs", []):
            for text in re.findall(r"<td>(.*?)</td>", "".join(output.get("data", {}).get("text/html", [])), re.DOTALL):
                assert len(INTERVAL.findall(html.unescape(text))) <= 1, text


def test_no_p_value_is_zero(cells):
    text = json.dumps([cell.get("outputs", []) for cell in cells], ensure_ascii=False)
    assert not re.search(r"\bp ?= ?0\.0+\b", re.sub(r'"image/png": "[^"]*"', "", text))
