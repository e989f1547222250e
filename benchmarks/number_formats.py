"""How far results move where models compute in bf16 or fp16, trainings being the same: ``python benchmarks/number_formats.py``

Cells of notebooks 1, 3, 4, 5 and 6 run in one process for each format, under PyTorch's autocast, on the embedded data.
Trainings come from the cache (``python -m bertology_utils prepare`` makes them); passes and sweeps are made anew. Of every
kind of number: the largest difference from float32; and the verdicts that move.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ("1_attention_patterns", "3_finetuning_drift", "4_feature_attention", "5_token_to_token", "6_disabling_heads")
SIZES = {"tasks": "mrpc,sst2", "max_examples": 200, "sweep_examples": 160}
FORMATS = ("float32", "bfloat16", "float16")


def run(number_format: str, folder: Path) -> None:
    """Run the notebooks' cells in this process, with models in this format."""
    import matplotlib.pyplot as plt
    import torch

    from bertology_utils import plan

    torch.set_num_threads(1)
    plan.jobs_for = lambda *_: 1  # in this process, which computes in the format
    torch.set_autocast_dtype("cpu", getattr(torch, number_format))
    torch.set_autocast_enabled("cpu", number_format != "float32")
    for name in NOTEBOOKS:
        space: dict = {"display": lambda *_: None}
        for cell in json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec(re.sub(r"^(\s*)%.*$", r"\1pass", "".join(cell["source"]), flags=re.MULTILINE), space)
                space |= {key: value for key, value in SIZES.items() if "parameters" in cell["metadata"].get("tags", [])}
                plt.close("all")


def trainings_only(cache: Path) -> None:
    """Fill a cache with the trainings of the usual one, and nothing that was measured."""
    from bertology_utils.cache import MADE, MANIFEST, cache_folder

    (cache / MADE).mkdir(parents=True)
    for manifest in (cache_folder() / MADE).glob(f"*/{MANIFEST}"):
        if json.loads(manifest.read_text())["key"]["function"] == "train":
            (cache / MADE / manifest.parent.name).symlink_to(manifest.parent)


def numbers_of(results: dict) -> dict[tuple[str, str], list[float]]:
    """Every number by its row and unit."""
    found: dict[tuple[str, str], list[float]] = {}

    def walk(row: str, unit: str, value: object) -> None:
        if isinstance(value, list):
            for at, one in enumerate(value):
                walk(f"{row} {at}", unit, one)
        elif isinstance(value, (int, float)):
            found.setdefault((row, unit), []).append(value)

    for at, row in enumerate(results["rows"]):
        walk(f"{at} {row['what']}", row["unit"], row["value"])
    return found


def compare(usual: Path, other: Path) -> dict:
    """Largest differences by notebook and unit, and the verdicts that move."""
    largest: dict[str, dict[str, float]] = {}
    moved = []
    for name in NOTEBOOKS:
        one, two = (json.loads((folder / name / "results.json").read_text()) for folder in (usual, other))
        here, there = numbers_of(one), numbers_of(two)
        of_unit = largest.setdefault(name, {})
        for (row, unit), values in here.items():
            for first, second in zip(values, there.get((row, unit), values), strict=False):
                of_unit[unit] = max(of_unit.get(unit, 0.0), float(f"{abs(first - second):.2g}"))
        moved += [
            f"{first['id']}: {first['outcome']}, then {second['outcome']}"
            for first, second in zip(one["verdicts"], two["verdicts"], strict=True)
            if first["outcome"] != second["outcome"]
        ]
    return {"largest difference": largest, "verdicts that move": moved}


def main() -> None:
    """Run every format in a process of its own, and write the table."""
    with tempfile.TemporaryDirectory() as place:
        for number_format in FORMATS:
            folder = Path(place) / number_format
            trainings_only(folder / "cache")
            variables = {"BERTOLOGY_CACHE": str(folder / "cache"), "BERTOLOGY_OUTPUT": str(folder), "MPLBACKEND": "agg"}
            command = [sys.executable, __file__, number_format, str(folder)]
            subprocess.run(command, env=os.environ | variables, check=True, stdout=subprocess.DEVNULL)
        table = {one: compare(Path(place) / FORMATS[0], Path(place) / one) for one in FORMATS[1:]}
    content = {"sizes": SIZES} | table
    (ROOT / "benchmarks" / "number_formats.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2])) if len(sys.argv) > 1 else main()
