"""The comparison of a new run with an earlier one: what it lets pass, what it does not, and what it says."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import pytest
from conftest import ROOT
from nbval.plugin import IPyNbFile

from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.regression import numbers, outputs, texts
from bertology_utils.regression.pictures import picture_difference
from bertology_utils.suite import nbval_plugin
from bertology_utils.suite.publish import publish

COMMITTED = sorted((ROOT / "figures").glob("*/results.json"))
JUDGED = [path for path in COMMITTED if path.parent.name in NOTEBOOKS.values()]
TABLE = """          score  heads above     p
task
MRPC  0.81 [0.74, 0.88]  43 of 72  0.03
STS-B 0.92 [0.90, 0.93]   7 of 72  0.55
verdict: agrees, (3, 11) on 320 rows"""


def said(expected, got):
    return list(texts.differences(expected, got))


@pytest.mark.parametrize(
    ("old", "new"),
    [("0.81", "0.82"), ("0.88]", "0.87]"), ("43 of", "44 of"), ("  0.03", "  0.04"), (" 7 of", " 8 of"), ("0.03", "0.03 ")],
)
def test_what_rounding_does_passes(old, new):
    assert said(TABLE, TABLE.replace(old, new, 1)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("score", "points", "line 1: expected 'score heads above p', got 'points heads above p'"),
        ("agrees", "disagrees", "line 5: expected 'verdict: agrees, "),
        ("43 of", "45 of", "line 3: expected 43, got 45 (count: at most 1 apart are allowed)"),
        ("43 of 72", "43 of 71", "line 3: expected 72, got 71 (count: they must be equal)"),
        ("0.81", "0.83", "line 3: expected 0.81, got 0.83 (range: at most 0.01 apart are allowed)"),
        ("0.55", "0.57", "line 4: expected 0.55, got 0.57 (number: at most 0.01 apart are allowed)"),
        ("(3, 11)", "(3, 12)", "line 5: expected 11, got 12 (head: they must be equal)"),
        ("320", "321", "line 5: expected 320, got 321 (number: they must be equal)"),
        ("STS-B 0.92 [0.90, 0.93]   7 of 72  0.55\n", "", "expected 5 lines, got 4; missing: 'STS-B # [#, #] # of # #'"),
    ],
)
def test_what_changed_fails_and_is_named(old, new, message):
    found = said(TABLE, TABLE.replace(old, new, 1))
    assert len(found) == 1 and found[0].startswith(message)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("p = 0.04", "p = 0.05", True),
        ("p = 0.04", "p = 0.06", False),
        ("p = 0.01", "p < 0.01", True),
        ("p < 0.01", "p = 0.02", True),
        ("p < 0.01", "p = 0.03", False),
        ("6 of 7 tasks", "5 of 7 tasks", False),
        ("64 [62, 65] %", "65 [61, 65] %", True),
        ("64 [62, 65] %", "66 [62, 65] %", False),
        ("88%", "89%", True),
        ("88%", "90%", False),
        ("+0.0", "-0.0", True),
        ("−1.5", "-1.4", True),
        ("1e-05", "2e-05", True),
        ("1e-05", "4e-05", False),
        ("layer_1.png", "layer_2.png", False),
        ("8-2", "8-3", False),
        ("n=175", "n=176", False),
        ("1.0 2.0", "1.0", False),
        ("", "", True),
        ("0.123", "0.1234", True),
    ],
)
def test_rules_of_single_numbers(old, new, same):
    assert (said(old, new) == []) == same


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def result(**data):
    return {"output_type": "execute_result", "data": {key.replace("_", "/"): text for key, text in data.items()}}


def test_html_is_left_out_where_there_is_plain_text():
    old, new = result(text_plain="x 0.10", text_html="<b>0.10</b>"), result(text_plain="x 0.11", text_html="<i>9</i>")
    assert list(outputs.cell_differences([old], [new])) == []
    assert list(outputs.cell_differences([result(text_html="<b>0.10</b>")], [result(text_html="<b>0.12</b>")]))


def test_pieces_of_a_stream_are_one_output_and_a_missing_output_is_named():
    assert list(outputs.cell_differences([stream("a 1\nb 2\n")], [stream("a 1\n"), stream("b 2\n")])) == []
    found = list(outputs.cell_differences([stream("a"), result(text_plain="b")], [stream("a")]))
    assert found == ["outputs: expected stdout, text/plain, got stdout"]
    error = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}
    assert any("ValueError: no" in line for line in outputs.cell_differences([error], [error]))


def notebook(*cells):
    made = [
        nbformat.v4.new_code_cell(source, execution_count=number, outputs=cell_outputs)
        for number, (source, cell_outputs) in enumerate(cells, start=1)
    ]
    return json.loads(json.dumps(nbformat.v4.new_notebook(cells=made)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cells: [cell.update(execution_count=None, outputs=[]) for cell in cells], "no cell has been executed"),
        (lambda cells: cells[1].update(execution_count=None), "code cell 2 was added and never executed"),
        (lambda cells: cells.pop(0), "code cell 1 was executed as In [2]: a cell was removed"),
        (
            lambda cells: cells[2]["outputs"].append(
                {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}
            ),
            "(In [3]) ended with an error: KeyError",
        ),
    ],
)
def test_a_notebook_that_cannot_be_compared_is_refused_in_words(change, message):
    content = notebook(*[(f"print({n})", [stream(f"{n}\n")]) for n in (1, 2, 3)])
    assert outputs.unfit(content) is None
    change(content["cells"])
    assert message in outputs.unfit(content)


def test_a_new_run_of_a_notebook():
    old = notebook(("show()", [stream("0.50 of all, agrees\n")]))
    assert outputs.notebook_differences(old, notebook(("show()", [stream("0.51 of all, agrees\n")]))) == []
    (found,) = outputs.notebook_differences(old, notebook(("show()", [stream("0.51 of all, disagrees\n")])))
    assert found.startswith("In [1], output 1 (stdout), line 1: expected '# of all, agrees'")
    assert outputs.notebook_differences(old, notebook(("show(2)", []))) == ["its cells have changed"]


# --- results.json ---


def walk(content, place=""):
    """Places and containers of all floats that a run measured."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        where = f"{place}/{key}".lstrip("/")
        if isinstance(value, dict | list):
            yield from walk(value, where)
        elif isinstance(value, float) and not where.startswith("settings/"):
            yield where, content, key


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_every_number_of_every_notebook_is_held_below_what_is_claimed_from_it(path):
    old = numbers.read_results(path)
    assert numbers.differences(old, json.loads(json.dumps(old))) == []
    new = json.loads(json.dumps(old))
    places = list(walk(new))
    assert places
    for place, container, key in places:
        rule = numbers.rule_of(place)
        beyond = container[key] + rule.smallest > rule.alike_from
        container[key] = min(container[key], rule.alike_from) + (-rule.smallest if beyond else rule.smallest)
    assert {found.place for found in numbers.differences(old, new)} == {place for place, *_ in places}


def test_a_p_value_counts_up_to_twice_the_level():
    rule = numbers.rule_of("effects/sst2, training 2/heads/worse/0/10")
    assert rule.allows(0.92, 1.0) and not rule.allows(0.03, 0.05) and not rule.allows(0.05, 0.3)


def test_one_answer_on_the_border_passes_and_two_do_not():
    rule = numbers.rule_of("effects/sst2, training 2/heads/values/0/10")
    assert rule.allows(-1 / 320, 0.0) and not rule.allows(-2 / 320, 0.0)
    assert not numbers.rule_of("effects/stsb, training 2/heads/values/0/10").allows(-0.001, 0.0)


def test_tolerances_are_below_what_is_claimed():
    assert all(rule.tolerance <= rule.smallest / 2 for rule in numbers.RULES)


@pytest.mark.parametrize("path", JUDGED, ids=lambda path: path.parent.name)
@pytest.mark.parametrize(
    "change",
    [
        lambda new: new["verdicts"][0].update(outcome="no"),
        lambda new: new["verdicts"][-1].update(claim="another"),
        lambda new: new["verdicts"].pop(),
        lambda new: new["settings"]["recipe"].update(learning_rate=2.001e-4),
        lambda new: new["settings"].update(seed=2),
        lambda new: new["versions"].update(torch="1.0"),
        lambda new: new.pop(list(new)[-1]),
    ],
)
def test_results_that_changed_fail(path, change):
    old = numbers.read_results(path)
    new = json.loads(json.dumps(old))
    change(new)
    assert numbers.differences(old, new)


def test_a_verdicts_sentence_may_round_otherwise_and_say_nothing_else():
    old = {"verdicts": [{"ours": "7 of 72 heads, up to +0.153", "outcome": "agrees"}]}
    for ours, same in (("6 of 72 heads, up to +0.152", True), ("5 of 72 heads, up to +0.153", False), ("none", False)):
        assert (numbers.differences(old, {"verdicts": [{"ours": ours, "outcome": "agrees"}]}) == []) == same
    without = {"verdicts": [{"ours": None, "outcome": "agrees"}]}
    assert numbers.differences(without, old) and numbers.differences(old, without)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "lacks notebook, settings, verdicts, versions"),
        ("{", "cannot be read"),
        ('{"notebook": "x"}', "another version"),
    ],
)
def test_results_of_another_version_are_refused_in_words(tmp_path, text, message):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        numbers.read_results(tmp_path / "results.json")


# --- figures, and what a run publishes ---


def draw(folder, value=0.3, title="a title", result=0.5):
    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(3, 2))
    ax.plot([0, value, 1], [0, 1, 0.4])
    ax.imshow([[value, 0.2], [0.3, 0.4]], extent=(0, 1, 0, 1), vmin=0, vmax=1)
    ax.set_title(title)
    for kind in ("png", "pdf"):
        figure.savefig(folder / f"picture.{kind}")
    plt.close(figure)
    content = {"notebook": "8_trial", "settings": {}, "versions": {}, "verdicts": [], "number": result}
    (folder / "results.json").write_text(json.dumps(content))
    return folder


def test_pictures_are_the_same_but_for_what_rounding_shifts(tmp_path):
    old = draw(tmp_path / "old") / "picture.png"
    assert picture_difference(old, draw(tmp_path / "rounded", 0.3 + 2e-4) / "picture.png") is None
    assert "pixels look different" in picture_difference(old, draw(tmp_path / "moved", 0.35) / "picture.png")
    assert "pixels look different" in picture_difference(old, draw(tmp_path / "titled", title="a litle") / "picture.png")


def test_a_canvas_a_few_pixels_wider_is_another_machines_layout_if_the_numbers_are_the_same(tmp_path):
    from PIL import Image

    old = draw(tmp_path / "old") / "picture.png"
    for factor, close in ((1.004, True), (1.05, False)):
        picture = Image.open(old)
        picture.resize((round(factor * picture.width), picture.height)).save(tmp_path / "new.png")
        assert "instead of" in picture_difference(old, tmp_path / "new.png")
        assert (picture_difference(old, tmp_path / "new.png", same_numbers=True) is None) == close


@pytest.mark.parametrize(
    ("change", "kept", "reasons"),
    [
        ({"value": 0.3001, "result": 0.50001}, {"picture.png", "picture.pdf", "results.json"}, []),
        ({"value": 0.3001, "result": 0.6}, {"picture.png", "picture.pdf"}, ["results: number: 0.5 became 0.6; "]),
        ({"title": "another", "result": 0.50001}, {"results.json"}, ["picture: "]),
    ],
)
def test_a_run_replaces_only_what_really_changed(tmp_path, change, kept, reasons):
    old = draw(tmp_path / "old")
    before = {file.name: file.read_bytes() for file in old.iterdir()}
    changes = publish(draw(tmp_path / "new", **change), old, "results.json")
    assert {name for name, content in before.items() if (old / name).read_bytes() == content} == kept
    assert len(changes) == len(reasons) and all(map(str.startswith, changes, reasons))
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob("*.before"))


def test_a_run_adds_and_removes_figures(tmp_path):
    old, new = draw(tmp_path / "old"), draw(tmp_path / "new")
    shutil.move(new / "picture.png", new / "other.png")
    shutil.move(new / "picture.pdf", new / "other.pdf")
    assert publish(new, old, "results.json") == ["other: new", "picture: no longer made"]
    assert {file.name for file in old.iterdir()} == {"other.png", "other.pdf", "results.json"}


# --- the plugin ---


def test_the_plugin_names_notebook_cell_number_expected_and_got(pytester):
    pytester.makeini("[pytest]\naddopts = -p bertology_utils.suite.nbval_plugin")
    content = notebook(
        ("value = 0.5\nprint('share 0.49')", [stream("share 0.48\n")]),
        ("print('share', value)", [stream("share 0.9\n")]),
        ("print('agrees')", [stream("disagrees\n")]),
    )
    content["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (pytester.path / "8_trial.ipynb").write_text(json.dumps(content))
    (pytester.path / "9_empty.ipynb").write_text(
        json.dumps(notebook(("1", []))).replace('"execution_count": 1', '"execution_count": null')
    )
    found = pytester.runpytest_subprocess("--nbval", "8_trial.ipynb")
    found.assert_outcomes(passed=1, failed=2, skipped=1)
    text = found.stdout.str()
    assert "8_trial.ipynb, In [2] (code cell 2), output 1 (stdout), line 1: expected 0.9, got 0.5" in text
    assert "8_trial.ipynb, In [3] (code cell 3), output 1 (stdout), line 1: expected 'disagrees', got 'agrees'" in text
    refused = pytester.runpytest_inprocess("--nbval", "9_empty.ipynb", "--collect-only")
    assert "9_empty.ipynb: no cell has been executed" in refused.stdout.str()
    assert "make notebooks" in refused.stdout.str()


def test_the_plugin_finds_a_notebook_that_trains_what_no_plan_names(pytester):
    pytester.makeini("[pytest]\naddopts = -p bertology_utils.suite.nbval_plugin")
    line = "RTE, normal, seed 1: step 10 of 60, loss 0.690\\n"
    content = notebook((f"import os\n_ = open(os.environ['BERTOLOGY_PROGRESS'], 'a').write('{line}')", []))
    content["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (pytester.path / "8_trial.ipynb").write_text(json.dumps(content))
    found = pytester.runpytest_subprocess("--nbval", "8_trial.ipynb")
    found.assert_outcomes(passed=1, failed=1)
    assert "8_trial trains RTE, normal, seed 1, which its section's needs.py does not name" in found.stdout.str()


def test_notebooks_that_look_at_most_models_begin():
    notebook = object.__new__(IPyNbFile)
    names = ["0_attention_head", "2_framenet_heads", "2_framenet_heads", "3_finetuning_drift", "5_token_to_token", "a_test"]
    items = [SimpleNamespace(path=Path(f"{name}.ipynb"), parent=notebook) for name in names]
    items[-1].parent = None
    nbval_plugin.pytest_collection_modifyitems(items)
    order = ["3_finetuning_drift", "5_token_to_token", "0_attention_head", "2_framenet_heads", "2_framenet_heads", "a_test"]
    assert [item.path.stem for item in items] == order
