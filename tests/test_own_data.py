"""The recipes of docs/own_data.md work as they stand there: code is executed, commands are checked."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import zipfile

import pytest
import torch
from bertology_utils.results import read_results
from conftest import ROOT
from safetensors.torch import load_file
from test_dependencies import treebank
from test_glue_folder import LAYOUTS, write

from bertology_utils import __main__ as cli
from bertology_utils.corpora import FRAMENET
from bertology_utils.glue import TASKS, load_rows
from bertology_utils.run import find_notebooks, select
from bertology_utils.settings import convert, parse_data, parse_model, resolve
from bertology_utils.studies import StudySettings
from docs import evidence
from docs.publish import SETUP_CELL

TEXT = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
RECIPES = {
    name: (language, code)
    for name, language, code in re.findall(
        r"<!-- (\S+) -->\n```(\w*)\n(.*?)```\n<!-- end -->", TEXT, re.DOTALL
    )
}
COMMANDS = {name: code.splitlines() for name, (language, code) in RECIPES.items() if not language}
TOOL = "python -m bertology_utils "


def code_of(name):
    language, code = RECIPES[name]
    assert language == "python"
    return code


def test_every_block_is_a_recipe():
    assert len(RECIPES) == TEXT.count("```") // 2


# Commands.


@pytest.fixture
def places(tiny_bert, tiny_classifier, tmp_path):
    """What stands in capitals in the commands, and the file and the folder that they name."""
    for name, (header, rows, _) in LAYOUTS.items():
        for file in (None, "train.tsv"):
            write(tmp_path / "glue", TASKS[name], header, rows * 2, file)
    write(tmp_path / "own", TASKS["sst2"], "sentence\tlabel", ["fine\t1", "dull\t0"] * 2)
    write(tmp_path / "own", TASKS["sst2"], "sentence\tlabel", ["fine\t1", "dull\t0"], "train.tsv")
    with zipfile.ZipFile(FRAMENET) as archive:
        archive.extractall(tmp_path / "framenet")
    return {
        "sst2=CLASSIFIER": f"sst2={tiny_classifier}",
        "mrpc=mrpc": f"mrpc={tiny_classifier}",
        "google-bert/bert-base-uncased": str(tiny_bert),
        "folder:GLUE": f"folder:{tmp_path / 'glue'}",
        "GLUE=GLUE": f"GLUE={tmp_path / 'glue'}",
        "folder:FRAMENET": f"folder:{tmp_path / 'framenet'}",
        "folder:mine": f"folder:{tmp_path / 'own'}",
        "my.conllu": str(treebank(tmp_path, 80)),
        "MODELS=MODEL,OWNER/NAME@REVISION": f"MODELS={tiny_bert}",
        "MODEL=MODEL": f"MODEL={tiny_bert}",
        "MODEL": str(tiny_bert),
    }


def filled(line, places):
    """A line with what a person puts in."""
    return " ".join(
        next((word.replace(name, value) for name, value in places.items() if name in word), word)
        for word in line.split()
    )


def checked(words):
    """Check the call of a notebook that these words are, as far as no network or parser is needed."""
    options = cli._parser().parse_args(words)
    given = dict(options.parameters) | ({"profile": options.profile} if options.profile else {})
    if given.get("study") == "paper":
        StudySettings.of("paper", tasks=given["tasks"], checkpoint=given["checkpoint"])
        return
    if given.get("profile") in ("colab", "bert-forward", "paper"):  # from the Hub, parsed by spaCy
        resolve(**given)
        return
    asked = [
        *(["--only", options.only] if options.only else []),
        *(part for pair in given.items() for part in ("-p", *pair)),
    ]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert cli.main(["check", *asked]) == 0, said.getvalue()


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
            recipe = told.stdout.replace("\\\n", " ")
            if found := re.search(r"-m docs\.evidence (.*)", recipe):
                asked = evidence.read_options(shlex.split(found[1]))
                assert all(cli._parser().parse_args(call) for call in evidence.calls(asked))
            command = re.search(r"-m bertology_utils (run .*?)(;|$)", recipe, re.MULTILINE)
            if command:
                checked(
                    [
                        word.replace("$model", places["MODEL"])
                        for word in shlex.split(command[1].partition(" ||")[0])
                    ]
                )
        else:
            assert name in ("gpu", "installing", "confirm", "playground")
            assert words[0] in ("python", "source", "git")
            script = words[1] if words[1].endswith(".py") else ""
            assert (ROOT / script).exists()
            if words[1:3] == ["-m", "docs.evidence"]:
                assert evidence.read_options(words[3:]).freeze


@pytest.mark.parametrize(
    ("only", "numbers"), [("10, 11", "10 11"), ("10-11", "10 11"), ("0", "has no evidence")]
)
def test_evidence_is_asked_for_as_runs_are(only, numbers):
    options = evidence.read_options(["--glue", "g", "--treebank", "t", "--only", only])
    if only == "0":
        with pytest.raises(ValueError, match=numbers):
            list(evidence.calls(options))
        return
    asked = ",".join(call[call.index("--only") + 1] for call in evidence.calls(options))
    assert sorted({*asked.split(",")}) == numbers.split()


def test_the_evidence_is_checked_whole_before_the_first_run_and_ends_at_a_failure(
    monkeypatch, capsys
):
    made, words = [], ["--glue", "g", "--framenet", "f", "--treebank", "t"]
    count = len(list(evidence.calls(evidence.read_options(words))))
    fails = lambda call: made.append(call) or len(made) == count + 2  # noqa: E731
    monkeypatch.setattr(evidence, "command_line", fails)
    assert evidence.main(words) == 1
    checks, runs = made[:count], made[count:]
    assert all(call[-1] == "--dry-run" for call in checks) and len(runs) == 2
    assert runs == [call[:-1] for call in checks[:2]]
    places = [call[call.index("--results") + 1] for call in checks]
    written = {f"results/{path.parent.name}" for path in ROOT.glob("results/*/*.json")}
    # Of notebooks in the new form the former rows stay until all of them have moved (RESULTS.md).
    former = {"results/confirm", "results/glue_norm", "results/framenet15"}
    assert written - former == {*places, "results/ud"}
    assert ["--figures" in call for call in checks] == [
        place != "results/glue_norm" for place in places
    ]
    said = capsys.readouterr().out
    assert "about a night" in said and "No confirmatory study: it needs CONFIRM=FOLDER" in said
    monkeypatch.setattr(evidence, "command_line", lambda call: 0)
    monkeypatch.setattr(evidence, "measure_treebank", made.append)
    assert evidence.main(["--treebank", "t"]) == 0 and made[-1] == "t"
    assert evidence.main(["--only", "2"]) == 2 and evidence.main(["--only", "11"]) == 2


def test_the_line_that_looks_for_cuda_runs(capsys):
    exec(shlex.split(COMMANDS["gpu"][1])[2], {})
    assert capsys.readouterr().out.endswith((" True\n", " False\n"))


def test_colabs_two_fields_are_in_the_notebooks_and_take_these_values():
    names: dict = {}
    exec(code_of("colab"), names)
    assert 'DRIVE = ""' in SETUP_CELL and names["DRIVE"]
    assert resolve(profile=names["profile"]).profile.name == "colab"


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
    language, printed = RECIPES["printed"]
    assert language == "text"
    form = r"[\d.]+% right; without head \(\d+, \d+\) [+-][\d.]+ points"
    for line in lines + printed.splitlines()[1:]:
        assert re.fullmatch(form, line), line


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
    assert resolve(tasks="sst2", model=str(tiny_classifier), checkpoint="sst2=mrpc").checkpoints


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


def test_a_disabled_head_changes_what_the_classifier_says(tiny_classifier, capsys):
    names = {"MINE": str(tiny_classifier), "TEXTS": ["It rains.", "The sun shines."]}
    exec(code_of("disabled"), names)
    plain = names["predict_logits"](names["model"], names["batches"])
    printed = capsys.readouterr().out.strip()
    assert plain.shape == (2, 2) and printed.startswith("[[") and printed != str(plain)


WORDS = "[CLS] she gave him the book . [SEP]".split()


def test_what_is_handed_to_bertviz_is_what_it_takes(tiny_bert, head_view):
    """Layers of maps of shape (1, heads, tokens, tokens), and as many tokens; without bertviz."""
    exec(code_of("bertviz"), {"MINE": str(tiny_bert)})
    (((maps, tokens), options),) = head_view
    assert tokens == WORDS and options == {"layer": 2, "heads": [1]}
    assert len(maps) == 3 and {tuple(layer.shape) for layer in maps} == {
        (1, 4, len(WORDS), len(WORDS))
    }


def test_treebanks_of_ones_own_in_five_lines(tiny_bert, tmp_path, monkeypatch):
    lines = treebank(tmp_path, 80).read_text()
    (tmp_path / "other.conllu").write_text(lines.replace("[", "("))
    monkeypatch.chdir(tmp_path)
    names = {"MINE": str(tiny_bert)}
    exec(code_of("treebank"), names)
    assert set(names["table"]["relation"]) == {"det", "nsubj", "obj"}
    exec(code_of("trees"), names)
    assert names["table"].layer.tolist() == [0, 1, 2, 3]


def test_make_evidence_measures_again_what_the_committed_evidence_was_measured_with():
    places = "data data_revision framenet annotation treebank model_fingerprint".split()
    # A run that was cut off has fewer of them, and its results say how many.
    runs_and_tasks = "tasks", "trainings", "trainings_by_task"
    runs, words = set(), ["--framenet", "FOLDER", "--treebank", "FILE"]
    if any((ROOT / "results/confirm").glob("*.json")):
        words += ["--confirm", "FOLDER"]
    for call in evidence.calls(evidence.read_options(words)):
        options = cli._parser().parse_args(call)
        values = {name: convert(name, text) for name, text in options.parameters}
        values = {name: value for name, value in values.items() if name not in places}
        for notebook in select(find_notebooks(), options.only):
            path = ROOT / options.results / f"{notebook.name}.json"
            if path.parent.name == "confirm" and not path.exists():
                continue  # not every notebook has been confirmed yet
            runs.add(path)
            declared = notebook.declared(values | {"profile": options.profile})
            settings = resolve(**notebook.parameters | declared).as_json()
            committed = read_results(path).content["settings"]
            assert [
                name
                for name in settings.keys() | committed.keys()
                if name not in (*places, *runs_and_tasks)
                and settings.get(name) != committed.get(name)
            ] == [], path
    # Of notebooks in the new form the former rows stay until all of them have moved (RESULTS.md).
    assert runs == {*(ROOT / "results").glob("*/1[01]_*.json")}
