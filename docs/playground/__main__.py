"""The playground: a page on which a model reads a text in the browser, and every head is seen and can be disabled.

``make playground MODEL=FOLDER`` writes the page of a classifier of one's own, or of an encoder, into
``runs/playground``, a folder that any static web server serves. ``make site`` writes the site's
(``docs/book.py``). The model is exported by ``export.py``, which compares it with PyTorch; ``page/``
is the page; npm gives ONNX's runtime and the tokenizer, of the versions and hashes in
``package-lock.json``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bertology_utils import cache, finetune
from bertology_utils.lab import Lab
from bertology_utils.record import project_root
from bertology_utils.results import LABELS, NUMBERS, factor_of, read_results, text_of, title_of

from .export import export

HERE = Path(__file__).parent
OWN = "runs/playground"
# What the page loads of npm's packages, by its name in the page's folder.
VENDORED = {
    "ort.mjs": "onnxruntime-web/dist/ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs": "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm": "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
    "tokenizers.mjs": "@huggingface/tokenizers/dist/tokenizers.min.mjs",
    "tokenizers-LICENSE": "@huggingface/tokenizers/LICENSE",
}
SHOWN = ("glue", "framenet15")  # runs whose numbers of single heads the page shows
AXES = {"layer", "head", "kind"}
# What the page shows of the evidence, and says of it; controls and p values stand in docs/numbers.md.
MEASURES = {
    "share of maps by head": "How many of the head's maps show this pattern.",
    "score along frame links": "The largest weight between a predicate and its frame element, in this direction; mean over sentences.",
    "excess along frame links": "The score along frame links minus the weight at the same places in other sentences (weight); or the smaller of that and of the same with each word's popularity subtracted (smaller of both).",
    "similarity of maps": "The cosine similarity of the head's maps in two models, for example before and after fine-tuning.",
    "weight on the type": "How much attention the average token gives to the token of this type that receives most.",
    "increase of the weight": "How much more attention the token of this type that receives most gets after fine-tuning than before.",
    "weight along links": "How much the first word of such a pair attends to the second, mean over examples.",
    "weight along links above rivals": "How much more attention the linked word receives than the words of its part of speech in between.",
    "gain without a head": "How much the score rises if the head attends to all tokens equally (1/L), in one fine-tuning run.",
    "gain without a head, mean over runs": "How much the score rises, or the loss falls, if the head attends to all tokens equally (1/L); mean over fine-tuning runs. Recalibrated: the outputs are scaled first, so that confidence alone changes no loss.",
    "gain without a head by loss, by ablation": "How much the loss falls if the head is disabled in this way, as a share of the model's loss.",
    "share of [CLS] of each head, by weight": "How much of the head's attention [CLS] receives.",
    "share of [CLS] of each head, by norm": "How much of what the head passes on comes from [CLS]: weights times the length of the vectors that they carry.",
    "share of links that a head points along, by weight": "For how many dependencies of this type (the glossary explains their names) the head attends more to the word's partner than to any other word of the sentence, special tokens aside; in the better of the two directions.",
    "share of links that a head points along, by norm": "The same by weights times the length of the vectors that they carry.",
    "rise of the loss without a head": "How much the loss rises if the head attends to all tokens equally (1/L), in one fine-tuning run.",
}


class NoPackagesError(RuntimeError):
    """npm, or what it should fetch, is not there."""


def site_model(glue: str = "") -> tuple[Path, dict[str, Any]]:
    """The evidence's classifier of single sentences where data and cache have it, or else the small run's; and its words."""
    training = _training()
    rows = "synthetic sentences of praise and blame"
    if glue:
        evidence = _training(profile="glue", data=f"folder:{glue}")
        if cache.is_finished(*cache.cache_key(finetune.train, evidence)):
            training, rows = evidence, "sentences from reviews of films (SST-2)"
    words = {"name": "MiniLM", "trained": f"{len(training.rows):,} {rows}"}
    return finetune.trained(training), words | {"labels": training.task.labels, "single": True}


def _training(**parameters: str) -> finetune.Training:
    lab = Lab("3_finetuning_drift", tasks="sst2", **parameters)
    return lab.training(lab.tasks[0])


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


def write(
    root: Path, page: Path, model: Path, words: dict[str, Any] | None = None, in_site: bool = False
) -> None:
    """Write the page with its model into an empty folder.

    Args:
        root: of the checkout.
        page: the page's folder, made if need be.
        model: folder with the model and its tokenizer.
        words: its "name", what it was "trained" on, whether that were "single" sentences, "labels";
            by default what its folder says.
        in_site: the page has a link to the site's first page, and the evidence if its heads fit.

    Raises:
        NoPackagesError: see :func:`packages`.
        ValueError: see :func:`docs.playground.export.export`.
    """
    modules = packages(root)
    shutil.copytree(HERE / "page", page, dirs_exist_ok=True)
    for name, source in VENDORED.items():
        cache.write_atomically(page / "vendor" / name, (modules / source).read_bytes())
    about = {"name": model.resolve().name} | export(model, page) | (words or {})
    if in_site:
        about["home"] = "../index.html"
        measures = measures_of([root / "results" / name for name in SHOWN], root / "notebooks")
        if len(measures[0]["values"]) == about["layers"] * about["heads"]:
            write_json(page / "evidence.json", measures)
            about["evidence"] = True
    write_json(page / "playground.json", about)


def write_json(path: Path, content: object) -> None:
    """Write a file that the page reads."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    cache.write_atomically(path, f"{text}\n".encode())


def measures_of(folders: list[Path], notebooks: Path) -> list[dict[str, Any]]:
    """The numbers of single heads in folders of results that :data:`MEASURES` names, in the order of the pages.

    Returns:
        Of each: "what" was measured and "of" what, what this "says", its values and their texts, a head after the
        other, layer by layer, and by what values are multiplied in texts; numbers of examples and
        runs; the page's title and name, and the file's.
    """
    measures = []
    files = [file for folder in folders for file in folder.glob("*.json")]
    for file in sorted(files, key=lambda file: int(file.stem.split("_")[0])):
        title = re.search(r'"# (.*?)(\\n)?"', (notebooks / f"{file.stem}.ipynb").read_text("utf-8"))
        place = {"title": title[1] if title else file.stem, "page": file.stem}
        place["file"] = f"results/{file.parent.name}/{file.name}"
        entries = (one for one in read_results(file).entries if one["what"] in MEASURES)
        for entry in (one for one in entries if {*one.get("over", ()), "kind"} == AXES):
            axes, kinds = entry["over"], entry.get("kinds", [""])
            order = [axes.index(axis) for axis in ("kind", "layer", "head") if axis in axes]
            arrays = {
                name: np.array(entry[name], float).transpose(order).reshape(len(kinds), -1)
                for name in NUMBERS
                if name in entry
            }  # each (kinds, heads)
            labels = [title_of(label, entry[label]) for label in LABELS if label in entry]
            shared = {"what": entry["what"], "says": MEASURES[entry["what"]]}
            shared |= {"n": entry.get("n"), "runs": entry.get("trainings")}
            for row, kind in enumerate(kinds):
                values, *ends = (_numbers(array[row]) for array in arrays.values())
                heads = (
                    dict(zip(arrays, one, strict=True)) for one in zip(values, *ends, strict=True)
                )
                texts = [text_of({"unit": entry.get("unit", "")} | head) for head in heads]
                own = {"of": ", ".join(filter(None, [kind, *labels])), "factor": factor_of(entry)}
                measures.append(place | shared | own | {"values": values, "texts": texts})
    return measures


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()]


def main(model: Path) -> None:
    """Write the page of one's own model."""
    root = project_root()
    shutil.rmtree(root / OWN, ignore_errors=True)
    try:
        write(root, root / OWN, model)
    except (NoPackagesError, ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{OWN} is the page; python -m http.server --bind 127.0.0.1 --directory {OWN} shows it")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1]:
        sys.exit("name the folder of a model: make playground MODEL=FOLDER")
    main(Path(sys.argv[1]))
