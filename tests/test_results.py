"""The table of results: what a number becomes, what a reader sees of it, and when another run says the same."""

import copy
import re
from itertools import permutations

import numpy as np
import pytest
from conftest import ROOT

from bertology_utils.glue import TASKS
from bertology_utils.record import Record
from bertology_utils.results import (
    MEASURED,
    P_VALUE,
    SHARE,
    Results,
    entries_of,
    moved,
    read_results,
    text_of,
    tidy,
)
from bertology_utils.settings import resolve
from bertology_utils.statistics import Bootstrap, Estimate, mean_over_seeds, pooled
from bertology_utils.verdicts import CLAIMS, OUTCOMES

MRPC, RTE, QQP = TASKS["mrpc"], TASKS["rte"], TASKS["qqp"]
COMMITTED = [
    *sorted((ROOT / "results").glob("*/*.json")),
    *sorted((ROOT / "tests" / "reference").glob("*.json")),
]


def run_of(*entries, **content):
    empty = {"notebook": "1_x", "settings": {"seed": 1}, "versions": {}, "facts": {}}
    empty |= {"verdicts": []}
    return Results(empty | {"rows": entries} | content)


def test_numbers_become_rows_with_their_labels():
    found = {MRPC: [Estimate(0.5, 0.01, 320, 2)], RTE: [0.25]}
    entries = entries_of("score", found, by=("task", "training"), unit="score", n=99)
    first = {"what": "score", "task": "mrpc", "training": 1, "value": 0.5, "low": 0.4804}
    first |= {"high": 0.5196, "n": 320, "trainings": 2, "unit": "score", "tolerance": MEASURED}
    assert entries[0] == first
    assert (entries[1]["task"], entries[1]["value"], entries[1]["n"]) == ("rte", 0.25, 99)
    gains = {MRPC: np.arange(6.0).reshape(2, 3)}
    table = tidy(entries_of("gain", gains, by=("task",), state="fine-tuned"))
    assert len(table) == 6 and set(table.state) == {"fine-tuned"}
    assert table.loc[(table["layer"] == 1) & (table["head"] == 2), "value"].item() == 5


@pytest.mark.parametrize("by", permutations(("task", "kind", "state")), ids=", ".join)
def test_no_interval_depends_on_the_order_of_labels(by):
    """Two kinds of number that differ by a factor of ten, of seven tasks with two runs each."""
    runs = np.random.default_rng(0).normal(0.5, 0.01, (2, 7, 2))
    estimates = {
        (task, kind, "fine-tuned"): mean_over_seeds(
            [Bootstrap(scale * run, scale * run + np.linspace(-0.001, 0.001, 9), 90) for run in two]
        )
        for kind, scale, of_kind in (("share", 1.0, runs[0]), ("difference", 0.1, runs[1]))
        for task, two in zip(TASKS.values(), of_kind, strict=True)
    }

    def recorded(chosen, by):
        nested: dict = {}
        for labels, estimate in chosen.items():
            at = dict(zip(("task", "kind", "state"), labels, strict=True))
            nested.setdefault(at[by[0]], {}).setdefault(at[by[1]], {})[at[by[2]]] = estimate
        record = Record("1_trial", settings=None)
        record.record("number", nested, by=by)
        return {(row["task"], row["kind"]): (row["low"], row["high"]) for row in record.entries}

    intervals = recorded(estimates, by)
    for kind in ("share", "difference"):
        alone = {at[0]: one for at, one in estimates.items() if at[1] == kind}
        for task, one in pooled(alone).items():
            assert intervals[task.name, kind] == pytest.approx(one.interval, abs=1e-6)


def test_a_task_without_a_number_takes_none_from_the_others():
    runs = [
        [Bootstrap(one, np.full(9, one), 90) for one in two] for two in ((0.5, 0.6), (0.7, 0.9))
    ]
    known = {task: mean_over_seeds(two) for task, two in zip((MRPC, RTE), runs, strict=True)}
    missing = {QQP: mean_over_seeds([Bootstrap(np.nan, np.full(9, np.nan), 90)] * 2)}
    both = pooled(known | missing)
    assert np.isnan(both[QQP].value)
    assert {task: both[task].interval for task in known} == {
        task: one.interval for task, one in pooled(known).items()
    }


@pytest.mark.parametrize(
    ("unit", "words", "ends"),
    [("correlation", "+0.99 [+0.95, +1.00]", [0.95, 1]), ("share", "99 % [95, 100]", [95, 100])],
)
def test_words_and_tables_cut_intervals_at_the_same_ends(unit, words, ends):
    rows = entries_of("r", {MRPC: Estimate(0.99, 0.02, 90)}, ("task",), unit=unit)
    assert text_of(rows[0]) == words
    table = run_of(*rows).table("r", task=[MRPC, RTE])
    assert [*table.low, *table.high] == pytest.approx(ends, rel=1e-3)


@pytest.mark.parametrize(
    ("values", "options", "says"),
    [
        ({"mrpc": 1}, {"by": ("tsk",)}, "unknown label 'tsk'"),
        ({"mrpc": 1}, {}, "labels are missing for mrpc"),
        (
            np.zeros((2, 3)),
            {"over": ("layer", "kind"), "kinds": ("a",)},
            "an array of shape (2, 3)",
        ),
        (np.zeros((2, 3, 4)), {}, "an array of shape (2, 3, 4)"),
    ],
)
def test_what_does_not_fit_is_refused(values, options, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        entries_of("score", values, **options)


def test_another_run_may_differ_by_the_tolerance_of_each_number():
    """Each row has its own tolerance, so that a rule for one notebook's numbers cannot reach another's."""
    old = run_of(
        *entries_of("weight", np.array([[0.1, 0.2]]), unit="weight"),
        *entries_of("share", 0.5, unit="share", tolerance=SHARE),
    )
    for what, small, large in (("weight", 0.0004, 0.004), ("share", 0.004, 0.006)):
        for step in (small, large):
            new = copy.deepcopy(old)
            (entry,) = new.find(what)
            entry["value"] = (np.asarray(entry["value"]) + step).tolist()
            assert (moved(old, new) == []) == (step == small)


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("results/glue/6_disabling_heads.json", "make evidence ONLY=6"),
        ("results/confirm/6_disabling_heads.json", "make evidence CONFIRM=FOLDER ONLY=6"),
        ("results/ud/dependencies.json", "make evidence TREEBANK=FILE"),
        ("runs/own/results/6_disabling_heads.json", "python -m bertology_utils run --only 6"),
    ],
)
def test_a_file_that_is_missing_is_named_with_the_command_that_makes_it(tmp_path, place, command):
    with pytest.raises(ValueError, match=f"renew it: {re.escape(command)}$"):
        read_results(tmp_path / place)


def test_p_values_are_alike_where_nothing_hangs_on_them():
    old, alike, other = (
        run_of(*entries_of("better", np.array(p), over=("layer",), unit="p", tolerance=P_VALUE))
        for p in ([0.3, 0.05], [0.9, 0.055], [0.3, 0.08])
    )
    assert moved(old, alike) == [] and moved(old, other)


VERDICT = {"id": "sep-overtakes", "model": "this run", "outcome": "undecided"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"settings": {"seed": 2}}, "settings"),
        ({"facts": {"head": "(1, 2)"}}, "facts"),
        ({"verdicts": [VERDICT]}, "verdict on sep-overtakes"),
        ({"rows": []}, "is gone"),
        ({"rows": entries_of("weight", 0.1, n=30) + entries_of("more", 0.1)}, "is new"),
        ({"rows": entries_of("weight", 0.1, n=31)}, "n 30 became 31"),
        ({"rows": entries_of("weight", np.zeros(2), over=("layer",), n=30)}, "over None became"),
    ],
)
def test_whatever_else_differs_is_named(change, says):
    old = run_of(*entries_of("weight", 0.1, n=30))
    assert any(says in line for line in moved(old, Results({**old.content, **change})))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "it is missing"),
        ("{", "it is damaged"),
        ('{"notebook": "x", "rows": []}', "is of form 1, and this version reads form 2"),
    ],
)
@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("figures/3_finetuning_drift/results.json", "python -m bertology_utils run --only 3"),
        ("results/glue/3_finetuning_drift.json", "make evidence ONLY=3"),
    ],
)
def test_a_file_that_cannot_be_used_says_what_renews_it(tmp_path, place, command, text, says):
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=f"{says}.*{command}"):
        read_results(path)


def test_the_small_run_shows_the_evidence_and_a_run_on_another_model_its_own(tiny_bert):
    models = ("", str(tiny_bert))
    small, own = (Record("3_finetuning_drift", resolve(model=model)) for model in models)
    for record in (small, own):
        record.record("score", 0.5)
        record.judge("last-layers-gain", {"": Estimate(0.1, 0.01, 100)})
    assert small.verdicts == [] and len(small.evidence.find("score")) > 1
    assert small.evidence.content["settings"]["profile"] == "glue"
    (row,) = own.evidence.find("score")
    assert row["value"] == 0.5 and list(own.evidence.verdicts) == [("last-layers-gain", "this run")]
    assert small.show_verdicts("last-layers-gain").data.startswith("- ✗ **")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: "/".join(path.parts[-2:]))
def test_committed_results_are_whole(path):
    run = read_results(path)
    assert {"torch", "transformers"} <= set(run.content["versions"])
    assert run.content["settings"]["seed"] == (101 if path.parent.name == "confirm" else 1)
    labels = ("what", "task", "training", "state", "kind")
    places = [tuple(map(entry.get, labels)) for entry in run.entries]
    assert len(set(places)) == len(places)
    for verdict in run.content["verdicts"]:
        assert verdict["outcome"] in OUTCOMES and verdict["id"] in CLAIMS
