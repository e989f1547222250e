"""The room of notebook 8: is it bert-base, heads beside published panels, heads that point, sentences that are drawn."""

import shutil
import subprocess
import sys
from dataclasses import replace

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

from bertology_utils.framenet.links import EXAMPLE, PAPER, extract
from bertology_utils.framenet.release import load_release
from bertology_utils.glue import TASKS, load_rows
from bertology_utils.hub import BERT_BASE, GLUE, HUB_REVISIONS
from bertology_utils.links.dependencies import CLARK, RELATIONS, RelationTest
from bertology_utils.pretrained import bert_base, measure
from bertology_utils.published import published_panel
from bertology_utils.results import RESULTS, read_results
from bertology_utils.settings import embedded_folder, parse_data
from bertology_utils.verdicts import FAILS, HOLDS, UNDECIDED, judge


def test_a_panel_beside_itself_moved():
    theirs = published_panel("[SEP]")
    same = bert_base.compare(theirs, theirs, 1)
    assert (
        same.rank.value == pytest.approx(1)
        and same.difference == 0
        and same.common == bert_base.TOP
    )
    ours = theirs.copy()
    ours[3, 4] += 0.9
    found = bert_base.compare(ours, theirs, 1)
    assert found.where == (3, 4) and found.difference == pytest.approx(0.9)
    assert found.common == bert_base.TOP - (theirs[3, 4] < np.sort(theirs.ravel())[-bert_base.TOP])
    backwards = bert_base.compare(-theirs, theirs, 1)
    assert backwards.rank.value == pytest.approx(-1) and backwards.common == 0
    with pytest.raises(ValueError, match="no heads in common"):
        bert_base.compare(np.zeros((6, 12)), theirs, 1)


def test_what_is_bert_base_and_what_is_not():
    tokenizer = AutoTokenizer.from_pretrained(embedded_folder())  # of the same vocabulary
    assert (
        bert_base.differs(BertConfig(), tokenizer)
        == bert_base.missing(BertConfig(), tokenizer)
        == ""
    )
    assert "it has 6 layers, not 12" in bert_base.differs(
        BertConfig(num_hidden_layers=6), tokenizer
    )
    small = bert_base.missing(BertConfig(hidden_size=384), tokenizer)
    assert small.startswith("bert-base-uncased, ") and "384 numbers" in small
    tokenizer.add_tokens(["bertology"])
    assert "other wordpieces" in bert_base.differs(BertConfig(), tokenizer)


def relation(name, z, beats, arcs=50):
    """A test whose best head is so many standard errors above 2 points ahead."""
    ahead = resampled(z, 0.02)
    return RelationTest(name, arcs, "", 1, ahead, (0, 0), ahead, ahead, beats, beats)


def outcomes(tests):
    """Of the claims about any head, and about Clark et al.'s."""
    judged = judge("relations-ahead", measure.ahead_of_distance(tests))
    return judged.outcome, judge("clark-heads", {"": measure.heads_of_clark(tests)}).outcome


def test_heads_that_point():
    theirs = {name: (CLARK[name].at,) for name in RELATIONS}
    all_ahead = {name: relation(name, SURE, theirs[name]) for name in RELATIONS}
    assert outcomes(all_ahead) == (HOLDS, HOLDS)
    assert outcomes(all_ahead | {"amod": relation("amod", -SURE, ())}) == (FAILS, UNDECIDED)
    assert outcomes(all_ahead | {"amod": relation("amod", 0, ())}) == (UNDECIDED, UNDECIDED)
    others = {name: relation(name, SURE, ((0, 0),)) for name in RELATIONS}
    assert outcomes(others) == (HOLDS, FAILS)
    assert "amod (4, 10) does not" in measure.heads_of_clark(others).number
    assert judge("relations-random", {"det": 0, "obj": 0}).outcome == HOLDS
    assert judge("relations-random", {"det": 0, "obj": 2}).outcome == FAILS


@pytest.mark.parametrize(("theirs", "outcome"), [(True, HOLDS), (False, FAILS)])
def test_clark_et_als_heads_are_judged_from_dependents_to_heads(theirs, outcome):
    """Where the other way is the better one, ``beats`` has heads of that way."""
    tests = {
        name: replace(
            relation(name, SURE, () if theirs else (CLARK[name].at,)),
            way="head → dependent",
            towards_heads=(CLARK[name].at,) if theirs else (),
        )
        for name in RELATIONS
    }
    assert outcomes(tests)[1] == outcome


def test_a_relation_that_a_fixed_distance_already_finds_is_left_out():
    behind = replace(relation("amod", -SURE, ()), baseline=resampled(0, 0.97))
    assert set(
        measure.ahead_of_distance({"det": relation("det", SURE, ((0, 0),)), "amod": behind})
    ) == {"det"}
    assert set(measure.MEANINGS) == set(RELATIONS)


def test_of_many_sentences_some_are_drawn_and_the_papers_own_is_kept():
    kept = extract(load_release("embedded"), PAPER)[0]
    texts = [one.exemplar.text for one in kept]
    for seed in range(5):
        few = [one.exemplar.text for one in measure.drawn(kept, seed, 7)]
        assert len(few) == 7 and few == [text for text in texts if text in few]
        assert EXAMPLE in few
    assert measure.drawn(kept, 1) == kept
    assert measure.drawn(kept, 1, 7) == measure.drawn(kept, 1, 7) != measure.drawn(kept, 2, 7)


# ``make bert``: a miniature bert-base end to end, from the Hub.


NAMES = ("8_pretrained_encoder", "8a_appendix")
HIDDEN = 24


@pytest.fixture(scope="module")
def repository():
    return tiny_bert_repository(12, 12, HIDDEN)


@pytest.fixture(scope="module")
def annotation(tmp_path_factory):
    return gold_annotation(tmp_path_factory.mktemp("annotation"))


@pytest.fixture
def checkout(tmp_path):
    """A copy of the project's pages, numbers, and of the notebook with its appendix."""
    found = [ROOT / "pyproject.toml", *(ROOT / "notebooks" / f"{name}.ipynb" for name in NAMES)]
    found += [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    found += [*ROOT.glob("figures/*/results.json"), *ROOT.glob("benchmarks/**/*.json")]
    folder = copy_of(found, tmp_path / "checkout")
    shutil.rmtree(folder / "benchmarks" / "bert_base", ignore_errors=True)
    return folder


def call(checkout, url, home, *options):
    """What ``make bert`` calls, in the copy."""
    environment = hub_environment(url, home / "hf") | {"BERTOLOGY_CACHE": str(home / "cache")}
    environment |= only_this_machine(home / "site", HIDDEN)
    command = [
        sys.executable,
        "-m",
        "bertology_utils",
        "run",
        "--only",
        "8,8a",
        "--profile",
        "bert-forward",
    ]
    command += ["--figures", "benchmarks/bert_base", *options]
    how = {
        "cwd": checkout,
        "env": environment,
        "capture_output": True,
        "text": True,
        "timeout": 900,
    }
    done = subprocess.run(command, **how)
    return (
        done
        if done.returncode
        else subprocess.run([sys.executable, ROOT / "docs" / "pages.py"], **how)
    )


def columns(page, beginning):
    row = next(
        line for line in page.read_text().splitlines() if line.startswith(f"| {beginning} |")
    )
    return [cell.strip() for cell in row.strip("|").split("|")]


def check_run(checkout, done):
    """What a whole run leaves: results in their place, and the column bert-base filled in RESULTS.md."""
    assert done.returncode == 0, done.stderr[-3000:]
    page, appendix = (
        read_results(checkout / "benchmarks" / "bert_base" / name / RESULTS) for name in NAMES
    )
    assert appendix.content["facts"]["encoder"] == {"bert-base": True, "layers": 12, "heads": 12}
    outcomes = {
        claim: one["outcome"] for (claim, _), one in (page.verdicts | appendix.verdicts).items()
    }
    links = columns(checkout / "RESULTS.md", "4.2 | Some head attends along frame-semantic links")
    assert links[3] == f"{outcomes['frame-links']} (pre-trained)"
    first = columns(checkout / "RESULTS.md", "4.4 | Earlier layers attend to [CLS]")
    assert outcomes["cls-early"] in first[3] and "(pre-trained)" in first[3]
    assert (
        columns(
            checkout / "RESULTS.md", "4.3 | The last two layers change most, on all tasks but QQP"
        )[3]
        == "not yet"
    )
    text = (checkout / "README.md").read_text()
    assert "`make bert` does it" not in text and "No verdict is about bert-base yet" not in text
    return page, appendix


def glue_rows(task):
    """A few of the task's embedded dev rows, as :func:`glue_repository_of` takes them."""
    rows = list(load_rows(task, "dev", parse_data("embedded")).select(range(14)))
    return task.fields, task.labels, {task.dev_split: rows}


def test_from_the_hub_it_fills_the_column_and_asks_for_nothing_else(
    checkout, tmp_path, repository, annotation
):
    glue = glue_repository_of({name: glue_rows(task) for name, task in TASKS.items()})
    repositories = {
        f"datasets/{GLUE}": (HUB_REVISIONS[GLUE], glue),
        BERT_BASE: (HUB_REVISIONS[BERT_BASE], repository),
    }
    with LocalHub(repositories) as hub:
        given = {
            "annotation": f"conllu:{annotation}",
            "framenet": "embedded",
            "treebank": str(treebank(tmp_path, 80)),
        }
        done = call(
            checkout, hub.url, tmp_path, *(part for pair in given.items() for part in ("-p", *pair))
        )
        asked = [path for _, path in hub.requests]
    results, appendix = check_run(checkout, done)
    assert {row["task"]: row["value"] for row in appendix.find("examples")} == dict.fromkeys(
        TASKS, 14
    )
    assert {name: row["value"] for name, row in results.by("kind", "arcs").items()} == {
        "nsubj": 80,
        "obj": 80,
        "det": 80,
    }
    assert results.content["facts"]["treebank"] == {"sentences": 80, "left out": 0}
    assert results.content["settings"]["treebank"] == "my.conllu"
    assert results.verdicts["relations-ahead", "pre-trained"]["outcome"] == "not testable here", (
        "a distance is always right"
    )
    compared = appendix.by("kind", "rank correlation with the published panel")
    assert set(compared) == {"[SEP]", "[CLS]"}  # QQP's rows, and no whole FrameNet
    assert all(f"/{GLUE}" in path or f"/{BERT_BASE}" in path for path in asked)
    fetched = [path for path in asked if "/resolve/" in path]
    assert fetched and all(
        HUB_REVISIONS[GLUE] in path or HUB_REVISIONS[BERT_BASE] in path for path in fetched
    )
