"""The notebooks as files: where they are, what they are called, which parameters they declare."""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from ..common import one_of
from .results import project_root

PARAMETERS_TAG = "parameters"


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

    def declared(self, values: dict[str, object]) -> dict[str, object]:
        """Those of a call's values that it has parameters for."""
        return {name: value for name, value in values.items() if name in self.parameters}

    @property
    def number(self) -> str:
        """The leading number, by which the command line selects it."""
        return self.name.split("_")[0]


def find_notebooks() -> list[Notebook]:
    """All notebooks of the checkout, by number.

    Raises:
        FileNotFoundError: the working folder is not in a checkout.
        ValueError: a notebook without one literal parameters cell.
    """
    folder = project_root() / "notebooks"
    paths = sorted((path for path in folder.glob("*.ipynb") if re.match(r"\d+_", path.name)), key=_place)
    if not paths:
        raise FileNotFoundError(f"no notebooks in {folder}; run the command from a checkout of the project")
    return [read_notebook(path) for path in paths]


def select(notebooks: list[Notebook], only: str) -> list[Notebook]:
    """The notebooks whose numbers are listed in ``only`` ("3,6" or "1-3,6"); all if it is empty.

    Raises:
        ValueError: for a number that no notebook has, or a range without one.
    """
    if not only:
        return notebooks
    by_number = {notebook.number: notebook for notebook in notebooks}
    numbers: set[str] = set()
    for part in only.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        inside = [number for number in by_number if ends and int(ends[1]) <= int(number) <= int(ends[2])]
        numbers.update(inside or [one_of("notebook", part.strip(), by_number)])
    return [by_number[number] for number in sorted(numbers, key=int)]


def read_notebook(path: Path) -> Notebook:
    """Title and parameters of one notebook file; see :func:`find_notebooks`."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if PARAMETERS_TAG in cell["metadata"].get("tags", [])]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no notebook: {type(error).__name__}: {error}") from None
    if len(tagged) != 1:
        raise ValueError(f"{path}: {len(tagged)} cells tagged {PARAMETERS_TAG!r}; one is wanted")
    lines = (line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).splitlines())
    title = next((line[2:] for line in lines if line.startswith("# ")), path.stem)
    return Notebook(path, title, _literals("".join(tagged[0]["source"]), path))


def _literals(source: str, path: Path) -> dict[str, object]:
    values: dict[str, object] = {}
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise ValueError(f"{path}: the parameters cell is not Python: {error}") from None
    for statement in statements:
        name, value = _assignment(statement, path)
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, TypeError):
            raise ValueError(f"{path}: a parameter is a text or a number, not {ast.unparse(statement)!r}") from None
    return values


def _assignment(statement: ast.stmt, path: Path) -> tuple[str, ast.expr]:
    """Name and value of ``name = value`` or ``name: type = value``; raises ValueError for any other statement."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name, value
    raise ValueError(f"{path}: the parameters cell holds plain assignments only, not {ast.unparse(statement)!r}")


def _place(path: Path) -> tuple[int, str]:
    return int(path.name.split("_")[0]), path.name
