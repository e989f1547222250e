"""The Hub path without the Hub: a local server, the real libraries, our real code."""

import errno
import re

import httpx
import pytest
from hub_server import BERT, REVISION, LocalHub, glue_repository_of, told

from bertology_utils.common import BERT_BASE, HUB_GLUE, HUB_REVISIONS, hub_errors
from bertology_utils.glue import TASKS


def pair(at, label):
    return {"sentence1": f"Sentence {at} .", "sentence2": "Phrase .", "label": label, "idx": at}


ROWS = {"train": [pair(at, at % 2) for at in range(6)]}
ROWS |= {"validation": [pair(6, 1)], "test": [pair(7, 0)]}
MRPC = glue_repository_of(TASKS["mrpc"], ROWS)
REPOSITORIES = {
    f"datasets/{HUB_GLUE}": (HUB_REVISIONS[HUB_GLUE], MRPC),
    BERT_BASE: (HUB_REVISIONS[BERT_BASE], BERT),
}

LOAD = """
import torch
from bertology_utils import batches
from bertology_utils.attention import attention_maps
from bertology_utils.glue import schema
task = TASKS["mrpc"]
for split, count in (("train", 6), ("dev", 1)):
    loaded = load_rows(task, split, parse_data("hub"))
    assert len(loaded) == count and loaded.features == schema(task), loaded
    print("TOLD", split, loaded["label"][:], loaded["sentence1"][0], sep="|")
source = parse_model("google-bert/bert-base-uncased")
model, tokenizer = models.load_classifier(source, task), models.load_tokenizer(source)
inputs = batches.tokenize(load_rows(task, "train", parse_data("hub")), task, tokenizer, 32)
maps = attention_maps(model, batches.make_batches(inputs, tokenizer)[0])
print("TOLD", "model", len(maps), tuple(maps[0].shape[:2]), bool(torch.isfinite(maps[0]).all()), sep="|")
"""


def test_rows_and_model_come_from_the_pinned_revisions(tmp_path):
    with LocalHub(REPOSITORIES) as hub:
        (train, _, model), _ = told(LOAD, hub.url, tmp_path)
        fetched = [path for method, path in hub.requests if method == "GET" and "/resolve/" in path]
    assert train == ["train", "[0, 1, 0, 1, 0, 1]|Sentence 0 ."]
    assert model == ["model", "2|(6, 2)|True"]
    places = [f"/datasets/{HUB_GLUE}/resolve/{HUB_REVISIONS[HUB_GLUE]}/"]
    places += [f"/{BERT_BASE}/resolve/{HUB_REVISIONS[BERT_BASE]}/"]
    assert all(any(path.startswith(place) for place in places) for path in fetched)
    for place, name in zip(places, ("mrpc/", "model.safetensors"), strict=True):
        assert any(path.startswith(place + name) for path in fetched)


WITHOUT_WEIGHTS = {name: content for name, content in BERT.items() if "safetensors" not in name}
NO_JSON = {"config.json": b"{"}
CUT_OFF = {"model.safetensors": BERT["model.safetensors"][:-100]}
DAMAGED = "A file is damaged: delete its folder in "
# model → how the Hub has it, what is said of it, and what to do
TROUBLES = {
    BERT_BASE: ((REVISION, BERT), "is not a valid git identifier", "Check its name, its revision"),
    "a/unknown": (None, "is not a valid model identifier .*404", "Check its name"),
    "a/gated": (403, "gated repo: .*403", "your access (hf auth login)"),
    "a/busy": (429, "429 Too Many Requests", "try again later"),
    f"a/no-weights@{REVISION}": (
        (REVISION, WITHOUT_WEIGHTS),
        "does not appear to have a file named model.safetensors",
        "pickled weights are not loaded",
    ),
    f"a/cut-off@{REVISION}": ((REVISION, BERT | CUT_OFF), "file not fully covered", DAMAGED),
    f"a/no-json@{REVISION}": ((REVISION, BERT | NO_JSON), "not a valid JSON file", DAMAGED),
}


def refusals(url, home, names, **changes):
    """What is said of GLUE's rows and of each model, by name."""
    code = f"tell({HUB_GLUE!r}, rows)\nfor name in {names!r}: tell(name, model(name))"
    return dict(told(code, url, home, **changes)[0])


def test_every_refusal_of_the_hub_is_said_in_words(tmp_path):
    repositories = {name.split("@")[0]: found for name, (found, *_) in TROUBLES.items() if found}
    with LocalHub(repositories | {f"datasets/{HUB_GLUE}": (REVISION, MRPC)}) as hub:
        found = refusals(hub.url, tmp_path, list(TROUBLES))
    for name, (_, why, what_to_do) in TROUBLES.items():
        assert found[name].startswith(f"ConnectionError|the model {name.split('@')[0]!r} at revis")
        assert re.search(why, found[name]), (name, found[name])
        assert what_to_do in found[name], (name, found[name])
        assert "work offline: model='embedded', or model='PATH' of a folder" in found[name]
    assert (
        HUB_REVISIONS[HUB_GLUE] in found[HUB_GLUE] and HUB_REVISIONS[BERT_BASE] in found[BERT_BASE]
    )
    assert "Revision " in found[HUB_GLUE] and "doesn't exist" in found[HUB_GLUE]


@pytest.mark.parametrize(
    ("offline", "words"), [("0", "Connection refused"), ("1", "outgoing traffic has been disabled")]
)
def test_a_hub_that_cannot_be_reached_is_said_in_words(tmp_path, offline, words):
    with LocalHub({}) as hub:
        pass  # the server has stopped by now
    found = refusals(hub.url, tmp_path, [BERT_BASE], HF_HUB_OFFLINE=offline)
    assert words in found[BERT_BASE]
    assert "Couldn't reach 'nyu-mll/glue' on the Hub" in found[HUB_GLUE]
    for line in found.values():
        assert line.startswith("ConnectionError|") and "work offline: " in line, line
    assert "data='folder:PATH'" in found[HUB_GLUE] and "model='PATH'" in found[BERT_BASE]


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), OSError, "the disk is full"),
        (httpx.ReadTimeout("slow"), ConnectionError, "wrapped by a library: slow.* try again"),
        (TypeError("ours"), ConnectionError, "wrapped by a library"),
    ],
)
def test_what_libraries_wrap_is_said_and_a_fault_of_the_code_is_not_blamed_on_the_hub(
    error, kind, words
):
    wrapped = OSError("wrapped by a library\nHelp: none.")
    wrapped.__cause__ = error
    with pytest.raises(kind, match=words) as caught, hub_errors("the model a/b", "a folder"):
        raise wrapped
    assert type(caught.value) is kind
    with pytest.raises(TypeError, match="ours"), hub_errors("the model a/b", "a folder"):
        raise TypeError("ours")
