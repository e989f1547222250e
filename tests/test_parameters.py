"""Wrong parameters are refused at once, with the choices; the command line and the notebooks agree."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import safetensors.numpy
from conftest import ROOT, conllu, python

from bertology_utils import __main__ as cli
from bertology_utils import common, run
from bertology_utils.corpora import GLUE as EMBEDDED
from bertology_utils.settings import (
    PARAMETERS,
    PROFILES,
    Profile,
    convert,
    resolve,
)

WRONG = {
    "--profile huge": "unknown profile 'huge'; choose one of: small, glue, paper, colab, bert-forward",
    "-p tasks mrpc,cola": "unknown task 'cola'; choose one of: mrpc, stsb, sst2, qqp, rte, qnli, mnli",
    "-p tasks ,": "no task named in ','",
    "-p model bert": "unknown model 'bert'; choose 'embedded', 'e5', the path of an existing folder, or a Hub name",
    "-p data web": "unknown data 'web'; choose one of: embedded, hub, folder:PATH",
    "-p data folder:/nowhere/at/all": "there is no folder /nowhere/at/all; wanted is GLUE's layout",
    "-p layer 7 -p head 1": "unknown layer 7; layers are counted from 1 to 6",
    "-p layer 1 -p head 13": "unknown head 13; heads are counted from 1 to 12",
    "--profile paper -p layer 13 -p head 1": "unknown layer 13; layers are counted from 1 to 12",
    "-p layer 2": "layer=2 without head: give both, counted from 1, or neither",
    "-p head 2": "head=2 without layer: give both",
    "-p seed 2 -p seed 3": "seed is given twice",
    "-p seeed 1": "unknown parameter 'seeed'; choose one of: ",
    "-p seed one": "seed='one' is no whole number",
    "-p seed -1": "seed=-1: Input should be greater than or equal to 0; seed (int): of every random draw",
    "-p seed all": "seed=-1: Input should be greater than or equal to 0",
    "-p max_examples 1.5": "max_examples='1.5' is no whole number",
    "-p max_examples -2": "max_examples=-2: Input should be greater than or equal to -1; max_examples (int): dev rows whose maps are measured; 0: the profile's; -1: all",
    "-p framenet web": "unknown framenet 'web'; choose one of: embedded, nltk, folder:PATH, zip:PATH",
    "-p framenet folder:/nowhere/at/all": "there is no folder",
    "-p train_files mnli=x.tsv": "needs data='folder:PATH'",
    "--only 99": "unknown notebook '99'; choose one of: ",
    "--only 3-1": "unknown notebook '3-1'; choose one of: ",
    "--only 1,x": "unknown notebook 'x'; choose one of: ",
    "-p checkpoint sst2": "checkpoint: 'sst2' is not TASK=PLACE, for example sst2=PATH",
    "-p checkpoint sst2=/nowhere/at/all": "checkpoint: there is no folder /nowhere/at/all for SST-2",
    "-p data folder:tests": "MRPC has no .tsv file",
    "--only 4 -p data folder:tests -p annotation gold": "annotation='gold' goes with data='embedded' only",
    "-p annotation conllu:results/glue/1_attention_patterns.json": "1_attention_patterns.json is not a CoNLL-U file",
    "-p treebank /nowhere/at/all.conllu": "there is no file /nowhere/at/all.conllu; wanted is a CoNLL-U file's path",
    "-p treebank README.md": "README.md is not a CoNLL-U file",
    "--only 4 -p treebank README.md": "unknown parameter 'treebank'; choose one of: ",
    "-p framenet folder:tests": "is no FrameNet release: it lacks luIndex.xml, lu, frame",
    "--profile paper -p profile small": "profile is given twice",
    "--only 0 -p tasks stsb": "add a task with labels, such as mrpc",
    "--only 6 -p study e6": "unknown study 'e6'; choose one of: e5, e5-again, minilm",
    "--only 6 -p tasks cola": "unknown task 'cola'",
    "--only 6 -p model nowhere": "unknown model 'nowhere'; choose 'embedded', 'e5', the path",
    "--only 6 -p checkpoint sst2": "checkpoint: 'sst2' is not TASK=PLACE",
}


@pytest.mark.parametrize(("call", "message"), WRONG.items())
@pytest.mark.parametrize("command", ["run", "check"])
def test_wrong_calls_end_before_a_kernel_starts(command, call, message, capsys, monkeypatch):
    fail = lambda *_: pytest.fail("a kernel was started")  # noqa: E731
    monkeypatch.setattr("bertology_utils.run.run_notebook", fail)
    assert cli.main([command, *call.split()]) == 2
    assert message in capsys.readouterr().err


def test_checks_do_not_import_torch():
    code = "import sys, bertology_utils.__main__ as cli; cli.main(['check']); sys.exit('torch' in sys.modules)"
    assert python(code).returncode == 0


SAID = {  # Notebook 10 has other defaults than the rest: what is its default is no default of theirs.
    "-p tasks sst2": "with tasks='sst2'\n  2_framenet_heads, 8_pretrained_encoder, 11_trees: takes no tasks",
    "--only 2,4 -p study small -p framenet embedded": "framenet='embedded'",
    "--only 10 -p tasks sst2 -p seed 1": "with default settings",
    # What only the Hub knows is not called ready.
    "--only 1-3 -p model a/b": "not checked: the model a/b on the Hub",
    "--only 3 -p study paper": "not checked: the data set nyu-mll/glue on the Hub",
}


@pytest.mark.parametrize(("call", "said"), SAID.items())
def test_a_check_says_what_would_run_and_what_it_could_not_look_at(call, said, capsys):
    assert cli.main(["check", *call.split()]) == 0
    assert said in capsys.readouterr().out


MRPC = EMBEDDED / "MRPC" / "dev.conllu.gz"


def test_a_treebank_as_annotation_of_rows_that_it_does_not_hold_is_refused_with_what_to_do(capsys):
    """Before any model is loaded; the same file is welcome where its rows are measured, and as treebank."""
    call = "check --only 4 -p data embedded".split()
    call += ["-p", "annotation", f"conllu:{MRPC}", "-p", "tasks"]
    assert cli.main([*call, "mrpc,stsb"]) == 2
    errors = capsys.readouterr().err
    assert "CoNLL-U file dev.conllu.gz has no annotation of" in errors
    assert "treebank='PATH' has notebook 8" in errors
    assert cli.main([*call, "mrpc"]) == 0
    assert cli.main(["check", "--only", "11", "-p", "treebank", str(MRPC)]) == 0
    assert "not checked" not in capsys.readouterr().out


def test_of_rows_on_the_hub_it_is_said_that_their_annotation_was_not_looked_at(capsys):
    call = ["check", "--only", "4", "-p", "study", "paper"]
    assert cli.main([*call, "-p", "annotation", f"conllu:{MRPC}"]) == 0
    assert "the data set nyu-mll/glue on the Hub" in capsys.readouterr().out


@pytest.fixture
def sst2(tmp_path):
    """Makes a folder of SST-2 with so many rows, the last as it is given."""

    def make(rows, last="dull\t0"):
        folder = tmp_path / "glue" / "SST-2"
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["sentence\tlabel", *["fine\t1", "dull\t0"] * (rows // 2), last]
        for name in ("train.tsv", "dev.tsv"):
            (folder / name).write_text("\n".join(lines) + "\n")
        return ["-p", "tasks", "sst2", "-p", "data", f"folder:{folder.parent}"]

    return make


@pytest.mark.parametrize("only", ["6", "10"])
@pytest.mark.parametrize("command", [["run", "--dry-run"], ["check"], ["run"], ["prepare"]])
@pytest.mark.parametrize(
    ("rows", "last", "message"),
    [
        (40, "dull\t-1", "dev.tsv, line 42: unknown label '-1'"),
        (2, "dull\t0", "dev.tsv: 3 rows; at least 4 are needed"),
    ],
)
def test_what_a_run_would_refuse_in_its_rows_is_refused_before_any_work(
    sst2, command, only, rows, last, message, capsys
):
    assert cli.main([*command, "--only", only, *sst2(rows, last)]) == 2
    assert message in capsys.readouterr().err


def test_too_few_rows_for_halves_are_refused_as_a_parameter(sst2, capsys):
    assert cli.main(["check", "--only", "10", *sst2(40), "-p", "sweep_examples", "3"]) == 2
    assert "sweep_examples=3 is too few" in capsys.readouterr().err


def test_a_treebank_of_sentences_that_are_all_too_long_is_not_called_ready(tmp_path, capsys):
    dogs, cats = (conllu(*((form, at, "nsubj") for at in range(140))) for form in ("dog", "cat"))
    bank = tmp_path / "long.conllu"
    bank.write_text(dogs + cats)
    assert cli.main(["check", "--only", "8", "-p", "treebank", str(bank)]) == 2
    assert "longer than 128 wordpieces" in capsys.readouterr().err


HEADER = b'{"a": {"dtype": "F32", "data_offsets": [0, 0]}}'
WITHOUT_SHAPES = len(HEADER).to_bytes(8, "little") + HEADER
CONFIG = '{"model_type": "bert", "num_hidden_layers": 3, "num_attention_heads": 4}'


WHOLE = safetensors.numpy.save({"a": np.zeros((2, 3), np.float32)})


@pytest.mark.parametrize(
    "config, weights, message",
    [
        ("[]", WHOLE, "config.json describes no model"),
        (CONFIG[:20], WHOLE, "config.json describes no model"),
        (CONFIG, b"<html>not found</html>", "model.safetensors is not a SafeTensors file"),
        (CONFIG, b"", "model.safetensors is not a SafeTensors file"),
        (CONFIG, WITHOUT_SHAPES, "model.safetensors is not a SafeTensors file"),
        (CONFIG, WHOLE[:-1], "model.safetensors is not a SafeTensors file, or is cut off"),
    ],
)
def test_a_damaged_model_folder_is_refused_by_the_files_name(
    tmp_path, config, weights, message, capsys
):
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_bytes(weights)
    for head in ([], ["-p", "layer", "1", "-p", "head", "1"]):
        assert cli.main(["check", "--only", "0", "-p", "model", str(tmp_path), *head]) == 2
        assert f"{tmp_path}/{message}" in capsys.readouterr().err


def test_paths_mean_the_same_in_the_kernel(tmp_path, monkeypatch):
    """The kernel works in notebooks/, so a relative folder has to be made absolute before."""
    (tmp_path / "glue").mkdir()
    found = run.Notebook(tmp_path / "1_x.ipynb", "x", {"data": "", "seed": 1})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_read_all", lambda *_: [])
    values, _ = run.check_call([found], {"data": "folder:glue", "seed": "1"})
    assert values == {"data": f"folder:{tmp_path / 'glue'}"}, "the default seed is no change"
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "bank.conllu").touch()
    found = run.Notebook(tmp_path / "1_x.ipynb", "x", {"annotation": ""})
    for kind, name in (("spacy", "pipeline"), ("conllu", "bank.conllu")):
        values, _ = run.check_call([found], {"annotation": f"{kind}:{name}"})
        assert values == {"annotation": f"{kind}:{tmp_path / name}"}


# A package stands for an installed pipeline here.
NO_PATHS = (
    "model embedded|data embedded|data hub|framenet nltk|annotation gold|annotation spacy:numpy"
)


@pytest.mark.parametrize("said", NO_PATHS.split("|"))
def test_what_a_parameter_says_is_no_path_though_a_folder_bears_its_name(
    tmp_path, monkeypatch, said
):
    name, value = said.split()
    (tmp_path / value.rpartition(":")[2]).mkdir()
    monkeypatch.chdir(tmp_path)
    assert convert(name, value) == value


def test_blanks_between_checkpoints_are_no_part_of_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    made = f"mrpc={tmp_path / 'a'},sst2={tmp_path / 'b'}"
    assert convert("checkpoint", "mrpc=a ,sst2= b").replace(" ", "") == made


def test_in_place_is_for_default_settings_only(capsys):
    assert cli.main(["run", "--in-place", "-p", "seed", "2"]) == 2
    assert "default settings only" in capsys.readouterr().err


def test_notebooks_take_their_defaults_and_every_parameter_is_one_of_theirs():
    found = run.find_notebooks()
    for notebook in found:
        run.study_of(notebook, {}) if notebook.study else resolve(**notebook.parameters)
    names = {name for notebook in found for name in notebook.parameters}
    assert names == {"study", *PARAMETERS}


def test_the_committed_results_name_the_settings_of_their_notebooks():
    for notebook in (one for one in run.find_notebooks() if not one.study):
        results = json.loads((ROOT / "tests" / "reference" / f"{notebook.name}.json").read_text())
        assert resolve(**notebook.parameters).as_json() == results["settings"]


OTHERS = {  # of each parameter a value that is not the default
    "profile": "colab",
    "data": f"folder:{ROOT / 'tests'}",
    "tasks": "mrpc",
    "framenet": f"folder:{ROOT / 'tests'}",
    "annotation": f"conllu:{ROOT / 'README.md'}",
    "treebank": str(EMBEDDED / "MRPC" / "dev.conllu.gz"),
    **dict.fromkeys(
        [name for name, field in PARAMETERS.items() if field.default.__class__ is int], 7
    ),
}


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"layer", "head"}))
def test_results_name_every_setting_that_decides_them_and_no_place_on_a_machine(name):
    told = resolve(**{name: OTHERS[name]}).as_json()
    assert told != resolve().as_json()
    assert str(ROOT) not in json.dumps(told)
    assert OTHERS.keys() | {"model", "checkpoint", "train_files"} == PARAMETERS.keys(), (
        "see test_checkpoint.py for these"
    )


def test_every_value_of_a_profile_reaches_the_settings_unless_another_is_given(
    tmp_path, monkeypatch
):
    counts = "train_examples", "max_examples", "sweep_examples", "trainings"
    own = {"model": "own/model", "data": f"folder:{tmp_path}", "framenet": "nltk"}
    own |= {"annotation": "spacy:own"} | dict(zip(counts, range(11, 15), strict=True))
    given = {"model": "embedded", "data": "hub", "framenet": "embedded"}
    given |= {"annotation": OTHERS["annotation"]} | dict(zip(counts, range(21, 25), strict=True))
    monkeypatch.setitem(PROFILES, "small", replace(PROFILES["small"], **own))
    for said, settings in ((own, resolve()), (given, resolve(**given))):
        found = {name: getattr(settings, name) for name in said if name not in ("model", "data")}
        (found["trainings"],) = {*map(settings.trainings_of, settings.tasks)}
        data = settings.data
        found["data"] = f"folder:{data.path}" if data.kind == "folder" else data.kind
        assert found | {"model": settings.model.name} == said
    others = "name recipe tasks random_starts random_tasks random_epochs trainings_by_task after"
    assert {field.name for field in fields(Profile)} == {*others.split(), *own}


def test_a_profile_has_its_tasks_and_random_starts(monkeypatch):
    given = {"tasks": "sst2,mrpc", "random_starts": 3, "random_tasks": "mrpc", "trainings": 4}
    own = replace(PROFILES["small"], **given)
    monkeypatch.setitem(PROFILES, "small", own)
    assert [task.name for task in resolve().tasks] == ["sst2", "mrpc"]
    assert [task.name for task in resolve(tasks="mrpc").tasks] == ["mrpc"]
    sst2, mrpc = resolve().tasks
    assert [resolve().random_starts_of(task) for task in (sst2, mrpc)] == [0, 3]
    assert resolve(trainings=2).random_starts_of(mrpc) == 2, "no more than trainings"


def cells(*sources):
    """A notebook's text, with these cells of parameters."""
    tagged = {"cell_type": "code", "metadata": {"tags": ["parameters"]}}
    return json.dumps({"cells": [tagged | {"source": [source]} for source in sources]})


BROKEN = dict.fromkeys(["{", "[]", '{"cells": 3}', '{"cells": [{}]}'], "1_x.ipynb is no notebook")
BROKEN |= dict.fromkeys([cells(), cells("x = 1", "y = 2")], "one is wanted")
BROKEN |= {cells(one): "1_x.ipynb: " for one in ("x =", "x = f()", "x: int", "x += 1", "print(1)")}


@pytest.mark.parametrize(("text", "message"), BROKEN.items())
def test_a_broken_notebook_or_parameters_cell_is_named(tmp_path, text, message):
    path = tmp_path / "1_x.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        run.read_notebook(path)


def test_people_and_code_agree():
    assert [common.zero_based(number, 12) for number in common.axis_numbers(12)] == list(range(12))
    assert common.head_name(5, 11) == "(6, 12)"
