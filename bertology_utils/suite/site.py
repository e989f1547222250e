"""The site: notebooks as they were executed, results, atlas of heads, glossary and API, as pages that need no network.

``python -m bertology_utils.suite.site`` builds it into ``runs/site`` by
Sphinx; settings are in ``docs/conf.py``. All is built under another name and
put in place when it is whole.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat

import bertology_utils

from .html_page import with_descriptions
from .notebooks import find_notebooks
from .real_pages import FOLDER, real_pages
from .results import project_root
from .stamp import without_picture

SITE = "runs/site"
NEEDS = ("sphinx", "myst_nb", "furo", "latex2mathml", "bokeh")
# Files and folders that pages are made of, or that they link to; those that are not there are left out.
_COPIED = ("RESULTS.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "Makefile", "pyproject.toml", "docs",
           "notebooks", "figures", "benchmarks", "bertology_utils", "corpora_generator", "tests")  # fmt: skip
_FIRST = "change of maps by fine-tuning (1 − cosine), training 1", "gain in points without the head, training 1"
_ATLAS = """\
---
hide-toc: true
---
# Atlas of heads

Every number that the notebooks have for a single head, and every head's attention map of one sentence. Choose what colours the heads, by measure, data and task; click a head, go there with the arrow keys, or choose it from the list, and see its card. The second picture sets two measures against each other, a dot for each head; with the frame or the lasso above it several heads are chosen, and marked in both pictures. A share of examples has its 95 % interval (Wilson, 1927); of other numbers the card says why they have none. [The same of your own model](docs/own_data.md#an-atlas-of-your-own).

```{raw} html
:file: atlas_body.html
```
"""


def build_site(root: Path) -> Path:
    """Build the site of a checkout; returns its first page.

    Raises:
        ModuleNotFoundError: what builds it is not installed.
        RuntimeError: a page could not be built, or has a dead link; the earlier site stays.
    """
    if lacking := [name for name in NEEDS if not importlib.util.find_spec(name)]:
        raise ModuleNotFoundError(f"the site needs {', '.join(lacking)}; `make site` installs what it needs")
    (root / SITE).parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site-", dir=(root / SITE).parent) as folder:
        source, built = Path(folder) / "source", Path(folder) / "built"
        write_source(root, source)
        options = ["-q", "-W", "--keep-going", "-j", "2", "-c", str(source / "docs")]
        command = [sys.executable, "-m", "sphinx", *options, str(source), str(built)]
        if subprocess.run(command, check=False).returncode:
            raise RuntimeError("the site was not built; what is wrong stands above")
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        _put_in_place(built, root / SITE, Path(folder) / "before")
    return root / SITE / "index.html"


def write_source(root: Path, source: Path) -> None:
    """Write what Sphinx reads: the checkout's own pages under their names, and those that are made here."""
    for name in _COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        elif (root / name).exists():
            source.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, source / name)
    for page in (source / "docs").glob("*.md"):  # the README is the site's first page
        page.write_text(page.read_text(encoding="utf-8").replace("../README.md", "../index.md"), encoding="utf-8")
    for notebook in (source / "notebooks").glob("*.ipynb"):
        content = nbformat.read(notebook, as_version=4)
        content.cells[0].source = without_picture(content.cells[0].source)  # the badge's comes from elsewhere
        nbformat.write(with_descriptions(folded(content)), notebook)
    real = real_pages(root, find_notebooks())
    pages = {"atlas": _ATLAS, **real, **api_pages()}
    for name, text in pages.items():
        (source / f"{name}.md").parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    _write_atlas(root, source / "atlas_body.html")
    own = [*sorted((source / "docs").glob("*.md")), *sorted(source.glob("*/**/README.md"))]
    parts = {
        "Notebooks": [f"notebooks/{notebook.name}" for notebook in find_notebooks()],
        "Results": ["RESULTS", f"{FOLDER}/index", "atlas"],
        "Reference": [
            *(path.relative_to(source).with_suffix("").as_posix() for path in own),
            "api",
            "CONTRIBUTING",
            "CHANGELOG",
        ],
    }
    trees = "".join(_tree(caption, pages) for caption, pages in parts.items())
    (source / "index.md").write_text((root / "README.md").read_text(encoding="utf-8") + trees, encoding="utf-8")


def folded(content: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook whose hidden cells have the tags by which pages fold them, in place; solutions are folded whole."""
    for cell in content.cells:
        tags, hidden = cell.metadata.setdefault("tags", []), cell.metadata.get("jupyter", {})
        if "solution" in tags:
            tags.append("hide-cell")
        elif hidden.get("source_hidden"):
            tags.append("hide-input")
    return content


def _tree(caption: str, pages: Iterable[str]) -> str:
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def api_pages() -> dict[str, str]:
    """Name → Markdown: the public names, and a page for each room of the package."""
    rooms = [module for module in pkgutil.iter_modules(bertology_utils.__path__) if module.ispkg]
    public = "\n".join(map(_public, bertology_utils.__all__))
    links = "\n".join(f"- [{room.name}](api/{room.name}.md)" for room in rooms)
    start = f"# The package\n\nWhat `import bertology_utils` offers:\n\n{_rest(public)}\n\nIts rooms:\n\n{links}\n"
    pages = {"api": start + _tree("Rooms", (f"api/{room.name}" for room in rooms))}
    for room in rooms:
        name = f"bertology_utils.{room.name}"
        folder = Path(bertology_utils.__path__[0]) / room.name
        modules = [name, *(one.name for one in pkgutil.walk_packages([str(folder)], f"{name}."))]
        pages[f"api/{room.name}"] = f"# {room.name}\n\n" + "\n".join(
            _module(one) for one in modules if "__main__" not in one
        )
    return pages


def _public(name: str) -> str:
    """A line of reStructuredText: a link to where the name comes from, and the first sentence of its docstring."""
    value = getattr(bertology_utils, name)
    first = (value.__doc__ or "").split("\n")[0]
    return f"* :py:obj:`{name} <{value.__module__}.{value.__qualname__}>`: {first}"


def _module(name: str) -> str:
    """What a module defines itself, not what it hands on."""
    directive = f".. automodule:: {name}\n   :members:\n   :ignore-module-all:"
    return f"## {name.removeprefix('bertology_utils.')}\n\n{_rest(directive)}\n"


def _rest(text: str) -> str:
    """Text of Sphinx's own kind inside Markdown."""
    return f"```{{eval-rst}}\n{text}\n```"


def _write_atlas(root: Path, path: Path) -> None:
    from ..encoders.models import load_encoder, load_tokenizer
    from .atlas import example_maps, head_atlas, read_measures

    measures, missing = read_measures(root)
    maps = example_maps(load_encoder("embedded"), load_tokenizer("embedded"), name="the pre-trained MiniLM")
    path.write_text(head_atlas(measures, maps, missing=missing, first=_FIRST).body, encoding="utf-8")


def _put_in_place(built: Path, site: Path, aside: Path) -> None:
    """Replace the earlier site, or leave it if that fails."""
    if site.exists():
        os.replace(site, aside)
    try:
        os.replace(built, site)
    except OSError:
        if aside.exists():
            os.replace(aside, site)
        raise


if __name__ == "__main__":
    try:
        root = project_root()
        print(f"the site: {build_site(root).relative_to(root)}")
    except (ModuleNotFoundError, RuntimeError) as error:
        sys.exit(f"error: {error}")
