"""``pretrainings``: three miniature MultiBERTs end to end, from a local Hub; one of them cannot be had."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys

import pytest
import safetensors.numpy
import torch
from conftest import ROOT
from hub_server import LocalHub, hub_environment, only_this_machine, small_bert_base_repository

from bertology_utils.corpora import GLUE as EMBEDDED
from bertology_utils.encoders.embedded import embedded_folder
from bertology_utils.pretrained import many

NAME = "8_bert_base"
SEED = "google/multiberts-seed_"
COMMITS = {name: letter * 40 for name, letter in (("main 0", "a"), ("pr 0", "b"), ("main 1", "c"))}


def as_pickled(files):
    """A repository as the MultiBERTs' main branch: no SafeTensors."""
    buffer = io.BytesIO()
    tensors = safetensors.numpy.load(files["model.safetensors"])
    torch.save({name: torch.from_numpy(array.copy()) for name, array in tensors.items()}, buffer)
    return {n: c for n, c in files.items() if n != "model.safetensors"} | {"pytorch_model.bin": buffer.getvalue()}


@pytest.fixture(scope="module")
def repositories():
    """Seed 0 with SafeTensors in its pull request alone, seed 1 without any; seed 2 is not there."""
    files = [small_bert_base_repository(embedded_folder(), seed=seed) for seed in (0, 1)]
    del files[0]["tokenizer.json"]  # the MultiBERTs have a vocabulary alone
    return {
        f"{SEED}0": {"main": (COMMITS["main 0"], as_pickled(files[0])), "refs/pr/1": (COMMITS["pr 0"], files[0])},
        f"{SEED}1": {"main": (COMMITS["main 1"], as_pickled(files[1]))},
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A copy of the project's pages, numbers and of the notebook; data, and a home for libraries beside it."""
    folder = tmp_path_factory.mktemp("pretrainings")
    found = [ROOT / "pyproject.toml", ROOT / "notebooks" / f"{NAME}.ipynb", *ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    found += [*ROOT.glob("figures/*/results.json"), *ROOT.glob("benchmarks/**/*.json")]
    for path in found:
        target = folder / "checkout" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    shutil.rmtree(folder / "checkout" / "benchmarks" / "pretrainings", ignore_errors=True)
    (folder / "glue" / "SST-2").mkdir(parents=True)
    text = gzip.decompress((EMBEDDED / "SST-2" / "dev.tsv.gz").read_bytes()).decode()
    (folder / "glue" / "SST-2" / "dev.tsv").write_text(text, encoding="utf-8")
    parts = [gzip.decompress(file.read_bytes()).decode() for file in sorted((EMBEDDED / "SST-2").glob("dev*.conllu.gz"))]
    (folder / "gold.conllu").write_text("\n\n".join(part.strip() for part in parts) + "\n\n", encoding="utf-8")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(only_this_machine())
    return folder


def call(place, url, models, *options):
    """``python -m bertology_utils pretrainings`` in the copy."""
    environment = hub_environment(url, place / "hf") | {
        "PYTHONPATH": os.pathsep.join([str(place / "site"), str(ROOT)]),
        "BERTOLOGY_CACHE": str(place / "cache"),
    }
    data = ["--glue", str(place / "glue"), "--annotation", f"conllu:{place / 'gold.conllu'}", "--framenet", "embedded"]
    command = [sys.executable, "-m", "bertology_utils", "pretrainings", "--models", models, *data]
    command += ["--tasks", "sst2", "--examples", "24", *options]
    return subprocess.run(command, cwd=place / "checkout", env=environment, capture_output=True, text=True, timeout=900)


def test_three_multiberts_end_to_end(place, repositories):
    whole = hashlib.sha256(repositories[f"{SEED}1"]["main"][1]["pytorch_model.bin"]).hexdigest()
    with LocalHub(repositories) as hub:
        first = call(place, hub.url, "multiberts:0-2")
        asked = [path for _, path in hub.requests]
        wrong = call(place, hub.url, "multiberts:1", "--weights-sha256", f"{SEED}1={'0' * 64}")
        before = len(hub.requests)
        second = call(place, hub.url, "multiberts:0-2", "--weights-sha256", f"{SEED}1={whole}", "--keep")
        fetched = [path for method, path in hub.requests[before:] if method == "GET" and "/resolve/" in path]
    # By default SafeTensors alone: of seed 0 from the pull request; the others are left out, and it is said twice.
    assert first.returncode == 0, first.stderr[-3000:]
    for seed, why in ((1, "the repository has no such revision"), (2, "there is nothing of this name (404)")):
        told = [line for line in first.stderr.splitlines() if line.startswith(f"left out: multiberts-seed_{seed}: ")]
        assert len(told) == 2 and all(why in line for line in told), first.stderr
    assert all("/google/multiberts-seed_" in path for path in asked)
    assert not any("pytorch_model.bin" in path for path in asked)
    assert any(f"/resolve/{COMMITS['pr 0']}/model.safetensors" in path for path in asked)
    folder = place / "checkout" / "runs" / "pretrainings"
    assert "1 pre-training: multiberts-seed_0 (12 × 12). Left out: multiberts-seed_1, multiberts-seed_2." in first.stdout
    # Pickled weights with another hash are not opened.
    assert wrong.returncode == 2 and "they are not read" in wrong.stderr and "no encoder is left" in wrong.stderr
    # With their own hash they are read; what was finished is not run again; the pages are renewed.
    assert second.returncode == 0, second.stderr[-3000:]
    assert "1 of them finished before" in second.stderr and "multiberts-seed_0: finished before" in second.stderr
    assert not any("seed_0" in path for path in fetched)
    results = json.loads((place / "checkout" / "benchmarks" / "pretrainings" / "results.json").read_text())
    assert [one["name"] for one in results["encoders"]] == ["multiberts-seed_0", "multiberts-seed_1"]
    assert results["left out"] == ["multiberts-seed_2"] and results["unit"] == "pre-training"
    assert not set(many.BY_NUMBER) & set(results["claims"])
    for one in results["claims"].values():
        assert sum(one["counts"].values()) == 2
    (shape,) = results["heads"]
    assert shape["layers"] == shape["heads"] == 12 and shape["correlations"]["matched"]["pairs"] == 1
    text = (place / "checkout" / "RESULTS.md").read_text()
    assert "2 pre-trainings: multiberts-seed_0, multiberts-seed_1 (12 × 12). Left out: multiberts-seed_2." in text
    assert (place / "checkout" / "benchmarks" / "pretrainings" / "claims.png").stat().st_size > 10_000
    assert len(list(folder.glob("multiberts-seed_*/heads.json"))) == 2
