"""Times the sweep over all heads and layers against one forward pass per head.

    python benchmarks/sweep_speed.py --data folder:PATH/TO/glue --examples 64

Four ways to the same outputs, in one run: (a) one pass per head and layer,
padded to 128 in batches of 32, as published scripts do it; (b) the same with
padding to the longest of a batch; (c) the package's reference, batches cut by
length; and the sweep. Weights are the embedded model's, or random ones in the
shape of bert-base; nothing is trained, as speed does not depend on it.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
from datasets.utils.logging import disable_progress_bar
from transformers import BertConfig, BertForSequenceClassification

from bertology_utils import batches, glue, models
from bertology_utils.batches import Batch
from bertology_utils.glue import Task, get_task
from bertology_utils.settings import parse_data, parse_model
from bertology_utils.sweeps import reference_sweep, sweep

PADDED, EXAMPLES_PER_BATCH = 128, 32
SHAPES = ("minilm", "bert-base")


def load(shape: str, task):
    """A classifier of that shape in evaluation mode."""
    if shape == "minilm":
        return models.load_classifier(parse_model("embedded"), task)
    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(num_labels=task.num_labels)).eval()


def in_order(inputs, tokenizer, pad_to: int | None) -> list:
    """Batches of 32 in the order of the data, as scripts make them."""
    found = []
    for start in range(0, len(inputs), EXAMPLES_PER_BATCH):
        part = inputs[start : start + EXAMPLES_PER_BATCH]
        labels = torch.tensor(part.pop("labels"))
        padding = "max_length" if pad_to else "longest"
        padded = tokenizer.pad(part, padding, pad_to, padding_side="right", return_tensors="pt")
        found.append(Batch(dict(padded), [*range(start, start + len(labels))], labels))
    return found


def matmul_peak(size: int = 2048, repeats: int = 10) -> float:
    """float32 operations per second of a large matrix product on this machine."""
    a, b = torch.rand(size, size), torch.rand(size, size)
    a @ b
    start = time.perf_counter()
    for _ in range(repeats):
        a @ b
    return 2 * size**3 * repeats / (time.perf_counter() - start)


def operations(config, lengths: np.ndarray) -> float:
    """Multiplications and additions of matrix products that the sweep needs, for inputs of these lengths."""
    size, inner, layers, heads = (
        config.hidden_size,
        config.intermediate_size,
        config.num_hidden_layers,
        config.num_attention_heads,
    )
    variants = heads + 1
    total = 0.0
    for length in lengths:
        feed_forward = 4 * size * inner * length
        whole = feed_forward + 8 * size**2 * length + 4 * size * length**2
        first = (
            4 * heads * size * length + 8 * size**2 + 4 * size * inner
        )  # the last layer, at [CLS]
        total += layers * whole
        for layer in range(layers):
            if layer == layers - 1:
                total += 2 * size**2 + variants * 4 * size * inner
            else:
                total += 2 * size**2 * length + variants * (
                    feed_forward + (layers - 2 - layer) * whole + first
                )
    return total


def answers(task: Task, logits: np.ndarray) -> np.ndarray:
    """Labels' numbers, or scores of a regression; shape (…, examples)."""
    return logits[..., 0] if task.is_regression else logits.argmax(axis=-1)


def flat(found, part: str) -> np.ndarray:
    """One part of a sweep's outputs as (variants, examples, labels)."""
    values = getattr(found, part)
    return values.reshape(-1, *values.shape[-2:])


def main() -> None:
    """Time all four ways and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--task", default="mrpc")
    parser.add_argument("--examples", type=int, default=64)
    parser.add_argument("--shape", choices=SHAPES, default="minilm")
    parser.add_argument(
        "--sweep-only", action="store_true", help="time and memory of the sweep alone"
    )
    options = parser.parse_args()
    disable_progress_bar()
    task = get_task(options.task)
    model, tokenizer = load(options.shape, task), models.load_tokenizer(parse_model("embedded"))
    rows = glue.sample(glue.load_rows(task, "dev", parse_data(options.data)), options.examples, 1)
    inputs = batches.tokenize(rows, task, tokenizer, PADDED)
    by_length = batches.make_batches(inputs, tokenizer)
    ways = {"sweep": lambda: sweep(model, by_length)}
    if not options.sweep_only:
        ways |= {
            "(c) reference, cut by length": lambda: reference_sweep(model, by_length),
            "(b) padded to the batch": lambda: reference_sweep(
                model, in_order(inputs, tokenizer, None)
            ),
            "(a) padded to 128": lambda: reference_sweep(
                model, in_order(inputs, tokenizer, PADDED)
            ),
        }
    lengths = np.array([len(ids) for ids in inputs["input_ids"]])
    found = {
        "shape": options.shape,
        "task": task.name,
        "examples": len(lengths),
        "mean length": float(lengths.mean()),
        "threads": torch.get_num_threads(),
        "seconds": {},
        "largest difference from the sweep": {},
        "predictions that differ from the sweep's": {},
    }
    outputs = {}
    for name, way in ways.items():
        start = time.perf_counter()
        outputs[name] = way()
        found["seconds"][name] = round(time.perf_counter() - start, 2)
        found["largest difference from the sweep"][name] = max(
            float(abs(getattr(outputs[name], part) - getattr(outputs["sweep"], part)).max())
            for part in ("baseline", "heads", "layers")
        )
        found["predictions that differ from the sweep's"][name] = [
            sum(
                int((answers(task, a) != answers(task, b)).sum())
                for part in ("baseline", "heads", "layers")
                for a, b in zip(
                    flat(outputs[name], part), flat(outputs["sweep"], part), strict=True
                )
            )
            if not task.is_regression
            else 0,
            (1 + outputs[name].heads.shape[0] * (1 + outputs[name].heads.shape[1])) * len(lengths),
        ]
        if name == "sweep":
            found["peak memory, MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps(found["seconds"]), file=sys.stderr)
    peak, needed = matmul_peak(), operations(model.config, lengths)
    found["matmul peak per second"] = peak
    found["operations of the sweep"] = needed
    found["share of the peak"] = needed / peak / found["seconds"]["sweep"]
    times = found["seconds"]
    found["times faster than"] = {
        name: round(seconds / times["sweep"], 2)
        for name, seconds in times.items()
        if name != "sweep"
    }
    alone = "_alone" if options.sweep_only else ""
    target = Path(__file__).with_name(f"sweep_speed_{options.shape}_{task.name}{alone}.json")
    target.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
