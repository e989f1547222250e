"""A first look into the files that parameters name: enough to refuse what is no such thing.

Stands in for functions of the same names beside the readers.
"""

import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ..glue.tasks import Task

_COLUMNS = 10  # of a CoNLL-U line


def check_folder(
    tasks: Sequence[Task], folder: Path, train_files: dict[str, str] | None = None, splits: Sequence[str] = ("train", "dev")
) -> None:
    """Refuse a GLUE folder in which some task's files cannot be read."""
    from ..glue.tsv import read_split

    for task in tasks:
        for split in splits:
            read_split(task, split, folder, train_files)


def check_release(source: str) -> None:
    """Refuse a ``framenet`` parameter that names no whole FrameNet release."""
    from ..framenet.release import INDEXES, find_root

    kind, _, path = source.partition(":")
    if kind == "folder":
        find_root(Path(path).expanduser())
    elif kind == "zip":
        try:
            with zipfile.ZipFile(Path(path).expanduser()) as archive:
                names = {name.split("/")[-1] for name in archive.namelist()}
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is no zip archive: {error}") from None
        missing = [name for name in INDEXES if name not in names]
        if missing:
            raise FileNotFoundError(f"{path} is no FrameNet release: it has no {' and no '.join(missing)}")
    elif kind == "nltk" and find_spec("nltk") is None:
        raise ValueError("framenet='nltk' needs NLTK: pip install nltk; or name a folder: framenet='folder:PATH'")


def check_treebank(path: str | Path) -> None:
    """Refuse a file that does not begin with a sentence in CoNLL-U."""
    with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                if line.count("\t") != _COLUMNS - 1:
                    raise ValueError(f"{path} is not a CoNLL-U file: {line.strip()[:60]!r} has not {_COLUMNS} columns")
                return
    raise ValueError(f"{path} has no sentence in it")
