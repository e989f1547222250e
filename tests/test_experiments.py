"""Pages that compute on measurements: the whole pipeline from raw rows, and on a model of one's own."""

import json

import pytest

from bertology_utils import __main__ as cli
from bertology_utils import run, studies

EXPERIMENTS = [one for one in run.find_notebooks() if one.study]


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_OUTPUT", str(tmp_path / "runs"))
    return tmp_path


def executed(notebook, values, places):
    outcome = run.run_notebook(
        notebook, values, places / "out", places / "figures", places / "results"
    )
    assert outcome.error is None, outcome
    text = outcome.executed.read_text(encoding="utf-8")
    claims = json.loads((places / "results" / f"{notebook.name}.json").read_text())["claims"]
    return text, claims


@pytest.mark.parametrize("notebook", EXPERIMENTS, ids=lambda one: one.name)
def test_the_study_small_goes_from_raw_rows_to_the_last_claim(notebook, places):
    """Fine-tuning, every measurement of the page, and the page itself."""
    text, claims = executed(notebook, {"study": "small", "tasks": "mrpc,sst2"}, places)
    assert "A run with study = small" in text and "outputs and figures are this run's" in text
    assert claims and all({"MRPC", "SST-2"} == row["tasks"].keys() for row in claims.values())
    assert len([*(places / "figures" / notebook.name).glob("*.png")]) >= 3
    assert not [*places.rglob("results/small")], "it is not kept with the project's own"


@pytest.mark.parametrize("notebook", EXPERIMENTS, ids=lambda one: one.name)
def test_a_classifier_of_ones_own_has_one_run_and_says_what_cannot_be_tested(
    notebook, places, tiny_bert, tiny_classifier
):
    values = {"tasks": "sst2", "model": str(tiny_bert), "data": "embedded", "study": "small"}
    _, claims = executed(notebook, values | {"checkpoint": f"sst2={tiny_classifier}"}, places)
    assert "not testable" in {row["verdict"] for row in claims.values()}


def test_measure_says_hours_and_gigabytes_before_and_measures_what_is_missing(
    tmp_path, tiny_bert, monkeypatch, capsys
):
    monkeypatch.setenv("BERTOLOGY_OUTPUT", str(tmp_path / "runs"))
    small = {
        "model": str(tiny_bert),
        "data": "embedded",
        "tasks": "sst2",
        "train_rows": 40,
        "rows": 8,
    }
    small |= {"disabled_rows": 8, "compared_rows": 8, "several_rows": 4, "recipe": {"epochs": 1}}
    monkeypatch.setitem(studies.STUDIES, "small", small)
    assert cli.main(["measure", "--study", "small", "--tasks", "sst2"]) == 0
    out = capsys.readouterr().out
    assert "small: 6 measurements of 2 fine-tuning runs; about 0.0 hours of one core here" in out
    assert len([*(tmp_path / "runs").rglob("*.nc")]) == 6
    assert cli.main(["measure", "--study", "small", "--tasks", "sst2"]) == 0
    assert "nothing is missing" in capsys.readouterr().out
