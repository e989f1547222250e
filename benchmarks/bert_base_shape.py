"""What `make bert` costs at bert-base's true shape; the weights are random.

    python benchmarks/bert_base_shape.py HUB_LIKE SCRATCH -- -p data folder:PATH …

HUB_LIKE is a folder with bert-base-uncased's config.json, tokenizer and state_dict_shapes.json
(names and shapes of its tensors). A model of that shape and a copy of the checkout are written to
SCRATCH, so that no page here is renewed: random weights say nothing of BERT. Times go to
bert_base_shape.json beside this script.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "pyproject.toml",
    "*.md",
    "docs/*.md",
    "notebooks/8*.ipynb",
    "figures/*/results.json",
    "benchmarks/**/*.json",
)


def write_model(like: Path, folder: Path, seed: int = 1) -> int:
    """Random weights of BERT's initial size under the checkpoint's own names; returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copyfile(like / name, folder / name)
    generator = torch.Generator().manual_seed(seed)
    shapes = json.loads((like / "state_dict_shapes.json").read_text())
    tensors = {}
    for name, shape in shapes.items():
        tensors[name] = torch.randn(shape, generator=generator) * 0.02 + (
            1.0 if name.endswith("gamma") else 0.0
        )
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return sum(tensor.numel() for tensor in tensors.values())


def copy_checkout(folder: Path) -> None:
    """What the command reads and writes."""
    for path in (path for pattern in COPIED for path in ROOT.glob(pattern)):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def main() -> None:
    """Write the model, run the command, keep what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("like", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    model, checkout = options.scratch / "model", options.scratch / "checkout"
    weights = write_model(options.like, model)
    copy_checkout(checkout)
    command = [
        sys.executable,
        "-m",
        "bertology_utils",
        "run",
        "--only",
        "8,8a",
        "--profile",
        "bert-forward",
    ]
    command += ["-p", "model", str(model), *options.options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=checkout, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    print(done.stderr)
    took = re.findall(r"8a?_\w+: done \((\d+) s\)", done.stderr)
    memory = (
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    )  # of the largest process, the kernel
    if done.returncode or len(took) < 2:
        sys.exit(f"the command ended with {done.returncode}, or did not say what it took")
    found = {
        "weights": weights,
        "options": options.options,
        "took": {"minutes": round(sum(map(int, took)) / 60, 1), "GiB": round(memory, 1)},
        "threads": 1,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
