"""Pages that compute on measurements: the whole pipeline from raw rows, and on a model of one's own."""

import json
import os
import signal
import threading

import pytest
import xarray as xr
from distributed import Client, LocalCluster

from bertology_utils import __main__ as cli
from bertology_utils import run, settings
from bertology_utils.glue import get_task
from bertology_utils.measurements import PLAN
from bertology_utils.study import Study

EXPERIMENTS = run.find_notebooks()


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path / "runs"))
    return tmp_path


@pytest.fixture
def shared(places, tmp_path_factory, monkeypatch):
    """Fine-tuning runs and measurements are made once for all pages, and for all processes that run tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(folder / "runs"))
    monkeypatch.setenv("BERTOLOGY_CACHE", str(folder / "cache"))
    return places


def executed(notebook, values, places):
    outcome = run.run_notebook(notebook, values, places, places / "figures")
    assert outcome.error is None, outcome
    text = outcome.executed.read_text(encoding="utf-8")
    claims = json.loads((places / "results" / f"{notebook.name}.json").read_text())["claims"]
    return text, claims


@pytest.mark.parametrize("notebook", EXPERIMENTS, ids=lambda one: one.name)
def test_the_study_small_goes_from_raw_rows_to_the_last_claim(notebook, shared):
    """Fine-tuning, every measurement of the page, and the page itself."""
    places = shared
    # Notebook 10 fine-tunes seven times for each run, so one task has to do.
    tasks = "sst2" if notebook.number == "10" else "mrpc,sst2"
    text, claims = executed(notebook, {"study": "small", "tasks": tasks}, places)
    assert "A run with study = small" in text and "outputs and figures are this run's" in text
    names = [{*row["tasks"]} for row in claims.values()]
    if "tasks" in notebook.parameters:
        # A claim may be about some of the tasks, or about sentences.
        both = {get_task(name).title for name in tasks.split(",")}
        assert both in names and all(one <= both or not one & both for one in names)
    else:
        assert any(names)
    assert len([*(places / "figures" / notebook.name).glob("*.png")]) >= 3
    assert not [*places.rglob("results/small")], "it is not kept with the project's own"


@pytest.mark.parametrize("notebook", EXPERIMENTS, ids=lambda one: one.name)
def test_a_classifier_of_ones_own_has_one_run_and_says_what_cannot_be_tested(
    notebook, shared, tiny_bert, tiny_classifier
):
    values = {"tasks": "sst2", "model": str(tiny_bert), "data": "embedded", "study": "small"}
    _, claims = executed(notebook, values | {"checkpoint": f"sst2={tiny_classifier}"}, shared)
    verdicts = {row["verdict"] for row in claims.values()}
    all_testable = notebook.name in ("7_value_norms", "11_trees")  # with one task and one run
    assert ("not testable" in verdicts) != all_testable, verdicts


@pytest.fixture
def small(tiny_bert, monkeypatch):
    """The study "small" with a tiny encoder and few rows."""
    sizes = {"train_rows": 40, "rows": 8, "disabled_rows": 8, "compared_rows": 8, "several_rows": 4}
    sizes |= {"sentences": 8, "frames": 8, "pruned_rows": 8}
    entries = {
        "model": str(tiny_bert),
        "data": "embedded",
        "annotation": "gold",
        "tasks": "sst2",
        "recipe": {"epochs": 1},
    }
    monkeypatch.setitem(settings.STUDIES, "small", entries | sizes)


def files(folder):
    return {path.relative_to(folder): path for path in folder.rglob("*.nc")}


def test_a_cluster_of_which_a_worker_is_killed_measures_the_same_values(
    small, places, monkeypatch, capsys
):
    """As this machine alone, which says hours and gigabytes before."""
    planned = sum(len(measurement.cases(Study.of("small"))) for measurement, _ in PLAN)
    assert cli.main(["measure", "--study", "small"]) == 0
    told = f"small: {planned} measurements of 2 fine-tuning runs; about 0.0 hours of one core"
    assert told in capsys.readouterr().out
    assert cli.main(["measure", "--study", "small"]) == 0
    assert "nothing is missing" in capsys.readouterr().out
    here = files(places / "runs")
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(places / "cluster"))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
        killer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
        killer.start()
        call = ["measure", "--study", "small", "--scheduler", cluster.scheduler_address]
        assert cli.main(call) == 0
        killer.join()
    there = files(places / "cluster")
    assert here.keys() == there.keys() and len(here) == planned
    for name, path in here.items():
        one, other = (xr.load_dataset(file, engine="h5netcdf") for file in (path, there[name]))
        assert one.equals(other), name
