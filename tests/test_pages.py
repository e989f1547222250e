"""README.md, RESULTS.md and docs/: they say what the results say, lead somewhere, and the README stays short."""

import json
import re
import shutil
from dataclasses import asdict

import pytest
from conftest import ROOT

from bertology_utils.claims.register import CLAIMS, CONTROLS, FIRST, NOTEBOOKS
from bertology_utils.claims.support import Support
from bertology_utils.claims.verdict import judged
from bertology_utils.suite.pages import KINDS, renewed, update
from bertology_utils.suite.tables import needed, one_estimate, recipes, trainings

PAGES = [ROOT / "README.md", ROOT / "RESULTS.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]


@pytest.fixture
def checkout(tmp_path):
    """The pages and the numbers behind them."""
    numbers = [
        *ROOT.glob("figures/*/results.json"),
        *ROOT.glob("benchmarks/*.json"),
        *ROOT.glob("benchmarks/*/*/results.json"),
    ]
    for path in (*PAGES, *numbers):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


def edit(checkout, path, change):
    """Change one results file and renew the pages; returns, of each page, the lines that changed."""
    file = checkout / path
    results = json.loads(file.read_text())
    change(results)
    file.write_text(json.dumps(results))
    before = {name: (checkout / name).read_text().splitlines() for name in NAMES}
    told = update(checkout)
    changed = {}
    for name in NAMES:
        after = (checkout / name).read_text().splitlines()
        assert len(after) == len(before[name])
        if lines := [new for old, new in zip(before[name], after, strict=True) if old != new]:
            changed[name] = lines
    assert told == [checkout / name for name in changed]
    return changed


def verdict(results, name):
    return next(one for one in results["verdicts"] if one["id"] == name and one["model"] == "this run")


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_what_the_results_say(name):
    text = (ROOT / name).read_text()
    assert renewed(text, ROOT) == text, "run: python -m bertology_utils run --in-place"


def test_what_is_typed_over_a_part_is_gone(checkout):
    assert update(checkout) == []
    for name in ("README.md", "RESULTS.md"):
        page = checkout / name
        text = page.read_text().replace("| holds here |", "| is proven |").replace("**holds here**", "**is proven**")
        page.write_text(text.replace("n=320", "n=32000"))
    assert update(checkout) == [checkout / "README.md", checkout / "RESULTS.md"]
    assert [(checkout / name).read_text() for name in NAMES] == [path.read_text() for path in PAGES]


def test_another_number_changes_its_row_and_nothing_else(checkout):
    changed = edit(
        checkout,
        "figures/3_finetuning_drift/results.json",
        lambda results: verdict(results, "pretraining-helps").update(ours="SST-2 +0.500 [+0.4, +0.6]"),
    )
    ((row,),) = changed.values()
    assert list(changed) == ["RESULTS.md"] and row.startswith(
        "| 4.3 | Fine-tuned from random weights scores lower, on every task |"
    )
    assert row.endswith("| **holds here**: SST-2 +0.500 [+0.4, +0.6] |")

    changed = edit(
        checkout,
        "figures/3_finetuning_drift/results.json",
        lambda results: results["table1"]["rte"]["finetuned"]["accuracy"].update(value=0.987),
    )
    ((row,),) = changed.values()
    assert list(changed) == ["RESULTS.md"] and row.startswith("| RTE | accuracy |") and " 98.7 [" in row

    changed = edit(
        checkout,
        "figures/1_attention_patterns/results.json",
        lambda results: results["first_three"]["qnli"].update(value=0.4321),
    )
    ((row,),) = changed.values()
    assert list(changed) == ["README.md"] and row.startswith("| [1 · Attention patterns]") and "43 % [" in row


def test_another_verdict_changes_its_rows_and_its_sentence(checkout):
    changed = edit(
        checkout,
        "figures/6_disabling_heads/results.json",
        lambda results: verdict(results, "some-head-helps").update(outcome="holds here"),
    )
    finding, first = changed["README.md"]
    assert "On every task some head's disabling raises" in finding
    assert first.startswith("| 4.6 | On every task disabling some head raises") and first.endswith("| holds here |")
    (row,) = changed["RESULTS.md"]
    assert "| **holds here**: " in row


def test_a_verdict_that_is_another_by_norm_has_a_row(checkout):
    path = checkout / "benchmarks" / "minilm_norm" / NOTEBOOKS[4] / "results.json"
    results, page = json.loads(path.read_text()), checkout / "RESULTS.md"
    rows = page.read_text().count("| Stripes stand predominantly on [CLS] and [SEP] | **")
    other = verdict(results, "stripes-special")
    other.update(
        outcome=verdict(json.loads((checkout / "figures" / NOTEBOOKS[4] / "results.json").read_text()), other["id"])[
            "outcome"
        ]
    )
    path.write_text(json.dumps(results))
    update(checkout)
    assert page.read_text().count("| Stripes stand predominantly on [CLS] and [SEP] | **") == rows - 1
    shutil.rmtree(checkout / "benchmarks" / "minilm_norm")
    update(checkout)
    assert "Not run yet." in page.read_text()


def test_results_of_another_version_are_not_used_and_named(checkout):
    path = checkout / "benchmarks" / "minilm_glue" / NOTEBOOKS[1] / "results.json"
    results = json.loads(path.read_text())
    del results["verdicts"][0]["id"]
    path.write_text(json.dumps(results))
    update(checkout)
    text = (checkout / "RESULTS.md").read_text()
    assert "- Not yet judged on GLUE by the present rules: notebooks 1, " in text
    assert "`python -m bertology_utils run --profile minilm -p data folder:PATH --only 1," in text
    row = next(line for line in text.splitlines() if line.startswith("| 4.1 | The patterns repeat across tasks |"))
    assert (
        row.split(" | ")[4] == "not yet"  # of real data
        and "A limited set of patterns repeats across heads | consistently repeated | not yet | not yet | **" in text
    )


def test_missing_results_are_named(checkout):
    shutil.rmtree(checkout / "figures" / NOTEBOOKS[2])
    update(checkout)
    text = (checkout / "README.md").read_text()
    command = "python -m bertology_utils run --in-place --only 2"
    assert f"No results of this version; `{command}` makes them." in text
    assert f"- Not yet judged on embedded data by the present rules: notebook 2. `{command}` does it." in text


@pytest.mark.parametrize(
    "path, content, message",
    [
        (f"figures/{NOTEBOOKS[5]}/results.json", "{", "is damaged; run the notebook 5_token_to_token anew"),
        (f"figures/{NOTEBOOKS[5]}/results.json", "[]", "is damaged; run the notebook"),
        (f"figures/{NOTEBOOKS[3]}/results.json", None, "is missing; run the notebook 3_finetuning_drift anew"),
        (
            "benchmarks/ud_heads.json",
            '{"sentences": 1}',
            "benchmarks/ud_heads.json is of another version (no 'relations'); run the",
        ),
    ],
)
def test_if_one_page_cannot_be_made_all_stay_as_they_were(checkout, path, content, message):
    edited = (checkout / "README.md").read_text().replace("holds here", "?")
    (checkout / "README.md").write_text(edited)
    if content is None:
        (checkout / path).unlink()
    else:
        (checkout / path).write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        update(checkout)
    assert str(checkout) not in str(raised.value)
    assert (checkout / "README.md").read_text() == edited


def test_unknown_notebook():
    with pytest.raises(ValueError, match="notebook with findings"):
        renewed("<!-- finding: 99 --><!-- end -->", ROOT)


def test_every_claim_and_control_has_a_row_with_its_number():
    text = (ROOT / "RESULTS.md").read_text()
    of_notebooks = re.sub(r"<!-- verdicts: .*?<!-- end -->", "", text, flags=re.DOTALL)  # without those of benchmarks
    rows = [line for line in of_notebooks.splitlines() if line.startswith("|")]
    for entry in CLAIMS:
        beginning = f"| {entry.section} | {entry.claim} | {entry.paper} |"
        assert sum(row.startswith(beginning) for row in rows) == 1, entry.id
    for entry in CONTROLS:
        assert sum(row.startswith(f"| {entry.claim} |") for row in rows) == 1, entry.id
    for path in ROOT.glob("figures/*/results.json"):
        for one in json.loads(path.read_text())["verdicts"]:
            shown = one["why"] if one["outcome"] == "not testable here" else one_estimate(one["ours"])[0]
            assert any(f"**{one['outcome']}**" in row and shown in row for row in rows), one["id"]


def test_ten_claims_from_all_sections_come_first():
    sections = {entry.id: entry.section for entry in CLAIMS}
    assert len(set(FIRST)) == 10 and {sections[name] for name in FIRST} == set(sections.values())
    assert [name for name in sections if name in FIRST] == list(FIRST), "in the paper's order"


def test_the_readme_fits_on_a_screen_and_a_half():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 110 and len(text.split()) <= 1600
    assert len(re.findall(r"^!\[", text, re.MULTILINE)) == 1
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"](notebooks/{path.name})" in text


def anchors(path):
    """Of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prose(path):
    """A page's text; of a notebook its Markdown."""
    text = path.read_text()
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


NOTEBOOK_NAMES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("*.ipynb"))


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


def test_the_glossary_is_in_order_and_its_terms_are_in_their_notebooks():
    lines = re.findall(r"^- (.+?) \((\d+)\): .+\.$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    names = [re.findall(r"\*\*(.+?)\*\*", names) for names, _ in lines]
    assert len(lines) == (ROOT / "docs" / "glossary.md").read_text().count("\n- ") >= 50
    firsts = [re.sub(r"\W", "", name[0].replace("κ", "kappa")).lower() for name in names]
    assert firsts == sorted(set(firsts))
    for (_, number), terms in zip(lines, names, strict=True):
        text = prose(ROOT / "notebooks" / f"{NOTEBOOKS[int(number)]}.ipynb").lower()
        for term in terms:
            assert term.lower() in text, f"{term} is not in notebook {number}"


def test_trainings_have_their_mean_and_both_ends():
    one = {"scores": {"accuracy": {"value": 0.7, "low": 0.66, "high": 0.74}}, "each": {"accuracy": [0.72, 0.68]}}
    one |= {"trainings": 2, "learned": True, "n": 277, "always the same": 0.527}
    (*_, row) = trainings({"rte": one})
    assert row == "| RTE | accuracy | 70.0 [66.0, 74.0] | 68.0 | 72.0 | 2 | 52.7 | yes | 277 |"
    assert trainings({"rte": one | {"learned": False}})[-1].endswith("| 52.7 | no | 277 |")


def test_recipes_stand_with_the_best_first():
    of_all = {"always the same": 0.5, "trainings": 1, "n": 490}
    one = of_all | {"scores": {"accuracy": {"value": 0.6, "low": 0.55, "high": 0.65}}}
    better = of_all | {"scores": {"accuracy": {"value": 0.65, "low": 0.6, "high": 0.7}}, "recipe": "10 epochs"}
    first, second = recipes({"3 epochs": one | {"recipe": "3 epochs"}, "10 epochs": better})[2:]
    assert first == "| 10 epochs | 65.0 [60.0, 70.0] | 50.0 | 1 | 490 |" and second.startswith("| 3 epochs | 60.0")


def test_heads_of_models_that_learned_are_counted_with_their_gains():
    gain = {"value": 0.01, "low": -0.002, "high": 0.022}
    one = {"heads that cost": [3, 5], "heads that help": [0, 0], "learned": True, "trainings": 2, "n": 408}
    one |= {"best head": gain, "on other examples": gain, "mean head": gain, "first layer": gain}
    (*_, row) = needed({"tasks": {"mrpc": one, "rte": one | {"learned": False}}})
    assert row == "| MRPC | 3 to 5 | 0 |" + 4 * " +1.0 [-0.2, +2.2] |" + " 2 | 408 |"


def test_verdicts_in_a_benchmarks_file_are_listed_with_what_is_missing(tmp_path):
    found = [
        judged("impact-differs", Support(0.001, 0.9), "MRPC and RTE +0.23 [+0.10, +0.36] points apart"),
        judged("first-layer-rte", Support(1, 1), "–", "RTE"),
    ]
    (tmp_path / "some.json").write_text(json.dumps({"verdicts": [asdict(one) for one in found]}))
    *_, first, second, _ = KINDS["verdicts"](tmp_path, "some.json").splitlines() + [""]
    assert first.startswith("| 4.6 | What disabling does differs") and "**holds here**: MRPC and RTE +0.23" in first
    assert second.endswith("| **not testable here**; missing: RTE |")
