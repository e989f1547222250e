"""Colab: the repository's address, badges and set-up cells, and what a GPU is good for.

The address stands in ``pyproject.toml`` ([project.urls], Repository) and
nowhere else; badges and set-up cells are written from there.
"""

import re
import tomllib

from .results import project_root

BADGE_TAG, SETUP_TAG = "badge", "setup"
_BADGE_IMAGE = "https://colab.research.google.com/assets/colab-badge.svg"


def repository_address() -> str:
    """The repository's address, or "" while none is set.

    Raises:
        ValueError: an address that Colab cannot open.
    """
    project = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository", "").removesuffix("/").removesuffix(".git")
    if address and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", address):
        raise ValueError(f"pyproject.toml: Repository = {address!r}; Colab opens https://github.com/OWNER/NAME only")
    return address


def badge(address: str, notebook: str) -> str:
    """Markdown of a notebook's Colab badge; a comment, which no reader sees, while no address is set.

    Args:
        address: from :func:`repository_address`.
        notebook: file name ("3_finetuning_drift.ipynb").
    """
    if not address:
        return "<!-- The Colab badge appears here once the repository's address is set in pyproject.toml. -->"
    place = address.removeprefix("https://github.com/")
    link = f"https://colab.research.google.com/github/{place}/blob/main/notebooks/{notebook}"
    return f"[![Open in Colab]({_BADGE_IMAGE})]({link})"


def stamp(content: dict, address: str, notebook: str) -> dict:
    """Write the address into a notebook's badge and set-up cells, in place.

    Args:
        content: the notebook as parsed JSON.
        address: from :func:`repository_address`.
        notebook: file name.

    Raises:
        ValueError: the notebook lacks one of the two tagged cells.
    """
    for tag in (BADGE_TAG, SETUP_TAG):
        cells = [cell for cell in content["cells"] if tag in cell["metadata"].get("tags", [])]
        if len(cells) != 1:
            raise ValueError(f"{notebook}: {len(cells)} cells tagged {tag!r}; one is wanted")
        if tag == BADGE_TAG:
            cells[0]["source"] = [badge(address, notebook)]
        else:
            source = "".join(cells[0]["source"])
            source = re.sub(r'^REPOSITORY = ".*"', f'REPOSITORY = "{address}"', source, flags=re.MULTILINE)
            cells[0]["source"] = source.splitlines(keepends=True)
    return content


def suggest_profile() -> None:
    """Say that the paper's own model fits this machine, if it has a GPU; without one say nothing."""
    import torch

    if torch.cuda.is_available():
        print(f'A GPU is here ({torch.cuda.get_device_name()}): profile = "paper" runs the paper\'s own model and data.')
