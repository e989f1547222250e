"""README.md, RESULTS.md and docs/: they say what the results say, and lead somewhere."""

import ast
import json
import re
import shutil
import statistics
from pathlib import Path

import pytest
from conftest import ROOT, copy_of

from bertology_utils.verdicts import CLAIMS
from docs.marks import wrong_numbers
from docs.pages import renewed, update
from docs.publish import published, stamp

PAGES = [ROOT / "README.md", ROOT / "RESULTS.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
NOTEBOOK_NAMES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("*.ipynb")
)
DRIFT = "3_finetuning_drift"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A page, one notebook and the numbers behind them."""
    copy_of([ROOT / "pyproject.toml", ROOT / "notebooks" / f"{DRIFT}.ipynb"], tmp_path)
    run = tmp_path / "figures" / DRIFT / "results.json"
    run.parent.mkdir(parents=True)
    shutil.copy(ROOT / "benchmarks" / "minilm_glue" / DRIFT / "results.json", run)
    parts = ["summary: first", "claims: 3", "controls: 3", "missing: results"]
    parts += [f"rows: figures/{DRIFT} | score | rows=task,kind | columns=state"]
    text = "# Results\n" + "".join(f"<!-- {part} --><!-- end -->\n\n" for part in parts)
    (tmp_path / "README.md").write_text(text)
    monkeypatch.chdir(tmp_path)
    update(tmp_path)
    return tmp_path


def edit(checkout, change):
    """Change the results file and renew the pages; returns the README's lines that changed."""
    file, page = checkout / "figures" / DRIFT / "results.json", checkout / "README.md"
    results = json.loads(file.read_text())
    change(results)
    file.write_text(json.dumps(results))
    before = page.read_text().splitlines()
    update(checkout)
    return [
        new for old, new in zip(before, page.read_text().splitlines(), strict=True) if old != new
    ]


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_what_the_results_say(name):
    text = (ROOT / name).read_text()
    assert renewed(text, ROOT) == text, "run: python docs/pages.py"


def test_another_number_or_verdict_changes_its_rows_and_nothing_else(checkout):
    def verdict(results):
        return next(one for one in results["verdicts"] if one["id"] == "pretraining-helps")

    (row,) = edit(
        checkout, lambda results: verdict(results).update(number="SST-2 +0.500 [+0.4, +0.6]")
    )
    assert (
        row.startswith("| 4.3 | Fine-tuned from random weights scores lower")
        and "SST-2 +0.500 [+0.4, +0.6] |" in row
    )
    changed = edit(checkout, lambda results: verdict(results).update(outcome="does not hold here"))
    assert [line.split(" | ")[1] for line in changed] == [CLAIMS["pretraining-helps"].text] * 2
    score = {"what": "score", "task": "mrpc", "kind": "F1", "state": "pre-trained, fine-tuned"}
    (row,) = edit(
        checkout,
        lambda results: next(one for one in results["rows"] if score.items() <= one.items()).update(
            value=0.987
        ),
    )
    assert row.startswith("| MRPC | F1 |") and "98.7 points [" in row


def test_if_one_page_cannot_be_made_all_stay_as_they_were(checkout):
    edited = (checkout / "README.md").read_text().replace("holds here", "?")
    (checkout / "README.md").write_text(edited)
    (checkout / "RESULTS.md").write_text(
        "<!-- json: benchmarks/ud_heads.json | relations/pretrained --><!-- end -->"
    )
    with pytest.raises(
        ValueError, match="benchmarks/ud_heads.json is missing; run the script of that name"
    ) as raised:
        update(checkout)
    assert str(checkout) not in str(raised.value) and (checkout / "README.md").read_text() == edited


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("speech: 3", "unknown part of a page 'speech'"),
        (f"rows: figures/{DRIFT} | no such number | rows=task", "has no numbers 'no such number'"),
        ("rows: figures/9_x | score | rows=task", "9_x/results.json cannot be read: it is missing"),
    ],
)
def test_parts_that_cannot_be_made_are_refused(checkout, part, message):
    with pytest.raises(ValueError, match=message):
        renewed(f"<!-- {part} --><!-- end -->", checkout)


@pytest.mark.parametrize("name", [*NAMES, *NOTEBOOK_NAMES])
def test_marked_numbers_are_what_the_results_say(name):
    notebook = Path(name).stem if name in NOTEBOOK_NAMES else ""
    assert wrong_numbers(prose(ROOT / name), ROOT, notebook) == []


SCORE = f"figures/{DRIFT} | score | task=sst2 | kind=accuracy | state=pre-trained, fine-tuned"


def sst2(results):
    labels = {
        "what": "score",
        "task": "sst2",
        "kind": "accuracy",
        "state": "pre-trained, fine-tuned",
    }
    return next(one for one in results["rows"] if labels.items() <= one.items())


def test_a_marked_number_that_changed_is_named_with_its_sentence(checkout):
    one = sst2(json.loads((checkout / "figures" / DRIFT / "results.json").read_text()))
    right = f"It scores {100 * one['value']:.1f}<!-- = {SCORE} --> on **{one['n']:,}<!-- = {SCORE} | part=n --> examples**."
    assert wrong_numbers(right, checkout) == []
    assert wrong_numbers(right.replace(f"figures/{DRIFT}", "embedded"), checkout, DRIFT) == []
    assert wrong_numbers(right.replace(f"figures/{DRIFT}", "embedded 3"), checkout) == []
    edit(checkout, lambda results: sst2(results).update(value=0.5))
    (told,) = wrong_numbers(right, checkout)
    assert "is 50.00 in" in told and "It scores" in told and "<!--" not in told.split("in: It")[1]


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (SCORE.replace("sst2", "nothing"), "there are 0 such numbers"),
        (SCORE.replace("task=sst2 | ", ""), "numbers; one is wanted"),
        (SCORE.replace(DRIFT, "9_x"), "9_x/results.json cannot be read"),
        (SCORE + " | part=colour", "unknown part 'colour'"),
        ("real 9 | score", "has no results of notebook 9"),
        ("embedded 3 | last-layers | part=most", "unknown part 'most'"),
        ("embedded 3 | last-layers: perhaps", "unknown outcome 'perhaps'"),
        ("embedded 3 | last-layers-gain: holds", "last-layers-gain is 'does not hold here'"),
        ("embedded 3 | fact nothing", "3 is None"),
    ],
)
def test_a_mark_without_a_row_is_named_with_its_sentence(checkout, mark, message):
    (told,) = wrong_numbers(f"Before it.\nSo it is 3<!-- = {mark} --> here.", checkout)
    assert message in told and "So it is 3" in told and "Before" not in told


def test_marks_of_words_extremes_tallies_facts_and_verdicts(checkout):
    def change(results):
        results["facts"] = {"head": "(4, 2)"}
        next(one for one in results["verdicts"] if one["id"] == "last-layers-gain").update(
            tally={"holds": 0, "fails": 5, "open": 1}
        )
        results["rows"] += [
            {"what": "heads", "task": name, "value": value, "unit": "count", "tolerance": 1}
            for name, value in (("mrpc", 2), ("rte", 12))
        ]
        values = [[0.1, 0.2], [0.3, -0.4]]
        results["rows"].append(
            {
                "what": "gain",
                "over": ["layer", "head"],
                "value": values,
                "unit": "gain",
                "tolerance": 1,
            }
        )

    edit(checkout, change)
    where = f"figures/{DRIFT}"
    text = (
        f"Two<!-- = {where} | heads | part=lowest --> to twelve<!-- = {where} | heads | part=highest --> heads, such as"
        f" (4, 2)<!-- = {where} | fact head -->, cost −40<!-- = {where} | gain | layer=2 | head=2 --> points; it fails on"
        f" five<!-- = {where} | last-layers-gain | part=fails --> of six.<!-- = {where} | last-layers-gain: does not hold -->"
    )
    assert wrong_numbers(text, checkout) == []
    for right, wrong in (
        ("Two", "Three"),
        ("(4, 2)", "(4, 3)"),
        ("−40", "40"),
        ("five", "six"),
        ("not hold", "hold"),
    ):
        assert len(wrong_numbers(text.replace(right, wrong, 1), checkout)) == 1, right


def test_ten_claims_from_all_sections_come_first():
    papers = [one for one in CLAIMS.values() if not one.is_control and one.notebook < 7]
    first = [one for one in CLAIMS.values() if one.readme]
    assert len(first) == 10 and set(first) <= set(papers)
    assert {one.section for one in first} == {one.section for one in papers}


def anchors(path):
    """Of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prose(path):
    """A page's text; of a notebook its Markdown."""
    text = path.read_text()
    if path.suffix != ".ipynb":
        return text
    return "\n".join(
        "".join(cell["source"])
        for cell in json.loads(text)["cells"]
        if cell["cell_type"] == "markdown"
    )


@pytest.mark.parametrize("name", [*NAMES, "CONTRIBUTING.md", *NOTEBOOK_NAMES])
def test_no_dead_link_and_no_picture_without_words(name):
    page = ROOT / name
    for words, target in re.findall(r"(!?\[[^\]]*\](?:[^\]\[()]*\])?)\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists() and found.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(found), target
        assert not words.startswith("![]"), target


# The committed notebooks: executed, readable, of the common form, and without traces of a machine.


NOTEBOOK_0 = ROOT / "notebooks" / "0_attention_head.ipynb"  # explains, and judges no claim
HEADINGS = {
    "page": ("## Set-up", "## Summary", "**Try it", "6a_appendix"),
    "first": ("## Set-up", "## Exercises"),
}
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(home|root|tmp|work|Users|usr|opt|content)/\w")


def code(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_executed_in_order_without_errors_or_stderr(cells):
    assert [cell["execution_count"] for cell in code(cells)] == list(range(1, len(code(cells)) + 1))
    for cell in code(cells):
        for output in cell["outputs"]:
            assert output["output_type"] != "error", output
            assert output.get("name") != "stderr", output


def tags_of(cell):
    return set(cell["metadata"].get("tags", []))


def is_page(path):
    """False for an appendix."""
    return path.stem.split("_")[0].isdigit()


def test_prose_before_code_and_short_cells(path, cells):
    folded = {"setup", "defaults", "parameters"}
    told = [
        "p" if cell["cell_type"] == "markdown" else "c"
        for cell in cells
        if not tags_of(cell) & folded
    ]
    assert "ccc" not in "".join(told), "a sentence between cells"
    for cell in code(cells):
        lines = "".join(cell["source"]).splitlines()
        allowed = 20 if not is_page(path) or tags_of(cell) & folded else 12
        assert len(lines) <= allowed, lines[0]
        assert all(len(line) <= 125 for line in lines), max(lines, key=len)


def test_a_page_can_be_read_in_a_quarter_of_an_hour(path, cells):
    if not is_page(path):
        pytest.skip("an appendix is looked things up in")
    shown = [cell for cell in code(cells) if "setup" not in cell["metadata"].get("tags", [])]
    sources = ["".join(cell["source"]) for cell in shown]
    words = re.sub("<!--.*?-->", "", prose(path), flags=re.DOTALL).split()
    imports = [
        one
        for source in sources
        for one in ast.walk(ast.parse(source))
        if isinstance(one, (ast.Import, ast.ImportFrom))
    ]
    names = {name.asname or name.name for one in imports for name in one.names}
    assert len(words) <= 1500
    assert len(code(cells)) <= 22
    assert statistics.median(len(source.splitlines()) for source in sources) <= 6
    assert len(names) <= 11, names
    assert len(pictures(cells)) <= 7


def test_common_form(path, cells):
    tags = [tag for cell in cells for tag in cell["metadata"].get("tags", [])]
    for tag in ("badge", "setup", "parameters"):
        assert tags.count(tag) == 1
    first_code = code(cells)[0]
    assert "setup" in first_code["metadata"]["tags"]
    if is_page(path):
        for heading in HEADINGS["first" if path == NOTEBOOK_0 else "page"]:
            assert heading.replace("6a", path.stem.split("_")[0] + "a") in prose(path), heading


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
    described = [
        output["metadata"].get("image/png", {}).get("alt", "") for output in pictures(cells)
    ]
    assert described and all(len(text.split()) > 10 for text in described), described


def test_exercises_have_folded_solutions_that_ran(path, cells):
    solutions = [cell for cell in cells if "solution" in cell["metadata"].get("tags", [])]
    assert len(solutions) >= 2 or not is_page(path)
    assert all(
        cell["metadata"]["jupyter"]["source_hidden"] and cell["outputs"] for cell in solutions
    )


def test_no_p_value_is_zero(cells):
    text = json.dumps([cell.get("outputs", []) for cell in cells], ensure_ascii=False)
    assert not re.search(r"\bp ?= ?0\.0+\b", re.sub(r'"image/png": "[^"]*"', "", text))
