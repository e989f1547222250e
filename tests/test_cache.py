"""Finished work is kept once for each content and each code; entries are whole or absent, and damage is noticed."""

import dataclasses
import errno
import fcntl
import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from conftest import KEY, fill_with, loaded, make_rows
from filelock import Timeout
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bertology_utils import __main__ as cli
from bertology_utils import batches_of, cache, digest, disable_heads, finetune, models
from bertology_utils.attention import ByNorm, maps, observe, observe_cached
from bertology_utils.cache import pack, unpack
from bertology_utils.digest import fingerprint
from bertology_utils.disabling.sweep import sweep
from bertology_utils.drift.measure import compare_maps
from bertology_utils.features.measure import Flow, FlowShares
from bertology_utils.glue import TASKS
from bertology_utils.patterns import Patterns, load_network
from bertology_utils.settings import Recipe, parse_model

TEXTS = ["A small lamp stood near the window.", "The river was cold.", "Who wrote this letter?"]


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return loaded(tiny_bert)[0]


@pytest.fixture
def inputs(tiny_bert):
    return batches_of(TEXTS, loaded(tiny_bert)[1])


@pytest.fixture
def passes(monkeypatch):
    """Batches that went through a model, counted."""
    counted = []
    forward = maps._forward
    monkeypatch.setattr(maps, "_forward", lambda *parts: counted.append(parts) or forward(*parts))
    return counted


def flow(inputs):
    """A measurement, told where [CLS] and [SEP] of each input stand."""
    marks = {}
    for batch in inputs:
        for index, length in zip(batch.index, batch.lengths.tolist(), strict=True):
            marks[index] = np.arange(length) == np.array([[0], [length - 1], [-1]])
    return Flow([marks[index] for index in sorted(marks)])


def same(one, other):
    return fingerprint(one) == fingerprint(other)


# Entries


@pytest.mark.parametrize("harm", ["flip", "delete", "add", "manifest", "emptied"])
def test_damage_is_noticed_set_aside_and_repaired(harm, caplog):
    folder = cache.artefact("things", KEY, fill_with("whole"))
    file = folder / "data.txt"
    if harm == "flip":
        content = bytearray(file.read_bytes())
        content[2] ^= 1
        file.write_bytes(content)
    elif harm == "delete":
        file.unlink()
    elif harm == "add":
        (folder / "other.txt").write_text("not ours")
    else:
        (folder / cache.MANIFEST).write_text('{"files": {}}' if harm == "emptied" else "{")
    with caplog.at_level(logging.WARNING):
        again = cache.artefact("things", KEY, fill_with("whole"))
    assert (again / "data.txt").read_text() == "whole"
    assert cache.verified(again) == again
    assert "damaged" in caplog.text
    assert len(list(folder.parent.glob("*.damaged-*"))) == 1


def age(folder, days):
    os.utime(folder, (time.time() - days * 86400,) * 2)


@pytest.mark.parametrize("room", [4 * 2**30, 4000, 1])
def test_measurements_are_evicted_above_a_size_alone_those_not_used_for_longest_first(
    own_cache, monkeypatch, room
):
    """Those of another profile, which nobody looked at for four days, stay as long as there is room.

    One whose date is in the future counts as new.
    """
    monkeypatch.setattr(cache, "MEASURED_BYTES", room)
    keys = {days: KEY | {"seed": days} for days in (-3650, 0, 2, 4, 40)}
    kilobyte = fill_with("a" * 1000)
    trained = cache.artefact(cache.MADE, KEY, fill_with("a" * 9999))
    measured = {days: cache.artefact(cache.MEASURED, key, kilobyte) for days, key in keys.items()}
    for days, folder in [*measured.items(), (99, trained)]:
        age(folder, days)
    assert cli.main(["prepare", "--only", "2"]) == 0  # which needs no training
    stay = {4 * 2**30: [*keys], 4000: [-3650, 0, 2], 1: [-3650, 0]}[room]
    assert [days for days, folder in measured.items() if folder.exists()] == stay
    assert trained.exists()


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


def test_a_lock_whose_file_is_removed_keeps_others_out_all_the_same(tmp_path, monkeypatch):
    """Who has opened the file that the first one removes must not hold a lock that nobody else sees."""
    first = cache.locked(tmp_path / "entry")
    first.__enter__()
    lock, ends = fcntl.flock, [first]

    def flock(file, operation):
        if ends:  # between the opening and the locking of the second
            ends.pop().__exit__(None, None, None)
        return lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    third = cache.locked(tmp_path / "entry", timeout=0)
    with cache.locked(tmp_path / "entry", timeout=5), pytest.raises(Timeout):
        third.__enter__()
    assert not list(tmp_path.iterdir())


def test_where_a_file_system_has_no_locks_the_files_stand_for_them(tmp_path, monkeypatch):
    """As on a Drive that Colab has mounted."""
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOSYS, "not implemented")))
    second = cache.locked(tmp_path / "entry", timeout=0)
    warned = pytest.warns(UserWarning, match="flock not supported")
    with warned, cache.locked(tmp_path / "entry"), pytest.raises(Timeout):
        second.__enter__()
    assert not list(tmp_path.iterdir())


# Keys


@pytest.mark.parametrize("what", ["versions", "device", "code", "arguments"])
def test_every_key_has_versions_device_code_and_arguments(tiny_bert, monkeypatch, what):
    rte, rows = TASKS["rte"], make_rows(TASKS["rte"])
    training = finetune.Training(rte, parse_model(str(tiny_bert)), rows, Recipe(1e-4))

    def keys():
        calls = (finetune.train, training), (sweep, cache.Lazy(dict, (training,)), ())
        return [cache.cache_key(*call) for call in calls]

    before = keys()
    assert keys() == before and [kind for kind, _ in before] == [cache.MADE, cache.MEASURED]
    if what == "arguments":
        training = dataclasses.replace(training, seed=7)
    else:
        names = {"versions": "cache._versions", "device": "cache.device_name"}
        name = names.get(what, "digest.code_digest")
        monkeypatch.setattr(f"bertology_utils.{name}", lambda *_: "another")
    changed = keys()
    assert all(new[1][what] != old[1][what] for new, old in zip(changed, before, strict=True))


# Files

leaves = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=5)
)
dtypes = st.sampled_from([np.float64, np.float32, np.int64, bool])
leaves |= arrays.arrays(dtypes, arrays.array_shapes(min_dims=0, min_side=0))
nested = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3)
        | st.builds(FlowShares, inner, inner)
    ),
    max_leaves=8,
)


@given(nested)
@settings(deadline=None, max_examples=60)
def test_what_is_unpacked_is_what_was_packed(value):
    again = unpack(pack(value))
    assert same(again, value) and pack(again) == pack(value)


def test_only_records_of_this_package_are_made():
    @dataclasses.dataclass
    class Other:
        value: int

    for refused in (Other(1), object(), torch.zeros(1), {1: {2}}):
        with pytest.raises(TypeError, match="cannot be kept"):
            pack(refused)
    whole = pack(FlowShares(np.zeros(1), np.ones(1)))
    kept = f"{FlowShares.__module__}:FlowShares".encode()
    for name in ("bertology_utils.cache:cached", "bertology_utils.none:main", "os:system"):
        with pytest.raises(ValueError, match="no dataclass of bertology_utils"):
            unpack(whole.replace(kept, name.encode().ljust(len(kept))))


# Calls


def test_observed_once_and_the_same_as_plainly(encoder, inputs, passes):
    def measurements():
        return {
            "flow": flow(inputs),
            "by norm": ByNorm(flow(inputs)),
            "exchanged": ByNorm(flow(inputs), exchange=1),
            "patterns": Patterns(load_network(), None),
        }

    plain = observe(encoder, inputs, measurements())
    del passes[:]
    first = observe_cached(encoder, inputs, measurements())
    assert passes and same(first, plain)
    del passes[:]
    assert same(observe_cached(encoder, inputs, measurements()), plain)
    assert not passes

    # One more measurement costs one pass, of which it alone is fed.
    def more():
        return {"other lots": ByNorm(flow(inputs), exchange=2)}

    found = observe_cached(encoder, inputs, measurements() | more())
    assert len(passes) == len(inputs) and list(found) == [*measurements(), "other lots"]
    assert same(found["other lots"], observe(encoder, inputs, more())["other lots"])
    assert not same(found["other lots"], found["exchanged"])


def test_a_batch_that_is_changed_in_place_is_measured_anew(encoder, inputs, passes):
    first = observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"]
    inputs[0].inputs["input_ids"][0, 2] += 1
    del passes[:]
    again = observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"]
    assert passes and not same(again, first)


def test_a_model_with_disabled_heads_is_looked_at_each_time(encoder, inputs, passes):
    whole = observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"]
    with disable_heads(encoder, [(1, 2)]):
        without = observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"]
        del passes[:]
        observe_cached(encoder, inputs, {"flow": flow(inputs)})
        assert passes
    assert not np.allclose(whole.destinations[:, 1, 2], without.destinations[:, 1, 2])
    assert same(observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"], whole)


def test_once_means_once_for_each_content_and_each_code(encoder, inputs, passes, monkeypatch):
    def asked(name="itself"):
        del passes[:]
        found = cache.cached(compare_maps, {name: (encoder, encoder)}, inputs)
        return len(passes), found[name]

    first, found = asked()
    assert first and np.allclose(found, 1)
    assert asked()[0] == 0 and np.array_equal(asked()[1], found)
    assert asked("another name")[0] == first
    monkeypatch.setattr(digest, "code_digest", lambda *_: "another")
    assert asked()[0] == first, "changed code measures anew"


def test_lazy_models_in_lists_are_made_once_and_only_where_something_is_missing(encoder, inputs):
    asked = []
    model = cache.Lazy(lambda: asked.append(1) or encoder, (models.load_encoder, "a"))
    other = cache.Lazy(lambda: asked.append(2) or encoder, (models.load_encoder, "b"))
    pairs = {"itself": [model, model], "another": [model, other]}
    found = cache.cached(compare_maps, pairs, inputs)
    assert asked == [1, 2] and np.allclose(found["another"], 1)
    assert same(cache.cached(compare_maps, pairs, inputs), found) and asked == [1, 2]
    seen = observe_cached(model, inputs, {"flow": flow(inputs)})
    assert asked == [1, 2, 1] and same(seen, observe(encoder, inputs, {"flow": flow(inputs)}))
    gone = cache.Lazy(pytest.fail, model.what)
    assert same(observe_cached(gone, inputs, {"flow": flow(inputs)}), seen)


def test_a_value_of_a_class_that_is_gone_is_measured_anew(encoder, inputs, own_cache, passes):
    whole = observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"]
    (file,) = own_cache.glob("measured/*/value.safetensors")
    manifest, before = file.with_name(cache.MANIFEST), cache.checksum(file)
    file.write_bytes(pack(whole).replace(b":FlowShares", b":FormerName"))
    manifest.write_text(manifest.read_text().replace(before, cache.checksum(file)))
    for renewed in (True, False):
        del passes[:]
        again = observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"]
        assert bool(passes) == renewed and same(again, whole)


def test_a_cache_that_is_only_read_does_not_stop_it(encoder, inputs, monkeypatch):
    plain = observe(encoder, inputs, {"flow": flow(inputs)})
    monkeypatch.setattr(cache, "artefact", Mock(side_effect=PermissionError("read-only")))
    assert same(observe_cached(encoder, inputs, {"flow": flow(inputs)}), plain)
    with pytest.raises(PermissionError):
        cache.cached(finetune.train, cache.Lazy(pytest.fail, ()))
