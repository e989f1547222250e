"""``python -m bertology_utils publish``: the project's address and tag, written wherever they are needed."""

import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from . import address
from .address import Published
from .execute import as_text
from .notebooks import find_notebooks
from .results import project_root
from .stamp import stamp


def add_to(commands) -> None:
    """Add the command to argparse's sub-commands."""
    text = "write the repository's address and a tag into pyproject.toml, badges and set-up cells; run no notebook"
    sub = commands.add_parser("publish", help=text, description=text, allow_abbrev=False)
    of_address = 'https://github.com/OWNER/NAME; "" takes it back; without it, what pyproject.toml says'
    sub.add_argument("--repository", metavar="URL", help=of_address)
    sub.add_argument("--tag", help="the tag that Colab installs, for example v0.1.0; it is set after this command")
    sub.set_defaults(command=run)


def run(options) -> int:
    """Carry out ``publish``; returns the exit code."""
    root = project_root()
    try:
        to = _wanted(options.repository, options.tag)
        changed = publish(root, to)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, (ValueError, FileNotFoundError)) else 1
    print(*(path.relative_to(root) for path in changed), f"{len(changed)} files changed", sep="\n")
    if to.address and changed:
        print(f'next: git commit -am "Publish {to.tag}" && git tag {to.tag} && git push {to.address} HEAD {to.tag}')
    return 0


def _wanted(repository: str | None, tag: str | None) -> Published:
    """Address and tag of a call; raises ValueError for what cannot be."""
    if repository == "":
        if tag:
            raise ValueError(f"--tag {tag} goes with a repository; to take the address back, leave it out")
        return Published()
    if repository is None and tag is None:
        return address.published()
    if repository is None:
        repository = address.published().address
    if not repository or not tag:
        raise ValueError("give both, --repository https://github.com/OWNER/NAME and --tag TAG")
    return Published(address.tidy(repository), tag)


def publish(root: Path, to: Published) -> list[Path]:
    """Write address and tag into ``pyproject.toml``, and from there into all notebooks: all files, or none.

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
    notebooks = [notebook.path for notebook in find_notebooks()]
    project = root / address.FILE
    texts = {path: path.read_text(encoding="utf-8") for path in (project, *notebooks)}
    new = {project: address.written(texts[project], to)}
    new |= {path: as_text(stamp(json.loads(texts[path]), to, path.name)) for path in notebooks}
    changed = {path: text for path, text in new.items() if text != texts[path]}
    write_all({path: text.encode() for path, text in changed.items()})
    return list(changed)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write files: first all under other names, so that a full disk is seen, then each in its place.

    Raises:
        OSError: one could not be written; all have their old content.
    """
    mark = secrets.token_hex(4)
    staged = {path: path.with_name(f".{path.name}-{mark}") for path in contents}
    before = {path: path.with_name(f".{path.name}-{mark}.before") for path in contents}
    done = []
    try:
        for path, temporary in staged.items():
            temporary.write_bytes(contents[path])
            before[path].write_bytes(path.read_bytes())
            for copy in (temporary, before[path]):
                copy.chmod(path.stat().st_mode)
        for path, temporary in staged.items():
            os.replace(temporary, path)
            done.append(path)
    except BaseException:
        for path in done:
            os.replace(before[path], path)
        raise
    finally:
        for left in (*staged.values(), *before.values()):
            left.unlink(missing_ok=True)
