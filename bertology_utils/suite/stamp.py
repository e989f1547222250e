"""The cells that every notebook has from one place: its Colab badge, its set-up cell, and its parameters."""

import ast

from .address import Published
from .declarations import PARAMETERS, parameters_cell

BADGE, SETUP, PARAMETERS_TAG = "badge", "setup", "parameters"
BADGE_IMAGE = "![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)"
_ABOUT = 'Runs in minutes without a GPU. `profile = "colab"` is made for a T4 and two hours: four tasks, 10,000 rows.'

SETUP_CELL = """\
# Installs the project where it is missing; on Colab it also says what is there. Elsewhere it does nothing.
import importlib.util, subprocess, sys
REPOSITORY, TAG = "{address}", "{tag}"  # from pyproject.toml
DRIVE = ""  # @param {{type:"string"}}  # on Colab, a folder of your Drive that keeps models and results
new = importlib.util.find_spec("bertology_utils") is None
if new and not REPOSITORY:
    sys.exit("bertology_utils is not installed. From a clone of the project run: make reproduce. "
             "On Colab: publish your copy first (CONTRIBUTING.md), and open it by its badge.")
if new:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", f"git+{{REPOSITORY}}@{{TAG}}"]
    if (done := subprocess.run(pip, check=False, capture_output=True, text=True)).returncode:
        sys.exit(f"{{TAG}} of {{REPOSITORY}} cannot be installed:\\n{{done.stderr[-1000:]}}")
    importlib.invalidate_caches()
from bertology_utils.suite import colab
colab.set_up(new, DRIVE)"""


def badge(to: Published, notebook: str) -> str:
    """Markdown of a notebook's Colab badge; a comment, which no reader sees, while nothing is published.

    Args:
        to: address and tag.
        notebook: file name ("3_finetuning_drift.ipynb").
    """
    if not to.address:
        return "<!-- The Colab badge appears here once the project is published (CONTRIBUTING.md). -->"
    place = to.address.removeprefix("https://github.com/")
    link = f"https://colab.research.google.com/github/{place}/blob/{to.tag}/notebooks/{notebook}"
    return f"[{BADGE_IMAGE}]({link}) {_ABOUT}"


def without_picture(badge: str) -> str:
    """A badge as a plain link, for pages that fetch nothing."""
    return badge.replace(BADGE_IMAGE, "Open in Colab")


def stamp(content: dict, to: Published, notebook: str) -> dict:
    """Write a notebook's badge, set-up cell and parameters anew, in place; outputs and all other cells stay.

    Args:
        content: the notebook as parsed JSON.
        to: address and tag.
        notebook: file name.

    Raises:
        ValueError: the notebook lacks one of the tagged cells, or has it twice.
    """
    _write(_cell(content, BADGE, notebook), badge(to, notebook))
    _write(_cell(content, SETUP, notebook), SETUP_CELL.format(address=to.address, tag=to.tag))
    parameters = _cell(content, PARAMETERS_TAG, notebook)
    _write(parameters, _declared("".join(parameters["source"]), notebook.removesuffix(".ipynb")))
    return content


def _declared(source: str, name: str) -> str:
    """A parameters cell as the declarations have it; one that has other names or values stays."""
    names = [part.targets[0].id for part in ast.parse(source).body if isinstance(part, ast.Assign)]  # type: ignore[attr-defined]
    if not set(names) <= set(PARAMETERS):
        return source
    new = parameters_cell(name, names)
    return new if ast.dump(ast.parse(new)) == ast.dump(ast.parse(source)) else source


def _cell(content: dict, tag: str, notebook: str) -> dict:
    try:
        cells = [cell for cell in content["cells"] if tag in cell["metadata"].get("tags", [])]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{notebook} is no notebook: {type(error).__name__}: {error}") from None
    if len(cells) != 1:
        raise ValueError(f"{notebook}: {len(cells)} cells tagged {tag!r}; one is wanted")
    return cells[0]


def _write(cell: dict, source: str) -> None:
    cell["source"] = source.splitlines(keepends=True)
