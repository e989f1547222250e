"""README.md, RESULTS.md, docs/ and the notebooks: they say what results/ has, and lead somewhere."""

import ast
import json
import re

import pytest
from conftest import ROOT

from docs.marks import prose, wrong_in, wrong_numbers
from docs.pages import (
    KINDS,
    OUTCOMES,
    in_short,
    main_statements,
    outcomes,
    renewed,
    repeated,
    statements,
    tally,
    update,
)
from docs.publish import published, stamp

NAMES = ["README.md", "RESULTS.md", "results/README.md"]
NAMES += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
NOTEBOOK_NAMES = sorted(f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb"))


def write_page(root, study, number, claims, **said):
    """What a page leaves behind: claims with the paper's number and a mark, a sign of MRPC's or words; and numbers."""
    rows = {}
    for text, (paper, mark) in claims.items():
        tasks = {"MRPC": f"{mark} +1.0 [+0.5, +1.5]"} if len(mark) == 1 else {}
        rows[text] = {"paper": paper, "holds if": "above 0", "verdict": mark, "tasks": tasks}
    place = root / "results" / study / "pages" / f"{number}_trial.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"said": said, "claims": rows}), encoding="utf-8")


@pytest.fixture
def checkout(tmp_path):
    """A project with one page of two studies, and a README with its claims."""
    claims = {"It holds": ("0.5", "✓"), "It is of <b>release</b> 2": ("473", "not testable")}
    for study in ("e5", "minilm"):
        write_page(tmp_path, study, 6, claims, gain=-1.26, rows=1500.0, heads=3.0)
    (tmp_path / "README.md").write_text("# A trial\n<!-- claims: 6 -->\n<!-- end -->\n")
    return tmp_path


# Tables


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_those_of_the_results(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert renewed(text, ROOT) == text, "run: python docs/pages.py"


def test_results_have_the_claims_of_every_page_and_documents_every_kind_of_table():
    text = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    for page in (ROOT / "results").glob("*/pages/*.json"):
        for claim, row in json.loads(page.read_text(encoding="utf-8"))["claims"].items():
            assert claim in text and row["paper"] in text, (page.name, claim)
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in NAMES]
    used = {kind for text in texts for kind in re.findall(r"<!-- ([\w-]+): ", text)}
    assert set(KINDS) == used
    found = main_statements(ROOT)
    assert all(one.rows["e5"]["paper"] or one.page == "4" for one in found)
    assert {one.rows["e5"]["verdict"] for one in found} == set(OUTCOMES), "each is told"


def test_a_table_has_a_column_for_each_study_and_what_could_not_be_tested_in_a_line(checkout):
    assert [path.name for path in update(checkout)] == ["README.md"]
    text = (checkout / "README.md").read_text()
    assert "| claim | the paper | holds if | E5 (MRPC) | MiniLM (MRPC) |\n" in text
    assert "| It holds | 0.5 | above 0 | **✓** +1.0 [+0.5, +1.5] |" in text
    assert "\nNot testable here: It is of &lt;b>release&lt;/b> 2 (the paper: 473).\n" in text
    assert update(checkout) == []


def test_if_one_page_cannot_be_written_all_stay_as_they_were(checkout):
    before = (checkout / "README.md").read_text()
    (checkout / "RESULTS.md").write_text("<!-- speech: 3 --><!-- end -->")
    with pytest.raises(ValueError, match=r"unknown table 'speech'; choose one of: claims, "):
        update(checkout)
    assert (checkout / "README.md").read_text() == before


def test_rows_about_the_paper_are_counted_by_outcome(tmp_path):
    rows = {"a": ("+1", "✓"), "b": ("hard to tell", "✗"), "c": ("", "✓"), "d": ("+1", "?")}
    rows |= {"f": ("2", "not testable"), "g": ("Clark et al.: so", "✗")}
    write_page(tmp_path, "e5", 1, rows)
    assert tally(tmp_path, "all")[2] == "| E5 | 4 | 1 | 1 | 1 | 1 |"


def test_many_tasks_are_their_marks_and_their_ends_and_few_are_named():
    marks = dict(zip("abcde", ("✓ -7 [-8, -6]", *["? +1 [-1, +3]"] * 4), strict=True))
    assert in_short({"verdict": "?", "tasks": marks}) == "**?** (1 ✓, 4 ?) −7 (a) to +1 (e)"
    alike = dict.fromkeys("abcde", "✓ 70 % [60 %, 80 %]") | {"b": "✓ 61 % [60 %, 62 %]"}
    assert in_short({"verdict": "✓", "tasks": alike}) == "**✓** (all 5) 61 % (b) to 70 % (e)"
    row = {"verdict": "?", "tasks": {"a": "✓ +2 [+1, +3]", "b": "? 0 [-1, +1]"}}
    assert in_short(row, intervals=False) == "**?** a +2 ✓; b 0 ?"
    assert in_short(row, named=False) == "**?** +2 [+1, +3] ✓; 0 [−1, +1] ?"


def test_what_is_repeated_is_counted_where_it_was_decided_and_is_not_of_the_same_encoder(tmp_path):
    for study, marks in (("e5", "✓✓?✗"), ("e5-again", "✓??✓")):
        claims = {text: ("", mark) for text, mark in zip("abcd", marks, strict=True)}
        write_page(tmp_path, study, 1, claims)
        write_page(tmp_path, study, 8, {"a": ("", "✓")})
    told = "3 of these estimates are decided in E5 (✓ or ✗): 1 have the same mark again, 1 are"
    assert f"{told} undecided there, and 1 have the opposite" in repeated(tmp_path)


def test_main_statements_stand_by_outcome_keep_their_words_and_are_counted(tmp_path):
    rows = "".join(
        f"| {text} (§4; points) <!-- page 1, {claim} --> | what it reports | x | A note. | 1 |\n"
        for text, claim in (("Third", "d"), ("Second", "b"), ("First", "a"), ("Late", "f"))
    )
    (tmp_path / "RESULTS.md").write_text(f"<!-- statements: all -->\n\n\n{rows}<!-- end -->\n")
    (tmp_path / "README.md").write_text("<!-- outcomes: e5 --><!-- end -->")
    claims = {"a": ("", "✓"), "b": ("", "✗"), "f": ("", "not testable")}
    write_page(tmp_path, "e5", 1, claims | {"d": ("", "?")})
    write_page(tmp_path, "minilm", 1, {"b": ("", "?")})
    assert {path.name for path in update(tmp_path)} == {"README.md", "RESULTS.md"}
    lines = statements(tmp_path, "all")[2:]
    assert [line.split()[1] for line in lines] == ["First", "Second", "Third", "Late"]
    second = "| Second (§4; points) <!-- page 1, b --> | what it reports | **✗** MRPC +1.0 | – | ? | A note. | 1 |"
    assert lines[1] == second
    told = outcomes(tmp_path, "e5")
    assert "- **1 comes out as the paper says**: “First”." in told
    assert told[-1] == "- **1 cannot be tested**: “Late”."
    assert update(tmp_path) == []
    write_page(tmp_path, "e5", 1, claims)
    with pytest.raises(ValueError, match=r"unknown claim of a statement on page 1 'd'; choose one"):
        update(tmp_path)
    (tmp_path / "RESULTS.md").write_text("<!-- statements: all -->\n\n\n| New | x |\n<!-- end -->")
    with pytest.raises(ValueError, match=r"a statement is .*, and not: \| New \| x \|"):
        update(tmp_path)


def test_the_lines_of_the_results_readme_print_what_stands_there(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(>>> .*?)```", text, re.DOTALL)
    *lines, last = re.findall(r"^>>> (.+)$", code, re.MULTILINE)
    names = {}
    exec("\n".join(lines), names)
    assert str(eval(last, names)) == code.splitlines()[-1]


# Numbers in sentences


@pytest.mark.parametrize("name", [*NAMES, *NOTEBOOK_NAMES])
def test_marked_numbers_are_those_of_the_results(name):
    assert wrong_numbers(ROOT / name, ROOT) == []
    in_tables = re.findall(r"^\|.*<!-- =[^>]* \| .*$", prose(ROOT / name), re.MULTILINE)
    assert not in_tables, "the bar of a mark would split a table's cell"


def test_numbers_with_the_digits_that_they_have_are_right(checkout):
    text = "−1.3<!-- = e5 6 | gain --> and **1,500<!-- = e5 6 | rows -->** rows\n"
    text += "| −1.26<!-- = minilm 6 gain --> | Three<!-- = e5 6 heads --> heads |"
    assert wrong_in(text, checkout) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("−1.2<!-- = e5 6 | gain --> points", "gain: −1.2 is -1.260, in: −1.2"),
        ("1.26<!-- = e5 6 | gain -->", "1.26 is -1.26"),
        ("two<!-- = e5 6 heads --> heads", "two is 3.00"),
        ("It gains.<!-- = e5 6 | gain -->", "no number stands before it"),
        ("2<!-- = e5 6 | gains -->", "unknown number 'gains'; choose one of: gain, rows, heads"),
        ("2<!-- = e4 6 | gain -->", "unknown study 'e4'"),
    ],
)
def test_a_wrong_number_is_named_with_its_sentence(checkout, text, message):
    (line,) = wrong_in(f"Before it.\n{text}", checkout)
    assert message in line and "Before" not in line and "<!--" not in line


def test_on_a_page_a_name_alone_is_a_number_of_its_own_and_elsewhere_none(checkout):
    text = "−1.2<!-- gain -->"
    cells = [{"cell_type": "markdown", "source": text}]
    (checkout / "6_trial.ipynb").write_text(json.dumps({"cells": cells}))
    (line,) = wrong_numbers(checkout / "6_trial.ipynb", checkout)
    assert line.startswith("6_trial.ipynb, gain: −1.2 is -1.26")
    assert wrong_in(text, checkout) == []


# Links

MACHINE_PATH = re.compile(r"(?<![\w.:/])/(home|root|tmp|work|Users|usr|opt|content)/\w")


def anchors(path):
    """Of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", [*NAMES, "CONTRIBUTING.md", "CHANGELOG.md", *NOTEBOOK_NAMES])
def test_no_dead_link_no_picture_without_words_and_no_trace_of_a_machine(name):
    page = ROOT / name
    assert not MACHINE_PATH.search(page.read_text(encoding="utf-8"))
    for words, target in re.findall(r"(!?\[[^\]]*\](?:[^\]\[()]*\])?)\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists() and linked.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(linked), target
        assert not words.startswith("![]"), target


# The committed notebooks: executed, readable, of the common form, and without traces of a machine.


FOLDED = {"setup", "defaults", "parameters"}  # tags of cells whose source is not shown


def code(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def tags_of(cell):
    return set(cell["metadata"].get("tags", []))


def test_executed_in_order_without_errors_or_stderr(cells):
    assert [cell["execution_count"] for cell in code(cells)] == list(range(1, len(code(cells)) + 1))
    outputs = [output for cell in code(cells) for output in cell["outputs"]]
    for output in outputs:
        assert output["output_type"] != "error" and output.get("name") != "stderr", output
        texts = [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
        assert not re.search(r"\bp ?= ?0\.0+\b", str(texts)), "no p-value is zero"


def test_prose_before_code_and_short_cells(cells):
    shown = [cell for cell in cells if not tags_of(cell) & FOLDED]
    kinds = "".join("p" if cell["cell_type"] == "markdown" else "c" for cell in shown)
    assert "ccc" not in kinds, "a sentence between cells"
    for cell in code(cells):
        lines = "".join(cell["source"]).splitlines()
        assert len(lines) <= 20, lines[0]
        assert all(len(line) <= 125 for line in lines), max(lines, key=len)


def test_common_form(path, cells):
    assert "setup" in tags_of(code(cells)[0])
    text = prose(path)
    assert re.search(r"^## What (.+ claims?, and what )?we find$", text, re.MULTILINE)
    assert "**Caveats.**" in text and "**Try it" in text and "TODO" not in text
    assert len(re.findall(r"<!-- \w+ -->", text)) >= 5, "numbers of sentences are marked"
    solutions = [cell for cell in cells if "solution" in tags_of(cell)]
    assert len(solutions) >= 2
    for cell in solutions:
        assert cell["metadata"]["jupyter"]["source_hidden"] and cell["outputs"]


def test_badges_set_up_and_parameters_cells_are_those_of_the_one_place(path):
    text = path.read_text(encoding="utf-8")
    stamped = stamp(json.loads(text), published(), path.name)
    assert stamped == json.loads(text), "run: python docs/publish.py"


def test_pictures_are_described_as_their_cell_says(cells):
    compared = 0
    for cell in code(cells):
        pictures = [one for one in cell["outputs"] if "image/png" in one.get("data", {})]
        shown = [one["metadata"].get("image/png", {}).get("alt", "") for one in pictures]
        assert all(len(text.split()) > 10 for text in shown), shown
        tree = ast.parse("".join(cell["source"])) if shown else ast.Module([])
        keys = [one for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg == "alt"]
        if len(keys) == len(shown) == 1 and isinstance(keys[0].value, ast.Constant):
            assert shown == [keys[0].value.value]
            compared += 1
    assert compared
