"""What notebooks need, what of it is planned, and how it is carried out."""

import errno
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from conftest import ROOT

from bertology_utils import __main__ as cli
from bertology_utils import plan
from bertology_utils.attention import maps
from bertology_utils.glue import TASKS
from bertology_utils.lab import Lab
from bertology_utils.plan import FineTuning, Item, PassOf, SweepOf, needs_of
from bertology_utils.run import find_notebooks, select
from bertology_utils.settings import resolve

SST2, RTE = TASKS["sst2"], TASKS["rte"]
SMALL = {"tasks": "sst2", "train_examples": 16, "sweep_examples": 8}


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def needs(number, **parameters):
    return needs_of(f"{number}_notebook", resolve(**parameters))


def test_the_table_says_what_each_notebook_needs():
    twice = [FineTuning(task, seed_offset=at) for task in (SST2, RTE) for at in (0, 1)]
    looks = [PassOf(model, task) for model in ("pretrained",) for task in (SST2, RTE)]
    looks += [PassOf(training, training.task) for training in twice]
    assert needs(1, tasks="sst2,rte") == [*twice, *looks]
    for number in (4, 5):
        assert needs(number, tasks="sst2,rte") == [
            *twice,
            *looks,
            PassOf("normal", SST2),
            PassOf("normal", RTE),
        ]
    assert needs(0, tasks="sst2,rte") == [FineTuning(SST2)]
    assert needs(0, tasks="stsb,rte") == [FineTuning(RTE)]
    assert needs(0, tasks="stsb") == needs(2) == needs(8) == []
    assert needs(3, tasks="sst2,rte") == [*twice, FineTuning(SST2, "normal")], (
        "of RTE the profile trains no random start"
    )
    five = needs(3, tasks="rte", profile="paper")
    assert [(need.init, need.seed_offset) for need in five] == [
        (init, at) for init in ("pretrained", "normal") for at in range(5)
    ]
    assert len(needs(3, tasks="rte", profile="paper", trainings=2)) == 4, "no more random starts"
    with pytest.raises(ValueError, match="trainings=1: notebook 3 compares trainings"):
        needs(3, trainings=1)
    six, appendix = (needs(number, tasks="sst2,rte", trainings=1) for number in (6, "6a"))
    assert six[:2] == [FineTuning(SST2), FineTuning(RTE)] and appendix[: len(six)] == six
    assert [(need.training.task, need.ablation) for need in six[2:]] == [
        (SST2, "uniform"),
        (RTE, "uniform"),
    ]
    assert [need.ablation for need in appendix[len(six) :]] == ["zero", "mean", "interchange"]
    assert needs("1a", tasks="sst2,rte") == needs(1, tasks="sst2,rte"), (
        "an appendix needs what its page needs"
    )
    assert len(needs(7, tasks="sst2,qqp", trainings=1)) == 2, "it sweeps no heads"


def test_a_task_begins_where_trainings_of_another_ended_in_turns():
    mnli = [FineTuning(TASKS["mnli"], seed_offset=at) for at in (0, 1)]
    five = [FineTuning(RTE, seed_offset=at, after=mnli[at % 2]) for at in range(5)]
    found = needs(1, profile="minilm", tasks="rte")
    assert [need for need in found if isinstance(need, FineTuning)] == [*mnli, *five]
    assert {need.model for need in found if isinstance(need, PassOf)} == {"pretrained", *five}, (
        "MNLI is not measured"
    )
    assert needs(0, profile="minilm", tasks="rte") == [mnli[0], five[0]]
    assert sorted(map(plan._turn, [*five, SweepOf(five[0]), *mnli])) == [0, 0, 1, 1, 1, 1, 1, 3]
    assert len(needs(1, profile="minilm", tasks="rte", trainings=2)) == 2 + 2 + 3, (
        "a number that is given is every task's"
    )
    counts = {
        task.name: resolve(profile="minilm").trainings_of(task)
        for task in resolve(profile="minilm").tasks
    }
    assert counts == {"mrpc": 5, "stsb": 3, "sst2": 3, "qqp": 2, "rte": 5, "mnli": 2}


@pytest.mark.usefixtures("stored_weights")
def test_the_encoder_of_the_task_before_is_what_a_training_begins_with(
    tiny_bert, tmp_path, monkeypatch
):
    from bertology_utils import finetune
    from bertology_utils.glue import load_rows
    from bertology_utils.models import load_classifier
    from bertology_utils.settings import Recipe, parse_data, parse_model

    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path))
    source, recipe = (
        parse_model(str(tiny_bert)),
        Recipe(1e-3, epochs=1, batch_size=8, max_length=16),
    )
    rows = {
        task: load_rows(task, "train", parse_data("embedded")).select(range(16))
        for task in (TASKS["mnli"], RTE)
    }
    first = finetune.Training(TASKS["mnli"], source, rows[TASKS["mnli"]], recipe)
    second = finetune.Training(RTE, source, rows[RTE], recipe, after=first)
    assert "after MNLI-m" in second.name and second.start.location == str(finetune.trained(first))
    begun, before = (load_classifier(of, RTE, seed=1).state_dict() for of in (second.start, source))
    ended = finetune.finetuned(first).state_dict()
    name = next(name for name in begun if name.endswith("layer.0.output.dense.weight"))
    assert torch.equal(begun[name], ended[name]) and not torch.equal(begun[name], before[name])
    alone = finetune.Training(RTE, source, rows[RTE], recipe)
    assert not torch.equal(
        finetune.finetuned(second).state_dict()[name], finetune.finetuned(alone).state_dict()[name]
    )


def test_a_given_checkpoint_is_swept_and_not_trained(tiny_bert, tiny_classifier):
    given = {
        "model": str(tiny_bert),
        "checkpoint": f"sst2={tiny_classifier}",
        "tasks": "sst2",
        "trainings": 1,
    }
    assert {type(need) for need in needs(6, **given)} == {SweepOf}
    assert needs(7, **given) == []
    both = needs(6, **given | {"tasks": "sst2,qqp", "trainings": 0})
    trained = [FineTuning(TASKS["qqp"], seed_offset=at) for at in (0, 1)]
    assert [need for need in both if isinstance(need, FineTuning)] == trained
    swept = [
        need.training for need in both if isinstance(need, SweepOf) and need.ablation == "uniform"
    ]
    assert swept == [FineTuning(SST2), *trained], "there is no second training of it"


def planned(tiny_bert, only, **parameters):
    return plan.plan(
        select(find_notebooks(), only), SMALL | {"model": str(tiny_bert)} | parameters, Lab
    )


def test_what_several_notebooks_need_is_planned_once_and_made_once(tiny_bert, capsys):
    found = planned(tiny_bert, "1,3,6a")
    titles = [item.title for item in found.items]
    assert (
        len(titles) == len(set(titles)) == 8
    )  # two trainings, a random start, two sweeps and three more ways
    assert [isinstance(item.need, SweepOf) for item in found.items] == [False] * 3 + [True] * 5, (
        "trainings first"
    )
    assert found.items[0].need.init == "normal", "which has more epochs, and so begins"
    shared = next(item for item in found.items if item.need == FineTuning(SST2))
    assert shared.notebooks == ("1_attention_patterns", "3_finetuning_drift", "6a_appendix")
    assert (
        found.text(2)
        == "to make: 3 trainings, 5 sweeps of heads; in the cache: 0; about 1 minute with 2 workers"
    )

    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    assert plan.carry_out([shared], 1) == []
    assert torch.get_num_threads() == 3, "this process keeps its threads"
    torch.set_num_threads(threads)
    again = planned(tiny_bert, "1,3,6a")
    assert (len(again.items), again.finished) == (7, 1) and shared.title not in [
        item.title for item in again.items
    ]
    assert "[1/1] SST-2, pretrained, seed 1: " in capsys.readouterr().err


def test_a_failure_sets_the_exit_code_and_notebooks_that_need_it_are_not_run(monkeypatch, capsys):
    monkeypatch.setattr("bertology_utils.finetune._check_finite", lambda *_: 1 / 0)
    code = cli.main(
        ["run", "--only", "1", "--jobs", "1", "-p", "tasks", "sst2", "-p", "train_examples", "8"]
    )
    assert code == 1
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "not run: 1_attention_patterns, since what it needs was not made",
        "error: SST-2, pretrained, seed 1: ZeroDivisionError: division by zero",
        "error: SST-2, pretrained, seed 2: ZeroDivisionError: division by zero",
    ]


def test_a_worker_refuses_what_does_not_fit(tiny_bert):
    item = planned(tiny_bert, "1").items[0]
    kind, key = item.entry
    other = replace(item, title="other", entry=(kind, key | {"versions": {"torch": "2.9.0"}}))
    (failure,) = plan.carry_out([other], 1)
    assert "would make something else than this run needs" in failure.problem


# On made-up items


def item(need, title):
    return Item(("1_x",), (), Lab, need, title, ("things", {"title": title}), 1, 1)


FIRST, SECOND = item(FineTuning(SST2), "first"), item(FineTuning(RTE), "second")
SWEEP = item(SweepOf(FineTuning(SST2)), "sweep of first")


@pytest.fixture
def world(monkeypatch):
    """What is made, in its order, and what befalls an item when it is made: "dies" once or always, or fails."""
    made, befalls = [], {}

    def make(item, run, cluster_cache):
        made.append(item.title)
        return 1.0, befalls.get(item.title) if "Error" in befalls.get(item.title, "") else None

    def work(make, items, jobs, scheduler, alone):
        for one in items:
            fate = befalls.get(one.title)
            dies = fate == "dies always" or (fate == "dies once" and not alone)
            yield one, None if dies else make(one)

    monkeypatch.setattr(plan, "make", make)
    monkeypatch.setattr(plan, "work", work)
    monkeypatch.setattr(plan, "is_finished", lambda kind, key: key["title"] in made)
    return made, befalls


def test_what_was_in_hand_when_a_worker_died_is_begun_again_alone(world, capsys):
    made, befalls = world
    befalls["first"] = "dies once"
    assert plan.carry_out([FIRST, SECOND, SWEEP], 2) == []
    assert made == ["second", "first", "sweep of first"]
    assert "a worker died; first is begun again, alone" in capsys.readouterr().err


def test_only_what_kills_its_worker_twice_is_given_up_and_sweeps_of_it_are_not_begun(world):
    made, befalls = world
    befalls["first"] = "dies always"
    problems = {
        failure.item.title: failure.problem for failure in plan.carry_out([FIRST, SECOND, SWEEP], 2)
    }
    assert problems == {"first": plan.DIED, "sweep of first": "the training that it needs failed"}
    assert made == ["second"]


def test_a_failing_item_stops_no_other(world, capsys):
    made, befalls = world
    befalls["first"] = "ValueError: no luck"
    failures = plan.carry_out([FIRST, SECOND], 1)
    assert [failure.problem for failure in failures] == ["ValueError: no luck"] and made == [
        "first",
        "second",
    ]
    assert "[1/2] first: failed, ValueError: no luck" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_to_is_refused_before_any_work(world, monkeypatch):
    def closed(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(plan.tempfile, "TemporaryFile", closed)
    with pytest.raises(PermissionError, match="something has to be made for this run"):
        plan.carry_out([FIRST], 1)
    assert plan.carry_out([], 1) == [] and world[0] == []


def test_trainings_that_do_not_fit_on_the_disk_are_refused_before_the_first(
    tiny_bert, own_cache, monkeypatch, capsys
):
    wanted = sum(path.stat().st_size for path in tiny_bert.glob("*.safetensors")) * 2
    assert 0.9 < sum(item.disk for item in planned(tiny_bert, "1").items) / wanted < 1, (
        "two trainings, without their heads"
    )
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=wanted // 2))
    call = ["prepare", "--only", "1", "-p", "model", str(tiny_bert), "-p", "tasks", "sst2"]
    assert cli.main(call) == 2
    refusal = capsys.readouterr().err
    assert f"the disk of the cache folder {own_cache}" in refusal and "BERTOLOGY_CACHE" in refusal
    assert not own_cache.exists(), "nothing was begun"


def test_notebook_0_comes_first_where_anything_has_to_be_made():
    one, three, zero, appendix = (
        next(nb for nb in find_notebooks() if nb.number == n) for n in ("1", "3", "0", "3a")
    )
    early = plan.Item((zero.name, one.name), (), Lab, FineTuning(SST2), "early", ("made", {}), 1, 1)
    late = plan.Item((three.name,), (), Lab, FineTuning(RTE), "late", ("made", {}), 1, 1)
    wanted = {zero.name: 1, one.name: 2, three.name: 3, appendix.name: 3}
    stages = plan.Plan((late, early), 0, wanted).stages([zero, one, appendix, three])
    assert stages == [([zero], [early]), ([three, one, appendix], [late])], (
        "an appendix finds what the page measured"
    )
    assert plan.Plan((), 2, wanted).stages([zero, one, three]) == [([three, one, zero], [])], (
        "warm, all side by side"
    )
    assert plan.Plan((early,), 0, wanted).stages([zero]) == [([zero], [early])]


def test_notebooks_that_look_at_the_same_maps_share_one_pass(tiny_bert, monkeypatch):
    """Of an encoder, two trainings and random weights; and each notebook finds all that it asks for."""
    found = planned(tiny_bert, "1,4,5", max_examples=8)
    passes = [item for item in found.items if isinstance(item.need, PassOf)]
    assert [len(item.notebooks) for item in sorted(passes, key=lambda item: item.title)] == [
        2,
        3,
        3,
        3,
    ]
    assert all(found.items.index(item) >= 2 for item in passes), "after the trainings"
    assert (
        plan.carry_out(found.items, 1) == []
        and planned(tiny_bert, "1,4,5", max_examples=8).items == ()
    )
    forward, seen = maps._forward, []
    monkeypatch.setattr(maps, "_forward", lambda *parts: seen.append(parts) or forward(*parts))
    for notebook in select(find_notebooks(), "1,4,5"):
        lab = Lab(
            notebook.name,
            **notebook.parameters | SMALL | {"model": str(tiny_bert), "max_examples": 8},
        )
        models = [
            lab.encoder(),
            *lab.finetunings(SST2),
            *([lab.encoder("normal")] if notebook.number != "1" else []),
        ]
        assert all(lab.look(model, SST2) for model in models)
    assert seen == []
    alone = planned(tiny_bert, "4", max_examples=8)
    assert alone.items == () and alone.finished == 2, (
        "a notebook by itself plans its trainings alone"
    )


@pytest.mark.parametrize(
    ("able", "said"),
    [({"avx512_bf16": True}, False), ({"avx2": True}, True), ({"bf16": True}, False)],
)
def test_a_processor_without_bf16_is_told_before_training(
    tiny_bert, monkeypatch, capsys, able, said
):
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: able)
    lab = Lab(
        "1_trial",
        profile="minilm",
        data="embedded",
        model=str(tiny_bert),
        tasks="sst2",
        train_examples=8,
    )
    plan.plan_of({"1_trial": lab}, {"1_trial": lab._parameters})
    assert ("no instructions for bf16" in capsys.readouterr().err) == said
