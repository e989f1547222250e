"""The plan of trainings and sweeps: what is in it, what it costs, what it refuses."""

import pytest
from conftest import ROOT

from bertology_utils import __main__ as cli
from bertology_utils.common import cache
from bertology_utils.disabling.needs import SweepOf, compared
from bertology_utils.encoders import cost
from bertology_utils.encoders.needs import FineTuning
from bertology_utils.glue.tasks import TASKS
from bertology_utils.suite.notebooks import find_notebooks, select
from bertology_utils.suite.parameters import resolve
from bertology_utils.suite.work import estimates, forecast, machine, plan
from bertology_utils.suite.work.needs import needs_of

SMALL = {"tasks": "sst2,rte", "train_examples": 8, "sweep_examples": 8, "trainings": 2}


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def needs(notebook, **parameters):
    return needs_of(notebook, resolve(**parameters))


def test_each_section_declares_what_its_notebook_needs():
    sst2, rte = TASKS["sst2"], TASKS["rte"]
    for notebook in ("1_attention_patterns", "4_feature_attention", "5_token_to_token"):
        assert needs(notebook, tasks="sst2,rte") == [
            FineTuning(task, seed_offset=at) for task in (sst2, rte) for at in (0, 1)
        ]
    assert needs("0_attention_head", tasks="sst2,rte") == [FineTuning(sst2)]
    assert needs("0_attention_head", tasks="stsb,rte") == [FineTuning(rte)]
    assert needs("0_attention_head", tasks="stsb") == []
    assert needs("2_framenet_heads") == []
    assert needs("3_finetuning_drift", tasks="sst2,rte") == [
        *(FineTuning(task, seed_offset=at) for task in (sst2, rte) for at in (0, 1)),
        FineTuning(sst2, "normal"),  # of RTE the profile trains none
    ]
    five = needs("3_finetuning_drift", tasks="rte", profile="paper")
    assert [(need.init, need.seed_offset) for need in five] == [
        (init, at) for init in ("pretrained", "normal") for at in range(5)
    ]
    assert len(needs("3_finetuning_drift", tasks="rte", profile="paper", trainings=2)) == 4, "no more random starts"
    with pytest.raises(ValueError, match="trainings=1: notebook 3 compares trainings"):
        needs("3_finetuning_drift", trainings=1)
    disabling = needs("6_disabling_heads", tasks="sst2,rte", trainings=1)
    assert disabling[:2] == [FineTuning(sst2), FineTuning(rte)]
    assert [(need.training.task, need.ablation) for need in disabling[2:]] == [
        (sst2, "uniform"),
        (rte, "uniform"),
        (sst2, "zero"),
        (sst2, "mean"),
        (sst2, "interchange"),
    ]
    assert compared((sst2, rte), "paper") == (sst2, rte)


def test_what_several_notebooks_need_is_planned_once_and_not_what_the_cache_has():
    notebooks = select(find_notebooks(), "1,3,6")
    small = {name: value for name, value in SMALL.items() if name != "trainings"}
    found = plan.plan(notebooks, small)
    titles = [item.title for item in found.items]
    assert len(titles) == len(set(titles)) == 12  # 2 tasks × 2 trainings, a random start of one, 2 × 2 + 3 sweeps
    assert [isinstance(item.need, SweepOf) for item in found.items] == [False] * 5 + [True] * 7, "trainings first"
    takes = {item.title: item.seconds for item in found.items}
    assert takes["SST-2, normal, seed 1"] > takes["SST-2, pretrained, seed 1"], "a random start has more epochs"
    shared = next(item for item in found.items if item.title == "RTE, pretrained, seed 1")
    assert shared.notebooks == ("1_attention_patterns", "3_finetuning_drift", "6_disabling_heads")
    assert "to make: 5 trainings, 7 sweeps of heads; in the cache: 0; about" in found.text(2)

    folder = cache.cache_folder() / shared.kind / cache.digest(shared.key)[:32]
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    again = plan.plan(notebooks, small)
    assert (len(again.items), again.finished) == (11, 1)
    assert shared.title not in [item.title for item in again.items]


def test_a_given_checkpoint_is_swept_and_not_trained(tmp_path, tiny_bert):
    from bertology_utils.encoders.models import load_classifier, load_tokenizer
    from bertology_utils.encoders.sources import parse_model

    source = parse_model(str(tiny_bert))
    load_classifier(source, TASKS["sst2"]).save_pretrained(tmp_path)
    load_tokenizer(source).save_pretrained(tmp_path)
    given = {"model": str(tiny_bert), "checkpoint": f"sst2={tmp_path}", "tasks": "sst2", "trainings": 1}
    assert all(isinstance(need, SweepOf) for need in needs("6_disabling_heads", **given))
    once = SweepOf(FineTuning(TASKS["sst2"]))
    assert needs("7_what_attention_weighs", **given) == [once], "there is no second training of it"
    assert needs("7_what_attention_weighs", **given | {"tasks": "sst2,qqp", "trainings": 0}) == [
        *(FineTuning(TASKS["qqp"], seed_offset=at) for at in (0, 1)),
        once,
    ]


def test_costs_grow_as_they_should():
    small = cost.Size(6, 12, 384, 1536, 30522)
    base = cost.Size(12, 12, 768, 3072, 30522)
    assert base.matrices == 12 * 12 * 768**2
    one = cost.of_training(small, 1000, 30, 2, 32, 64)
    assert cost.of_training(small, 2000, 30, 2, 32, 64).operations == 2 * one.operations
    assert cost.of_training(base, 1000, 30, 2, 32, 64).memory > one.memory > 4 * 4 * small.weights
    assert cost.of_sweep(small, 100, 30, 4096).operations == 13 * 3 * 2 * small.matrices * 3000


def test_mixed_precision_halves_what_the_backward_pass_keeps_and_copies_the_weights():
    base = cost.Size(12, 12, 768, 3072, 30522)
    single, mixed = (cost.of_training(base, 1000, 30, 2, 32, 128, mixed) for mixed in (False, True))
    assert single.operations == mixed.operations
    activations = single.held - 16 * base.weights  # weights, gradients and two moments, of 4 bytes each
    assert mixed.held == 18 * base.weights + activations / 2


def test_the_plan_of_a_gpu(monkeypatch):
    """Device facts are made up: no GPU is needed."""
    asked = []
    monkeypatch.setattr(machine, "gpus", lambda: 1)
    monkeypatch.setattr(machine, "gpu_memory", lambda: 15 * 2**30)
    monkeypatch.setattr(estimates, "precision", lambda: "fp16")
    speeds = {"float32": 4e12, "fp16": 3e13}
    monkeypatch.setattr(
        machine, "operations_per_second", lambda precision="float32": asked.append(precision) or speeds[precision]
    )
    found = plan.plan(select(find_notebooks(), "6"), SMALL)
    assert sorted(asked) == ["float32", "fp16"], "each measured once"
    training, sweep = found.items[0].takes, found.items[-1].takes
    # 8 rows are a step in each of two epochs, and no step is faster than its kernels are started
    assert training.seconds == estimates.STARTUP + 2 * estimates.STEP_ON_GPU
    assert training.memory == sweep.memory == cost.WITH_GPU
    assert training.on_gpu > cost.ON_GPU + 18 * 22e6
    assert "GiB, and " in found.text(1) and " of the GPU's 15.0 GiB; at most " in found.text(1)
    monkeypatch.setattr(machine, "gpu_memory", lambda: 2**28)
    assert "of the GPU's 0.2 GiB, which is too little: choose a smaller model" in found.text(1)


def test_the_plan_counts_the_disk(monkeypatch):
    found = plan.plan(select(find_notebooks(), "6"), SMALL)
    trainings = [item.takes for item in found.items if isinstance(item.need, FineTuning)]
    assert len(trainings) == 4 and len({one.kept for one in trainings}) == 1
    assert found.disk(2) == 4 * trainings[0].kept + 2 * 6 * trainings[0].kept  # each worker: two points of three copies
    monkeypatch.setattr(machine, "free_disk", lambda folder: 7 * 2**30)
    assert found.text(2).endswith("GiB of disk, 7 GiB are free")


def test_what_glue_takes_of_a_t4_is_known_beforehand():
    names = [notebook.name for notebook in find_notebooks()]

    def said(**parameters):
        return forecast.on_t4({name: resolve(**parameters) for name in names})

    assert "16 trainings and 18 sweeps" in said(profile="colab") and "about 0.7 hours" in said(profile="colab")
    assert "70 trainings and " in said(profile="paper"), "seven tasks, two starts, five seeds"
    assert said() == "" == said(profile="paper", data="embedded")
    assert [task.name for task in resolve(profile="colab").tasks] == ["mrpc", "stsb", "sst2", "rte"]
    assert [task.name for task in resolve(profile="colab", tasks="qnli").tasks] == ["qnli"]


def test_more_workers_than_memory_allows_are_refused_before_anything_is_made(monkeypatch, capsys):
    monkeypatch.setattr(machine, "free_memory", lambda: 5 * 2**30)
    with pytest.raises(ValueError, match=r"9 workers of about 2.0 GiB do not fit into the 5.0 GiB .* --jobs 2 or fewer"):
        plan.jobs_for(2 * 2**30, 9)
    assert plan.jobs_for(2 * 2**30, 2) == 2
    monkeypatch.setattr(machine, "cores", lambda: 64)
    monkeypatch.setattr(machine, "gpus", lambda: 0)
    assert plan.jobs_for(2 * 2**30) == 2
    monkeypatch.setattr(machine, "gpus", lambda: 1)
    assert plan.jobs_for(2 * 2**30) == 1
    monkeypatch.setattr(machine, "gpus", lambda: 2)
    with pytest.raises(ValueError, match="3 workers and 2 GPUs: each worker takes one; choose --jobs 2"):
        plan.jobs_for(2**30, 3)
    monkeypatch.setattr(machine, "gpus", lambda: 0)
    code = cli.main(["prepare", "--only", "1", "--jobs", "500", "-p", "tasks", "sst2", "-p", "train_examples", "8"])
    assert code == 2
    assert "500 workers of about" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["-1", "two", "1.5"])
def test_a_wrong_number_of_workers_is_refused(jobs, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["run", "--jobs", jobs])
    assert "whole number from 0" in capsys.readouterr().err


def test_the_speed_of_this_machine_is_a_number_of_its_kind():
    assert 1e8 < machine.operations_per_second(0.02) < 1e16
    assert machine.cores() >= 1
    assert machine.free_memory() > 0


def test_as_many_test_processes_as_memory_allows(monkeypatch):
    from bertology_utils.suite import nbval_plugin

    monkeypatch.setattr(machine, "cores", lambda: 16)
    monkeypatch.setattr(machine, "free_memory", lambda: 8 * 2**30)
    assert nbval_plugin.pytest_xdist_auto_num_workers(None) == 3
    monkeypatch.setattr(machine, "free_memory", lambda: 2**30)
    assert nbval_plugin.pytest_xdist_auto_num_workers(None) == 1
