"""Of fine-tunings on real GLUE: which heads and layers change the score, and does a head chosen for its gain gain elsewhere?

    python benchmarks/glue_heads.py PATH/TO/glue mrpc=5 rte=5 ...   # of so many trainings of each

The trainings are those of glue_trainings.py, from the cache or made. Every head, and every layer, is disabled on the rows
that score them, or 1,000 of these. Gains are in shares of the score; the p values are corrected over all heads of a model.
Notebook 6's claims that need nothing else are judged on all these tasks together; the heads of frame-semantic links are the
two highest of the committed run on FrameNet 1.5. Written to glue_heads.json beside this script, when all is measured; sweeps
stay in the cache; one thread.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import glue_trainings as trainings  # first: it sets the number of threads
import numpy as np
from datasets import Dataset

from bertology_utils.claims.gates import learned
from bertology_utils.claims.verdict import Verdict
from bertology_utils.common import Head
from bertology_utils.common.cache import write_atomically
from bertology_utils.disabling import claims
from bertology_utils.disabling.measure import Effects, effects
from bertology_utils.disabling.reference import Sweep
from bertology_utils.disabling.saved import saved_sweep, sweep_key
from bertology_utils.encoders import finetune
from bertology_utils.framenet.controls import top_heads
from bertology_utils.glue.loading import sample
from bertology_utils.glue.sources import parse_data
from bertology_utils.glue.tasks import Task, get_task, predictions
from bertology_utils.regression.numbers import read_results
from bertology_utils.statistics.estimate import of_same_examples, over_trainings
from bertology_utils.suite.quiet import quiet

AT_MOST, SEED, ABLATION = 1000, trainings.SEED, "uniform"
HEADS = Path(__file__).with_name("glue_heads.json")
FRAME_HEADS = HEADS.parent / "minilm_framenet15" / "2_framenet_heads" / "results.json"


def swept(one: finetune.Training, rows: Dataset) -> Sweep:
    """A fine-tuned classifier with every head, and every layer, disabled; from the cache or made."""
    key = sweep_key(one.key, finetune.rows_digest(rows), one.recipe.max_length, ABLATION)
    return saved_sweep(key, ABLATION, lambda: trainings.loaded(one, rows))


def measured(task: Task, count: int, data) -> tuple[list[Effects], bool]:
    """What disabling does in so many trainings of a task, and whether they learned it."""
    rows, scored = trainings.rows_of(task, data)
    scored = sample(scored, AT_MOST, SEED)
    way, labels = trainings.way_of(task), np.asarray(scored["label"])
    sweeps = [swept(trainings.training(task, rows, seed, data, way), scored) for seed in range(SEED, SEED + count)]
    answers = np.stack([predictions(task, one.baseline) for one in sweeps])
    return [effects(task, one, labels, SEED) for one in sweeps], learned(task, answers, labels, SEED)


def summary(found: list[Effects], passed: bool) -> dict:
    """Of the effects of every training: the heads, each training's counts and the means over trainings."""
    heads = [one.heads for one in found]
    first = claims.of_layer([one.layers for one in found], 0)
    return {
        "n": first.n,
        "trainings": len(found),
        "variants": heads[0].values.size,
        "learned": passed,
        "heads that cost": [int(one.significant("worse").sum()) for one in heads],
        "heads that help": [int(one.significant("better").sum()) for one in heads],
        "best head": over_trainings([one.gains[one.best] for one in heads]).summary(),
        "on other examples": of_same_examples([claims.selected(one) for one in heads]).summary(),
        "mean head": claims.mean_gain(heads).summary(),
        "first layer": first.summary(),
    }


def judged(found: dict[Task, list[Effects]], passed: dict[Task, bool], frame_heads: list[Head]) -> list[Verdict]:
    """The claims about single heads and layers, on all tasks."""
    by_training = {(task, number): one for task, several in found.items() for number, one in enumerate(several)}
    rules = (
        claims.judge_heads, claims.judge_means, claims.judge_layers, claims.judge_shared_heads, claims.judge_trainings
    )  # fmt: skip
    verdicts = [verdict for rule in rules for verdict in rule(by_training, passed)]
    return verdicts + claims.judge_frame_heads(by_training, frame_heads, passed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("glue", help="folder that holds one folder for each task")
    parser.add_argument("what", nargs="+", metavar="TASK=COUNT")
    options = parser.parse_args()
    quiet()
    data = parse_data(f"folder:{options.glue}", trainings.TRAIN_FILES)
    counts = {get_task(name): int(count) for name, count in (what.split("=") for what in options.what)}
    frame_heads = top_heads(np.asarray(read_results(FRAME_HEADS)["scores"]), 2)  # read before the long work
    found, passed = {}, {}
    for task, count in counts.items():
        found[task], passed[task] = measured(task, count, data)
    content = {
        "tasks": {task.name: summary(several, passed[task]) for task, several in found.items()},
        "verdicts": [asdict(verdict) for verdict in judged(found, passed, frame_heads)],
    }
    write_atomically(HEADS, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
