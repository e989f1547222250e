"""What a linear bag of words reaches on the embedded corpora, whole and from one field alone.

    python -m benchmarks.corpora_shortcuts

A pair task whose second field alone ("hypothesis-only") tells the label could
be solved without comparing anything.  Writes corpora_shortcuts.json beside it.
"""

import json
from pathlib import Path

from scipy.sparse import hstack
from scipy.stats import pearsonr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from corpora_generator import MAKERS, digests, generate

WORD = r"[\w']+"


def bag(rows: dict[str, list], fields: list[int]):
    """Word presence per field for train and validation, each of shape (rows, words), each field its own words."""
    parts = {split: [] for split in rows}
    for field in fields:
        counter = CountVectorizer(binary=True, token_pattern=WORD)
        counter.fit(list(row.text.values())[field] for row in rows["train"])
        for split, items in rows.items():
            parts[split].append(counter.transform(list(row.text.values())[field] for row in items))
    return hstack(parts["train"]), hstack(parts["validation"])


def linear_score(task: str, fields: list[int]) -> float:
    """Accuracy of logistic regression (Pearson's r of ridge regression for stsb) on the validation rows."""
    rows = generate(task)
    train, dev = bag(rows, fields)
    labels, gold = ([row.label for row in rows[split]] for split in ("train", "validation"))
    if task == "stsb":
        return float(pearsonr(Ridge(alpha=3.0).fit(train, labels).predict(dev), gold).statistic)
    return float(LogisticRegression(max_iter=500, C=0.3).fit(train, labels).score(dev, gold))


def scores(task: str) -> dict[str, float | str]:
    """Scores by which fields the bag of words sees, with what always the same answer scores."""
    rows = generate(task)["validation"]
    labels = [row.label for row in rows]
    chance = (
        0.0 if task == "stsb" else max(labels.count(label) for label in set(labels)) / len(labels)
    )
    result = {
        "metric": "Pearson" if task == "stsb" else "accuracy",
        "dev rows": len(rows),
        "chance": chance,
    }
    if len(rows[0].text) == 1:
        return {**result, "all": linear_score(task, [0])}
    return {
        **result,
        "all": linear_score(task, [0, 1]),
        "first field": linear_score(task, [0]),
        "second field": linear_score(task, [1]),
    }


def main() -> None:
    """Measure, print and write."""
    results = {task: scores(task) for task in MAKERS}
    results = {
        task: {
            key: round(value, 3) if isinstance(value, float) else value
            for key, value in values.items()
        }
        for task, values in results.items()
    }
    for task, values in results.items():
        print(task, values)
    stored = {"corpora": digests(), "tasks": results}
    Path(__file__).with_suffix(".json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
