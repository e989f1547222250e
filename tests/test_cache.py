"""Finished work is kept once for each content; entries are whole or absent, and damage is noticed."""

import errno
import fcntl
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from conftest import KEY, fill_with

from bertology_utils import cache

# Entries


@pytest.mark.parametrize("harm", ["flip", "delete", "add", "manifest", "empty"])
def test_damage_is_noticed_set_aside_and_repaired(harm, caplog):
    folder = cache.artefact("things", KEY, fill_with("whole"))
    file = folder / "data.txt"
    if harm == "flip":
        file.write_text("WHOLE")
    elif harm in ("delete", "empty"):
        file.unlink()
        if harm == "empty":
            (folder / cache.MANIFEST).write_text('{"files": {}}')
    else:
        (folder / ("other.txt" if harm == "add" else cache.MANIFEST)).write_text("{")
    with caplog.at_level(logging.WARNING):
        again = cache.artefact("things", KEY, fill_with("whole"))
    assert (again / "data.txt").read_text() == "whole"
    assert cache.verified(again) == again
    assert "damaged" in caplog.text
    assert len(list(folder.parent.glob("*.damaged-*"))) == 1


# Locks


FILLING = """
import sys, time
from conftest import KEY
from bertology_utils import cache
def fill(target, scratch):
    with open(sys.argv[1], "a") as log:
        log.write("filled\\n")
    time.sleep(0.5)
    (target / "data.txt").write_text("whole")
cache.artefact("things", KEY, fill)
"""


def test_two_processes_fill_one_entry_once(tmp_path):
    command = [sys.executable, "-c", FILLING, str(tmp_path / "log")]
    fillers = [subprocess.Popen(command) for _ in range(2)]
    assert [filler.wait() for filler in fillers] == [0, 0]
    assert (tmp_path / "log").read_text() == "filled\n"
    assert not list(tmp_path.rglob("*.lock")), "the lock goes with the work"


def test_what_two_write_to_one_file_is_always_whole(tmp_path):
    file, contents = tmp_path / "results.json", [b"1" * 10**6, b"2" * 10**6]
    with ThreadPoolExecutor() as pool:
        writing = [pool.submit(cache.write_atomically, file, one) for one in contents * 20]
        while not all(one.done() for one in writing):
            assert not file.exists() or file.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [file]


def test_where_a_file_system_has_no_locks_the_files_stand_for_them(tmp_path, monkeypatch):
    """As on a Drive that Colab has mounted."""
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOSYS, "not implemented")))
    got = threading.Event()

    def take():
        with cache.locked(tmp_path / "entry", "a test"):
            got.set()

    other = threading.Thread(target=take)
    warned = pytest.warns(UserWarning, match="flock not supported")
    with warned, cache.locked(tmp_path / "entry", "a test"):
        other.start()
        assert not got.wait(0.5), "it waits"
    other.join(10)
    assert got.is_set()
