"""Pages of the runs on real data: what the results say, or what is missing; no figure without words, no cell with two estimates."""

import json
import re
import shutil

import pytest
from conftest import ROOT
from pages import write_results

from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.suite.committed import EMBEDDED, FRAMENET, GLUE, read_committed, read_one
from bertology_utils.suite.descriptions import DESCRIPTIONS
from bertology_utils.suite.notebooks import Notebook
from bertology_utils.suite.opening import sentences
from bertology_utils.suite.real_pages import real_pages
from bertology_utils.suite.tables import further, one_estimate

TITLES = [Notebook(ROOT / f"{name}.ipynb", f"{number} · Title", {}) for number, name in NOTEBOOKS.items()]
RUNS = {number: read_one(ROOT, FRAMENET if number == 2 else GLUE, number) for number in NOTEBOOKS}
PAGES = {number: real_pages(ROOT, TITLES)[f"real/{name}"] for number, name in NOTEBOOKS.items()}


def cells(text):
    """Cells of Markdown tables, links without their addresses."""
    rows = (line for line in text.splitlines() if line.startswith("|"))
    return [re.sub(r"\]\([^)]*\)", "]", cell) for row in rows for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def estimates(cell):
    """Numbers with a fraction, but intervals, p values and the other end of a range."""
    plain = re.sub(r"\[[-+\d., ]+\]|p [<=] [\d.]+|(?<=\d) to [-+]?[\d.]+", "", cell)
    return re.findall(r"[-+]?\d+\.\d+", plain)


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_a_page_says_what_the_results_say_or_what_is_missing_and_nothing_else(number):
    run, page = RUNS[number], PAGES[number]
    if run.problem:
        assert run.missing in page and "##" not in page and "![" not in page and "|" not in page
        return
    for sentence in sentences(run.content):
        assert sentence in page
    for verdict in run.content["verdicts"]:
        shown = verdict["why"] if verdict["outcome"] == "not testable here" else one_estimate(verdict["ours"])[0]
        assert verdict["model"] != "this run" or (f"**{verdict['outcome']}**" in page and shown in page), verdict["id"]
    assert all(f"{name} {version}" in page for name, version in run.content["versions"].items())


@pytest.mark.parametrize("number", [number for number, run in RUNS.items() if not run.problem])
def test_every_figure_is_shown_and_described(number):
    pictures = sorted((ROOT / RUNS[number].file).parent.glob("*.png"))
    shown = re.findall(r"!\[(.+?)\]\(\.\./(\S+?\.png)\)", PAGES[number])
    assert [ROOT / path for _, path in shown] == pictures, "describe the others in suite/descriptions.py"
    assert all(len(words.split()) >= 8 for words, _ in shown)


def test_descriptions_are_of_figures_that_notebooks_make():
    for number, name in DESCRIPTIONS:
        assert f'"{name}"' in (ROOT / "notebooks" / f"{NOTEBOOKS[number]}.ipynb").read_text().replace('\\"', '"'), name


@pytest.mark.parametrize("content", [None, "{", json.dumps({"verdicts": [{"id": "of another version"}]})])
def test_without_results_every_page_says_how_to_make_them(tmp_path, content):
    if content:
        for place, number in ((GLUE, 3), (FRAMENET, 2)):
            write_results(tmp_path, number, place.folder)
            (tmp_path / place.folder / NOTEBOOKS[number] / "results.json").write_text(content)
    pages = real_pages(tmp_path, TITLES)
    assert len(pages) == 1 + len(NOTEBOOKS)
    for name, page in pages.items():
        assert "##" not in page and (
            "To make it: `python -m bertology_utils run --profile minilm -p " in page or "index" in name
        )
    problem = {None: "missing", "{": "cannot be read"}.get(content, "of another version")
    assert f"3 · Title, on GLUE](3_finetuning_drift.md): is {problem}".replace("is cannot", "cannot") in pages["real/index"]


def test_another_number_is_another_page(tmp_path):
    shutil.copytree(ROOT / GLUE.folder / NOTEBOOKS[1], tmp_path / GLUE.folder / NOTEBOOKS[1])
    path = tmp_path / GLUE.folder / NOTEBOOKS[1] / "results.json"
    content = json.loads(path.read_text())
    content["first_three"]["mrpc"]["value"] = 0.4321
    path.write_text(json.dumps(content))
    page = real_pages(tmp_path, TITLES)[f"real/{NOTEBOOKS[1]}"]
    changed = [new for old, new in zip(PAGES[1].splitlines(), page.splitlines(), strict=True) if old != new]
    assert len(changed) == 1 and "43 % [" in changed[0]


@pytest.mark.parametrize("one", [one for one in read_committed(ROOT) if not one.problem], ids=lambda one: one.file)
def test_verdicts_come_with_a_finding(one):
    assert one.content["verdicts"] and sentences(one.content)


@pytest.mark.parametrize("name", ["README.md", "RESULTS.md", *PAGES])
def test_no_cell_of_a_table_has_two_estimates(name):
    text = (ROOT / name).read_text() if isinstance(name, str) else PAGES[name]
    for cell in cells(text):
        if "**" in cell or "[" in cell or "finding" in cell:  # verdicts, intervals, sentences
            assert len(re.findall(r"\[[-+]?\d[-+\d., ]*\]", cell)) <= 1 and len(estimates(cell)) <= 1, cell


def test_two_estimates_are_seen():
    assert (
        len(estimates("(1, 2) 0.032, (4, 2) 0.018")) == 2 and len(estimates("+0.5 to +3.8 points [0.1, 0.2], p < 0.01")) == 1
    )


@pytest.mark.parametrize(
    "text, first, others",
    [
        ("κ 0.67 [0.63, 0.71]; n=2280 (pre-trained 0.80)", "κ 0.67 [0.63, 0.71]; n=2280", ["pre-trained 0.80"]),
        ("(1, 2) 0.032, (4, 2) 0.018; an even share 0.143", "(1, 2) 0.032", ["(4, 2) 0.018", "an even share 0.143"]),
        ("nouns, (6, 4) +0.111; n=2259", "nouns, (6, 4) +0.111; n=2259", []),
        ("+41.1 [+39, +43] on average; RTE +18.6 [+13, +23]; n=320", "+41.1 [+39, +43] on average; n=320", ["RTE +18.6 [+13, +23]"]),
        ("4 of five shared, p < 0.01, the least", "4 of five shared, p < 0.01, the least", []),
        ("–", "–", []),
    ],
)  # fmt: skip
def test_a_number_is_parted_into_its_first_estimate_and_others(text, first, others):
    assert one_estimate(text) == (first, others)


def test_what_stands_beside_a_number_is_told_below_and_nothing_else():
    lines = further([("a", "0.67; n=3 (pre-trained 0.80)"), ("b", "0.5")])
    assert lines == ["Beside these numbers:", "", "- a: pre-trained 0.80"] and further([("b", "0.5")]) == []
    for place in (EMBEDDED, GLUE, FRAMENET):
        for verdict in place.verdicts(ROOT).values():  # nothing is lost
            kept, others = one_estimate(verdict["ours"])
            assert sorted(re.findall(r"\d+", " ".join([kept, *others]))) == sorted(re.findall(r"\d+", verdict["ours"]))
