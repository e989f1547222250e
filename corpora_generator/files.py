"""The corpora as files: GLUE's own tables, CoNLL-U, and a FrameNet release.

In CoNLL-U (https://universaldependencies.org/format.html) a row is a document and each of its texts
a paragraph. Negative words have ``Polarity=Neg`` in FEATS; a pronoun's antecedent, the number of a
word of the same sentence, stands in MISC as ``Antecedent``; what sets a pair's texts apart stands
in the comment ``change``.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bertology_utils.annotation.annotators import Sentence
from bertology_utils.cache import write_atomically
from bertology_utils.glue import TASKS

from . import MAKERS, generate
from .framenet_xml import documents
from .mini_framenet import frames
from .rows import Row

Content = bytes | dict[str, bytes]
# What GLUE has and these rows have not (genres, sources, years) is left empty.
HEADERS = {
    "mrpc": "\ufeffQuality,#1 ID,#2 ID,#1 String,#2 String",  # it begins with a byte-order mark
    "stsb": "index,genre,filename,year,old_index,source1,source2,sentence1,sentence2,score",
    "sst2": "sentence,label",
}


def contents() -> dict[str, Content]:
    """Every file, unpacked, by its name; a zip file's members by theirs."""
    made: dict[str, Content] = {}
    for name in MAKERS:
        rows, folder = generate(name), f"glue/{TASKS[name].folder}"
        made[f"{folder}/train.tsv.gz"] = table(name, rows["train"]).encode()
        made[f"{folder}/dev.tsv.gz"] = table(name, rows["validation"]).encode()
        made[f"{folder}/dev.conllu.gz"] = treebank(rows["validation"]).encode()
    # NLTK's reader wants the folder of full texts, which is empty here.
    members = {f"mini/{name}": content for name, content in documents(frames()).items()}
    return made | {"mini_framenet.zip": {"mini/fulltext/": b"", **members}}


def table(task: str, rows: Sequence[Row]) -> str:
    """The text of a .tsv file of GLUE: no quotes."""
    lines: list[list[object]] = [list(HEADERS[task].split(","))]
    for number, row in enumerate(rows):
        texts = row.text.values()
        if task == "mrpc":
            lines.append([row.label, 2 * number + 1, 2 * number + 2, *texts])
        elif task == "stsb":
            lines.append([number, *[""] * 6, *texts, f"{row.label:.3f}"])
        else:
            lines.append([*texts, row.label])
    return "".join("\t".join(map(str, line)) + "\n" for line in lines)


def treebank(rows: Sequence[Row]) -> str:
    """The text of a .conllu file."""
    lines = [line for number, row in enumerate(rows) for line in _document(number, row)]
    return "".join(f"{line}\n" for line in lines)


def _document(number: int, row: Row) -> Iterator[str]:
    yield f"# newdoc id = {number}"
    if row.change:
        yield f"# change = {row.change}"
    for field, (sentence,) in row.sentences.items():
        yield f"# newpar id = {number}-{field}"
        yield f"# sent_id = {number}-{field}-1"
        yield f"# text = {sentence.text}"
        yield from _words(sentence)
        yield ""


def _words(sentence: Sentence) -> Iterator[str]:
    starts = {word.start for word in sentence.words}
    for number, word in enumerate(sentence.words, start=1):
        features = "Polarity=Neg" if word.negation else "_"
        misc = [] if word.antecedent is None else [f"Antecedent={word.antecedent + 1}"]
        misc += ["SpaceAfter=No"] if word.end in starts else []
        cells = (number, word.form, word.lemma, word.upos, "_", features, word.head + 1)
        yield "\t".join(map(str, (*cells, word.deprel, "_", "|".join(misc) or "_")))


def unpacked(path: Path) -> Content:
    """A written file as :func:`contents` gives it: how well it is packed depends on the zlib."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(folder: Path) -> list[str]:
    """Write the files whose content is not there yet, and return their names."""
    written = []
    for name, content in contents().items():
        if not (folder / name).exists() or unpacked(folder / name) != content:
            write_atomically(folder / name, _packed(content))
            written.append(name)
    return written


def _packed(content: Content) -> bytes:
    """Packed without time stamps."""
    if isinstance(content, bytes):
        return gzip.compress(content, mtime=0)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in content.items():
            about = zipfile.ZipInfo(name)  # its date is the format's first day
            folder = name.endswith("/")
            about.create_system, about.external_attr = 3, (0o755 if folder else 0o644) << 16
            archive.writestr(about, member, zipfile.ZIP_STORED if folder else zipfile.ZIP_DEFLATED)
    return target.getvalue()
