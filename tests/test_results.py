"""The committed results: complete and honest about their settings.

A new run of the notebooks is compared with them by ``bertology_utils.suite.nbval_plugin``.
"""

import json
import re

import pytest
from conftest import ROOT

from bertology_utils.claims import OUTCOMES
from bertology_utils.claims.entries import ENTRIES
from bertology_utils.claims.register import NOTEBOOKS

COMMITTED = sorted((ROOT / "figures").glob("*/results.json"))
JUDGED = [path for path in COMMITTED if path.parent.name in NOTEBOOKS.values()]  # the others explain


@pytest.fixture(params=COMMITTED, ids=lambda path: path.parent.name)
def committed(request):
    return request.param


def test_results_are_complete_and_honest_about_their_settings(committed):
    content = json.loads(committed.read_text())
    assert content["settings"]["profile"] == "embedded"
    assert content["settings"]["seed"] == 1
    assert {"torch", "transformers"} <= set(content["versions"])
    assert bool(content["verdicts"]) == (committed in JUDGED)
    for verdict in content["verdicts"]:
        assert verdict["outcome"] in OUTCOMES and verdict["id"] in ENTRIES
        assert all(verdict.values())


def test_every_figure_is_there_twice(committed):
    names = {path.stem for path in committed.parent.glob("*.png")}
    assert names
    assert names == {path.stem for path in committed.parent.glob("*.pdf")}


def test_nothing_says_that_another_model_agrees_with_the_paper():
    """What MiniLM does is no verdict on BERT: a claim holds here, or not."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *sorted((ROOT / "notebooks").glob("*.ipynb"))]
    for page in pages:
        if page.name == "CHANGELOG.md":  # which quotes what was said before
            continue
        assert not re.search(r"\b(dis)?agrees\b", page.read_text()), page.name
