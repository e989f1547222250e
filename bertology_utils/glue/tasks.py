"""The seven GLUE tasks of the paper: fields, labels, splits, metrics, Table 1 (§3, §4.3)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..common import one_of


@dataclass(frozen=True)
class Table1:
    """The paper's scores for one task, in points (0 to 100), first metric first."""

    pretrained: tuple[float, ...]
    normal: tuple[float, ...]
    finetuned: tuple[float, ...]


@dataclass(frozen=True)
class Task:
    """One GLUE task.

    Attributes:
        name: configuration name on the Hub ("mrpc").
        title: name as the paper writes it ("MRPC").
        folder: folder name in GLUE's own download ("MRPC").
        fields: text columns, one or two, with the Hub's names.
        labels: label names in the order of their ids; empty for a regression.
        metrics: names of the metrics, the one for ranking models first.
        dev_split: the Hub's name of the split that is evaluated.
        dev_file: the same split's file in GLUE's own download.
        table1: the paper's numbers.
    """

    name: str
    title: str
    folder: str
    fields: tuple[str, ...]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    table1: Table1
    dev_split: str = "validation"
    dev_file: str = "dev.tsv"

    @property
    def is_regression(self) -> bool:
        """True for STS-B, whose label is a similarity from 0 to 5."""
        return not self.labels

    @property
    def num_labels(self) -> int:
        """Width of the classifier's output."""
        return max(1, len(self.labels))


_PAIR = ("sentence1", "sentence2")
# fmt: off
_TASKS = (
    Task("mrpc", "MRPC", "MRPC", _PAIR, ("not_equivalent", "equivalent"), ("F1", "accuracy"),
         Table1((0.0, 31.6), (81.2, 68.3), (87.9, 82.3))),
    Task("stsb", "STS-B", "STS-B", _PAIR, (), ("Pearson", "Spearman"),
         # The paper's table calls the metric "Acc" and gives one number; a
         # regression has no accuracy, so it is read as the correlation.
         Table1((33.1,), (2.9,), (82.7,))),
    Task("sst2", "SST-2", "SST-2", ("sentence",), ("negative", "positive"), ("accuracy",),
         Table1((49.1,), (80.5,), (92.0,))),
    Task("qqp", "QQP", "QQP", ("question1", "question2"), ("not_duplicate", "duplicate"), ("F1", "accuracy"),
         Table1((0.0, 60.9), (0.0, 63.2), (65.2, 78.6))),
    Task("rte", "RTE", "RTE", _PAIR, ("entailment", "not_entailment"), ("accuracy",),
         Table1((52.7,), (52.7,), (64.6,))),
    Task("qnli", "QNLI", "QNLI", ("question", "sentence"), ("entailment", "not_entailment"), ("accuracy",),
         Table1((52.8,), (49.5,), (84.4,))),
    Task("mnli", "MNLI-m", "MNLI", ("premise", "hypothesis"), ("entailment", "neutral", "contradiction"),
         ("accuracy",), Table1((31.7,), (61.0,), (78.6,)), "validation_matched", "dev_matched.tsv"),
)
# fmt: on
TASKS = {task.name: task for task in _TASKS}


def get_task(name: str) -> Task:
    """The task called ``name`` ("mrpc", …), in any spelling of case or dash ("STS-B").

    Raises:
        ValueError: if there is none, naming the seven.
    """
    key = str(name).strip().lower().replace("-", "")
    return TASKS[one_of("task", {"mnlim": "mnli"}.get(key, key), TASKS)]


def parse_tasks(names: str) -> tuple[Task, ...]:
    """Tasks named in a comma-separated list; "all" means the seven, in Table 1's order.

    Raises:
        ValueError: for an unknown name or an empty list.
    """
    if names.strip().lower() == "all":
        return _TASKS
    chosen = [get_task(name) for name in names.split(",") if name.strip()]
    if not chosen:
        raise ValueError(f"no task named in {names!r}; write 'all' or some of: {', '.join(TASKS)}")
    return tuple(dict.fromkeys(chosen))


def predictions(task: Task, logits: np.ndarray) -> np.ndarray:
    """Predicted label ids, or scores for a regression.

    Args:
        task: the task.
        logits: classifier outputs, shape (examples, ``task.num_labels``).

    Returns:
        Array of shape (examples,).
    """
    return logits[:, 0] if task.is_regression else logits.argmax(axis=1)


def score(task: Task, predicted: np.ndarray, labels: np.ndarray, *metrics: str) -> dict[str, float]:
    """The task's metrics, from 0 to 1 (correlations from −1 to 1), the first ranks models.

    F1 is that of the second class ("equivalent", "duplicate"), as GLUE defines
    it, and 0 where nothing is predicted so, as in the paper's Table 1. A
    correlation with a constant prediction is reported as 0.

    Args:
        task: the task.
        predicted: shape (examples,), from :func:`predictions`.
        labels: gold labels, shape (examples,).
        metrics: some of the task's metrics; all of them by default.
    """
    return {metric: float(_METRICS[metric](labels, predicted)) for metric in metrics or task.metrics}


def plain_metric(task: Task) -> str:
    """The metric that the paper averages over tasks: accuracy where there is one, else the correlation.

    The paper's "average of 35.9 points" (§4.3) comes out of its Table 1 with
    this choice, and not with F1 for MRPC and QQP.
    """
    return "accuracy" if "accuracy" in task.metrics else task.metrics[0]


def _accuracy(labels: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score

    return accuracy_score(labels, predicted)


def _f1(labels: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return f1_score(labels, predicted, pos_label=1, zero_division=0)


def _correlation(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def correlation(labels: np.ndarray, predicted: np.ndarray) -> float:
        from scipy import stats

        if np.ptp(predicted) == 0 or np.ptp(labels) == 0:
            return 0.0
        return getattr(stats, name)(labels, predicted).statistic

    return correlation


_METRICS = {"accuracy": _accuracy, "F1": _f1, "Pearson": _correlation("pearsonr"), "Spearman": _correlation("spearmanr")}
