"""Table 1: what pre-training and fine-tuning are worth (§4.3)."""

import numpy as np

from ..glue.tasks import Task, plain_metric, predictions
from ..statistics import Bootstrap, Seed, bootstrap_weights
from ..statistics.estimate import Estimate, over_trainings
from ..statistics.weighted import weighted_scores

# The columns, in the paper's order and words.
COLUMNS = {
    "pretrained": "pre-trained, not fine-tuned",
    "normal": "normal distr., fine-tuned",
    "finetuned": "pre-trained, fine-tuned",
}


RANDOM_CLASSIFIERS = 1000


def score_task(task: Task, predicted: np.ndarray, labels: np.ndarray, seed: Seed) -> dict[str, Bootstrap]:
    """Every metric of the task, averaged over classifiers, with its bootstrap over dev examples.

    Columns of one task scored with the same seed are paired.

    Args:
        task: the task.
        predicted: labels, or scores for a regression; shape (classifiers, examples).
        labels: gold, shape (examples,).
        seed: of the resampling.

    Returns:
        By metric, from 0 to 1. A rank correlation is resampled with the ranks of all examples.
    """
    ones, drawn = np.ones((1, len(labels))), bootstrap_weights(len(labels), seed)

    def mean_score(metric: str) -> Bootstrap:
        name, answers, gold = metric, predicted, labels
        if metric == "Spearman":
            from scipy.stats import rankdata

            name, answers, gold = "Pearson", rankdata(predicted, axis=1), rankdata(labels)
        (value,), draws = (weighted_scores(name, answers, gold, weights).mean(axis=1) for weights in (ones, drawn))
        return Bootstrap(float(value), draws, len(labels), seed)

    return {metric: mean_score(metric) for metric in task.metrics}


def gain(task: Task, better: np.ndarray, worse: Bootstrap, labels: np.ndarray, seed: Seed) -> Estimate:
    """How much better several trainings are than something else, by :func:`plain_metric`.

    Args:
        task: the task.
        better: answers of every training, shape (trainings, examples).
        worse: the other's score, on the same resamples.
        labels: gold, shape (examples,).
        seed: of the resampling.
    """
    metric = plain_metric(task)
    return over_trainings([score_task(task, one[None], labels, seed)[metric] - worse for one in better])


def answer_text(task: Task, logits: np.ndarray) -> str:
    """What a classifier says of one input: the label with its probability, or the similarity from 0 to 5.

    Args:
        task: the task.
        logits: its outputs, shape (labels,).
    """
    if task.is_regression:
        return f"{5 * logits[0]:.1f} of 5"
    odds = np.exp(logits - logits.max())
    return f"{task.labels[int(logits.argmax())]} ({odds.max() / odds.sum():.2f})"


def random_answers(task: Task, features: np.ndarray, seed: int, count: int = RANDOM_CLASSIFIERS) -> np.ndarray:
    """What classifiers with random weights answer: the paper's "pre-trained, not fine-tuned".

    The paper does not say how it scored a model without a classifier; with a
    random one the score is mostly chance, so one says nothing and many say how
    much chance there is.

    Args:
        task: the task.
        features: what the last layer of the classifier reads, shape (examples, features).
        seed: of the weights.
        count: how many classifiers.

    Returns:
        Predictions, shape (classifiers, examples).
    """
    from ..encoders.models import NORMAL_STD  # with torch, which the runner does without

    rng = np.random.default_rng(seed)
    weights = rng.normal(0, NORMAL_STD, (count, features.shape[1], task.num_labels))
    return np.stack([predictions(task, features @ of_one) for of_one in weights])


def paper_points(task: Task, column: str, metric: str) -> float | None:
    """The paper's number in points (0 to 100); None where it gives none (Spearman)."""
    numbers = dict(zip(task.metrics, getattr(task.table1, column), strict=False))
    return numbers.get(metric)


def paper_gain(task: Task, better: str, worse: str) -> float:
    """The paper's difference between two columns in points, by :func:`plain_metric`."""
    high, low = (paper_points(task, column, plain_metric(task)) for column in (better, worse))
    assert high is not None and low is not None  # the paper gives this metric for every task
    return high - low
