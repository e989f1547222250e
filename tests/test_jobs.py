"""What notebooks need, what of it is planned, and how it is carried out."""

import errno
import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from bertology_utils import __main__ as cli
from bertology_utils import jobs
from bertology_utils.glue import TASKS
from bertology_utils.jobs import TRAINING, jobs_of, with_needs
from bertology_utils.lab import Lab
from bertology_utils.run import find_notebooks, select
from bertology_utils.settings import PROFILES
from bertology_utils.workers import run_tasks

SST2, MRPC = TASKS["sst2"], TASKS["mrpc"]
SMALL = {"tasks": "sst2", "train_examples": 16, "sweep_examples": 12}
ONE = "{}, {}, seed {}"


def titles(number, **parameters):
    """Titles of the jobs that a notebook needs, without repeats."""
    lab = Lab(f"{number}_notebook", **{"train_examples": 8} | parameters)
    return list(dict.fromkeys(job.title for job in with_needs(jobs_of(lab))))


def runs(*tasks, of=2, init="pretrained"):
    return [f"{task}, {init}, seed {seed}" for task in tasks for seed in range(1, of + 1)]


def test_the_table_says_what_each_notebook_needs():
    both = runs("SST-2", "MRPC")
    assert (
        titles(0, tasks="sst2,mrpc") == both[:1]
        and titles(0, tasks="stsb,mrpc") == runs("MRPC")[:1]
    )
    assert titles(2) == titles(10) == []


@pytest.fixture
def after_sst2(monkeypatch, tiny_bert):
    """Parameters with which MRPC continues from SST-2, as RTE does from MNLI in the run on GLUE."""
    profile = replace(PROFILES["glue"], data="embedded", tasks="mrpc", after={"mrpc": "sst2"})
    monkeypatch.setitem(PROFILES, "glue", profile)
    return {"model": str(tiny_bert), "profile": "glue"}


@pytest.fixture
def one_needs_all_runs(monkeypatch):
    """A notebook 1 that needs every run of each task, which of the present ones none does alone."""
    monkeypatch.setitem(jobs.NEEDS, "1", (jobs.all_runs,))


@pytest.mark.usefixtures("one_needs_all_runs")
def test_a_task_continues_from_runs_of_another_in_turns(after_sst2):
    after = [f"MRPC, after SST-2, seed {seed}" for seed in range(1, 6)]
    before = runs("SST-2", of=3)
    assert set(titles(1, **after_sst2)) == {*after, *before}
    lab = Lab("1_notebook", **after_sst2, train_examples=8)
    reads = {job.title: [one.title for one in job.needs] for job in jobs_of(lab)}
    assert reads == {title: [before[at % 3]] for at, title in enumerate(after)}
    assert len(titles(1, **after_sst2, trainings=2)) == 2 + 2, (
        "a number that is given is every task's"
    )


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
        for task in (SST2, MRPC)
    }
    first = finetune.Training(SST2, source, rows[SST2], recipe)
    second = finetune.Training(MRPC, source, rows[MRPC], recipe, after=first)
    assert "after SST-2" in second.name and second.start.location == str(finetune.trained(first))
    begun, before = (
        load_classifier(of, MRPC, seed=1).state_dict() for of in (second.start, source)
    )
    ended = finetune.finetuned(first).state_dict()
    name = next(name for name in begun if name.endswith("layer.0.output.dense.weight"))
    assert torch.equal(begun[name], ended[name]) and not torch.equal(begun[name], before[name])


@pytest.mark.usefixtures("one_needs_all_runs")
def test_a_given_checkpoint_is_not_trained(tiny_bert, tiny_classifier):
    given = {"model": str(tiny_bert), "checkpoint": f"sst2={tiny_classifier}", "tasks": "sst2"}
    assert titles(1, **given) == titles(0, **given | {"tasks": "sst2,mrpc"}) == []
    assert titles(1, **given | {"tasks": "sst2,mrpc"}) == runs("MRPC")


@pytest.mark.usefixtures("one_needs_all_runs")
def test_a_checkpoint_of_the_task_before_is_what_a_task_continues_from(after_sst2, tiny_classifier):
    """It was ignored: the suite fine-tuned a model of that task itself, outside the plan."""
    given = {"tasks": "mrpc,sst2", "checkpoint": f"sst2={tiny_classifier}"}
    lab = Lab("1_notebook", **after_sst2, **given, train_examples=8)
    assert {job.title for job in with_needs(jobs_of(lab))} == set(runs("MRPC", of=5))
    assert lab.training(MRPC).start.location == str(tiny_classifier)


def test_a_checkpoint_is_refused_where_other_runs_are_needed(tiny_bert, tiny_classifier):
    given = {"model": str(tiny_bert), "checkpoint": f"sst2={tiny_classifier}", "tasks": "sst2"}
    with pytest.raises(ValueError, match="checkpoint: notebook"):
        titles(10, **given)


def kinds(plan):
    return [order.kind for order in plan.orders.values()]


def planned(tiny_bert, only, **parameters):
    values = SMALL | {"model": str(tiny_bert)} | parameters
    return jobs.plan_jobs(select(find_notebooks(), only), values)


def carry_out(plan, only=None):
    """What went wrong, by title."""
    tasks = {name: task for name, task in plan.tasks().items() if only in (None, name)}
    ended = [(name, jobs.explain(plan, name, error)) for name, _, error in run_tasks(tasks, None)]
    return {plan.orders[name].title: problem for name, problem in ended if problem}


def test_what_several_notebooks_need_is_planned_once_and_made_once(tiny_bert):
    plan = planned(tiny_bert, "0,10")
    assert kinds(plan) == [TRAINING] * 13
    assert plan.describe() == "to make: 13 fine-tuning runs; in the cache: 0"
    shared = next(name for name, one in plan.orders.items() if one.title == runs("SST-2")[0])
    assert all(shared in needed for needed in plan.notebooks.values())

    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    assert carry_out(plan, shared) == {}
    assert torch.get_num_threads() == 3, "this process keeps its threads"
    torch.set_num_threads(threads)
    again = planned(tiny_bert, "0,10")
    assert shared not in again.orders and len(again.orders) == 12 and again.finished == 1


def test_a_failure_sets_the_exit_code_and_notebooks_that_need_it_are_not_run(monkeypatch, capsys):
    monkeypatch.setattr("bertology_utils.finetune._check_finite", lambda *_: 1 / 0)
    call = ["run", "--only", "0", "--jobs", "1", "-p", "tasks", "sst2", "-p", "train_examples", "8"]
    assert cli.main(call) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "error: SST-2, pretrained, seed 1: ZeroDivisionError: division by zero",
        "not run: 0_attention_head, since what it needs was not made",
    ]


def test_a_worker_refuses_what_does_not_fit(tiny_bert):
    plan = planned(tiny_bert, "0")
    name, order = next(iter(plan.orders.items()))
    kind, key = order.place
    other = replace(order, place=(kind, key | {"versions": {"torch": "2.9.0"}}))
    problems = carry_out(replace(plan, orders={name: other}))
    assert "would make something else than this run needs" in problems[order.title]


def test_a_worker_that_lives_on_makes_what_a_changed_file_asks_for(tiny_bert, tmp_path):
    """Workers of a cluster keep the labs that they opened for the run before."""
    rows = "sentence\tlabel\n" + "good\t1\nbad\t0\n" * 4
    (tmp_path / "SST-2").mkdir()
    for text in (rows, rows + "fine\t1\n"):
        for name in ("train.tsv", "dev.tsv"):
            (tmp_path / "SST-2" / name).write_text(text)
        plan = planned(tiny_bert, "0", data=f"folder:{tmp_path}", trainings=1)
        assert len(plan.orders) == 1 and carry_out(plan) == {}


def test_what_was_made_elsewhere_than_in_the_cache_is_told(tiny_bert):
    plan = planned(tiny_bert, "0")
    assert "do all workers see the same one?" in jobs.explain(plan, next(iter(plan.orders)), None)


def test_a_cache_that_cannot_be_written_to_is_refused_before_any_work(tiny_bert, monkeypatch):
    plan = planned(tiny_bert, "0")

    def closed(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(jobs.tempfile, "TemporaryFile", closed)
    with pytest.raises(PermissionError, match="something has to be made for this run"):
        plan.tasks()
    assert replace(plan, orders={}).tasks() == {}


def test_runs_that_do_not_fit_on_the_disk_are_refused_before_the_first(
    tiny_bert, own_cache, monkeypatch, capsys
):
    wanted = sum(path.stat().st_size for path in tiny_bert.glob("*.safetensors"))
    call = ["prepare", "--only", "0", "-p", "model", str(tiny_bert), "-p", "tasks", "sst2"]
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=wanted))
    assert planned(tiny_bert, "0").orders, "heads apart, one run takes just that"
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0.9 * wanted))
    assert cli.main(call) == 2
    refusal = capsys.readouterr().err
    assert f"folder {own_cache}" in refusal and "BERTOLOGY_CACHE" in refusal
    assert not own_cache.exists(), "nothing was begun"


def test_notebook_0_comes_first(tiny_bert):
    plan = planned(tiny_bert, "0,10")
    chosen = select(find_notebooks(), "0,10")
    order = [notebook.number for notebook in sorted(chosen, key=plan.turn_of)]
    assert order == ["0", "10"]
    first = next(iter(plan.orders))
    assert plan.notebooks["0_attention_head"] == {first}, "what it needs is made first, too"


def test_no_lab_is_held_after_its_notebook(tiny_bert, monkeypatch):
    """functools.cache on its methods held every lab, with rows and annotation, for ever."""
    lab = Lab("0_attention_head", **SMALL | {"model": str(tiny_bert)})
    assert lab.batches(SST2) and lab.annotated_inputs(SST2)
    seen = weakref.ref(lab)
    del lab
    gc.collect()
    assert seen() is None
    lab = Lab("0_attention_head", **SMALL | {"model": str(tiny_bert), "train_examples": 8})
    monkeypatch.setattr(jobs, "count_workers", lambda *_: 1)  # in this process
    seen = weakref.ref(lab)
    jobs.prepare(lab)
    del lab
    gc.collect()
    assert seen() is None and jobs.open_lab.cache_info().currsize == 0
