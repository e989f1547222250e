"""README.md, RESULTS.md, docs/ and the notebooks: they say what the evidence says, and lead somewhere."""

import json
import re

import pytest
from conftest import ROOT, copy_of

from bertology_utils.verdicts import CLAIMS
from docs.marks import prose, wrong_numbers
from docs.pages import evidence, renewed, update
from docs.publish import published, stamp

PAGES = [ROOT / "README.md", ROOT / "RESULTS.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
NOTEBOOK_NAMES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("*.ipynb")
)
DRIFT = "results/glue/3_finetuning_drift.json"
SCORE = {"what": "score", "task": "sst2", "kind": "accuracy", "state": "pre-trained, fine-tuned"}
MARK = "real 3 | score | task=sst2 | kind=accuracy | state=pre-trained, fine-tuned"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """The evidence of a notebook, and a page with tables of it."""
    copy_of([ROOT / "pyproject.toml", ROOT / DRIFT], tmp_path)
    parts = "".join(f"<!-- {kind}: 3 -->\n<!-- end -->\n\n" for kind in ("verdicts", "numbers"))
    (tmp_path / "README.md").write_text("# Results\n" + parts)
    monkeypatch.chdir(tmp_path)
    update(tmp_path)
    return tmp_path


def edit(checkout, change):
    """Change the evidence and renew the page; returns its lines that changed."""
    file, page = checkout / DRIFT, checkout / "README.md"
    results = json.loads(file.read_text())
    change(results)
    file.write_text(json.dumps(results))
    before = page.read_text().splitlines()
    update(checkout)
    pairs = zip(before, page.read_text().splitlines(), strict=True)
    return [new for old, new in pairs if old != new]


def row_of(results, labels=SCORE):
    return next(one for one in results["rows"] if labels.items() <= one.items())


# Tables


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_those_of_the_evidence(name):
    text = (ROOT / name).read_text()
    assert renewed(text, ROOT) == text, "run: python docs/pages.py"


def test_the_tables_have_every_kind_of_number_but_those_of_single_heads_and_every_verdict():
    text = "".join((ROOT / name).read_text() for name in ("RESULTS.md", "docs/numbers.md"))
    for file in (ROOT / "results").glob("*/*.json"):
        run = json.loads(file.read_text())
        for row in run["rows"]:
            assert "head" in row.get("over", ()) or f"| {row['what']} |" in text, row["what"]
        for verdict in run["verdicts"]:
            assert CLAIMS[verdict["id"]].text in text or file.parent.name == "glue_norm"


def test_another_number_or_verdict_changes_its_row_and_nothing_else(checkout):
    def verdict(results):
        return next(one for one in results["verdicts"] if one["id"] == "last-layers")

    (row,) = edit(checkout, lambda results: verdict(results).update(number="SST-2 +0.5"))
    assert row.startswith(f"| {CLAIMS['last-layers'].text} |") and "| SST-2 +0.5 |" in row
    (row,) = edit(checkout, lambda results: verdict(results).update(outcome="does not hold here"))
    assert "| ✗ does not hold here" in row
    (row,) = edit(checkout, lambda results: row_of(results).update(value=0.987))
    assert "98.7 points [" in row


def test_a_table_has_a_column_for_each_task_and_a_row_for_each_label(checkout):
    text = (checkout / "README.md").read_text()
    (head, _, *rows) = re.search(r"\| number \| kind \| MRPC .*?\n\n", text, re.DOTALL)[0].split(
        "\n"
    )
    assert head.split(" | ")[2:] == ["MRPC", "STS-B", "SST-2", "QQP", "RTE", "QNLI", "MNLI-m |"]
    assert rows[0].startswith("| lead of the last two layers' change | layer 5 above 1 |")
    assert rows[1].startswith("|  | layer 5 above 2 |")


def test_if_one_page_cannot_be_written_all_stay_as_they_were(checkout):
    edited = (checkout / "README.md").read_text().replace("holds here", "?")
    (checkout / "README.md").write_text(edited)
    (checkout / "RESULTS.md").write_text("<!-- numbers: 4 --><!-- end -->")
    with pytest.raises(ValueError, match="glue/4.json cannot be read: it is missing") as raised:
        update(checkout)
    assert "make evidence ONLY=4" in str(raised.value)
    assert str(checkout) not in str(raised.value) and (checkout / "README.md").read_text() == edited
    with pytest.raises(ValueError, match="unknown table 'speech'"):
        renewed("<!-- speech: 3 --><!-- end -->", checkout)


def test_evidence_of_another_form_is_refused_with_the_command_that_renews_it(checkout):
    edit(checkout, lambda results: None)
    content = json.loads((checkout / DRIFT).read_text())
    (checkout / DRIFT).write_text(json.dumps(content | {"form": 1}))
    with pytest.raises(ValueError, match=r"is of form 1, .* renew it: make evidence ONLY=3"):
        evidence(checkout, "3")


# Numbers in sentences


@pytest.mark.parametrize("name", [*NAMES, *NOTEBOOK_NAMES])
def test_marked_numbers_are_those_of_the_evidence(name):
    assert wrong_numbers(ROOT / name, ROOT) == []
    in_tables = re.findall(r"^\|.*<!-- =.*$", prose(ROOT / name), re.MULTILINE)
    assert not in_tables, "the bars of a mark would split a table's cell"


def wrong(checkout, text, name="page.md"):
    """What is wrong with a page of this text."""
    page = checkout / name
    cells = [{"cell_type": "markdown", "source": text}]
    page.write_text(json.dumps({"cells": cells}) if page.suffix == ".ipynb" else text)
    return wrong_numbers(page, checkout)


def test_evidence_that_lacks_a_row_that_a_page_states_names_page_and_row(checkout):
    text = f"Before it.\nIt scores 87.3<!-- = {MARK.replace('real 3', 'real')} --> points."
    value = 100 * row_of(json.loads((checkout / DRIFT).read_text()))["value"]
    text = text.replace("87.3", f"{value:.1f}")
    assert wrong(checkout, text, "3_finetuning_drift.ipynb") == []
    edit(checkout, lambda results: results["rows"].remove(row_of(results)))
    (message,) = wrong(checkout, text, "3_finetuning_drift.ipynb")
    assert message.startswith("3_finetuning_drift.ipynb, 'real | score | task=sst2 | kind=accuracy")
    assert "the results have 0 such numbers" in message and "in: It scores" in message
    assert "Before" not in message and "<!--" not in message


def test_a_marked_number_that_changed_is_named_with_its_sentence(checkout):
    row = row_of(json.loads((checkout / DRIFT).read_text()))
    right = f"It scores {100 * row['value']:.1f}<!-- = {MARK} --> on **{row['n']:,}<!-- = {MARK} | part=n --> examples**."
    assert wrong(checkout, right) == []
    assert wrong(checkout, right.replace("real 3", DRIFT)) == []
    edit(checkout, lambda results: row_of(results).update(value=0.5))
    (message,) = wrong(checkout, right)
    assert "is 50.00, in: It scores" in message


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        (MARK.replace("sst2", "nothing"), "have 0 such numbers"),
        (MARK.replace("task=sst2 | ", ""), "such numbers; one is wanted"),
        (MARK.replace("real 3", "real 9"), "9.json cannot be read: it is missing"),
        (MARK + " | part=colour", "unknown part 'colour'"),
        ("real 3 | last-layers | part=most", "unknown part 'most'"),
        ("real 3 | last-layers: perhaps", "unknown outcome 'perhaps'"),
        ("real 3 | last-layers-gain: holds", "last-layers-gain is 'does not hold here'"),
        ("real 3 | fact nothing", "3 is None"),
    ],
)
def test_a_mark_that_names_no_row_is_refused(checkout, mark, message):
    (line,) = wrong(checkout, f"So it is 3<!-- = {mark} --> here.")
    assert message in line and "So it is 3" in line


def test_marks_of_words_extremes_tallies_facts_and_verdicts(checkout):
    def change(results):
        results["facts"] = {"head": "(4, 2)"}
        next(one for one in results["verdicts"] if one["id"] == "last-layers-gain").update(
            tally={"holds": 0, "fails": 5, "undecided": 1}
        )
        common = {"tolerance": 1, "unit": "count"}
        results["rows"] = [
            {"what": "heads", "task": "mrpc", "value": 2, **common},
            {"what": "heads", "task": "rte", "value": 12, **common},
            {"what": "gain", "over": ["layer", "head"], "value": [[0.1, 0.2], [0.3, -0.4]]}
            | {"tolerance": 1, "unit": "gain"},
        ]

    file = checkout / DRIFT
    results = json.loads(file.read_text())
    change(results)
    file.write_text(json.dumps(results))
    text = (
        "Two<!-- = real 3 | heads | part=lowest --> to twelve<!-- = real 3 | heads | part=highest --> heads, such as"
        " (4, 2)<!-- = real 3 | fact head -->, changes by −40<!-- = real 3 | gain | layer=2 | head=2 --> points, a loss of 40<!-- = real 3 | gain"
        " | layer=2 | head=2 | as=loss -->; it fails on"
        " five<!-- = real 3 | last-layers-gain | part=fails --> of six.<!-- = real 3 | last-layers-gain: does not hold -->"
    )
    assert wrong(checkout, text) == []
    changes = [
        ("Two", "Three"),
        ("(4, 2)", "(4, 3)"),
        ("−40", "40"),
        ("loss of 40", "loss of −40"),
        ("five", "six"),
        ("not hold", "hold"),
    ]
    for right, false in changes:
        assert len(wrong(checkout, text.replace(right, false, 1))) == 1, right


# Links


def anchors(path):
    """Of a page's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", [*NAMES, "CONTRIBUTING.md", *NOTEBOOK_NAMES])
def test_no_dead_link_and_no_picture_without_words(name):
    page = ROOT / name
    for words, target in re.findall(r"(!?\[[^\]]*\](?:[^\]\[()]*\])?)\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists() and linked.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(linked), target
        assert not words.startswith("![]"), target


# The committed notebooks: executed, readable, of the common form, and without traces of a machine.


# Of pages whose claims are not the paper's.
CLAIMS_OF = {"0": "## What we find", "7": "## What others claim, and what we find"}
EXPERIMENTS = [
    one for one in (ROOT / "notebooks").glob("*.ipynb") if '"study = ' in one.read_text()
]
FOLDED = {"setup", "defaults", "parameters"}  # tags of cells whose source is not shown
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(home|root|tmp|work|Users|usr|opt|content)/\w")


def code(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def tags_of(cell):
    return set(cell["metadata"].get("tags", []))


def test_executed_in_order_without_errors_or_stderr(cells):
    assert [cell["execution_count"] for cell in code(cells)] == list(range(1, len(code(cells)) + 1))
    for cell in code(cells):
        for output in cell["outputs"]:
            assert output["output_type"] != "error", output
            assert output.get("name") != "stderr", output


def test_prose_before_code_and_short_cells(path, cells):
    shown = [cell for cell in cells if not tags_of(cell) & FOLDED]
    kinds = "".join("p" if cell["cell_type"] == "markdown" else "c" for cell in shown)
    assert "ccc" not in kinds, "a sentence between cells"
    for cell in code(cells):
        lines = "".join(cell["source"]).splitlines()
        most = 20 if tags_of(cell) & FOLDED or path in EXPERIMENTS else 12
        assert len(lines) <= most, lines[0]
        assert all(len(line) <= 125 for line in lines), max(lines, key=len)


def test_common_form(path, cells):
    assert "setup" in code(cells)[0]["metadata"]["tags"]
    wanted = ("## Set-up", "## What to take away", "**Try it")
    if path in EXPERIMENTS:
        number = path.stem.split("_")[0]
        claims = CLAIMS_OF.get(number, "## What the paper claims, and what we find")
        wanted = (claims, "**Caveats.**", "**Try it")
    text = prose(path)
    for heading in wanted:
        assert heading in text, heading


def test_badges_set_up_and_parameters_cells_are_those_of_the_one_place(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    stamped = stamp(json.loads(path.read_text(encoding="utf-8")), published(), path.name)
    assert stamped == content, "run: python docs/publish.py"


def test_no_trace_of_a_machine(path):
    assert not MACHINE_PATH.search(path.read_text(encoding="utf-8"))


def wrong_said(text, said):
    """The marked numbers of a text, such as ``0.64<!-- best_gain -->``, that are not what its page said."""
    wrong = []
    for number, name in re.findall(
        r"([-+−]?\d[\d,]*(?:\.\d+)?)[ %*]*(?:points?)?<!-- (\w+) -->", text
    ):
        written, digits = (
            float(number.replace("−", "-").replace(",", "")),
            len(number.partition(".")[2]),
        )
        if name not in said or abs(said[name] - written) > 0.5 * 10**-digits + 1e-6:
            wrong.append(f"{name} is {said.get(name)}, and the text has {number}")
    return wrong


@pytest.mark.parametrize("page", EXPERIMENTS, ids=lambda page: page.stem)
def test_numbers_in_sentences_are_those_that_the_page_said(page):
    told = ROOT / "results" / "e5" / "pages" / f"{page.stem}.json"
    said, text = json.loads(told.read_text(encoding="utf-8"))["said"], prose(page)
    assert wrong_said(text, said) == []
    assert len(re.findall(r"<!-- \w+ -->", text)) >= 5 and "TODO" not in text


def test_a_number_that_is_not_what_the_page_said_is_named():
    said = {"gain": -1.26, "rows": 1500.0, "share": 37.2}
    assert wrong_said("−1.3<!-- gain --> and 1,500<!-- rows --> and 37 %<!-- share -->", said) == []
    assert wrong_said("−1.2<!-- gain -->, 2<!-- other -->", said) == [
        "gain is -1.26, and the text has −1.2",
        "other is None, and the text has 2",
    ]


def test_every_picture_is_described(cells):
    pictures = [
        output
        for cell in cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    alts = [one["metadata"].get("image/png", {}).get("alt", "") for one in pictures]
    assert alts and all(len(text.split()) > 10 for text in alts), alts


def test_exercises_have_folded_solutions_that_ran(cells):
    solutions = [cell for cell in cells if "solution" in tags_of(cell)]
    assert len(solutions) >= 2
    for cell in solutions:
        assert cell["metadata"]["jupyter"]["source_hidden"] and cell["outputs"]


def test_no_p_value_is_zero(cells):
    text = json.dumps([cell.get("outputs", []) for cell in cells], ensure_ascii=False)
    assert not re.search(r"\bp ?= ?0\.0+\b", re.sub(r'"image/png": "[^"]*"', "", text))
