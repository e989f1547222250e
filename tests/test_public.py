"""What ``import bertology_utils`` offers: lazily, and enough for a model of one's own."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT, make_bert

import bertology_utils
from bertology_utils import __main__ as cli
from bertology_utils import attention_maps, batches_of, load_classifier, load_encoder, load_tokenizer
from bertology_utils.glue import TASKS
from bertology_utils.results import entries_of


def in_a_new_process(code):
    """Standard output of an interpreter that has imported nothing yet."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr[-1000:]
    return result.stdout


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, time; before = set(sys.modules); start = time.process_time(); import bertology_utils;"
        "print(time.process_time() - start, *(name.split('.')[0] for name in set(sys.modules) - before))"
    )
    seconds, *modules = in_a_new_process(code).split()
    assert not {"torch", "transformers", "datasets", "numpy", "pandas", "scipy"} & set(modules)
    assert float(seconds) < 0.1


@pytest.mark.parametrize(
    "module", ["lab", "framenet.measure", "framenet.comparisons", "disabling.sweep", "drift.measure", "finetune"]
)
def test_measuring_does_not_wait_for_the_trainer(module):
    """torch is most of what is left; the rest comes when a model or a data set is loaded."""
    heavy = ("transformers", "datasets", "pandas", "accelerate", "sklearn", "spacy", "torch._dynamo")
    code = f"import bertology_utils.{module}, sys; print([name for name in {heavy} if name in sys.modules])"
    assert in_a_new_process(code).strip() == "[]"


def test_every_public_name_is_there_and_no_other():
    assert 10 <= len(bertology_utils.__all__) <= 15
    for name in bertology_utils.__all__:
        assert callable(getattr(bertology_utils, name)), name
    assert set(bertology_utils.__all__) <= set(dir(bertology_utils))
    names: dict = {}
    exec("from bertology_utils import *", names)
    assert set(bertology_utils.__all__) <= set(names)
    with pytest.raises(AttributeError, match="no attribute 'measure'; it offers: load_encoder, "):
        _ = bertology_utils.measure
    with pytest.raises(ImportError):
        exec("from bertology_utils import measure")


def test_the_ten_lines_of_the_readme_run_on_a_model_of_ones_own(tmp_path, capsys):
    base, mine = make_bert(tmp_path / "base", 3, 4, 32), tmp_path / "mine"
    model = load_classifier(str(base), "rte")
    for parameter in model.parameters():
        parameter.data += 0.05
    model.save_pretrained(mine)
    bertology_utils.load_tokenizer(str(base)).save_pretrained(mine)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"<!-- ten lines -->\n```python\n(.*?)```\n<!-- end -->", readme, re.DOTALL)
    assert sum(bool(line) for line in code.splitlines()) == 10
    names = {"MINE": str(mine), "BASE": str(base)}
    exec(code, names)
    printed = capsys.readouterr().out
    assert "(3, 4, 5)" in printed and "(3, 4, 2, 2)" in printed
    assert names["found"]["drift"].shape == (2, 3, 4) and (names["found"]["drift"] < 1 - 1e-6).any()
    effects, logits = (names[way](names["tuned"], names["batches"]) for way in ("sweep", "predict_logits"))
    np.testing.assert_allclose(effects.baseline, logits, atol=1e-5)


# What docs/own_data.md shows works as it stands there.


TEXT = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")


def shown(name, lines):
    (code,) = re.findall(rf"<!-- {name} -->\n```python\n(.*?)```\n<!-- end -->", TEXT, re.DOTALL)
    assert len(code.splitlines()) == lines
    return code


@pytest.mark.parametrize("parts", [1, 3])
def test_an_atlas_of_ones_own_in_five_lines(tmp_path, monkeypatch, parts):
    pytest.importorskip("bokeh", reason="the atlas is drawn by Bokeh, which `make site` installs")
    mine, results = make_bert(tmp_path / "mine", 3, 4, 32), tmp_path / "3_finetuning_drift" / "results.json"
    results.parent.mkdir()
    rows = entries_of("similarity of maps", {TASKS["rte"]: np.full((3, 4), 0.875)}, ["task"], kind="fine-tuning")
    content = {"notebook": results.parent.name, "settings": {}, "versions": {}, "verdicts": [], "rows": rows}
    results.write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    values = np.arange(12).reshape(3, 4) / 16
    given = values if parts == 1 else (values, values - 1, values + 1)
    names = {"MINE": str(mine), "VALUES": given, "RESULTS": tmp_path}
    exec(shown("atlas", 5), names)
    assert names["maps"].weights.shape == (3, 4, 8, 8)
    heads, run = ((tmp_path / name).read_text(encoding="utf-8") for name in ("my_heads.html", "my_run.html"))
    assert "my measure" in heads and "She gave him the book." in heads and "0.6875" in heads
    assert ("[-0.3, 1.7]" in heads) == (parts == 3)  # the ends of the last
    assert "similarity of maps, RTE, fine-tuning" in run and "0.875" in run


def test_maps_go_into_bertviz_as_they_are(monkeypatch):
    bertviz = pytest.importorskip("bertviz", reason="bertviz is not installed; pip install bertviz")
    handed = []  # what bertviz gives its script
    for name in ("head_view", "model_view"):
        module = sys.modules[f"bertviz.{name}"]
        monkeypatch.setattr(module, "display", lambda _: None)
        monkeypatch.setattr(module, "json", SimpleNamespace(dumps=lambda value: handed.append(value) or json.dumps(value)))
    names = {"model": load_encoder("embedded"), "tokenizer": load_tokenizer("embedded")}
    names |= {"batches_of": batches_of, "attention_maps": attention_maps}
    exec(shown("bertviz", 3), names)
    maps = attention_maps(names["model"], names["batch"])
    bertviz.model_view(maps, "[CLS] she gave him the book . [SEP]".split())
    for shown_there in handed:
        found = shown_there["attention"][0]
        assert found["left_text"] == found["right_text"] == "[CLS] she gave him the book . [SEP]".split()
        np.testing.assert_allclose(np.array(found["attn"]), np.stack([layer[0].numpy() for layer in maps]), atol=1e-6)
    assert len(handed) == 2


def test_a_treebank_of_ones_own_in_five_lines(tmp_path, monkeypatch):
    from test_dependencies import treebank

    treebank(tmp_path, 80)
    monkeypatch.chdir(tmp_path)
    names = {"MINE": str(make_bert(tmp_path / "mine", 3, 4, 32))}
    exec(shown("treebank", 3), names)
    assert set(names["table"]["relation"]) == {"det", "nsubj", "obj"}
    monkeypatch.chdir(ROOT)
    lines = re.search(r"<!-- treebank-run -->\n```\n(.*?)```\n<!-- end -->", TEXT, re.DOTALL)[1].splitlines()
    calls = [line.replace("my.conllu", str(tmp_path / "my.conllu")).split()[3:] for line in lines]
    assert [call[0] for call in calls] == ["check", "run"]
    for _, *options in calls:  # test_pretrained.py runs notebook 8 so
        assert cli.main(["check", *options]) == 0
