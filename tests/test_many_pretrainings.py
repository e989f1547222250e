"""Parts of ``pretrainings``: the list, weights that cannot be had, what failed or was interrupted, claims and heads over all."""

import argparse
import gzip
import hashlib
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import ROOT, make_bert

from bertology_utils.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from bertology_utils.corpora import GLUE as EMBEDDED
from bertology_utils.encoders import models, multiberts, pickled
from bertology_utils.encoders.embedded import embedded_folder
from bertology_utils.encoders.sources import parse_model
from bertology_utils.pretrained import behaviour, many, many_drawing, same_heads
from bertology_utils.suite import looking
from bertology_utils.suite.experiment import Experiment
from bertology_utils.suite.many import collected, command, lists, page

NAME = "8_bert_base"
SEED = "google/multiberts-seed_"


# The list


def test_shorthands_of_the_multiberts():
    assert lists.read_list("multiberts") == [f"{SEED}{seed}" for seed in range(25)]
    assert lists.read_list("multiberts:3, a/b@c,multiberts:0-1") == [f"{SEED}3", "a/b@c", f"{SEED}0", f"{SEED}1"]
    steps = lists.read_list("multiberts-steps:2")
    assert len(steps) == 29 and steps[0] == f"{SEED}2-step_0k" and steps[1] == f"{SEED}2-step_20k"
    assert steps[10:12] == [f"{SEED}2-step_200k", f"{SEED}2-step_300k"] and steps[-1] == f"{SEED}2-step_2000k"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no encoder is named"),
        (" , ", "no encoder is named"),
        ("multiberts:25", "seeds go from 0 to 24"),
        ("multiberts:4-2", "seeds go from 0 to 24"),
        ("multiberts:few", "seeds go from 0 to 24"),
        ("multiberts-steps:5", "seeds go from 0 to 4"),
        ("multiberts:0-2,multiberts:2", f"{SEED}2 is named twice"),
    ],
)
def test_wrong_lists_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        lists.read_list(text)


def test_titles_are_short_and_differ(tmp_path):
    names = [f"{SEED}1", f"{SEED}1@main", "a/multiberts-seed_1", str(tmp_path)]
    assert list(lists.titles(names).values()) == [
        "multiberts-seed_1",
        "multiberts-seed_1 (2)",
        "multiberts-seed_1 (3)",
        tmp_path.name,
    ]


def test_the_revision_with_safetensors_is_the_multiberts_default_and_no_others():
    assert parse_model(f"{SEED}7").revision == parse_model(f"{SEED}1-step_20k").revision == "refs/pr/1"
    assert parse_model(f"{SEED}7@main").revision == parse_model("someone/multiberts-seed_7").revision == "main"


def test_checkpoints_of_a_seed_are_one_pretraining():
    assert (
        multiberts.pretraining(f"{SEED}1-step_20k")
        == multiberts.pretraining(f"{SEED}1")
        != multiberts.pretraining(f"{SEED}11")
    )


# Pickled weights


@pytest.fixture
def pickles(tiny_bert, tmp_path):
    """A folder with pickled weights only."""
    folder = tmp_path / "pickles"
    shutil.copytree(tiny_bert, folder)
    torch.save(models.load_encoder(str(tiny_bert)).state_dict(), folder / pickled.PICKLED)
    (folder / "model.safetensors").unlink()
    return folder


def test_pickled_weights_are_read_by_their_hash_alone(pickles, tiny_bert):
    right = hashlib.sha256((pickles / pickled.PICKLED).read_bytes()).hexdigest()
    with pytest.raises(ValueError, match="pickled weights are not loaded"):
        parse_model(str(pickles))
    converted = pickled.converted("mine", str(pickles), "", right)
    there, here = (models.load_encoder(str(folder)).state_dict() for folder in (converted, tiny_bert))
    assert all(torch.equal(there[name], here[name]) for name in here)
    assert not list(converted.glob("*.bin"))


def test_another_hash_is_compared_before_the_file_is_opened(pickles, monkeypatch):
    monkeypatch.setattr("torch.load", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ValueError, match="not 0000.*they are not read"):
        pickled.converted("mine", str(pickles), "", "0" * 64)


def test_a_pickle_that_would_run_code_does_not(pickles, tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    buffer = io.BytesIO()
    torch.save({"weight": Evil()}, buffer)
    (pickles / pickled.PICKLED).write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="cannot be read as tensors alone"):
        pickled.converted("mine", str(pickles), "", hashlib.sha256(buffer.getvalue()).hexdigest())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", ["a/b", "a/b=12", f"={'0' * 64}", f"a/b={'g' * 64}"])
def test_a_hash_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        pickled.read_hashes(text)


# Heads


def permuted(folder, target, seed):
    """A copy of an encoder with the heads of every layer in another order; returns the orders, (layers, heads)."""
    model = models.load_encoder(str(folder))
    heads = model.config.num_attention_heads
    width = model.config.hidden_size // heads
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(heads), (model.config.num_hidden_layers, 1)), axis=1)
    with torch.no_grad():
        for layer, order in zip(model.encoder.layer, orders, strict=True):
            rows = torch.from_numpy((order[:, None] * width + np.arange(width)).ravel())
            for part in (layer.attention.self.query, layer.attention.self.key, layer.attention.self.value):
                part.weight.copy_(part.weight[rows].clone())
                part.bias.copy_(part.bias[rows].clone())
            out = layer.attention.output.dense.weight
            out.copy_(out[:, rows].clone())
    shutil.copytree(folder, target)
    model.save_pretrained(target)
    return orders


def lab_of(model):
    return Experiment(NAME, profile="embedded", model=str(model), tasks="sst2", max_examples=40)


def heads_of(lab, model):
    (task,) = lab.tasks
    seen = behaviour.of_examples(model, lab.measured_batches(task), lab.annotated_inputs(task))
    return behaviour.in_halves([seen], 1)


def test_permuted_heads_are_found_and_compute_the_same(tiny_bert, tmp_path):
    orders = permuted(tiny_bert, tmp_path / "copy", seed=3)
    assert (orders != np.arange(orders.shape[1])).any()
    labs = [lab_of(tiny_bert), lab_of(tmp_path / "copy")]
    both = [lab.encoder() for lab in labs]
    batch = labs[0].measured_batches(labs[0].tasks[0])[0]
    with torch.no_grad():
        outputs = [model(**batch.inputs).last_hidden_state for model in both]
    assert torch.allclose(*outputs, atol=1e-5)
    one, other = (heads_of(lab, model) for lab, model in zip(labs, both, strict=True))
    assert one.shape == (2, 3, 4, len(behaviour.KINDS)) and np.allclose(one[..., :7].sum(axis=-1), 1)
    found = same_heads.match(*(same_heads.standardised(of[0][..., :7]) for of in (one, other)))
    np.testing.assert_array_equal(np.take_along_axis(orders, found, axis=1), np.tile(np.arange(4), (3, 1)))
    alike = same_heads.compare(one, other, seed=1)
    assert alike.matched == pytest.approx(1) and abs(alike.random) < 0.1
    assert alike.same_number < 0.9 and alike.other_layer < 0.9


def test_matching_on_noise_gives_nothing_on_the_other_half():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 2, 12, 12, 13))
    first = [same_heads.standardised(of[0]) for of in (one, other)]
    assert same_heads.agreement(*first, same_heads.match(*first)) > 0.3  # on the half on which it was matched
    alike = same_heads.compare(one, other, seed=1)
    assert abs(alike.matched) < 0.08 and abs(alike.repeated) < 0.08


def test_other_heads_that_are_matched_are_not_taken_for_the_same():
    """Twelve independent heads can always be matched somewhat: as well with those of another layer."""
    rng = np.random.default_rng(0)
    one, other = (np.stack([of, of]) for of in rng.normal(size=(2, 12, 12, 13)))
    alike = same_heads.compare(one, other, seed=1)
    assert alike.matched > 0.3 and abs(alike.matched - alike.other_layer) < 0.08 and alike.repeated == pytest.approx(1)


def test_encoders_of_two_shapes_are_not_matched():
    with pytest.raises(ValueError, match="cannot be matched"):
        same_heads.compare(np.zeros((2, 3, 4, 5)), np.zeros((2, 4, 4, 5)), 1)


def test_halves_are_means_of_tasks_that_count_the_same():
    tasks = [np.full((40, 1, 1, 2), 1.0), np.full((4, 1, 1, 2), 3.0)]
    tasks[1][:, ..., 1] = np.nan  # a kind that this task does not have
    np.testing.assert_allclose(behaviour.in_halves(tasks, 1)[:, 0, 0], [[2, 1], [2, 1]])
    with pytest.raises(ValueError, match="at least two examples"):
        behaviour.in_halves([np.zeros((1, 1, 1, 2))], 1)


def test_the_interval_over_pairs_covers_the_truth():
    """A pair's number is a mean of its two encoders', so that pairs are not independent."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(300):
        of = dict(zip("abcdef", rng.normal(size=6), strict=True))
        found = same_heads.over_pairs({(a, b): (of[a] + of[b]) / 2 for a in of for b in of if a < b})
        hits += found["low"] < 0 < found["high"]
    assert 0.91 < hits / 300 < 0.985
    assert found["pairs"] == 15 and found["encoders"] == 6


# Claims


def test_a_claim_over_pretrainings():
    outcomes = {"a": HOLDS, "b": HOLDS, "c": FAILS, "d": UNDECIDED, "e": UNTESTABLE}
    found = many.tally(outcomes, {"a": 0.1, "b": 0.3, "c": -0.1, "e": 9.0}, independent=True)
    assert list(found["counts"].values()) == [2, 1, 1, 1]
    share, number = found["share"], found["number"]
    assert share["n"] == 4 and share["value"] == 0.5
    assert (share["low"], share["high"]) == pytest.approx((0.0676, 0.9324), abs=1e-4)  # Clopper and Pearson's tables
    assert number["n"] == 3 and number["mean"] == pytest.approx(0.1) and (number["least"], number["most"]) == (-0.1, 0.3)
    assert number["high"] - number["mean"] == pytest.approx(4.3027 * 0.2 / 3**0.5, abs=1e-4)
    steps = many.tally(outcomes, {"a": 0.1, "b": 0.3}, independent=False)
    assert steps["share"] == {"n": 4} and "low" not in steps["number"]


@pytest.mark.parametrize(("names", "independent"), [("abc", True), ("aab", False)])
def test_checkpoints_of_one_pretraining_give_no_intervals(names, independent):
    content = json.loads((ROOT / "figures" / NAME / "results.json").read_text())
    rng = np.random.default_rng(0)
    measured = [
        SimpleNamespace(
            candidate=SimpleNamespace(title=str(at), pretraining=name, fingerprint=str(at), shape=(3, 4)),
            results=content,
            heads=rng.normal(size=(2, 3, 4, 5)),
        )
        for at, name in enumerate(names)
    ]
    found = collected.collect(measured, {"x": "why"}, 1)
    assert found["unit"] == ("pre-training" if independent else "checkpoint") and found["left out"] == ["x"]
    assert not set(many.BY_NUMBER) & set(found["claims"])
    (shape,) = found["heads"]
    claim = found["claims"]["cls-early"]
    for one in (claim["number"], claim["share"], shape["correlations"]["matched"]):
        assert ("low" in one) == independent
    assert claim["number"]["mean"] == pytest.approx(-0.051) and claim["counts"][FAILS] == 3


@pytest.mark.parametrize(
    ("told", "number", "unit"),
    [
        ("MNLI-m -0.051 [-0.055, -0.047], the least of 7 tasks; n=100", -0.051, ""),
        ("(4, 2) above (1, 4) by +0.001 [-0.029, +0.031]; n=175", 0.001, ""),
        ("κ 0.85 [0.82, 0.87]; 72 heads, 7 tasks, n=700 (pre-trained 0.85)", 0.85, ""),
        ("amod +0.3 [-1.0, +1.5] points, the least of 4 relations; n=335", 0.3, "points"),
        ("obj -14 [-26, -2] points, the least of 4 relations; n=92", -14.0, "points"),
        ("subject → verb: above 100% of random sets of five heads; n=627", None, ""),
        ("0 heads of 4 relations; 828 arcs", None, ""),
        ("175 of mini", None, ""),
        ("p = 0.03; n=5", None, ""),
        ("–", None, ""),
    ],
)
def test_the_number_that_a_verdict_tells(told, number, unit):
    assert (collected.number(told), collected.unit(told)) == (number, unit)


# The command


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """``pretrainings`` in this process, notebook 8 replaced by the committed one's results; returns (code, what is said)."""
    checkout = tmp_path / "checkout"
    (checkout / "notebooks").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    shutil.copy(ROOT / "notebooks" / f"{NAME}.ipynb", checkout / "notebooks")
    monkeypatch.chdir(checkout)
    (tmp_path / "glue" / "SST-2").mkdir(parents=True)
    text = gzip.decompress((EMBEDDED / "SST-2" / "dev.tsv.gz").read_bytes()).decode()
    (tmp_path / "glue" / "SST-2" / "dev.tsv").write_text(text, encoding="utf-8")
    parts = [gzip.decompress(file.read_bytes()).decode() for file in sorted((EMBEDDED / "SST-2").glob("dev*.conllu.gz"))]
    (tmp_path / "gold.conllu").write_text("\n\n".join(part.strip() for part in parts) + "\n\n", encoding="utf-8")
    ran = []

    def run(notebook, checked, output):
        name = Path(str(checked.values["model"])).name
        ran.append(name)
        if name == "interrupted":
            raise KeyboardInterrupt
        if name == "faulty":
            return SimpleNamespace(error="cell 3: ValueError: no", executed=output / "failed.ipynb")
        target = output / looking.FIGURES / NAME
        target.mkdir(parents=True)
        shutil.copy(ROOT / "figures" / NAME / "results.json", target)
        return SimpleNamespace(error=None)

    monkeypatch.setattr(looking, "run", run)

    def pretrainings(*models_, **options):
        parser = argparse.ArgumentParser()
        command.add_pretrainings(parser)
        data = ["--glue", str(tmp_path / "glue"), "--annotation", f"conllu:{tmp_path / 'gold.conllu'}"]
        data += ["--framenet", "embedded", "--tasks", "sst2", "--examples", "12"]
        given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
        code = command.run(parser.parse_args(["--models", ",".join(map(str, models_)), *data, *given]))
        return code, "".join(capsys.readouterr())

    pretrainings.ran = ran
    return pretrainings


def test_what_failed_is_named_last_and_what_is_finished_is_not_run_again(call, tmp_path):
    one, faulty, interrupted = (
        make_bert(tmp_path / name, layers=2, heads=2, hidden=16, seed=seed)
        for seed, name in enumerate(("one", "faulty", "interrupted"))
    )
    cut = tmp_path / "cut"
    shutil.copytree(one, cut)
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:-10])
    copy = tmp_path / "copy"
    shutil.copytree(one, copy)
    with pytest.raises(KeyboardInterrupt):
        call(one, interrupted)
    code, said = call(cut, faulty, one, copy, "a/not-cached")
    assert call.ran == ["one", "interrupted", "faulty"] and code == 1
    assert "2, 1 of them finished before" in said and "one: finished before" in said
    assert said.rstrip().splitlines()[-1].startswith("error: faulty: cell 3: ValueError: no; see ")
    for title, why in (("cut", "cut off"), ("copy", "the same as one"), ("not-cached", "offline work is set")):
        assert sum(line.startswith(f"left out: {title}: ") and why in line for line in said.splitlines()) == 2, said
    results = json.loads(Path("runs/pretrainings/results.json").read_text())
    assert [one["name"] for one in results["encoders"]] == ["one"] and "faulty" in results["left out"]
    assert str(tmp_path) not in json.dumps(results)
    # Other weights under the same name, or other parameters, are another run.
    make_bert(one, layers=2, heads=2, hidden=16, seed=9)
    assert call(one)[0] == 0 and call.ran[3:] == ["one"]


def test_wrong_calls_end_before_any_work(call, tmp_path, tiny_bert):
    assert "no encoder is left" in call(tmp_path / "nothing/here")[1]
    assert "--weights-sha256 names a/b, which --models does not" in call(tiny_bert, weights_sha256=f"a/b={'0' * 64}")[1]
    code, said = call(tiny_bert, tasks="mrpc")  # the data's fault, not the encoder's
    assert code == 2 and "MRPC" in said and "left out" not in said and call.ran == []


@pytest.fixture
def results():
    """As of three encoders."""
    verdicts = json.loads((ROOT / "figures" / NAME / "results.json").read_text())["verdicts"]
    names = ("one", "two", "three")
    claims = {}
    for verdict in verdicts:
        numbers = dict.fromkeys(names, number) if (number := collected.number(verdict["ours"])) is not None else {}
        of_all = many.tally(dict.fromkeys(names, verdict["outcome"]), numbers, independent=True)
        claims[verdict["id"]] = of_all | {"unit": collected.unit(verdict["ours"])}
    heads = {way: {"mean": 0.5, "low": 0.4, "high": 0.6, "least": 0.3, "most": 0.7, "pairs": 3} for way in same_heads.WAYS}
    encoders = [{"name": name, "layers": 6, "heads": 12} for name in names]
    shape = {"layers": 6, "heads": 12, "encoders": list(names), "correlations": heads}
    return {"unit": "pre-training", "encoders": encoders, "left out": [], "claims": claims, "heads": [shape]}


def test_the_page_tells_how_to_make_it_and_then_what_came_out(results, tmp_path):
    assert page.over_pretrainings(tmp_path, "there") == f"\nNot run yet: `{page.COMMAND}` makes this table.\n"
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "results.json").write_text(json.dumps(results))
    text = page.over_pretrainings(tmp_path, "there")
    assert (
        "| 4 | Earlier layers attend to [CLS] | 0 | 3 | 0 | 0 | 0 of 3 [0, 71] % | -0.051 [-0.051, -0.051]; n=3 | -0.051 to -0.051 |"
        in text
    )
    assert (
        "| matched by what they do on the other half of the examples | 0.50 [0.40, 0.60]; 3 pairs | 0.30 to 0.70 |" in text
    )
    del results["heads"]
    (tmp_path / "there" / "results.json").write_text(json.dumps(results))
    with pytest.raises(ValueError, match="is of another version"):
        page.over_pretrainings(tmp_path, "there")


def test_the_figure_shows_each_outcome_and_number_in_its_place(results):
    results["claims"]["cls-early"]["outcomes"]["two"] = HOLDS
    left, right = many_drawing.claims(results).axes
    signs = {(int(x), int(y)): text.get_text() for text in left.texts for x, y in [text.get_position()]}
    row = list(results["claims"]).index("cls-early")
    assert [signs[column, row] for column in range(3)] == ["−", "+", "−"] and len(signs) == 3 * len(results["claims"])
    dots = [line for line in right.lines if line.get_marker() == "o" and list(line.get_ydata()) == [row - 0.14] * 3]
    assert [list(line.get_xdata()) for line in dots] == [[-0.051] * 3]


def test_the_embedded_encoder_has_a_place_in_a_list():
    assert parse_model("embedded").location == str(embedded_folder())
    assert lists.titles(["embedded"]) == {"embedded": "embedded"}
