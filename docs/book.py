"""The site: notebooks as they were executed, a playground, results, glossary and API, as pages that need no network.

``python -m docs.book`` builds it into ``runs/site`` by Sphinx; settings are in ``docs/conf.py``.
All is built under another name and put in place when it is whole.
"""

from __future__ import annotations

import argparse
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
from bertology_utils.run import find_notebooks, read_notebook
from docs.publish import BADGE_IMAGE

SITE = "runs/site"
NEEDS = ("sphinx", "myst_nb", "furo", "latex2mathml", "onnx", "onnxscript", "onnxruntime")
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
    "results",
    "tests",
)
_GROUPS = {
    "Play and look up": ["playground/index", "RESULTS", "docs/numbers", "docs/glossary"],
    "Documentation": [
        "docs/reading_verdicts",
        "docs/own_data",
        "docs/troubleshooting",
        "docs/sources",
        "docs/faults",
    ],
}
# Takes the playground's place where there is no npm.
_NO_PLAYGROUND = """\
# Playground

This copy of the site has no playground, since npm was not there when it was built.
"""
# The site's first page leads to it under its title.
_TO_PLAYGROUND = """

**[Type a sentence and see what every attention head does with it](playground/index.md)**, or read on.

"""
# Heads in sentences, outside of code, comments, formulas and links, and what the playground shows of them.
_APART = re.compile(r"(```.*?```|`[^`]*`|<!--.*?-->|\$[^$]*\$|!?\[[^\n]*?\]\([^)]*\))", re.DOTALL)
_HEAD = re.compile(r"\((\d), (\d{1,2})\)")
_VIEWS = {"7": "norms", "9": "effects", "10": "effects"}


def build_site(root: Path, model: str = "", glue: str = "") -> Path:
    """Build the site of a checkout; returns its first page.

    Args:
        root: of the checkout.
        model: folder of the playground's model, if it is one's own.
        glue: folder of GLUE, on which the evidence's classifier was fine-tuned.

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
        source, built, page = (Path(folder) / name for name in ("source", "built", "playground"))
        write_playground(root, page, model, glue)
        write_source(root, source)
        options = ["-q", "-W", "--keep-going", "-j", "2", "-c", str(source / "docs")]
        if subprocess.run(
            [sys.executable, "-m", "sphinx", *options, str(source), str(built)], check=False
        ).returncode:
            raise RuntimeError("the site was not built; what is wrong stands above")
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        if page.exists():
            shutil.copytree(page, built / "playground", dirs_exist_ok=True)
        shutil.rmtree(site, ignore_errors=True)
        built.rename(site)
    return site / "index.html"


def write_playground(root: Path, page: Path, model: str, glue: str) -> None:
    """Write the page on which a model runs into a folder; without npm none, and say so."""
    from docs.playground.__main__ import NoPackagesError, packages, site_model, write

    try:
        packages(root)
    except NoPackagesError as error:
        print(f"the site is built without its playground: {error}", flush=True)
    else:
        write(root, page, *((Path(model),) if model else site_model(glue)), in_site=True)


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
        of_playground = not read_notebook(notebook).study  # heads of E5 are in no playground yet
        # The badge's picture comes from elsewhere.
        content.cells[0].source = content.cells[0].source.replace(BADGE_IMAGE, "Open in Colab")
        for cell in content.cells:
            if cell.cell_type == "markdown":  # the README is the site's first page
                cell.source = cell.source.replace("(../README.md", "(../index.md")
                if of_playground:
                    cell.source = with_heads_linked(cell.source)
        if of_playground:
            content.cells.append(nbformat.v4.new_markdown_cell(see_heads(notebook.stem)))
        nbformat.write(with_descriptions(folded(content)), notebook)
    made = {"playground/index": _NO_PLAYGROUND, **api_pages()}
    for name, text in made.items():
        (source / f"{name}.md").parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    cards = sorted(source.glob("[!d]*/**/README.md"))
    names = [path.relative_to(source).with_suffix("").as_posix() for path in cards]
    parts = {"Pages": [f"notebooks/{notebook.name}" for notebook in find_notebooks()], **_GROUPS}
    parts["Documentation"] = [*_GROUPS["Documentation"], *names, "api", "CONTRIBUTING", "CHANGELOG"]
    trees = "".join(_tree(caption, names) for caption, names in parts.items())
    readme = (root / "README.md").read_text(encoding="utf-8")
    # Sphinx follows no link and copies no picture in HTML.
    readme = _LINKED_PICTURE.sub(r"[![\3](\2)](\1)", readme)
    readme = readme.replace("docs/own_data.md#a-playground-of-your-own", "playground/index.md", 1)
    readme = readme.replace("\n\n", _TO_PLAYGROUND, 1)
    (source / "index.md").write_text(readme + trees, encoding="utf-8")


def with_heads_linked(text: str) -> str:
    """A page's Markdown whose heads, "(3, 5)", lead to the playground."""
    parts = _APART.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = _HEAD.sub(
            r'<a href="../playground/index.html#head=\1.\2" title="this head in the playground">(\1, \2)</a>',
            parts[place],
        )
    return "".join(parts)


def see_heads(name: str) -> str:
    """The last words of a page: where its heads are seen at work, and their numbers."""
    view = _VIEWS.get(name.split("_")[0], "weights")
    address = "../playground/index.html#view="
    return (
        f'**See it happen.** <a href="{address}{view}">Your own sentence in every head</a>, and'
        f' <a href="{address}evidence&measure={name}">all numbers of each head</a>.'
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


def api_pages() -> dict[str, str]:
    """Name → Markdown: the public names, and a page for each module and section of the package."""
    parts = [
        part for part in pkgutil.iter_modules(bertology_utils.__path__) if part.name != "__main__"
    ]
    public = _rest("\n".join(map(_public, bertology_utils.__all__)))
    links = "\n".join(f"- [{part.name}](api/{part.name}.md)" for part in parts)
    start = f"# The package\n\nWhat `import bertology_utils` offers:\n\n{public}\n\nIts modules:\n\n{links}\n"
    pages = {"api": start}
    for part in parts:
        name = f"bertology_utils.{part.name}"
        folder = [str(Path(bertology_utils.__path__[0]) / part.name)] if part.ispkg else []
        modules = [name, *(one.name for one in pkgutil.walk_packages(folder, f"{name}."))]
        # Listed on the page above alone.
        text = f"---\norphan: true\n---\n\n# {part.name}\n\n"
        pages[f"api/{part.name}"] = text + "\n".join(map(_module, modules))
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.book", description="Build the site.")
    parser.add_argument("--model", default="", help="folder of the playground's model")
    parser.add_argument(
        "--glue", default="", help="folder of GLUE: the playground's model is the evidence's"
    )
    given = parser.parse_args()
    try:
        root = project_root()
        site = build_site(root, given.model, given.glue).relative_to(root)
        print(f"the site: {site}; its playground needs a web server:")
        print(f"python -m http.server --bind 127.0.0.1 --directory {site.parent}")
    except (ModuleNotFoundError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
