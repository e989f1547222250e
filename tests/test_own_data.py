"""What docs/own_data.md shows works as it stands there."""

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT, make_bert

from bertology_utils import attention_maps, batches_of, load_encoder, load_tokenizer
from bertology_utils.glue import TASKS
from bertology_utils.results import entries_of

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
