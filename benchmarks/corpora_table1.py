"""Table 1 on the embedded corpora with several seeds (§4.3).

    python -m benchmarks.corpora_table1 [--seeds 3] [--random-epochs 5]

A random start needs about three passes over 960 rows before its loss begins to
fall, so it gets more of them than the pre-trained start.  Trainings go through the cache.
Writes corpora_table1.json beside it at the end; what that file has of the same
rows and recipes is kept. A killed run goes on from its last training.
"""

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np

from bertology_utils import finetune, glue, models
from bertology_utils.attention import batches
from bertology_utils.common import quiet
from bertology_utils.disabling.effects import scores_of
from bertology_utils.glue import TASKS, Task, plain_metric, predictions
from bertology_utils.settings import PROFILES, parse_data, parse_model
from corpora_generator import digests

OUTPUT = Path(__file__).with_suffix(".json")


class Bench:
    """Scores of classifiers on the embedded data.

    Args:
        random_epochs: Passes over the training rows for a random start.
    """

    def __init__(self, random_epochs: int):
        self.data = parse_data("embedded")
        self.source, _ = models.pinned(parse_model("embedded"))
        self.tokenizer = models.load_tokenizer(self.source)
        recipe = PROFILES["small"].recipe
        self.recipes = {
            "pretrained": recipe,
            "normal": dataclasses.replace(recipe, epochs=random_epochs),
        }

    def score(self, model, task: Task) -> float:
        """The task's plain metric on all dev rows."""
        rows = glue.load_rows(task, "dev", self.data)
        inputs = batches.tokenize(rows, task, self.tokenizer, self.recipes["normal"].max_length)
        predicted = predictions(
            task, models.predict_logits(model, batches.make_batches(inputs, self.tokenizer))
        )
        labels = np.asarray(rows["label"])
        return float(scores_of(task, predicted[None], labels)[0])

    def untuned(self, task: Task, seed: int) -> float:
        """The pre-trained encoder under a classification layer drawn by the seed."""
        return self.score(models.load_classifier(self.source, task, "pretrained", seed), task)

    def tuned(self, task: Task, seed: int, init: str) -> float:
        """Fine-tuned from that initialisation."""
        rows = glue.load_rows(task, "train", self.data)
        training = finetune.Training(task, self.source, rows, self.recipes[init], init, seed)
        return self.score(finetune.finetuned(training), task)


def kept(meta: dict) -> dict[str, dict]:
    """What was measured before, with the same seeds and recipes, of tasks whose rows are still the same."""
    stored = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    if not stored or any(stored[name] != meta[name] for name in ("seeds", "recipes")):
        return {}
    return {
        task: found
        for task, found in stored["tasks"].items()
        if stored["corpora"].get(task) == meta["corpora"][task]
    }


def main() -> None:
    """Train, score, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many; 2 at least, for a spread")
    parser.add_argument("--random-epochs", type=int, default=PROFILES["small"].random_epochs)
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds is {options.seeds}; a spread takes 2 at least")
    quiet()
    bench = Bench(options.random_epochs)
    columns = {
        "untuned": bench.untuned,
        "finetuned": lambda task, seed: bench.tuned(task, seed, "pretrained"),
        "normal": lambda task, seed: bench.tuned(task, seed, "normal"),
    }
    recipes = {init: dataclasses.asdict(recipe) for init, recipe in bench.recipes.items()}
    meta = {"corpora": digests(), "seeds": options.seeds, "recipes": recipes}
    before = kept(meta)
    results: dict = meta | {
        "tasks": {name: before.get(name, {"metric": plain_metric(TASKS[name])}) for name in TASKS}
    }
    for column, measure in columns.items():
        for task in (task for task in TASKS.values() if task.name not in before):
            scores = [round(measure(task, seed), 4) for seed in range(1, options.seeds + 1)]
            results["tasks"][task.name][column] = {
                "mean": round(float(np.mean(scores)), 4),
                "sd": round(float(np.std(scores, ddof=1)), 4),
                "seeds": scores,
            }
            print(task.name, column, results["tasks"][task.name][column], flush=True)
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
