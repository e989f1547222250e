"""Shared fixtures: small random encoders, a few rows, a cache and a Hub of the test's own."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

# Before transformers is imported anywhere: no test may reach for the network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared" / "data"

# Processes that tests start find the project and the tests, as these do.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")])
)

# Files whose tests start many processes, or train, the longest first: so they begin, and `make
# test-quick` leaves them out.
SLOW = "experiments second_device treebank digits finetune run faults hub security batch_sizes"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no folder of third-party data here")


def pytest_configure(config):
    # A shell's background job ignores Ctrl-C, and so would all that its tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(ROOT)


def pytest_collection_modifyitems(items):
    """Slow ones first, so that at the end no process is left alone with one; the others in their order."""
    slow = [f"test_{name}" for name in SLOW.split()]
    for item in items:
        if item.path.stem in slow:
            item.add_marker("slow")
    items.sort(key=lambda item: [*slow, item.path.stem].index(item.path.stem))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Every test has its own, empty cache, and keeps what it measures to itself."""
    monkeypatch.setenv("BERTOLOGY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BERTOLOGY_MEASURED", str(tmp_path / "measured"))
    return tmp_path / "cache"


@pytest.fixture
def stored_weights(monkeypatch):
    """Weights are loaded as they are stored, also on an emulated machine (tests/machines), which moves them by a rounding."""
    monkeypatch.delenv("BERTOLOGY_NOISE", raising=False)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """Folder of a random BERT: 3 layers × 4 heads, hidden size 32, the embedded model's vocabulary."""
    return make_bert(tmp_path_factory.mktemp("tiny-bert"), layers=3, heads=4, hidden=32)


def make_bert(folder: Path, layers: int, heads: int, hidden: int, seed: int = 0) -> Path:
    """Save a random BERT encoder and the embedded model's tokenizer into ``folder``."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from bertology_utils.settings import embedded_folder

    torch.manual_seed(seed)
    sizes = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": hidden}
    model = BertModel(BertConfig(**sizes, intermediate_size=4 * hidden))
    # Far from BERT's small initial weights: maps that are not uniform.
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=1.5 * hidden**-0.5)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(embedded_folder()).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_classifier(tiny_bert, tmp_path_factory):
    """Folder of a classifier of two outputs on top of it, and its tokenizer."""
    from bertology_utils import load_classifier, load_tokenizer

    folder = tmp_path_factory.mktemp("tiny-classifier")
    load_classifier(str(tiny_bert), "rte", seed=7).save_pretrained(folder)
    load_tokenizer(str(tiny_bert)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tokenizer():
    """The embedded model's tokenizer, which no test may change."""
    from bertology_utils import load_tokenizer

    return load_tokenizer("embedded")


def loaded(folder):
    """The encoder in a folder, and its tokenizer."""
    from bertology_utils import load_encoder, load_tokenizer

    return load_encoder(str(folder)), load_tokenizer(str(folder))


def place_release(tokenizer):
    """The mini-FrameNet's sentences that the paper's rules keep, placed, and the model's inputs."""
    from bertology_utils.framenet import PAPER, extract, load_release
    from bertology_utils.links import place_frames

    return place_frames(extract(load_release("embedded"), PAPER), tokenizer)


def random_classifier(folder, task, seed=0):
    """A classifier with weights far from uniform attention, so that its answers depend on every head."""
    import torch

    from bertology_utils import load_classifier

    model = load_classifier(str(folder), task)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.25)
    return model


def make_rows(task, count: int = 64, seed: int = 0):
    """Rows of nonsense for any task, with labels that the first word gives away."""
    import random

    from datasets import Dataset

    from bertology_utils.glue import schema

    words = "river stone bread lamp horse garden paper window music winter bridge coffee".split()
    rng = random.Random(seed)
    rows = []
    for index in range(count):
        label = rng.random() * 5 if task.is_regression else index % task.num_labels
        sign = ("good", "bad", "odd")[int(label * 3 / 5.01) if task.is_regression else label]
        texts = [" ".join([sign, *rng.choices(words, k=rng.randint(2, 12))]) for _ in task.fields]
        rows.append(dict(zip(task.fields, texts, strict=True)) | {"label": label, "idx": index})
    return Dataset.from_list(rows, features=schema(task))


def batches_of_rows(task, count, tokenizer, max_length=64, seed=0, **options):
    """Such rows in batches."""
    from bertology_utils.batches import make_batches, tokenize

    inputs = tokenize(make_rows(task, count, seed), task, tokenizer, max_length)
    return make_batches(inputs, tokenizer, **options)


def one_example(batches, example):
    """One example of the data as a batch, without padding."""
    from bertology_utils.batches import Batch

    (batch,) = (batch for batch in batches if example in batch.index)
    row = batch.index.index(example)
    end = int(batch.mask[row].nonzero().max()) + 1
    return Batch({name: ids[[row], :end] for name, ids in batch.inputs.items()}, [example])


def conllu(*words):
    """A sentence in CoNLL-U, of (form, number of its head, relation, part of speech), the last "X" unless it is given."""
    rows = [
        f"{at}\t{form}\t{form}\t{(*tag, 'X')[0]}\t_\t_\t{head}\t{relation}\t_\t_\n"
        for at, (form, head, relation, *tag) in enumerate(words, 1)
    ]
    return "".join(rows) + "\n"


def copy_of(paths, folder):
    """A folder with these files of the checkout."""
    for path in paths:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return folder


def contents(folder):
    """What is in the files of a folder, by their paths in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def head_view(monkeypatch):
    """What is given to bertviz's head_view, which is not there: positional arguments and options of every call."""
    given = []
    view = SimpleNamespace(head_view=lambda *values, **options: given.append((values, options)))
    monkeypatch.setitem(sys.modules, "bertviz", view)
    return given


def python(code, *arguments, before=(), **options):
    """What a process of its own that runs this code leaves; a command may stand before it."""
    command = [*before, sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)


@pytest.fixture(scope="session")
def browser():
    """A real browser; without one the test is skipped."""
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium, which `make site` installs, drives the browser"
    )
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip("no browser here; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in "headless=new no-sandbox disable-dev-shm-usage window-size=1200,1000".split():
        options.add_argument(f"--{argument}")
    try:
        running = webdriver.Chrome(options, service=webdriver.ChromeService(driver))
    except importlib.import_module("selenium.common").WebDriverException as error:
        pytest.skip(f"the browser here does not start: {error.msg}")
    running.set_page_load_timeout(120)
    yield running
    running.quit()


@pytest.fixture(params=sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def path(request):
    """A committed notebook, each in turn."""
    return request.param


@pytest.fixture
def cells(path):
    """Its cells."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


KEY = {"what": "numbers", "seed": 1}  # of an entry of the cache


def fill_with(text):
    """What fills an entry with a file of this text."""
    return lambda target, scratch: (target / "data.txt").write_text(text)
