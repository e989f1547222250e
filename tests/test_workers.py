"""Workers, of this machine and of a Dask cluster, on made-up work: who dies, goes away or does not fit is told."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from distributed import Client

from bertology_utils import __main__ as cli
from bertology_utils import workers
from bertology_utils.workers import NeedFailedError, Task, connect, describe_error, run_tasks

NOWHERE = subprocess.DEVNULL


# What workers are given to do


def square(number):
    return number**2


def threads(_):
    return os.environ.get("OMP_NUM_THREADS"), os.getpid()


def die_at(number):
    """Three kills its worker."""
    if number == 3:
        os._exit(9)
    return number**2


def fail_at(number):
    if number == 3:
        raise OSError(28, "No space left on device")
    return number


def last_long(folder):
    (Path(folder) / f"{os.getpid()}.begun").touch()
    time.sleep(600)


def append(file, text):
    with file.open("a") as opened:
        opened.write(text)


def die_once(file):
    """The first that takes it is killed."""
    if not file.exists():
        file.touch()
        os._exit(9)
    return "made"


def last_long_once(folder):
    """Whoever comes first lasts long."""
    if not list(Path(folder).glob("*.begun")):
        last_long(folder)
    return "made"


def wait_until(condition, seconds=60):
    """A deadline for what other processes have to do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


# This machine


def run(function, items, jobs, scheduler=""):
    """(item, result, error) of every item, as they end."""
    tasks = {str(item): Task(function, (item,)) for item in items}
    with connect(jobs, scheduler) as client:
        return [(tasks[name].arguments[0], *rest) for name, *rest in run_tasks(tasks, client)]


def test_workers_have_one_thread_and_one_job_needs_no_worker():
    (_, (of_worker, process), _), *_ = run(threads, [1, 2], 2)
    assert of_worker == "1" and process != os.getpid()
    ((_, (_, here), _),) = run(threads, [1], 1)
    assert here == os.getpid()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_task_stops_no_other_and_what_needs_it_is_not_begun(jobs):
    tasks = {
        "fails": Task(fail_at, (3,)),
        "first": Task(square, (2,)),
        "needs it": Task(square, (4,), ("fails",)),
        "needs that": Task(square, (5,), ("needs it",)),
        "second": Task(square, (3,), ("first",)),
    }
    with connect(jobs) as client:
        ended = {name: (result, error) for name, result, error in run_tasks(tasks, client)}
    assert (ended["first"], ended["second"]) == ((4, None), (9, None))
    assert "No space left" in str(ended["fails"][1]) and isinstance(ended["fails"][1], OSError)
    for name in ("needs it", "needs that"):
        assert isinstance(ended[name][1], NeedFailedError)


def test_what_is_needed_ends_before_what_needs_it(tmp_path):
    names = [str(number) for number in range(6)]
    tasks = {n: Task(append, (tmp_path / "order", n), tuple(names[: int(n)][-1:])) for n in names}
    with connect(2) as client:
        list(run_tasks(tasks, client))
    assert (tmp_path / "order").read_text() == "012345"


def test_what_was_in_hand_when_a_worker_died_is_begun_again_and_given_up_if_that_dies(tmp_path):
    tasks = {
        "dies once": Task(die_once, (tmp_path / "died",)),
        "dies always": Task(die_at, (3,)),
        "needs the first": Task(square, (2,), ("dies once",)),
        "needs the other": Task(square, (2,), ("dies always",)),
        **{str(number): Task(die_at, (number,)) for number in (4, 5, 6)},
    }
    with connect(2) as client:
        ended = {name: (result, error) for name, result, error in run_tasks(tasks, client)}
    died = describe_error(ended.pop("dies always")[1])
    assert "too little memory: try fewer --jobs" in died
    assert isinstance(ended.pop("needs the other")[1], NeedFailedError)
    made = {"dies once": "made", "needs the first": 4, "4": 16, "5": 25, "6": 36}
    assert {name: result for name, (result, _) in ended.items()} == made


LASTING = """
import sys, test_workers as t
if __name__ == "__main__":
    t.run(t.last_long, [{folder!r}, {folder!r} + "/."], 2)
"""


def test_workers_end_with_a_run_that_is_killed(tmp_path):
    """One that is interrupted: test_run.py."""
    script = tmp_path / "lasting.py"
    script.write_text(LASTING.format(folder=str(tmp_path)))
    with subprocess.Popen([sys.executable, script], stderr=NOWHERE) as process:
        wait_until(lambda: len(list(tmp_path.glob("*.begun"))) == 2 or process.poll() is not None)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        process.kill()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


def test_what_has_ended_is_let_go():
    """Dask would make it again if the worker that holds its result died later."""
    tasks = {str(number): Task(square, (number,)) for number in range(5)}
    with connect(2) as client:
        ended = run_tasks(tasks, client)
        for _ in tasks:
            next(ended)
        wait_until(lambda: not client.futures, seconds=20)


def test_more_workers_than_memory_or_gpus_allow_are_refused_before_anything_is_made(
    monkeypatch, capsys
):
    monkeypatch.setattr(workers, "free_memory", lambda: 5 * 2**30)
    monkeypatch.setattr("dask.system.CPU_COUNT", 64)
    monkeypatch.setattr(workers, "visible_gpus", list)
    too_many = r"9 workers of about 2.0 GiB do not fit into the 5.0 GiB .* --jobs 2 or fewer"
    with pytest.raises(ValueError, match=too_many):
        workers.count_workers(2 * 2**30, 9)
    assert workers.count_workers(2 * 2**30, 2) == workers.count_workers(2 * 2**30) == 2
    assert workers.count_workers(9 * 2**30) == 1
    monkeypatch.setattr(workers, "visible_gpus", lambda: ["0"])
    assert workers.count_workers(2 * 2**30) == 1
    monkeypatch.setattr(workers, "visible_gpus", lambda: ["0", "1"])
    too_many = r"3 workers and 2 GPU\(s\): each worker takes one; choose --jobs 2"
    with pytest.raises(ValueError, match=too_many):
        workers.count_workers(2**30, 3)
    monkeypatch.setattr(workers, "visible_gpus", list)
    assert cli.main(["prepare", "--only", "2", "--jobs", "500"]) == 2
    assert "500 workers of about" in capsys.readouterr().err


# A cluster


@contextmanager
def dask(count, folder):
    """Address and processes of a scheduler and its workers."""
    file, processes = folder / "scheduler.json", []

    calls = ["scheduler --host 127.0.0.1 --port 0", *["worker --nthreads 1 --no-nanny"] * count]
    for name, *options in map(str.split, calls):
        call = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard", *options]
        call += ["--scheduler-file", file]
        processes.append(subprocess.Popen(call, cwd=folder, stdout=NOWHERE, stderr=NOWHERE))
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        if count:
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(count, timeout=60)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_makes_the_same_and_what_a_killed_worker_had_goes_to_another(tmp_path):
    with dask(2, tmp_path) as (address, _):
        squares = [(number, number**2, None) for number in range(1, 6)]
        assert sorted(run(square, range(1, 6), 2, address)) == squares
        killed_when_busy(tmp_path)
        folder = str(tmp_path)
        assert run(last_long_once, [folder], 2, address) == [(folder, "made", None)]


def killed_when_busy(folder, process=None):
    """Kill a process, or the worker itself, as soon as a worker is at work."""

    def kill():
        wait_until(lambda: list(folder.glob("*.begun")))
        (process or psutil.Process(int(next(folder.glob("*.begun")).stem))).kill()

    threading.Thread(target=kill, daemon=True).start()


@pytest.mark.parametrize(
    ("which", "what"), [(0, "the Dask scheduler"), (1, "all workers of the Dask scheduler")]
)
def test_a_scheduler_or_all_workers_that_go_away_end_the_run_in_words(
    tmp_path, monkeypatch, which, what
):
    monkeypatch.setattr(workers, "WITHOUT_WORKERS", 2.0)
    with dask(1, tmp_path) as (address, processes):
        killed_when_busy(tmp_path, processes[which])
        told = f"{what} went away; what was finished is in the cache"
        with pytest.raises(RuntimeError, match=told):
            run(last_long, [str(tmp_path)], 1, address)


def test_no_scheduler_and_no_workers_are_said_in_words(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "distributed.Client", lambda *at, **how: Client(*at, **how | {"timeout": 2})
    )
    call = ["prepare", "--only", "2", "--scheduler"]
    assert cli.main([*call, "tcp://127.0.0.1:9"]) == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err
    with dask(0, tmp_path) as (address, _):
        assert cli.main([*call, address]) == 2
        assert "has no workers; start some: dask worker" in capsys.readouterr().err


def test_with_a_cluster_jobs_run_there_and_notebooks_here(tmp_path):
    """A worker elsewhere has no checkout to run them in, and another cache."""
    jobs = {"made": Task(threads, (0,)), "fails": Task(fail_at, (3,))}
    notebooks = {"run": Task(threads, (0,), ("made",)), "not run": Task(threads, (0,), ("fails",))}
    with dask(1, tmp_path) as (address, _):
        stages = [(address, jobs), ("", notebooks)]
        ended = {name: (result, error) for name, result, error in cli._carry_out(stages, 1)}
    assert ended["made"][0][1] != os.getpid() == ended["run"][0][1]
    assert isinstance(ended["not run"][1], NeedFailedError)
