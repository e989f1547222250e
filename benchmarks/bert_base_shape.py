"""What notebook 8 costs at bert-base's true shape; the weights are random.

    python benchmarks/bert_base_shape.py HUB_LIKE SCRATCH -- -p treebank FILE

HUB_LIKE is a folder with bert-base-uncased's config.json, tokenizer and state_dict_shapes.json
(names and shapes of its tensors). A model of that shape is written to SCRATCH, and the executed
notebook to runs/: random weights say nothing about BERT. Times go to bert_base_shape.json beside
this script.
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


def main() -> None:
    """Write the model, run the command, keep what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("like", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    model = options.scratch / "model"
    weights = write_model(options.like, model)
    command = [sys.executable, "-m", "bertology_utils", "run", "--only", "8"]
    command += ["-p", "model", str(model), *options.options]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    print(done.stderr)
    took = re.search(r"8_\w+: done \((\d+) s\)", done.stderr)
    memory = (
        resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    )  # of the largest process, the kernel
    if done.returncode or not took:
        sys.exit(f"the command ended with {done.returncode}, or did not say what it took")
    result = {
        "weights": weights,
        "options": options.options,
        "took": {"minutes": round(int(took[1]) / 60, 1), "GiB": round(memory, 1)},
        "threads": 1,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
