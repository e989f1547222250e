"""The recipes of docs/own_data.md work as they stand there: code is executed, commands are checked."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import zipfile

import numpy as np
import pytest
import torch
import xarray as xr
from conftest import ROOT
from safetensors.torch import load_file
from test_dependencies import treebank
from test_glue_folder import LAYOUTS, write

from bertology_utils import __main__ as cli
from bertology_utils.framenet import MINIATURE
from bertology_utils.glue import TASKS, load_rows
from bertology_utils.settings import STUDIES, StudySettings, parse_data, parse_model

TEXT = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
RECIPES = {
    name: (language, code)
    for name, language, code in re.findall(
        r"<!-- (\S+) -->\n```(\w*)\n(.*?)```\n<!-- end -->", TEXT, re.DOTALL
    )
}
assert len(RECIPES) == TEXT.count("```") // 2, "every block is a recipe"
COMMANDS = {name: code.splitlines() for name, (language, code) in RECIPES.items() if not language}
TOOL = "python -m bertology_utils "


def code_of(name):
    language, code = RECIPES[name]
    assert language == "python"
    return code


# Commands.


@pytest.fixture
def places(tiny_bert, tiny_classifier, tmp_path):
    """What stands in capitals in the commands, and the file and the folder that they name."""
    for name, (header, rows, _) in LAYOUTS.items():
        write(tmp_path / "glue", TASKS[name], header, rows * 2)
        others = [re.sub(r"\b(a|A|He|fine|dull|Why|who)\b", r"\1 \1", row) for row in rows]
        write(tmp_path / "glue", TASKS[name], header, others, "train.tsv")
    write(tmp_path / "own", TASKS["sst2"], "sentence\tlabel", ["fine\t1", "dull\t0"] * 2)
    write(tmp_path / "own", TASKS["sst2"], "sentence\tlabel", ["fine\t1", "dull\t0"], "train.tsv")
    with zipfile.ZipFile(MINIATURE) as archive:
        archive.extractall(tmp_path / "framenet")
    return {
        "sst2=CLASSIFIER": f"sst2={tiny_classifier}",
        "mrpc=mrpc": f"mrpc={tiny_classifier}",
        "folder:GLUE": f"folder:{tmp_path / 'glue'}",
        "GLUE=GLUE": f"GLUE={tmp_path / 'glue'}",
        "folder:FRAMENET": f"folder:{tmp_path / 'framenet'}",
        "folder:mine": f"folder:{tmp_path / 'own'}",
        "my.conllu": str(treebank(tmp_path, 80)),
        "MODEL=MINE": f"MODEL={tiny_bert}",
        "MODEL": str(tiny_bert),
    }


def filled(line, places):
    """A line with what a person puts in."""
    return " ".join(
        next((word.replace(name, value) for name, value in places.items() if name in word), word)
        for word in line.split()
    )


def checked(words):
    """Check the call that these words are, as far as no network or parser is needed."""
    given = dict(cli._parser().parse_args(words).parameters)
    if given.get("study") == "paper" and "checkpoint" in given:  # of a model on the Hub
        StudySettings.of("paper", tasks=given["tasks"], checkpoint=given["checkpoint"])
        return
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert cli.main(["check", *words[1:]]) == 0, said.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_calls_that_would_run(name, places, own_cache):
    for line in COMMANDS[name]:
        words = shlex.split(filled(line.partition(" #")[0], places))
        if line == TOOL + "list":
            assert cli.main(words[3:]) == 0
        elif line.startswith(TOOL):
            checked(words[3:])
        elif line.startswith("make "):
            if shutil.which("make") is None:
                pytest.skip("make is not here")
            told = subprocess.run([*words, "-n"], capture_output=True, text=True, cwd=ROOT)
            assert told.returncode == 0, told.stderr
            if found := re.search(r"-m bertology_utils (.*)", told.stdout.replace("\\\n", " ")):
                options = cli._parser().parse_args(shlex.split(found[1]))
                for word in words[2:]:
                    entry, value = word.split("=", 1)
                    assert str(getattr(options, entry.lower())) == value, word
        else:
            assert name in ("installing", "playground")
            assert words[0] in ("python", "source")


def test_colabs_two_fields_are_in_the_notebooks_and_take_these_values():
    names: dict = {}
    exec(code_of("colab"), names)
    page = (ROOT / "notebooks" / "6_disabling_heads.ipynb").read_text(encoding="utf-8")
    assert r"DRIVE = \"\"" in page and names["DRIVE"]
    assert r"study = \"e5\"" in page and StudySettings.of(names["study"]).model


def test_every_study_and_parameter_is_named():
    (told,) = re.findall(r"## Studies and parameters\n.*?\n(?=## )", TEXT, re.DOTALL)
    assert all(f"`{name}`" in told for name in STUDIES)
    declared = {
        name
        for path in (ROOT / "notebooks").glob("*.ipynb")
        if '"study = ' in (text := path.read_text(encoding="utf-8"))
        for name in re.findall(r'"(\w+) = [^"]*(?:\\"[^"]*)*# @param', text)
    }
    assert {"study", "tasks", "checkpoint"} <= declared - {"DRIVE"}
    assert all(f"| `{name}` |" in told for name in declared - {"DRIVE"}), declared


# Code.


def test_the_example_prints_lines_of_the_form_that_is_shown(tiny_classifier, monkeypatch, capsys):
    rows = load_rows(TASKS["mrpc"], "dev", parse_data("embedded")).select(range(8))
    asked = []
    monkeypatch.setattr("datasets.load_dataset", lambda *place, **_: asked.append(place) or rows)
    code = code_of("example")
    (name,) = re.findall(r'^NAME = "(.*)"', code, re.MULTILINE)
    exec(code.replace(name, str(tiny_classifier)), {})
    assert asked == [("nyu-mll/glue", "mrpc")]
    shape, *lines = capsys.readouterr().out.splitlines()
    assert shape == "(3, 4, 8, 2)" and len(lines) == 2
    form = r"[\d.]+% right; without head \(\d+, \d+\) [+-][\d.]+ points"
    for line in lines:
        assert re.fullmatch(form, line), line


def test_the_lines_that_are_shown_are_those_of_the_first_run():
    one = xr.load_dataset(
        ROOT / "results/e5/without_each_head/MRPC-1.nc", engine="h5netcdf"
    ).transpose("layer", "head", "example")
    score = float(one["right"].mean())
    gain = (one["right_without"].astype(float).mean("example") - score).values
    shape, *lines = RECIPES["printed"][1].splitlines()
    assert shape == str((*one["right_without"].shape, 2))
    for line, at in zip(lines, (gain.argmin(), gain.argmax()), strict=True):
        layer, head = np.unravel_index(at, gain.shape)
        assert line == (
            f"{score:.1%} right; without head ({layer + 1}, {head + 1}) {100 * gain[layer, head]:+.1f} points"
        )


def test_pickled_weights_are_converted_in_three_lines(tiny_classifier, tmp_path, monkeypatch):
    pickled = shutil.copytree(tiny_classifier, tmp_path / "pickled")
    weights = load_file(pickled / "model.safetensors")
    (pickled / "model.safetensors").unlink()
    torch.save(weights, pickled / "pytorch_model.bin")
    with pytest.raises(ValueError, match="lacks model.safetensors; pickled weights"):
        parse_model(str(pickled))
    monkeypatch.chdir(tmp_path)
    exec(code_of("pickled"), {"NAME": str(pickled)})
    converted = load_file(tmp_path / "mrpc" / "model.safetensors")
    assert converted.keys() == weights.keys()
    assert all(torch.equal(converted[name], weights[name]) for name in weights)
    assert StudySettings.of("small", checkpoint="sst2=mrpc").checkpoint == {"sst2": "mrpc"}


def test_messages_of_the_troubleshooting_page_are_those_of_the_code():
    sources = [
        path.read_text(encoding="utf-8") for path in (ROOT / "bertology_utils").rglob("*.py")
    ]
    text = re.sub(r"\{[^{}]*\}", "…", re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources)))
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE)
    assert len(messages) > 40
    for message in messages:
        parts = [part.strip(" ().,:;=") for part in message.split("…")]
        assert any(len(part) > 8 for part in parts), message
        assert [part for part in parts if part not in text] == [], message


def test_rows_of_ones_own_are_read_as_the_tasks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(
        code_of("rows"),
        {"TRAIN": [("fine", 1), ("schön “so”", 0), ("dull", 0)], "DEV": [("good", 1)]},
    )
    rows = load_rows(TASKS["sst2"], "train", parse_data("folder:mine"))
    assert rows["sentence"] == ["fine", "schön “so”", "dull"] and rows["label"] == [1, 0, 0]
    assert load_rows(TASKS["sst2"], "dev", parse_data("folder:mine"))["label"] == [1]


def test_treebanks_of_ones_own_in_five_lines(tiny_bert, tmp_path, monkeypatch):
    lines = treebank(tmp_path, 80).read_text()
    (tmp_path / "other.conllu").write_text(lines.replace("[", "("))
    monkeypatch.chdir(tmp_path)
    names = {"MINE": str(tiny_bert)}
    exec(code_of("treebank"), names)
    assert set(names["heads"]["relation"]) == {"det", "nsubj", "obj"}
    assert names["layers"]["layer"].tolist() == [0, 1, 2, 3]
