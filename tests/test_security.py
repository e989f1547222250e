"""What comes from elsewhere is data: no code of it is run, no path of it is followed, no tag of it reaches a page."""

import gzip
import json
import pickle
from pathlib import Path

import pytest
from hub_server import BERT, REVISION, LocalHub, told

from bertology_utils import common
from bertology_utils.run import output_folder
from bertology_utils.settings import parse_pairs
from docs.pages import in_markdown

# Code of a repository


class Harm:
    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


RUNNING = "only by running code from its repository"
PICKLED = {name: content for name, content in BERT.items() if name != "model.safetensors"}
LOAD = """
for name in NAMES:
    tell(name, lambda: models.load_tokenizer(parse_model(name)))
    tell(name, model(name))
    tell(name, lambda: models.load_classifier(parse_model(name), "sst2"))
"""


def with_code(mark, config, **auto_map):
    """A repository whose code would leave a mark: its configuration, model and tokenizer name classes of its own."""
    code = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nclass Own: pass\n"
    changed = json.loads(BERT["config.json"]) | config | {"auto_map": auto_map}
    return BERT | {"config.json": json.dumps(changed).encode(), "own.py": code.encode()}


def test_neither_pickled_weights_nor_code_of_a_repository_is_run(tmp_path):
    mark = tmp_path / "mark"
    classes = ("AutoConfig", "AutoModel", "AutoModelForSequenceClassification")
    own = dict.fromkeys(classes, "own.Own")
    own_tokenizer = json.dumps({"auto_map": {"AutoTokenizer": ["own.Own", None]}}).encode()
    tokenizer = {"tokenizer_config.json": own_tokenizer}
    repositories = {
        "a/pickled": PICKLED | {"pytorch_model.bin": pickle.dumps(Harm(mark))},
        "a/own": with_code(mark, {"model_type": "own"}, **own) | tokenizer,
        "a/bert-and-own": with_code(mark, {}, **own),
        # transformers has none for it
        "a/no-classifier": with_code(mark, {"model_type": "blip_2_qformer"}, **own),
    }
    names = [f"{name}@{REVISION}" for name in repositories]
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, content in repositories["a/own"].items():
        (folder / name).write_bytes(content)
    with LocalHub({name: (REVISION, files) for name, files in repositories.items()}) as hub:
        names.append(str(folder))
        lines, _ = told(f"NAMES = {names!r}\n{LOAD}", hub.url, tmp_path / "home")
        fetched = {path.rsplit("/", 1)[-1] for method, path in hub.requests if method == "GET"}
    assert not mark.exists()
    pickled, own, ignored, no_classifier, local = (
        [what for of, what in lines if of == name] for name in names
    )
    assert pickled[0] == "loaded" and ignored == ["loaded"] * 3
    assert all("pickled weights are not loaded" in line for line in pickled[1:])
    for line in own + local:
        assert line.startswith("ValueError|") and RUNNING in line
    assert RUNNING in no_classifier[2]
    assert "model.safetensors" in fetched and not fetched & {"own.py", "pytorch_model.bin"}


PINNED = """
from bertology_utils.study import Study
study = Study.of("small", model="a/bert")
print("TOLD", study._model.fingerprint, study.encoder().config.num_hidden_layers, sep="|")
"""


def test_a_branch_of_the_hub_is_pinned_to_its_commit(tmp_path):
    with LocalHub({"a/bert": (REVISION, BERT)}, branches={"a/bert": "main"}) as hub:
        assert told(PINNED, hub.url, tmp_path)[0] == [[f"a/bert@{REVISION}", "2"]]
        weights = {path for _, path in hub.requests if "safetensors" in path}
    assert weights and all(REVISION in path for path in weights)


# Paths and sizes


def test_a_packed_file_that_unpacks_to_too_much_is_refused_before_it_fills_the_memory(
    tmp_path, monkeypatch
):
    bomb = tmp_path / "train.tsv.gz"
    bomb.write_bytes(gzip.compress(bytes(20 * 2**20)))  # one line of 20 MiB
    assert bomb.stat().st_size < 100_000
    monkeypatch.setattr(common, "LARGEST", 2**20)
    why = r"train\.tsv\.gz is refused: it unpacks to more than"
    with common.opened(bomb) as file:
        with pytest.raises(ValueError, match=why):
            file.readline()
        assert file.buffer.tell() < 1.1 * 2**20


@pytest.mark.parametrize("name", ["../mrpc", "/etc", "mrpc/../.."])
def test_a_tasks_name_is_no_path(name):
    with pytest.raises(ValueError, match="unknown task"):
        parse_pairs("checkpoint", f"{name}=folder")


def test_no_parameter_leads_a_run_out_of_its_folder():
    for value in ("../../../etc", "/etc/passwd", "..", "a\\..\\b", "\0"):
        assert output_folder({"study": "paper", "model": value}).parent.name == "runs"


# Pages

HOSTILE = "\"'></td><script>hit()</script><img src=x onerror=hit()> [x](javascript:hit()) $\\href{javascript:hit()}{x}$ <!--"


def test_markdown_of_results_has_no_tags_links_or_formulas():
    text = in_markdown(HOSTILE) + in_markdown("p < 0.05, [0.1, 0.2], **holds here**")
    assert not any(sign in text for sign in ("<s", "<i", "<!", "](", " $"))
    assert "p < 0.05, [0.1, 0.2], **holds here**" in text
