"""The site: a first page, notebooks as they were executed, a playground, results, documents and API; it needs no network.

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
from collections.abc import Sequence
from pathlib import Path

import nbformat

import bertology_utils
from bertology_utils.study import ROOT
from docs.marks import prose

SITE = "runs/site"
NEEDS = ("sphinx", "myst_nb", "furo", "latex2mathml", "onnx", "onnxscript", "onnxruntime")
# Files and folders that pages are made of, or that they link to; those that are not there are left
# out.
_COPIED = (
    "README.md",
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
    "results",
    "tests",
)
# The site's first page; what stands in braces is taken from the README.
_HOME = """\
# What do BERT's attention heads do?

[*Revealing the Dark Secrets of BERT*](https://arxiv.org/abs/1908.08593) (Kovaleva, Romanov, Rogers and Rumshisky, EMNLP 2019) reports that a few patterns recur in most attention heads of BERT, and that a fine-tuned BERT often answers better if some of its heads are switched off. This project repeats the experiments on another BERT, in twelve notebooks that show how every number comes about.

## Switch off a head

**[Type a sentence of your own](playground/index.md)**: the model runs in your browser, shows what each of its 144 heads attends to, and finds the head on which the answer depends most.

[![A web page: a sentence, the model's answer as two bars, a grid of 144 small attention maps, and the map of head (7, 3), in which "never" attends to the beginning of "loses"](figures/playground.png)](playground/index.md)

*A classifier of film reviews reads "The story never loses its way." Without head (7, 3), which attends from "never" to "loses", the answer turns from positive to negative.*

## Three findings

{findings}

[RESULTS](RESULTS.md) has all claims, with the numbers of every task. ✓, ✗ and ? mean [that a claim holds, fails or is undecided](docs/reading_verdicts.md).

## The notebooks

{pages}

## For yourself

[Your model, your data](docs/own_data.md) tells how the notebooks, or single functions, run on a classifier of your own. [The project](README.md) has the commands that set everything up and reproduce it, and says on which model and data all of this rests. The [glossary](docs/glossary.md) explains every term.
"""
_FIRST = ["docs/glossary", "docs/reading_verdicts", "docs/own_data", "docs/troubleshooting"]
# Where the playground is spoken of in a checkout, and where it is on the site.
_PLAYGROUND = ("docs/own_data.md#a-playground-of-your-own", "playground/index.md")
# Takes the playground's place where it cannot be built.
_NO_PLAYGROUND = """\
# Playground: your sentence, every head

A classifier reads your sentence in the browser. You see what each attention head attends to, disable any of them, and watch the answer change.

This copy of the site has no playground, since npm or the model was not there when it was built.
"""
# What stays as it is when words of sentences become links: code, comments, formulas, links, tags and headings.
_APART = re.compile(
    r"(```.*?```|`[^`]*`|<!--.*?-->|\$[^$]*\$|!?\[[^\n]*?\]\([^)]*\)|<[^>\n]*>|(?:^|(?<=\n))#[^\n]*)",
    re.DOTALL,
)
_ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.+)$", re.MULTILINE)  # of the glossary
_HEAD = re.compile(r"\(([1-9]\d?), ([1-9]\d?)\)")
_VIEWS = {"7": "norms", "9": "effects"}  # of the playground; "weights" for other pages
_BADGE = re.compile(r"!\[([^\]]*)\]\(https?://[^)]*\)")  # a picture from elsewhere


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
        source, built, page = (Path(folder) / name for name in ("source", "built", "playground"))
        write_playground(root, page)
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


def write_playground(root: Path, page: Path) -> None:
    """Write the page on which a model runs into a folder; without npm or the model none, and say so."""
    from docs.playground.__main__ import NoPackagesError, example_model, write

    try:
        write(root, page, example_model)
    except (NoPackagesError, FileNotFoundError) as error:
        shutil.rmtree(page, ignore_errors=True)
        print(f"the site is built without its playground: {error}", flush=True)


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
    notebooks = sorted(
        (source / "notebooks").glob("*.ipynb"), key=lambda path: int(path.stem.split("_")[0])
    )
    glossary = source / "docs" / "glossary.md"
    text, terms = with_entries(glossary.read_text(encoding="utf-8"))
    glossary.write_text(text, encoding="utf-8")
    for notebook in notebooks:
        left = dict(terms)
        content = nbformat.read(notebook, as_version=4)
        for cell in content.cells:
            if cell.cell_type == "markdown":
                text = _BADGE.sub(r"\1", cell.source).replace(*_PLAYGROUND)
                cell.source = with_heads_linked(with_terms_linked(text, left), notebook.stem)
        content.cells.append(nbformat.v4.new_markdown_cell(see_heads(notebook.stem)))
        nbformat.write(with_descriptions(folded(content)), notebook)
    readme = (root / "README.md").read_text(encoding="utf-8").replace(*_PLAYGROUND)
    (source / "README.md").write_text(readme, encoding="utf-8")
    made = {"playground/index": _NO_PLAYGROUND, **api_pages()}
    for name, text in made.items():
        (source / f"{name}.md").parent.mkdir(exist_ok=True)
        (source / f"{name}.md").write_text(text, encoding="utf-8")

    def names(pattern: str) -> list[str]:
        return sorted(
            path.relative_to(source).with_suffix("").as_posix() for path in source.glob(pattern)
        )

    documents = [name for name in _FIRST if (source / f"{name}.md").exists()]
    faults = source / "docs" / "faults.md"  # a list for developers, which CONTRIBUTING links to
    faults.write_text(f"---\norphan: true\n---\n\n{faults.read_text('utf-8')}", encoding="utf-8")
    documents += [name for name in names("docs/*.md") if name not in (*documents, "docs/faults")]
    trees = {
        "Play and look up": ["Playground <playground/index>", "Results <RESULTS>"],
        "Notebooks": [f"notebooks/{notebook.name}" for notebook in notebooks],
        "For yourself": [
            "The project <README>",
            *documents,
            *names("[!d]*/**/README.md"),
            "api",
            "CONTRIBUTING",
            "CHANGELOG",
        ],
    }
    (source / "index.md").write_text(
        home(root, readme) + "".join(_tree(*one) for one in trees.items()), encoding="utf-8"
    )


def home(root: Path, readme: str) -> str:
    """The first page, with the findings and the table of notebooks that the README has, each beside its first picture.

    Raises:
        ValueError: the README has no numbered findings, or no table of notebooks.
    """
    findings = re.findall(r"^\d\. .+", readme, re.MULTILINE)
    rows = re.findall(r"^\| (\[[^\]]+\]\((notebooks/\S+\.ipynb)\) \|.*\|)$", readme, re.MULTILINE)
    if not findings or not rows:
        raise ValueError(
            "README.md has no numbered findings, or no table of notebooks, for the site"
        )
    table = ["| | notebook | what it finds | to read |", "| --- | --- | --- | --- |"]
    for row, path in rows:
        first = re.search(r"!\[(.*?)\]\(\.\./(figures/[^)]+)\)", prose(root / path))
        table.append(f"| {f'[![{first[1]}]({first[2]})]({path})' if first else ''} | {row}")
    return _HOME.format(findings="\n".join(findings[:3]), pages="\n".join(table))


def with_entries(glossary: str) -> tuple[str, dict[str, str]]:
    """The glossary with an anchor for each term, which the search knows, too; its terms by their small letters."""
    terms = {}

    def entry(found: re.Match) -> str:
        names = found[1].split(", ")
        terms.update((name.lower(), name) for name in names)
        return "\n```{glossary}\n" + "\n".join(names) + f"\n  {found[2]}\n```"

    return _ENTRY.sub(entry, glossary), terms


def with_terms_linked(text: str, terms: dict[str, str]) -> str:
    """A notebook's Markdown in which the first use of each term leads to the glossary; takes these terms out."""
    names = "|".join(re.escape(name) for name in sorted(terms, key=len, reverse=True))

    def link(found: re.Match) -> str:
        term = terms.pop(found[1].lower(), None)
        return f"{{term}}`{found[0]} <{term}>`" if term else found[0]

    parts = _APART.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(
            rf"(?<![\w-])({names})s?(?![\w-])", link, parts[place], flags=re.IGNORECASE
        )
    return "".join(parts)


def with_heads_linked(text: str, page: str) -> str:
    """A notebook's Markdown whose heads, "(3, 5)", lead to their numbers in the playground; those of the first to their maps."""
    parts = _APART.split(text)
    view = "weights" if page.startswith("0_") else view_of(page)
    for place in range(0, len(parts), 2):
        parts[place] = _HEAD.sub(
            rf'<a href="../playground/index.html#head=\1.\2&view={view}" title="this head in the playground">(\1, \2)</a>',
            parts[place],
        )
    return "".join(parts)


def view_of(page: str) -> str:
    """The playground's view of what was measured, at a notebook's own measures if it has some."""
    from docs.playground.measured import PAGES

    return f"measured&measure={page}" if page in PAGES else "measured"


def see_heads(name: str) -> str:
    """The last words of a page: where its heads are seen at work, and their numbers."""
    view = _VIEWS.get(name.split("_")[0], "weights")
    address = "../playground/index.html#view="
    own = f'<a href="{address}{view}">Your own sentence in every head</a>'
    numbers = f'<a href="{address}{view_of(name)}">what was measured of each head</a>'
    return f"**See it happen.** {own}, and {numbers}."


def folded(content: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook whose hidden cells have the tags by which pages fold them, in place; solutions are folded whole."""
    for cell in content.cells:
        tags, hidden = cell.metadata.setdefault("tags", []), cell.metadata.get("jupyter", {})
        if "solution" in tags:
            tags.append("hide-cell")
        elif hidden.get("source_hidden"):
            tags.append("hide-input")
    return content


def _tree(caption: str, names: Sequence[str]) -> str:
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
    try:
        site = build_site(ROOT).relative_to(ROOT)
        print(f"the site: {site}; its playground needs a web server:")
        print(f"python -m http.server --bind 127.0.0.1 --directory {site.parent}")
    except (ModuleNotFoundError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")
