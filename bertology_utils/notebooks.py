"""The notebooks as files, and a call of them checked before a kernel starts."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from .annotation.annotators import load_annotator, sentences_of
from .common import one_of
from .framenet.release import check_release
from .glue import Task, check_split, load_rows, sample
from .hub import GLUE
from .record import project_root
from .settings import PARAMETERS, Settings, absolute, convert, parse_source, resolve
from .verdicts import MIN_EXAMPLES

# The cell of the parameters that a reader changes, and a folded one before it with the others.
PARAMETERS_TAG, DEFAULTS_TAG = "parameters", "defaults"
_split, _release = cache(check_split), cache(check_release)  # several notebooks read the same
_annotator, _treebank = cache(load_annotator), cache(sentences_of)


@dataclass(frozen=True)
class Notebook:
    """One notebook.

    Attributes:
        path: the file.
        title: its first heading.
        parameters: name → default, in the order of the parameters cell.
    """

    path: Path
    title: str
    parameters: dict[str, object]

    @property
    def name(self) -> str:
        """File name without suffix ("3_finetuning_drift")."""
        return self.path.stem

    @property
    def number(self) -> str:
        """By which the command line selects it: "6", or of an appendix "6a"."""
        return self.name.split("_")[0]

    @property
    def order(self) -> tuple[int, str]:
        """Its place among the notebooks: an appendix stands behind its page."""
        return place_of(self.number)

    def declared(self, values: dict[str, object]) -> dict[str, object]:
        """Those of a call's values that it has parameters for."""
        return {name: value for name, value in values.items() if name in self.parameters}


def place_of(number: str) -> tuple[int, str]:
    """Sorts notebooks' numbers: "6", "6a", "10"."""
    return int(number.rstrip("a")), number


def find_notebooks() -> list[Notebook]:
    """All notebooks of the checkout, by number.

    Raises:
        FileNotFoundError: the working folder is not in a checkout.
        ValueError: a notebook without one literal parameters cell.
    """
    folder = project_root() / "notebooks"
    found = [read_notebook(path) for path in sorted(folder.glob("[0-9]*_*.ipynb"))]
    if not found:
        raise FileNotFoundError(
            f"no notebooks in {folder}; run the command from a checkout of the project"
        )
    return sorted(found, key=lambda notebook: notebook.order)


def select(notebooks: list[Notebook], only: str) -> list[Notebook]:
    """The notebooks whose numbers are listed in ``only`` ("3,6a" or "1-3,6"; a range has the appendices, too); all if it is empty.

    Raises:
        ValueError: for a number that no notebook has, or a range without one.
    """
    if not only:
        return notebooks
    by_number = {notebook.number: notebook for notebook in notebooks}
    numbers: set[str] = set()
    for part in only.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        inside = [
            number
            for number in by_number
            if ends and int(ends[1]) <= place_of(number)[0] <= int(ends[2])
        ]
        numbers.update(inside or [one_of("notebook", part.strip(), by_number)])
    return [by_number[number] for number in sorted(numbers, key=place_of)]


def read_notebook(path: Path) -> Notebook:
    """Title and parameters of one notebook file; see :func:`find_notebooks`."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        by_tag = {
            tag: [
                "".join(cell["source"]) for cell in cells if tag in cell["metadata"].get("tags", [])
            ]
            for tag in (DEFAULTS_TAG, PARAMETERS_TAG)
        }
        text = "\n".join(
            "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no notebook: {type(error).__name__}: {error}") from None
    if len(by_tag[PARAMETERS_TAG]) != 1 or len(by_tag[DEFAULTS_TAG]) > 1:
        tag = DEFAULTS_TAG if len(by_tag[PARAMETERS_TAG]) == 1 else PARAMETERS_TAG
        raise ValueError(f"{path}: {len(by_tag[tag])} cells tagged {tag!r}; one is wanted")
    title = re.search(r"^# (.*)", text, re.MULTILINE)
    try:
        return Notebook(
            path, title[1] if title else path.stem, assigned("\n".join(chain(*by_tag.values())))
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def assigned(source: str) -> dict[str, object]:
    """Names and values of a parameters cell.

    papermill's own inspection reads lines by a pattern and passes over those that it does not
    match.

    Raises:
        ValueError: there is anything but assignments of one text or number to one name.
    """
    values = {}
    try:
        for statement in ast.parse(source).body:
            (target,) = statement.targets  # type: ignore[attr-defined]
            values[target.id] = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
    except (SyntaxError, AttributeError, ValueError, TypeError) as error:
        raise ValueError(
            f"the parameters cell holds lines NAME = VALUE only, texts and numbers: {error}"
        ) from None
    return values


@dataclass(frozen=True)
class Checked:
    """A call in which no fault was found.

    Attributes:
        values: the parameters that change something for some notebook, paths made absolute.
        remarks: what could not be looked at, and which notebooks do not take a value, a line each.
    """

    values: dict[str, object]
    remarks: tuple[str, ...]


def check_call(notebooks: list[Notebook], texts: dict[str, str]) -> Checked:
    """Values for the notebooks' parameters, checked as the notebooks themselves will check them.

    Args:
        notebooks: those that will run; each parameter must be declared by one at least.
        texts: name → text, from the command line.

    Raises:
        ValueError, TypeError, FileNotFoundError: naming what is wrong and what is allowed.
    """
    takers = {
        name: [notebook for notebook in notebooks if name in notebook.parameters]
        for name in PARAMETERS
    }
    allowed = [name for name, taking in takers.items() if taking]
    given = {one_of("parameter", name, allowed): _given(name, text) for name, text in texts.items()}
    # Without those that every notebook has by default.
    values: dict[str, object] = {
        name: value
        for name, value in given.items()
        if any(nb.parameters[name] != value for nb in takers[name])
    }
    settings = [
        resolve(**(notebook.parameters | notebook.declared(values))) for notebook in notebooks
    ]
    looked = [
        what
        for of_one, nb in zip(settings, notebooks, strict=True)
        for what in _look_into(of_one, nb.parameters)
    ]
    remarks = [f"not checked: {what}" for what in dict.fromkeys(looked)]
    without = {
        name: [notebook.name for notebook in notebooks if notebook not in takers[name]]
        for name in values
    }
    remarks += [f"{', '.join(names)}: takes no {name}" for name, names in without.items() if names]
    return Checked(values, tuple(remarks))


def _given(name: str, text: str) -> str | int:
    value = convert(name, text)
    return absolute(name, value) if isinstance(value, str) else value


def _splits(settings: Settings, declared: dict[str, object]) -> Iterator[tuple[Task, str]]:
    """Whose rows a notebook reads, and which: to train on, and to measure."""
    for task in settings.tasks:
        trains = "train_files" in declared and task.name not in dict(settings.checkpoints)
        yield from [(task, "train"), (task, "dev")] if trains else [(task, "dev")]
        if trains and (before := settings.before(task)):
            yield before[0], "train"


def _look_into(settings: Settings, declared: dict[str, object]) -> list[str]:
    """Open what a notebook will read; returns what only the network could answer, nothing where all was fetched."""
    data = settings.data
    unknown = [] if settings.model.is_local else [f"the model {settings.model.location} on the Hub"]
    # Where it is not declared, the profile's may be a pipeline that is not installed.
    annotates = "annotation" in declared and parse_source("annotation", settings.annotation)[0]
    if annotates == "conllu":
        _annotator(settings.annotation)
    if "treebank" in declared and settings.treebank:
        _treebank(settings.treebank, MIN_EXAMPLES)
    if "data" in declared and data.kind == "hub":
        unknown.append(
            f"the data set {GLUE} on the Hub"
            + ", and whether its rows are annotated" * (annotates == "conllu")
        )
    if "data" in declared and data.kind == "folder":
        for task, split in _splits(settings, declared):
            _split(task, split, data)
    if annotates == "conllu" and data.kind != "hub":
        for task in settings.tasks:
            rows = sample(load_rows(task, "dev", data), settings.max_examples, settings.seed)
            _annotator(settings.annotation).annotate(
                [text for field in task.fields for text in rows[field]]
            )
    if "framenet" in declared:
        _release(settings.framenet)
        if settings.framenet == "nltk":
            unknown.append("FrameNet, which NLTK downloads if it is not there")
    return unknown


def notebook_text(content: dict[str, object]) -> str:
    """A notebook's content as Jupyter writes it."""
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def seen_from(folder: Path, content: dict, values: Mapping[str, object]) -> dict:
    """An executed notebook as it reads in another folder, in place: its links lead there, and a run of one's own says so.

    Args:
        folder: where it will stand.
        content: the notebook as parsed JSON.
        values: its parameters that are not the default ones.
    """
    root = os.path.relpath(project_root(), folder)
    told = ", ".join(f"{name} = {value}" for name, value in values.items())
    own = (
        f"\n\n*A run of your own ({told}): tables and figures show it; the text tells of the committed run.*"
        if told
        else ""
    )
    texts = [cell for cell in content["cells"] if cell["cell_type"] == "markdown"]
    title = next((cell for cell in texts if "".join(cell["source"]).startswith("# ")), None)
    for cell in texts:
        text = "".join(cell["source"]).replace("](../", f"]({root}/")
        cell["source"] = (text + own if cell is title else text).splitlines(keepends=True)
    return content
