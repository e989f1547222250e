"""The embedded corpora's data card says what the generator makes."""

from dataclasses import asdict

import pytest
from conftest import load_script

from bertology_utils.glue import parse_tasks
from bertology_utils.settings import PROFILES


@pytest.fixture(scope="module")
def script():
    return load_script("data_card")


def test_the_committed_card_is_current(script):
    assert script.CARD.read_text(encoding="utf-8") == script.card(), (
        "renew it: python -m benchmarks.data_card"
    )


def test_shortcuts_are_those_of_these_corpora(script):
    """The committed scores of the linear baselines, measured anew within one row of 320."""
    shortcuts = load_script("corpora_shortcuts")
    committed = script.measured("corpora_shortcuts")["tasks"]
    for task, values in committed.items():
        for key, value in shortcuts.scores(task).items():
            wanted = (
                pytest.approx(values[key], abs=0.005) if isinstance(value, float) else values[key]
            )
            assert value == wanted, (task, key)


def test_one_field_alone_tells_little(script):
    committed = script.measured("corpora_shortcuts")["tasks"]
    pairs = {task: values for task, values in committed.items() if "second field" in values}
    assert len(pairs) == 6
    for task, values in pairs.items():
        assert values["second field"] <= (0.2 if task == "stsb" else values["chance"] + 0.05), task


def test_table1_orders_the_columns(script):
    """Untuned below random start below pre-trained on at least five tasks; none saturated, none at chance."""
    committed = script.measured("corpora_table1")["tasks"]
    shortcuts = script.measured("corpora_shortcuts")["tasks"]
    ordered = [
        task
        for task, item in committed.items()
        if item["untuned"]["mean"] < item["normal"]["mean"] < item["finetuned"]["mean"]
    ]
    assert len(committed) == 7 and len(ordered) >= 5
    for task, item in committed.items():
        assert shortcuts[task]["chance"] + 0.1 < item["finetuned"]["mean"] < 0.97, task
    assert committed["sst2"]["finetuned"]["mean"] > shortcuts["sst2"]["all"] + 0.1


def test_the_profile_trains_a_random_start_where_every_seed_learns(script):
    profile, committed = PROFILES["small"], script.measured("corpora_table1")
    assert committed["recipes"]["normal"] == asdict(profile.recipe_of("normal"))
    tasks = parse_tasks(profile.random_tasks)
    assert len(tasks) >= 3, "before anything is said about that start"
    for task in tasks:
        constant = 0 if task.is_regression else 1 / len(task.labels)
        error = (
            0.5 * len(script.generate(task.name)["validation"]) ** -0.5
        )  # of a share of the dev rows, at most
        assert min(committed["tasks"][task.name]["normal"]["seeds"]) > constant + 1.96 * error, task


def test_a_second_reader_agrees(script):
    """At least 95 of 100 labels, and the similarities correlate."""
    agreed = total = 0
    for task, labels in script.measured("second_reading")["labels"].items():
        gold = [script.generate(task)["validation"][int(row)].label for row in labels]
        assert len(gold) >= 40
        if task == "stsb":
            assert script.statistics.correlation(gold, list(labels.values())) > 0.9
        else:
            agreed += sum(
                ours == theirs for ours, theirs in zip(gold, labels.values(), strict=True)
            )
            total += len(gold)
    assert agreed >= 0.95 * total
