"""Wrong parameters are refused at once, with the choices; the command line and the notebooks agree."""

import copy
import gzip
import io
import json
import re
import shutil
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import safetensors.numpy
import transformers
from conftest import conllu, python

from bertology_utils import __main__ as cli
from bertology_utils import batches_of, load_tokenizer, run
from bertology_utils.glue import EMBEDDED
from bertology_utils.settings import parse_model, parse_pairs

WRONG = {
    "--only 6 -p study e6": "unknown study 'e6'; choose one of: e5, e5-again, minilm",
    "-p tasks mrpc,cola": "unknown task 'cola'; choose one of: mrpc, stsb, sst2, qqp, rte, qnli, mnli",
    "-p tasks ,": "no task named in ','",
    "-p study small -p tasks qnli": "tasks=qnli: the embedded data has mrpc, stsb, sst2 only; choose from these",
    "-p model bert": "unknown model 'bert'; choose 'embedded', 'e5', the path of an existing folder, or a Hub name",
    "-p data web": "unknown data 'web'; choose one of: embedded, hub, folder:PATH",
    "-p data folder:/nowhere/at/all": "there is no folder /nowhere/at/all; wanted is GLUE's layout",
    "-p seed 2 -p seed 3": "seed is given twice",
    "-p seeed 1": "unknown parameter 'seeed'; choose one of: ",
    "-p seed one": "seed='one' is no whole number",
    "-p framenet web": "unknown framenet 'web'; choose one of: embedded, nltk, folder:PATH, zip:PATH",
    "--only 3-1": "unknown notebook '3-1'; choose one of: ",
    "--only 1,x": "unknown notebook 'x'; choose one of: ",
    "-p checkpoint sst2": "checkpoint: 'sst2' is not TASK=PLACE, for example sst2=PATH",
    "-p checkpoint sst2=/nowhere/at/all": "checkpoint: there is no folder /nowhere/at/all for SST-2",
    "--only 6 -p data folder:tests": "MRPC has no .tsv file",
    "--only 4 -p data folder:tests -p annotation gold": "annotation='gold' goes with data='embedded' only",
    "-p annotation conllu:RESULTS.md": "RESULTS.md is not a CoNLL-U file",
    "--only 8 -p treebank /nowhere/at/all.conllu": "there is no file '/nowhere/at/all.conllu'; wanted is a CoNLL-U file's path",
    "--only 4 -p treebank README.md": "unknown parameter 'treebank'; choose one of: ",
    "-p framenet folder:tests": "is no FrameNet release: it lacks luIndex.xml, lu, frame",
}


@pytest.mark.parametrize(("call", "message"), WRONG.items())
def test_wrong_calls_end_before_a_kernel_starts(call, message, capsys, monkeypatch):
    monkeypatch.setattr("bertology_utils.run.run_notebook", Mock(side_effect=AssertionError))
    assert cli.main(["run", *call.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "measure"])
@pytest.mark.parametrize("jobs", ["-1", "two"])
def test_jobs_are_a_whole_number(command, jobs, capsys):
    with pytest.raises(SystemExit):
        cli.main([command, "--jobs", jobs])
    told = f"argument --jobs: '{jobs}' is not allowed; give a whole number from 0"
    assert told in capsys.readouterr().err


def test_in_place_is_for_default_settings_only(capsys):
    assert cli.main(["run", "--in-place", "-p", "seed", "2"]) == 2
    assert "default settings only" in capsys.readouterr().err


def test_checks_do_not_import_torch():
    code = "import sys, bertology_utils.__main__ as cli; cli.main(['check']); sys.exit('torch' in sys.modules)"
    assert python(code).returncode == 0


SAID = {
    "--only 1-3,8 -p tasks sst2": "with tasks='sst2'\n  2_framenet_heads, 8_pretrained_encoder: takes no tasks",
    "--only 2,4 -p study small -p framenet embedded": "framenet='embedded'",
    "--only 6 -p study e5 -p seed 1": "with default settings",
    "--only 8 -p treebank embedded": "treebank='embedded'",
    # What only the Hub knows is not called ready.
    "--only 1,3 -p model a/b": "not checked: the model a/b on the Hub",
    "--only 3 -p study paper": "not checked: the data set nyu-mll/glue on the Hub",
}


@pytest.mark.parametrize(("call", "said"), SAID.items())
def test_a_check_says_what_would_run_and_what_it_could_not_look_at(call, said, capsys):
    assert cli.main(["check", *call.split()]) == 0
    assert said in capsys.readouterr().out


MRPC = EMBEDDED / "MRPC" / "dev.conllu.gz"


def test_a_treebank_as_annotation_of_rows_that_it_does_not_hold_is_refused_with_what_to_do(capsys):
    """Before any model is loaded; the same file is welcome where its rows are measured."""
    call = ["check", "--only", "4", "-p", "data", "embedded", "-p", "annotation", f"conllu:{MRPC}"]
    assert cli.main([*call, "-p", "tasks", "mrpc,stsb"]) == 2
    errors = capsys.readouterr().err
    assert "CoNLL-U file dev.conllu.gz has no annotation of" in errors
    assert "treebank='PATH' has notebook 8" in errors
    assert cli.main(["check", "--only", "8", "-p", "treebank", str(MRPC)]) == 0
    assert "not checked" not in capsys.readouterr().out


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


@pytest.mark.parametrize(
    ("rows", "last", "message"),
    [
        (40, "dull\t-1", "dev.tsv, line 42: unknown label '-1'"),
        (2, "dull\t0", "dev.tsv: 3 rows; at least 4 are needed"),
    ],
)
def test_what_a_run_would_refuse_in_its_rows_is_refused_before_any_work(
    sst2, rows, last, message, capsys
):
    assert cli.main(["check", "--only", "3", *sst2(rows, last)]) == 2
    assert message in capsys.readouterr().err


def test_what_a_study_names_and_is_not_here_is_refused_before_any_work(tiny_bert, capsys):
    """A page of a model of one's own would miss it, after hours of fine-tuning maybe."""
    lacking = {"2": "no file framenet_v15.zip", "8": "'ewt.conllu'", "4": "or en_core_web_sm"}
    for page, message in lacking.items():
        assert cli.main(["check", "--only", page, "-p", "model", str(tiny_bert)]) == 2
        assert message in capsys.readouterr().err


def test_the_annotation_of_synthetic_rows_is_not_asked_of_others(sst2, capsys):
    call = ["check", *sst2(40, "new\t0"), "-p", "study", "small", "--only"]
    assert cli.main([*call, "6"]) == 0
    assert cli.main([*call, "4", "-p", "annotation", "gold"]) == 2
    assert "annotation='gold' goes with data='embedded' only" in capsys.readouterr().err


@pytest.mark.parametrize("parameter", ["treebank {}", "annotation conllu:{}"])
def test_a_treebank_without_parts_of_speech_is_not_called_ready(parameter, tmp_path, capsys):
    bank = tmp_path / "bank.conllu"
    bank.write_text(gzip.decompress(MRPC.read_bytes()).decode().replace("\tNOUN\t", "\tNN\t"))
    name, value = parameter.format(bank).split()
    page = {"treebank": "8", "annotation": "5"}[name]
    assert cli.main(["check", "--only", page, "-p", name, value]) == 2
    told = capsys.readouterr().err
    assert "the column UPOS of bank.conllu has other parts of speech" in told and "'NN'" in told


def test_a_terminal_that_does_not_know_all_letters_prints_the_others(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    assert cli.main(["list", "--only", "7"]) == 0
    assert cli.main(["check", "--only", "8", "-p", "treebank", "\u4e2d.conllu"]) == 2
    stream.flush()
    told = stream.buffer.getvalue().decode("ascii")
    assert "7 ? " in told and "there is no file" in told


def test_a_treebank_of_sentences_that_are_all_too_long_is_not_called_ready(tmp_path, capsys):
    dogs, cats = (conllu(*((form, at, "nsubj") for at in range(140))) for form in ("dog", "cat"))
    bank = tmp_path / "long.conllu"
    bank.write_text(dogs + cats)
    assert cli.main(["check", "--only", "8", "-p", "treebank", str(bank)]) == 2
    assert "longer than 128 wordpieces" in capsys.readouterr().err


CONFIG = '{"model_type": "bert", "num_hidden_layers": 3, "num_attention_heads": 4}'


WHOLE = safetensors.numpy.save({"a": np.zeros((2, 3), np.float32)})


@pytest.mark.parametrize(
    "config, weights, message",
    [
        ("[]", WHOLE, "config.json describes no model"),
        (CONFIG[:20], WHOLE, "config.json describes no model"),
        (CONFIG, b"<html>not found</html>", "model.safetensors is not a SafeTensors file"),
        (CONFIG, WHOLE[:-1], "model.safetensors is not a SafeTensors file, or is cut off"),
    ],
)
def test_a_damaged_model_folder_is_refused_by_the_files_name(
    tmp_path, config, weights, message, capsys
):
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_bytes(weights)
    assert cli.main(["check", "--only", "6", "-p", "model", str(tmp_path)]) == 2
    assert f"{tmp_path}/{message}" in capsys.readouterr().err


# What a run would refuse of a model, hours later.

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 48}
DISTIL = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48}
GPT = {"n_embd": 32, "n_layer": 3, "n_head": 4}


def saved(folder, tokenizer, name, **sizes):
    """A tiny model of a class of transformers, and a tokenizer beside it."""
    kind = getattr(transformers, name)
    model = kind(kind.config_class(vocab_size=len(tokenizer), **sizes))
    model.save_pretrained(folder, max_shard_size="2MB")
    tokenizer.save_pretrained(folder)
    return ["check", "-p", "model", str(folder), "-p", "study", "small", "--only"]


@pytest.mark.parametrize(
    ("name", "sizes", "only", "message"),
    [
        ("DebertaV2Model", SMALL, "6", "does not go through transformers' attention interface"),
        ("GPT2Model", GPT, "8", "is a decoder"),
        ("DistilBertModel", DISTIL, "1,3", "not reached here, as notebooks 3 and 10 do"),
        ("FNetModel", {"hidden_size": 32, "num_hidden_layers": 2}, "1", "has no attention heads"),
    ],
)
def test_an_architecture_that_cannot_be_measured_is_not_called_ready(
    tmp_path, tokenizer, only, name, sizes, message, capsys
):
    assert cli.main([*saved(tmp_path, tokenizer, name, **sizes), only]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sizes", "added", "message"),
    [
        ({}, ["odder"], "to 30522, and BertForSequenceClassification knows 0 to 30521"),
        ({"max_position_embeddings": 16}, [], "is longer than the 16 that BertForSequence"),
    ],
)
def test_rows_that_a_model_cannot_read_are_not_called_ready(
    tmp_path, tokenizer, sizes, added, message, capsys
):
    """Its tokenizer was given a word that its embeddings lack, or it reads 16 tokens."""
    call = saved(tmp_path, tokenizer, "BertModel", **SMALL | sizes)
    (tokenizer := copy.deepcopy(tokenizer)).add_tokens(added)
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "SST-2").mkdir()
    for name in ("train", "dev"):
        rows = [f"{name} is {'odder ' * at}\t{at % 2}" for at in range(20)]
        (tmp_path / "SST-2" / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *rows]))
    assert cli.main([*call, "6", "-p", "tasks", "sst2", "-p", "data", f"folder:{tmp_path}"]) == 2
    assert message in capsys.readouterr().err


def test_a_model_whose_pooler_is_missing_is_ready(tmp_path, tokenizer):
    assert cli.main([*saved(tmp_path, tokenizer, "BertForMaskedLM", **SMALL), "1,6,8"]) == 0


def of_another_model(index):
    tensors = {"other": np.zeros(2, np.float32)}
    safetensors.numpy.save_file(tensors, max(index.parent.glob("*-of-*")))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda index: max(index.parent.glob("*-of-*")).unlink(), "directory: {}/model-00002-of"),
        (of_another_model, "model {!r} does not fit Bert"),
    ],
)
def test_weights_of_several_files_that_are_not_whole_are_refused(
    tmp_path, tokenizer, damage, message, capsys
):
    call = saved(tmp_path, tokenizer, "BertModel", **SMALL)
    parse_model(str(tmp_path))
    damage(tmp_path / "model.safetensors.index.json")
    assert cli.main([*call, "6"]) == 2
    assert message.format(str(tmp_path)) in capsys.readouterr().err


def test_training_rows_are_read_for_a_checkpoint_too(sst2, tiny_bert, tiny_classifier, capsys):
    """A study draws the rows that it measures from those that are left."""
    rows = sst2(40)
    (Path(rows[-1].removeprefix("folder:")) / "SST-2" / "train.tsv").unlink()
    call = ["check", "--only", "6", "-p", "model", str(tiny_bert), *rows]
    assert cli.main([*call, "-p", "checkpoint", f"sst2={tiny_classifier}"]) == 2
    assert "missing file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "call", ["6 -p model embedded", "6 -p data embedded -p tasks sst2", "2 -p framenet embedded"]
)
def test_what_a_parameter_says_is_no_path_though_a_folder_bears_its_name(
    tmp_path, monkeypatch, call
):
    (tmp_path / "embedded").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "--only", *call.split()]) == 0


def test_a_folder_that_is_no_model_is_refused_with_what_to_name(tmp_path, tokenizer, capsys):
    call = saved(tmp_path / "checkpoint-500", tokenizer, "BertModel", **SMALL)
    empty = tmp_path / "empty"
    empty.mkdir()
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "google-bert/bert-base-uncased"}
    (tmp_path / "adapter").mkdir()
    beside = shutil.copytree(tmp_path / "checkpoint-500", tmp_path / "beside")
    for folder in (tmp_path / "adapter", beside):
        (folder / "adapter_config.json").write_text(json.dumps(adapter))
    refused = {
        tmp_path: "has no config.json; name a folder in it: beside, checkpoint-500",
        empty: "has no config.json; give one that save_pretrained wrote",
        tmp_path / "adapter": "holds an adapter of PEFT, which changes a model and is none",
        beside: "holds an adapter of PEFT, which changes a model and is none",
    }
    for folder, message in refused.items():
        assert cli.main(["check", "-p", "model", str(folder), *call[4:], "6"]) == 2
        assert f"model folder {folder} {message}" in capsys.readouterr().err


def test_quantized_weights_are_not_called_ready(tmp_path, tokenizer, capsys):
    call = saved(tmp_path, tokenizer, "BertModel", **SMALL)
    config = json.loads((file := tmp_path / "config.json").read_text())
    file.write_text(json.dumps(config | {"quantization_config": {"load_in_8bit": True}}))
    assert cli.main([*call, "6"]) == 2
    assert "has quantized weights (quantization_config in its config" in capsys.readouterr().err


def test_a_damaged_tokenizer_is_refused_with_the_models_name(tmp_path, tokenizer, capsys):
    call = saved(tmp_path, tokenizer, "BertModel", **SMALL)
    (tmp_path / "tokenizer.json").write_text("version https://git-lfs.github.com/spec/v1")
    assert cli.main([*call, "6"]) == 2
    told = f"model {str(tmp_path)!r} cannot be loaded; a file of it may be"
    assert told in capsys.readouterr().err


def test_a_length_to_which_the_tokenizer_itself_cuts_and_pads_changes_nothing(tmp_path, tokenizer):
    own = copy.deepcopy(tokenizer)
    own.backend_tokenizer.enable_truncation(6)
    own.backend_tokenizer.enable_padding(length=64)
    saved(tmp_path, own, "BertModel", **SMALL)
    texts = ["It rains.", "The old king sees the sun every single morning of the year."]
    stored = load_tokenizer(str(tmp_path))
    for ours, theirs in zip(batches_of(texts, stored), batches_of(texts, tokenizer), strict=True):
        assert all(ours.inputs[name].equal(one) for name, one in theirs.inputs.items())


@pytest.mark.parametrize("name", ["epoch=1-step=20", "a,b", "a, b", "run@2"])
def test_a_path_may_have_commas_and_signs(name):
    for text in (f"sst2={name}", f"mrpc={name},sst2={name}", f"sst2={name} , mrpc= {name},"):
        tasks = re.findall("mrpc|sst2", text)
        assert parse_pairs("checkpoint", text) == dict.fromkeys(tasks, name)


def test_a_pipeline_that_cannot_be_loaded_is_not_called_ready(tmp_path, sst2, capsys):
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path)
    (tmp_path / "config.cfg").write_text("no config")
    call = ["check", "--only", "5", *sst2(40), "-p", "annotation", f"spacy:{tmp_path}"]
    assert cli.main(call) == 2
    assert "cannot be loaded here: Config validation error" in capsys.readouterr().err


def test_notebooks_take_their_defaults_and_say_what_each_parameter_means(capsys):
    for notebook in run.find_notebooks():
        run.study_of(notebook, {})
        assert notebook.parameters.keys() == notebook.meanings.keys()
    assert cli.main(["list", "--only", "6"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert "     seed = 1: of every random draw" in listed
    assert any(line.startswith("     study = 'e5': whose measurements: e5") for line in listed)


def cells(*sources):
    """A notebook's text, with these cells of parameters."""
    tagged = {"cell_type": "code", "metadata": {"tags": ["parameters"]}}
    return json.dumps({"cells": [tagged | {"source": [source]} for source in sources]})


BROKEN = ["{", "[]", '{"cells": 3}', cells(), cells("study = 'e5'", "seed = 2"), cells("x = 1")]
BROKEN += [cells(f"study = 'e5'\n{one}") for one in ("x =", "x = f()", "x: int", "print(1)")]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_notebook_or_parameters_cell_is_named(tmp_path, text):
    path = tmp_path / "1_x.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"1_x.ipynb is no page: wanted is one cell tagged"):
        run.read_notebook(path)
