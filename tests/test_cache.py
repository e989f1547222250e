"""Entries are whole or absent, keyed by content, and damage is noticed."""

import importlib
import logging
import multiprocessing
import os
import time

import pytest
from conftest import ROOT, slow_entry
from filelock import FileLock

from bertology_utils import __main__ as cli
from bertology_utils.common import cache, packing

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


@pytest.mark.parametrize("harm", ["flip", "delete", "add", "manifest", "emptied"])
def test_damage_is_noticed_set_aside_and_repaired(harm, caplog):
    folder = cache.entry("things", KEY, fill_with("whole"))
    file = folder / "data.txt"
    if harm == "flip":
        content = bytearray(file.read_bytes())
        content[2] ^= 1
        file.write_bytes(content)
    elif harm == "delete":
        file.unlink()
    elif harm == "add":
        (folder / "other.txt").write_text("not ours")
    elif harm == "emptied":
        (folder / cache.MANIFEST).write_text('{"files": {}}')
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


def test_two_processes_fill_one_entry_once(tmp_path):
    log = tmp_path / "log"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=slow_entry, args=(str(tmp_path / "cache"), str(log), KEY)) for _ in range(2)]
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


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_written_files_have_the_rights_that_the_umask_leaves(tmp_path, umask):
    before = os.umask(umask)
    try:
        cache.write_atomically(tmp_path / "numbers.json", b"1")
    finally:
        os.umask(before)
    assert (tmp_path / "numbers.json").stat().st_mode & 0o777 == 0o666 & ~umask


def test_the_cache_can_be_listed_verified_and_pruned(own_cache, capsys):
    old = cache.entry("things", KEY | {"task": "rte"}, fill_with("old" * 1000))
    new = cache.entry("things", KEY, fill_with("new"))
    os.utime(old, (time.time() - 10 * 86400,) * 2)
    stranger = own_cache / "photos" / "summer"
    stranger.mkdir(parents=True)
    assert cli.main(["cache", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"things/{old.name[:12]}  finished" in listed and "10 days" in listed and "task rte, seed 1" in listed
    assert "2 entries" in listed

    assert cli.main(["cache", "verify"]) == 0
    (new / "data.txt").write_text("bad")
    assert cli.main(["cache", "verify"]) == 1
    assert f"things/{new.name[:12]}: data.txt has changed" in capsys.readouterr().err

    assert cli.main(["cache", "prune", "--older-than", "5"]) == 0
    assert not old.exists() and new.exists()
    with FileLock(f"{new}.lock"):
        assert cli.main(["cache", "prune", "--all"]) == 0
        assert "in use" in capsys.readouterr().out and new.exists()
    assert cli.main(["cache", "prune", "--all"]) == 0
    assert not new.exists() and stranger.exists(), "only what the cache made is removed"
    for wrong in (["prune"], ["prune", "--older-than", "-1"], ["prune", "--all", "--older-than", "1"], ["empty"]):
        with pytest.raises(SystemExit) as end:
            cli.main(["cache", *wrong])
        assert end.value.code == 2


def test_a_run_forgets_what_was_measured_long_ago_and_nothing_else(own_cache, monkeypatch):
    monkeypatch.chdir(ROOT)
    trained, old, new = (
        cache.entry(kind, KEY | {"number": number}, fill_with("a"))
        for number, kind in enumerate(("classifiers", packing.KIND, packing.KIND))
    )
    for folder in (trained, old):
        os.utime(folder, (time.time() - 4 * 86400,) * 2)
    assert cli.main(["prepare", "--only", "2"]) == 0  # which needs no training
    assert not old.exists() and new.exists() and trained.exists()


def test_use_makes_an_entry_young_again():
    folder = cache.entry("things", KEY, fill_with("a"))
    os.utime(folder, (0, 0))
    cache.entry("things", KEY, fill_with("a"))
    assert time.time() - folder.stat().st_mtime < 60


def test_the_digest_of_code_follows_its_source(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for name, result in (("one", 1), ("two", 1), ("three", 2)):
        (tmp_path / f"code_{name}.py").write_text(f"def answer():\n    return {result}\n")
        module = importlib.import_module(f"code_{name}")
        digests.append((cache.code_digest(module), cache.code_digest(module.answer)))
    assert digests[0] == digests[1]
    assert digests[2][0] != digests[0][0] and digests[2][1] != digests[0][1]


PLAIN = "import os\ndef fill(seed):\n    return seed + 1\n"


@pytest.mark.parametrize(
    ("source", "same"),
    [
        (
            (
                '"""A module."""\nfrom os import path\n\n# first\ndef fill(\n    seed: int) -> int:\n    """Add."""\n'
                "    return (seed + 1)\n"
            ),
            True,
        ),
        (PLAIN.replace("+ 1", "+ 2"), False),
        (PLAIN.replace("seed", "count"), False),
        (PLAIN + "STEP = 3\n", False),
    ],
)
def test_a_key_follows_the_code_and_not_its_remarks(tmp_path, monkeypatch, source, same):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"code_{abs(hash(source))}"
    for suffix, text in (("a", PLAIN), ("b", source)):
        (tmp_path / f"{name}{suffix}.py").write_text(text)
    a, b = (importlib.import_module(f"{name}{suffix}") for suffix in "ab")
    assert (cache.code_digest(a) == cache.code_digest(b)) == same


@pytest.mark.parametrize("place", ["models._draw_head", "models.draw_normal", "finetune.tokenize", "finetune._arguments"])
def test_a_trainings_key_follows_the_code_that_decides_it(tiny_bert, monkeypatch, place):
    from conftest import make_rows

    from bertology_utils.common.profiles import Recipe
    from bertology_utils.encoders import finetune
    from bertology_utils.encoders.sources import parse_model
    from bertology_utils.glue.tasks import TASKS

    def key():
        return finetune.Training(TASKS["rte"], parse_model(str(tiny_bert)), make_rows(TASKS["rte"]), Recipe(1e-4)).key

    before = key()
    assert key() == before
    monkeypatch.setattr(f"bertology_utils.encoders.{place}", fill_with)
    assert key() != before
