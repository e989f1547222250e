"""The comparison of a new run with an earlier one: what it lets pass, what it does not, and what it says."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from nbval.plugin import IPyNbFile

from bertology_utils import compare, finetune
from bertology_utils.compare import picture_difference
from bertology_utils.glue import TASKS
from bertology_utils.lab import Lab
from bertology_utils.plan import FineTuning, Item, make
from bertology_utils.run import publish
from tests import nbval_plugin

TABLE = """          score  heads above     p
task
MRPC  0.81 [0.74, 0.88]  43 of 72  0.03
STS-B 0.92 [0.90, 0.93]   7 of 72  0.55
verdict: agrees, (3, 11) on 320 rows"""


def said(expected, got):
    return list(compare.text_differences(expected, got))


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
    assert list(compare.cell_differences([old], [new])) == []
    assert list(compare.cell_differences([result(text_html="<b>0.10</b>")], [result(text_html="<b>0.12</b>")]))


def notebook(*cells):
    made = [
        nbformat.v4.new_code_cell(source, execution_count=number, outputs=cell_outputs)
        for number, (source, cell_outputs) in enumerate(cells, start=1)
    ]
    return json.loads(json.dumps(nbformat.v4.new_notebook(cells=made)))


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
    rows = [{"what": "answer", "value": result, "unit": "share", "tolerance": 0.001}]
    content = {"notebook": "8_trial", "settings": {}, "versions": {}, "verdicts": [], "rows": rows}
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
        ({"value": 0.3001, "result": 0.6}, {"picture.png", "picture.pdf"}, ["results: answer: value 0.5 became 0.6; "]),
        ({"title": "another", "result": 0.50001}, {"results.json"}, ["picture: "]),
    ],
)
def test_a_run_replaces_only_what_really_changed(tmp_path, change, kept, reasons):
    old = draw(tmp_path / "old")
    before = {file.name: file.read_bytes() for file in old.iterdir()}
    changes = publish(draw(tmp_path / "new", **change), old)
    assert {name for name, content in before.items() if (old / name).read_bytes() == content} == kept
    assert len(changes) == len(reasons) and all(map(str.startswith, changes, reasons))
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob("*.before"))


# --- the plugin ---


def test_the_plugin_names_notebook_cell_number_expected_and_got(pytester, monkeypatch):
    root = Path(nbval_plugin.__file__).parents[1]  # where `tests` is found from another folder
    monkeypatch.setenv("PYTHONPATH", str(root))
    pytester.makeini("[pytest]\naddopts = -p tests.nbval_plugin")
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
    found.assert_outcomes(passed=1, failed=2, skipped=2)
    text = found.stdout.str()
    assert "8_trial.ipynb, In [2] (code cell 2), output 1 (stdout), line 1: expected 0.9, got 0.5" in text
    assert "8_trial.ipynb, In [3] (code cell 3), output 1 (stdout), line 1: expected 'disagrees', got 'agrees'" in text
    refused = pytester.runpytest_inprocess("--nbval", "9_empty.ipynb", "--collect-only")
    assert "9_empty.ipynb: no cell has been executed" in refused.stdout.str()
    assert "make notebooks" in refused.stdout.str()


def test_a_notebook_that_trains_what_no_plan_names_is_refused(tiny_bert, monkeypatch):
    lab = Lab("8_trial", model=str(tiny_bert), tasks="rte", train_examples=8)
    monkeypatch.setenv(finetune.PREPARED, "1")
    with pytest.raises(RuntimeError, match="needs_of does not name it"):
        lab.finetuned(TASKS["rte"])
    (need,) = [FineTuning(TASKS["rte"])]
    item = Item(("8_trial",), tuple(lab._parameters.items()), Lab, need, "RTE", lab.entry(need), 0, 0)
    assert make(item)[1] is None, "what is planned is trained"
    lab.finetuned(TASKS["rte"])


def test_figures_that_differ_visibly_and_a_missing_folder_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(nbval_plugin, "project_root", lambda: tmp_path)
    name, notebook = "8_trial", object.__new__(IPyNbFile)
    notebook.output = tmp_path / "new"
    item = object.__new__(nbval_plugin.Figures)
    item.parent, item.path, item.name = notebook, tmp_path / f"{name}.ipynb", "figures"
    with pytest.raises(pytest.skip.Exception):
        item.runtest()
    draw(tmp_path / "figures" / name)
    with pytest.raises(AssertionError, match="no folder of this run"):
        item.runtest()
    draw(notebook.output / name, 0.3 + 2e-4)
    item.runtest()
    draw(notebook.output / name, title="a litle", result=0.6)
    with pytest.raises(AssertionError, match="8_trial: 1 figures differ\n  picture: .* pixels look different"):
        item.runtest()
    item.__class__ = nbval_plugin.Numbers
    with pytest.raises(AssertionError, match="answer: value 0.5 became 0.6"):
        item.runtest()
