"""The comparison of a new run with an earlier one: what it lets pass, what it does not, and what it says."""

import json

import matplotlib.pyplot as plt
import nbformat
import pytest
from conftest import write_results
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
    [
        ("0.81", "0.82"),
        ("0.88]", "0.87]"),
        ("43 of", "44 of"),
        ("  0.03", "  0.04"),
        (" 7 of", " 8 of"),
        ("0.03", "0.03 "),
    ],
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
        (
            "0.55",
            "0.57",
            "line 4: expected 0.55, got 0.57 (number: at most 0.01 apart are allowed)",
        ),
        ("(3, 11)", "(3, 12)", "line 5: expected 11, got 12 (head: they must be equal)"),
        ("320", "321", "line 5: expected 320, got 321 (number: they must be equal)"),
        (
            "STS-B 0.92 [0.90, 0.93]   7 of 72  0.55\n",
            "",
            "expected 5 lines, got 4; missing: 'STS-B # [#, #] # of # #'",
        ),
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
        ("59 % [5, 44]", "60 % [6, 43]", True),
        ("59 % [5, 44]", "59 % [7, 44]", False),
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
        ("0.113", "0.1134", True),
    ],
)
def test_rules_of_single_numbers(old, new, same):
    assert (said(old, new) == []) == same


def stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def result(**data):
    return {
        "output_type": "execute_result",
        "data": {key.replace("_", "/"): text for key, text in data.items()},
    }


def test_html_is_left_out_where_there_is_plain_text():
    old, new = (
        result(text_plain="x 0.10", text_html="<b>0.10</b>"),
        result(text_plain="x 0.11", text_html="<i>9</i>"),
    )
    assert list(compare.cell_differences([old], [new])) == []
    assert list(
        compare.cell_differences(
            [result(text_html="<b>0.10</b>")], [result(text_html="<b>0.12</b>")]
        )
    )


def notebook(*cells):
    made = [
        nbformat.v4.new_code_cell(source, execution_count=number, outputs=cell_outputs)
        for number, (source, cell_outputs) in enumerate(cells, start=1)
    ]
    return json.loads(json.dumps(nbformat.v4.new_notebook(cells=made)))


# --- figures, and what a run publishes ---


@plt.style.context("default")  # another test may have set the suite's
def draw(
    folder, value=0.3, title="a title", result=0.5, colour="C0", marker="s", cmap="viridis", pad=0.1
):
    """A folder of one picture and its numbers; ``pad`` is the margin in inches."""
    folder.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(6, 4))
    ax.plot([0, value, 1], [0, 1, 0.4], color=colour, marker=marker)
    ax.imshow([[value, 0.2], [0.3, 0.4]], extent=(0, 1, 0, 1), vmin=0, vmax=1, cmap=cmap)
    ax.set_title(title)
    for kind in ("png", "pdf"):
        figure.savefig(folder / f"picture.{kind}", bbox_inches="tight", pad_inches=pad)
    plt.close(figure)
    write_results(
        folder, [{"what": "answer", "value": result, "unit": "share", "tolerance": 0.001}]
    )
    return folder


def difference(folder, same_numbers=True, **change):
    """Between the picture as it is and one with a change."""
    pictures = [
        draw(folder / name, **how) / "picture.png" for name, how in (("old", {}), ("new", change))
    ]
    return picture_difference(*pictures, same_numbers)


@pytest.mark.parametrize(
    "change",
    [{"value": 0.3 + 2e-4}, {"value": 0.301}, {"pad": 0.11}, {"value": 0.301, "pad": 0.11}],
)
def test_a_picture_of_the_same_numbers_stays_where_another_machine_rounds_or_sets_otherwise(
    tmp_path, change
):
    assert difference(tmp_path, **change) is None


@pytest.mark.parametrize("pad", [0.1, 0.11])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"title": "a litle"}, "TJ a litle; "),
        ({"colour": "C1"}, "'line': '4.0 2.0 0.2'"),
        (
            {"colour": "#3b84bf"},
            "'line': '0.9 2.1 3.0'",
        ),  # 6 % lighter, which no pixel shows by VISIBLE levels
        ({"marker": "o"}, "B mch"),
        ({"marker": "D"}, "B mlh"),
        ({"marker": ""}, "drawn is "),
        ({"value": 0.35}, "place "),
        ({"cmap": "magma_r"}, "blocks look different"),
    ],
)
def test_a_picture_of_the_same_numbers_that_is_drawn_otherwise_is_another_on_any_canvas(
    tmp_path, change, said, pad
):
    assert said in difference(tmp_path, pad=pad, **change)


@pytest.mark.parametrize("pad", [0.1, 0.11])
def test_a_printed_whole_number_may_be_the_next_one_where_the_numbers_are_the_same(tmp_path, pad):
    """A cell of 40.5 % is written 40 on one machine and 41 on another."""
    old, *new = (
        draw(tmp_path / title, title=title, pad=0.1 if title == "40" else pad)
        for title in ("40", "41", "42")
    )
    assert (
        picture_difference(old / "picture.png", new[0] / "picture.png", same_numbers=True) is None
    )
    assert picture_difference(old / "picture.png", new[0] / "picture.png") is not None
    assert "TJ 42" in picture_difference(
        old / "picture.png", new[1] / "picture.png", same_numbers=True
    )


def test_a_few_pixels_are_rounding_where_the_numbers_are_the_same_and_a_change_where_they_are_not(
    tmp_path,
):
    from PIL import Image

    assert difference(tmp_path, same_numbers=False, value=0.3 + 2e-5) is None
    old, new = tmp_path / "old" / "picture.png", tmp_path / "new" / "picture.png"
    picture = Image.open(new)
    picture.paste(
        (255, 0, 0), (100, 100, 103, 101)
    )  # as where a line on the border of two pixels falls to the other
    picture.save(new)
    assert picture_difference(old, new, same_numbers=True) is None
    assert picture_difference(old, new).startswith("3 of ")


def test_a_larger_canvas_is_another_picture_where_the_numbers_are_others_or_it_is_much_larger(
    tmp_path,
):
    assert "instead of" in difference(tmp_path, same_numbers=False, pad=0.11)
    assert "instead of" in difference(tmp_path, pad=0.3)


def test_what_is_drawn_is_told_in_the_order_of_the_file(tmp_path):
    told = compare.drawn(draw(tmp_path) / "picture.pdf")
    assert sum(line.startswith("TJ a title; ") for line in told) == 1
    assert [line for line in told if line.startswith("image ")] and [
        line for line in told if line.startswith("B mlh ")
    ]
    places = [line.rpartition("place ")[2].split() for line in told if "place" in line]
    assert all(-1 <= float(place) <= 20 for pair in places for place in pair)


@pytest.mark.parametrize(
    ("change", "kept", "reasons"),
    [
        ({"value": 0.3001, "result": 0.50001}, {"picture.png", "picture.pdf", "results.json"}, []),
        ({"pad": 0.11, "result": 0.50001}, {"picture.png", "picture.pdf", "results.json"}, []),
        (
            {"value": 0.30002, "result": 0.6},
            {"picture.png", "picture.pdf"},
            ["results: answer: value 0.5 became 0.6; "],
        ),
        ({"title": "another", "result": 0.50001}, {"results.json"}, ["picture: "]),
        ({"title": "a litle", "pad": 0.11}, {"results.json"}, ["picture: "]),
        ({"colour": "C2"}, {"results.json"}, ["picture: "]),
    ],
)
def test_a_run_replaces_only_what_really_changed(tmp_path, change, kept, reasons):
    old = draw(tmp_path / "old")
    before = {file.name: file.read_bytes() for file in old.iterdir()}
    changes = publish(draw(tmp_path / "new", **change), old)
    assert {
        name for name, content in before.items() if (old / name).read_bytes() == content
    } == kept
    assert len(changes) == len(reasons) and all(map(str.startswith, changes, reasons))
    assert not (tmp_path / "new").exists() and not list(tmp_path.glob("*.before"))


# --- the plugin ---


def test_the_plugin_names_notebook_cell_number_expected_and_got(pytester):
    pytester.makeini("[pytest]\naddopts = -p tests.nbval_plugin")
    content = notebook(
        ("value = 0.5\nprint('share 0.49')", [stream("share 0.48\n")]),
        ("print('share', value)", [stream("share 0.9\n")]),
        ("print('agrees')", [stream("disagrees\n")]),
    )
    content["metadata"]["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    (pytester.path / "8_trial.ipynb").write_text(json.dumps(content))
    (pytester.path / "9_empty.ipynb").write_text(
        json.dumps(notebook(("1", []))).replace('"execution_count": 1', '"execution_count": null')
    )
    found = pytester.runpytest_subprocess("--nbval", "8_trial.ipynb")
    found.assert_outcomes(passed=1, failed=2, skipped=2)
    text = found.stdout.str()
    assert (
        "8_trial.ipynb, In [2] (code cell 2), output 1 (stdout), line 1: expected 0.9, got 0.5"
        in text
    )
    assert (
        "8_trial.ipynb, In [3] (code cell 3), output 1 (stdout), line 1: expected 'disagrees', got 'agrees'"
        in text
    )
    refused = pytester.runpytest_inprocess("--nbval", "9_empty.ipynb", "--collect-only")
    assert "9_empty.ipynb: no cell has been executed" in refused.stdout.str()
    assert "make notebooks" in refused.stdout.str()


def test_a_notebook_that_trains_what_no_plan_names_is_refused(tiny_bert, monkeypatch):
    lab = Lab("8_trial", model=str(tiny_bert), tasks="rte", train_examples=8)
    monkeypatch.setenv(finetune.PREPARED, "1")
    with pytest.raises(RuntimeError, match="needs_of does not name it"):
        lab.finetuned(TASKS["rte"])
    (need,) = [FineTuning(TASKS["rte"])]
    item = Item(
        ("8_trial",), tuple(lab._parameters.items()), Lab, need, "RTE", lab.entry(need), 0, 0
    )
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
    draw(notebook.output / name, 0.3 + 2e-4, pad=0.11)
    item.runtest()
    draw(notebook.output / name, title="a litle", result=0.6)
    with pytest.raises(
        AssertionError, match="8_trial: 1 figures differ\n  picture: drawn is .*TJ a litle"
    ):
        item.runtest()
    item.__class__ = nbval_plugin.Numbers
    with pytest.raises(AssertionError, match="answer: value 0.5 became 0.6"):
        item.runtest()
