"""Wrong parameters are refused at once, with the choices; the command line and the notebooks agree."""

import ast
import json
import re
import subprocess
import sys
import time
from dataclasses import fields, replace

import numpy as np
import papermill
import pytest
import safetensors.numpy
from conftest import ROOT

from bertology_utils import __main__ as cli
from bertology_utils.annotation.sources import parse_annotation
from bertology_utils.common import numbering
from bertology_utils.common.profiles import PROFILES, Profile
from bertology_utils.glue.sources import DataSource
from bertology_utils.glue.tasks import TASKS, get_task, parse_tasks
from bertology_utils.suite import check, notebooks, parameters, requirements, results, run
from bertology_utils.suite.declarations import PARAMETERS, convert, parameters_cell

WRONG = [
    (["--profile", "huge"], "unknown profile 'huge'; choose one of: embedded, minilm, paper, colab, bert-forward"),
    (["-p", "tasks", "mrpc,cola"], "unknown task 'cola'; choose one of: mrpc, stsb, sst2, qqp, rte, qnli, mnli"),
    (["-p", "tasks", ","], "no task named in ','"),
    (["-p", "model", "bert"], "unknown model 'bert'; choose 'embedded', the path of an existing folder, or a Hub name"),
    (["-p", "data", "web"], "unknown data source 'web'; choose one of: embedded, hub, folder:PATH"),
    (["-p", "data", "folder:/nowhere/at/all"], "no folder"),
    (["-p", "protocol", "mine"], "unknown protocol 'mine'; choose one of: paper, official"),
    (["-p", "layer", "7", "-p", "head", "1"], "unknown layer 7; layers are counted from 1 to 6"),
    (["-p", "layer", "1", "-p", "head", "13"], "unknown head 13; heads are counted from 1 to 12"),
    (["-p", "layer", "2"], "layer=2 without head: give both, counted from 1, or neither"),
    (["-p", "head", "2"], "head=2 without layer: give both"),
    (["--profile", "paper", "-p", "layer", "13", "-p", "head", "1"], "unknown layer 13; layers are counted from 1 to 12"),
    (["-p", "seed", "2", "-p", "seed", "3"], "seed is given twice"),
    (["-p", "seeed", "1"], "unknown parameter 'seeed'; choose one of: "),
    (["-p", "seed", "one"], "seed='one' is not of type int"),
    (["-p", "seed", "-1"], "seed=-1 is out of range; it is a whole number from 0"),
    (["-p", "seed", "all"], "seed='all' is not of type int"),
    (["-p", "max_examples", "-2"], "max_examples=-2 is out of range; it is a whole number from -1 (-1 means all)"),
    (["-p", "max_examples", "1.5"], "max_examples='1.5' is not of type int"),
    (["-p", "framenet", "web"], "unknown framenet 'web'; choose one of: embedded, nltk, folder:PATH, zip:PATH"),
    (["-p", "framenet", "folder:/nowhere/at/all"], "there is no folder"),
    (["-p", "direction", "up"], "unknown direction 'up'; choose one of: predicate to element, element to predicate, both"),
    (["-p", "nearest", "-1"], "nearest=-1 is out of range"),
    (["-p", "train_files", "mnli=x.tsv"], "needs data='folder:PATH'"),
    (["--only", "99"], "unknown notebook '99'; choose one of: "),
    (["--only", "3-1"], "unknown notebook '3-1'; choose one of: "),
    (["--only", "1,x"], "unknown notebook 'x'; choose one of: "),
    (["-p", "checkpoint", "sst2"], "checkpoint: 'sst2' is not TASK=PLACE, for example sst2=PATH/TO/FOLDER"),
    (["-p", "checkpoint", "sst2=/nowhere/at/all"], "checkpoint: there is no folder /nowhere/at/all for SST-2"),
    (["-p", "data", "folder:tests"], "MRPC has no .tsv file"),
    (
        ["--only", "4", "-p", "data", "folder:tests", "-p", "annotation", "gold"],
        "annotation='gold' goes with data='embedded' only",
    ),
    (["-p", "annotation", "conllu:figures/1_attention_patterns/results.json"], "results.json is not a CoNLL-U file"),
    (["-p", "framenet", "folder:tests"], "is no FrameNet release: it has none of frameIndex.xml"),
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
    assert "seed (int) = 1: of every random draw" in listed
    assert "sweep_examples (int) = 0: dev rows on which heads are disabled; 0: the profile's; -1: all (embedded" in listed
    assert cli.main(["list", "--only", "3"]) == 0
    assert [line[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "] == ["3"]
    assert cli.main(["list", "--only", "3-1"]) == 2
    capsys.readouterr()
    assert cli.main(["check", "--only", "3", "--profile", "minilm", "-p", "tasks", "STS-B"]) == 0
    assert "ready to run 3_finetuning_drift" in capsys.readouterr().out


def test_help_names_every_parameter_with_its_meaning(capsys):
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    text = capsys.readouterr().out
    for name, parameter in PARAMETERS.items():
        assert f"{name} ({parameter.kind.__name__}): {parameter.help()}" in text


def test_a_value_is_dropped_only_where_it_changes_no_notebook(capsys, monkeypatch):
    """Notebook 6 has other defaults than the rest: what is its default is no default of the others."""
    monkeypatch.chdir(ROOT)
    assert cli.main(["check", "-p", "tasks", "mrpc,stsb,sst2,rte"]) == 0
    assert "with tasks='mrpc,stsb,sst2,rte'\n  2_framenet_heads: takes no tasks" in capsys.readouterr().out
    assert cli.main(["check", "--only", "2,6", "--profile", "minilm", "-p", "framenet", "embedded"]) == 0
    assert "framenet='embedded'" in capsys.readouterr().out
    assert cli.main(["check", "--only", "6", "-p", "tasks", "mrpc,stsb,sst2,rte", "-p", "seed", "1"]) == 0
    assert "with default settings" in capsys.readouterr().out


def test_what_only_the_hub_knows_is_not_called_ready(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert cli.main(["check", "--only", "1-3", "-p", "model", "google-bert/bert-base-uncasedd"]) == 0
    assert "not checked: the model google-bert/bert-base-uncasedd on the Hub" in capsys.readouterr().out
    assert cli.main(["check", "--only", "3", "--profile", "minilm"]) == 0
    assert "not checked: the data set nyu-mll/glue on the Hub" in capsys.readouterr().out
    assert cli.main(["check"]) == 0
    assert "not checked" not in capsys.readouterr().out


HEADER = b'{"a": {"dtype": "F32", "data_offsets": [0, 0]}}'
WITHOUT_SHAPES = len(HEADER).to_bytes(8, "little") + HEADER
CONFIG = '{"model_type": "bert", "num_hidden_layers": 3, "num_attention_heads": 4}'


@pytest.mark.parametrize(
    ("config", "weights", "message"),
    [
        ("[]", None, "config.json describes no model"),
        (CONFIG[:20], None, "config.json cannot be read"),
        (CONFIG, b"<html>not found</html>", "model.safetensors is not a SafeTensors file"),
        (CONFIG, b"", "model.safetensors is not a SafeTensors file"),
        (CONFIG, WITHOUT_SHAPES, "model.safetensors is not a SafeTensors file"),
        (CONFIG, "cut off", "model.safetensors has"),
    ],
)
def test_a_damaged_model_folder_is_refused_by_the_files_name(tmp_path, config, weights, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    whole = safetensors.numpy.save({"a": np.zeros((2, 3), np.float32)})
    (tmp_path / "config.json").write_text(config)
    content = {None: whole, "cut off": whole[:-1]}.get(weights, weights)
    (tmp_path / "model.safetensors").write_bytes(content)
    for head in ([], ["-p", "layer", "1", "-p", "head", "1"]):
        assert cli.main(["check", "--only", "3", "-p", "model", str(tmp_path), *head]) == 2
        assert f"{tmp_path}/{message}" in capsys.readouterr().err


def test_half_a_framenet_release_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "lu").mkdir()
    assert cli.main(["check", "--only", "2", "-p", "framenet", f"folder:{tmp_path}"]) == 2
    assert "lacks frameIndex.xml" in capsys.readouterr().err
    (tmp_path / "x.zip").write_bytes(b"no zip")
    assert cli.main(["check", "--only", "2", "-p", "framenet", f"zip:{tmp_path / 'x.zip'}"]) == 2
    assert "no zip archive" in capsys.readouterr().err


def test_home_is_understood_in_every_path(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "bank.conllu").touch()
    (tmp_path / "fn").mkdir()
    assert parse_annotation("conllu:~/bank.conllu") == ("conllu", str(tmp_path / "bank.conllu"))
    assert parameters.resolve(framenet="folder:~/fn").framenet == f"folder:{tmp_path / 'fn'}"
    found = parameters.resolve(data="folder:~", train_files="mrpc=~/mine.tsv").data
    assert found == DataSource("folder", tmp_path, (("mrpc", str(tmp_path / "mine.tsv")),))


def test_a_pipeline_that_is_missing_is_named_before_anything_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("bertology_utils.annotation.sources.find_spec", lambda name: None)
    assert cli.main(["check", "--profile", "minilm"]) == 2
    assert "python -m spacy download en_core_web_sm" in capsys.readouterr().err
    assert cli.main(["check"]) == 0


def test_paths_mean_the_same_in_the_kernel(tmp_path, monkeypatch):
    """The kernel works in notebooks/, so a relative folder has to be made absolute before."""
    (tmp_path / "glue").mkdir()
    found = notebooks.Notebook(tmp_path / "1_x.ipynb", "x", {"data": "", "seed": 1})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "_look_into", lambda *_: [])
    values = check.check_call([found], {"data": "folder:glue", "seed": "1"}).values
    assert values == {"data": f"folder:{tmp_path / 'glue'}"}, "the default seed is no change"
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "bank.conllu").touch()
    found = notebooks.Notebook(tmp_path / "1_x.ipynb", "x", {"annotation": ""})
    for kind, name in (("spacy", "pipeline"), ("conllu", "bank.conllu")):
        values = check.check_call([found], {"annotation": f"{kind}:{name}"}).values
        assert values == {"annotation": f"{kind}:{tmp_path / name}"}


def test_unmet_requirements_are_named(monkeypatch):
    assert requirements.unmet() == []
    monkeypatch.setattr(
        requirements.metadata, "requires", lambda name: ["numpy>=99", "no-such-package", "x; extra == 'test'"]
    )
    assert [problem.split(" is needed")[0] for problem in map(str, requirements.unmet())] == ["numpy>=99", "no-such-package"]


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
    assert (settings.model.name, settings.data.kind, settings.max_examples, settings.head) == (
        "embedded",
        "embedded",
        1000,
        None,
    )
    assert parameters.resolve(layer=6, head=12).head == (5, 11)


def test_of_a_number_of_rows_0_is_the_profiles_and_minus_1_is_all():
    assert parameters.resolve(max_examples=0).max_examples == 1000
    for name in ("max_examples", "train_examples", "sweep_examples"):
        assert getattr(parameters.resolve(**{name: -1}), name) == 0, "what draws rows takes 0 for all"
        assert convert(name, "all") == -1
    assert parameters.resolve(profile="paper").sweep_examples == 0


def test_every_notebooks_cell_is_made_from_the_declarations(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = notebooks.find_notebooks()
    for notebook in found:
        cell = parameters_cell(notebook.name, notebook.parameters)
        values = {part.targets[0].id: ast.literal_eval(part.value) for part in ast.parse(cell).body}
        assert values == notebook.parameters
        assert list(map(type, values.values())) == list(map(type, notebook.parameters.values()))
        assert max(map(len, cell.splitlines())) <= 125
        cells = json.loads(notebook.path.read_text(encoding="utf-8"))["cells"]
        (own,) = ("".join(part["source"]) for part in cells if "parameters" in part["metadata"].get("tags", []))
        assert own == cell, "python -m bertology_utils publish writes it"
        parameters.resolve(**notebook.parameters)
    assert {name for notebook in found for name in notebook.parameters} == set(PARAMETERS), "none that no notebook takes"


def test_parameters_are_a_form_on_colab_and_plain_for_papermill(path):
    """Colab takes `# @param` with choices or a type, at the beginning of the comment; what a parameter means follows."""
    found = notebooks.read_notebook(path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    (own,) = ("".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    for line, (name, value) in zip(own.splitlines(), found.parameters.items(), strict=True):
        form, meaning = re.fullmatch(rf"{name} = \S.*?  # @param (\[.*\]|\{{.*\}}) +# (.+)", line).groups()
        choices = PARAMETERS[name].choices
        assert form == (
            json.dumps(choices) if choices else f'{{type:"{"string" if isinstance(value, str) else "integer"}"}}'
        )
        assert not choices or value in choices
        assert meaning.startswith(PARAMETERS[name].meaning)
    inspected = papermill.inspect_notebook(str(path))
    seen = {name: ast.literal_eval(one["default"]) for name, one in inspected.items()}
    assert seen.items() <= found.parameters.items()
    assert all("=" in PARAMETERS[name].meaning for name in found.parameters.keys() - seen.keys()), "which it does not read"


def as_written(settings):
    """What the profile has a say in, as a parameter's text or number."""
    found = {name: getattr(settings, name) for name, parameter in PARAMETERS.items() if parameter.of_profile}
    model, data = found["model"], found["data"]
    return found | {"model": model.name, "data": f"folder:{data.path}" if data.kind == "folder" else data.kind}


def test_every_value_of_a_profile_reaches_the_settings_unless_another_is_given(tmp_path, monkeypatch):
    values = {"model": "own/model", "data": f"folder:{tmp_path}", "framenet": "nltk", "annotation": "spacy:own"}
    values |= {"train_examples": 11, "max_examples": 12, "sweep_examples": 13, "trainings": 14}
    given = {"model": "embedded", "data": "hub", "framenet": "embedded", "annotation": "gold"}
    given |= {"train_examples": 21, "max_examples": 22, "sweep_examples": 23, "trainings": 24}
    monkeypatch.setitem(PROFILES, "embedded", replace(PROFILES["embedded"], **values))
    assert as_written(parameters.resolve()) == values
    assert as_written(parameters.resolve(**given)) == given
    others = {"name", "recipe", "tasks", "random_starts", "random_tasks", "random_epochs"}
    assert {field.name for field in fields(Profile)} == {*others, *values}, "what else a profile has"


def test_a_profile_has_its_tasks_and_random_starts(monkeypatch):
    own = replace(PROFILES["embedded"], tasks="rte,mrpc", random_starts=3, random_tasks="mrpc,sst2", trainings=4)
    monkeypatch.setitem(PROFILES, "embedded", own)
    assert [task.name for task in parameters.resolve().tasks] == ["rte", "mrpc"]
    assert [task.name for task in parameters.resolve(tasks="sst2").tasks] == ["sst2"]
    rte, mrpc = parameters.resolve().tasks
    assert [parameters.resolve().random_starts_of(task) for task in (rte, mrpc)] == [0, 3]
    assert parameters.resolve(trainings=2).random_starts_of(mrpc) == 2, "no more than trainings from pre-trained weights"


def test_a_random_start_may_take_other_epochs():
    paper, embedded = PROFILES["paper"], PROFILES["embedded"]
    assert paper.recipe_of("normal") == paper.recipe_of("pretrained") == paper.recipe
    assert embedded.recipe_of("pretrained") == embedded.recipe
    assert embedded.recipe_of("normal") == replace(embedded.recipe, epochs=embedded.random_epochs) != embedded.recipe


@pytest.mark.parametrize("cells", [[], ["x = 1", "y = 2"]])
def test_one_parameters_cell_is_wanted(tmp_path, cells):
    path = tmp_path / "1_x.ipynb"
    made = [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": [cell]} for cell in cells]
    path.write_text(json.dumps({"cells": made}))
    with pytest.raises(ValueError, match="one is wanted"):
        notebooks.read_notebook(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 3}', '{"cells": [{}]}'])
def test_a_broken_notebook_is_named(tmp_path, text):
    path = tmp_path / "1_x.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match="1_x.ipynb is no notebook"):
        notebooks.read_notebook(path)


@pytest.mark.parametrize("source", ["x =", "x = f()", "x: int", "x += 1", "x = y = 1", "for x in (1, 2): pass", "print(1)"])
def test_a_broken_parameters_cell_is_named(tmp_path, source):
    path = tmp_path / "1_x.ipynb"
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": [source]}
    path.write_text(json.dumps({"cells": [cell]}))
    with pytest.raises(ValueError, match="1_x.ipynb: "):
        notebooks.read_notebook(path)


def test_notebooks_are_in_the_order_of_their_numbers_and_chosen_by_ranges(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bertology-utils"\n')
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": ["seed = 1"]}
    for number in (10, 2, 0, 1):
        (tmp_path / "notebooks" / f"{number}_x.ipynb").write_text(json.dumps({"cells": [cell]}))
    monkeypatch.chdir(tmp_path)
    found = notebooks.find_notebooks()
    assert [notebook.number for notebook in found] == ["0", "1", "2", "10"]
    for only, numbers in (("10,2", ["2", "10"]), ("1-3", ["1", "2"]), ("2-99, 0", ["0", "2", "10"])):
        assert [notebook.number for notebook in notebooks.select(found, only)] == numbers


def test_a_strangers_notebooks_are_not_the_suites(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    for pyproject in (None, '[project]\nname = "another"\n', "no toml ["):
        if pyproject:
            (tmp_path / "pyproject.toml").write_text(pyproject)
        assert results.project_root() == tmp_path / "inner"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bertology-utils"\n')
    assert results.project_root() == tmp_path


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
