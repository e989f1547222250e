"""What was measured is looked up, and only where nothing that decides it has changed."""

import dataclasses
import io
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import ROOT, make_bert
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bertology_utils import batches_of, disable_heads
from bertology_utils.attention import ByNorm, Exchanged, contents, kept, maps, observe
from bertology_utils.attention.contents import UnnamedError, fingerprint
from bertology_utils.common.packing import pack, unpack
from bertology_utils.drift import comparisons
from bertology_utils.drift.measure import Drift
from bertology_utils.encoders import models
from bertology_utils.encoders.sources import parse_model
from bertology_utils.features.flow import Flow, FlowShares
from bertology_utils.patterns.cnn import Design, PatternCNN, load_network
from bertology_utils.patterns.measure import Patterns
from bertology_utils.weighing.mixing import Mixing

TEXTS = ["A small lamp stood near the window.", "The river was cold.", "Who wrote this letter about winter bread?"]


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return models.load_encoder(parse_model(str(tiny_bert)))


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return models.load_tokenizer(parse_model(str(tiny_bert)))


@pytest.fixture(scope="module")
def inputs(tokenizer):
    return batches_of(TEXTS, tokenizer)


@pytest.fixture
def passes(monkeypatch):
    """Batches that went through a model, counted."""
    counted = []
    forward = maps._forward
    monkeypatch.setattr(maps, "_forward", lambda *parts: counted.append(parts) or forward(*parts))
    return counted


def marks(inputs):
    """[CLS] and [SEP] of each input, as ``flow.marks`` gives them."""
    found = {}
    for batch in inputs:
        for index, length in zip(batch.index, batch.lengths.tolist(), strict=True):
            found[index] = np.array([np.arange(length) == 0, np.arange(length) == length - 1, np.zeros(length, dtype=bool)])
    return [found[index] for index in sorted(found)]


# Fingerprints

VALUES = (
    [0, 1, -1, 0.0, -0.0, True, False, None, "", "0", b"0", float("nan")]
    + [(), [], {}, (0,), [0], {0: 1}, {1: 0}, {"0": 1}, [[0], 1], [0, [1]], {1, 2}, {1, 3}]
    + [np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.zeros(2, int), np.float64(0)]
    + [torch.zeros(2), torch.zeros(2, 1), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(()), torch.float32]
    + [FlowShares(np.zeros(1), np.ones(1)), FlowShares(np.ones(1), np.zeros(1)), FlowShares]
    + [np.array(["a", None], object), np.array([None, "a"], object)]
)


def test_different_values_have_different_fingerprints_and_equal_ones_the_same():
    assert len({fingerprint(value) for value in VALUES}) == len(VALUES)
    assert fingerprint({"a", "b", "c"}) == fingerprint({"c", "a", "b"})
    assert fingerprint(np.arange(6).reshape(2, 3).T) == fingerprint(np.arange(6).reshape(2, 3).T.copy())
    one = [1]
    one.append(one)  # which holds itself
    assert fingerprint(one) != fingerprint([1, [1]])


def test_of_a_record_that_is_gone_nothing_stays():
    digests, before = set(), len(contents._records)
    for number in range(200):  # most of them get the place, and so the identity, of the one before
        digests.add(fingerprint([FlowShares(np.full(1, number), np.zeros(1))]))
    assert len(digests) == 200 and len(contents._records) == before


@pytest.mark.parametrize("change", ["a weight", "the configuration", "training", "the shape"])
def test_another_model_has_another_fingerprint(tiny_bert, tmp_path, change):
    model = models.load_encoder(parse_model(str(tiny_bert)))
    before = fingerprint(model)
    assert fingerprint(models.load_encoder(parse_model(str(tiny_bert)))) == before
    if change == "a weight":
        with torch.no_grad():
            model.encoder.layer[2].output.dense.bias[3] += 1e-7
    elif change == "the configuration":
        model.config.layer_norm_eps = 1e-3
    elif change == "training":
        model.train()
    else:
        model = models.load_encoder(parse_model(str(make_bert(tmp_path / "other", layers=3, heads=2, hidden=32))))
    assert fingerprint(model) != before


def test_a_folder_elsewhere_and_another_process_give_the_same(tiny_bert, tmp_path, encoder, inputs):
    code = (
        "import sys; from bertology_utils.encoders import models; from bertology_utils.encoders.sources import parse_model\n"
        "from bertology_utils import batches_of; from bertology_utils.attention.contents import fingerprint\n"
        "source = parse_model(sys.argv[1]); print(fingerprint((models.load_encoder(source),"
        f" batches_of({TEXTS!r}, models.load_tokenizer(source)), {{'b', 'a', 'c'}})))"
    )
    (tmp_path / "elsewhere").symlink_to(tiny_bert)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code, str(tmp_path / "elsewhere")]
    told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert told.split()[-1] == fingerprint((encoder, inputs, {"a", "b", "c"}))


class Own:
    """Of which the next session may have another of the same name."""

    value = 1


def test_what_cannot_be_told_apart_has_none(encoder):
    for value in (lambda: 1, Own(), io.BytesIO(), (x for x in ())):
        with pytest.raises(UnnamedError):
            fingerprint([value])
    with disable_heads(encoder, [(0, 0)]), pytest.raises(UnnamedError, match="disabled"):
        fingerprint(encoder)
    hook = encoder.register_forward_hook(lambda *_: None)
    try:
        with pytest.raises(UnnamedError, match="code"):
            fingerprint(encoder)
    finally:
        hook.remove()
    with pytest.raises(UnnamedError, match="code of test_kept"):
        fingerprint(type("Mine", (torch.nn.Linear,), {"__module__": "test_kept"})(2, 2))
    assert fingerprint(encoder)


@pytest.mark.parametrize("other", [Design(size=16), Design(separators=True), Design(width=8)])
def test_what_a_network_looks_at_counts(other):
    torch.manual_seed(0)
    plain, changed = PatternCNN(Design()), PatternCNN(other)
    assert fingerprint(Patterns(plain, 1)) != fingerprint(Patterns(changed, 1)) != fingerprint(Patterns(changed, 2))


# Files

leaves = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=5)
kinds = st.sampled_from([np.float64, np.float32, np.int64, bool])
leaves |= arrays.arrays(kinds, arrays.array_shapes(min_dims=0, min_side=0))
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
    assert fingerprint(again) == fingerprint(value)
    assert pack(again) == pack(value)


def test_only_records_of_this_package_are_made():
    @dataclasses.dataclass
    class Other:
        value: int

    for refused in (Other(1), object(), torch.zeros(1), {1: {2}}):
        with pytest.raises(TypeError, match="cannot be kept"):
            pack(refused)
    whole = pack(FlowShares(np.zeros(1), np.ones(1)))
    for name in ("bertology_utils.features.flow:Flow", "bertology_utils.suite.run:main", "os:system", "shutil:rmtree"):
        named = whole.replace(b"bertology_utils.features.flow:FlowShares", name.encode().ljust(40))
        with pytest.raises(ValueError, match="no dataclass of bertology_utils"):
            unpack(named)


# Passes


def test_observed_once_and_the_same_as_plainly(encoder, inputs, passes):
    def measurements():
        return {
            "flow": Flow(marks(inputs)),
            "by norm": ByNorm(Flow(marks(inputs))),
            "exchanged": Exchanged(Flow(marks(inputs)), seed=1),
            "patterns": Patterns(load_network(), None),
            "drift": Drift(encoder),
        }

    plain = observe(encoder, inputs, measurements())
    del passes[:]
    first = kept.observe(encoder, inputs, measurements())
    assert passes and fingerprint(first) == fingerprint(plain)
    del passes[:]
    assert fingerprint(kept.observe(encoder, inputs, measurements())) == fingerprint(plain)
    assert not passes

    # One more measurement costs one pass, of which it alone is fed.
    def more():
        return {"other lots": Exchanged(Flow(marks(inputs)), seed=2)}

    found = kept.observe(encoder, inputs, measurements() | more())
    assert len(passes) == len(inputs) and list(found) == [*measurements(), "other lots"]
    assert fingerprint(found["other lots"]) == fingerprint(observe(encoder, inputs, more())["other lots"])
    assert fingerprint(found["other lots"]) != fingerprint(found["exchanged"])


def test_a_context_that_measures_waits_for_its_own_pass(encoder, inputs):
    def look(*names):
        with Mixing(encoder) as mixing:
            both = {"mixing": mixing, "flow": Flow(marks(inputs))}
            return kept.observe(encoder, inputs, {name: both[name] for name in names})

    alone = look("mixing")["mixing"]
    both = look("mixing", "flow")  # the flow is measured, within the context, and the mixing looked up
    assert np.array_equal(both["mixing"], alone)
    assert fingerprint(both["flow"]) == fingerprint(observe(encoder, inputs, {"flow": Flow(marks(inputs))})["flow"])


def test_a_model_with_disabled_heads_is_looked_at_each_time(encoder, inputs, passes):
    whole = kept.observe(encoder, inputs, {"flow": Flow(marks(inputs))})["flow"]
    with disable_heads(encoder, [(1, 2)]):
        without = kept.observe(encoder, inputs, {"flow": Flow(marks(inputs))})["flow"]
        del passes[:]
        kept.observe(encoder, inputs, {"flow": Flow(marks(inputs))})
        assert passes
    assert not np.allclose(whole.destinations[:, 1, 2], without.destinations[:, 1, 2])
    assert fingerprint(kept.observe(encoder, inputs, {"flow": Flow(marks(inputs))})["flow"]) == fingerprint(whole)


def test_once_means_once_for_each_content_and_each_code(encoder, inputs, passes, monkeypatch):
    def asked(**options):
        del passes[:]
        found = kept.once(comparisons.drifts, {"itself": (encoder, encoder)}, inputs, **options)["itself"]
        return len(passes), found

    first, found = asked()
    assert first and np.allclose(found, 1)
    assert asked()[0] == 0 and np.array_equal(asked()[1], found)
    assert asked(protocol="official")[0] == first
    monkeypatch.setattr(kept, "_package_code", lambda: "another")
    assert asked()[0] == first, "changed code measures anew"


def test_a_function_of_ones_own_is_refused_before_it_runs():
    with pytest.raises(ValueError, match="functions of bertology_utils"):
        kept.once(lambda: pytest.fail("it ran"))


def test_the_code_is_the_whole_packages(tmp_path, monkeypatch):
    said = kept._package_code()
    kept._package_code.cache_clear()
    read = type(ROOT).read_bytes
    monkeypatch.setattr(type(ROOT), "read_bytes", lambda path: read(path) + b"\n#" * (path.name == "token_links.py"))
    assert kept._package_code() != said
    kept._package_code.cache_clear()


def test_a_damaged_value_is_measured_anew(encoder, inputs, own_cache, passes):
    def look():
        del passes[:]
        return kept.observe(encoder, inputs, {"flow": Flow(marks(inputs))})["flow"], len(passes)

    whole, _ = look()
    (file,) = own_cache.glob("measured/*/*.safetensors")
    file.write_bytes(file.read_bytes()[:-1])
    again, made = look()
    assert made and fingerprint(again) == fingerprint(whole) and look()[1] == 0


def test_a_cache_that_is_only_read_does_not_stop_it(encoder, inputs, own_cache, monkeypatch):
    from bertology_utils.common import cache

    plain = observe(encoder, inputs, {"flow": Flow(marks(inputs))})

    def closed(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(cache, "entry", closed)
    assert fingerprint(kept.observe(encoder, inputs, {"flow": Flow(marks(inputs))})) == fingerprint(plain)


def test_notebooks_look_up_what_they_measure():
    assert {"torch", "transformers", "scikit-learn"} <= kept._versions().keys(), "whose code is told by their versions"
    for path in sorted((ROOT / "notebooks").glob("[1-8]_*.ipynb")):
        text = path.read_text(encoding="utf-8")
        imports = [line for line in text.splitlines() if "import" in line and " observe" in line]
        plain = [line for line in imports if "attention.kept" not in line]
        assert not plain, f"{path.stem}: {plain}"
