"""The profile `paper` in miniature: all notebooks end to end, from the loopback Hub and from folders, and nobody else asked.

It takes long (38 minutes on two busy cores) and is run on request:

    BERTOLOGY_PAPER_TEST=1 python -m pytest tests/test_paper_profile.py
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT, copy_of, gold_annotation
from hub_server import (
    LocalHub,
    glue_repository_of,
    hub_environment,
    only_this_machine,
    tiny_bert_repository,
)

from bertology_utils.corpora import FRAMENET
from bertology_utils.glue import TASKS
from bertology_utils.hub import BERT_BASE, GLUE, HUB_REVISIONS

ON_REQUEST = "BERTOLOGY_PAPER_TEST"
pytestmark = pytest.mark.skipif(
    not os.environ.get(ON_REQUEST), reason=f"takes long; {ON_REQUEST}=1 runs it"
)
HIDDEN, TRAIN, DEV = 24, 60, 40


def glue():
    """Seven tasks in Parquet: rows of the embedded corpora."""
    from bertology_utils.glue import load_rows
    from bertology_utils.settings import parse_data

    def rows(task, split, count):
        return list(load_rows(task, split, parse_data("embedded")).select(range(count)))

    return glue_repository_of(
        {
            name: (
                task.fields,
                task.labels,
                {"train": rows(task, "train", TRAIN), task.dev_split: rows(task, "dev", DEV)},
            )
            for name, task in TASKS.items()
        }
    )


@pytest.fixture
def place(tmp_path):
    """A checkout, annotation of all dev rows, and a FrameNet folder."""
    for name in ("notebooks", "figures", "benchmarks"):
        shutil.copytree(
            ROOT / name, tmp_path / "checkout" / name, ignore=shutil.ignore_patterns("*.pdf")
        )
    copy_of([ROOT / "pyproject.toml", *ROOT.glob("*.md")], tmp_path / "checkout")
    gold_annotation(tmp_path)
    with zipfile.ZipFile(FRAMENET) as archive:
        archive.extractall(tmp_path / "framenet")
    return tmp_path


def test_all_notebooks_run_and_ask_the_hub_for_pinned_files_only(place):
    shrunk = {
        "max_examples": 12,
        "sweep_examples": 30,
        "trainings": 3,
        "annotation": f"conllu:{place / 'gold.conllu'}",
    }
    shrunk |= {"framenet": f"folder:{place / 'framenet' / 'mini'}", "tasks": "all"}
    command = [sys.executable, "-m", "bertology_utils", "run", "--profile", "paper"]
    command += [part for name, value in shrunk.items() for part in ("-p", name, str(value))]
    model = tiny_bert_repository(12, 12, HIDDEN)
    repositories = {
        f"datasets/{GLUE}": (HUB_REVISIONS[GLUE], glue()),
        BERT_BASE: (HUB_REVISIONS[BERT_BASE], model),
    }
    with LocalHub(repositories) as hub:
        environment = hub_environment(hub.url, place / "hf") | {
            "BERTOLOGY_CACHE": str(place / "cache")
        }
        environment |= only_this_machine(place / "site", HIDDEN)
        done = subprocess.run(
            command,
            cwd=place / "checkout",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        asked = [path for _, path in hub.requests]
    assert done.returncode == 0, done.stderr[-6000:]
    written = sorted((place / "checkout" / "runs").glob("**/results.json"))
    results = {path.parent.name: json.loads(path.read_text()) for path in written}
    assert set(results) == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    for name, found in results.items():
        assert found["settings"]["profile"] == "paper", name
        assert found["settings"]["model"] == BERT_BASE, name
    assert set(results["3_finetuning_drift"]["learned"]) == set(TASKS)
    assert all(f"/{GLUE}" in path or f"/{BERT_BASE}" in path for path in asked)
    fetched = [path for path in asked if "/resolve/" in path]
    assert fetched and all(
        HUB_REVISIONS[GLUE] in path or HUB_REVISIONS[BERT_BASE] in path for path in fetched
    )
