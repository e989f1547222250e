"""The committed results: complete, honest about their settings, and what the README says.

A new run of the notebooks is compared with them by ``bertology_utils.suite.nbval_plugin``.
"""

import json
import re

import pytest
from conftest import ROOT

from bertology_utils.claims import OUTCOMES
from bertology_utils.claims.register import ENTRIES
from bertology_utils.suite.readme import with_tables

COMMITTED = sorted((ROOT / "figures").glob("*/results.json"))


@pytest.fixture(params=COMMITTED, ids=lambda path: path.parent.name)
def committed(request):
    return request.param


def test_results_are_complete_and_honest_about_their_settings(committed):
    content = json.loads(committed.read_text())
    assert content["settings"]["profile"] == "embedded"
    assert content["settings"]["seed"] == 1
    assert {"torch", "transformers"} <= set(content["versions"])
    assert content["verdicts"]
    for verdict in content["verdicts"]:
        assert verdict["outcome"] in OUTCOMES and verdict["id"] in ENTRIES
        assert all(verdict.values())


def test_every_figure_is_there_twice(committed):
    names = {path.stem for path in committed.parent.glob("*.png")}
    assert names
    assert names == {path.stem for path in committed.parent.glob("*.pdf")}


def test_readme_says_what_the_results_say():
    text = (ROOT / "README.md").read_text()
    for path in COMMITTED:
        assert f"<!-- verdicts: figures/{path.parent.name} -->" in text
    assert with_tables(text, ROOT) == text, "run: python -m bertology_utils run --in-place"


def test_nothing_says_that_another_model_agrees_with_the_paper():
    """What MiniLM does is no verdict on BERT: a claim holds here, or not."""
    pages = [ROOT / "README.md", *sorted((ROOT / "notebooks").glob("*.ipynb"))]
    for page in pages:
        assert not re.search(r"\b(dis)?agrees\b", page.read_text()), page.name
