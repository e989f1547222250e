"""Finished work is kept once for each content and each code; entries are whole or absent, and damage is noticed."""

import builtins
import dataclasses
import functools
import inspect
import io
import logging
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import KEY, ROOT, fill_with, loaded, make_bert, make_rows, python, slow_entry
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bertology_utils import __main__ as cli
from bertology_utils import batches_of, cache, common, digest, disable_heads, finetune, models
from bertology_utils.attention import ByNorm, Exchanged, maps, observe, observe_cached
from bertology_utils.cache import pack, unpack
from bertology_utils.digest import Code, UnhashableError
from bertology_utils.disabling.sweep import sweep
from bertology_utils.drift.measure import Drift, drifts
from bertology_utils.drift.scores import restored_logits
from bertology_utils.features.measure import Flow, FlowShares
from bertology_utils.glue import TASKS
from bertology_utils.patterns.classifiers import load_network
from bertology_utils.patterns.measure import Patterns
from bertology_utils.settings import Recipe, parse_model

TEXTS = [
    "A small lamp stood near the window.",
    "The river was cold.",
    "Who wrote this letter about winter bread?",
]


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
    found = {}
    for batch in inputs:
        for index, length in zip(batch.index, batch.lengths.tolist(), strict=True):
            found[index] = np.array(
                [
                    np.arange(length) == 0,
                    np.arange(length) == length - 1,
                    np.zeros(length, dtype=bool),
                ]
            )
    return Flow([found[index] for index in sorted(found)])


def same(one, other):
    return digest.fingerprint(one) == digest.fingerprint(other)


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
    assert cache.damage(again) is None
    assert "damaged" in caplog.text
    assert len(list(folder.parent.glob("*.damaged-*"))) == 1


def test_the_cache_can_be_looked_at_pruned_and_cleared(own_cache, capsys):
    old = cache.artefact("things", KEY | {"function": "finetune"}, fill_with("old" * 1000))
    new = cache.artefact("things", KEY, fill_with("new"))
    os.utime(old, (time.time() - 10 * 86400,) * 2)
    stranger = own_cache / "photos" / "summer"
    stranger.mkdir(parents=True)
    assert cli.main(["cache", "info"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in told] == [
        ["things", "1"],
        ["things", "finetune"],
        ["2", "entries,"],
    ]
    assert told[1].endswith("10 days ago")

    assert cli.main(["cache", "prune", "--days", "5"]) == 0
    assert not old.exists() and new.exists()
    with FileLock(f"{new}.lock"):
        assert cli.main(["cache", "clear"]) == 0
        assert "1 stay, since they are in use" in capsys.readouterr().out and new.exists()
    assert cli.main(["cache", "clear"]) == 0
    assert not new.exists() and stranger.exists(), "only what the cache made is removed"
    for wrong in ([], ["prune", "--days", "-1"], ["prune", "--days", "nan"], ["empty"]):
        with pytest.raises(SystemExit) as end:
            cli.main(["cache", *wrong])
        assert end.value.code == 2


def test_a_run_forgets_what_was_measured_long_ago_and_nothing_else(own_cache, monkeypatch):
    monkeypatch.chdir(ROOT)
    kinds = (cache.MADE, cache.MEASURED, cache.MEASURED)
    made, old, new = (
        cache.artefact(kind, KEY | {"number": at}, fill_with("a")) for at, kind in enumerate(kinds)
    )
    for folder in (made, old):
        os.utime(folder, (time.time() - 4 * 86400,) * 2)
    assert cli.main(["prepare", "--only", "2"]) == 0  # which needs no training
    assert not old.exists() and new.exists() and made.exists()


# Locks


def test_two_processes_fill_one_entry_once(tmp_path):
    log, context = tmp_path / "log", multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=slow_entry, args=(str(tmp_path / "cache"), str(log), KEY))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert log.read_text() == "filled\n"


# Code

PLAIN = {
    "p.__init__": "def __getattr__(name): return name\n",
    "p.a": '''
"""A module."""
from typing import TYPE_CHECKING
import math
from . import b
from .c import Shape as Form
if TYPE_CHECKING:
    from .d import Unused
FACTOR: float = 2
TABLE = {}
TABLE["x"] = b.seldom
def measured(size: int) -> Unused:
    """What is measured."""
    if size < 0:
        raise ValueError(f"{size} is too small")
    return b.helper(size) * FACTOR + Form(size).area() + math.pi
def unrelated(FACTOR): return FACTOR
def by_table(name): return TABLE[name]()
def here():
    from .d import late
    return late()
def fetched():
    from .e import offered
    return offered
''',
    "p.b": "def helper(size):\n    return [inner(each) for each in range(size)]\ndef inner(each): return each\n"
    "def other(): return 1\ndef seldom(): return 3\n",
    "p.c": "class Base:\n    def side(self): return 1\n"
    "class Shape(Base):\n    def __init__(self, size): self.size = size\n    def area(self): return self.size * EDGE\nEDGE = 1\n",
    "p.d": "class Unused: pass\ndef late(): return 1\n",
    "p.e.__init__": "def __getattr__(name): return name\n",
    "p.e.f": "offered = 1\nelse_ = 2\n",
}


@pytest.mark.parametrize(
    ("name", "module", "old", "new", "stays"),
    [
        ("measured", "p.b", "return each", "return -each", False),  # a helper's helper
        ("measured", "p.a", "FACTOR: float = 2", "FACTOR: float = 3", False),  # a constant
        ("measured", "p.c", "self.size * EDGE", "EDGE", False),  # a method
        ("measured", "p.c", "side(self): return 1", "side(self): return 2", False),  # a base
        ("measured", "p.b", "return 1", "return 2", True),  # a function that it does not use
        ("measured", "p.a", "What is measured.", "What was measured.", True),
        ("measured", "p.a", "is too small", "is below 0", True),
        ("measured", "p.a", "size: int", "size: float", True),
        ("unrelated", "p.a", "FACTOR: float = 2", "FACTOR: float = 3", True),  # its argument's name
        ("by_table", "p.b", "return 3", "return 4", False),  # by a table that is filled at import
        ("here", "p.d", "return 1", "return 2", False),  # imported within the function
        (
            "fetched",
            "p.e.f",
            "offered = 1",
            "offered = 3",
            False,
        ),  # imported when it is first asked for
        ("fetched", "p.e.f", "else_ = 2", "else_ = 3", True),
    ],
)
def test_a_digest_follows_what_a_function_uses_and_nothing_else(name, module, old, new, stays):
    assert PLAIN[module].count(old) == 1
    edited = PLAIN | {module: PLAIN[module].replace(old, new)}
    assert (Code(edited).digest("p.a", name) == Code(PLAIN).digest("p.a", name)) is stays


# Edits that change what comes out: function, the object whose source holds the text, the text and
# another.
DECISIVE = [
    (sweep, disable_heads, "if ", "if not "),  # by which models unknown to the fast sweep are swept
    (sweep, "disabling.sweep", "predict_logits(", "predict_logits( *[], "),
    (sweep, "attention.hooks", "IMPLEMENTATION = ", "IMPLEMENTATION = 'x' + "),
    (finetune.train, "models", "ATTENTION = ", "ATTENTION = 'x' + "),
    (finetune.train, "models", "NORMAL_STD = 0.02", "NORMAL_STD = 0.03"),
    (finetune.train, "models", "parameter.fill_(1.0", "parameter.fill_(2.0"),
    (finetune.train, finetune._arguments, "recipe.warmup * steps", "recipe.warmup * steps / 2"),
    (finetune.train, "attention.batches", "label / 5", "label / 4"),
    (models.predict_logits, models.predict_logits, "model(**", "model(*[], **"),
    (restored_logits, models.predict_logits, "model(**", "model(*[], **"),
    (finetune.finetuned, "models", "NORMAL_STD = 0.02", "NORMAL_STD = 0.03"),
    (maps.observe, "attention.hooks", "IMPLEMENTATION = ", "IMPLEMENTATION = 'x' + "),
]


@pytest.mark.parametrize(("function", "where", "old", "new"), DECISIVE)
def test_the_key_of_a_training_a_sweep_and_a_pass_follows_what_decides_it(
    function, where, old, new
):
    module = f"bertology_utils.{where}" if isinstance(where, str) else where.__module__
    assert old in common.SOURCES[module]
    edited = Code(
        common.SOURCES | {module: common.SOURCES[module].replace(old, new)}, digest.IGNORED
    )
    remarked = Code(
        common.SOURCES | {module: '"""Another."""\n' + common.SOURCES[module]}, digest.IGNORED
    )
    place = function.__module__, function.__name__
    assert remarked.digest(*place) == digest._code.digest(*place) != edited.digest(*place)


def test_an_edit_during_a_run_files_nothing_under_a_new_key(monkeypatch):
    before = Code(common.SOURCES, digest.IGNORED).digest(sweep.__module__, "sweep")

    def edited(*_, **__):
        raise AssertionError("the code is read again")

    for place, name in (
        (builtins, "open"),
        (io, "open"),
        (Path, "read_text"),
        (inspect, "getsource"),
    ):
        monkeypatch.setattr(place, name, edited)
    assert Code(common.SOURCES, digest.IGNORED).digest(sweep.__module__, "sweep") == before


@pytest.mark.parametrize("what", ["versions", "device", "code", "arguments"])
def test_every_key_has_versions_device_code_and_arguments(tiny_bert, monkeypatch, what):
    training = finetune.Training(
        TASKS["rte"], parse_model(str(tiny_bert)), make_rows(TASKS["rte"]), Recipe(1e-4)
    )

    def keys():
        return [
            cache.cache_key(finetune.train, training),
            cache.cache_key(sweep, cache.Lazy(dict, (training,)), ()),
        ]

    before = keys()
    assert keys() == before and [kind for kind, _ in before] == [cache.MADE] * 2
    if what == "versions":
        monkeypatch.setattr(cache, "_versions", lambda: {"torch": "another"})
    elif what == "device":
        monkeypatch.setattr(cache, "device_name", lambda: "another")
    elif what == "code":
        monkeypatch.setattr(digest, "_of_code", lambda part: "another")
    else:
        training = dataclasses.replace(training, seed=7)
    changed = keys()
    assert all(new[1][what] != old[1][what] for new, old in zip(changed, before, strict=True))


# Fingerprints

VALUES = (
    [0, 1, -1, 0.0, -0.0, True, False, None, "", "0", b"0", float("nan")]
    + [(), [], {}, (0,), [0], {0: 1}, {1: 0}, {"0": 1}, [[0], 1], [0, [1]], {1, 2}, {1, 3}]
    + [np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.zeros(2, int), np.float64(0)]
    + [
        torch.zeros(2),
        torch.zeros(2, 1),
        torch.zeros(2, dtype=torch.bfloat16),
        torch.zeros(()),
        torch.float32,
    ]
    + [
        FlowShares(np.zeros(1), np.ones(1)),
        FlowShares(np.ones(1), np.zeros(1)),
        FlowShares,
        make_rows(TASKS["rte"], 4),
    ]
    + [
        np.array(["a", None], object),
        np.array([None, "a"], object),
        models.draw_normal,
        models.load_config,
    ]
    + [functools.partial(models.draw_normal, only_head=only) for only in (False, True)]
    + [TASKS["rte"], TASKS["qqp"]]
)


def test_different_values_have_different_fingerprints_and_equal_ones_the_same():
    assert len({digest.fingerprint(value) for value in VALUES}) == len(VALUES)
    assert same({"a", "b", "c"}, {"c", "a", "b"}) and same(
        make_rows(TASKS["rte"], 4), make_rows(TASKS["rte"], 4)
    )
    assert same(np.arange(6).reshape(2, 3).T, np.arange(6).reshape(2, 3).T.copy())
    one = [1]
    one.append(one)  # which holds itself
    assert not same(one, [1, [1]])


@pytest.mark.parametrize("change", ["a weight", "the configuration", "training", "the shape"])
def test_another_model_has_another_fingerprint(tiny_bert, tmp_path, change):
    model, plain = (loaded(tiny_bert)[0] for _ in range(2))
    assert same(model, plain)
    if change == "a weight":
        with torch.no_grad():
            model.encoder.layer[2].output.dense.bias[3] += 1e-7
    elif change == "the configuration":
        model.config.layer_norm_eps = 1e-3
    elif change == "training":
        model.train()
    else:
        model, _ = loaded(make_bert(tmp_path / "other", layers=3, heads=2, hidden=32))
    assert not same(model, plain)


def test_a_folder_elsewhere_and_another_process_give_the_same(tiny_bert, tmp_path, encoder, inputs):
    code = (
        "import sys; from bertology_utils import models; from bertology_utils.settings import parse_model\n"
        "from bertology_utils import batches_of; from bertology_utils.digest import fingerprint\n"
        "source = parse_model(sys.argv[1]); print(fingerprint((models.load_encoder(source), models.draw_normal,"
        f" batches_of({TEXTS!r}, models.load_tokenizer(source)), {{'b', 'a', 'c'}})))"
    )
    (tmp_path / "elsewhere").symlink_to(tiny_bert)
    told = python(
        code, tmp_path / "elsewhere", env=os.environ | {"PYTHONHASHSEED": "7"}, check=True
    ).stdout
    assert told.split()[-1] == digest.fingerprint(
        (encoder, models.draw_normal, inputs, {"a", "b", "c"})
    )


class Own:
    """Of which the next session may have another of the same name."""

    value = 1


def test_what_cannot_be_told_apart_has_none(encoder):
    for value in (lambda: 1, Own(), io.BytesIO(), (x for x in ())):
        with pytest.raises(UnhashableError):
            digest.fingerprint([value])
    with disable_heads(encoder, [(0, 0)]), pytest.raises(UnhashableError, match="disabled"):
        digest.fingerprint(encoder)
    hook = encoder.register_forward_hook(lambda *_: None)
    try:
        with pytest.raises(UnhashableError, match="code"):
            digest.fingerprint(encoder)
    finally:
        hook.remove()
    with pytest.raises(UnhashableError, match="code of test_cache"):
        digest.fingerprint(type("Mine", (torch.nn.Linear,), {"__module__": "test_cache"})(2, 2))
    assert digest.fingerprint(encoder)


# Files

leaves = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=5)
)
leaves |= arrays.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, bool]),
    arrays.array_shapes(min_dims=0, min_side=0),
)
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
    for name in (
        "bertology_utils.cache:cached",
        "bertology_utils.none:main",
        "os:system",
        "shutil:rmtree",
    ):
        with pytest.raises(ValueError, match="no dataclass of bertology_utils"):
            unpack(whole.replace(kept, name.encode().ljust(len(kept))))


# Calls


def test_observed_once_and_the_same_as_plainly(encoder, inputs, passes):
    def measurements():
        return {
            "flow": flow(inputs),
            "by norm": ByNorm(flow(inputs)),
            "exchanged": Exchanged(flow(inputs), seed=1),
            "patterns": Patterns(load_network(), None),
            "drift": Drift(encoder),
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
        return {"other lots": Exchanged(flow(inputs), seed=2)}

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
    def asked(**options):
        del passes[:]
        found = cache.cached(drifts, {"itself": (encoder, encoder)}, inputs, **options)["itself"]
        return len(passes), found

    first, found = asked()
    assert first and np.allclose(found, 1)
    assert asked()[0] == 0 and np.array_equal(asked()[1], found)
    assert asked(protocol="official")[0] == first
    monkeypatch.setattr(digest, "_of_code", lambda part: "another")
    assert asked()[0] == first, "changed code measures anew"


def test_later_is_made_only_where_it_is_needed_and_a_scratch_is_given(
    tiny_bert, inputs, own_cache, monkeypatch
):
    asked = []
    model = cache.Lazy(
        lambda: asked.append(1) or models.load_classifier(str(tiny_bert), "rte"),
        (models.load_classifier, 1),
    )
    first = cache.cached(sweep, model, inputs, ablation="zero")
    assert same(cache.cached(sweep, model, inputs, ablation="zero"), first) and asked == [1]
    (folder,) = own_cache.glob(f"{cache.MADE}/*/{cache.MANIFEST}")
    assert cache.is_finished(*cache.cache_key(sweep, model, inputs, 0, None, "zero")), folder

    monkeypatch.setattr("bertology_utils.disabling.sweep.note", lambda text: None)
    seen = []
    finish = sys.modules[sweep.__module__]._finish

    def stop(scratch, number, outputs):
        finish(scratch, number, outputs)
        seen.append((scratch, number))
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[sweep.__module__], "_finish", stop)
    other = cache.Lazy(model.make, (models.load_classifier, 2))
    with pytest.raises(KeyboardInterrupt):
        cache.cached(sweep, other, inputs, ablation="zero")
    assert same(cache.cached(sweep, other, inputs, ablation="zero"), first)
    assert [number for _, number in seen] == [0, 1, 2], "it went on from the last finished layer"


def test_a_damaged_value_and_one_of_a_class_that_is_gone_are_measured_anew(
    encoder, inputs, own_cache, passes
):
    def look():
        del passes[:]
        return observe_cached(encoder, inputs, {"flow": flow(inputs)})["flow"], len(passes)

    whole, _ = look()
    (file,) = own_cache.glob("measured/*/*.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    again, made = look()
    assert made and same(again, whole) and look()[1] == 0

    gone = pack(whole).replace(b":FlowShares", b":FormerName")
    (manifest,) = (
        path
        for path in own_cache.glob("measured/*/manifest.json")
        if "damaged" not in path.parent.name
    )
    before = cache.checksum(manifest.parent / "value.safetensors")
    (manifest.parent / "value.safetensors").write_bytes(gone)
    manifest.write_text(
        manifest.read_text().replace(before, cache.checksum(manifest.parent / "value.safetensors"))
    )
    again, made = look()
    assert made and same(again, whole) and look()[1] == 0


def test_a_cache_that_is_only_read_does_not_stop_it(encoder, inputs, monkeypatch):
    plain = observe(encoder, inputs, {"flow": flow(inputs)})

    def closed(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(cache, "artefact", closed)
    assert same(observe_cached(encoder, inputs, {"flow": flow(inputs)}), plain)
    with pytest.raises(PermissionError):
        cache.cached(sweep, cache.Lazy(pytest.fail, ()), inputs)
