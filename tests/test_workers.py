"""Workers, of this machine and of a Dask cluster, on made-up work: who dies, goes away or does not fit is told."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from conftest import ROOT
from tqdm import tqdm

from bertology_utils import __main__ as cli
from bertology_utils import workers
from bertology_utils.workers import work


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


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


def last_long_with_a_bar(folder):
    """Like all that libraries show the progress of."""
    list(tqdm([1], file=io.StringIO()))
    last_long(folder)


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


@pytest.mark.parametrize("jobs", [1, 2])
def test_everything_is_made_once(jobs):
    assert sorted(work(square, range(1, 6), jobs)) == [
        (number, number**2) for number in range(1, 6)
    ]


def test_workers_have_one_thread_and_one_job_needs_no_worker():
    (_, (of_worker, process)), *_ = work(threads, [1, 2], 2)
    assert of_worker == "1" and process != os.getpid()
    ((_, (_, here)),) = work(threads, [1], 1)
    assert here == os.getpid()
    ((_, (_, alone)),) = work(threads, [1], 1, alone=True)
    assert alone != os.getpid()


def test_what_was_in_hand_when_a_worker_died_is_told_and_the_rest_is_made():
    found = dict(work(die_at, range(1, 8), 2))
    assert found[3] is None
    assert sorted(found) == list(range(1, 8))
    assert sum(result is None for result in found.values()) <= 2, "no more than were in hand"
    assert all(result in (None, number**2) for number, result in found.items())
    assert list(work(die_at, [3], 1, alone=True)) == [(3, None)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_work_is_the_callers(jobs):
    with pytest.raises(OSError, match="No space left"):
        list(work(fail_at, [1, 2, 3], jobs))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_run(tmp_path, how):
    code = f"from bertology_utils.workers import work; import test_workers as t; list(work(t.last_long, {[str(tmp_path)] * 2}, 2))"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as run:
        wait_until(lambda: len(list(tmp_path.glob("*.begun"))) == 2 or run.poll() is not None)
        children = psutil.Process(run.pid).children(recursive=True)
        assert children
        run.send_signal(how)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


def test_ctrl_c_says_nothing_but_that_the_run_is_interrupted(tmp_path):
    """In a terminal it reaches the whole group: the run, its workers, and the process that counts their semaphores."""
    code = f"""
import signal, sys, test_workers as t
from bertology_utils.workers import work
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    list(work(t.last_long_with_a_bar, {[str(tmp_path)] * 2}, 2))
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
"""
    call = [sys.executable, "-c", code]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        wait_until(lambda: len(list(tmp_path.glob("*.begun"))) == 2 or run.poll() is not None)
        os.killpg(run.pid, signal.SIGINT)
        assert run.stderr.read() == "interrupted\n"


def test_more_workers_than_memory_or_gpus_allow_are_refused_before_anything_is_made(
    monkeypatch, capsys
):
    monkeypatch.setattr(workers, "free_memory", lambda: 5 * 2**30)
    monkeypatch.setattr("joblib.cpu_count", lambda: 64)
    monkeypatch.setattr(workers, "gpus", lambda: 0)
    with pytest.raises(
        ValueError,
        match=r"9 workers of about 2.0 GiB do not fit into the 5.0 GiB .* --jobs 2 or fewer",
    ):
        workers.jobs_for(2 * 2**30, 9)
    assert workers.jobs_for(2 * 2**30, 2) == workers.jobs_for(2 * 2**30) == 2
    assert workers.jobs_for(9 * 2**30) == 1
    monkeypatch.setattr(workers, "gpus", lambda: 1)
    assert workers.jobs_for(2 * 2**30) == 1
    monkeypatch.setattr(workers, "gpus", lambda: 2)
    with pytest.raises(
        ValueError, match="3 workers and 2 GPUs: each worker takes one; choose --jobs 2"
    ):
        workers.jobs_for(2**30, 3)
    monkeypatch.setattr(workers, "gpus", lambda: 0)
    assert cli.main(["prepare", "--only", "2", "--jobs", "500"]) == 2
    assert "500 workers of about" in capsys.readouterr().err


# A cluster


@contextmanager
def dask(count, folder):
    """Address and processes of a scheduler and its workers."""
    file, processes = folder / "scheduler.json", []

    def start(*arguments):
        call = [sys.executable, "-m", f"distributed.cli.{arguments[0]}", *map(str, arguments[1:])]
        processes.append(
            subprocess.Popen(call, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )

    start(
        "dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        file,
    )
    for _ in range(count):
        start(
            "dask_worker",
            "--scheduler-file",
            file,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
        )
    try:
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        address = json.loads(file.read_text())["address"]
        if count:
            from distributed import Client

            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(count, timeout=60)
        yield address, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_cluster_makes_the_same_and_what_a_killed_worker_had_goes_to_another(tmp_path):
    with dask(2, tmp_path) as (address, _):
        assert sorted(work(square, range(1, 6), 2, address)) == [
            (number, number**2) for number in range(1, 6)
        ]
        killed_when_busy(tmp_path)
        assert list(work(last_long_once, [str(tmp_path)], 2, address)) == [(str(tmp_path), "made")]


def killed_when_busy(folder, process=None):
    """Kill a process, or the worker itself, as soon as a worker is at work."""

    def kill():
        wait_until(lambda: list(folder.glob("*.begun")))
        (process or psutil.Process(int(next(folder.glob("*.begun")).stem))).kill()

    threading.Thread(target=kill, daemon=True).start()


def test_a_scheduler_or_all_workers_that_go_away_end_the_run_in_words(tmp_path):
    with dask(1, tmp_path) as (address, processes):
        killed_when_busy(tmp_path, processes[0])
        with pytest.raises(
            ConnectionError,
            match="Dask scheduler at .* went away; what was finished is in the cache",
        ):
            list(work(last_long, [str(tmp_path)], 1, address))


def test_no_scheduler_and_no_workers_are_said_in_words(tmp_path, capsys):
    call = ["prepare", "--only", "2", "--scheduler"]
    assert cli.main([*call, "tcp://127.0.0.1:9"]) == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err
    with dask(0, tmp_path) as (address, _):
        assert cli.main([*call, address]) == 2
        assert "has no workers; start some: dask worker" in capsys.readouterr().err
