"""What a step of fine-tuning takes at bert-base's true shape; the weights are random.

    python benchmarks/finetuning_step.py HUB_LIKE SCRATCH folder:PATH/TO/glue

HUB_LIKE and SCRATCH are as for bert_base_shape.py. MRPC is trained by the recipe of the profile
`paper`, for 20 steps, with one thread. Rows are sorted by length within hundreds, the longest
first, so that the first steps are not like all: what the whole takes is told from the time per
wordpiece. On a busy machine the clock tells little, so that everything is also told by the
processor's own time. Written to finetuning_step.json beside this script.
"""

import argparse
import json
import os
import resource
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from bert_base_shape import write_model
from transformers import Trainer, TrainerCallback

from bertology_utils import finetune
from bertology_utils.common import quiet
from bertology_utils.glue import TASKS
from bertology_utils.lab import Lab

STEPS = 20


class EnoughError(Exception):
    """So many steps were measured."""


class Clock(TrainerCallback):
    """Of each step: seconds by the clock, seconds of the processor, wordpieces with padding."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float, int]] = []
        self.wordpieces = 0

    def on_step_begin(self, *_, **__) -> None:
        self.start = time.perf_counter(), time.process_time()

    def on_step_end(self, *_, **__) -> None:
        wall, processor = self.start
        self.steps.append(
            (time.perf_counter() - wall, time.process_time() - processor, self.wordpieces)
        )
        if len(self.steps) == STEPS:
            raise EnoughError


def measure(training: finetune.Training, scratch: Path) -> Clock:
    """The first steps of a training."""
    clock, train, step = Clock(), Trainer.train, Trainer.training_step

    def counted(self, model, inputs, *rest):
        clock.wordpieces = inputs["input_ids"].numel()
        return step(self, model, inputs, *rest)

    Trainer.training_step = counted
    Trainer.train = lambda self, **keywords: (self.add_callback(clock), train(self, **keywords))[1]
    try:
        finetune.train(training, scratch / "result", scratch)
    except EnoughError:
        return clock
    raise RuntimeError(f"the training has fewer than {STEPS} steps")


def main() -> None:
    """Write the model and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("like", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("data")
    options = parser.parse_args()
    quiet()
    torch.set_num_threads(1)
    weights = write_model(options.like, options.scratch / "model")
    task = TASKS["mrpc"]
    lab = Lab(
        "3_finetuning_drift",
        profile="paper",
        model=str(options.scratch / "model"),
        data=options.data,
        tasks="mrpc",
    )
    training = lab.training(task)
    clock = measure(training, options.scratch / "training")
    inputs = lab.rows(task, "train")
    lengths = [
        len(ids)
        for ids in lab.tokenizer(
            inputs["sentence1"][:],
            inputs["sentence2"][:],
            truncation=True,
            max_length=training.recipe.max_length,
        )["input_ids"]
    ]
    wall, processor, wordpieces = map(sum, zip(*clock.steps, strict=True))
    whole = sum(lengths) * training.recipe.epochs
    found = {
        "weights": weights,
        "rows": len(lengths),
        "epochs": training.recipe.epochs,
        "threads": 1,
        "steps": len(clock.steps),
        "wordpieces of a step": round(wordpieces / STEPS),
        "seconds of a step": {
            "clock": round(wall / STEPS, 2),
            "processor": round(processor / STEPS, 2),
        },
        "whole, from these steps": {
            "minutes by the clock": round(wall / wordpieces * whole / 60, 1),
            "minutes of the processor": round(processor / wordpieces * whole / 60, 1),
            "GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        },
    }
    text = json.dumps(found, indent=1) + "\n"
    Path(__file__).with_suffix(".json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
