"""The corpora as files: GLUE's own tables, CoNLL-U, and a FrameNet release.

Equal content gives equal files: no time stamps. How well a file is packed
depends on the zlib at hand, so :func:`unpacked` is what to compare.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

from bertology_utils.cache import write_atomically
from bertology_utils.corpora import GENERATED
from bertology_utils.glue import TASKS

from . import generate
from .framenet_xml import documents
from .mini_framenet import frames
from .tables import table
from .treebank import treebank

RELEASE = "mini_framenet.zip"
DEV = 320


def contents(dev: int = DEV) -> dict[str, bytes | dict[str, bytes]]:
    """Every file, unpacked, by its name; a zip's members by theirs.

    Args:
        dev: dev rows of each task. The default ones are among more, and training rows stay.
    """
    made: dict[str, bytes | dict[str, bytes]] = {}
    if dev != DEV:
        made[f"glue/{GENERATED}"] = b"Sentences of a grammar, in the form of GLUE's tasks.\n"
    for task in TASKS.values():
        rows = generate(task.name, validation=dev)
        for file, text in {
            "train.tsv": table(task, "train", rows["train"]),
            task.dev_file: table(task, "dev", rows["validation"]),
            f"{Path(task.dev_file).stem}.conllu": treebank(rows["validation"]),
        }.items():
            made[f"glue/{task.folder}/{file}.gz"] = text.encode()
    # NLTK's reader wants the folder of full texts, which is empty here.
    members = {"mini/fulltext/": b""} | {
        f"mini/{name}": content for name, content in documents(frames()).items()
    }
    return made | {RELEASE: members}


def unpacked(path: Path) -> bytes | dict[str, bytes]:
    """A written file as :func:`contents` gives it."""
    if path.name == GENERATED:
        return path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(folder: Path, dev: int = DEV) -> list[str]:
    """Write the files whose content is not there yet.

    Args:
        folder: where to.
        dev: dev rows of each task.

    Returns:
        The names of those written.
    """
    written = []
    for name, content in contents(dev).items():
        if not (folder / name).exists() or unpacked(folder / name) != content:
            write_atomically(
                folder / name, content if name.endswith(GENERATED) else _packed(content)
            )
            written.append(name)
    return written


def _packed(content: bytes | dict[str, bytes]) -> bytes:
    if isinstance(content, bytes):
        return gzip.compress(content, mtime=0)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, member in content.items():
            about = zipfile.ZipInfo(name)  # its date is the format's first day
            about.create_system, about.external_attr = (
                3,
                (0o755 << 16 if name.endswith("/") else 0o644 << 16),
            )
            archive.writestr(
                about, member, zipfile.ZIP_STORED if name.endswith("/") else zipfile.ZIP_DEFLATED
            )
    return target.getvalue()
