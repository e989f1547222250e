"""The playground: a page on which a model reads a text in the browser, and every head is seen and can be disabled.

``make playground MODEL=FOLDER`` writes the page of a classifier of one's own, or of an encoder, into
``runs/playground``, a folder that any static web server serves. ``make site`` writes the site's, of
the example classifier (``docs/book.py``). The model is exported by ``export.py``, which compares it
with PyTorch; ``measured.py`` reads what was measured of the heads; ``page/`` is the page; npm gives
ONNX's runtime and the tokenizer, of the versions and hashes in ``package-lock.json``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from safetensors import safe_open
from safetensors.numpy import load_file

from bertology_utils import cache
from bertology_utils.study import EXAMPLE, ROOT, Study

from .export import EXAMPLES, Parts, export, load

HERE = Path(__file__).parent
OWN = "runs/playground"
STUDY = "e5"  # whose encoder the site's model has, and whose heads were measured
# What the page loads of npm's packages, by its name in the page's folder.
VENDORED = {
    "ort.mjs": "onnxruntime-web/dist/ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs": "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm": "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "tokenizers.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "tokenizers-LICENSE": "@huggingface/tokenizers/LICENSE",
}
# Of the site: in some of them a single head turns the answer, and in some no head matters.
SENTENCES = [
    EXAMPLES[0],
    "The plot is thin, but the actors save it.",
    "Beautiful pictures, empty story.",
    "He plays a fool, and he plays him well.",
    "It is not the disaster that I had feared.",
    "A slow start, but a wonderful ending.",
    "The critics hated it, and they are wrong.",
]


class NoPackagesError(RuntimeError):
    """npm, or what it should fetch, is not there."""


@dataclass
class Shown:
    """A model that a page shows.

    Attributes:
        model, tokenizer: a BERT classifier, or an encoder.
        examples: sentences to try, or pairs; the first is shown until the model is there.
        parts: see :class:`docs.playground.export.Packed`.
        words: what the page says of it: its "name", what it was "trained" on, whether that were
            "single" sentences, its "labels".
    """

    model: Any
    tokenizer: Any
    examples: list[Any] = field(default_factory=lambda: EXAMPLES)
    parts: list[Parts] = field(default_factory=list)
    words: dict[str, Any] = field(default_factory=dict)


def own_model(folder: Path) -> Shown:
    """A model of one's own; raises ValueError, see :func:`docs.playground.export.load`."""
    return Shown(*load(folder), words={"name": folder.resolve().name})


def example_model() -> Shown:
    """The example classifier, in the 4 bits and the low-rank updates that it is made of.

    Raises:
        FileNotFoundError: its encoder is not installed.
    """
    study, update = Study.of(STUDY), load_file(EXAMPLE)
    model = study.example_classifier().cpu()
    before, whole = (dict(one.named_parameters()) for one in (study.encoder().cpu(), model.bert))
    parts = [
        Parts(
            *(of[f"{name}.weight"].detach().numpy() for of in (whole, before)),
            *(update[f"{name}.{letter}"].astype("float32") for letter in "ba"),
        )
        for name in (one.removesuffix(".a") for one in update if one.endswith(".a"))
    ]
    with safe_open(EXAMPLE, "numpy") as file:
        data = file.metadata()["data"]  # "GLUE's SST-2, 32000 of its 67349 training rows, drawn …"
    rows = int(re.search(r", (\d+) of", data)[1])
    words = {
        "name": "multilingual E5-small",
        "trained": f"{rows:,} phrases from film reviews (SST-2)",
        "labels": ["negative", "positive"],
        "single": True,
    }
    return Shown(model, study.tokenizer, SENTENCES, parts, words)


def packages(root: Path) -> Path:
    """The folder of npm's packages, fetched as the lock says where they are not there yet.

    Raises:
        NoPackagesError: there is no npm, or it cannot fetch them.
    """
    folder, lock = root / "runs" / "npm", "package-lock.json"
    modules, wanted = folder / "node_modules", (HERE / lock).read_bytes()
    whole = all((modules / path).is_file() for path in VENDORED.values())
    if whole and (folder / lock).is_file() and (folder / lock).read_bytes() == wanted:
        return modules
    if not (npm := shutil.which("npm")):
        raise NoPackagesError("npm is not installed, which fetches what the playground runs on")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", lock):
        shutil.copyfile(HERE / name, folder / name)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    if subprocess.run(command, cwd=folder, check=False).returncode:
        raise NoPackagesError("npm could not fetch what the playground runs on; it says why above")
    return modules


def write(root: Path, page: Path, shown: Shown, in_site: bool = False) -> None:
    """Write the page with its model into an empty folder.

    Args:
        root: of the checkout.
        page: the page's folder, made if need be.
        shown: the model.
        in_site: the page has a link to the site's first page, and what was measured if its heads fit.

    Raises:
        NoPackagesError: see :func:`packages`.
        ValueError: see :func:`docs.playground.export.export`.
    """
    modules = packages(root)
    shutil.copytree(HERE / "page", page, dirs_exist_ok=True)
    for name, source in VENDORED.items():
        cache.write_atomically(page / "vendor" / name, (modules / source).read_bytes())
    about = export(shown.model, shown.tokenizer, page, shown.examples, shown.parts) | shown.words
    about["runtime"] = (page / "vendor" / "ort-wasm-simd-threaded.wasm").stat().st_size
    if in_site:
        from .measured import measured

        about["home"] = "../index.html"
        measures = measured(Study.of(STUDY), titles(root / "notebooks"))
        heads = about["layers"] * about["heads"]
        if measures and len(measures[0]["parts"][0]["value"]) == heads:
            write_json(page / "measured.json", measures)
            about["measured"] = True
    write_json(page / "playground.json", about)


def write_json(path: Path, content: object) -> None:
    """Write a file that the page reads."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    cache.write_atomically(path, f"{text}\n".encode())


def titles(notebooks: Path) -> dict[str, str]:
    """The title of each notebook, "6 · Disabling heads", by its name."""
    found = {}
    for path in notebooks.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        title = re.search(r"^# (.+)", text, re.MULTILINE)
        found[path.stem] = title[1] if title else path.stem
    return found


def main(folder: Path) -> None:
    """Write the page of one's own model."""
    shutil.rmtree(ROOT / OWN, ignore_errors=True)
    try:
        write(ROOT, ROOT / OWN, own_model(folder))
    except (NoPackagesError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{OWN} is the page; python -m http.server --bind 127.0.0.1 --directory {OWN} shows it")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("name the folder of a model: make playground MODEL=FOLDER")
    main(Path(sys.argv[1]))
