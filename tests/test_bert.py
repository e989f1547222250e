"""``make bert``: a miniature bert-base end to end, from the Hub and from folders; and every bad input before any long work."""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from hub_server import LocalHub, glue_repository_of, hub_environment, only_this_machine, small_bert_base_repository

from bertology_utils.common.profiles import BERT_BASE, GLUE, HUB_REVISIONS
from bertology_utils.corpora import GLUE as EMBEDDED
from bertology_utils.encoders.embedded import embedded_folder
from bertology_utils.glue.tasks import TASKS
from bertology_utils.pretrained import bert_base
from bertology_utils.suite import bert

NAME = "8_bert_base"
HIDDEN = 24


@pytest.fixture(scope="module")
def repository():
    return small_bert_base_repository(embedded_folder(), HIDDEN)


@pytest.fixture(scope="module")
def model(repository, tmp_path_factory):
    """The miniature in a folder."""
    folder = tmp_path_factory.mktemp("bert-base")
    for name, content in repository.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def annotation(tmp_path_factory):
    """The embedded corpora's annotation in one CoNLL-U file."""
    path = tmp_path_factory.mktemp("annotation") / "gold.conllu"
    parts = [gzip.decompress(file.read_bytes()).decode() for file in sorted(EMBEDDED.glob("*/dev*.conllu.gz"))]
    path.write_text("\n\n".join(part.strip() for part in parts) + "\n\n", encoding="utf-8")
    return path


@pytest.fixture
def checkout(tmp_path):
    """A copy of the project's pages, numbers and of the notebook."""
    folder = tmp_path / "checkout"
    found = [ROOT / "pyproject.toml", ROOT / "notebooks" / f"{NAME}.ipynb", *ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    found += [*ROOT.glob("figures/*/results.json"), *ROOT.glob("benchmarks/**/*.json")]
    for path in found:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.rmtree(folder / "benchmarks" / "bert_base", ignore_errors=True)
    return folder


def call(checkout, url, home, *options):
    """``python -m bertology_utils bert`` in the copy."""
    (home / "site").mkdir(parents=True)
    (home / "site" / "sitecustomize.py").write_text(only_this_machine(HIDDEN))
    environment = hub_environment(url, home / "hf") | {
        "PYTHONPATH": os.pathsep.join([str(home / "site"), str(ROOT)]),
        "BERTOLOGY_CACHE": str(home / "cache"),
    }
    command = [sys.executable, "-m", "bertology_utils", "bert", *options]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=900)


def columns(page, beginning):
    row = next(line for line in page.read_text().splitlines() if line.startswith(f"| {beginning} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def check_run(checkout, done):
    """What a whole run leaves: results in their place, and the column bert-base filled in README and RESULTS.md."""
    assert done.returncode == 0, done.stderr[-3000:]
    assert " minutes and " in done.stderr.split("8_bert_base:")[0]  # estimated before it started
    results = json.loads((checkout / "benchmarks" / "bert_base" / NAME / "results.json").read_text())
    assert results["encoder"] == {"bert-base": True, "layers": 12, "heads": 12}
    outcomes = {one["id"]: one["outcome"] for one in results["verdicts"]}
    links = columns(checkout / "README.md", "4.2 | Some head attends along frame-semantic links")
    assert links[3] == f"{outcomes['frame-links']} (pre-trained)"
    first = columns(checkout / "RESULTS.md", "4.4 | Earlier layers attend to [CLS]")
    assert f"**{outcomes['cls-early']}**" in first[3] and "(pre-trained)" in first[3]
    assert columns(checkout / "README.md", "4.3 | The last two layers change most, on all tasks but QQP")[3] == "not yet"
    text = (checkout / "README.md").read_text()
    assert "`make bert` does it" not in text and "No verdict is about bert-base yet" not in text
    return results


def test_from_the_hub_it_fills_the_column_and_asks_for_nothing_else(checkout, tmp_path, repository, annotation):
    from bertology_utils.glue.loading import load_rows
    from bertology_utils.glue.sources import parse_data

    rows = {name: list(load_rows(task, "dev", parse_data("embedded")).select(range(14))) for name, task in TASKS.items()}
    glue = glue_repository_of(
        {name: (task.fields, task.labels, {task.dev_split: rows[name]}) for name, task in TASKS.items()}
    )
    repositories = {f"datasets/{GLUE}": (HUB_REVISIONS[GLUE], glue), BERT_BASE: (HUB_REVISIONS[BERT_BASE], repository)}
    with LocalHub(repositories) as hub:
        done = call(checkout, hub.url, tmp_path, "--annotation", f"conllu:{annotation}", "--framenet", "embedded")
        asked = [path for _, path in hub.requests]
    results = check_run(checkout, done)
    assert results["examples"] == dict.fromkeys(TASKS, 14)
    assert set(results["compared"]) == {"[SEP]", "[CLS]"}  # QQP's rows, and no whole FrameNet
    assert all(f"/{GLUE}" in path or f"/{BERT_BASE}" in path for path in asked)
    fetched = [path for path in asked if "/resolve/" in path]
    assert fetched and all(HUB_REVISIONS[GLUE] in path or HUB_REVISIONS[BERT_BASE] in path for path in fetched)


def test_from_folders_it_asks_nobody(checkout, tmp_path, model, annotation):
    glue = tmp_path / "glue"
    for name in ("MRPC", "SST-2"):
        (glue / name).mkdir(parents=True)
        text = gzip.decompress((EMBEDDED / name / "dev.tsv.gz").read_bytes()).decode()
        (glue / name / "dev.tsv").write_text(text, encoding="utf-8")
    options = ["--model", str(model), "--glue", str(glue), "--tasks", "mrpc,sst2", "--examples", "20"]
    options += ["--annotation", f"conllu:{annotation}", "--framenet", "embedded"]
    with LocalHub({}) as hub:
        done = call(checkout, hub.url, tmp_path, *options)
        asked = hub.requests
    results = check_run(checkout, done)
    assert results["examples"] == {"mrpc": 20, "sst2": 20} and asked == []
    assert results["compared"] == {}


@pytest.fixture
def refusing(monkeypatch, capsys):
    """Call ``bert`` in this process; nothing may start. Returns what a person reads."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("bertology_utils.suite.run.run_notebook", lambda *_, **__: pytest.fail("work began"))

    def told(*options):
        parser = argparse.ArgumentParser()
        bert.add_bert(parser)
        assert bert.run(parser.parse_args(options)) == 2
        return capsys.readouterr().err

    return told


def changed(model, folder, change):
    """A copy of the miniature with a changed configuration."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    return folder


def test_a_folder_that_is_another_model_is_refused_by_shape(refusing, model, tmp_path):
    assert "is not bert-base-uncased: it has 6 layers, not 12" in refusing("--model", str(embedded_folder()), *ELSE)
    told = refusing("--model", str(model), *ELSE)
    assert f"it has {HIDDEN} numbers in a token's vector, not 768" in told and "run --only 8 -p model" in told
    other = changed(model, tmp_path / "roberta", {"model_type": "electra"})
    assert "of the kind electra" in refusing("--model", str(other), *ELSE)


def test_a_folder_with_another_vocabulary_is_refused(refusing, model, tmp_path, monkeypatch):
    monkeypatch.setitem(bert_base.SHAPE, "hidden_size", HIDDEN)
    other = tmp_path / "other"
    shutil.copytree(model, other)
    for name in ("tokenizer.json", "vocab.txt"):
        text = (other / name).read_text(encoding="utf-8")
        (other / name).write_text(text.replace("tokyo", "Tokyo"), encoding="utf-8")
    assert "its vocabulary has other wordpieces" in refusing("--model", str(other), *ELSE)


# All tasks and their annotation from the package: no network for what is not asked about.
ELSE = ("--framenet", "embedded", "--annotation", "conllu:none.conllu", "--tasks", "sst2", "--glue", "glue")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, annotation, monkeypatch):
    """What ``ELSE`` names."""
    glue = tmp_path / "else"
    (glue / "SST-2").mkdir(parents=True)
    text = gzip.decompress((EMBEDDED / "SST-2" / "dev.tsv.gz").read_bytes()).decode()
    (glue / "SST-2" / "dev.tsv").write_text(text, encoding="utf-8")
    places = {"conllu:none.conllu": f"conllu:{annotation}", "glue": str(glue)}
    monkeypatch.setattr(sys.modules[__name__], "ELSE", tuple(places.get(option, option) for option in ELSE))


def without(option, value=None):
    """``ELSE`` without one option, or with another value of it."""
    at = ELSE.index(option)
    return (*ELSE[:at], *((option, value) if value else ()), *ELSE[at + 2 :])


def test_other_bad_inputs_are_said_in_words(refusing, model, tmp_path, monkeypatch):
    monkeypatch.setitem(bert_base.SHAPE, "hidden_size", HIDDEN)
    good = ("--model", str(model))
    assert "nowhere" in refusing("--model", str(tmp_path / "nowhere"), *ELSE)
    assert "it has 6 layers" in refusing("--model", "embedded", *ELSE)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "lacks config.json and model.safetensors" in refusing("--model", str(empty), *ELSE)
    cut = tmp_path / "cut"
    shutil.copytree(model, cut)
    content = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(content[:-100])
    assert "cut off or damaged" in refusing("--model", str(cut), *ELSE)
    assert "no_such_pipeline" in refusing(*good, *without("--annotation", "spacy:no_such_pipeline"))
    assert "no-framenet" in refusing(*good, *without("--framenet", "folder:no-framenet"))
    assert "no-glue" in refusing(*good, *without("--glue", str(tmp_path / "no-glue")))
    assert "MRPC" in refusing(*good, *without("--tasks", "mrpc"))
    assert "max_examples='few' is not of type int" in refusing(*good, *ELSE, "--examples", "few")


def test_without_a_network_it_ends_at_once_in_words(refusing):
    told = refusing(*ELSE)  # the tests' libraries are set to offline work
    assert "could not be loaded from the Hub: offline work is set" in told and "model='PATH' of a folder" in told
