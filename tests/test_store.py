"""Measurements as files: kept with their settings, whole or not at all, and never used for what they are not."""

import errno
import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import ROOT, make_bert, one_example
from scipy.special import softmax

from bertology_utils import e5, measurements, store
from bertology_utils.glue import EMBEDDED, get_task, read_table
from bertology_utils.measurements import (
    answers,
    drift,
    reset,
    shared_words,
    without_each_head,
    without_several,
)
from bertology_utils.settings import StudySettings
from bertology_utils.store import measured
from bertology_utils.study import Study

CALLS = []
KILLED = {3}  # first rows of blocks in which a measurement is killed


@measured(
    rows={"plain": "disabled_rows", "few": "compared_rows"},
    passes=1,
    block=3,
)
def counted(study, task, run, rows, way="plain"):
    """Counts its blocks."""
    CALLS.append((rows.start, rows.stop))
    if way == "few" and rows.start in KILLED:
        raise KeyboardInterrupt
    numbers = np.arange(rows.start, rows.stop)
    return xr.Dataset({"number": ("example", numbers / 7), "even": ("example", numbers % 2 == 0)})


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_OUTPUT", str(tmp_path / "runs"))
    monkeypatch.setenv("BERTOLOGY_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path / "runs" / "measured"))
    CALLS.clear()


@pytest.fixture
def study(tiny_bert, tiny_classifier, monkeypatch):
    monkeypatch.setattr(Study, "fingerprint", lambda *_: "x")
    return own(tiny_bert, tiny_classifier)


def own(tiny_bert, tiny_classifier, **entries):
    given = {"model": str(tiny_bert), "data": "embedded", "disabled_rows": 8, "compared_rows": 5}
    return Study.of("e5", "mrpc", checkpoint={"mrpc": str(tiny_classifier)}, **given | entries)


def test_it_is_measured_once_in_blocks_and_then_loaded(study):
    first = counted(study, "MRPC", 1)
    assert CALLS == [(0, 3), (3, 6), (6, 8)]
    np.testing.assert_allclose(first.number, np.arange(8) / 7, rtol=1e-3)
    assert first.number.dtype == np.float16 and first.even.dtype == bool
    assert counted(study, "MRPC", 1).identical(first) and len(CALLS) == 3
    settings = json.loads(first.attrs["settings"])
    assert settings["rows"] == 8 and settings["task"] == "MRPC" and settings["version"] == 1
    assert {"seconds", "device", "versions", "classifier", "description"} <= first.attrs.keys()
    assert sorted(path.name for path in (study.folder / "counted").iterdir()) == ["MRPC-1.nc"]
    assert "/" not in settings["checkpoint"] and str(ROOT) not in first.attrs["settings"]


def test_one_that_was_killed_goes_on_where_it_was(study, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        counted(study, "MRPC", 1, way="few")
    assert not counted.path(study, "MRPC", 1, way="few").exists()
    CALLS.clear()
    monkeypatch.setattr(sys.modules[__name__], "KILLED", set())
    assert counted(study, "MRPC", 1, way="few").number.size == 5
    assert CALLS == [(3, 5)], "the first block was kept"


def test_more_rows_go_on_behind_those_that_are_there(study, tiny_bert, tiny_classifier):
    with pytest.raises(KeyboardInterrupt):
        counted(study, "MRPC", 1, way="few")
    CALLS.clear()
    more = own(tiny_bert, tiny_classifier, compared_rows=7)
    with pytest.raises(KeyboardInterrupt):
        counted(more, "MRPC", 1, way="few")
    assert CALLS == [(3, 6)]


def test_another_setting_is_refused_with_both_and_the_command(
    study, tiny_bert, tiny_classifier, monkeypatch
):
    path = counted.path(study, "MRPC", 1)
    counted(study, "MRPC", 1)
    other = own(tiny_bert, tiny_classifier, disabled_rows=6)
    monkeypatch.setattr(Study, "folder", study.folder)
    what = r"rows: 8 on file, 6 asked for.*measure again: run this again"
    with pytest.raises(ValueError, match=what):
        counted(other, "MRPC", 1)
    assert counted.path(other, "MRPC", 1) == path and path.exists()


def test_an_encoder_that_is_another_under_its_old_name_is_refused(
    tiny_bert, tiny_classifier, tmp_path, monkeypatch
):
    monkeypatch.setattr(Study, "fingerprint", lambda *_: "x")
    folder = shutil.copytree(tiny_bert, tmp_path / "mine")
    one = own(folder, tiny_classifier)
    counted(one, "MRPC", 1)
    make_bert(folder, layers=2, heads=2, hidden=32)
    with pytest.raises(
        ValueError, match=r"model: 'mine \(\w{16}\)' on file, 'mine \(\w{16}\)' asked for"
    ):
        counted(own(folder, tiny_classifier), "MRPC", 1)


def test_rows_that_are_others_under_their_old_name_are_refused(
    tiny_bert, tiny_classifier, tmp_path, monkeypatch
):
    monkeypatch.setattr(Study, "fingerprint", lambda *_: "x")
    folder = shutil.copytree(EMBEDDED, tmp_path / "glue")
    one = own(tiny_bert, tiny_classifier, data=f"folder:{folder}")
    counted(one, "MRPC", 1)
    (folder / "MRPC" / "dev.tsv.gz").write_bytes((folder / "MRPC" / "train.tsv.gz").read_bytes())
    with pytest.raises(ValueError, match=r"data: 'folder:glue \(\w{8} \w{8}\)' on file"):
        counted(own(tiny_bert, tiny_classifier, data=f"folder:{folder}"), "MRPC", 1)


@pytest.mark.parametrize("damage", [b"", b"no HDF5", "cut"])
def test_a_damaged_file_is_refused_with_the_command(study, damage):
    counted(study, "MRPC", 1)
    path = counted.path(study, "MRPC", 1)
    path.write_bytes(path.read_bytes()[:900] if damage == "cut" else damage)
    with pytest.raises(
        ValueError, match=r"is damaged .*; remove it, and measure it again: run this again"
    ):
        counted(study, "MRPC", 1)


def test_of_what_the_project_keeps_the_command_is_named(tmp_path):
    kept = Study.of("e5", "mrpc")
    path = counted.path(kept, "MRPC", 1)
    asked = counted.settings(kept, "MRPC", 1) | {"seed": 7}
    store.write(
        path, xr.Dataset({"number": ("example", [1.0])}, attrs={"settings": json.dumps(asked)})
    )
    what = r"seed: 7 on file, 1 asked for.*: make measure STUDY=e5 ONLY=counted TASKS=MRPC"
    with pytest.raises(ValueError, match=what):
        kept.measure(counted)


def test_arrays_of_other_weights_of_a_run_are_not_mixed(tmp_path):
    kept = Study.of("e5", "mrpc", runs=1)
    kept = Study(kept.settings, measures=False)
    for way, weights in (("plain", "a"), ("few", "b")):
        asked = json.dumps(counted.settings(kept, "MRPC", 1, way=way))
        values = xr.Dataset(
            {"number": ("example", [1.0])}, attrs={"settings": asked, "classifier": weights}
        )
        store.write(counted.path(kept, "MRPC", 1, way=way), values)
    kept.measure(counted)
    with pytest.raises(ValueError, match="MRPC, run 1, was measured with other weights"):
        kept.measure(counted, way="few")


def test_no_row_is_trained_on_and_measured(tiny_bert):
    """Dev rows come first; where they end, training rows follow that no run trains on."""
    one = Study.of("small", "sst2", model=str(tiny_bert), train_rows=30)
    train, rows = one.train_rows("SST-2")["sentence"], one.rows("SST-2", -1)["sentence"]
    assert len(train) == 30 and not {*train} & {*rows}
    dev = read_table(get_task("sst2"), EMBEDDED / "SST-2" / "dev.tsv.gz")["sentence"]
    assert {*rows[: len({*dev} - {*train})]} <= {*dev}
    held = Study.of("small", "sst2", model=str(tiny_bert), train_rows=30, held_back=20)
    first = held.rows("SST-2", 20)["sentence"]
    assert not {*first} & {*held.train_rows("SST-2")["sentence"]} and not {*first} <= {*dev}
    assert held.rows("SST-2", slice(3, 5))["sentence"][:] == first[3:5], "a fixed order"


def test_entries_that_are_given_replace_those_by_task_and_complete_a_recipe():
    given = StudySettings.of("e5", train_rows=50, recipe={"epochs": 1}, seed=0)
    assert given.train_rows_of(get_task("sst2")) == 50 and given.seed == 0 and not given.is_kept
    assert StudySettings.of("paper", recipe={"epochs": 1}).recipe.learning_rate == 2e-5
    some = StudySettings.of("e5", train_rows_by_task={"SST-2": 4})
    assert some.train_rows_of(get_task("sst2")) == 4 and some.train_rows_of(get_task("rte")) == -1
    with pytest.raises(ValueError, match="unknown task 'cola'"):
        StudySettings.of("e5", train_rows_by_task={"mrpc": 1, "cola": 4})
    with pytest.raises(ValueError, match="several_rows=-1: .*greater than or equal to 4"):
        StudySettings.of("e5", several_rows=-1)  # the rows behind them choose the heads
    with pytest.raises(ValueError, match="disabled_rows=3: too few rows; at least 4"):
        StudySettings.of("e5", disabled_rows=3)


def test_what_cannot_be_written_says_why_and_leaves_nothing(study, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    with pytest.raises(OSError, match="no room to write .* the disk is full"):
        counted(study, "MRPC", 1)
    assert not (study.folder / "counted").exists()
    monkeypatch.setattr("os.access", lambda *_: False)
    CALLS.clear()
    with pytest.raises(
        PermissionError, match="cannot be written to; make it writable, or name another"
    ):
        counted(study, "MRPC", 1)
    assert CALLS == [], "refused before any work"


def test_unknown_options_studies_and_entries_are_refused_with_the_choices(study):
    with pytest.raises(ValueError, match="counted has no option 'way2'; it has: way"):
        counted(study, "MRPC", 1, way2="few")
    with pytest.raises(ValueError, match="unknown study 'e6'; choose one of: e5, e5-again, minilm"):
        Study.of("e6")
    with pytest.raises(ValueError, match="unknown entry 'row'; choose one of: .*rows"):
        Study.of("e5", row=3)
    with pytest.raises(ValueError, match="study 'e5', rows=-7"):
        Study.of("e5", rows=-7)
    with pytest.raises(ValueError, match="unknown task 'cola'"):
        Study.of("e5", "cola")


def test_results_that_the_project_keeps_are_only_read(tmp_path):
    kept = Study.of("e5", "mrpc")
    with pytest.raises(
        FileNotFoundError, match="not measured on a page; measure it by: make measure STUDY=e5"
    ):
        counted(kept, "MRPC", 1)
    assert not (tmp_path / "results").exists() and CALLS == []
    assert Study.of("e5", "mrpc", seed=2).folder.is_relative_to(tmp_path / "runs")


def test_a_study_tells_which_runs_are_not_measured_yet(study, tmp_path, capsys):
    kept = Study.of("e5", "mrpc,sst2", measures=True)
    path, asked = counted.path(kept, "MRPC", 1), json.dumps(counted.settings(kept, "MRPC", 1))
    store.write(path, xr.Dataset({"number": ("example", [1.0, 2.0])}, attrs={"settings": asked}))
    page = Study.of("e5", "mrpc,sst2")
    found = page.measure(counted)
    assert list(found) == ["MRPC"] and found["MRPC"].run.values.tolist() == [1]
    assert (
        "not measured yet: MRPC, run 2; SST-2 (make measure STUDY=e5 ONLY=counted)"
        in capsys.readouterr().out
    )
    with pytest.raises(FileNotFoundError, match="nothing is measured of QQP"):
        Study.of("e5", "qqp").measure(counted)
    assert Study.of("e5", "qqp").measure(counted, needed=False) == {}


def test_without_the_encoders_package_live_cells_say_so_and_the_page_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(e5, "PACKAGE", "no-such-package")
    study = Study.of("e5", "sst2")
    with study.live():
        study.example_classifier()
    assert (
        "not run here: the encoder 'e5' is not installed; run: pip install"
        in capsys.readouterr().out
    )


# The project's own measurements, against plain loops


@pytest.fixture
def small(tiny_bert, tiny_classifier):
    sizes = {"rows": 20, "disabled_rows": 20, "compared_rows": 20, "several_rows": 8}
    return own(tiny_bert, tiny_classifier, **sizes)


def of_rows(study, count):
    """Classifier of the first run, batches and labels."""
    return study.classifier("MRPC"), study.batches("MRPC", count), study.labels("MRPC", count)


@pytest.mark.parametrize("ablation", ["uniform", "zero", "mean"])
def test_without_each_head_is_one_pass_for_each_head(small, ablation):
    from bertology_utils import disable_heads, predict_logits
    from bertology_utils.disabling import replacement

    model, batches, labels = of_rows(small, 20)
    found = small.measure(without_each_head, ablation=ablation)["MRPC"].isel(run=0)
    instead = replacement(model, small.batches("MRPC", 100), ablation)
    assert found.layer.values.tolist() == [1, 2, 3]
    assert found["head"].values.tolist() == [1, 2, 3, 4]
    for layer, head in ((0, 0), (1, 3), (2, 1)):
        with disable_heads(model, [(layer, head)], instead):
            outputs = predict_logits(model, batches)
        one = found.sel(layer=layer + 1, head=head + 1)
        loss = -np.log(softmax(outputs, axis=1)[range(20), labels])
        np.testing.assert_allclose(one.loss_without, loss, rtol=2e-3, atol=1e-3)
        np.testing.assert_array_equal(one.right_without, outputs.argmax(axis=1) == labels)
    with disable_heads(model, [(1, head) for head in range(4)], instead):
        right = predict_logits(model, batches).argmax(axis=1) == labels
    np.testing.assert_array_equal(found.right_without_layer.sel(layer=2), right)


def test_without_several_disables_the_most_dispensable_first(small):
    from bertology_utils import disable_heads, predict_logits

    found = small.measure(without_several)["MRPC"].isel(run=0)
    assert found.sizes == {"order": 3, "count": 8, "example": 8}, "of one run alone, too"
    assert found["count"].values.max() == 12, "all heads"
    each = small.measure(without_each_head)["MRPC"].isel(run=0, example=slice(8, None))
    gain = (each.loss.astype(float) - each.loss_without).mean("example").values
    order = [divmod(int(at), 4) for at in np.argsort(-gain, axis=None)]
    model, batches, labels = of_rows(small, 8)
    for count in (1, 5, 12):
        with disable_heads(model, order[:count]):
            right = predict_logits(model, batches).argmax(axis=1) == labels
        np.testing.assert_array_equal(found.right.isel(order=0).sel(count=count), right)


def test_shared_words_by_loops_over_single_words(small):
    from bertology_utils import attention_maps

    tokenizer, model = small.tokenizer, small.classifier("MRPC")
    found = small.measure(shared_words)["MRPC"].isel(run=0)
    for batch in small.batches("MRPC", 20):
        for index in batch.index:
            one = one_example([batch], index)
            ids = one.inputs["input_ids"][0].tolist()
            tokens, end = tokenizer.convert_ids_to_tokens(ids), ids.index(tokenizer.sep_token_id)
            maps = np.stack([of[0].numpy() for of in attention_maps(model, one)])
            words = [
                at
                for at, token in enumerate(tokens)
                if any(map(str.isalnum, token)) and token[0] != "["
            ]
            each = []
            for at in words:
                there = [to for to in words if (to > end) != (at > end)]
                twins = [to for to in there if ids[to] == ids[at]]
                others = [to for to in there if ids[to] != ids[at]]
                if twins and others:
                    gives = maps[:, :, at]
                    each.append(gives[..., twins].mean(axis=-1) - gives[..., others].mean(axis=-1))
            expected = np.mean(each, axis=0) if each else np.full((3, 4), np.nan)
            excess = found.excess.isel(example=index)
            np.testing.assert_allclose(excess, expected, rtol=2e-3, atol=1e-4)


def test_a_regression_keeps_its_answers():
    judged = measurements.judged(np.array([[0.5], [0.2]]), np.array([0.4, 0.2]))
    np.testing.assert_allclose(judged["answer"][1], [0.5, 0.2])
    np.testing.assert_allclose(judged["loss"][1], [0.01, 0], atol=1e-12)


def plain_alike(one, other):
    """Cosine distance of two maps, and the share of attention that lies elsewhere in the other, by its definition."""
    x, y = one.ravel(), other.ravel()
    moved = np.mean([(a - np.minimum(a, b)).sum() for a, b in zip(one, other, strict=True)])
    return 1 - x @ y / np.sqrt((x @ x) * (y @ y)), moved


def learned(tiny_bert, tasks="mrpc", **entries):
    """A study of a classifier that was really fine-tuned, so that weights differ."""
    sizes = {"rows": 12, "train_rows": 64, "recipe": {"epochs": 2, "learning_rate": 2e-3}}
    return Study.of("small", tasks, model=str(tiny_bert), **sizes | entries)


def test_drift_compares_each_heads_maps(tiny_bert):
    from bertology_utils import attention_maps

    study = learned(tiny_bert, runs=2)
    measured = study.measure(drift)["MRPC"].sel(run=2)
    another, tuned, partly = (study.classifier("MRPC", run) for run in (1, 2, 2))
    before = study.before_fine_tuning("MRPC")
    layers = (one.base_model.encoder.layer for one in (partly, before))
    for new, old in zip(*layers, strict=True):
        new.attention.self.query, new.attention.self.key = (
            old.attention.self.query,
            old.attention.self.key,
        )
    pairs = {
        "before": (before, tuned),
        "before, queries and keys reset": (before, partly),
        "another run": (another, tuned),
    }
    assert measured.comparison.values.tolist() == [*pairs]
    assert measured.sizes == {"comparison": 3, "example": 12, "layer": 3, "head": 4}
    for batch in study.batches("MRPC", 12):
        for index in batch.index:
            for name, both in pairs.items():
                maps = [attention_maps(model, one_example([batch], index)) for model in both]
                for layer in range(3):
                    pair = zip(*(one[layer][0].double().numpy() for one in maps), strict=True)
                    heads = np.array([plain_alike(*of_head) for of_head in pair])
                    at = measured.sel(layer=layer + 1).isel(example=index)
                    of = at.sel(comparison=name)
                    np.testing.assert_allclose([of.distance, of.moved], heads.mean(0), atol=1e-3)
                    if name == "before":
                        np.testing.assert_allclose(at.distance_of_head, heads[:, 0], atol=1e-3)
    assert (measured.moved.mean("example") > 1e-3).any("layer").all(), "each pair differs"


def test_reset_gives_groups_of_weights_their_values_before_fine_tuning(tiny_bert):
    from bertology_utils import predict_logits

    study = learned(tiny_bert, runs=1)
    measured = study.measure(reset)["MRPC"].isel(run=0)
    assert measured.group.values.tolist() == [
        *("none", "1 to 2", "2 to 3", "all but 2 to 3", "all layers", "queries and keys"),
        *("all but queries and keys", "values and outputs", "feed-forward", "embeddings"),
        *("maps 2 to 3", "maps"),
    ]
    rows = study.settings.compared_rows
    labels, batches = study.labels("MRPC", rows), study.batches("MRPC", rows)
    before = study.before_fine_tuning("MRPC").base_model

    def restored(*parts, layers=range(3)):
        model = study.classifier("MRPC")
        for at in layers:
            for part in parts:
                new, old = (
                    one.encoder.layer[at].get_submodule(part) for one in (model.base_model, before)
                )
                new.load_state_dict(old.state_dict())
        return model

    attention, forward = "attention.self.value attention.output", "intermediate output"
    models = {
        "none": restored(layers=()),
        "1 to 2": restored("", layers=(0, 1)),
        "all but 2 to 3": restored("", layers=(0,)),
        "all layers": restored(""),
        "queries and keys": restored("attention.self.query", "attention.self.key"),
        "all but queries and keys": restored(*f"{attention} {forward}".split()),
        "values and outputs": restored("attention.self.value", "attention.output.dense"),
        "feed-forward": restored("intermediate.dense", "output.dense"),
    }
    for group, model in models.items():
        expected = measurements.judged(predict_logits(model, batches), labels)
        one = measured.sel(group=group)
        np.testing.assert_allclose(
            one.loss, expected["loss"][1], rtol=2e-3, atol=1e-3, err_msg=group
        )
    losses = measured.loss.astype(float)
    assert (abs(losses - losses.sel(group="none")).max("example") > 1e-3).sum() >= 11


def test_patched_maps_are_those_before_fine_tuning(tiny_bert):
    """Against a pass through BERT that is written out."""
    study = learned(tiny_bert, runs=1)
    measured = study.measure(reset)["MRPC"].isel(run=0)
    tuned, before = study.classifier("MRPC").eval(), study.before_fine_tuning("MRPC").eval()
    labels = study.labels("MRPC", 12)

    def forward(model, batch, given=()):
        ids, segments = (batch.inputs[name] for name in ("input_ids", "token_type_ids"))
        state, maps = model.bert.embeddings(ids, token_type_ids=segments), []
        for at, layer in enumerate(model.bert.encoder.layer):
            own = layer.attention.self
            q, k, v = (
                part(state).unflatten(-1, (4, -1)).transpose(1, 2)
                for part in (own.query, own.key, own.value)
            )
            maps.append(torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, dim=-1))
            weights = given[at] if at < len(given) and given[at] is not None else maps[-1]
            state = layer.attention.output((weights @ v).transpose(1, 2).flatten(2), state)
            state = layer.output(layer.intermediate(state), state)
        return model.classifier(model.bert.pooler(state)), maps

    with torch.inference_mode():
        for batch in study.batches("MRPC", 12):
            for index in batch.index:
                one = one_example([batch], index)
                _, maps = forward(before, one)
                for group, given in {"maps": maps, "maps 2 to 3": [None, *maps[1:]]}.items():
                    logits, _ = forward(tuned, one, given)
                    expected = measurements.judged(logits.numpy(), labels[[index]])["loss"][1]
                    value = measured.loss.sel(group=group).isel(example=index)
                    np.testing.assert_allclose(value, expected[0], rtol=2e-3, atol=1e-3)


def test_groups_of_a_model_with_twelve_layers():
    """As all pages that show them have."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 4, "intermediate_size": 4, "num_attention_heads": 2, "vocab_size": 8}
    model = BertModel(BertConfig(**sizes, num_hidden_layers=12))
    names = [
        [f"encoder.layer.{at}.{name}" for name in layer.state_dict()]
        for at, layer in enumerate(model.encoder.layer)
    ]
    groups = measurements.weight_groups(model)
    expected = {"11 to 12": names[10:], "all but 11 to 12": names[:10], "5 to 8": names[4:8]}
    for group, layers in expected.items():
        assert groups[group] == [name for layer in layers for name in layer], group
    assert len(groups) == 1 + 11 + 6 + 3 + 1 + 4 + 1


def test_table_1_has_a_trained_layer_and_random_ones(tiny_bert):
    from sklearn.linear_model import LogisticRegression

    from bertology_utils import predict_logits

    study = learned(tiny_bert, "mrpc,stsb", runs=2)
    measured = study.measure(answers)
    assert measured["MRPC"].trained.values.tolist() == ["fine-tuned", "classification layer only"]
    of_run = measured["MRPC"].sel(run=2, trained="fine-tuned")
    logits = predict_logits(study.classifier("MRPC", 2), study.batches("MRPC", 12))
    np.testing.assert_array_equal(of_run.right, logits.argmax(axis=1) == study.labels("MRPC", 12))
    chance, none = (measured[task].score_of_random.astype(float) for task in ("MRPC", "STS-B"))
    assert chance.shape == (2, 1000) and abs(chance.mean() - 50) < 3 and abs(none.mean()) < 5
    assert measured["STS-B"].answer.dims == ("run", "trained", "example")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 5)) * [1, 10, 0.1, 1, 1] + 3
    labels = (features[:, 0] + rng.normal(size=300) > 3).astype(int)
    plain = LogisticRegression(C=1e6, max_iter=1000).fit(features[:200], labels[:200])
    layer = measurements.trained_layer(features[:200], labels[:200])
    agree = layer(features[200:]).argmax(axis=1) == plain.predict(features[200:])
    assert agree.mean() > 0.9
    closeness = measurements.trained_layer(features[:200], features[:200, 0] / 5)(features[200:])
    assert closeness.shape == (100, 1)
    assert np.corrcoef(closeness[:, 0], features[200:, 0])[0, 1] > 0.99
    right = measurements.points(np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]]), np.array([0, 1]))
    assert right.tolist() == [100, 50]


def test_a_random_start_is_measured_where_it_is_asked_for(tiny_bert):
    study = learned(tiny_bert, runs=1)
    alike = drift(study, "MRPC", 1, start="random")
    assert alike.comparison.values.tolist() == ["before"]
    assert float(alike.distance.max()) < 0.1, "random weights attend evenly, and go on doing so"
    begun, other = (study.before_fine_tuning("MRPC", run, "random") for run in (1, 2))
    tuned = study.classifier("MRPC", 1, "random")
    weights = [one.get_input_embeddings().weight.detach() for one in (tuned, begun, other)]
    near, far = (float((one - weights[0]).norm()) for one in weights[1:])
    assert near < far / 3, "it is compared with its own start"
    one = answers(study, "MRPC", 1, start="random")
    assert one.trained.values.tolist() == ["fine-tuned"] and "score_of_random" not in one
    assert answers.path(study, "MRPC", 1, start="random").name == "MRPC-1-random.nc"


# Processes

SLOW = """
import sys, time, numpy as np, xarray as xr
from bertology_utils.glue import get_task, read_table
from bertology_utils.store import measured
from bertology_utils.settings import StudySettings
from bertology_utils.study import Study
Study.fingerprint = lambda *_: "x"

@measured(rows="disabled_rows", passes=1, block=2)
def slow(study, task, run, rows):
    time.sleep({pause})
    print(rows.start, flush=True)
    return xr.Dataset({{"number": ("example", np.arange(rows.start, rows.stop))}})

study = Study.of("e5", "mrpc", model={model!r}, data="embedded", checkpoint={{"mrpc": {model!r}}}, disabled_rows=12)
print(slow(study, "MRPC", 1).number.values.tolist())
"""


def started(tiny_classifier, pause):
    code = SLOW.format(pause=pause, model=str(tiny_classifier))
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_measurement_killed_by_force_resumes_to_the_same_values(tiny_classifier, tmp_path):
    first = started(tiny_classifier, 0.5)
    assert first.stdout.readline() == "0\n"
    assert first.stdout.readline() == "2\n"
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not [*(tmp_path / "runs").rglob("*.nc")], (
        "nothing stands where it could be taken for whole"
    )
    out, _ = started(tiny_classifier, 0).communicate(timeout=120)
    *blocks, values = out.splitlines()
    assert values == str(list(range(12))) and len(blocks) in (4, 5), (
        "blocks that were there are not made again"
    )


def test_two_processes_measure_it_once(tiny_classifier):
    both = [started(tiny_classifier, 0.2) for _ in range(2)]
    outs = [one.communicate(timeout=120)[0].splitlines() for one in both]
    assert {out[-1] for out in outs} == {str(list(range(12)))}
    assert sorted(len(out) for out in outs) == [1, 7], "one made all six blocks, the other none"
