"""Workers: on this machine and on a Dask cluster; what dies, fails or does not fit is told, and done again where it can be."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import ROOT

from bertology_utils import __main__ as cli
from bertology_utils.common.cache import damage
from bertology_utils.suite.notebooks import find_notebooks, select
from bertology_utils.suite.work import plan, worker, workers
from bertology_utils.suite.work.processes import session_of_run

SMALL = {"tasks": "sst2", "train_examples": 32}  # two trainings


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch, own_cache):
    """The cache's name is set before any worker starts; they see the same folder."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    own_cache.mkdir()


@pytest.fixture
def small_plan(tiny_bert):
    return plan.plan(select(find_notebooks(), "1"), SMALL | {"model": str(tiny_bert)})


def wait_until(condition, seconds=120):
    """A deadline for what other processes have to do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def at_work(cache):
    return list(cache.glob("plans/*/*.in-hand"))


def made(folder):
    return {
        path.name: path.stat().st_mtime_ns for path in folder.glob("classifiers/*") if path.suffix == "" and path.is_dir()
    }


def test_two_processes_make_everything_once_and_the_same_as_one(small_plan, own_cache, monkeypatch, tmp_path, capfd):
    assert workers.carry_out(small_plan, 2) == []
    lines = capfd.readouterr().err.splitlines()
    assert [line.split("]")[0] for line in lines if line.startswith("[")] == ["[1/2", "[2/2"]
    first = made(own_cache)
    assert len(first) == 2
    assert not any((own_cache / "plans").iterdir()), "what workers said goes with the run"
    assert workers.carry_out(small_plan, 2) == []
    assert made(own_cache) == first, "nothing is made twice"

    weights = {name: (own_cache / "classifiers" / name / "model.safetensors").read_bytes() for name in first}
    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path / "another"))
    assert workers.carry_out(small_plan, 1) == []
    for name, content in weights.items():
        assert (tmp_path / "another" / "classifiers" / name / "model.safetensors").read_bytes() == content


def test_a_failing_item_is_told_last_and_the_others_are_made(small_plan, own_cache, capfd):
    broken = replace(small_plan.items[0], parameters=(*small_plan.items[0].parameters[:-1], ("seed", "x")))
    failures = workers.carry_out(replace(small_plan, items=(broken, *small_plan.items[1:])), 2)
    assert [failure.item.title for failure in failures] == [broken.title]
    assert "seed" in failures[0].problem
    assert len(made(own_cache)) == len(small_plan.items) - 1


def test_a_failure_sets_the_exit_code_and_notebooks_that_need_it_are_not_run(monkeypatch, capsys):
    monkeypatch.setattr("bertology_utils.encoders.finetune._check_finite", lambda *_: 1 / 0)
    code = cli.main(["run", "--only", "1", "--jobs", "1", "-p", "tasks", "sst2", "-p", "train_examples", "8"])
    errors = capsys.readouterr().err
    assert code == 1
    assert errors.splitlines()[-3:] == [
        "not run: 1_attention_patterns, since what it needs was not made",
        "error: SST-2, pretrained, seed 1: ZeroDivisionError: division by zero",
        "error: SST-2, pretrained, seed 2: ZeroDivisionError: division by zero",
    ]


def kill_whoever_is_at_work(cache):
    """Wait for an item in hand, then kill the workers of this process."""
    import psutil

    wait_until(lambda: at_work(cache))
    for child in psutil.Process().children(recursive=True):
        if "resource_tracker" not in " ".join(child.cmdline()):
            child.kill()


def test_a_killed_worker_is_replaced_and_its_item_begun_again(small_plan, own_cache, capfd):
    killer = threading.Thread(target=kill_whoever_is_at_work, args=(own_cache,), daemon=True)
    killer.start()
    assert workers.carry_out(small_plan, 2) == []
    killer.join()
    assert "a worker died;" in capfd.readouterr().err
    assert len(made(own_cache)) == 2
    assert all(damage(own_cache / "classifiers" / name) is None for name in made(own_cache))


def test_only_the_item_that_kills_its_worker_is_given_up(small_plan, monkeypatch, own_cache):
    culprit = small_plan.items[0].title
    begun = []

    def dying(jobs, items, session):
        items = list(items)
        begun.append([item.title for _, item in items])
        if culprit in begun[-1]:
            for number, _ in items:
                (session.folder / f"{number}.in-hand").write_text("")
            raise workers.WorkerDiedError
        for mark in session.folder.glob("*.in-hand"):
            mark.unlink()
        for number, item in items:
            yield worker.make(number, item, session)

    monkeypatch.setattr(workers, "_on_this_machine", dying)
    (failure,) = workers.carry_out(small_plan, 2)
    assert failure.item.title == culprit
    assert failure.problem == "its worker died 3 times; a common cause is too little memory"
    assert [len(titles) for titles in begun] == [2, 1, 1, 1]
    assert len(made(own_cache)) == 1


def test_workers_end_with_a_killed_run(own_cache, tiny_bert):
    import psutil

    call = [sys.executable, "-m", "bertology_utils", "prepare", "--only", "1", "--jobs", "2"]
    for name, value in (SMALL | {"train_examples": 0, "model": str(tiny_bert)}).items():
        call += ["-p", name, str(value)]
    with subprocess.Popen(call, stderr=subprocess.DEVNULL) as run:
        wait_until(lambda: at_work(own_cache) or run.poll() is not None)
        assert run.poll() is None
        children = psutil.Process(run.pid).children(recursive=True)
        assert children
        run.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
    assert not made(own_cache) or all(damage(own_cache / "classifiers" / name) is None for name in made(own_cache))


def test_a_worker_refuses_what_does_not_fit(small_plan, tmp_path):
    item = small_plan.items[0]
    gone = worker.Session("x", str(tmp_path / "nowhere"), parent=os.getpid())
    assert "does not see" in worker.make(0, item, gone).problem
    with session_of_run() as session:
        other = replace(item, key=item.key | {"versions": {"torch": "2.9.0"}})
        problem = worker.make(0, other, session).problem
        assert "would make something else than this run needs" in problem
        assert "'torch': '2.9.0'" in problem
        session.folder.chmod(0o500)
        if os.geteuid():  # root may write anywhere
            assert "cannot write to" in worker.make(0, item, session).problem
        session.folder.chmod(0o700)


def test_gpus_are_shared_out_one_each(monkeypatch, tmp_path):
    monkeypatch.setattr(worker.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(worker, "_gpu_locks", [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")  # what the run itself was given
    assert [worker._free_gpu(2), worker._free_gpu(2)] == ["2", "3"]
    with pytest.raises(RuntimeError, match="taken all 2 GPUs"):
        worker._free_gpu(2)


@contextmanager
def dask(count, cache, own_name=None):
    """A scheduler and workers as processes of their own, which know nothing but the cache folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("BERTOLOGY_CACHE")
    if own_name:
        environment["BERTOLOGY_CACHE"] = str(own_name)
    folder = cache.parent / "dask"
    folder.mkdir()
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
            cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        processes.append(process)
        return process

    file = folder / "scheduler.json"
    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    for _ in range(count):
        start("dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard")
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"], processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


@contextmanager
def killed_at_work(process, cache):
    """Within the context the process is killed as soon as an item is in hand."""

    def kill():
        wait_until(lambda: at_work(cache))
        process.kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    yield
    killer.join()


def wait_for_workers(address, count):
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(count, timeout=60)


def test_a_cluster_makes_the_same_and_a_killed_workers_item_goes_to_another(small_plan, own_cache, monkeypatch, tmp_path):
    mounted = tmp_path / "mounted"  # another name for the same folder
    mounted.symlink_to(own_cache)
    with dask(2, own_cache, mounted) as (address, (_, first, _)):
        wait_for_workers(address, 2)

        with killed_at_work(first, own_cache):
            assert workers.carry_out(small_plan, 1, address) == []
    by_cluster = made(own_cache)
    assert len(by_cluster) == 2
    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path / "another"))
    assert workers.carry_out(small_plan, 1) == []
    for name in by_cluster:
        same = [root / "classifiers" / name / "model.safetensors" for root in (own_cache, tmp_path / "another")]
        assert same[0].read_bytes() == same[1].read_bytes()


def test_no_scheduler_none_any_more_and_no_workers_are_said_in_words(small_plan, own_cache, capsys):
    call = ["prepare", "--only", "1", "-p", "tasks", "sst2", "-p", "train_examples", "8", "--scheduler"]
    assert cli.main([*call, "tcp://127.0.0.1:9"]) == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err
    with dask(0, own_cache) as (address, _):
        assert cli.main([*call, address]) == 2
        assert "has no workers; start some: dask worker" in capsys.readouterr().err


def test_a_scheduler_that_goes_away_ends_the_run_in_words(small_plan, own_cache):
    with dask(1, own_cache) as (address, (scheduler, _)):
        wait_for_workers(address, 1)

        words = "went away; what was finished is in the cache"
        with killed_at_work(scheduler, own_cache), pytest.raises(ConnectionError, match=words):
            workers.carry_out(small_plan, 1, address)


@pytest.mark.parametrize("status", ["closing", "closed"])
def test_a_client_that_gave_up_says_that_the_scheduler_is_gone(status):
    client = SimpleNamespace(status=status, scheduler_info=dict)  # it forgets even that there were workers
    with pytest.raises(ConnectionError, match="the Dask scheduler at tcp://here:1 went away"):
        workers._check_alive(client, "tcp://here:1")


def test_all_workers_gone_is_said_in_words(small_plan, own_cache):
    with dask(1, own_cache) as (address, (_, only)):
        wait_for_workers(address, 1)

        words = "all workers of the Dask scheduler at .* went away; what was finished"
        with killed_at_work(only, own_cache), pytest.raises(ConnectionError, match=words):
            workers.carry_out(small_plan, 1, address)


def test_sweeps_of_a_failed_training_are_not_begun(tiny_bert, monkeypatch):
    some = {"tasks": "sst2", "train_examples": 8, "sweep_examples": 8, "trainings": 1, "model": str(tiny_bert)}
    small = plan.plan(select(find_notebooks(), "6"), some)
    begun = []

    def failing(number, item, session):
        begun.append(item.title)
        return worker.Made(number, 0.0, "no luck")

    monkeypatch.setattr(workers, "make", failing)
    failures = workers.carry_out(small, 1)
    assert begun == ["SST-2, pretrained, seed 1"]
    assert [failure.problem for failure in failures] == ["no luck"] + 4 * ["the training that it is a sweep of failed"]
