"""Notebook 8: is it bert-base, heads beside published panels, heads that point, a run from the Hub."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT, copy_of, gold_annotation
from hub_server import (
    LocalHub,
    glue_repository_of,
    hub_environment,
    only_this_machine,
    tiny_bert_repository,
)
from made_up import SURE, resampled
from test_dependencies import treebank
from transformers import AutoTokenizer, BertConfig

from bertology_utils.glue import TASKS, load_rows
from bertology_utils.hub import BERT_BASE, GLUE, HUB_REVISIONS
from bertology_utils.links.dependencies import CLARK, RELATIONS, RelationTest
from bertology_utils.pretrained import figures, measure
from bertology_utils.published import published_panel
from bertology_utils.results import read_results
from bertology_utils.settings import embedded_folder, parse_data
from bertology_utils.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTABLE, judge


def compared(panel):
    """What is recorded of a panel of [SEP] beside the published one."""
    recorded, facts = {}, {}
    lab = SimpleNamespace(
        tasks=(),
        settings=SimpleNamespace(seed=1, framenet="embedded"),
        record=lambda what, values, **_: recorded.update({what: values}),
        fact=facts.update,
        judge=lambda *_, **__: None,
    )
    measure.record_comparison(lab, {"[SEP]": panel}, "")
    rank, difference, common = (values["[SEP]"] for values in recorded.values())
    return rank.value, difference, common, facts["most_different"]["[SEP]"]


def test_a_panel_is_compared_head_by_head_with_the_published_one():
    published = published_panel("[SEP]")
    rank, difference, common, _ = compared(published)
    assert (rank, difference, common) == (pytest.approx(1), 0, measure.TOP)
    moved = published.copy()
    moved[3, 4] += 0.9
    _, difference, common, head = compared(moved)
    assert difference == pytest.approx(0.9) and head == "(4, 5)"
    low = published[3, 4] < np.sort(published.ravel())[-measure.TOP]
    assert common == measure.TOP - low
    rank, _, common, _ = compared(-published)
    assert rank == pytest.approx(-1) and common == 0


def test_what_is_bert_base_and_what_is_not():
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())  # of the same vocabulary
    assert measure.not_bert_base(BertConfig(), tokenizer) == ""
    few = measure.not_bert_base(BertConfig(num_hidden_layers=6), tokenizer)
    assert few.startswith("bert-base-uncased, ") and few.endswith("it has 6 layers, not 12")
    assert "384 numbers" in measure.not_bert_base(BertConfig(hidden_size=384), tokenizer)
    tokenizer.add_tokens(["bertology"])
    assert "other wordpieces" in measure.not_bert_base(BertConfig(), tokenizer)


def relation(z, beats, arcs=50):
    """A test whose best head is so many standard errors above 2 points ahead."""
    ahead = resampled(z, 0.02)
    against_distance = "", 1, ahead, (0, 0), ahead, ahead, beats, beats, 1.0
    return RelationTest(arcs, *against_distance, "", ahead, ahead, 1.0)


def outcomes(tests):
    """Of the claims about any head, and about Clark et al.'s."""
    judged = judge("relations-ahead", measure.ahead_of_distance(tests))
    return judged.outcome, judge("clark-heads", {"": measure.heads_of_clark(tests)}).outcome


def test_heads_that_point():
    theirs = {name: (CLARK[name].at,) for name in RELATIONS}
    all_ahead = {name: relation(SURE, theirs[name]) for name in RELATIONS}
    assert outcomes(all_ahead) == (HOLDS, HOLDS)
    assert outcomes(all_ahead | {"amod": relation(-SURE, ())}) == (FAILS, UNDECIDED)
    assert outcomes(all_ahead | {"amod": relation(0, ())}) == (UNDECIDED, UNDECIDED)
    others = {name: relation(SURE, ((0, 0),)) for name in RELATIONS}
    assert outcomes(others) == (HOLDS, FAILS)
    assert "amod (4, 10) does not" in measure.heads_of_clark(others).number
    assert set(figures.MEANINGS) >= set(RELATIONS)


@pytest.mark.parametrize(("theirs", "outcome"), [(True, HOLDS), (False, FAILS)])
def test_clark_et_als_heads_are_judged_from_dependents_to_heads(theirs, outcome):
    """Where the other direction is the better one, ``beats`` has heads of that direction."""
    tests = {
        name: replace(
            relation(SURE, () if theirs else (CLARK[name].at,)),
            way="head → dependent",
            towards_heads=(CLARK[name].at,) if theirs else (),
        )
        for name in RELATIONS
    }
    assert outcomes(tests)[1] == outcome


def test_a_relation_that_a_fixed_distance_already_finds_is_left_out():
    behind = replace(relation(-SURE, ()), baseline=resampled(0, 0.97))
    tests = {"det": relation(SURE, ((0, 0),)), "amod": behind}
    assert set(measure.ahead_of_distance(tests)) == {"det"}


NAME, HIDDEN = "8_pretrained_encoder", 24


def rows_of(task):
    """Some dev rows as :func:`glue_repository_of` takes them; those of QQP are MRPC's."""
    rows = load_rows(TASKS["mrpc"], "dev", parse_data("embedded")).select(range(14))
    renamed = dict(zip(TASKS["mrpc"].fields, task.fields, strict=True))
    rows = [{renamed.get(name, name): value for name, value in row.items()} for row in rows]
    return task.fields, task.labels, {task.dev_split: rows}


def test_a_miniature_of_bert_base_is_measured_from_the_hub_and_nothing_else_is_asked_for(tmp_path):
    repositories = {
        f"datasets/{GLUE}": (
            HUB_REVISIONS[GLUE],
            glue_repository_of({name: rows_of(TASKS[name]) for name in ("mrpc", "qqp")}),
        ),
        BERT_BASE: (HUB_REVISIONS[BERT_BASE], tiny_bert_repository(12, 12, HIDDEN)),
    }
    files = [ROOT / "pyproject.toml", ROOT / "notebooks" / f"{NAME}.ipynb"]
    files.append(ROOT / "results" / "ud" / "dependencies.json")
    checkout = copy_of(files, tmp_path / "checkout")
    given = {
        "tasks": "mrpc,qqp",
        "annotation": f"conllu:{gold_annotation(tmp_path)}",
        "framenet": "embedded",
        "treebank": str(treebank(tmp_path, 80)),
    }
    command = [sys.executable, "-m", "bertology_utils", "run", "--only", "8"]
    command += ["--profile", "bert-forward", "--results", str(tmp_path / "results")]
    command += [part for pair in given.items() for part in ("-p", *pair)]
    with LocalHub(repositories) as hub:
        environment = hub_environment(hub.url, tmp_path / "hf")
        environment |= {"BERTOLOGY_CACHE": str(tmp_path / "cache")}
        environment |= only_this_machine(tmp_path / "site", HIDDEN)
        done = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=900
        )
        requested = [path for _, path in hub.requests]
    assert done.returncode == 0, done.stderr[-3000:]
    results = read_results(tmp_path / "results" / f"{NAME}.json")
    facts = results.content["facts"]
    assert facts["encoder"] == {"bert-base": True, "layers": 12, "heads": 12}
    assert facts["treebank"] == {"sentences": 80, "left out": 0}
    arcs = {name: row["value"] for name, row in results.by("kind", "arcs").items()}
    assert arcs == dict.fromkeys(("nsubj", "obj", "det"), 40), "one half is measured"
    outcome = results.verdicts["relations-ahead", "pre-trained"]["outcome"]
    assert outcome == UNTESTABLE, "a distance is always right"
    # QQP's rows, and no whole FrameNet.
    ranks = results.by("kind", "rank correlation with the published panel")
    assert set(ranks) == {"[SEP]", "[CLS]"}
    assert results.verdicts["panels-rank", "pre-trained"]["outcome"] != UNTESTABLE
    fetched = [path for path in requested if "/resolve/" in path]
    assert fetched and all(f"/{GLUE}" in path or f"/{BERT_BASE}" in path for path in requested)
    pinned = HUB_REVISIONS[GLUE], HUB_REVISIONS[BERT_BASE]
    assert all(any(revision in path for revision in pinned) for path in fetched)
