"""A new run's numbers against the committed ones, within a stated tolerance.

``make test`` runs the notebooks first and names their output in BERTOLOGY_FRESH.

Tolerances, each well below what a reader would notice: with other CPU kernels
or thread counts, float32 sums are rounded otherwise, and training carries that
on. Seen here: outputs differ by 3e-6 after a training .
"""

import json
import os
from pathlib import Path

import pytest
from conftest import ROOT

from bertology_utils.readme import with_tables

COMMITTED = sorted((ROOT / "figures").glob("*/results.json"))
SCORE_TOLERANCE = 0.015  # of 1: at most a few dev examples of 320 change sides
SIMILARITY_TOLERANCE = 0.01
HEAD_TOLERANCE = 0.03  # of one head's pattern shares: ten of 320 maps lie on a border between two patterns


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
        assert verdict["outcome"] in ("agrees", "disagrees", "undecided")
        assert all(verdict.values())


def test_every_figure_is_there_twice(committed):
    names = {path.stem for path in committed.parent.glob("*.png")}
    assert names
    assert names == {path.stem for path in committed.parent.glob("*.pdf")}


def test_new_run_equals_the_committed_one(committed):
    fresh = Path(os.environ.get("BERTOLOGY_FRESH", "")) / committed.parent.name / "results.json"
    if not os.environ.get("BERTOLOGY_FRESH"):
        pytest.skip("no new run to compare with; `make test` makes one")
    compare(json.loads(committed.read_text()), json.loads(fresh.read_text()))


def compare(old, new, place=""):
    """Walk both results: measured numbers within tolerance, settings and verdicts equal, versions free."""
    if place == "/versions":
        return
    if place == "/settings":
        assert old == new
        return
    if isinstance(old, dict):
        assert old.keys() == new.keys(), place
        for key in old:
            compare(old[key], new[key], f"{place}/{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), place
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            compare(a, b, f"{place}/{index}")
    elif isinstance(old, float):
        by_place = {"/drift": SIMILARITY_TOLERANCE, "/readings": SIMILARITY_TOLERANCE, "/by_head": HEAD_TOLERANCE}
        tolerance = next((of for start, of in by_place.items() if place.startswith(start)), SCORE_TOLERANCE)
        assert new == pytest.approx(old, abs=tolerance), place
    elif not place.endswith("/ours"):  # a verdict's sentence repeats the numbers, rounded
        assert old == new, place


def test_readme_says_what_the_results_say():
    text = (ROOT / "README.md").read_text()
    for path in COMMITTED:
        assert f"<!-- verdicts: figures/{path.parent.name} -->" in text
    assert with_tables(text, ROOT) == text, "run: python -m bertology_utils run --in-place"


@pytest.mark.parametrize("change", [
    lambda new: new["table1"]["rte"]["finetuned"]["accuracy"].update(value=0.5),
    lambda new: new["drift"]["mrpc"]["fine-tuning"][3].__setitem__(2, 0.5),
    lambda new: new["verdicts"][0].update(outcome="no"),
    lambda new: new["settings"]["recipe"].update(learning_rate=2.001e-4),
    lambda new: new.pop("table1"),
])
def test_the_comparison_can_fail(change):
    old = json.loads((ROOT / "figures" / "3_finetuning_drift" / "results.json").read_text())
    new = json.loads(json.dumps(old))
    compare(old, new)
    change(new)
    with pytest.raises(AssertionError):
        compare(old, new)
