"""Where the project can be had: its address and tag, which stand in ``pyproject.toml`` and nowhere else."""

import re
import tomllib
from dataclasses import dataclass

from .results import project_root

FILE = "pyproject.toml"
_BLOCK = re.compile(r"(?<=# published: begin\n).*?(?=# published: end\n)", re.DOTALL)
_COMMAND = "python -m bertology_utils publish --repository https://github.com/OWNER/NAME --tag TAG"


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
            raise ValueError(f"repository {self.address!r}; Colab opens https://github.com/OWNER/NAME only")
        good = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.tag)
        if not good or ".." in self.tag or self.tag.endswith((".", ".lock")):
            raise ValueError(f"tag {self.tag!r}; a tag is letters, digits, '.', '-' and '_', such as v0.1.0")


def published() -> Published:
    """What ``pyproject.toml`` says.

    Raises:
        ValueError: of :class:`Published`.
    """
    return read(_file().read_text(encoding="utf-8"))


def read(text: str) -> Published:
    """What the text of a ``pyproject.toml`` says; raises as :func:`published` does."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{FILE} cannot be read: {error}") from None
    address = content.get("project", {}).get("urls", {}).get("Repository", "")
    tag = content.get("tool", {}).get("bertology", {}).get("tag", "")
    try:
        return Published(tidy(address), tag)
    except ValueError as error:
        raise ValueError(f"{FILE}: {error}; to write both: {_COMMAND}") from None


def tidy(address: str) -> str:
    """An address as browsers and git write it, without its ending."""
    return address.removesuffix("/").removesuffix(".git")


def written(text: str, to: Published) -> str:
    """The text of a ``pyproject.toml`` that says this.

    Raises:
        ValueError: it lacks the place for it, or says something else in another place.
    """
    if len(_BLOCK.findall(text)) != 1:
        raise ValueError(f"{FILE}: two lines are wanted, '# published: begin' and '# published: end', to write between")
    block = f"# Not yet: {_COMMAND}\n"
    if to.address:
        block = f'[project.urls]\nRepository = "{to.address}"\n\n[tool.bertology]\ntag = "{to.tag}"\n'
    new = _BLOCK.sub(lambda _: block, text)
    if read(new) != to:
        raise ValueError(f"{FILE} names a Repository outside the lines '# published: begin' and 'end'; take it away")
    return new


def _file():
    return project_root() / FILE
