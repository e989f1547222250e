"""What is said to have come out of a notebook: one wording for each verdict, none without its number."""

import copy
import json
from importlib import import_module

import pytest
from conftest import ROOT

from bertology_utils.claims import FAILS, HOLDS, OUTCOMES, UNDECIDED, UNTESTABLE
from bertology_utils.claims.entries import ENTRIES
from bertology_utils.claims.findings import amount, extreme, fair, on_each, on_tasks
from bertology_utils.claims.register import NOTEBOOKS
from bertology_utils.suite.opening import SECTIONS

# By claim: a phrase of the sentence where it holds, and one where it does not.
PHRASES = {
    "first-three": ("On each of 2 tasks more than 39 %", "On each of 2 tasks less than 39 %"),
    "repeat-heads": ("A few patterns repeat: on every task two", "On some task two of the five patterns describe no more"),
    "heterogeneous": ("As in the paper, 32 to 61 %", "On each of 2 tasks the share of heterogeneous maps is below"),
    "patterns-change": ("2 % of the heads or more another", "fewer than 2 % of the heads another"),
    "frame-links": ("Some head attends", "No head attends"),
    "frame-two-heads": ("Two heads stand out", "No two heads stand out"),
    "frame-example": ("both of the highest heads look", "do not both look"),
    "frame-count": ("as many sentences", "another number of sentences"),
    "last-layers": ("change most on each of 2 tasks", "do not change most on every task (surely on 0 of 2, surely not on 2"),
    "pretraining-helps": ("scores lower on every task", "does not score lower by a point on every task"),
    "last-layers-gain": ("costs a point more than any other two", "does not cost most"),
    "tuned-above-untuned": ("Fine-tuning raises", "Fine-tuning does not raise"),
    "stripes-special": ("On each of 2 tasks more heads have a stripe", "On each of 2 tasks fewer heads have a stripe"),
    "more-nouns": ("makes some head attend more to nouns", "makes no head attend more to nouns"),
    "stripes-exclusive": ("Hardly any head", "Some heads"),
    "stripes-pretraining": ("had it before fine-tuning", "got it from fine-tuning"),
    "words-negligible": ("is negligible", "is not negligible"),
    "verbs-indistinct": ("No head attends", "Some head attends"),
    "pronouns-indistinct": ("No head attends", "Some head attends"),
    "subjects-distance": ("No head points", "A head points"),
    "verbs-diagonal": ("are those that attend to neighbours", "are not those"),
    "pronouns-diagonal": ("are those that attend to neighbours", "are not those"),
    "cls-reads-sep": ("[CLS] attends most to [SEP]", "[CLS] does not attend most to [SEP]"),
    "some-head-helps": ("On every task some head's disabling raises", "On some task no head's disabling raises"),
    "gain-elsewhere": ("gains on other examples, too", "loses on other examples"),
    "several-heads-harmless": ("Half of the heads can go", "Half of the heads cannot go"),
    "some-layer-helps": ("Disabling some layer raises", "Disabling no layer raises"),
    "norm-cls": ("gets much less than by weight", "as much by norm as by weight"),
    "sink-noop": ("gets most, is idle", "is not idle"),
    "relations-rank": ("keep their rank", "change their rank"),
    "mixing-kept": ("mostly keeps itself", "mostly of other tokens"),
    "panels-rank": ("Heads rank as on the published", "On some panel heads do not rank as"),
    "relations-ahead": ("Along each dependency some head", "Along some dependency no head"),
    "clark-heads": ("Each head that Clark et al. name", "None of the heads that Clark et al. name"),
    "sep-half": ("gets over half", "gets less than half"),
}  # fmt: skip


def estimates(value):
    """Of two tasks that agree, and of one that was not learned."""
    one = {"value": value, "low": value - 0.01, "high": value + 0.01, "n": 320, "trainings": 2}
    return {"mrpc": one, "sst2": {**one, "value": value + 0.001}, "rte": {**one, "value": -9.0, "low": -9.1, "high": -8.9}}


def made_up(notebook, outcomes):
    """A results file with numbers on the side of the verdicts: of the borders 0.39, 0.32 and 0."""
    failing = FAILS in outcomes.values()
    share, lead = (0.1, -0.2) if failing else (0.5, 0.2)
    whole = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 640, "trainings": 2}
    best = {"value": 0.02, "low": -0.01, "high": 0.05, "n": 320}
    verdicts = [
        {"id": name, "claim": ENTRIES[name].claim, "ours": "+0.5 [+0.1, +0.9]; n=9", "outcome": outcome, "why": "missing: x"}
        for name, outcome in outcomes.items()
    ]
    return {
        "notebook": NOTEBOOKS[notebook],
        "verdicts": [{**one, "model": "this run"} for one in verdicts],
        "learned": {"mrpc": True, "sst2": True, "rte": False},
        **{name: estimates(share) for name in ("first_three", "heterogeneous", "changed_heads", "ratios")},
        "leads": estimates(lead) | {"qqp": {**whole, "value": -5.0}},
        "gains": {"fine-tuning": whole, "pre-training": whole},
        "striped": {"special ahead": estimates(lead), "words": estimates(share), "kept": estimates(share)},
        "falls": {"[CLS]": {"fine-tuned": estimates(lead)}},
        "less": estimates(lead),
        "effects": {
            "mrpc, training 1": {"heads": {"best": best}},
            "rte, training 1": {"heads": {"best": {**best, "value": 9}}},
        },
    }


def said(notebook, results):
    return import_module(f"bertology_utils.{SECTIONS[notebook]}.findings").findings(results)


def committed(notebook):
    return json.loads((ROOT / "figures" / NOTEBOOKS[notebook] / "results.json").read_text())


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("claim", PHRASES)
def test_a_sentence_says_what_its_verdict_says(claim, outcome):
    (sentence,) = said(ENTRIES[claim].notebook, made_up(ENTRIES[claim].notebook, {claim: outcome}))
    held, failed = PHRASES[claim]
    assert sentence.startswith("Undecided ") == (outcome == UNDECIDED), sentence
    assert (sentence.startswith("Not testable here: ") and "(missing: x)" in sentence) == (outcome == UNTESTABLE), sentence
    if outcome in (HOLDS, FAILS):
        assert (held in sentence) == (outcome == HOLDS) and (failed in sentence) == (outcome == FAILS), sentence
    assert outcome == UNTESTABLE or "n=" in sentence
    assert (
        sentence.endswith(".") and "RTE" not in sentence.split(":", 1)[-1] and "-9" not in sentence
    )  # which was not learned


def test_every_claim_that_is_told_is_tried_here(monkeypatch):
    told = set()

    def note(results, findings):
        told.update(one.claim for one in findings)
        return []

    for notebook, section in SECTIONS.items():
        module = import_module(f"bertology_utils.{section}.findings")
        monkeypatch.setattr(module, "told", note)
        module.findings(made_up(notebook, {}))
    assert told == set(PHRASES)


@pytest.mark.parametrize("notebook", SECTIONS)
def test_of_the_committed_results_there_are_up_to_three_sentences_with_numbers(notebook):
    sentences = said(notebook, committed(notebook))
    assert 1 <= len(sentences) <= 3
    for sentence in sentences:
        assert "nan" not in sentence and "None" not in sentence and len(sentence) < 260, sentence
    assert any(character.isdigit() for character in sentences[0])


def test_links_are_told_with_direction_unit_and_interval():
    results = made_up(5, {"verbs-indistinct": FAILS, "subjects-distance": FAILS, "verbs-diagonal": HOLDS})
    by_claim = {one["id"]: one for one in results["verdicts"]}
    by_claim["verbs-indistinct"]["ours"] = "subject → verb: (1, 2) +0.084; n=9"
    lead = {"value": 0.176, "low": 0.152, "high": 0.202, "n": 21}
    most = {"kind": "subject → verb", "head": "(1, 2)", "value": 0.084, "low": 0.079, "high": 0.088, "n": 9}
    results["pointing"] = {"nsubj": {"way": "dependent → head", "head": "(1, 1)", "difference": lead}}
    results["furthest"] = {"verbs": most}
    results["neighbours"] = {"pre-trained": [[0.9, 0.1], [0.5, 0.4]]}
    first, second, third = said(5, results)
    assert first.endswith(
        ": subject → verb, head (1, 2), +0.084 [+0.079, +0.088] of a token's attention (which sums to 1); n=9 examples."
    )
    assert second.endswith(": subject → verb, head (1, 1), +17.6 points [+15.2, +20.2]; n=21 examples.")
    assert third.endswith("n=9; but (1, 2) is not a neighbour head (rank 4 of 4 in attention to neighbours).")
    results["neighbours"] = {"pre-trained": [[0.4, 0.9], [0.5, 0.1]]}
    assert said(5, results)[2].endswith(": +0.5 [+0.1, +0.9]; n=9."), "it is one"
    results["furthest"]["verbs"]["head"] = "(2, 2)"
    assert said(5, results)[0].endswith(": subject → verb: (1, 2) +0.084; n=9."), "the verdict is about another head"


def test_what_cannot_be_tested_comes_last():
    outcomes = {"verbs-indistinct": UNTESTABLE, "subjects-distance": FAILS, "pronouns-diagonal": UNDECIDED}
    beginnings = [sentence.split()[0] for sentence in said(5, made_up(5, outcomes))]
    assert beginnings == ["A", "Undecided", "Not"]


@pytest.mark.parametrize("notebook", SECTIONS)
def test_no_number_no_sentence(notebook):
    """What was not measured is null; a verdict may say nan, or nothing."""

    def emptied(part):
        if isinstance(part, dict):
            return {name: emptied(value) for name, value in part.items()}
        return [emptied(value) for value in part] if isinstance(part, list) else None if isinstance(part, float) else part

    for ours in ("nan [nan, nan]; n=320", "–"):
        results = emptied(committed(notebook))
        for verdict in results["verdicts"]:
            verdict["ours"] = ours
        assert all(sentence.startswith("Not testable here") for sentence in said(notebook, results)), ours


@pytest.mark.parametrize("notebook", SECTIONS)
def test_results_of_another_version_and_verdicts_on_other_models_give_none(notebook):
    results = committed(notebook)
    other = copy.deepcopy(results)
    for verdict in other["verdicts"]:
        verdict["id"] = f"old-{verdict['id']}"
    assert said(notebook, other) == []
    for verdict in results["verdicts"]:
        verdict["model"] = "bert-base-uncased, published panel, read off"
    assert said(notebook, results) == []


@pytest.mark.parametrize("notebook", SECTIONS)
def test_with_its_verdicts_alone_a_notebook_says_what_they_say(notebook):
    for outcome in (HOLDS, FAILS, UNDECIDED):
        claims = [claim for claim in PHRASES if ENTRIES[claim].notebook == notebook]
        for claim in claims:
            bare = {"verdicts": made_up(notebook, {claim: outcome})["verdicts"]}
            (sentence,) = said(notebook, bare)
            assert sentence.endswith(": +0.5 [+0.1, +0.9]; n=9.")
            assert sentence.startswith("Undecided ") == (outcome == UNDECIDED)
            assert not (outcome == HOLDS and "some task" in sentence and claim != "some-layer-helps"), sentence


@pytest.mark.parametrize(
    "notebook, place",
    [
        (1, ("first_three", "qnli", "value")),
        (1, ("heterogeneous", "qnli", "low")),
        (3, ("leads", "sst2", "high")),
        (3, ("gains", "pre-training", "value")),
        (4, ("striped", "special ahead", "mrpc", "low")),
        (6, ("effects", "mrpc, training 1", "heads", "best", "value")),
    ],
)
def test_another_number_another_sentence(notebook, place):
    results = committed(notebook)
    before = said(notebook, results)
    *path, last = place
    part = results
    for name in path:
        part = part[name]
    part[last] = part[last] - 0.1
    after = said(notebook, results)
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1


def test_counts_of_tasks():
    results = made_up(3, {"last-layers": UNDECIDED})
    results["leads"]["sst2"] = {"value": -0.2, "low": -0.3, "high": -0.1, "n": 320, "trainings": 2}
    (sentence,) = said(3, results)
    assert "surely on 1 of 2, surely not on 1" in sentence
    assert (
        "behind the others by 0.200 in cosine similarity [0.100, 0.300] on SST-2, the highest of 2; n=320, 2 trainings."
        in sentence
    )
    assert [on_tasks(*counts) for counts in ((0, 3), (1, 3), (3, 3))] == [
        "on some task",
        "on 1 of 3 tasks",
        "on each of 3 tasks",
    ]
    assert [on_each(tasks) for tasks in (0, 1, 3)] == ["on every task", "on the one task", "on each of 3 tasks"]


def test_what_stands_beside_the_random_start_follows_its_numbers():
    results = made_up(3, {"pretraining-helps": HOLDS, "last-layers-gain": FAILS})
    assert "learned" not in said(3, results)[0] and "Fine-tuning" not in said(3, results)[0]
    results |= {"random_start_learned": {"mrpc": True, "rte": False}, "put_back_leads": estimates(-0.2)}
    (tuned,) = made_up(3, {"tuned-above-untuned": FAILS})["verdicts"]
    results["verdicts"].append(tuned)
    beside, put_back = said(3, results)[:2]
    assert "learned 1 of 2 tasks. Fine-tuning does not raise each score: +40.0 [+30.0, +50.0] on average." in beside
    assert put_back.endswith("on MRPC another pair costs 20 points more [19, 21]; n=320, 2 trainings.")
    results["put_back_leads"]["sst2"] |= {"value": -0.3, "low": -0.9, "high": 0.3}  # more, but not surely
    assert said(3, results)[1] == put_back


def test_amounts():
    one = {"value": 0.123, "low": -0.0001, "high": 0.25, "n": 7}
    assert amount(one, "%") == "12 % [0, 25]" and amount(one, "points", 1, sign=True) == "+12.3 points [+0.0, +25.0]"
    two = {"mrpc": one, "rte": {**one, "value": 0.2}, "qnli": {**one, "high": None}}
    usable = fair({"learned": {"mrpc": True, "rte": True, "qnli": True}, "x": {"y": two}}, "x", "y")
    assert extreme(usable, "", 2, most=True) == "0.20 [0.00, 0.25] on RTE, the highest of 2; n=7"
    assert extreme({}, "%") == ""


def test_where_sep_gets_most_is_told_of_another_encoder_than_bert_base():
    results = made_up(8, {"relations-ahead": HOLDS})
    results |= {"encoder": {"bert-base": False}, "sep_most": {"layer": 2, "value": 0.1, "low": 0.09, "high": 0.11, "n": 70}}
    assert said(8, results)[1] == (
        "[SEP] gets most in layer 2, 10.0 % [9.0, 11.0] of the attention; in bert-base over half in each of the layers"
        " 6 to 10 (Clark et al., 2019); n=70."
    )
    assert not any("[SEP]" in one for one in said(8, results | {"encoder": {"bert-base": True}}))
    assert not any("[SEP]" in one for one in said(8, results | {"sep_most": {}}))
