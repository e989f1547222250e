"""The Hub path without the Hub: a local server, the real libraries, our real code."""

import errno
import subprocess
import sys
import textwrap

import httpx
import pytest
from conftest import ROOT, SHARED, needs_shared
from hub_server import LocalHub, glue_repository, hub_environment, tiny_bert_repository

from bertology_utils.common.hub import hub_errors
from bertology_utils.common.profiles import BERT_BASE, GLUE, HUB_REVISIONS

ROWS = {
    "train": [{"sentence1": f"Sentence {i} .", "sentence2": f"Phrase {i} .", "label": i % 2, "idx": i} for i in range(6)],
    "validation": [{"sentence1": "A lamp .", "sentence2": "A light .", "label": 1, "idx": 6}],
    "test": [{"sentence1": "A .", "sentence2": "B .", "label": 0, "idx": 7}],
}
REPOSITORIES = {
    f"datasets/{GLUE}": (HUB_REVISIONS[GLUE], glue_repository(ROWS)),
    BERT_BASE: (HUB_REVISIONS[BERT_BASE], tiny_bert_repository()),
}

LOAD_ROWS = """
from bertology_utils.glue.loading import load_rows, schema
from bertology_utils.glue.sources import parse_data
from bertology_utils.glue.tasks import TASKS
task = TASKS["mrpc"]
for split, count in (("train", 6), ("dev", 1)):
    rows = load_rows(task, split, parse_data("hub"))
    assert len(rows) == count, len(rows)
    assert rows.features == schema(task), rows.features
    print(rows.column_names, rows["label"][:], rows["sentence1"][0])
"""
LOAD_MODEL = """
import torch
from bertology_utils.attention import attention_maps, batches
from bertology_utils.encoders import models
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.loading import load_rows
from bertology_utils.glue.sources import parse_data
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

    from bertology_utils.glue.loading import schema
    from bertology_utils.glue.tasks import TASKS

    theirs = Dataset.from_file(str(SHARED / "hf_arrow" / name / "validation" / "data.arrow")).features
    assert schema(TASKS[name]) == theirs
    assert list(schema(TASKS[name])) == list(theirs)


TELL = """
import sys
from bertology_utils.encoders import models
from bertology_utils.encoders.sources import parse_model
from bertology_utils.glue.loading import load_rows
from bertology_utils.glue.sources import parse_data
from bertology_utils.glue.tasks import TASKS
def tell(load):
    try:
        load()
    except Exception as error:
        print(type(error).__name__, error, sep=": ")
    else:
        print("loaded")
tell(lambda: load_rows(TASKS["mrpc"], "train", parse_data("hub")))
for name in NAMES:
    tell(lambda: models.load_encoder(parse_model(name)))
"""
OTHER = "0" * 40
BERT = tiny_bert_repository()
TROUBLES = {  # model → how the Hub has it, the error that a person sees, its words
    BERT_BASE: ((OTHER, BERT), "FileNotFoundError", "the repository has no such revision"),
    "a/unknown": (None, "FileNotFoundError", "there is nothing of this name (404)"),
    "a/secret": (401, "PermissionError", "it does not exist, or is private (401)"),
    "a/gated": (403, "PermissionError", "access to it must be asked for"),
    "a/busy": (429, "ConnectionError", "limits how often one may ask (429)"),
    "a/broken": (503, "ConnectionError", "has a fault of its own (503)"),
    f"a/no-weights@{OTHER}": (
        (OTHER, {name: content for name, content in BERT.items() if "safetensors" not in name}),
        "FileNotFoundError",
        "lacks a file that is needed",
    ),
    f"a/cut-off@{OTHER}": (
        (OTHER, BERT | {"model.safetensors": BERT["model.safetensors"][:-100]}),
        "ValueError",
        "its weights are damaged",
    ),
    f"a/no-json@{OTHER}": ((OTHER, BERT | {"config.json": b"{"}), "ValueError", "a file is damaged"),
}
ALTERNATIVES = {GLUE: "data='embedded', or data='folder:PATH'"}


def told(url, home, names, **changes):
    result = run(f"NAMES = {names!r}\n{TELL}", url, home, **changes)
    assert result.returncode == 0, result.stderr
    lines = (line for line in result.stdout.splitlines() if ": " in line or line == "loaded")
    return dict(zip([GLUE, *names], lines, strict=True))


def test_every_refusal_of_the_hub_is_said_in_words(tmp_path):
    repositories = {name.split("@")[0]: found for name, (found, *_) in TROUBLES.items() if found}
    with LocalHub(repositories | {f"datasets/{GLUE}": (OTHER, glue_repository(ROWS))}) as hub:
        found = told(hub.url, tmp_path, list(TROUBLES))
    expected = {name: words for name, (_, *words) in TROUBLES.items()}
    expected[GLUE] = ["FileNotFoundError", "the repository has no such revision"]
    for name, (kind, words) in expected.items():
        assert found[name].startswith(f"{kind}: "), (name, found[name])
        assert words in found[name], (name, found[name])
        assert f"{name.split('@')[0]!r} at revision " in found[name]
        assert ALTERNATIVES.get(name, "model='embedded', or model='PATH'") in found[name]
    assert HUB_REVISIONS[GLUE] in found[GLUE] and HUB_REVISIONS[BERT_BASE] in found[BERT_BASE]


@pytest.mark.parametrize(
    ("trouble", "words"), [("unreachable", "the Hub cannot be reached"), ("offline", "offline work is set")]
)
def test_a_hub_that_cannot_be_reached_is_said_in_words(tmp_path, trouble, words):
    with LocalHub({}) as hub:
        pass  # the server has stopped by now
    found = told(hub.url, tmp_path, [BERT_BASE], **({"HF_HUB_OFFLINE": "1"} if trouble == "offline" else {}))
    for line in found.values():
        assert line.startswith("ConnectionError: ") and words in line and "'embedded'" in line, line


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), OSError, "the disk is full"),
        (httpx.ReadTimeout("slow"), TimeoutError, "did not answer in time"),
        (httpx.ConnectError("refused"), ConnectionError, "cannot be reached"),
    ],
)
def test_local_troubles_while_fetching(error, kind, words, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with pytest.raises(kind, match=words) as caught, hub_errors("model", "a/b", None):
        try:
            raise error
        except Exception as inner:
            raise OSError("wrapped by a library") from inner
    assert type(caught.value) is kind


def test_a_fault_of_the_code_is_not_blamed_on_the_hub():
    with pytest.raises(TypeError, match="ours"), hub_errors("model", "a/b", None):
        raise TypeError("ours")
