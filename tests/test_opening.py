"""The first screen of every notebook: a picture within 150 words, and what came out, as its results say it."""

import copy
import json
import re

import pytest
from conftest import ROOT

from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.suite.opening import TAG, measured, opened, sentences

NAMES = list(NOTEBOOKS.values())


def notebook(name):
    return json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())


def results(name):
    return json.loads((ROOT / "figures" / name / "results.json").read_text())


def screen(content):
    (cell,) = (cell for cell in content["cells"] if TAG in cell["metadata"].get("tags", []))
    return "".join(cell["source"])


@pytest.mark.parametrize("name", NAMES)
def test_what_came_out_is_what_the_results_say(name):
    content = notebook(name)
    assert opened(copy.deepcopy(content), results(name), "../figures") == content, (
        "run: python -m bertology_utils run --in-place"
    )
    assert len(re.findall(r"^\d\. \S", screen(content), re.MULTILINE)) in (1, 2, 3)


@pytest.mark.parametrize("name", NAMES)
def test_a_described_picture_comes_within_150_words_and_before_any_code(name):
    cells = notebook(name)["cells"]
    at = next(at for at, cell in enumerate(cells) if TAG in cell["metadata"].get("tags", []))
    assert all(cell["cell_type"] == "markdown" for cell in cells[: at + 1])
    before = " ".join("".join(cell["source"]) for cell in cells[:at])
    assert len(before.split()) <= 150
    alt, picture = re.match(r"!\[(.+?)\]\(\.\./figures/(.+?)\)", screen(notebook(name)), re.DOTALL).groups()
    assert len(alt.split()) >= 8
    assert (ROOT / "figures" / picture).exists() and picture.startswith(name)


def test_another_number_changes_the_sentence_and_another_place_the_picture():
    content, found = notebook(NAMES[3]), results(NAMES[3])
    before = screen(content)
    for verdict in found["verdicts"]:
        verdict["outcome"] = "holds here"
    after = screen(opened(content, found, "figures"))
    assert f"](figures/{NAMES[3]}/" in after and "](../figures/" not in after
    assert before.split("<!-- findings -->")[1] != after.split("<!-- findings -->")[1]


@pytest.mark.parametrize(
    ("model", "data", "said"),
    [
        (
            "embedded",
            "embedded",
            "This run: MiniLM, a small BERT that was trained to compare sentences, on sentences that a grammar",
        ),
        ("google-bert/bert-base-uncased", "hub", "This run: google-bert/bert-base-uncased, on GLUE."),
        ("mine", "folder:rows", "This run: mine, on the data in the folder rows."),
    ],
)
def test_model_and_data_are_named(model, data, said):
    assert measured({"settings": {"model": model, "data": data}}).startswith(said)


def test_results_of_another_version_are_refused_in_words():
    with pytest.raises(ValueError, match="unknown notebook with findings 'nine'"):
        sentences({"notebook": "nine", "verdicts": []})
    with pytest.raises(ValueError, match="another version"):
        sentences({"notebook": NAMES[3]})


def test_a_notebook_without_such_a_cell_stays_as_it_is():
    content = {"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["<!-- findings --><!-- end -->"]}]}
    assert opened(copy.deepcopy(content), {}, "figures") == content
