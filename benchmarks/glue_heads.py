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

from bertology_utils import finetune
from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.cache import Later, once, write_atomically
from bertology_utils.common import Head, quiet
from bertology_utils.disabling.effects import Effects, effects
from bertology_utils.disabling.needs import estimates_of_claims, gain_of, no_harm
from bertology_utils.disabling.sweep import Sweep, sweep
from bertology_utils.disabling.switch import answers
from bertology_utils.glue import Task, get_task, sample
from bertology_utils.judge import Verdict, learned
from bertology_utils.record import Record
from bertology_utils.results import read_results
from bertology_utils.sources import parse_data
from bertology_utils.statistics.estimates import mean_over_seeds, of_same_examples
from bertology_utils.statistics.permutation import heads_by_size

AT_MOST, SEED, ABLATION = 1000, trainings.SEED, "uniform"
HEADS = Path(__file__).with_name("glue_heads.json")
FRAME_HEADS = HEADS.parent / "minilm_framenet15" / "2_framenet_heads" / "results.json"


def swept(one: finetune.Training, rows: Dataset) -> Sweep:
    """A fine-tuned classifier with every head, and every layer, disabled; from the cache or made."""
    model = Later(lambda: trainings.loaded(one, rows)[0], (finetune.finetuned, one))
    inputs = Later(lambda: trainings.loaded(one, rows)[1], (make_batches, tokenize, one, rows))
    return once(sweep, model, inputs, ablation=ABLATION)


def measured(task: Task, count: int, data) -> tuple[list[Effects], bool]:
    """What disabling does in so many trainings of a task, and whether they learned it."""
    rows, scored = trainings.rows_of(task, data)
    scored = sample(scored, AT_MOST, SEED)
    way, labels = trainings.way_of(task), np.asarray(scored["label"])
    sweeps = [swept(trainings.training(task, rows, seed, data, way), scored) for seed in range(SEED, SEED + count)]
    said = np.stack([answers(task, one.baseline) for one in sweeps])
    return [effects(task, one, labels, SEED) for one in sweeps], learned(task, said, labels, SEED)


def summary(found: list[Effects], passed: bool) -> dict:
    """Of the effects of every training: the heads, each training's counts and the means over trainings."""
    heads = [one.heads for one in found]
    first = gain_of([one.layers for one in found], 0)
    return {
        "n": first.n,
        "trainings": len(found),
        "variants": heads[0].values.size,
        "learned": passed,
        "heads that cost": [int(one.significant("worse").sum()) for one in heads],
        "heads that help": [int(one.significant("better").sum()) for one in heads],
        "best head": mean_over_seeds([one.gains[one.best] for one in heads]).summary(),
        "on other examples": of_same_examples([one.selected.estimate for one in heads]).summary(),
        "mean head": mean_over_seeds([one.mean for one in heads]).summary(),
        "first layer": first.summary(),
    }


def judged(found: dict[Task, list[Effects]], passed: dict[Task, bool], frame_heads: list[Head]) -> list[Verdict]:
    """Verdicts on the claims about single heads and layers, on all tasks."""
    record = Record("glue_heads", None)
    tested = estimates_of_claims(found, passed, trainings.SEED)
    tested["frame-heads-unneeded"] = {
        task: no_harm([one.heads for one in several], frame_heads) for task, several in found.items()
    }
    return [record.judge(name, values, learned=passed, unit="gain") for name, values in tested.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("glue", help="folder that holds one folder for each task")
    parser.add_argument("what", nargs="+", metavar="TASK=COUNT")
    options = parser.parse_args()
    quiet()
    data = parse_data(f"folder:{options.glue}", trainings.TRAIN_FILES)
    counts = {get_task(name): int(count) for name, count in (what.split("=") for what in options.what)}
    what = "excess along frame links over other sentences' places"
    frame_heads = heads_by_size(read_results(FRAME_HEADS).array(what, state="pre-trained"))[:2]  # before the long work
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
