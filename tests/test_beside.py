"""Numbers of several sources beside each other: dots with intervals, the committed run on real data, outcomes counted."""

import json
import shutil

import matplotlib.pyplot as plt
import pytest
from conftest import ROOT

from bertology_utils import figures
from bertology_utils.claims import Verdict, outcomes
from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.statistics.estimate import Estimate
from bertology_utils.suite import beside

ROWS = {
    "MRPC": {
        "the paper": 0.9,
        "this run": Estimate(0.5, 0.1, 100),
        "MiniLM, real GLUE": {"value": 0.3, "low": 0.1, "high": 0.4},
    },
    "RTE": {"this run": (0.2, 0.1, 0.3)},
}


@pytest.fixture
def ax():
    yield plt.figure().add_subplot()
    plt.close("all")


def marks(ax):
    """Of every dot: place across, shape, and whether it is filled."""
    points = [line for line in ax.lines if line.get_marker() not in ("None", "") and len(line.get_xdata())]
    return {(round(float(p.get_xdata()[0]), 6), p.get_marker(), p.get_markerfacecolor() != "white") for p in points}


def test_every_source_has_its_shape_and_no_interval_is_hollow(ax):
    figures.dots(ax, ROWS, "share, %", scale=100)
    assert marks(ax) == {(90, "D", False), (50, "o", True), (30, "s", True), (20, "o", True)}


def test_intervals_and_border_are_drawn_to_scale(ax):
    figures.dots(ax, ROWS, "share, %", scale=100, border=0.02)
    spans = {tuple(round(float(x), 1) for x in line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2}
    assert {(10.0, 40.0), (10.0, 30.0), (30.4, 69.6), (2.0, 2.0)} <= spans


def test_panels_share_their_scale_and_one_legend():
    figure = figures.dot_panels({"a": ROWS, "b": {"RTE": {"this run": 0.95}}}, "share")
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["the paper", "MiniLM, real GLUE", "this run"]
    plt.close(figure)


def test_the_committed_run_is_that_on_real_data():
    found = beside.real_run(1)
    path = ROOT / "benchmarks" / "minilm_glue" / NOTEBOOKS[1] / "results.json"
    assert found.title == "MiniLM, real GLUE" and not found.missing
    assert found.results == json.loads(path.read_text())
    assert beside.real_run(2).title == "MiniLM, FrameNet 1.5"


def test_without_it_a_figure_lacks_it_and_a_sentence_says_so(tmp_path, monkeypatch):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    found = beside.real_run(1)
    assert not found.results
    assert "is missing" in found.missing and "--only 1" in found.missing


def test_outcomes_are_counted_claims_first():
    said = [
        Verdict("last-layers", "The last two change most", "", "", "holds here", ""),
        Verdict("stripes-special", "Stripes", "", "", "undecided", "", "bert-base"),
        Verdict("norm-random", "Random", "", "", "holds here", ""),
    ]
    assert outcomes(said) == [
        "Holds here, 1 of 2 claims: The last two change most.",
        "Undecided, 1 of 2 claims: Stripes (bert-base).",
        "Holds here, 1 of 1 controls: Random.",
    ]
