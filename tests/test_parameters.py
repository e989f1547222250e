"""Wrong parameters are refused at once, with the choices; the command line and the notebooks agree."""

import json
import subprocess
import sys
import time

import pytest
from conftest import ROOT

from bertology_utils import __main__ as cli
from bertology_utils.common import numbering
from bertology_utils.glue.tasks import TASKS, get_task, parse_tasks
from bertology_utils.suite import notebooks, parameters, run

WRONG = [
    (["--profile", "huge"], "unknown profile 'huge'; choose one of: embedded, minilm, paper"),
    (["-p", "tasks", "mrpc,cola"], "unknown task 'cola'; choose one of: mrpc, stsb, sst2, qqp, rte, qnli, mnli"),
    (["-p", "tasks", ","], "no task named in ','"),
    (["-p", "model", "bert"], "unknown model 'bert'; choose 'embedded', the path of an existing folder, or a Hub name"),
    (["-p", "data", "web"], "unknown data source 'web'; choose one of: embedded, hub, folder:PATH"),
    (["-p", "data", "folder:/nowhere/at/all"], "no folder"),
    (["-p", "protocol", "mine"], "unknown protocol 'mine'; choose one of: paper, official"),
    (["-p", "layer", "7", "-p", "head", "1"], "unknown layer 7; layers are counted from 1 to 6"),
    (["-p", "layer", "1", "-p", "head", "13"], "unknown head 13; heads are counted from 1 to 12"),
    (["-p", "layer", "1"], "unknown head 0; heads are counted from 1 to 12"),
    (["--profile", "paper", "-p", "layer", "13", "-p", "head", "1"], "unknown layer 13; layers are counted from 1 to 12"),
    (["--profile", "paper", "-p", "layer", "5"], "unknown head 0"),
    (["-p", "seed", "2", "-p", "seed", "3"], "seed is given twice"),
    (["-p", "seeed", "1"], "unknown parameter 'seeed'; choose one of: "),
    (["-p", "seed", "one"], "seed='one' is not of type int"),
    (["-p", "seed", "-1"], "seed=-1 is out of range; it is a whole number from 0"),
    (["-p", "max_examples", "1.5"], "max_examples='1.5' is not of type int"),
    (["-p", "framenet", "web"], "unknown framenet 'web'; choose one of: embedded, nltk, folder:PATH, zip:PATH"),
    (["-p", "framenet", "folder:/nowhere/at/all"], "there is no folder"),
    (["-p", "direction", "up"], "unknown direction 'up'; choose one of: predicate to element, element to predicate, both"),
    (["-p", "nearest", "-1"], "nearest=-1 is out of range"),
    (["-p", "train_files", "mnli=x.tsv"], "needs data='folder:PATH'"),
    (["--only", "9"], "unknown notebook '9'; choose one of: "),
    (["--profile", "paper", "-p", "profile", "embedded"], "profile is given twice"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
@pytest.mark.parametrize("command", ["run", "check"])
def test_wrong_calls_end_before_a_kernel_starts(command, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(run, "run_notebook", lambda *_: pytest.fail("a kernel was started"))
    assert cli.main([command, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_call_is_refused_within_five_seconds():
    start = time.monotonic()
    call = [sys.executable, "-m", "bertology_utils", "run", "-p", "tasks", "cola"]
    result = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    assert "choose one of" in result.stderr
    assert time.monotonic() - start < 5


def test_checks_do_not_import_torch():
    code = "import sys, bertology_utils.__main__ as cli; cli.main(['check']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True).returncode == 0


def test_list_and_check(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert cli.main(["list"]) == 0
    listed = capsys.readouterr().out
    assert "3  3 · Fine-tuning drift" in listed
    assert "seed (int) = 1" in listed
    assert cli.main(["check", "--only", "3", "--profile", "minilm", "-p", "tasks", "STS-B"]) == 0
    assert "ready to run 3_finetuning_drift" in capsys.readouterr().out


def test_a_pipeline_that_is_missing_is_named_before_anything_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("bertology_utils.glue.sources.find_spec", lambda name: None)
    assert cli.main(["check", "--profile", "minilm"]) == 2
    assert "python -m spacy download en_core_web_sm" in capsys.readouterr().err
    assert cli.main(["check"]) == 0


def test_paths_mean_the_same_in_the_kernel(tmp_path, monkeypatch):
    """The kernel works in notebooks/, so a relative folder has to be made absolute before."""
    (tmp_path / "glue").mkdir()
    found = notebooks.Notebook(tmp_path / "1_x.ipynb", "x", {"data": "", "seed": 1})
    monkeypatch.chdir(tmp_path)
    values = run.check_parameters([found], {"data": "folder:glue", "seed": "1"})
    assert values == {"data": f"folder:{tmp_path / 'glue'}"}, "the default seed is no change"
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "bank.conllu").touch()
    found = notebooks.Notebook(tmp_path / "1_x.ipynb", "x", {"annotation": ""})
    for kind, name in (("spacy", "pipeline"), ("conllu", "bank.conllu")):
        values = run.check_parameters([found], {"annotation": f"{kind}:{name}"})
        assert values == {"annotation": f"{kind}:{tmp_path / name}"}


def test_unmet_requirements_are_named(monkeypatch):
    assert cli.unmet_requirements() == []
    monkeypatch.setattr(cli.metadata, "requires", lambda name: ["numpy>=99", "no-such-package", "x; extra == 'test'"])
    assert [problem.split(" is needed")[0] for problem in cli.unmet_requirements()] == ["numpy>=99", "no-such-package"]


def test_in_place_is_for_default_settings_only(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert cli.main(["run", "--in-place", "-p", "seed", "2"]) == 2
    assert "default settings only" in capsys.readouterr().err


@pytest.mark.parametrize("given", [{"seed": "1"}, {"seed": True}, {"seed": 1.0}, {"tasks": None}])
def test_types_are_strict(given):
    with pytest.raises(TypeError, match="is wanted"):
        parameters.resolve(**given)


def test_empty_means_the_profiles():
    settings = parameters.resolve(profile="embedded", model="", data="", max_examples=0, layer=0, head=0)
    assert (settings.model.name, settings.data.kind, settings.max_examples, settings.head) == ("embedded", "embedded", 1000, None)
    assert parameters.resolve(layer=6, head=12).head == (5, 11)


def test_every_notebook_declares_known_parameters_only(monkeypatch):
    monkeypatch.chdir(ROOT)
    for notebook in notebooks.find_notebooks():
        assert set(notebook.parameters) <= set(parameters.KNOWN)
        parameters.resolve(**notebook.parameters)


@pytest.mark.parametrize("cells", [[], ["x = 1", "y = 2"]])
def test_one_parameters_cell_is_wanted(tmp_path, cells):
    path = tmp_path / "1_x.ipynb"
    made = [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": [cell]} for cell in cells]
    path.write_text(json.dumps({"cells": made}))
    with pytest.raises(ValueError, match="one is wanted"):
        notebooks.read_notebook(path)


def test_tasks_in_any_spelling():
    assert get_task("STS-B") is get_task("stsb") is TASKS["stsb"]
    assert get_task("MNLI-m") is TASKS["mnli"]
    assert [task.name for task in parse_tasks("rte, MRPC,rte")] == ["rte", "mrpc"]
    assert len(parse_tasks("all")) == 7


@pytest.mark.parametrize("number", [0, 7, -1, True, 1.0, "1"])
def test_layers_are_counted_from_one_to_six(number):
    with pytest.raises(ValueError, match="counted from 1 to 6"):
        numbering.to_code(number, 6)


def test_people_and_code_agree():
    assert [numbering.to_code(number, 12) for number in numbering.axis_numbers(12)] == list(range(12))
    assert numbering.head_name(5, 11) == "(6, 12)"
