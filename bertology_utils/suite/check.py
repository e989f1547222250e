"""Before a kernel starts: the parameters of a call, and a look into what they name."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..annotation.sources import parse_annotation
from ..annotation.treebank import check_treebank
from ..common import one_of
from ..common.profiles import GLUE
from ..framenet.release import check_release
from ..glue.sources import task_pairs
from ..glue.tsv import check_folder
from .declarations import PARAMETERS, convert
from .notebooks import Notebook
from .parameters import Settings, resolve


@dataclass(frozen=True)
class Checked:
    """A call in which no fault was found.

    Attributes:
        values: the parameters that change something for some notebook, paths made absolute.
        remarks: what could not be looked at, and which notebooks do not take a value, a line each.
        settings: of each notebook, by name.
    """

    values: dict[str, object]
    remarks: tuple[str, ...]
    settings: dict[str, Settings]


def check_call(notebooks: list[Notebook], texts: dict[str, str]) -> Checked:
    """Values for the notebooks' parameters, checked as the notebooks themselves will check them.

    Args:
        notebooks: those that will run; each parameter must be declared by one at least.
        texts: name → text, from the command line.

    Raises:
        ValueError, TypeError, FileNotFoundError: naming what is wrong and what is allowed.
    """
    declared = [name for name in PARAMETERS if any(name in notebook.parameters for notebook in notebooks)]
    given = {one_of("parameter", name, declared): convert(name, text) for name, text in texts.items()}
    values: dict[str, object] = {
        name: _absolute(name, value) for name, value in given.items() if _changes(name, value, notebooks)
    }
    remarks: dict[str, None] = {}  # a set in order
    resolved: dict[str, Settings] = {}
    for notebook in notebooks:
        settings = resolve(**(notebook.parameters | notebook.declared(values)))
        resolved[notebook.name] = settings
        remarks |= dict.fromkeys(f"not checked: {what}" for what in _look_into(settings, notebook.parameters))
    for name in values:
        without = [notebook.name for notebook in notebooks if name not in notebook.parameters]
        remarks |= {f"{', '.join(without)}: takes no {name}": None} if without else {}
    return Checked(values, tuple(remarks), resolved)


def _changes(name: str, value: object, notebooks: list[Notebook]) -> bool:
    """True unless every notebook that declares the parameter has this value anyway."""
    return any(notebook.parameters[name] != value for notebook in notebooks if name in notebook.parameters)


def _look_into(settings: Settings, declared: dict[str, object]) -> list[str]:
    """Open what a notebook will read; returns what only the network could answer."""
    unknown = [] if settings.model.is_local else [f"the model {settings.model.location} on the Hub"]
    if "annotation" in declared:  # the profile's may be a pipeline that is not installed
        kind, place = parse_annotation(settings.annotation)
        if kind == "gold" and settings.data.kind != "embedded":
            raise ValueError(
                "annotation='gold' goes with data='embedded' only; for other texts give annotation='spacy:NAME' or"
                " 'conllu:PATH'"
            )
        if kind == "conllu":
            _treebank(place)
    if "data" in declared:
        if settings.data.kind == "hub":
            unknown.append(f"the data set {GLUE} on the Hub")
        elif settings.data.kind == "folder":
            _look_into_folder(settings, "train_files" in declared)
    if "framenet" in declared:
        _release(settings.framenet)
        if settings.framenet == "nltk":
            unknown.append("FrameNet, which NLTK downloads if it is not there")
    return unknown


def _look_into_folder(settings: Settings, trains: bool) -> None:
    for task in settings.tasks:
        splits = ("train", "dev") if trains and task.name not in dict(settings.checkpoints) else ("dev",)
        _folder((task,), settings.data.path, settings.data.train_files, splits)


@cache  # several notebooks read the same
def _folder(tasks, path, train_files, splits) -> None:
    check_folder(tasks, path, dict(train_files), splits)


_treebank, _release = cache(check_treebank), cache(check_release)


def _absolute(name: str, value: str | int) -> str | int:
    """Paths as seen from here: the kernel works in another folder."""
    kind, _, path = str(value).partition(":")
    if name in ("data", "framenet") and kind in ("folder", "zip") and path:
        return f"{kind}:{Path(path).expanduser().resolve()}"
    if name == "annotation" and path and Path(path).expanduser().exists():  # a pipeline may be a name, too
        return f"{kind}:{Path(path).expanduser().resolve()}"
    if name == "model" and Path(str(value)).expanduser().is_dir():
        return str(Path(str(value)).expanduser().resolve())
    if name == "checkpoint":
        pairs = task_pairs(name, str(value), "sst2=PATH/TO/FOLDER")
        return ",".join(f"{task}={Path(place).expanduser().resolve()}" for task, place in pairs)
    return value
