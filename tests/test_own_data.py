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
BLOCK = r"<!-- (\S+) -->\n```(\w*)\n(.*?)```\n<!-- end -->"
BLOCKS = re.findall(BLOCK, TEXT, re.DOTALL)
assert len(BLOCKS) == TEXT.count("```") // 2, "every block is a recipe"
CODE = {name: code for name, language, code in BLOCKS if language == "python"}
COMMANDS = {name: code.splitlines() for name, language, code in BLOCKS if not language}
TOOL = "python -m bertology_utils "


# Commands.


@pytest.fixture
def places(tiny_bert, tiny_classifier, tmp_path):
    """What stands in capitals in the commands, and the file and the folder that they name."""
    for name, (header, rows, _) in LAYOUTS.items():
        write(tmp_path / "glue", TASKS[name], header, rows * 2)
        others = [re.sub(r"\b(a|A|He|fine|dull|Why|who)\b", r"\1 \1", row) for row in rows]
        write(tmp_path / "glue", TASKS[name], header, others, "train.tsv")
    for file, times in ((None, 2), ("train.tsv", 1)):
        rows = ["fine\t1", "dull\t0"] * times
        write(tmp_path / "own", TASKS["sst2"], "sentence\tlabel", rows, file)
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
    """The words of a line with what a person puts in."""
    words = line.partition(" #")[0].split()
    return shlex.split(
        " ".join(
            next((word.replace(name, put) for name, put in places.items() if name in word), word)
            for word in words
        )
    )


def check(words):
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
        words = filled(line, places)
        if line == TOOL + "list":
            assert cli.main(words[3:]) == 0
        elif line.startswith(TOOL):
            check(words[3:])
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
            assert name in ("installing", "playground") and words[0] in ("python", "source")


def test_colabs_two_fields_are_in_the_notebooks_and_take_these_values():
    names: dict = {}
    exec(CODE["colab"], names)
    page = (ROOT / "notebooks" / "6_disabling_heads.ipynb").read_text(encoding="utf-8")
    assert r"DRIVE = \"\"" in page and names["DRIVE"]
    assert r"study = \"e5\"" in page and StudySettings.of(names["study"]).model


def test_every_study_and_parameter_is_named():
    (told,) = re.findall(r"## Studies and parameters\n.*?\n(?=## )", TEXT, re.DOTALL)
    assert all(f"`{name}`" in told for name in STUDIES)
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "notebooks").glob("*.ipynb")]
    parameter = r'"(\w+) = [^"]*(?:\\"[^"]*)*# @param'
    declared = {name for page in pages for name in re.findall(parameter, page)} - {"DRIVE"}
    assert {"study", "tasks", "checkpoint"} <= declared
    assert all(f"| `{name}` |" in told for name in declared), declared


# Code.


def test_the_example_prints_lines_of_the_form_that_is_shown(tiny_classifier, monkeypatch, capsys):
    rows = load_rows(TASKS["mrpc"], "dev", parse_data("embedded")).select(range(8))
    asked = []
    monkeypatch.setattr("datasets.load_dataset", lambda *place, **_: asked.append(place) or rows)
    (name,) = re.findall(r'^NAME = "(.*)"', CODE["example"], re.MULTILINE)
    exec(CODE["example"].replace(name, str(tiny_classifier)), {})
    assert asked == [("nyu-mll/glue", "mrpc")]
    shape, *lines = capsys.readouterr().out.splitlines()
    assert shape == "(3, 4, 8, 2)" and len(lines) == 2
    form = r"[\d.]+% right; without head \(\d+, \d+\) [+-][\d.]+ points"
    assert all(re.fullmatch(form, line) for line in lines), lines


def test_the_lines_that_are_shown_are_those_of_the_first_run():
    path = ROOT / "results/e5/without_each_head/MRPC-1.nc"
    one = xr.load_dataset(path, engine="h5netcdf").transpose("layer", "head", "example")
    score = float(one["right"].mean())
    gain = (one["right_without"].astype(float).mean("example") - score).values
    (printed,) = (code for name, _, code in BLOCKS if name == "printed")
    shape, *lines = printed.splitlines()
    assert shape == str((*one["right_without"].shape, 2))
    for line, at in zip(lines, (gain.argmin(), gain.argmax()), strict=True):
        layer, head = np.unravel_index(at, gain.shape)
        points = f"{100 * gain[layer, head]:+.1f} points"
        assert line == f"{score:.1%} right; without head ({layer + 1}, {head + 1}) {points}"


def test_pickled_weights_are_converted_in_three_lines(tiny_classifier, tmp_path, monkeypatch):
    pickled = shutil.copytree(tiny_classifier, tmp_path / "pickled")
    weights = load_file(pickled / "model.safetensors")
    (pickled / "model.safetensors").unlink()
    torch.save(weights, pickled / "pytorch_model.bin")
    with pytest.raises(ValueError, match="lacks model.safetensors; pickled weights"):
        parse_model(str(pickled))
    monkeypatch.chdir(tmp_path)
    exec(CODE["pickled"], {"NAME": str(pickled)})
    converted = load_file(tmp_path / "mrpc" / "model.safetensors")
    torch.testing.assert_close(converted, weights, atol=0, rtol=0)
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
    train = [("fine", 1), ("schön “so”", 0), ("dull", 0)]
    exec(CODE["rows"], {"TRAIN": train, "DEV": [("good", 1)]})
    for split, pairs in (("train", train), ("dev", [("good", 1)])):
        rows = load_rows(TASKS["sst2"], split, parse_data("folder:mine"))
        assert [*zip(rows["sentence"], rows["label"], strict=True)] == pairs


def test_treebanks_of_ones_own_in_five_lines(tiny_bert, tmp_path, monkeypatch):
    lines = treebank(tmp_path, 80).read_text()
    (tmp_path / "other.conllu").write_text(lines.replace("[", "("))
    monkeypatch.chdir(tmp_path)
    names = {"MINE": str(tiny_bert)}
    exec(CODE["treebank"], names)
    assert set(names["heads"]["relation"]) == {"det", "nsubj", "obj"}
    assert names["layers"]["layer"].tolist() == [0, 1, 2, 3]
