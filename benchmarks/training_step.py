"""Times a fine-tuning step with all cores on one training, and with one training for each core.

    python benchmarks/training_step.py

One step is a batch of 32 inputs of 52 wordpieces (MRPC's mean) through the
embedded model: forward, backward, clipping, AdamW. Both ways are measured in
turns, in processes that stay, so that what else the machine does hits both.
The share is that of the speed of a large product of matrices with as many
threads. From the time of bert-base's step, that of a grid of trainings follows:
seven tasks, five seeds, three epochs. Written to training_step.json beside this
script.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from pathlib import Path

# Seconds that a step takes on any GPU, however few its rows: some thousand kernels are started one
# after the other.
STEP_ON_GPU = 0.06
BATCH, TOKENS = 32, 52
WEIGHTS = {"minilm": 6 * 12 * 384**2, "bert-base": 12 * 12 * 768**2}  # of the layers
GPU = 20e12  # assumed: 30 % of a T4's 65 TFLOP/s in half precision
# Training rows, and wordpieces of an input: means over samples of 1000, but for QNLI, where 50 is a
# guess.
GLUE = {
    "mrpc": (3668, 53.3),
    "stsb": (5749, 28.0),
    "sst2": (67_349, 13.1),
    "qqp": (363_846, 30.9),
    "rte": (2490, 67.2),
    "qnli": (104_743, 50),
    "mnli": (392_702, 40.1),
}
STEP = """
import sys, time, torch
from torch.nn.utils import clip_grad_norm_
from transformers import BertConfig, BertForSequenceClassification
shape, threads = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(0)
sizes = dict(num_hidden_layers=6, hidden_size=384, intermediate_size=1536) if shape == "minilm" else {}
model = BertForSequenceClassification(BertConfig(attn_implementation="eager", **sizes)).train()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
ids, labels = torch.randint(1000, 20000, (BATCH, TOKENS)), torch.randint(0, 2, (BATCH,))
matrix = torch.rand(2048, 2048)
def step():
    model(input_ids=ids, labels=labels).loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
def product():
    matrix @ matrix
step(), product()
print("ready", flush=True)
for line in sys.stdin:
    what, count = line.split()
    start = time.perf_counter()
    for _ in range(int(count)):
        (step if what == "step" else product)()
    print(time.perf_counter() - start, flush=True)
""".replace("BATCH", str(BATCH)).replace("TOKENS", str(TOKENS))


class Process:
    """A training of its own."""

    def __init__(self, shape: str, threads: int):
        self._process = subprocess.Popen(
            [sys.executable, "-c", STEP, shape, str(threads)], stdin=-1, stdout=-1, text=True
        )
        assert self._process.stdout.readline() == "ready\n"

    def start(self, what: str, count: int) -> None:
        print(what, count, file=self._process.stdin, flush=True)

    def seconds(self) -> float:
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def measure(processes: list[Process], what: str, count: int) -> float:
    """Seconds for one, when all processes together do as many as they can."""
    start = time.perf_counter()
    for process in processes:
        process.start(what, count)
    for process in processes:
        process.seconds()
    return (time.perf_counter() - start) / (count * len(processes))


def compare(shape: str, cores: int, rounds: int, count: int) -> dict:
    """Both ways, in turns."""
    ways = {
        "all cores on one": [Process(shape, cores)],
        "one for each core": [Process(shape, 1) for _ in range(cores)],
    }
    times = {name: {"step": [], "product": []} for name in ways}
    for _ in range(rounds):
        for name, processes in ways.items():
            for what in ("step", "product"):
                times[name][what].append(measure(processes, what, count))
    for processes in ways.values():
        for process in processes:
            process.end()
    operations = 6 * BATCH * TOKENS * WEIGHTS[shape]
    found = {}
    for name, of in times.items():
        step, product = (sorted(of[what])[rounds // 2] for what in ("step", "product"))
        found[name] = {
            "seconds a step": round(step, 3),
            "share of a matrix product's speed": round(
                operations / step / (2 * 2048**3 / product), 2
            ),
        }
    return found


def grid(speed: float, devices: int, step: float = 0.0, seeds: int = 5, epochs: int = 3) -> float:
    """Hours for seven tasks × seeds of bert-base, one training for each device, the longest first.

    Args:
        speed: operations per second of a device.
        devices: how many.
        step: seconds that a step takes at least.
    """
    free = [0.0] * devices
    each = [
        max(6 * WEIGHTS["bert-base"] * rows * tokens / speed, step * rows / BATCH) * epochs
        for rows, tokens in GLUE.values()
    ]
    for seconds in sorted(each * seeds, reverse=True):
        free[free.index(min(free))] += seconds
    return max(free) / 3600


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    found = {"machine": platform.processor() or platform.machine(), "cores": options.cores}
    found["minilm"] = compare("minilm", options.cores, options.rounds, options.steps)
    found["bert-base"] = compare("bert-base", options.cores, 3, 1)
    step = found["bert-base"]["one for each core"]["seconds a step"]
    here = 6 * BATCH * TOKENS * WEIGHTS["bert-base"] / step
    found["grid, hours"] = {
        name: {devices: float(f"{grid(speed, devices, least):.2g}") for devices in (1, 4, 16)}
        for name, speed, least in (
            ("machines like this one", here, 0),
            ("T4 GPUs", GPU, STEP_ON_GPU),
        )
    }
    text = json.dumps(found, indent=1)
    print(text)
    Path(__file__).with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
