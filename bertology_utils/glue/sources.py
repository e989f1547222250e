"""What the parameters ``data`` and ``model`` can name, checked before anything heavy is imported."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from ..common import one_of
from ..common.cache import file_sha256
from ..common.profiles import BERT_BASE, HUB_REVISIONS, HUB_SHAPES
from ..common.safetensors_header import tensor_shapes
from ..encoders.embedded import embedded_folder
from .tasks import get_task

DATA_KINDS = ("embedded", "hub", "folder:PATH")


@dataclass(frozen=True)
class DataSource:
    """A parsed ``data`` parameter.

    Attributes:
        kind: "embedded", "hub" or "folder".
        path: the folder, for kind "folder".
        train_files: training files named on their own, by task name.
    """

    kind: str
    path: Path | None = None
    train_files: tuple[tuple[str, str], ...] = ()


def parse_data(data: str, train_files: str = "") -> DataSource:
    """Read the ``data`` parameter, and ``train_files`` such as "mnli=train_9k.tsv,qqp=…".

    Raises:
        ValueError: for an unknown kind, or training files without a folder.
        FileNotFoundError: if the folder is not there.
    """
    kind, _, rest = data.partition(":")
    if kind != "folder" or not rest:
        one_of("data source", data, DATA_KINDS)
        if train_files:
            raise ValueError(f"train_files={train_files!r} needs data='folder:PATH', not {data!r}")
        return DataSource(kind)
    path = Path(rest).expanduser().resolve()
    if not path.is_dir():
        raise FileNotFoundError(f"no folder {path}; data='folder:PATH' wants GLUE's layout, PATH/MRPC/dev.tsv and so on")
    return DataSource("folder", path, tuple(_train_files(train_files)))


def check_framenet(source: str) -> str:
    """Refuse a ``framenet`` parameter that names no FrameNet release.

    Returns:
        The parameter, with "~" in its path replaced.

    Raises:
        ValueError: neither "embedded" nor "nltk" nor "folder:PATH" nor "zip:PATH".
        FileNotFoundError: no such folder or file.
    """
    kind, _, path = source.partition(":")
    if kind not in ("folder", "zip") or not path:
        return one_of("framenet", source, ("embedded", "nltk", "folder:PATH", "zip:PATH"))
    place = Path(path).expanduser()
    if not (place.is_dir() if kind == "folder" else place.is_file()):
        raise FileNotFoundError(f"framenet={source!r}: there is no {'folder' if kind == 'folder' else 'file'} {path}")
    return f"{kind}:{place}"


ANNOTATIONS = ("gold", "spacy:NAME", "conllu:PATH")


def parse_annotation(annotation: str) -> tuple[str, str]:
    """Read the ``annotation`` parameter: its kind, and the pipeline or file that it names.

    Raises:
        ValueError: neither "gold" nor "spacy:NAME" nor "conllu:PATH".
        FileNotFoundError: no such pipeline or file.
    """
    kind, _, place = annotation.partition(":")
    place = str(Path(place).expanduser()) if place else place
    if kind not in ("spacy", "conllu") or not place:
        one_of("annotation", annotation, ANNOTATIONS)
    elif kind == "conllu" and not Path(place).is_file():
        raise FileNotFoundError(f"annotation={annotation!r}: there is no file {place}")
    elif kind == "spacy" and not (Path(place).is_dir() or (place.isidentifier() and find_spec(place))):
        raise FileNotFoundError(
            f"annotation={annotation!r}: no spaCy pipeline {place!r}, neither installed nor a folder."
            f" To install it: python -m spacy download {Path(place).name}"
        )
    return kind, place


def _train_files(text: str) -> list[tuple[str, str]]:
    """Files are relative to the task's folder, or absolute."""
    pairs = task_pairs("train_files", text, "mnli=train_subset.tsv")
    return [(task, str(Path(file).expanduser()) if file.startswith("~") else file) for task, file in pairs]


def task_pairs(parameter: str, text: str, example: str) -> list[tuple[str, str]]:
    """Read "TASK=PLACE,TASK=PLACE" into (task name, place).

    Args:
        parameter: its name, for the message.
        text: its value.
        example: of one pair, for the message.

    Raises:
        ValueError: not of that form, or an unknown task.
    """
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, place = part.partition("=")
        if not separator or not place.strip():
            raise ValueError(f"{parameter}: {part!r} is not TASK=PLACE, for example {example}")
        pairs.append((get_task(name).name, place.strip()))
    return pairs


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
        names = sorted(p.name for p in folder.iterdir() if p.suffix in {".safetensors", ".json", ".txt", ".model"})
        listing = json.dumps({name: file_sha256(folder / name) for name in names})
        return hashlib.sha256(listing.encode()).hexdigest()

    @cached_property
    def config(self) -> dict:
        """A folder's ``config.json``.

        Raises:
            ValueError: it cannot be read, or is no model's; the message names the file.
        """
        path = Path(self.location) / "config.json"
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"model {self.name!r}: {path} cannot be read: {error}") from None
        if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
            raise ValueError(f"model {self.name!r}: {path} describes no model; wanted is a JSON object with model_type")
        return config

    def shape(self) -> tuple[int, int] | None:
        """(layers, heads) as far as they are known without the Hub, else None."""
        if not self.is_local:
            return HUB_SHAPES.get(self.location)
        shape = self.config.get("num_hidden_layers"), self.config.get("num_attention_heads")
        return shape if all(isinstance(count, int) and count > 0 for count in shape) else None


def parse_model(name: str) -> ModelSource:
    """Read the ``model`` parameter: "embedded", a folder, or a Hub name, "OWNER/NAME[@REVISION]".

    Raises:
        ValueError: the name is none of these, or its folder has no weights in SafeTensors or a damaged file.
        FileNotFoundError: the embedded model is not installed.
    """
    if name == "embedded":
        return ModelSource(name, str(embedded_folder()))
    folder = Path(name).expanduser()
    if folder.is_dir():
        missing = [] if (folder / "config.json").is_file() else ["config.json"]
        missing += [] if list(folder.glob("*.safetensors")) else ["model.safetensors"]
        if missing:
            raise ValueError(f"model folder {folder} lacks {' and '.join(missing)}; pickled weights are not loaded")
        source = ModelSource(name, str(folder.resolve()))
        _ = source.config, tensor_shapes(folder)  # opened here, so that what is damaged is refused at once
        return source
    location, _, revision = name.partition("@")
    parts = location.split("/")
    if len(parts) != 2 or not all(parts) or name[0] in "./~":
        raise ValueError(
            f"unknown model {name!r}; choose 'embedded', the path of an existing folder, or a Hub name OWNER/NAME"
            f" such as {BERT_BASE!r}"
        )
    return ModelSource(name, location, revision or HUB_REVISIONS.get(location, "main"))
