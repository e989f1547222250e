"""The playground: a page on which a model reads a text in the browser, and every head is seen and can be disabled.

``make playground MODEL=FOLDER`` writes the page of a classifier of one's own, or of an encoder, into
``runs/playground``, a folder that any static web server serves. ``make site`` writes the site's
(``docs/book.py``). The model is exported by ``export.py``, which compares it with PyTorch; ``page/``
is the page; npm gives ONNX's runtime and the tokenizer, of the versions and hashes in
``package-lock.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology_utils import cache, finetune
from bertology_utils.cache import write_atomically
from bertology_utils.record import project_root
from bertology_utils.results import (
    LABELS,
    NUMBERS,
    factor_of,
    read_results,
    text_of,
    title_of,
)

if TYPE_CHECKING:
    from bertology_utils.lab import Lab

HERE = Path(__file__).parent
OWN = "runs/playground"
SERVE = "a web server shows it: python -m http.server --bind 127.0.0.1 --directory {}"
# What the page loads of npm's packages, by its name in the page's folder.
VENDORED = {
    "ort.mjs": "onnxruntime-web/dist/ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs": "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm": "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "tokenizers.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "tokenizers-LICENSE": "@huggingface/tokenizers/LICENSE",
}
SHOWN = ("glue", "framenet15")  # runs whose numbers of single heads the page shows


@dataclass(frozen=True)
class Shown:
    """The model of a page.

    Attributes:
        folder: with the model and its tokenizer.
        name: what the page calls it.
        trained: on what, in words; empty if that is not known.
        labels: names of its outputs, where they are others than its configuration's.
    """

    folder: Path
    name: str
    trained: str = ""
    labels: tuple[str, ...] = ()


class NoPackagesError(RuntimeError):
    """npm, or what it should fetch, is not there."""


def site_model(glue: str = "") -> Shown:
    """The evidence's classifier of single sentences where data and cache have it, or else the small run's."""
    from bertology_utils.lab import Lab

    if glue:
        lab = Lab("3_finetuning_drift", profile="glue", tasks="sst2", data=f"folder:{glue}")
        if cache.is_finished(*cache.cache_key(finetune.train, _training(lab))):
            return _shown(lab, "sentences of SST-2, from reviews of films")
    lab = Lab("3_finetuning_drift", tasks="sst2")
    return _shown(lab, "synthetic sentences in the form of SST-2, which come with this project")


def _training(lab: Lab) -> finetune.Training:
    return lab.training(lab.tasks[0])


def _shown(lab: Lab, rows: str) -> Shown:
    training = _training(lab)
    trained = f"{len(training.rows):,} {rows}"
    return Shown(finetune.trained(training), "MiniLM", trained, tuple(training.task.labels))


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


def write(root: Path, folder: Path, shown: Shown, in_site: bool = False) -> None:
    """Write the page with its model into an empty folder.

    Args:
        root: of the checkout.
        folder: of the page, made if need be.
        shown: the model.
        in_site: the page has a link to the site's first page, and the evidence if its heads fit.

    Raises:
        NoPackagesError: see :func:`packages`.
        ValueError: see :func:`docs.playground.export.export`.
    """
    from .export import export

    modules = packages(root)
    (folder / "vendor").mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {"name": shown.name, "trained": shown.trained}
    about |= export(shown.folder, folder)
    if shown.labels:
        about["labels"] = shown.labels
    if in_site:
        about["home"] = "../index.html"
        measures = measures_of([root / "results" / name for name in SHOWN], root / "notebooks")
        if len(measures[0]["values"]) == about["layers"] * about["heads"]:
            write_json(folder / "evidence.json", measures)
            about["evidence"] = True
    write_json(folder / "playground.json", about)
    for name, source in VENDORED.items():
        shutil.copyfile(modules / source, folder / "vendor" / name)
    shutil.copytree(HERE / "page", folder, dirs_exist_ok=True)


def write_json(path: Path, content: object) -> None:
    """Write a file that the page reads."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    write_atomically(path, f"{text}\n".encode())


def measures_of(folders: list[Path], notebooks: Path) -> list[dict[str, Any]]:
    """All numbers of single heads in folders of results, in the order of the pages.

    Returns:
        Of each: "what" was measured and "of" what, its values and their texts, a head after the
        other, layer by layer, and by what values are multiplied in texts; numbers of examples and
        runs; the page's title and name, and the file's.
    """
    measures = []
    files = [file for folder in folders for file in folder.glob("*.json")]
    for file in sorted(files, key=lambda file: int(file.stem.split("_")[0])):
        title = re.search(r'"# (.*?)(\\n)?"', (notebooks / f"{file.stem}.ipynb").read_text("utf-8"))
        place = {"title": title[1] if title else file.stem, "page": file.stem}
        place["file"] = f"results/{file.parent.name}/{file.name}"
        for entry in read_results(file).entries:
            axes = entry.get("over", [])
            if not {"layer", "head"} <= set(axes) <= {"layer", "head", "kind"}:
                continue
            order = [axes.index(axis) for axis in ("kind", "layer", "head") if axis in axes]
            count = len(entry.get("kinds", [""]))
            arrays = {  # (kinds, heads)
                name: np.array(entry[name], dtype=float).transpose(order).reshape(count, -1)
                for name in NUMBERS
                if name in entry
            }
            labels = [title_of(label, entry[label]) for label in LABELS if label in entry]
            for place_of_kind, kind in enumerate(entry.get("kinds", [""])):
                own = {name: _numbers(array[place_of_kind]) for name, array in arrays.items()}
                rows = [dict(zip(own, row, strict=True)) for row in zip(*own.values(), strict=True)]
                texts = [text_of(row | {"unit": entry.get("unit", "")}) for row in rows]
                of = ", ".join(filter(None, [kind, *labels]))
                one = {"what": entry["what"], "of": of, "n": entry.get("n")}
                one |= {"runs": entry.get("trainings"), "factor": factor_of(entry)}
                measures.append(place | one | {"values": own["value"], "texts": texts})
    return measures


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()]


def main() -> None:
    """Called from the command line."""
    parser = argparse.ArgumentParser(prog="python -m docs.playground", description=__doc__)
    parser.add_argument("model", type=Path, help="folder with the model and its tokenizer")
    parser.add_argument("--name", help="what the page calls it; by default as the folder")
    parser.add_argument("--trained", default="", help="what it was trained on, in words")
    given = parser.parse_args()
    root = project_root()
    shutil.rmtree(root / OWN, ignore_errors=True)
    try:
        name = given.name or given.model.resolve().name
        write(root, root / OWN, Shown(given.model, name, given.trained))
    except (NoPackagesError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"the page is in {OWN}; {SERVE.format(OWN)}")


if __name__ == "__main__":
    main()
