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
    return DataSource("folder", path, _parse_train_files(train_files))


def check_framenet(source: str) -> None:
    """Refuse a ``framenet`` parameter that names no FrameNet release.

    Raises:
        ValueError: neither "embedded" nor "nltk" nor "folder:PATH" nor "zip:PATH".
        FileNotFoundError: no such folder or file.
    """
    kind, _, path = source.partition(":")
    if kind not in ("folder", "zip") or not path:
        one_of("framenet", source, ("embedded", "nltk", "folder:PATH", "zip:PATH"))
    elif not (Path(path).is_dir() if kind == "folder" else Path(path).is_file()):
        raise FileNotFoundError(f"framenet={source!r}: there is no {'folder' if kind == 'folder' else 'file'} {path}")


ANNOTATIONS = ("gold", "spacy:NAME", "conllu:PATH")


def parse_annotation(annotation: str) -> tuple[str, str]:
    """Read the ``annotation`` parameter: its kind, and the pipeline or file that it names.

    Raises:
        ValueError: neither "gold" nor "spacy:NAME" nor "conllu:PATH".
        FileNotFoundError: no such pipeline or file.
    """
    kind, _, place = annotation.partition(":")
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


def _parse_train_files(text: str) -> tuple[tuple[str, str], ...]:
    """Read "TASK=FILE,TASK=FILE"; files are relative to the task's folder, or absolute."""
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, separator, file = part.partition("=")
        if not separator or not file:
            raise ValueError(f"train_files: {part!r} is not TASK=FILE, for example mnli=train_subset.tsv")
        pairs.append((get_task(name).name, file))
    return tuple(pairs)


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

    def shape(self) -> tuple[int, int] | None:
        """(layers, heads) as far as they are known without the Hub, else None."""
        if not self.is_local:
            return HUB_SHAPES.get(self.location)
        config = json.loads((Path(self.location) / "config.json").read_text())
        shape = config.get("num_hidden_layers"), config.get("num_attention_heads")
        return shape if all(shape) else None


def parse_model(name: str) -> ModelSource:
    """Read the ``model`` parameter: "embedded", a folder, or a Hub name, "OWNER/NAME[@REVISION]".

    Raises:
        ValueError: the name is none of these, or its folder has no weights in SafeTensors.
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
        return ModelSource(name, str(folder.resolve()))
    location, _, revision = name.partition("@")
    parts = location.split("/")
    if len(parts) != 2 or not all(parts) or name[0] in "./~":
        raise ValueError(
            f"unknown model {name!r}; choose 'embedded', the path of an existing folder, or a Hub name OWNER/NAME"
            f" such as {BERT_BASE!r}"
        )
    return ModelSource(name, location, revision or HUB_REVISIONS.get(location, "main"))
