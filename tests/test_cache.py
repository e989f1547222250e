"""Entries are whole or absent, keyed by content, and damage is noticed."""

import logging
import multiprocessing
import os

import pytest

from bertology_utils.common import cache

KEY = {"what": "numbers", "seed": 1}


def fill_with(text, calls=None):
    def fill(target, scratch):
        if calls is not None:
            calls.append(text)
        (target / "data.txt").write_text(text)

    return fill


def test_filled_once():
    calls = []
    first = cache.entry("things", KEY, fill_with("a", calls))
    second = cache.entry("things", KEY, fill_with("b", calls))
    assert first == second
    assert calls == ["a"]
    assert (first / "data.txt").read_text() == "a"


def test_any_change_of_the_key_is_another_entry():
    first = cache.entry("things", KEY, fill_with("a"))
    assert cache.entry("things", KEY | {"seed": 2}, fill_with("b")) != first
    assert cache.digest({"a": 1, "b": 2}) == cache.digest({"b": 2, "a": 1})


@pytest.mark.parametrize("harm", ["flip", "delete", "manifest"])
def test_damage_is_noticed_set_aside_and_repaired(harm, caplog):
    folder = cache.entry("things", KEY, fill_with("whole"))
    file = folder / "data.txt"
    if harm == "flip":
        content = bytearray(file.read_bytes())
        content[2] ^= 1
        file.write_bytes(content)
    elif harm == "delete":
        file.unlink()
    else:
        (folder / cache.MANIFEST).write_text("{")
    with caplog.at_level(logging.WARNING):
        again = cache.entry("things", KEY, fill_with("whole"))
    assert (again / "data.txt").read_text() == "whole"
    assert cache.damage(again) is None
    assert "damaged" in caplog.text
    assert len(list(folder.parent.glob("*.damaged-*"))) == 1


def test_failure_leaves_no_entry_and_keeps_the_scratch():
    def fail(target, scratch):
        (target / "data.txt").write_text("half")
        (scratch / "step-10").write_text("so far")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        cache.entry("things", KEY, fail)

    seen = []

    def resume(target, scratch):
        seen.extend(sorted(p.name for p in scratch.iterdir()))
        assert not list(target.iterdir())
        (target / "data.txt").write_text("whole")

    folder = cache.entry("things", KEY, resume)
    assert seen == ["result", "step-10"]
    assert (folder / "data.txt").read_text() == "whole"
    assert not list(folder.parent.glob("*.unfinished"))


def _slow_entry(folder, log):
    import time

    os.environ["BERTOLOGY_CACHE"] = folder

    def fill(target, scratch):
        with open(log, "a") as file:
            file.write("filled\n")
        time.sleep(0.5)
        (target / "data.txt").write_text("whole")

    cache.entry("things", KEY, fill)


def test_two_processes_fill_one_entry_once(tmp_path):
    log = tmp_path / "log"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_slow_entry, args=(str(tmp_path / "cache"), str(log))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert log.read_text() == "filled\n"


def test_atomic_write_leaves_the_old_file_when_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "numbers.json"
    cache.write_atomically(path, b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        cache.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["numbers.json"]
