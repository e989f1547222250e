"""Scores of several fine-tunings on real GLUE, each by itself, and of several ways of training RTE.

    python benchmarks/glue_trainings.py PATH/TO/glue recipes            # of RTE, chosen on a part of its training rows
    python benchmarks/glue_trainings.py PATH/TO/glue mrpc=5 rte=5 ...   # so many trainings of each

Everything as in the profile `minilm`, with at most 10,000 training rows. MNLI is trained on the rows that are there
(train_subset9k.tsv). QQP has no dev rows there: of its training rows 4,000 are trained on and 2,000 others scored. RTE's
recipes are compared on 490 training rows that none of them saw; its dev rows are used once, with the best. One thread
each; a call with other tasks may run beside. Fine-tuned models stay in the cache. Written to glue_trainings.json and
glue_recipes.json beside this script, after every training.
"""

import argparse
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from datasets import Dataset
from transformers import PreTrainedModel

from bertology_utils import finetune, models
from bertology_utils.attention import Batch
from bertology_utils.attention.batches import make_batches, tokenize
from bertology_utils.cache import cache_folder, lock_beside, write_atomically
from bertology_utils.common import quiet
from bertology_utils.drift.scores import score_task
from bertology_utils.glue import TASKS, Task, load_rows, predictions, sample
from bertology_utils.judge import constant_score, learned
from bertology_utils.settings import PROFILES
from bertology_utils.sources import ModelSource, parse_data, parse_model
from bertology_utils.statistics.estimates import mean_over_seeds

RECIPE = PROFILES["minilm"].recipe
ROWS, SEED = 10_000, 1
TRAIN_FILES = "mnli=train_subset9k.tsv,qqp=train_subset23k.tsv"
HELD_OUT = {"qqp": (4000, 2000), "rte": (2000, 490)}  # training rows trained on, and scored
TRAININGS, RECIPES = (Path(__file__).with_name(f"glue_{name}.json") for name in ("trainings", "recipes"))


@dataclass(frozen=True)
class Way:
    """How RTE is trained.

    Attributes:
        epochs: passes over its rows.
        after_mnli: start from a model that was fine-tuned on MNLI before.
    """

    epochs: int
    after_mnli: bool

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.epochs} epochs" + (", after MNLI" if self.after_mnli else "")


WAYS = [Way(3, False), Way(10, False), Way(3, True)]
MNLI_TRAININGS = 2  # from which trainings of RTE start in turns


def split(rows: Dataset, task: Task) -> tuple[Dataset, Dataset]:
    """Rows to train on, and others, to score; drawn by :data:`SEED`."""
    order = np.random.default_rng(SEED).permutation(len(rows))
    few, scored = HELD_OUT[task.name]
    return rows.select(sorted(order[:few])), rows.select(sorted(order[few : few + scored]))


def rows_of(task: Task, data) -> tuple[Dataset, Dataset]:
    """Training and dev rows, or what stands for them."""
    if task.name == "qqp":
        return split(load_rows(task, "train", data), task)
    return sample(load_rows(task, "train", data), ROWS, SEED), load_rows(task, "dev", data)


def training(task: Task, rows: Dataset, seed: int, data, way: Way | None = None) -> finetune.Training:
    """One fine-tuning; of RTE by a way of its own."""
    source = parse_model("embedded")
    recipe = replace(RECIPE, epochs=way.epochs) if way else RECIPE
    if way and way.after_mnli:
        mnli = TASKS["mnli"]
        first = SEED + (seed - SEED) % MNLI_TRAININGS
        before = finetune.trained(training(mnli, rows_of(mnli, data)[0], first, data))
        source = ModelSource(f"MNLI, seed {first}", str(before))  # its encoder; the classifier on top is drawn anew
    return finetune.Training(task, source, rows, recipe, seed=seed)


def loaded(one: finetune.Training, rows: Dataset) -> tuple[PreTrainedModel, list[Batch]]:
    """The fine-tuned classifier, from the cache or made, and rows as its inputs."""
    model, tokenizer = finetune.finetuned(one), models.load_tokenizer(one.source)
    return model, make_batches(tokenize(rows, one.task, tokenizer, one.recipe.max_length), tokenizer)


def answers(one: finetune.Training, rows: Dataset) -> np.ndarray:
    """What the fine-tuned classifier says of rows, shape (rows,)."""
    return predictions(one.task, models.predict_logits(*loaded(one, rows)))


def summary(task: Task, said: np.ndarray, labels: np.ndarray) -> dict:
    """Of answers of shape (trainings, rows): every metric with its interval, and each training's score.

    Always the same answer is scored by the task's plain metric (accuracy, or Pearson's r).
    """
    each = [score_task(task, one[None], labels, SEED) for one in said]
    return {
        "n": len(labels),
        "trainings": len(said),
        "learned": learned(task, said, labels, SEED),
        "always the same": round(constant_score(task, labels), 4),
        "scores": {name: mean_over_seeds([one[name] for one in each]).summary() for name in task.metrics},
        "each": {name: [round(one[name].value, 4) for one in each] for name in task.metrics},
    }


def keep(path: Path, entry: str, found: dict) -> None:
    """Write one entry into a file that another process, with the same cache, may write to as well."""
    with lock_beside(cache_folder() / f"{path.name}.lock"):
        content = json.loads(path.read_text()) if path.exists() else {}
        write_atomically(path, (json.dumps(content | {entry: found}, indent=1, sort_keys=True) + "\n").encode())
    print(path.stem, entry, json.dumps(found), flush=True)


def score(
    path: Path, entry: str, task: Task, rows: tuple[Dataset, Dataset], count: int, data, way: Way | None = None
) -> None:
    """So many trainings, which differ in their seed; what is known is kept after each.

    Args:
        path, entry: where.
        task: the task.
        rows: trained on, and scored.
        count: of trainings.
        data: where MNLI's rows come from.
        way: of RTE.
    """
    said = []
    for seed in range(SEED, SEED + count):
        said.append(answers(training(task, rows[0], seed, data, way), rows[1]))
        found = summary(task, np.stack(said), np.asarray(rows[1]["label"])) | {"rows": len(rows[0])}
        keep(path, entry, found | ({"recipe": way.name} if way else {}))


def way_of(task: Task) -> Way | None:
    """How a task is trained: RTE in the way that was best on held-out training rows, others as the profile says."""
    if task.name != "rte":
        return None
    found = json.loads(RECIPES.read_text())
    return max(WAYS, key=lambda way: found[way.name]["scores"]["accuracy"]["value"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("glue", help="folder that holds one folder for each task")
    parser.add_argument("what", nargs="+", metavar="recipes or TASK=COUNT")
    parser.add_argument("--seeds", type=int, default=2, help="trainings of each recipe")
    options = parser.parse_args()
    quiet()
    data = parse_data(f"folder:{options.glue}", TRAIN_FILES)
    for what in options.what:
        if what == "recipes":
            task = TASKS["rte"]
            held_out = split(load_rows(task, "train", data), task)
            for way in WAYS:
                score(RECIPES, way.name, task, held_out, options.seeds, data, way)
        else:
            name, count = what.split("=")
            task = TASKS[name]
            score(TRAININGS, name, task, rows_of(task, data), int(count), data, way_of(task))


if __name__ == "__main__":
    main()
