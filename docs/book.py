"""The site: notebooks as they were executed, results, atlas of heads, glossary and API, as pages that need no network.

``python -m docs.book`` builds it into ``runs/site`` by Sphinx; settings are in ``docs/conf.py``.
All is built under another name and put in place when it is whole.
"""

from __future__ import annotations

import html
import importlib.util
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat

import bertology_utils
from bertology_utils.record import project_root
from bertology_utils.run import find_notebooks, put_in_place
from bertology_utils.verdicts import THIS_RUN
from docs import pages
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

Every number that the notebooks have for a single head, and every head's attention map of one sentence. Choose what colours the heads; click a head, or choose it from the list, and see its numbers. The second picture sets two measures against each other, a dot for each head; with the frame or the lasso above it several heads are chosen, and marked in both pictures. [The same of your own model and your own sentence](docs/own_data.md#an-atlas-of-your-own).

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
        put_in_place(built, site)
    return site / "index.html"


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
    made = {"atlas": _ATLAS, **real_pages(root), **api_pages()}
    for name, text in made.items():
        (source / f"{name}.md").parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    _write_atlas(root, source / "atlas_body.html")
    own = [*sorted((source / "docs").glob("*.md")), *sorted(source.glob("*/**/README.md"))]
    own_names = [path.relative_to(source).with_suffix("").as_posix() for path in own]
    parts = {
        "Notebooks": [f"notebooks/{notebook.name}" for notebook in find_notebooks()],
        "Results": ["RESULTS", *(name for name in made if name.startswith("real/")), "atlas"],
        "Reference": [*own_names, "api", "CONTRIBUTING", "CHANGELOG"],
    }
    trees = "".join(_tree(caption, names) for caption, names in parts.items())
    (source / "index.md").write_text(
        (root / "README.md").read_text(encoding="utf-8") + trees, encoding="utf-8"
    )


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


def real_pages(root: Path) -> dict[str, str]:
    """Name → Markdown: a page for each committed run on real data, with its verdicts.

    Executed notebooks would hold sentences of data that this project does not hand on.
    """
    found = {}
    titles = {notebook.number: notebook.title for notebook in find_notebooks()}
    for place in (pages.GLUE, pages.FRAMENET, pages.BERT_BASE):
        for number, run in place.runs(root).items():
            verdicts = [
                f"## {title}\n\n{chr(10).join(lines)}\n"
                for title, lines in _tables(run).items()
                if lines
            ]
            settings = pages.in_markdown(
                f"model {run.content['settings']['model']}, data {place.data}"
            )
            parts = [
                f"# {titles[number]}, on {place.data}\n",
                f"This run: {settings}. Its figures: see the page.\n",
                *verdicts,
            ]
            found[f"real/{number}_{place.folder.split('/')[-1]}"] = "\n".join(parts)
    return found


def _tables(run: pages.Results) -> dict[str, list[str]]:
    """Verdicts on claims, and on controls of ours."""
    own = {
        name: one
        for (name, model), one in run.verdicts.items()
        if model == THIS_RUN and name in pages.CLAIMS
    }
    both = {"Claims": False, "Controls of ours": True}
    return {
        title: pages.judged(
            [pages.CLAIMS[name] for name in own if pages.CLAIMS[name].is_control == control],
            {"this run": own},
        )
        for title, control in both.items()
    }


def api_pages() -> dict[str, str]:
    """Name → Markdown: the public names, and a page for each module and section of the package."""
    rooms = [
        module
        for module in pkgutil.iter_modules(bertology_utils.__path__)
        if module.name != "__main__"
    ]
    public = "\n".join(map(_public, bertology_utils.__all__))
    links = "\n".join(f"- [{room.name}](api/{room.name}.md)" for room in rooms)
    start = f"# The package\n\nWhat `import bertology_utils` offers:\n\n{_rest(public)}\n\nIts rooms:\n\n{links}\n"
    found = {"api": start + _tree("Rooms", (f"api/{room.name}" for room in rooms))}
    for room in rooms:
        name = f"bertology_utils.{room.name}"
        folder = [str(Path(bertology_utils.__path__[0]) / room.name)] if room.ispkg else []
        modules = [name, *(one.name for one in pkgutil.walk_packages(folder, f"{name}."))]
        found[f"api/{room.name}"] = f"# {room.name}\n\n" + "\n".join(map(_module, modules))
    return found


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
            output.data["text/html"] = f'<img alt="{html.escape(alt)}" src="{source}">'
    return content


def _write_atlas(root: Path, path: Path) -> None:
    from bertology_utils.atlas import example_maps, head_atlas, measures_of
    from bertology_utils.models import load_encoder, load_tokenizer

    measures = measures_of(root / "figures")
    maps = example_maps(
        load_encoder("embedded"), load_tokenizer("embedded"), name="the pre-trained MiniLM"
    )
    path.write_text(head_atlas(measures, maps).body, encoding="utf-8")


if __name__ == "__main__":
    try:
        root = project_root()
        print(f"the site: {build_site(root).relative_to(root)}")
    except (ModuleNotFoundError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
