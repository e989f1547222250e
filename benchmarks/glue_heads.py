"""Of fine-tunings on real GLUE: how many heads change the score, and does a head chosen for its gain gain elsewhere?

    python benchmarks/glue_heads.py PATH/TO/glue mrpc=5 rte=5 ...   # of so many trainings of each

The trainings are those of glue_trainings.py, from the cache or made. Every head, and every layer, is disabled on the rows
that score them, or 1,000 of these. Gains are in shares of the score; the p values are corrected over all heads of a model.
Written to glue_heads.json beside this script, after every task; one thread.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import glue_trainings as trainings  # first: it sets the number of threads
import numpy as np

from bertology_utils.claims.gates import learned
from bertology_utils.disabling.claims import mean_gain, of_layer, selected
from bertology_utils.disabling.measure import Effects, effects
from bertology_utils.disabling.sweep import sweep
from bertology_utils.glue.loading import sample
from bertology_utils.glue.sources import parse_data
from bertology_utils.glue.tasks import TASKS, Task, predictions
from bertology_utils.statistics.estimate import of_same_examples, over_trainings
from bertology_utils.suite.quiet import quiet

AT_MOST, SEED = 1000, trainings.SEED
HEADS = Path(__file__).with_name("glue_heads.json")


def summary(found: list[Effects]) -> dict:
    """Of the effects of every training: the heads, each training's counts and the means over trainings."""
    heads = [one.heads for one in found]
    return {
        "heads that cost": [int(one.significant("worse").sum()) for one in heads],
        "heads that help": [int(one.significant("better").sum()) for one in heads],
        "best head": over_trainings([one.gains[one.best] for one in heads]).summary(),
        "on other examples": of_same_examples([selected(one) for one in heads]).summary(),
        "mean head": mean_gain(heads).summary(),
        "first layer": of_layer([one.layers for one in found], 0).summary(),
    }


def measure(task: Task, count: int, data) -> dict:
    """So many trainings of a task, each with every head disabled in turn."""
    rows, scored = trainings.rows_of(task, data)
    scored = sample(scored, AT_MOST, SEED)
    labels, found, said = np.asarray(scored["label"]), [], []
    for seed in range(SEED, SEED + count):
        one = trainings.training(task, rows, seed, data, trainings.way_of(task))
        disabled = sweep(*trainings.loaded(one, scored))
        found.append(effects(task, disabled, labels, SEED))
        said.append(predictions(task, disabled.baseline))
    sizes = {"n": len(labels), "trainings": count, "variants": found[0].heads.values.size}
    return sizes | {"learned": learned(task, np.stack(said), labels, SEED)} | summary(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("glue", help="folder that holds one folder for each task")
    parser.add_argument("what", nargs="+", metavar="TASK=COUNT")
    options = parser.parse_args()
    quiet()
    data = parse_data(f"folder:{options.glue}", trainings.TRAIN_FILES)
    for what in options.what:
        name, count = what.split("=")
        trainings.keep(HEADS, name, measure(TASKS[name], int(count), data))


if __name__ == "__main__":
    main()
