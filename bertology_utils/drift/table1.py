"""Table 1: what pre-training and fine-tuning are worth (§4.3)."""

import numpy as np

from ..glue.tasks import Task, plain_metric, score
from ..statistics import Bootstrap, Seed, bootstrap, bootstrap_weights
from ..statistics.weighted import METRICS, weighted_scores

# The columns, in the paper's order and words.
COLUMNS = {
    "pretrained": "pre-trained, not fine-tuned",
    "normal": "normal distr., fine-tuned",
    "finetuned": "pre-trained, fine-tuned",
}


def score_task(task: Task, predicted: np.ndarray, labels: np.ndarray, seed: Seed) -> dict[str, Bootstrap]:
    """Every metric of the task, averaged over classifiers, with its bootstrap over dev examples.

    Columns of one task scored with the same seed are paired.

    Args:
        task: the task.
        predicted: labels, or scores for a regression; shape (classifiers, examples).
        labels: gold, shape (examples,).
        seed: of the resampling.

    Returns:
        By metric, from 0 to 1.
    """
    ones, drawn = np.ones((1, len(labels))), bootstrap_weights(len(labels), seed)

    def mean_score(metric: str) -> Bootstrap:
        if metric not in METRICS:  # rank correlations need every resample's ranks
            return bootstrap(
                lambda rows: float(
                    np.mean([score(task, answers[rows], labels[rows], metric)[metric] for answers in predicted])
                ),
                len(labels),
                seed,
            )
        (value,), draws = (weighted_scores(metric, predicted, labels, weights).mean(axis=1) for weights in (ones, drawn))
        return Bootstrap(float(value), draws, len(labels), seed)

    return {metric: mean_score(metric) for metric in task.metrics}


def constant_score(task: Task, labels: np.ndarray) -> float:
    """What always the same answer scores, by :func:`plain_metric`: the most frequent class's share, or no correlation.

    Args:
        task: the task.
        labels: gold, shape (examples,).
    """
    return 0.0 if task.is_regression else float(np.bincount(labels).max() / len(labels))


def paper_points(task: Task, column: str, metric: str) -> float | None:
    """The paper's number in points (0 to 100); None where it gives none (Spearman)."""
    numbers = dict(zip(task.metrics, getattr(task.table1, column), strict=False))
    return numbers.get(metric)


def paper_gain(task: Task, better: str, worse: str) -> float:
    """The paper's difference between two columns in points, by :func:`plain_metric`."""
    high, low = (paper_points(task, column, plain_metric(task)) for column in (better, worse))
    assert high is not None and low is not None  # the paper gives this metric for every task
    return high - low
