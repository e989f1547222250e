"""Locks on file systems with and without them."""

import errno
import fcntl
import logging
import multiprocessing
import os
from pathlib import Path

import pytest
from conftest import slow_entry
from filelock import Timeout

from bertology_utils.common import locks


@pytest.fixture
def without_locks(monkeypatch, tmp_path):
    """A file system that refuses flock and links, but for the temporary folder."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    _refuse(monkeypatch, str(tmp_path / "drive"), str(temporary))
    locks.has_locks.cache_clear()
    yield tmp_path / "drive"
    locks.has_locks.cache_clear()


def _refuse(patch, drive, temporary):
    flock = fcntl.flock

    def refused(file, operation):
        number = file if isinstance(file, int) else file.fileno()
        if str(Path(f"/proc/self/fd/{number}").readlink()).startswith(drive):
            raise OSError(errno.ENOTSUP, "Operation not supported")
        return flock(file, operation)

    def no_link(*_, **__):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    patch.setattr(fcntl, "flock", refused)
    patch.setattr(os, "link", no_link)
    patch.setattr("tempfile.tempdir", temporary)


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the fake asks Linux which file it is given")


def test_a_lock_holds_where_the_file_system_has_none(without_locks, caplog):
    without_locks.mkdir()
    path = without_locks / "a.lock"
    with caplog.at_level(logging.WARNING), locks.lock_beside(path):
        with pytest.raises(Timeout):
            locks.lock_beside(path, timeout=0).acquire()
        with locks.lock_beside(without_locks / "b.lock", timeout=0):
            pass
    with locks.lock_beside(path, timeout=0):
        pass
    assert caplog.text.count("has no locks: let one machine at a time work there") == 1
    assert not list(without_locks.iterdir())


def test_an_error_of_another_kind_is_no_lack_of_locks(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", broken)
    locks.has_locks.cache_clear()
    with pytest.raises(OSError, match="Bad file"):
        locks.has_locks(tmp_path)


def _slow_entry(drive, temporary, log):
    _refuse(pytest.MonkeyPatch(), drive, temporary)  # of this process, which ends
    slow_entry(drive, log, {"seed": 1})


def test_two_processes_fill_one_entry_once_without_locks(tmp_path):
    drive, temporary, log = (str(tmp_path / name) for name in ("drive", "temporary", "log"))
    Path(temporary).mkdir()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_slow_entry, args=(drive, temporary, log)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert (tmp_path / "log").read_text() == "filled\n"
