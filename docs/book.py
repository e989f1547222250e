"""The site: notebooks as they were executed, results, atlas of heads, glossary and API, as pages that need no network.

``python -m docs.book`` builds it into ``runs/site`` by Sphinx; settings are in ``docs/conf.py``.
All is built under another name and put in place when it is whole.
"""

from __future__ import annotations

import html
import importlib.util
import pkgutil
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat

import bertology_utils
from bertology_utils.record import project_root
from bertology_utils.run import find_notebooks
from docs.publish import BADGE_IMAGE

SITE = "runs/site"
NEEDS = ("sphinx", "myst_nb", "furo", "latex2mathml", "bokeh")
# Files and folders that pages are made of, or that they link to; those that are not there are left
# out.
_COPIED = (
    "RESULTS.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    "docs",
    "notebooks",
    "figures",
    "benchmarks",
    "bertology_utils",
    "corpora_generator",
    "tests",
)
_ATLAS = """\
---
hide-toc: true
---
# Atlas of heads

Every number that was measured for a single head on GLUE, and every head's attention map of one sentence. Choose what colours the heads; click a head, or choose it from the list, to see its numbers. The second picture plots two measures against each other, a dot for each head; select several heads there with the frame or the lasso, and they are marked in both pictures. [Make one of your own model and sentence](docs/own_data.md#an-atlas-of-your-own).

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
        raise ModuleNotFoundError(
            f"the site needs {', '.join(lacking)}; `make site` installs what it needs"
        )
    site = root / SITE
    site.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".site-", dir=site.parent) as folder:
        source, built = Path(folder) / "source", Path(folder) / "built"
        write_source(root, source)
        options = ["-q", "-W", "--keep-going", "-j", "2", "-c", str(source / "docs")]
        if subprocess.run(
            [sys.executable, "-m", "sphinx", *options, str(source), str(built)], check=False
        ).returncode:
            raise RuntimeError("the site was not built; what is wrong stands above")
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        shutil.rmtree(site, ignore_errors=True)
        built.rename(site)
    return site / "index.html"


_LINKED_PICTURE = re.compile(r'<a href="([^"]+)"><img src="([^"]+)" width="\d+" alt="([^"]*)"></a>')


def write_source(root: Path, source: Path) -> None:
    """Write what Sphinx reads: the checkout's own pages under their names, and those that are made here."""
    source.mkdir(parents=True)
    for name in _COPIED:
        if (root / name).is_dir():
            shutil.copytree(
                root / name, source / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
            )
        elif (root / name).exists():
            shutil.copy2(root / name, source / name)
    for page in (source / "docs").glob("*.md"):  # the README is the site's first page
        page.write_text(
            page.read_text(encoding="utf-8").replace("../README.md", "../index.md"),
            encoding="utf-8",
        )
    for notebook in (source / "notebooks").glob("*.ipynb"):
        content = nbformat.read(notebook, as_version=4)
        # The badge's picture comes from elsewhere.
        content.cells[0].source = content.cells[0].source.replace(BADGE_IMAGE, "Open in Colab")
        for cell in content.cells:
            if cell.cell_type == "markdown":  # the README is the site's first page
                cell.source = cell.source.replace("(../README.md", "(../index.md")
        nbformat.write(with_descriptions(folded(content)), notebook)
    made = {"atlas": _ATLAS, **api_pages()}
    for name, text in made.items():
        (source / f"{name}.md").parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    (source / "atlas_body.html").write_text(atlas_body(root), encoding="utf-8")
    own = [*sorted((source / "docs").glob("*.md")), *sorted(source.glob("*/**/README.md"))]
    own_names = [path.relative_to(source).with_suffix("").as_posix() for path in own]
    parts = {
        "Notebooks": [f"notebooks/{notebook.name}" for notebook in find_notebooks()],
        "Results": ["RESULTS", "atlas"],
        "Reference": [*own_names, "api", "CONTRIBUTING", "CHANGELOG"],
    }
    trees = "".join(_tree(caption, names) for caption, names in parts.items())
    readme = (root / "README.md").read_text(encoding="utf-8")
    # Sphinx follows no link and copies no picture in HTML.
    readme = _LINKED_PICTURE.sub(r"[![\3](\2)](\1)", readme)
    (source / "index.md").write_text(readme + trees, encoding="utf-8")


def folded(content: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook whose hidden cells have the tags by which pages fold them, in place; solutions are folded whole."""
    for cell in content.cells:
        tags, hidden = cell.metadata.setdefault("tags", []), cell.metadata.get("jupyter", {})
        if "solution" in tags:
            tags.append("hide-cell")
        elif hidden.get("source_hidden"):
            tags.append("hide-input")
    return content


def _tree(caption: str, names: Iterable[str]) -> str:
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"


def api_pages() -> dict[str, str]:
    """Name → Markdown: the public names, and a page for each module and section of the package."""
    parts = [
        part for part in pkgutil.iter_modules(bertology_utils.__path__) if part.name != "__main__"
    ]
    public = _rest("\n".join(map(_public, bertology_utils.__all__)))
    links = "\n".join(f"- [{part.name}](api/{part.name}.md)" for part in parts)
    start = f"# The package\n\nWhat `import bertology_utils` offers:\n\n{public}\n\nIts modules:\n\n{links}\n"
    pages = {"api": start + _tree("Modules", (f"api/{part.name}" for part in parts))}
    for part in parts:
        name = f"bertology_utils.{part.name}"
        folder = [str(Path(bertology_utils.__path__[0]) / part.name)] if part.ispkg else []
        modules = [name, *(one.name for one in pkgutil.walk_packages(folder, f"{name}."))]
        pages[f"api/{part.name}"] = f"# {part.name}\n\n" + "\n".join(map(_module, modules))
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


def with_descriptions(content):
    """A notebook whose described pictures are HTML, in place: myst_nb shows no ``alt`` of a PNG."""
    for output in (output for cell in content.cells for output in cell.get("outputs", [])):
        alt = output.get("metadata", {}).get("image/png", {}).get("alt")
        if alt and "image/png" in output.data:
            source = f"data:image/png;base64,{output.data['image/png'].strip()}"
            # With a tabindex a tap makes it large on a phone (site.css).
            output.data["text/html"] = f'<img tabindex="0" alt="{html.escape(alt)}" src="{source}">'
    return content


def atlas_body(root: Path) -> str:
    """The page of heads, of the evidence on GLUE."""
    from bertology_utils import head_atlas, load_encoder, load_tokenizer
    from bertology_utils.atlas import example_maps

    encoder, tokenizer = load_encoder("embedded"), load_tokenizer("embedded")
    maps = example_maps(encoder, tokenizer, name="the pre-trained MiniLM")
    return head_atlas(root / "results" / "glue", maps).body


if __name__ == "__main__":
    try:
        root = project_root()
        print(f"the site: {build_site(root).relative_to(root)}")
    except (ModuleNotFoundError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
