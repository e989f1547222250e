"""The Hub path without the Hub: a local server, the real libraries, our real code."""

import subprocess
import sys
import textwrap

import pytest
from conftest import ROOT, SHARED, needs_shared
from hub_server import LocalHub, glue_repository, hub_environment, tiny_bert_repository

from bertology_utils.common.profiles import BERT_BASE, GLUE, HUB_REVISIONS

ROWS = {
    "train": [
        {"sentence1": f"Sentence {i} .", "sentence2": f"Phrase {i} .", "label": i % 2, "idx": i} for i in range(6)
    ],
    "validation": [{"sentence1": "A lamp .", "sentence2": "A light .", "label": 1, "idx": 6}],
    "test": [{"sentence1": "A .", "sentence2": "B .", "label": 0, "idx": 7}],
}
REPOSITORIES = {
    f"datasets/{GLUE}": (HUB_REVISIONS[GLUE], glue_repository(ROWS)),
    BERT_BASE: (HUB_REVISIONS[BERT_BASE], tiny_bert_repository()),
}

LOAD_ROWS = """
from bertology_utils.glue.loading import features, load_rows
from bertology_utils.glue.sources import parse_data
from bertology_utils.glue.tasks import TASKS
task = TASKS["mrpc"]
for split, count in (("train", 6), ("dev", 1)):
    rows = load_rows(task, split, parse_data("hub"))
    assert len(rows) == count, len(rows)
    assert rows.features == features(task), rows.features
    print(rows.column_names, rows["label"][:], rows["sentence1"][0])
"""
LOAD_MODEL = """
import torch
from bertology_utils.attention import attention_maps, batches
from bertology_utils.encoders import models
from bertology_utils.glue.loading import load_rows
from bertology_utils.glue.sources import parse_data, parse_model
from bertology_utils.glue.tasks import TASKS
task, source = TASKS["mrpc"], parse_model("google-bert/bert-base-uncased")
model, tokenizer = models.load_classifier(source, task), models.load_tokenizer(source)
inputs = batches.tokenize(load_rows(task, "train", parse_data("hub")), task, tokenizer, 32)
maps = attention_maps(model, batches.make_batches(inputs, tokenizer)[0])
print(len(maps), tuple(maps[0].shape[:2]), bool(torch.isfinite(maps[0]).all()))
"""


def run(code, url, home, **changes):
    # The libraries wait 23 s in all before they give up on a dead address.
    code = "import time; time.sleep = lambda seconds: None\n" + textwrap.dedent(code)
    environment = hub_environment(url, str(home)) | {"PYTHONPATH": str(ROOT)} | changes
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)


def test_rows_and_model_come_from_the_pinned_revisions(tmp_path):
    with LocalHub(REPOSITORIES) as hub:
        rows = run(LOAD_ROWS, hub.url, tmp_path)
        assert rows.returncode == 0, rows.stderr
        assert "['sentence1', 'sentence2', 'label', 'idx'] [0, 1, 0, 1, 0, 1] Sentence 0 ." in rows.stdout
        model = run(LOAD_MODEL, hub.url, tmp_path)
        assert model.returncode == 0, model.stderr
        assert model.stdout.splitlines()[-1] == "2 (6, 2) True"
        fetched = [path for method, path in hub.requests if method == "GET" and "/resolve/" in path]
    assert any(f"/datasets/{GLUE}/resolve/{HUB_REVISIONS[GLUE]}/mrpc/" in path for path in fetched)
    assert any(f"/{BERT_BASE}/resolve/{HUB_REVISIONS[BERT_BASE]}/model.safetensors" in path for path in fetched)
    assert all(HUB_REVISIONS[GLUE] in path or HUB_REVISIONS[BERT_BASE] in path for path in fetched)


@needs_shared
@pytest.mark.parametrize("name", ["mrpc", "rte", "sst2", "stsb"])
def test_columns_equal_the_hubs_own(name):
    """The shape that the real data set has on the Hub, as ``datasets`` wrote it down."""
    from datasets import Dataset

    from bertology_utils.glue.loading import features
    from bertology_utils.glue.tasks import TASKS

    theirs = Dataset.from_file(str(SHARED / "hf_arrow" / name / "validation" / "data.arrow")).features
    assert features(TASKS[name]) == theirs
    assert list(features(TASKS[name])) == list(theirs)


@pytest.mark.parametrize(
    ("code", "name", "alternative"),
    [(LOAD_ROWS, GLUE, "data='embedded', or data='folder:PATH'"), (LOAD_MODEL, BERT_BASE, "model='embedded', or model='PATH'")],
)
@pytest.mark.parametrize("trouble", ["unreachable", "offline", "no such revision"])
def test_what_cannot_be_fetched_is_named_with_alternatives(tmp_path, code, name, alternative, trouble):
    with LocalHub({key: ("0" * 40, files) for key, (_, files) in REPOSITORIES.items()}) as hub:
        if trouble == "no such revision":
            result = run(code, hub.url, tmp_path)
    if trouble != "no such revision":  # the server has stopped by now
        result = run(code, hub.url, tmp_path, **({"HF_HUB_OFFLINE": "1"} if trouble == "offline" else {}))
    last = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1
    assert last.startswith("ConnectionError: "), result.stderr
    assert f"'{name}' at revision {HUB_REVISIONS[name]}" in last
    assert alternative in last
