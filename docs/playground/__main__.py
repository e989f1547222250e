"""The playground: a page on which a model reads a text in the browser, and every head is seen and can be disabled.

``make playground MODEL=FOLDER`` writes the page of a classifier of one's own, or of an encoder, into
``runs/playground``, a folder that any static web server serves. ``make site`` writes the site's, of
the example classifier (``docs/book.py``). The model is exported by ``export.py``, which compares it
with PyTorch; ``measured.py`` reads what was measured of the heads; ``page/`` is the page; npm gives
ONNX's runtime and the tokenizer, of the versions and hashes in ``package-lock.json``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch.nn.utils import parametrize

from bertology_utils import cache
from bertology_utils.study import EXAMPLE, ROOT, Study

from .export import EXAMPLES, LowRank, export, load

HERE = Path(__file__).parent
OWN = "runs/playground"
ABOUT = "playground.json"
RUNTIME = "ort-wasm-simd-threaded.wasm"
STUDY = "e5"  # whose encoder the site's model has, and whose heads were measured
# What the page loads of npm's packages, by its name in the page's folder.
VENDORED = {
    "ort.mjs": "onnxruntime-web/dist/ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs": "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
    RUNTIME: f"onnxruntime-web/dist/{RUNTIME}",
    "tokenizers.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "tokenizers-LICENSE": "@huggingface/tokenizers/LICENSE",
}
# Of the site: in some of them a single head turns the answer, and in some no head matters.
SENTENCES = [
    EXAMPLES[0],
    "The plot is thin, but the actors save it.",
    "Beautiful pictures, empty story.",
    "The critics hated it, and they are wrong.",
]


class NoPackagesError(RuntimeError):
    """npm, or what it should fetch, is not there."""


def own_model(folder: Path, page: Path) -> dict[str, Any]:
    """Write the files of a model of one's own into a page's folder; returns what the page has to know of it.

    Raises:
        ValueError: see :func:`docs.playground.export.load` and ``export``.
    """
    return {"name": folder.resolve().name} | export(*load(folder), page)


def example_model(page: Path) -> dict[str, Any]:
    """The same of the example classifier, which is exported once and kept, and of what was measured.

    Raises:
        FileNotFoundError: its encoder is not installed.
    """
    sources = [EXAMPLE, HERE / "export.py"]
    key = {"files": [cache.file_sha256(one) for one in sources], "first": SENTENCES[0]}
    kept = cache.artefact("playground", key, lambda target, _: export_example(target))
    shutil.copytree(kept, page, dirs_exist_ok=True)
    return json.loads((page / ABOUT).read_text(encoding="utf-8")) | {
        "name": "multilingual E5-small",
        "trained": "It learned from phrases of film reviews (SST-2): of any other text its answer"
        " means little, however sure it is.",
        "examples": SENTENCES,
        "labels": ["negative", "positive"],
        "single": True,  # no pairs of sentences
        "home": True,  # it has a site around it
        **what_was_measured(page),
    }


def export_example(target: Path) -> None:
    """Write the example classifier in the 4 bits and the low-rank updates that it is made of."""
    study, update = Study.of(STUDY), load_file(EXAMPLE)
    model = study.example_classifier().cpu()
    for name, before in study.encoder().cpu().named_modules():
        if f"{name}.a" in update:
            linear = model.bert.get_submodule(name)
            linear.weight.data = before.weight.data
            factors = (update[f"{name}.{letter}"].float() for letter in "ba")
            parametrize.register_parametrization(linear, "weight", LowRank(*factors))
    write_json(target / ABOUT, export(model, study.tokenizer, target, SENTENCES[0]))


def what_was_measured(page: Path) -> dict[str, Any]:
    """Write what was measured of the study's heads, if something was; returns what the page has to know of it."""
    from .measured import measured, typical

    study = Study.of(STUDY)
    with contextlib.redirect_stdout(None):  # which would say what is not measured yet
        measures, sentence = measured(study), typical(study)
    if measures:
        write_json(page / "measured.json", measures)
    return {"measured": bool(measures), "typical": sentence}


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


def write(root: Path, page: Path, model: Callable[[Path], dict[str, Any]]) -> None:
    """Write the page with its model into an empty folder.

    Args:
        root: of the checkout.
        page: the page's folder, made if need be.
        model: writes a model's files there, see :func:`own_model`.

    Raises:
        NoPackagesError: see :func:`packages`.
        ValueError: see :func:`docs.playground.export.export`.
    """
    modules = packages(root)
    shutil.copytree(HERE / "page", page, dirs_exist_ok=True)
    for name, source in VENDORED.items():
        cache.write_atomically(page / "vendor" / name, (modules / source).read_bytes())
    about = model(page) | {"runtime": (page / "vendor" / RUNTIME).stat().st_size}
    write_json(page / ABOUT, about)


def write_json(path: Path, content: object) -> None:
    """Write a file that the page reads."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    cache.write_atomically(path, f"{text}\n".encode())


def main(folder: Path) -> None:
    """Write the page of one's own model."""
    shutil.rmtree(ROOT / OWN, ignore_errors=True)
    try:
        write(ROOT, ROOT / OWN, functools.partial(own_model, folder))
    except (NoPackagesError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{OWN} is the page; python -m http.server --bind 127.0.0.1 --directory {OWN} shows it")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("name the folder of a model: make playground MODEL=FOLDER")
    main(Path(sys.argv[1]))
