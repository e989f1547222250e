"""Pages that compute on measurements: the whole pipeline from raw rows, and on a model of one's own."""

import json
import os
import signal
import threading

import pytest
import xarray as xr
from distributed import Client, LocalCluster
from second_device_run import ENTRIES

from bertology_utils import __main__ as cli
from bertology_utils import run, settings
from bertology_utils.glue import get_task
from bertology_utils.measurements import PLAN
from bertology_utils.study import Study


@pytest.fixture(params=run.find_notebooks(), ids=lambda one: one.name)
def notebook(request):
    return request.param


@pytest.fixture
def execute(notebook, tmp_path, tmp_path_factory, monkeypatch):
    """Runs the page; fine-tuning runs and measurements are made once for all pages, and for all processes that run tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(folder / "runs"))
    monkeypatch.setenv("BERTOLOGY_CACHE", str(folder / "cache"))

    def executed(**values):
        given = {"study": "small"} | values
        outcome = run.run_notebook(notebook, given, tmp_path, tmp_path / "figures")
        assert outcome.error is None, outcome
        told = (tmp_path / "results" / f"{notebook.name}.json").read_text()
        return outcome.executed.read_text(encoding="utf-8"), json.loads(told)["claims"]

    return executed


def test_the_study_small_goes_from_raw_rows_to_the_last_claim(notebook, execute, tmp_path):
    """Fine-tuning, every measurement of the page, and the page itself."""
    # Notebook 10 fine-tunes seven times for each run, so one task has to do.
    tasks = "sst2" if notebook.number == "10" else "mrpc,sst2"
    text, claims = execute(tasks=tasks)
    assert "A run with study = small" in text and "outputs and figures are this run's" in text
    names = [{task.partition(", run ")[0] for task in row["tasks"]} for row in claims.values()]
    if "tasks" in notebook.parameters:
        # A claim may be about some of the tasks, or about sentences.
        both = {get_task(name).title for name in tasks.split(",")}
        assert both in names and all(one <= both or not one & both for one in names)
    else:
        assert any(names)
    assert len([*(tmp_path / "figures" / notebook.name).glob("*.png")]) >= 3
    assert not [*tmp_path.rglob("results/small")], "it is not kept with the project's own"


def test_a_classifier_of_ones_own_has_one_run_and_says_what_cannot_be_tested(
    notebook, execute, tiny_bert, tiny_classifier
):
    own = {"model": str(tiny_bert), "checkpoint": f"sst2={tiny_classifier}"}
    _, claims = execute(tasks="sst2", data="embedded", **own)
    verdicts = {row["verdict"] for row in claims.values()}
    all_testable = notebook.name in ("7_value_norms", "11_trees")  # with one task and one run
    assert ("not testable" in verdicts) != all_testable, verdicts


def files(folder):
    return {path.relative_to(folder): path for path in folder.rglob("*.nc")}


def test_a_cluster_of_which_a_worker_is_killed_measures_the_same_values(
    tiny_bert, tmp_path, monkeypatch, capsys
):
    """As this machine alone, which says hours and gigabytes before."""
    entries = ENTRIES | {"model": str(tiny_bert), "tasks": "sst2", "sentences": 8}
    monkeypatch.setitem(settings.STUDIES, "small", entries)
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path / "runs"))
    planned = sum(len(measurement.cases(Study.of("small"))) for measurement, _ in PLAN)
    measure = ["measure", "--study", "small"]
    assert cli.main(measure) == 0
    told = f"small: {planned} measurements of 2 fine-tuning runs; about 0.0 hours of one core"
    assert told in capsys.readouterr().out
    assert cli.main(measure) == 0
    assert "nothing is missing" in capsys.readouterr().out
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path / "cluster"))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
        killer = threading.Timer(1.0, os.kill, (pids[0], signal.SIGKILL))
        killer.start()
        assert cli.main([*measure, "--scheduler", cluster.scheduler_address]) == 0
        killer.join()
    here, there = files(tmp_path / "runs"), files(tmp_path / "cluster")
    assert here.keys() == there.keys() and len(here) == planned
    for name in here:
        one, other = (xr.load_dataset(of[name], engine="h5netcdf") for of in (here, there))
        assert one.equals(other), name
