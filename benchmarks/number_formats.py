"""How far results move where models compute in bf16 or fp16, trainings being the same: ``python benchmarks/number_formats.py``

Cells of notebooks 1, 3, 4, 5 and 6 run in one process for each format, under PyTorch's autocast, on
the embedded data. Trainings come from the cache (``python -m bertology_utils prepare`` makes them);
passes and sweeps are made anew. Of every kind of number: the largest difference from float32; and
the verdicts that move.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOTEBOOKS = (
    "1_attention_patterns",
    "3_finetuning_drift",
    "4_feature_attention",
    "5_token_to_token",
    "6_disabling_heads",
)
SIZES = {"tasks": "mrpc,sst2", "max_examples": 200, "sweep_examples": 160}
FORMATS = ("float32", "bfloat16", "float16")


def run(number_format: str) -> None:
    """Run the notebooks' cells in this process, with models in this format."""
    import cells
    import torch

    torch.set_autocast_dtype("cpu", getattr(torch, number_format))
    torch.set_autocast_enabled("cpu", number_format != "float32")
    cells.run([ROOT / "notebooks" / f"{name}.ipynb" for name in NOTEBOOKS], SIZES)


def trainings_only(cache: Path) -> None:
    """Fill a cache with the trainings of the usual one, and nothing that was measured."""
    from bertology_utils.cache import MADE, MANIFEST, cache_folder

    (cache / MADE).mkdir(parents=True)
    for manifest in (cache_folder() / MADE).glob(f"*/{MANIFEST}"):
        if json.loads(manifest.read_text())["key"]["function"] == "train":
            (cache / MADE / manifest.parent.name).symlink_to(manifest.parent)


def compare(usual: Path, other: Path) -> dict:
    """Largest differences by notebook and unit, and the verdicts that move."""
    from bertology_utils.results import RESULTS, read_results, tidy

    largest: dict[str, dict[str, float]] = {}
    moved = []
    for name in NOTEBOOKS:
        one, two = (read_results(folder / name / RESULTS) for folder in (usual, other))
        numbers = tidy(one.entries)
        apart = (numbers["value"] - tidy(two.entries)["value"]).abs().groupby(numbers["unit"]).max()
        largest[name] = {unit: float(f"{difference:.2g}") for unit, difference in apart.items()}
        moved += [
            f"{claim}: {verdict['outcome']}, then {two.verdicts[claim, model]['outcome']}"
            for (claim, model), verdict in one.verdicts.items()
            if verdict["outcome"] != two.verdicts[claim, model]["outcome"]
        ]
    return {"largest difference": largest, "verdicts that move": moved}


def main() -> None:
    """Run every format in a process of its own, and write the table."""
    with tempfile.TemporaryDirectory() as place:
        for number_format in FORMATS:
            folder = Path(place) / number_format
            trainings_only(folder / "cache")
            variables = {
                "BERTOLOGY_CACHE": str(folder / "cache"),
                "BERTOLOGY_OUTPUT": str(folder),
                "MPLBACKEND": "agg",
            }
            subprocess.run(
                [sys.executable, __file__, number_format],
                env=os.environ | variables,
                check=True,
                stdout=subprocess.DEVNULL,
            )
        table = {one: compare(Path(place) / FORMATS[0], Path(place) / one) for one in FORMATS[1:]}
    content = {"sizes": SIZES} | table
    (ROOT / "benchmarks" / "number_formats.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()
